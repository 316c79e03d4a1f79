# The oracle: values and gradients from the formulas alone, in plain NumPy.
#
# Numbers come in as float64 arrays that hold values of a narrower type exactly, and
# each operand's type comes beside them as a name (NumPy has no bfloat16). Terms and
# slopes are computed in the compute type, as the library promises, so that element by
# element every bit is known; sums are exact (fsum), and come with the slack that the
# library's order of summation is allowed.
import math
from collections import namedtuple

import numpy as np

#: of each type: digits of the significand, exponent of the least step, greatest finite number
Format = namedtuple("Format", "digits least_step greatest")
FORMATS = {
    "f16": Format(11, -24, 65504.0),
    "bf16": Format(8, -133, 255.0 * 2.0**120),
    "f32": Format(24, -149, float(np.finfo(np.float32).max)),
    "f64": Format(53, -1074, float(np.finfo(np.float64).max)),
}

#: value: exact for mean and sum, an array in the result's type for none.
#: slack: how far a mean or sum may lie from it before it is rounded to the result's type.
#: gradients: of prediction and target, in the common shape, rounded to the operands' types.
Answer = namedtuple("Answer", "value slack gradients result_type")


def round_to(type_name, numbers):
    """Float64 numbers rounded once, ties to even, to a type; the results are float64 numbers again."""
    numbers = np.asarray(numbers, np.float64)
    if type_name == "f64":
        return numbers
    digits, least_step, greatest = FORMATS[type_name]
    exponents = np.frexp(numbers)[1]
    steps = np.ldexp(1.0, np.maximum(exponents - digits, least_step))
    with np.errstate(all="ignore"):
        rounded = np.where(np.isfinite(numbers), np.rint(numbers / steps) * steps, numbers)
    rounded = np.where(np.abs(rounded) > greatest, np.copysign(np.inf, numbers), rounded)
    return np.where(np.isnan(numbers), np.nan, rounded)


def promoted(*type_names):
    """The result's type: the wider one; of f16 and bf16, which do not hold each other, f32."""
    names = set(type_names)
    for wide in ("f64", "f32"):
        if wide in names:
            return wide
    return names.pop() if len(names) == 1 else "f32"


def compute_type(*type_names):
    return np.float64 if "f64" in type_names else np.float32


def terms(loss, p, t, parameter):
    """The value of each element, in the type of p and t."""
    real = p.dtype.type
    parameter = real(parameter)
    if loss == "mse":
        x = p - t
        return x * x
    if loss == "smooth_l1":
        x = p - t
        near = (real(0.5) * x * x) / parameter
        return np.where(np.abs(x) < parameter, near, np.abs(x) - real(0.5) * parameter)
    if loss == "hinge":
        room = parameter - p * t
        return np.where(room < 0, real(0), room)  # a NaN is not less than 0 and stays
    raise KeyError(loss)


def slopes(loss, p, t, parameter):
    """The derivatives of each term in p and in t, in the type of p and t."""
    real = p.dtype.type
    parameter = real(parameter)
    if loss == "mse":
        slope = real(2) * (p - t)
        return slope, -slope
    if loss == "smooth_l1":
        x = p - t
        slope = np.where(np.abs(x) >= parameter, np.sign(x), x / parameter)
        return slope, -slope
    if loss == "hinge":
        active = np.where(parameter - p * t >= 0, real(1), real(0))
        return -(active * t), -(active * p)
    raise KeyError(loss)


def total(numbers):
    """The exact sum; NaN and infinities come out as IEEE lets them."""
    flat = np.asarray(numbers, np.float64).ravel()
    with np.errstate(all="ignore"):
        if not np.isfinite(flat).all():
            return float(np.sum(flat))
    try:
        return math.fsum(flat)
    except OverflowError:
        return float(np.sum(flat / 2.0**64)) * 2.0**64


def answer(
    loss, p, t, types=("f64", "f64"), reduction="mean", parameter=1.0, weight=None, weight_type=None, upstream=1.0
):
    """What a loss of p and t, and its gradients times an upstream gradient, must be."""
    all_types = tuple(types) + ((weight_type or "f64",) if weight is not None else ())
    result_type, real = promoted(*all_types), compute_type(*all_types)
    p, t = np.broadcast_arrays(np.asarray(p, np.float64), np.asarray(t, np.float64))
    with np.errstate(all="ignore"):
        p, t = p.astype(real), t.astype(real)
        value, (slope_p, slope_t) = terms(loss, p, t, parameter), slopes(loss, p, t, parameter)
        scale = None
        if weight is not None:
            w = np.broadcast_to(np.asarray(weight, np.float64), p.shape).astype(real)
            value, slope_p, slope_t = value * w, slope_p * w, slope_t * w
        if reduction == "none":
            value, slack = round_to(result_type, value.astype(np.float64)), None
        else:
            value, slack = summed(value, real)
        if reduction == "mean":
            # As PyTorch has it, the divisor is the sum of the weights as they came, not as they were broadcast.
            divisor = total(weight) if weight is not None else float(p.size)
            value, slack = np.float64(value) / divisor, np.float64(slack) / abs(np.float64(divisor))
            if weight is not None:  # the sum of the weights is itself a sum in the library's order
                slack = slack + abs(value) * 4 * 2.0**-24 if real is np.float32 else slack + abs(value) * 2.0**-48
            scale = real(np.float64(1) / divisor)
        gradients = []
        for slope, type_name in zip((slope_p, slope_t), types):
            if scale is not None:
                slope = slope * scale
            gradient = slope * np.asarray(upstream, np.float64).astype(real)
            gradients.append(round_to(type_name, gradient.astype(np.float64)))
    return Answer(value, slack, gradients, result_type)


def summed(values, real):
    """The exact sum of terms, and the slack of the library's order: 4 * 2^-24 of the magnitudes for float terms."""
    magnitude = total(np.abs(values))
    levels = 12 + max(values.size, 1).bit_length()
    bound = 4 * 2.0**-24 if real is np.float32 else levels * 2.0**-53
    return total(values), bound * magnitude
