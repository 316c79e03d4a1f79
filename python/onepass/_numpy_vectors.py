"""Vector losses of NumPy's arrays: any strides, float16, float32 and float64."""

import math

import numpy

from . import _contract, _native
from ._catalog import VECTOR_CATALOG, WITH_LISTS, WITH_NUMBERS, as_number, check_range, plain_number, vector_count
from ._contract import ALL_CODES, checked_flag
from ._numpy import FLOATS, LABELS, aligned, check_floats, check_mask, check_reach, check_type, summed_to
from ._numpy_rows import divisor_number, reduction_of

_SIGNS = (*FLOATS, *LABELS)


# ----------------------------------------------------------------- the functions --


def cosine_similarity(x1, x2, dim, eps, weight, mask):
    x1, x2 = numpy.broadcast_arrays(*checked_floats(x1=x1, x2=x2))
    dim = checked_dimension(x1, dim)
    arrays = numpy.moveaxis(x1, dim, -1), numpy.moveaxis(x2, dim, -1), None, weight, mask
    return loss("cosine_similarity", arrays, parameters_of("cosine_similarity", (eps,)), -1, "none", None)


def pairwise_distance(x1, x2, p, eps, keepdim, weight, mask):
    x1, x2 = checked_floats(x1=x1, x2=x2)
    parameters = parameters_of("pairwise_distance", (checked_norm(p), eps))
    value = loss("pairwise_distance", (x1, x2, None, weight, mask), parameters, -1, "none", None)
    return numpy.expand_dims(value, -1) if keepdim else value


def cosine_embedding_loss(input1, input2, target, margin, size_average, reduce, reduction, weight, mask, divisor):
    checked_floats(input1=input1, input2=input2)
    check_target(target)
    if target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if not input1.ndim == input2.ndim == target.ndim + 1:
        raise RuntimeError(f"{target.ndim}D target tensor expects {target.ndim + 1}D input tensors, but found inputs "
                           f"with sizes {list(input1.shape)} and {list(input2.shape)}.")
    arrays = input1, input2, target, weight, mask
    return loss("cosine_embedding", arrays, parameters_of("cosine_embedding", (margin,)), -1,
                reduction_of(size_average, reduce, reduction), divisor)


def triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, size_average, reduce, reduction, weight, mask,
                        divisor):
    checked_floats(anchor=anchor, positive=positive, negative=negative)
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError("The anchor, positive, and negative tensors are expected to have the same number of "
                           f"dimensions, but got: anchor {anchor.ndim}D, positive {positive.ndim}D, and negative "
                           f"{negative.ndim}D inputs")
    reduction = reduction_of(size_average, reduce, reduction)
    swap = checked_flag("swap", swap)
    parameters = parameters_of("triplet_margin", (margin, checked_norm(p), eps, 1.0 if swap else 0.0))
    if parameters[0] <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return loss("triplet_margin", (anchor, positive, negative, weight, mask), parameters, -1, reduction, divisor)


def triplet_margin_with_distance_loss(anchor, positive, negative, distance_function, margin, swap, reduction):
    raise TypeError("triplet_margin_with_distance_loss is of PyTorch's tensors; triplet_margin_loss takes arrays")


def loss(name, arrays, parameters, axis, reduction, divisor):
    """Of (first, second, third, weight, mask); a row is everything from the axis on."""
    arrays, rows = checked(name, arrays, axis)
    value = numpy.empty(rows if reduction == "none" else (), result_type(name, arrays))
    run(name, arrays, parameters, axis, reduction, divisor, value, None)
    return value if reduction == "none" and rows else value[()]


def value_and_grad(name, operands, parameters, axis, reduction, weight, mask):
    """The gradient is that of the first operand."""
    vectors = operands[:vector_count(name)]
    checked_floats(**dict(zip(VECTOR_CATALOG[name]["operands"], vectors)))
    arrays, _ = checked(name, (*operands, None)[:3] + (weight, mask), axis)
    value, gradient = numpy.empty((), result_type(name, arrays)), numpy.empty(arrays[0].shape, operands[0].dtype)
    run(name, arrays, parameters_of(name, parameters), axis, reduction, None, value, gradient)
    return value[()], gradient if gradient.shape == operands[0].shape else summed_to(gradient, operands[0].shape)


def run(name, arrays, parameters, axis, reduction, divisor, value, gradient):
    code = ALL_CODES[reduction]
    _native.numpy_run(name, code, parameters, axis, *arrays, value, gradient, None, None, divisor_number(divisor, code))


# -------------------------------------------------------------------- the checks --


def checked_floats(**named):
    for called, operand in named.items():
        check_floats(operand, called)
    return named.values()


def check_target(target):
    check_type(target, "target", _SIGNS, "floats, int64, int32 or uint8")


def check_class_weight(weight, classes):
    check_floats(weight, "weight")
    if weight.shape != (classes,):
        raise ValueError(f"weight has shape {weight.shape}; expected ({classes},), one for each class")


def checked_dimension(array, dim):
    dim = _contract.checked_dim(dim)
    _contract.check_axis(array.ndim, dim + 1 if dim >= 0 else dim)
    return dim


def checked_norm(p):
    p = plain_number(p)
    if p not in (1, 2):
        raise ValueError(f"p is {p!r}; expected 1 or 2 for arrays")
    return p


def parameters_of(name, values, function=None):
    """In the catalogue's order, checked. `function` is who was called, if not the loss's own."""
    found = []
    for known, value in zip(VECTOR_CATALOG[name]["parameters"], values):
        value = as_number(name, known, value, function)
        check_range(name, known, value, function)
        found.append(value)
    return tuple(found)


def checked(name, arrays, axis):
    """(first, second, third, weight, mask) as the library wants them, the vectors of one shape; and the rows' shape."""
    *operands, weight, mask = arrays
    count = vector_count(name)
    shape = _contract.common_shape(*(operand.shape for operand in operands[:count]))
    if shape is None or shape == () or (count == 3 or name in WITH_NUMBERS) and \
            len({operand.shape[-1] for operand in operands[:count]}) > 1:
        shapes = ", ".join(str(operand.shape) for operand in operands[:count])
        raise ValueError(f"operands of shapes {shapes}; expected vectors that broadcast together")
    _contract.check_axis(len(shape), axis)
    vectors = [numpy.broadcast_to(operand, shape) for operand in operands[:count]]
    rows = shape[:axis - 1] if axis > 0 else shape[:axis]
    if name in WITH_LISTS and operands[count].shape != shape:
        raise ValueError(f"target of shape {operands[count].shape}; expected {shape}, that of input")
    if name in WITH_NUMBERS - WITH_LISTS and operands[count].shape != rows:
        raise ValueError(f"target of shape {operands[count].shape}; expected {rows}, a number for each row")
    if name == "multi_margin" and operands[2] is not None:
        check_class_weight(operands[2], math.prod(shape[len(rows):]))
    if weight is not None:
        check_floats(weight, "weight")
        check_reach("weight", weight, rows)
    if mask is not None:
        check_mask(mask, rows)
    return [aligned(array) for array in (*vectors, *operands[count:], weight, mask)], rows


def result_type(name, arrays):
    *_, weight, _ = arrays
    deciding = arrays[:vector_count(name)]
    if weight is not None and weight.ndim > 0:
        deciding.append(weight)
    return numpy.result_type(*(array.dtype for array in deciding))
