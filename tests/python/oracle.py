# The oracle: values and gradients from the formulas alone, in plain NumPy.
#
# Numbers come in as float64 arrays that hold values of a narrower type exactly, and
# each operand's type comes beside them as a name (NumPy has no bfloat16). Losses that need
# nothing but arithmetic (EXACT) are computed in the compute type, as the library promises, so
# that element by element every bit is known. The others are computed in a wider type, and a
# running error analysis (Estimate) says how far the same formula in the compute type may be off:
# a rounding an operation, two steps an elementary function. Sums are exact (fsum), and come with
# the slack that the library's order of summation is allowed.
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
#: slack: how far it may lie from that before it is rounded to the result's type; None: not a bit.
#: gradients: of the operands, in the common shape, rounded to the operands' types where their slack is None.
Answer = namedtuple("Answer", "value slack gradients gradient_slacks result_type")


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


# ------------------------------------------------------- losses of arithmetic --


def mse(p, t, v, k, real):
    slope = real(2) * (p - t)
    return (p - t) * (p - t), slope, -slope


def l1(p, t, v, k, real):
    return np.abs(p - t), np.sign(p - t), -np.sign(p - t)


def smooth_l1(p, t, v, k, real):
    x = p - t
    near = (real(0.5) * x * x) * (real(1) / k[0])  # a reciprocal that is rounded, as the losses divide
    value = np.where(np.abs(x) < k[0], near, np.abs(x) - real(0.5) * k[0])
    slope = np.where(np.abs(x) >= k[0], np.sign(x), x * (real(1) / k[0]))
    return value, slope, -slope


def huber(p, t, v, k, real):
    x = p - t
    value = np.where(np.abs(x) < k[0], real(0.5) * x * x, k[0] * (np.abs(x) - real(0.5) * k[0]))
    slope = np.where(np.abs(x) >= k[0], k[0] * np.sign(x), x)
    return value, slope, -slope


def charbonnier(p, t, v, k, real):
    x = p - t
    root = np.sqrt(x * x + k[0] * k[0])
    slope = np.where(root == 0, np.sign(x), x / root)
    return root, slope, -slope


def quantile(p, t, v, k, real):
    e = t - p
    slope = np.where(e > 0, -k[0], np.where(e < 0, real(1) - k[0], e))
    return np.where(e < 0, (k[0] - real(1)) * e, k[0] * e), slope, -slope


def epsilon_insensitive(p, t, v, k, real):
    x = p - t
    excess = np.abs(x) - k[0]
    slope = np.where(np.abs(x) > k[0], np.sign(x), np.where(x == x, real(0), x))
    return np.where(excess < 0, real(0), excess), slope, -slope


def hinge(p, t, v, k, real):
    room = k[0] - p * t
    active = np.where(room >= 0, real(1), real(0))
    return np.where(room < 0, real(0), room), -(active * t), -(active * p)  # a NaN is not less than 0 and stays


def squared_hinge(p, t, v, k, real):
    room = k[0] - p * t
    value = np.where(room < 0, real(0), room)
    factor = real(-2) * np.where(room >= 0, room, real(0))
    return value * value, factor * t, factor * p


def hinge_embedding(p, t, v, k, real):
    room = k[0] - p
    value = np.where(t != 1, np.where(room < 0, real(0), room), real(0)) + np.where(t != -1, p, real(0))
    active = np.where(room >= 0, real(1), real(0))
    return value, np.where(t != -1, real(1), real(0)) - np.where(t != 1, active, real(0)), np.zeros_like(p)


def margin_ranking(p, t, v, k, real):
    room = k[0] - v * (p - t)
    active = np.where(room >= 0, real(1), real(0))
    return np.where(room < 0, real(0), room), -(active * v), active * v, -(active * (p - t))


EXACT = {function.__name__: function
         for function in (mse, l1, smooth_l1, huber, charbonnier, quantile, epsilon_insensitive, hinge, squared_hinge,
                          hinge_embedding, margin_ranking)}

# ----------------------------------------- losses of elementary functions --


class Estimate:
    """A number in a wide type, and how far from it a computation in the compute type may be, in units of its rounding:
    half a step of 1."""

    def __init__(self, number, error=0.0):
        self.number, self.error = number, error

    def __add__(self, other):
        other = estimate(other)
        return rounded(self.number + other.number, self.error + other.error)

    def __sub__(self, other):
        return self + -estimate(other)

    def __rsub__(self, other):
        return estimate(other) - self

    def __neg__(self):
        return Estimate(-self.number, self.error)

    def __mul__(self, other):
        other = estimate(other)
        return rounded(self.number * other.number,
                       np.abs(self.number) * other.error + np.abs(other.number) * self.error)

    def __truediv__(self, other):
        other = estimate(other)
        quotient = self.number / other.number
        return rounded(quotient, (self.error + np.abs(quotient) * other.error) / np.abs(other.number))

    def __rtruediv__(self, other):
        return estimate(other) / self

    __radd__, __rmul__ = __add__, __mul__


