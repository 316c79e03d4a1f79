"""The way back of a loss over chunks of logits. Of a mean or a sum the gradients are computed in forward, while a
chunk's logits are there, and backward multiplies them by the upstream gradient. Without a reduction, of f16, whose
gradients would underflow before GradScaler's factor, and when it is asked a second time, backward multiplies the
chunks anew."""

import torch
import torch.nn.functional as F

from . import _linear_chunks, _rows
from ._contract import MEAN, NONE
from ._fallback import differentiated
from ._linear_chunks import PLAIN, SAME_LABEL, Operands, finished
from ._row_request import Tensors
from ._torch_state import is_any_autocast, is_batch, is_in_single, is_plain_here

_FAR = {torch.float16: -3e4}  # what stands for a row compared with itself; elsewhere:
_FARTHEST = -1e30


def autocast_type(device_type):
    """What autocast multiplies in here; None without it."""
    if not (is_any_autocast() and is_in_single(device_type)):
        return None
    try:
        return torch.get_autocast_dtype(device_type)
    except AttributeError:  # before PyTorch 2.4 there was a question for each kind
        return torch.get_autocast_cpu_dtype() if device_type == "cpu" else torch.get_autocast_gpu_dtype()


def multiplied(operands, dtype):
    """The operands as autocast multiplies them; and what the extension borrows without a negative bit."""
    cast = [x if x is None or dtype is None or x.dtype == torch.float64 else x.to(dtype) for x in operands[:3]]
    return Operands(*cast, *(None if x is None else x.resolve_neg() for x in operands[3:]))


class LinearRowLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, question, shape, multiplies_in, *operands):
        operands = Operands(*operands)
        ctx.question, ctx.multiplies_in = question, multiplies_in
        needed = ctx.needs_input_grad[3:6]
        now = computes_now(question, operands.input, multiplies_in)
        value, divisor, computed = answer(question, multiplied(operands, multiplies_in), shape,
                                          needed if now else (False,) * 3)
        ctx.kept = computed.gradients if now else None
        ctx.number, tensor = (None, divisor) if isinstance(divisor, torch.Tensor) else (divisor, None)
        ctx.save_for_backward(*operands[:5], tensor, computed.state)
        return value

    @staticmethod
    def backward(ctx, upstream):
        *operands, divisor, state = ctx.saved_tensors  # once: checkpointing computes them
        operands = Operands(*operands, divisor)
        needed = ctx.needs_input_grad[3:6]
        kept = ctx.__dict__.pop("kept", None)  # in one step, should two threads run backward at once
        if torch.is_grad_enabled() or not is_plain_here() or is_batch(upstream):
            return None, None, None, *by_composition(ctx, operands, upstream, needed), None, None, None
        types = [None if x is None else x.dtype for x in operands[:3]]
        if kept is None:
            upstream = upstream.reshape(-1) if ctx.question.request.code == NONE else upstream
            own = multiplied(operands, ctx.multiplies_in)
            kept = _linear_chunks.compute(ctx.question, own, ctx.number if divisor is None else divisor, upstream,
                                          state, needed, with_value=False).gradients
            upstream = None
        of_rows = upstream
        if upstream is not None and not (upstream.is_cpu and upstream.isfinite()):
            of_rows = _linear_chunks.upstream_of_rows(ctx.question, operands.target, upstream)
        return None, None, None, *map(finished, kept, types, (of_rows, upstream, upstream)), None, None, None


def computes_now(question, input, multiplies_in):
    """Whether the gradients come with the value."""
    return question.request.code != NONE and (multiplies_in or input.dtype) != torch.float16


def answer(question, operands, shape, needed):
    """The value, what a mean is divided by, and all that was computed with it."""
    divisor = _linear_chunks.count(question, operands)
    one = operands.input.new_ones((), dtype=torch.float32)
    computed = _linear_chunks.compute(question, operands, divisor, one, needed=needed)
    return _linear_chunks.reduced(question, computed.each, divisor, shape), divisor, computed


def by_composition(ctx, operands, upstream, needed):
    """With all logits, by operations that PyTorch can differentiate again."""
    with autocast_again(operands.input.device.type, ctx.multiplies_in):
        return differentiated(lambda *own: compose(ctx.question, Operands(*own, *operands[3:]), upstream.shape),
                              operands[:3], upstream, needed, create_graph=torch.is_grad_enabled())


def autocast_again(device_type, dtype):
    return torch.autocast(device_type, dtype=dtype, enabled=dtype is not None)


def compose(question, operands, shape):
    """The loss of all logits at once, for transforms, tracers, rare tensors and second derivatives."""
    input, weight, bias, target, class_weight, divisor = operands
    logits = F.linear(input, weight, bias)
    if question.kind != PLAIN:
        own = torch.eye(len(input), dtype=torch.bool, device=input.device)
        logits = logits.masked_fill(own, _FAR.get(logits.dtype, _FARTHEST))
        if question.kind == SAME_LABEL:
            same = (target[:, None] == target) & ~own
            together = same.sum(1, keepdim=True)
            target = same.to(torch.promote_types(logits.dtype, torch.float32)) / together.clamp(min=1)
            if divisor is None and question.request.divisor is None:
                divisor = (together > 0).sum(dtype=torch.float64)
    if question.request.code != MEAN:
        divisor = None
    is_empty = divisor == 0 if question.kind == SAME_LABEL and divisor is not None else None
    if is_empty is not None:
        divisor = divisor.masked_fill(is_empty, 1)  # the slopes of a mean of nothing are 0, though itself is NaN
    value, *_ = _rows.dispatch(question.request, Tensors(logits, target, class_weight, None, None, divisor), 0, False)
    if is_empty is not None:
        value = value.masked_fill(is_empty, torch.nan)
    return value.reshape(shape) if question.request.code == NONE else value
