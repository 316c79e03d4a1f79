"""Operators for torch.compile of vector losses: onepass::vectors and onepass::vectors_gradient.

As in _operators.py: the compiled forward returns the loss, the compiled backward computes the gradient.
"""

import torch

from . import _native, _operators, _vectors_fallback
from ._contract import NONE
from ._row_request import FLOATS, NUMBERS, casts
from ._rows_operators import can_be_borrowed, fake_gradient, gradient_of, request_of
from ._torch_checks import are_numbers
from ._vector_request import Tensors, class_weight_of, operand_types, result_type, rows_shape

_HAS_AUTOGRAD = _operators._HAS_AUTOGRAD

_TENSORS = "Tensor first, Tensor second, Tensor? third, Tensor? weight, Tensor? mask, Tensor? divisor"
_QUESTION = "str name, int reduction, float[] parameters, int axis, float number"
_library = torch.library.Library("onepass", "FRAGMENT")
_library.define(f"vectors({_TENSORS}, {_QUESTION}, int dtype) -> Tensor")
_library.define(f"vectors_gradient({_TENSORS}, Tensor upstream, {_QUESTION}, int operand) -> Tensor")


def loss(request, tensors):
    """What a traced function calls: an operator of ours where the tensors are for us."""
    if not (_HAS_AUTOGRAD and not torch._C._are_functorch_transforms_active() and are_ours(request, tensors)):
        return _vectors_fallback.loss(request, tensors)
    dtype = result_type(request, tensors, casts(request.name, tensors.first.device.type))
    number = 0.0 if request.divisor is None else float(request.divisor)
    parameters = [float(parameter) for parameter in request.parameters]
    return torch.ops.onepass.vectors(*tensors, request.name, request.code, parameters, request.axis, number,
                                     NUMBERS[dtype])


def are_ours(request, tensors):
    first, _, _, weight, _, divisor = tensors
    if first.device.type not in ("cpu", "cuda") or \
            not are_numbers(request.parameters) or \
            any(one is not None and one.requires_grad for one in (weight, class_weight_of(request, tensors), divisor)):
        return False
    return can_be_borrowed(tensors, operand_types(request))


# -------------------------------------------------------------- the operators --


def compute_vectors(*arguments):
    *tensors, name, reduction, parameters, axis, number, dtype = arguments
    tensors, request = Tensors(*tensors), request_of(name, reduction, parameters, axis, number, FLOATS[dtype - 1])
    by = request.divisor if tensors.divisor is None else tensors.divisor
    value = _native.torch_rows(*request[:4], *tensors[:5], by, dtype, 0)
    return _vectors_fallback.loss(request, tensors).clone() if value is None else value  # a negative view, say


def compute_gradient(*arguments):
    *tensors, upstream, name, reduction, parameters, axis, number, operand = arguments
    request = request_of(name, reduction, parameters, axis, number)
    return gradient_of(_vectors_fallback, request, tensors, upstream, None, operand)


for _key in ("CPU", "CUDA"):
    _library.impl("vectors", compute_vectors, _key)
    _library.impl("vectors_gradient", compute_gradient, _key)


# ------------------------------------------------------------------ the fakes --


def fake_vectors(*arguments):
    *tensors, name, reduction, parameters, axis, number, dtype = arguments
    return tensors[0].new_empty(rows_shape(tensors[0], axis) if reduction == NONE else (), dtype=FLOATS[dtype - 1])


_operators._register_fake("onepass::vectors")(fake_vectors)
_operators._register_fake("onepass::vectors_gradient")(fake_gradient)


# ------------------------------------------------------------------- autograd --


def remember(ctx, inputs, output):
    ctx.question = inputs[6:11]
    ctx.save_for_backward(*inputs[:6])


def backward(ctx, upstream):
    gradients = [torch.ops.onepass.vectors_gradient(*ctx.saved_tensors, upstream, *ctx.question, k)
                 if ctx.needs_input_grad[k] else None for k in range(3)]
    return (*gradients, *(None,) * 9)


if _HAS_AUTOGRAD:
    torch.library.register_autograd("onepass::vectors", backward, setup_context=remember)
    torch.library.register_autograd("onepass::vectors_gradient", _operators.refuse)