def estimate(x):
    """A constant, which may have to be rounded, or an estimate."""
    return x if isinstance(x, Estimate) else Estimate(x, 0.0 if float(np.float32(x)) == x else abs(x))


def rounded(number, error):
    return Estimate(number, error + np.abs(number))


def elementary(function, slope):
    """An elementary function, which is wrong by up to two steps of its own."""
    return lambda x: Estimate(function(x.number), x.error * np.abs(slope(x.number)) + 4 * np.abs(function(x.number)))


def logistic(x):
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1) / (1 + small)


exp = elementary(np.exp, np.exp)
log = elementary(np.log, lambda x: 1 / x)
log1p = elementary(np.log1p, lambda x: 1 / (1 + x))
tanh = elementary(np.tanh, lambda x: 1 - np.tanh(x) ** 2)
sigmoid = elementary(logistic, lambda x: logistic(x) * logistic(-x))
softplus = elementary(lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))), logistic)


def choose(condition, yes, no):
    yes, no = estimate(yes), estimate(no)
    return Estimate(np.where(condition, yes.number, no.number), np.where(condition, yes.error, no.error))


def at_least(x, least):
    return choose(x.number < least, least, x)


def power(base, exponent):
    """By an exponential and a logarithm."""
    if exponent == 0:
        return estimate(1.0)
    number = base.number**exponent
    inner = abs(exponent) * (base.error / np.abs(base.number) + 5 * np.abs(np.log(base.number)))
    return Estimate(number, number * inner + 4 * number)


def log_cosh(p, t, v, k):
    x = p - t
    a = choose(x.number < 0, -x, x)
    # abs(x) + softplus(-2*abs(x)) - log(2), without the digits that are lost near 0
    near = -0.5 * log1p(-(tanh(x) * tanh(x)))
    value = choose(a.number < 1, near, a - log1p(tanh(a)))
    return value, tanh(x), -tanh(x)


def mape(p, t, v, k):
    x = p - t
    measure = choose(np.abs(t.number) < k[0].number, k[0], choose(t.number < 0, -t, t))
    sign = Estimate(np.sign(x.number))
    slope = 100 * sign / measure
    changes = choose(np.abs(t.number) > k[0].number, p / t, 1.0)
    return 100 * choose(x.number < 0, -x, x) / measure, slope, -(slope * changes)


def msle(p, t, v, k):
    lesser = choose(p.number < t.number, p, t)
    x = p - t
    d = log1p(choose(x.number < 0, -x, x) / (1 + lesser))
    signed = choose(x.number < 0, -d, d)
    return d * d, 2 * signed / (1 + p), -(2 * signed / (1 + t))


def soft_margin(p, t, v, k):
    wrong = sigmoid(-(t * p))
    return softplus(-(t * p)), -(t * wrong), -(p * wrong)


def bce(p, t, v, k):
    of_no, of_yes = at_least(log1p(-p), -100.0), at_least(log(p), -100.0)
    slope = (p - t) / at_least((1 - p) * p, 1e-12)
    return (t - 1) * of_no - t * of_yes, slope, log1p(-p) - log(p)


def bce_with_logits(p, t, v, k):
    a = choose(p.number < 0, -p, p)
    value = choose(p.number < 0, 0.0, p) - p * t + softplus(-a)
    return value, sigmoid(p) - t, -p


def bce_with_logits_pos_weight(p, t, v, k):
    a = choose(p.number < 0, -p, p)
    more = 1 + (v - 1) * t
    value = (1 - t) * p + more * (choose(p.number < 0, -p, 0.0) + softplus(-a))
    return value, more * sigmoid(p) - v * t, (v - 1) * softplus(-p) - p, t * softplus(-p)


