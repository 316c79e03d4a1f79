"""The way back of a vector loss: gradients that were computed with the value, or that are computed when they are asked
for."""

import torch

from . import _native, _upstream_habit, _vectors_fallback
from ._torch_state import is_plain_here
from ._vector_request import Tensors

_is_grad_enabled, _torch_vectors_gradient = torch.is_grad_enabled, _native.torch_vectors_gradient


class VectorLoss(torch.autograd.Function):
    """The value, computed before; its gradients, computed with it or to be computed.

    The gradients are not saved tensors of the graph: whoever runs backward first gets the only reference, so that
    PyTorch need not copy them.
    """

    @staticmethod
    def forward(ctx, question, computed, *tensors):
        ctx.question = question
        value, *ctx.kept = computed
        ctx.save_for_backward(*tensors)
        return value

    @staticmethod
    def backward(ctx, upstream):
        tensors = ctx.saved_tensors  # once: checkpointing computes them; and it says so if one was changed
        request, kind = ctx.question
        needed = ctx.needs_input_grad[2:5]
        found = None
        if not _is_grad_enabled():
            kept = ctx.__dict__.pop("kept", None)  # in one step, should two threads run backward at once
            found = compute(request, kind, tensors, upstream, tuple(kept or [need or None for need in needed]))
        if found is None:
            found = _vectors_fallback.gradients(request, Tensors(*tensors), upstream, needed,
                                                create_graph=_is_grad_enabled())
        return None, None, *found, None, None, None


def compute(request, kind, tensors, upstream, gradients):
    """Each gradient that is True, or that was kept for an upstream gradient of 1 and is computed anew if that is
    another; None if that is not for us."""
    if not is_plain_here():
        return None
    *operands, divisor = tensors
    found = _torch_vectors_gradient(*request[:4], *operands, request.divisor if divisor is None else divisor, upstream,
                                    gradients)
    if found is not None and kind is not None:
        _upstream_habit.remember(kind, upstream, tensors[0].numel())
    return found


# Without what torch.autograd.Function.apply asks first, and the caller has asked; see _autograd.py.
attach_gradients = super(torch.autograd.Function, VectorLoss).apply
VectorLoss._backward_cls.apply = VectorLoss.backward
