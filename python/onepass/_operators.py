"""Operators for torch.compile, which cannot look into the C extension: onepass::loss and onepass::gradient.

The compiled forward returns the loss and the compiled backward computes the gradient. Each has a fake, which says what
comes out without computing it; nothing that comes out shares memory with what went in.
"""

import torch

from . import _fallback, _native
from ._catalog import check_parameters
from ._contract import NAMES, NONE, common_shape
from ._result import IN_SINGLE, LAYOUT_SHIFT, result_type
from ._torch_state import is_in_single

_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_BYTES = (torch.bool, torch.uint8)
_HAS_AUTOGRAD = hasattr(torch.library, "register_autograd")

_TENSORS = "Tensor input, Tensor target, Tensor? third, Tensor? weight, Tensor? mask"
_library = torch.library.Library("onepass", "DEF")
_library.define(f"loss({_TENSORS}, str name, int reduction, float[] parameters, int flags) -> Tensor")
_library.define(f"gradient({_TENSORS}, Tensor upstream, str name, int reduction, float[] parameters, int operand) "
                "-> Tensor")


def loss(name, tensors, parameters, reduction, flags):
    """What a traced function calls: an operator of ours where the operands are for us."""
    input, *_, weight, mask = tensors
    in_single = _HAS_AUTOGRAD and is_in_single(input.device.type)
    # The compiler of versions without autograd for operators cannot trace the question after transforms either.
    if _HAS_AUTOGRAD and not torch._C._are_functorch_transforms_active() and are_ours(tensors) and \
            not (weight is not None and weight.requires_grad) and not (in_single and name == "bce"):
        numbers = [float(parameter) for parameter in parameters]
        return torch.ops.onepass.loss(*tensors, name, reduction, numbers, flags | (IN_SINGLE if in_single else 0))
    return _fallback.typed_loss(name, tensors, parameters, reduction, flags)


def are_ours(tensors):
    *floats, mask = tensors
    first = floats[0]
    if first.device.type not in ("cpu", "cuda"):
        return False
    for tensor, types in ((mask, _BYTES), *((tensor, _FLOATS) for tensor in floats)):
        if tensor is not None and (tensor.dtype not in types or tensor.device != first.device or
                                   tensor.layout != torch.strided):
            return False
    return True


# -------------------------------------------------------------- the operators --


def compute_loss(input, target, third, weight, mask, name, reduction, parameters, flags):
    check_parameters(name, parameters)
    value = _native.torch_loss(name, reduction, tuple(parameters), input, target, flags, 0, True, third, weight, mask)
    if value is None:  # a view with a negative bit, say
        value = _fallback.loss(name, input, target, third, parameters, NAMES[reduction], weight, mask)
        value = value.to(result_type((input, target, third, weight, mask), flags)).clone()
    return value


def compute_gradient(input, target, third, weight, mask, upstream, name, reduction, parameters, operand):
    outputs = tuple(True if k == operand else None for k in range(3))
    computed = _native.torch_gradient(name, reduction, tuple(parameters), input, target, upstream, outputs, third,
                                      weight, mask)
    if computed is None:
        computed = _fallback.gradients(name, (input, target, third), parameters, NAMES[reduction], weight, mask,
                                       upstream, [bool(output) for output in outputs], create_graph=False)
    gradient, shape = computed[operand], (input, target, third)[operand].shape
    return gradient if gradient.shape == shape else gradient.sum_to_size(shape)


for _key in ("CPU", "CUDA"):
    _library.impl("loss", compute_loss, _key)
    _library.impl("gradient", compute_gradient, _key)


# ------------------------------------------------------------------ the fakes --


def shape_of(*operands):
    return common_shape(*[operand.shape for operand in operands if operand is not None])


def fake_loss(input, target, third, weight, mask, name, reduction, parameters, flags):
    dtype = result_type((input, target, third, weight, mask), flags)
    if reduction != NONE:
        return input.new_empty((), dtype=dtype)
    shape, like = shape_of(input, target, third), (input, target, third)[flags >> LAYOUT_SHIFT]
    return torch.empty_like(like, dtype=dtype) if like.shape == shape else input.new_empty(shape, dtype=dtype)


def fake_gradient(input, target, third, weight, mask, upstream, name, reduction, parameters, operand):
    own = (input, target, third)[operand]
    return torch.empty_like(own) if own.shape == shape_of(input, target, third) else own.new_empty(own.shape)


_register_fake = getattr(torch.library, "register_fake", None) or torch.library.impl_abstract
_register_fake("onepass::loss")(fake_loss)
_register_fake("onepass::gradient")(fake_gradient)


# ------------------------------------------------------------------- autograd --


def remember(ctx, inputs, output):
    *tensors, ctx.name, ctx.reduction, ctx.parameters, _ = inputs
    ctx.save_for_backward(*tensors)


def backward(ctx, upstream):
    gradients = [torch.ops.onepass.gradient(*ctx.saved_tensors, upstream, ctx.name, ctx.reduction, ctx.parameters, k)
                 if ctx.needs_input_grad[k] else None for k in range(3)]
    return (*gradients, None, None, None, None, None, None)


def refuse(ctx, upstream):
    raise NotImplementedError("the gradient of a compiled onepass loss cannot be differentiated again; compute the loss "
                              "outside of torch.compile for that")


if _HAS_AUTOGRAD:
    torch.library.register_autograd("onepass::loss", backward, setup_context=remember)
    torch.library.register_autograd("onepass::gradient", refuse)