def focal(p, t, v, k):
    alpha, gamma = float(k[0].number), float(k[1].number)
    entropy = bce_with_logits(p, t, v, k)[0]
    wrong = (1 - t) * sigmoid(p) + t * sigmoid(-p)
    balance = estimate(1.0) if alpha < 0 else k[0] * t + (1 - k[0]) * (1 - t)
    bend = k[1] * (power(wrong, gamma) / wrong) if gamma else estimate(0.0)
    times = power(wrong, gamma)
    of_p = balance * ((sigmoid(p) - t) * times + entropy * bend * (1 - 2 * t) * (sigmoid(p) * sigmoid(-p)))
    of_balance = estimate(0.0) if alpha < 0 else (2 * k[0] - 1) * entropy * times
    of_t = of_balance + balance * (entropy * bend * (sigmoid(-p) - sigmoid(p)) - p * times)
    return balance * entropy * times, of_p, of_t


def focal_squared(p, t, v, k):
    return focal(p, t, v, [*k, Estimate(2.0)])


def stirling(t):
    """The term for a count, and its slope."""
    counts = t.number > 1
    safe = choose(counts, t, 2.0)
    return (choose(counts, safe * log(safe) - safe + 0.5 * log(6.283185307179586 * safe), 0.0),
            choose(counts, log(safe) + 0.5 / safe, 0.0))


def poisson_nll(p, t, v, k):
    return exp(p) - t * p, exp(p) - t, -p


def poisson_nll_full(p, t, v, k):
    value, of_p, of_t = poisson_nll(p, t, v, k)
    return value + stirling(t)[0], of_p, of_t + stirling(t)[1]


def poisson_nll_rate(p, t, v, k):
    return p - t * log(p + k[0]), 1 - t / (p + k[0]), -log(p + k[0])


def poisson_nll_rate_full(p, t, v, k):
    value, of_p, of_t = poisson_nll_rate(p, t, v, k)
    return value + stirling(t)[0], of_p, of_t + stirling(t)[1]


def gaussian_nll(p, t, v, k):
    x, c = p - t, choose(v.number < k[1].number, k[1], v)
    constant = estimate(0.9189385332046728) * k[0]
    return 0.5 * (log(c) + x * x / c) + constant, x / c, -(x / c), 0.5 * (1 / c - x * x / (c * c))


def kl_div(p, t, v, k):
    safe = choose(t.number == 0, 1.0, t)
    return choose(t.number == 0, 0.0, safe * log(safe)) - t * p, -t, log(t) + t / t - p  # NaN at 0, as autograd has it


def kl_div_log_target(p, t, v, k):
    return exp(t) * (t - p), -exp(t), exp(t) * (t - p + 1)


def gamma_deviance(p, t, v, k):
    ratio = t / p
    return 2 * (ratio - 1 - log(ratio)), 2 * (p - t) / (p * p), 2 * (1 / p - 1 / t)


ESTIMATED = {
    function.__name__: function
    for function in (
        log_cosh,
        mape,
        msle,
        soft_margin,
        bce,
        bce_with_logits,
        bce_with_logits_pos_weight,
        focal,
        focal_squared,
        poisson_nll,
        poisson_nll_full,
        poisson_nll_rate,
        poisson_nll_rate_full,
        gaussian_nll,
        kl_div,
        kl_div_log_target,
        gamma_deviance,
    )
}

LOSSES = [*EXACT, *ESTIMATED]
THREE = ["margin_ranking", "bce_with_logits_pos_weight", "gaussian_nll"]

#: The parameters' defaults, by the table of the losses.
DEFAULTS = {
    "smooth_l1": (1.0,),
    "huber": (1.0,),
    "charbonnier": (1e-3,),
    "quantile": (0.5,),
    "epsilon_insensitive": (0.1,),
    "mape": (1e-7,),
    "hinge": (1.0,),
    "squared_hinge": (1.0,),
    "hinge_embedding": (1.0,),
    "margin_ranking": (0.0,),
    "focal": (0.25, 2.0),
    "focal_squared": (0.25,),
    "poisson_nll_rate": (1e-8,),
    "poisson_nll_rate_full": (1e-8,),
    "gaussian_nll": (0.0, 1e-6),
}

#: A weighted mean of these is over the elements, as PyTorch has it; of the others over the weights.
MEANS_OF_ALL = ["huber", "bce", "bce_with_logits", "bce_with_logits_pos_weight"]
#: The weight of these counts as it came where the input was broadcast.
COUNTS_ONCE = ["mse", "l1"]


def parts(loss, operands, parameter, real):
    """Value and slopes of each element, as estimates."""
    parameters = DEFAULTS.get(loss, ()) if parameter is None else np.atleast_1d(parameter)
    k = [real(number) for number in parameters]
    p, t, v = (*operands, None)[:3]
    if loss in EXACT:
        return [Estimate(np.asarray(x), None) for x in EXACT[loss](p, t, v, k, real)]
    wide = np.float64 if real is np.float32 else np.longdouble
    return ESTIMATED[loss](*(None if x is None else Estimate(x.astype(wide)) for x in (p, t, v)),
                           [Estimate(wide(number)) for number in k])


