"""NumPy's arrays: any strides, float16, float32 and float64."""

import warnings

import numpy

from . import _native
from ._contract import CODES, SIZES_DIFFER, WEIGHT_DIFFERS


def loss(name, input, target, parameters, reduction, weight, size_average, reduce):
    """One of the public functions; called by it directly, so that warnings point at its caller."""
    if size_average is not None or reduce is not None:
        reduction = "none" if reduce is False else "sum" if size_average is False else "mean"
        warnings.warn(f"size_average and reduce args will be deprecated, please use reduction={reduction!r} instead.",
                      stacklevel=3)
    if reduction == "elementwise_mean":
        warnings.warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=3)
        reduction = "mean"
    if input.shape != target.shape:
        warnings.warn(SIZES_DIFFER.format(target.shape, input.shape), stacklevel=3)
    shape = check(input, target, weight, reduction)
    input, target, weight = map(aligned, (input, target, weight))
    dtype = result_type(input, target, weight)
    if reduction == "mean" and weight is not None and weight.shape != shape:
        return over_own_weights(name, input, target, parameters, weight).astype(dtype)
    value = numpy.empty(shape if reduction == "none" else (), dtype)
    _native.numpy_run(name, CODES[reduction], parameters, input, target, weight, value, None)
    return value if reduction == "none" else value[()]


def over_own_weights(name, input, target, parameters, weight):
    """Where input was broadcast, each of its weights counts once in the divisor, as in PyTorch."""
    total = numpy.empty((), numpy.float64)
    _native.numpy_run(name, CODES["sum"], parameters, input, target, weight, total, None)
    with numpy.errstate(divide="ignore", invalid="ignore"):
        return total[()] / weight.sum(dtype=numpy.float64)


def value_and_grad(name, input, target, parameters, reduction, weight):
    shape = check(input, target, weight, reduction)
    input, target, weight = map(aligned, (input, target, weight))
    if reduction == "mean" and weight is not None and weight.shape != shape:
        raise ValueError(f"input of shape {input.shape} was broadcast to {shape} beside a weight; expand both first")
    value = numpy.empty((), result_type(input, target, weight))
    gradient = numpy.empty(shape, input.dtype)
    _native.numpy_run(name, CODES[reduction], parameters, input, target, weight, value, gradient)
    if shape != input.shape:
        gradient = summed_to(gradient, input.shape)
    return value[()], gradient


def check(input, target, weight, reduction):
    """The common shape, or an error that names what is wrong."""
    if reduction not in CODES:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    for operand, called in ((input, "input"), (target, "target"), (weight, "weight")):
        if operand is None:
            continue
        if not isinstance(operand, numpy.ndarray):
            raise TypeError(f"{called} is {type(operand).__name__}; expected a NumPy array")
        if operand.dtype not in (numpy.float16, numpy.float32, numpy.float64) or not operand.dtype.isnative:
            order = "" if operand.dtype.isnative else " in another machine's byte order"
            raise TypeError(f"{called} has dtype {operand.dtype}{order}; expected float16, float32 or float64 of this "
                            "machine")
    try:
        shape = numpy.broadcast_shapes(input.shape, target.shape)
    except ValueError:
        raise ValueError(f"input of shape {input.shape} and target of shape {target.shape} cannot be broadcast "
                         "together") from None
    if weight is not None and weight.shape != input.shape:
        raise ValueError(WEIGHT_DIFFERS)
    return shape


def aligned(operand):
    """The library wants numbers at multiples of their size; an array that has them elsewhere is rare, and copied."""
    return operand if operand is None or operand.flags.aligned else operand.copy()


def result_type(*operands):
    return numpy.result_type(*(operand.dtype for operand in operands if operand is not None))


def summed_to(gradient, shape):
    """The gradient of an operand that was broadcast."""
    added = gradient.ndim - len(shape)
    axes = tuple(range(added)) + tuple(added + d for d, extent in enumerate(shape)
                                       if extent == 1 and gradient.shape[added + d] != 1)
    return gradient.sum(axis=axes, keepdims=True, dtype=gradient.dtype).reshape(shape)
