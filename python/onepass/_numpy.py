"""NumPy's arrays: any strides, float16, float32 and float64."""

import numpy

from . import _contract, _native
from ._catalog import CATALOG, as_numbers, check_parameters, is_number
from ._contract import ALL_CODES, MEAN, MEAN_OF_ALL, NOTHING, SUM

FLOATS = (numpy.float16, numpy.float32, numpy.float64)
LABELS = (numpy.int64, numpy.int32, numpy.uint8)


def loss(name, input, target, parameters, reduction, given=None):
    """One of the public functions."""
    given = given or NOTHING
    contract = _contract.contract_of(name)
    if given.size_average is not None or given.reduce is not None:
        reduction = "none" if given.reduce is False else "sum" if given.size_average is False else "mean"
        _contract.warn(f"size_average and reduce args will be deprecated, please use reduction={reduction!r} instead.")
    elif name.startswith("kl_div") and _contract.code_of(reduction) == MEAN:
        _contract.warn(_contract.MEAN_OF_KL_DIV)
    _contract.check_reduction(name, reduction)
    if reduction == "elementwise_mean":
        _contract.warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.")
        reduction = "mean"
    if contract.sizes == _contract.WARN and input.shape != target.shape:
        _contract.warn(_contract.SIZES_DIFFER.format(target.shape, input.shape))
    arrays, shape = checked(name, contract, input, target, given)
    value = numpy.empty(shape if reduction == "none" else (), result_type(contract, arrays, shape))
    run(name, contract, arrays, parameters, reduction, given, shape, value, None)
    return value if reduction == "none" else value[()]


def value_and_grad(name, input, target, parameters, reduction, given):
    contract = _contract.contract_of(name)
    arrays, shape = checked(name, contract, input, target, given)
    value = numpy.empty((), result_type(contract, arrays, shape))
    gradient = numpy.empty(shape, input.dtype)
    run(name, contract, arrays, parameters, reduction, given, shape, value, gradient)
    return value[()], gradient if shape == input.shape else summed_to(gradient, input.shape)


def run(name, contract, arrays, parameters, reduction, given, shape, value, gradient):
    """Into value and gradient, with the divisor that PyTorch's rules ask for."""
    parameters = as_numbers(name, parameters)
    check_parameters(name, parameters)
    weight, mask = arrays[3:]
    code, divisor = ALL_CODES[reduction], 0.0
    if weight is not None and code == MEAN:
        if contract.mean_of_all:
            code = MEAN_OF_ALL
        elif mask is None and weight.shape != shape and not (contract.free_weight or given.broadcast_weight):
            divisor = float(weight.sum(dtype=numpy.float64))  # where the input was broadcast each weight counts once
    if divisor == 0 or numpy.isfinite(divisor) and divisor > 0:
        _native.numpy_run(name, code, parameters, 0, *arrays, value, gradient, None, None, divisor)
        return
    _native.numpy_run(name, SUM, parameters, 0, *arrays, value, gradient, None, None, 0.0)
    with numpy.errstate(divide="ignore", invalid="ignore"):
        for output in (value, gradient):
            if output is not None:
                numpy.divide(output, divisor, out=output)


def checked(name, contract, input, target, given):
    """The arrays (input, target, third, weight, mask) as the library wants them, and the operands' common shape; or an
    error that names what is wrong."""
    third = given.third
    check_floats(input, "input")
    check_floats(target, "target")
    if name == "gaussian_nll":
        third = checked_variance(input, third, given.mask)
    elif len(CATALOG[name]["operands"]) == 3:
        check_floats(third, "the third operand")
    _contract.check_sizes(contract.sizes, input, target, third)
    operands = [operand for operand in (input, target, third) if operand is not None]
    shape = _contract.common_shape(*(operand.shape for operand in operands))
    if shape is None or (contract.sizes == _contract.TO_INPUT and shape != input.shape):
        shapes = [str(operand.shape) for operand in operands]
        raise ValueError(f"input of shape {shapes[0]} and target of shape {shapes[1]} cannot be broadcast together" if
                         third is None else f"operands of shapes {', '.join(shapes)} cannot be broadcast together")
    if given.weight is not None:
        check_floats(given.weight, "weight")
        if not (contract.free_weight or given.broadcast_weight) and given.weight.shape != input.shape:
            raise ValueError(_contract.WEIGHT_DIFFERS)
        check_reach("weight", given.weight, shape)
    if given.mask is not None:
        check_mask(given.mask, shape)
        if name == "gaussian_nll":
            check_variance(third, given.mask != 0)
    return [aligned(array) for array in (input, target, third, given.weight, given.mask)], shape


def check_floats(operand, called):
    if type(operand) is not numpy.ndarray and isinstance(operand, numpy.ma.MaskedArray):
        raise TypeError(f"{called} is a masked array; expected a plain one, and the elements that take part as mask")
    check_type(operand, called, FLOATS, "float16, float32 or float64")


def check_type(operand, called, types, expected):
    """Of the byte order, too, which is spoken of where it is not this machine's."""
    if not isinstance(operand, numpy.ndarray):
        raise TypeError(f"{called} is {type(operand).__name__}; expected a NumPy array")
    if operand.dtype not in types or not operand.dtype.isnative:
        own, wanted = ("", "") if operand.dtype.isnative else (" in another machine's byte order", " of this machine")
        raise TypeError(f"{called} has dtype {operand.dtype}{own}; expected {expected}{wanted}")


def check_mask(mask, shape):
    if not isinstance(mask, numpy.ndarray):
        raise TypeError(f"mask is {type(mask).__name__}; expected a NumPy array")
    if mask.dtype not in (numpy.bool_, numpy.uint8):
        raise TypeError(f"mask has dtype {mask.dtype}; expected bool or uint8")
    check_reach("mask", mask, shape)


def check_reach(called, array, shape):
    if not _contract.broadcasts_to(array.shape, shape):
        raise ValueError(f"{called} of shape {array.shape} does not broadcast to that of the loss, {shape}")


def checked_variance(input, variance, mask):
    """What gaussian_nll_loss asks of a variance. Beside a mask its numbers are looked at once both have a shape."""
    if is_number(variance):
        variance = numpy.asarray(variance, input.dtype)
        fitted = variance
    else:
        check_floats(variance, "var")
        fitted = _contract.fitted_variance(input, variance)
    if mask is None:
        check_variance(variance)
    return fitted


def check_variance(variance, takes_part=True):
    if ((variance < 0) & takes_part).any():
        raise ValueError(_contract.VARIANCE_NEGATIVE)


def aligned(operand):
    """The library wants numbers at multiples of their size; an array that has them elsewhere is rare, and copied."""
    return operand if operand is None or operand.flags.aligned else operand.copy()


def result_type(contract, arrays, shape):
    input, target, third, weight, _ = arrays
    types = [input.dtype, target.dtype]
    if not contract.two_decide:
        types += [third.dtype] if third is not None else []
        types += [weight.dtype] if weight is not None and (weight.ndim > 0 or shape == ()) else []
    return numpy.result_type(*types)


def summed_to(gradient, shape):
    """The gradient of an operand that was broadcast."""
    added = gradient.ndim - len(shape)
    axes = tuple(range(added)) + tuple(added + d for d, extent in enumerate(shape)
                                       if extent == 1 and gradient.shape[added + d] != 1)
    return gradient.sum(axis=axes, keepdims=True, dtype=gradient.dtype).reshape(shape)
