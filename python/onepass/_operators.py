"""Operators for torch.compile, which cannot look into the C extension: onepass::loss and onepass::gradient.

The compiled forward returns the loss and the compiled backward computes the gradient. Each has a fake, which says what
comes out without computing it; nothing that comes out shares memory with what went in.
"""

import torch

from . import _handover, _native, _torch
from ._contract import CODES, NAMES

_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_HAS_AUTOGRAD = hasattr(torch.library, "register_autograd")

_library = torch.library.Library("onepass", "DEF")
_library.define("loss(Tensor input, Tensor target, Tensor? weight, str name, int reduction, float[] parameters, "
                "bool in_single) -> Tensor")
_library.define("gradient(Tensor input, Tensor target, Tensor? weight, Tensor upstream, str name, int reduction, "
                "float[] parameters, int operand) -> Tensor")


def loss(name, input, target, parameters, reduction, weight):
    """What a traced function calls: an operator of ours where the operands are for us."""
    if not _HAS_AUTOGRAD:  # nor can the compiler of those versions trace the question after transforms
        return _handover.loss(name, input, target, parameters, reduction, weight)
    operands = (input, target) if weight is None else (input, target, weight)
    transformed = torch._C._are_functorch_transforms_active()
    if not transformed and are_ours(operands) and not (weight is not None and weight.requires_grad):
        in_single = _torch.is_in_single(input.device.type)
        return torch.ops.onepass.loss(input, target, weight, name, CODES[reduction], [float(p) for p in parameters],
                                      in_single)
    return _handover.loss(name, input, target, parameters, reduction, weight)


def are_ours(operands):
    first = operands[0]
    if first.device.type not in ("cpu", "cuda"):
        return False
    for operand in operands:
        if operand.dtype not in _FLOATS or operand.device != first.device or operand.layout != torch.strided:
            return False
    return True


# -------------------------------------------------------------- the operators --


def compute_loss(input, target, weight, name, reduction, parameters, in_single):
    value = _native.torch_loss(name, reduction, tuple(parameters), input, target, weight, in_single, 0, True)
    if value is None:  # a view with a negative bit, say
        value = _handover.loss(name, input, target, parameters, NAMES[reduction], weight)
        value = value.to(value_type(input, target, weight, in_single)).clone()
    return value


def compute_gradient(input, target, weight, upstream, name, reduction, parameters, operand):
    wanted = [True if k == operand else None for k in range(2)]
    computed = _native.torch_gradient(name, reduction, tuple(parameters), input, target, weight, upstream, *wanted)
    if computed is None:
        computed = [None] + _handover.gradients(name, (input, target), parameters, NAMES[reduction], weight,
                                                upstream, [bool(want) for want in wanted], create_graph=False)
    gradient, shape = computed[1 + operand], (input, target)[operand].shape
    return gradient if gradient.shape == shape else gradient.sum_to_size(shape)


for _key in ("CPU", "CUDA"):
    _library.impl("loss", compute_loss, _key)
    _library.impl("gradient", compute_gradient, _key)


# ------------------------------------------------------------------ the fakes --


def value_type(input, target, weight, in_single):
    dtype = torch.promote_types(input.dtype, target.dtype)
    if weight is not None:
        dtype = torch.promote_types(dtype, weight.dtype)
    return torch.float32 if in_single and dtype in (torch.float16, torch.bfloat16) else dtype


def fake_loss(input, target, weight, name, reduction, parameters, in_single):
    dtype = value_type(input, target, weight, in_single)
    if reduction != CODES["none"]:
        return input.new_empty((), dtype=dtype)
    shape = torch.broadcast_shapes(input.shape, target.shape)
    return torch.empty_like(input, dtype=dtype) if input.shape == shape else input.new_empty(shape, dtype=dtype)


def fake_gradient(input, target, weight, upstream, name, reduction, parameters, operand):
    own = (input, target)[operand]
    if own.shape == torch.broadcast_shapes(input.shape, target.shape):
        return torch.empty_like(own)
    return own.new_empty(own.shape)


_register_fake = getattr(torch.library, "register_fake", None) or torch.library.impl_abstract
_register_fake("onepass::loss")(fake_loss)
_register_fake("onepass::gradient")(fake_gradient)


# ------------------------------------------------------------------- autograd --


def remember(ctx, inputs, output):
    input, target, weight, ctx.name, ctx.reduction, ctx.parameters, _ = inputs
    ctx.save_for_backward(input, target, weight)


def backward(ctx, upstream):
    input, target, weight = ctx.saved_tensors
    gradients = [torch.ops.onepass.gradient(input, target, weight, upstream, ctx.name, ctx.reduction, ctx.parameters, k)
                 if ctx.needs_input_grad[k] else None for k in range(2)]
    return (*gradients, None, None, None, None, None)


def refuse(ctx, upstream):
    raise NotImplementedError("the gradient of a compiled onepass loss cannot be differentiated again; compute the loss "
                              "outside of torch.compile for that")


if _HAS_AUTOGRAD:
    torch.library.register_autograd("onepass::loss", backward, setup_context=remember)
    torch.library.register_autograd("onepass::gradient", refuse)
