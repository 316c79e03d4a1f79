"""Operators for torch.compile of losses over rows: onepass::rows and onepass::rows_gradient.

As in _operators.py: the compiled forward returns the loss, and the rows' state where that spares a read of the logits;
the compiled backward computes the gradient. What is not asked for comes back without elements.
"""

import torch

from . import _native, _operators, _rows_fallback
from ._contract import NONE
from ._row_request import (DIVIDED_BY, FLOATS, LABELS, LSE, MASKS, NUMBERS, PREDICTED, STATE, STATE_SIZE, Request,
                           Tensors, classes_of, has_labels, keeps_state, result_type, rows_shape)
from ._torch_checks import are_numbers
from ._torch_state import is_in_single

HAS_AUTOGRAD = _operators._HAS_AUTOGRAD

_TENSORS = "Tensor input, Tensor target, Tensor? weight, Tensor? row_weight, Tensor? mask, Tensor? divisor"
_QUESTION = "str name, int reduction, float[] parameters, int axis, float number"
_library = torch.library.Library("onepass", "FRAGMENT")
_library.define(f"rows({_TENSORS}, {_QUESTION}, int dtype, int outputs) -> (Tensor, Tensor, Tensor, Tensor, Tensor)")
_library.define(f"rows_gradient({_TENSORS}, Tensor upstream, Tensor state, {_QUESTION}, int operand) -> Tensor")


def loss(request, tensors, outputs):
    """What a traced function calls: an operator of ours where the tensors are for us."""
    input = tensors.input
    in_single = HAS_AUTOGRAD and is_in_single(input.device.type)
    if not (HAS_AUTOGRAD and not torch._C._are_functorch_transforms_active() and are_ours(request, tensors)):
        return _rows_fallback.loss(request, tensors), *_rows_fallback.extras(request, tensors, outputs)
    if keeps_state(request, classes_of(input, request.axis)):
        outputs |= STATE
    dtype = result_type(request, tensors, in_single)
    number = 0.0 if request.divisor is None else float(request.divisor)
    parameters = [float(parameter) for parameter in request.parameters]
    value, _, lse, predicted, divided_by = torch.ops.onepass.rows(
        *tensors, request.name, request.code, parameters, request.axis, number, NUMBERS[dtype], outputs)
    return value, lse.detach(), predicted, divided_by.detach()


def are_ours(request, tensors):
    input, _, weight, row_weight, _, divisor = tensors
    if input.device.type not in ("cpu", "cuda") or not are_numbers(request.parameters) or \
            any(x is not None and x.requires_grad for x in (weight, row_weight, divisor)):
        return False
    return can_be_borrowed(tensors, (FLOATS, LABELS if has_labels(request) else FLOATS, FLOATS))


def can_be_borrowed(tensors, operand_types):
    """Whether they have these types, or those of weight, mask and divisor, and lie in one place."""
    return all(tensor is None or (tensor.dtype in types and tensor.device == tensors[0].device and
                                  tensor.layout == torch.strided)
               for tensor, types in zip(tensors, (*operand_types, FLOATS, MASKS, FLOATS)))


# -------------------------------------------------------------- the operators --


def request_of(name, reduction, parameters, axis, number, dtype=None):
    return Request(name, reduction, tuple(parameters), axis, dtype, number or None)


def empty(tensors):
    return tensors.input.new_empty(0)


def compute_rows(*arguments):
    *tensors, name, reduction, parameters, axis, number, dtype, outputs = arguments
    tensors = Tensors(*tensors)
    request = request_of(name, reduction, parameters, axis, number, FLOATS[dtype - 1])
    by = request.divisor if tensors.divisor is None else tensors.divisor
    computed = _native.torch_rows(*request[:4], *tensors[:5], by, dtype, outputs)
    if computed is None:  # a view with a negative bit, say
        found = _rows_fallback.loss(request, tensors), None, *_rows_fallback.extras(request, tensors, outputs)
        found = [x.clone() if isinstance(x, torch.Tensor) else x for x in found]
    elif outputs:
        value, _, _, _, *others = computed
        found = value, *others
    else:
        found = computed, None, None, None, None
    return tuple(empty(tensors) if x is None else x for x in found)


def compute_gradient(*arguments):
    *tensors, upstream, state, name, reduction, parameters, axis, number, operand = arguments
    request = request_of(name, reduction, parameters, axis, number)
    return gradient_of(_rows_fallback, request, tensors, upstream, state if state.numel() > 0 else None, operand)


def gradient_of(fallback, request, tensors, upstream, state, operand):
    *tensors, divisor = tensors
    if tensors[operand].numel() == 0:  # the fallback's autograd does not work below an operator's
        return torch.empty_like(tensors[operand])
    outputs = tuple(True if k == operand else None for k in range(3))
    computed = _native.torch_rows_gradient(*request[:4], *tensors, request.divisor if divisor is None else divisor,
                                           upstream, state, outputs)
    if computed is None:
        computed = fallback.gradients(request._replace(dtype=upstream.dtype), (*tensors, divisor), upstream,
                                      [bool(output) for output in outputs], create_graph=False)
    return computed[operand]


for _key in ("CPU", "CUDA"):
    _library.impl("rows", compute_rows, _key)
    _library.impl("rows_gradient", compute_gradient, _key)


# ------------------------------------------------------------------ the fakes --


def fake_rows(*arguments):
    *tensors, name, reduction, parameters, axis, number, dtype, outputs = arguments
    tensors = Tensors(*tensors)
    input, rows = tensors.input, rows_shape(tensors.input, axis)
    wide = torch.float64 if any(x is not None and x.dtype == torch.float64 for x in tensors[:4]) else torch.float32
    value = input.new_empty(rows if reduction == NONE else (), dtype=FLOATS[dtype - 1])
    count = 1
    for extent in rows:
        count = count * extent
    return (value,
            input.new_empty((count, STATE_SIZE), dtype=torch.float64) if outputs & STATE else empty(tensors),
            input.new_empty(rows, dtype=wide) if outputs & LSE else empty(tensors),
            input.new_empty(rows, dtype=torch.int64) if outputs & PREDICTED else empty(tensors),
            input.new_empty((), dtype=torch.float64) if outputs & DIVIDED_BY else empty(tensors))


def fake_gradient(*arguments):
    return torch.empty_like(arguments[arguments[-1]])


_operators._register_fake("onepass::rows")(fake_rows)
_operators._register_fake("onepass::rows_gradient")(fake_gradient)


# ------------------------------------------------------------------- autograd --


def remember(ctx, inputs, output):
    tensors, ctx.question = inputs[:6], inputs[6:11]
    ctx.save_for_backward(*tensors, output[1])


def backward(ctx, upstream, *others):
    *tensors, state = ctx.saved_tensors
    gradients = [torch.ops.onepass.rows_gradient(*tensors, upstream, state, *ctx.question, k)
                 if ctx.needs_input_grad[k] else None for k in range(2)]
    return (*gradients, *(None,) * 11)


if HAS_AUTOGRAD:
    torch.library.register_autograd("onepass::rows", backward, setup_context=remember)
    torch.library.register_autograd("onepass::rows_gradient", _operators.refuse)
