"""The way back of a loss: gradients that were computed with the value, or that are computed when they are asked for."""

import torch

from . import _fallback, _native
from ._contract import MEAN, MEAN_OF_ALL, NAMES, NONE
from ._torch_state import is_plain_here

# What backward does with an upstream gradient that only the device knows: nothing where it is 1, ...
SCALE = "scale"  # ... else it multiplies the gradient, ...
ANEW = "anew"  # ... or computes it anew, since a rounded one cannot be scaled; ...
LATER = "later"  # ... or the gradient was not computed before.

_SINGLES = (torch.float32, torch.float32)
_is_grad_enabled, _torch_gradient, _torch_scale = torch.is_grad_enabled, _native.torch_gradient, _native.torch_scale


def gradient_time(code, types, weight, mask, outputs):
    """An f16 gradient would underflow before GradScaler's factor; without a reduction each element has its own; and
    what a mask leaves out is 0 even if that factor is infinite."""
    if code == NONE:
        return LATER
    if mask is None and weight is None and types == _SINGLES:  # which most are
        return SCALE
    gradients = [dtype for k, dtype in enumerate(types) if outputs >> k & 1]
    if torch.float16 in gradients:
        return LATER
    if mask is not None:
        return ANEW
    in_double = torch.float64 in types or (weight is not None and weight.dtype == torch.float64)
    return SCALE if all(dtype is (torch.float64 if in_double else torch.float32) for dtype in gradients) else ANEW


# Up to so many elements a launch costs a GPU more than to read the operands a second time, most of them from its cache:
# with weights or a mask, and without, for which src/cuda/pairwise/whole.h has its kernel.
FEW_ON_GPU = 1 << 22
FEWER_ON_GPU = 1 << 13


def plain_time(how, types, outputs, input):
    """The same on a GPU without weights or mask: rather later than to ask, by a launch, for the upstream gradient."""
    if input.is_cuda and how is SCALE and outputs == 1 and types == _SINGLES:
        count = input.numel()
        return LATER if count <= FEWER_ON_GPU and count % 512 == 0 else how
    return how


def weights_time(code, how, tensors):
    """The same where weights or a mask decide on a GPU what a mean is divided by, and whether to keep that: to add them
    up before the terms, for a gradient with the value, or again in backward, is a launch more."""
    input, _, _, weight, mask = tensors
    if not input.is_cuda or code not in (MEAN, MEAN_OF_ALL) or (mask is None and (weight is None or code != MEAN)):
        return how, False
    if input.numel() <= FEW_ON_GPU:
        how = LATER
    return how, how is not SCALE


class Loss(torch.autograd.Function):
    """The value, computed before; its gradients, computed with it or to be computed. The tensors are input and target,
    or those and third operand, weight and mask, if only one of these is there.

    The gradients are not saved tensors of the graph: whoever runs backward first gets the only reference, so that
    PyTorch need not copy them.
    """

    @staticmethod
    def forward(ctx, question, computed, *tensors):
        ctx.question = question
        ctx.save_for_backward(*tensors)
        value, *ctx.kept = computed
        return value

    @staticmethod
    def backward(ctx, upstream):
        saved = ctx.saved_tensors  # once: checkpointing computes them; and it says so if one was changed in place
        if _is_grad_enabled():
            return None, None, *by_fallback(ctx, saved, upstream, create_graph=True), None, None
        _, _, _, how, broadcast, _ = ctx.question
        found = ctx.__dict__.pop("kept", None)  # in one step, should two threads run backward at once
        if not (found and how is SCALE and _torch_scale(upstream, *found)):
            found = compute_gradients(ctx, saved, upstream, found if how is ANEW else None)
        if broadcast:
            found = summed(saved, found)
        return None, None, *found, *(None,) * (len(saved) - len(found))


# Without what torch.autograd.Function.apply asks first, and compute has asked: a tenth of a small call's time. And
# without its choice between backward and vjp, on the way back.
attach_gradients = super(torch.autograd.Function, Loss).apply
Loss._backward_cls.apply = Loss.backward


def compute_gradients(ctx, saved, upstream, kept):
    """At the common shape. With `kept`, computed for an upstream gradient of 1, only if it is another."""
    outputs = kept or [need or None for need in ctx.needs_input_grad[2:5]]
    name, code, parameters, _, _, divisor = ctx.question
    computed = None
    if is_plain_here():
        known = () if divisor is None else (divisor,)
        computed = _torch_gradient(name, MEAN if known else code, parameters, *saved[:2], upstream, tuple(outputs),
                                   *saved[2:], *known)
    return by_fallback(ctx, saved, upstream, create_graph=False) if computed is None else computed


def by_fallback(ctx, saved, upstream, create_graph):
    name, code, parameters, *_ = ctx.question
    operands, (weight, mask) = (saved[:3], saved[3:]) if len(saved) > 2 else ((*saved, None), (None, None))
    needed = (*ctx.needs_input_grad[2:5], False)[:3]
    return _fallback.gradients(name, operands, parameters, NAMES[code], weight, mask, upstream, needed, create_graph)


def summed(saved, gradients):
    """Each at its operand's own shape."""
    return [gradient if gradient is None or gradient.shape == operand.shape else gradient.sum_to_size(operand.shape)
            for gradient, operand in zip(gradients, saved)]
