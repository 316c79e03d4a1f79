"""The way back of a loss over rows or of vectors: gradients that were computed with the value, or that are computed
when they are asked for, of the rows' state where that spares a read of the logits."""

import torch

from . import _native, _rows_fallback, _upstream_habit, _vectors_fallback
from ._catalog import VECTOR_CATALOG
from ._torch_state import is_plain_here

_is_grad_enabled = torch.is_grad_enabled
_torch_rows_gradient, _torch_is_one = _native.torch_rows_gradient, _native.torch_is_one


class RowLoss(torch.autograd.Function):
    """The value, computed before; its gradients, computed with it or to be computed. The tensors are as saved() has
    them.

    The gradients are not saved tensors of the graph: whoever runs backward first gets the only reference, so that
    PyTorch need not copy them.
    """

    @staticmethod
    def forward(ctx, question, computed, *tensors):
        ctx.question = question
        value, state, *ctx.kept = computed
        ctx.save_for_backward(*tensors, state)
        return value

    @staticmethod
    def backward(ctx, upstream):
        *tensors, state = ctx.saved_tensors  # once: checkpointing computes them; and it says so if one was changed
        request, kind, inplace, expected = ctx.question
        count = len(tensors)
        if count < 6:
            tensors += None, None, None, None
        if _is_grad_enabled():
            found = by_fallback(request, tensors, upstream, ctx.needs_input_grad, create_graph=True)
            return None, None, *found[:count], *(None,) * (count - 3)
        kept = ctx.__dict__.pop("kept", None)  # in one step, should two threads run backward at once
        if not kept or (kept[0] is None and kept[1] is None and kept[2] is None):
            kept = [need or None for need in (*ctx.needs_input_grad, False)[2:5]]
        elif expected == 1 and is_plain_here() and _torch_is_one(upstream):  # as it mostly is
            return None, None, *kept[:count], *(None,) * (count - 3)
        if inplace:
            kept[0] = tensors[0]
        found = compute(request, kind, tensors, upstream, state, tuple(kept), expected)
        if found is None:
            found = by_fallback(request, tensors, upstream, ctx.needs_input_grad, create_graph=False)
        elif inplace:
            torch.autograd.graph.increment_version(tensors[0])
            found = found[0].detach(), *found[1:]
        return None, None, *found[:count], *(None,) * (count - 3)


class VectorLoss(RowLoss):
    """The same, by its own name in the graph."""


def saved(tensors):
    """What the way back needs of them: input and target if nothing else is there, since each has its price."""
    _, _, third, weight, mask, divisor = tensors
    return tensors[:2] if third is None and weight is None and mask is None and divisor is None else tensors


def told(expected):
    """The upstream gradient that is expected, as an argument: 1 is none."""
    return () if expected is None or expected == 1 else (expected,)


def compute(request, kind, tensors, upstream, state, gradients, expected):
    """Each gradient that is True, or that was kept for the upstream gradient that was expected and is computed anew if
    that is another, or that is written over its operand; None if that is not for us."""
    if not is_plain_here():
        return None
    *operands, divisor = tensors
    found = _torch_rows_gradient(*request[:4], *operands, request.divisor if divisor is None else divisor, upstream,
                                 state, gradients, *told(expected))
    if found is not None:
        _upstream_habit.remember(kind, upstream)
    return found


def by_fallback(request, tensors, upstream, needed, create_graph):
    """`needed` is the context's, whose first two are no tensors. The upstream gradient is of the value's type."""
    fallback = _vectors_fallback if request.name in VECTOR_CATALOG else _rows_fallback
    return fallback.gradients(request._replace(dtype=upstream.dtype), tensors, upstream, (*needed, False)[2:5],
                              create_graph)


# Without what torch.autograd.Function.apply asks first, and the caller has asked; see _autograd.py.
attach_gradients = super(torch.autograd.Function, RowLoss).apply
attach_vector_gradients = super(torch.autograd.Function, VectorLoss).apply
RowLoss._backward_cls.apply = VectorLoss._backward_cls.apply = RowLoss.backward