# -------------------------------------------------------------- the answer --


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


def answer(loss, p, t, types=("f64", "f64"), reduction="mean", parameter=None, weight=None, weight_type=None,
           upstream=1.0, third=None, mask=None, broadcast_weight=False):
    """What a loss of two or three operands, and its gradients times an upstream gradient, must be."""
    all_types = tuple(types) + ((weight_type or "f64",) if weight is not None else ())
    two_decide = loss.startswith("bce")
    result_type, real = promoted(*(types[:2] if two_decide else all_types)), compute_type(*all_types)
    operands = np.broadcast_arrays(*(np.asarray(x, np.float64) for x in (p, t, third) if x is not None))
    shape = operands[0].shape
    counts = np.ones(shape, bool) if mask is None else np.broadcast_to(np.asarray(mask) != 0, shape)
    with np.errstate(all="ignore"):
        operands = [x.astype(real) for x in operands]
        value, *slopes = parts(loss, operands, parameter, real)
        w = None if weight is None else np.broadcast_to(np.asarray(weight, np.float64), shape).astype(real)
        divisor = divisor_of(loss, reduction, shape, weight, w, counts, mask, broadcast_weight)
        value, slack = summed(times(value, w), counts, real) if reduction != "none" else each(times(value, w), counts,
                                                                                              real)
        if divisor is not None:
            value, slack = np.float64(value) / divisor, np.float64(slack) / abs(np.float64(divisor))
            if w is not None and loss not in MEANS_OF_ALL:  # that of the weights is itself a sum in the library's order
                slack = slack + abs(value) * (4 * 2.0**-24 if real is np.float32 else 2.0**-48)
        elif slack is None:
            value = round_to(result_type, value.astype(np.float64))
        scale = None if divisor is None else real(np.float64(1) / divisor)
        found = [gradient_of(slope, (w, scale, np.asarray(upstream, np.float64).astype(real)), counts, type_name, real)
                 for slope, type_name in zip(slopes, types)]
    return Answer(value, slack, [gradient for gradient, _ in found], [slack for _, slack in found], result_type)


def divisor_of(loss, reduction, shape, weight, w, counts, mask, broadcast_weight):
    """None where nothing is divided."""
    if reduction == "batchmean":
        return float(shape[0]) if shape else 1.0
    if reduction != "mean":
        return None
    if w is None or loss in MEANS_OF_ALL:
        return np.float64(counts.sum())
    # As PyTorch has it, the divisor is the sum of the weights as they came, not as they were broadcast.
    once = loss in COUNTS_ONCE and mask is None and not broadcast_weight
    return np.float64(total(weight if once else w[counts]))


def unit(real):
    return 2.0**-24 if real is np.float32 else 2.0**-53


def times(estimated, factor):
    """A product in the compute type; of estimates as they are multiplied."""
    if factor is None:
        return estimated
    if estimated.error is None:
        return Estimate(estimated.number * factor, None)
    return estimated * Estimate(factor.astype(estimated.number.dtype) if hasattr(factor, "astype") else factor)


def each(value, counts, real):
    """Every element's value, and how far it may be off."""
    number = np.where(counts, value.number, 0)
    if value.error is None:
        return number, None
    return number.astype(np.float64), np.where(counts, slack_of(value, real), 0)


def slack_of(value, real):
    """An estimate's error as a number; with room for numbers too small for the compute type's full precision."""
    return (value.error * unit(real) * 1.02).astype(np.float64) + float(np.finfo(real).tiny)


def gradient_of(slope, factors, counts, type_name, real):
    for factor in factors:
        slope = times(slope, factor)
    number = np.where(counts, slope.number, 0)
    if slope.error is None:
        return round_to(type_name, number.astype(np.float64)), None
    return number.astype(np.float64), np.where(counts, slack_of(slope, real), 0)


def summed(value, counts, real):
    """The exact sum of terms, and the slack of the library's order: 4 * 2^-24 of the magnitudes for float terms; and
    that of the terms."""
    numbers, slack = each(value, counts, real)
    magnitude = total(np.abs(numbers))
    levels = 12 + max(numbers.size, 1).bit_length()
    bound = 4 * 2.0**-24 if real is np.float32 else levels * 2.0**-53
    return total(numbers), bound * magnitude + (0.0 if slack is None else total(slack))
