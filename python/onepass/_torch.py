"""PyTorch's tensors. What is plain goes to the C library, with its gradient in the same pass if one will be needed;
anything else is handed over to PyTorch."""

import warnings

import torch
import torch.autograd.forward_ad as forward_ad
from torch.nn import _reduction
from torch.overrides import _get_current_function_mode_stack
from torch.utils._device import DeviceContext

from . import _handover, _native
from ._contract import CODES, NAMES, SIZES_DIFFER, WEIGHT_DIFFERS

_native.learn_torch(torch)

Tensor = torch.Tensor
_torch_loss, _torch_gradient, _torch_scale = _native.torch_loss, _native.torch_gradient, _native.torch_scale
_is_grad_enabled = torch.is_grad_enabled
_function_modes, _dispatch_modes = torch._C._len_torch_function_stack, torch._C._len_torch_dispatch_stack
_transform, _tracing_state = torch._C._functorch.peek_interpreter_stack, torch._C._get_tracing_state
_is_any_autocast = getattr(torch._C, "_is_any_autocast_enabled", None) or torch._C.is_any_autocast_enabled
_is_compiling = getattr(torch.compiler, "is_compiling", None) or torch._dynamo.is_compiling

_TYPES = (Tensor, torch.nn.Parameter)
_FOR_INPUT, _FOR_TARGET = 1, 2


def loss(name, input, target, parameters, reduction, weight, size_average, reduce):
    """One of the public functions; called by it directly, so that warnings point at its caller. What most calls are
    comes first, with as few questions as it can be told by."""
    if size_average is None and reduce is None and weight is None and not _is_compiling():
        code = CODES.get(reduction)
        if code is not None:
            value = compute(name, input, target, parameters, code, None, False)
            if value is not None:
                return value
    return with_care(name, input, target, parameters, reduction, weight, size_average, reduce)


def with_care(name, input, target, parameters, reduction, weight, size_average, reduce):
    """The same with every check that PyTorch makes, in its order."""
    if not are_tensors(input, target, weight):
        check_kinds(input, target, weight)
        return _handover.answer(name, input, target, parameters, reduction, weight, size_average, reduce)
    sizes_differ = input.size() != target.size()
    if sizes_differ and not _is_compiling():
        warnings.warn(SIZES_DIFFER.format(target.size(), input.size()), stacklevel=4)
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    if weight is not None:
        check_weight(input, target, weight, reduction)
    code = CODES.get(reduction)
    if code is None:
        torch.broadcast_tensors(input, target)  # PyTorch complains of sizes first
        code = _reduction.get_enum(reduction) - 1  # raises, or warns of an old name of the mean
        reduction = "mean"
    if _is_compiling():
        return _operators.loss(name, input, target, parameters, reduction, weight)
    value = compute(name, input, target, parameters, code, weight, sizes_differ)
    return _handover.loss(name, input, target, parameters, reduction, weight) if value is None else value


def are_tensors(*operands):
    """Whether these are PyTorch's own tensors, and no subclass that would answer for itself."""
    return all(type(operand) in _TYPES or operand is None for operand in operands)


def check_kinds(*operands):
    for operand, called in zip(operands, ("input", "target", "weight")):
        if not hasattr(type(operand), "__torch_function__") and (operand is not None or called != "weight"):
            raise TypeError(f"{called} is {type(operand).__name__}; expected a tensor, as the other operand is one "
                            "(PyTorch's tensors and NumPy's arrays do not mix)")


