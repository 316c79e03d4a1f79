"""Operators for torch.compile of a linear layer's losses: onepass::linear_rows and onepass::linear_rows_gradient.

As in eager: of a mean or a sum the compiled forward computes the gradients with the value, and the compiled backward
multiplies them; else backward computes them. What is not asked for comes back without elements.
"""

import torch

from . import _linear_chunks, _operators
from ._contract import NONE
from ._linear_autograd import answer, autocast_type, computes_now, multiplied
from ._linear_chunks import Operands, Question, with_dimensions
from ._row_request import FLOATS, NUMBERS, Request

HAS_AUTOGRAD = _operators._HAS_AUTOGRAD

_TENSORS = "Tensor input, Tensor weight, Tensor? bias, Tensor target, Tensor? class_weight, Tensor? divisor"
_QUESTION = "str name, int reduction, float[] parameters, int dtype, float number, int chunk, int ignored, str kind, " \
            "int multiplies_in"
_library = torch.library.Library("onepass", "FRAGMENT")
_library.define(f"linear_rows({_TENSORS}, {_QUESTION}, bool[] needed) -> (Tensor, Tensor, Tensor, Tensor)")
_library.define(f"linear_rows_gradient({_TENSORS}, Tensor upstream, {_QUESTION}, bool[] needed) "
                "-> (Tensor, Tensor, Tensor)")


def loss(question, operands, shape):
    """What a traced function calls."""
    request, dtype = question.request, autocast_type(operands.input.device.type)
    multiplies_in = 0 if dtype is None else NUMBERS[dtype]
    has_gradient = torch.is_grad_enabled()
    needed = [has_gradient and x is not None and x.requires_grad for x in operands[:3]]
    value, *_ = torch.ops.onepass.linear_rows(
        *operands, request.name, request.code, [float(x) for x in request.parameters], NUMBERS[request.dtype],
        0.0 if request.divisor is None else float(request.divisor), question.chunk or 0,
        -1 if question.ignored is None else question.ignored, question.kind, multiplies_in, needed)
    return value.reshape(shape) if request.code == NONE else value


# ------------------------------------------------------------------- the operators --


def question_of(name, reduction, parameters, dtype, number, chunk, ignored, kind, multiplies_in):
    request = Request(name, reduction, tuple(parameters), 0, FLOATS[dtype - 1], number or None)
    question = Question(request, chunk or None, None if ignored < 0 else ignored, kind)
    return question, FLOATS[multiplies_in - 1] if multiplies_in else None


def present(input, gradients):
    return tuple([input.new_empty(0) if gradient is None else gradient for gradient in gradients])


def compute(*arguments):
    operands, needed = Operands(*arguments[:6]), arguments[-1]
    question, dtype = question_of(*arguments[6:-1])
    now = computes_now(question, operands.input, dtype)
    value, _, computed = answer(question, multiplied(operands, dtype), operands.target.shape[:1],
                                needed if now else (False,) * 3)
    return value, *present(operands.input, computed.gradients)


def compute_gradient(*arguments):
    operands, upstream, needed = Operands(*arguments[:6]), arguments[6], arguments[-1]
    question, dtype = question_of(*arguments[7:-1])
    own = multiplied(operands, dtype)
    divisor = _linear_chunks.count(question, own)
    found = _linear_chunks.compute(question, own, divisor, upstream, needed=needed, with_value=False).gradients
    return present(operands.input, found)


for _key in ("CPU", "CUDA"):
    _library.impl("linear_rows", compute, _key)
    _library.impl("linear_rows_gradient", compute_gradient, _key)


# ------------------------------------------------------------------------ the fakes --


def fake_gradients(operands, dtype, needed):
    input, weight, bias = multiplied(operands, dtype)[:3]
    wide = torch.promote_types(weight.dtype, torch.float32)
    made = (input.new_empty(input.shape), weight.new_empty(weight.shape, dtype=wide),
            weight.new_empty(weight.shape[:1], dtype=wide))
    return [one if need else operands.input.new_empty(0) for one, need in zip(made, needed)]


def fake(*arguments):
    operands, needed = Operands(*arguments[:6]), arguments[-1]
    question, dtype = question_of(*arguments[6:-1])
    rows = operands.input.shape[:1] if question.request.code == NONE else ()
    needed = needed if computes_now(question, operands.input, dtype) else (False,) * 3
    return (operands.input.new_empty(rows, dtype=question.request.dtype), *fake_gradients(operands, dtype, needed))


def fake_gradient(*arguments):
    _, dtype = question_of(*arguments[7:-1])
    return tuple(fake_gradients(Operands(*arguments[:6]), dtype, arguments[-1]))


_operators._register_fake("onepass::linear_rows")(fake)
_operators._register_fake("onepass::linear_rows_gradient")(fake_gradient)


# ------------------------------------------------------------------------- autograd --


def remember(ctx, inputs, output):
    ctx.question, ctx.needed = inputs[6:-1], inputs[-1]
    ctx.save_for_backward(*inputs[:6], *output[1:])
    question, dtype = question_of(*ctx.question)
    ctx.is_computed = computes_now(question, inputs[0], dtype)
    ctx.mark_non_differentiable(*output[1:])


def backward(ctx, upstream, *others):
    *tensors, for_input, for_weight, for_bias = ctx.saved_tensors
    found = for_input, for_weight, for_bias
    if not ctx.is_computed:
        found = torch.ops.onepass.linear_rows_gradient(*tensors, upstream, *ctx.question, ctx.needed)
        found = [gradient.to(x.dtype) if need else None
                 for gradient, x, need in zip(found, tensors[:3], ctx.needed)]
    else:
        of_rows = _linear_chunks.upstream_of_rows(question_of(*ctx.question)[0], tensors[3], upstream)
        found = [(gradient * with_dimensions(own, gradient.dtype, gradient.dim())).to(x.dtype) if need else None
                 for gradient, x, need, own in zip(found, tensors[:3], ctx.needed, (of_rows, upstream, upstream))]
    return *found, *(None,) * 13


if HAS_AUTOGRAD:
    torch.library.register_autograd("onepass::linear_rows", backward, setup_context=remember)
    torch.library.register_autograd("onepass::linear_rows_gradient", _operators.refuse)