def check_weight(input, target, weight, reduction):
    """In PyTorch's order: that the operands can be broadcast, the weight's size, the reduction."""
    torch.broadcast_tensors(input, target)
    if weight.size() != input.size():
        raise ValueError(WEIGHT_DIFFERS)
    if reduction not in CODES:
        raise ValueError(f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'.")


def all_numbers(parameters):
    """Whether the parameters are numbers that the library takes; PyTorch says what is wrong with others."""
    return all(type(p) in (float, int) and 0 <= p < float("inf") for p in parameters)


def is_plain_here():
    """Whether nobody is watching: no transform of torch.func, no mode, no tracer, no forward-mode derivative."""
    return not (_dispatch_modes() or _transform() is not None or forward_ad._current_level >= 0 or
                _tracing_state() is not None or (_function_modes() and not is_device_choice_alone()))


def is_device_choice_alone():
    """torch.set_default_device is a mode too, but says nothing about tensors that are there."""
    return all(type(mode) is DeviceContext for mode in _get_current_function_mode_stack())


def is_in_single(device_type):
    """Whether autocast asks for float32 on this kind of device."""
    if not _is_any_autocast():
        return False
    try:
        return torch.is_autocast_enabled(device_type)
    except TypeError:  # before PyTorch 2.4 there was a question for each kind
        return torch.is_autocast_cpu_enabled() if device_type == "cpu" else torch.is_autocast_enabled()


def compute(name, input, target, parameters, code, weight, broadcast):
    """The value, with its way back if one is needed; None if that is not for us."""
    if not (type(input) in _TYPES and type(target) in _TYPES and is_plain_here()):
        return None
    if parameters and not all_numbers(parameters):
        return None
    in_single = _is_any_autocast() and is_in_single(input.device.type)
    wanted = 0
    if _is_grad_enabled():
        wanted = _FOR_INPUT * input.requires_grad | _FOR_TARGET * target.requires_grad
        if weight is not None and weight.requires_grad:
            return None
    if not wanted:
        return _torch_loss(name, code, parameters, input, target, weight, in_single, 0, broadcast)
    how = how_to(code, input, target, weight, wanted)
    computed = _torch_loss(name, code, parameters, input, target, weight, in_single, 0 if how is LATER else wanted,
                           broadcast)
    if computed is None:
        return None
    return _apply((name, code, parameters, how, broadcast), computed if how is not LATER else (computed,), input, target,
                  weight)


# ---------------------------------------------------------------- autograd --

# What backward does with an upstream gradient that only the device knows: nothing where it is 1, ...
SCALE = "scale"  # ... else it multiplies the gradient, ...
ANEW = "anew"  # ... or computes it anew, since a rounded one cannot be scaled; ...
LATER = "later"  # ... or the gradient was not computed before.

_NONE, _SINGLES = CODES["none"], (torch.float32, torch.float32)


def how_to(code, input, target, weight, wanted):
    """An f16 gradient would underflow before GradScaler's factor; without a reduction each element has its own."""
    if code == _NONE:
        return LATER
    types = input.dtype, target.dtype
    if weight is None and types == _SINGLES:
        return SCALE
    gradients = [dtype for k, dtype in enumerate(types) if wanted >> k & 1]
    if torch.float16 in gradients:
        return LATER
    in_double = torch.float64 in types or (weight is not None and weight.dtype == torch.float64)
    return SCALE if all(dtype is (torch.float64 if in_double else torch.float32) for dtype in gradients) else ANEW


class Loss(torch.autograd.Function):
    """The value, computed before; its gradients, computed with it or to be computed.

    The gradients are not saved tensors of the graph: whoever runs backward first gets the only reference, so that
    PyTorch need not copy them.
    """

    @staticmethod
    def forward(ctx, question, computed, input, target, weight):
        ctx.question = question
        ctx.save_for_backward(input, target, weight)
        value, *ctx.kept = computed
        return value

    @staticmethod
    def backward(ctx, upstream):
        saved = ctx.saved_tensors  # once: checkpointing computes them; and it says so if one was changed in place
        if _is_grad_enabled():
            return None, None, *by_handover(ctx, saved, upstream, create_graph=True), None
        *_, how, broadcast = ctx.question
        kept = ctx.__dict__.pop("kept", None)  # in one step, should two threads run backward at once
        if kept and how is SCALE and _torch_scale(upstream, *kept):
            for_input, for_target = kept
        else:
            for_input, for_target = compute_gradients(ctx, saved, upstream, kept if how is ANEW else None)
        del kept
        if broadcast:
            for_input, for_target = summed(saved, for_input, for_target)
        return None, None, for_input, for_target, None


# Without what torch.autograd.Function.apply asks first, and compute has asked: a tenth of a small call's time.
_apply = super(torch.autograd.Function, Loss).apply


def compute_gradients(ctx, saved, upstream, kept):
    """At the common shape. With `kept`, computed for an upstream gradient of 1, only if it is another."""
    needed = [need or None for need in ctx.needs_input_grad[2:4]]
    computed = _torch_gradient(*ctx.question[:3], *saved, upstream, *(kept or needed)) if is_plain_here() else None
    return by_handover(ctx, saved, upstream, create_graph=False) if computed is None else computed[1:]


def by_handover(ctx, saved, upstream, create_graph):
    name, code, parameters, *_ = ctx.question
    return _handover.gradients(name, saved[:2], parameters, NAMES[code], saved[2], upstream,
                               ctx.needs_input_grad[2:4], create_graph)


def summed(saved, *gradients):
    """Each at its operand's own shape."""
    return [gradient if gradient is None or gradient.shape == operand.shape else gradient.sum_to_size(operand.shape)
            for gradient, operand in zip(gradients, saved)]


# ----------------------------------------------------------- value_and_grad --


def value_and_grad(name, input, target, parameters, reduction, weight):
    """Both from one pass; by PyTorch where the operands are not plain."""
    check_kinds(input, target, weight)
    if weight is not None:
        check_weight(input, target, weight, reduction)
    with torch.no_grad():
        computed = None
        if are_tensors(input, target, weight) and is_plain_here() and all_numbers(parameters):
            computed = _torch_loss(name, CODES[reduction], parameters, input, target, weight, False, _FOR_INPUT, True)
        if computed is None:
            return by_pytorch(name, input, target, parameters, reduction, weight)
        value, gradient, _ = computed
        return value, gradient if gradient.shape == input.shape else gradient.sum_to_size(input.shape)


def by_pytorch(name, input, target, parameters, reduction, weight):
    with torch.enable_grad():
        leaf = input.detach().requires_grad_()
        value = _handover.loss(name, leaf, target.detach(), parameters, reduction, weight)
        gradient, = torch.autograd.grad(value, (leaf,))
    return value.detach(), gradient


from . import _operators  # noqa: E402: last, since it needs what is above
