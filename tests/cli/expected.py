# What the tool must say: the oracle of tests/python, which knows the formulas and nothing of the library, asked with
# arrays; and how near to it a printed number must be.
import numpy as np
import oracle

from folder import DTYPES, TYPE_NAMES, bits

#: a loss's own parameter, and values of it that take every branch
PARAMETERS = {"mse": {}, "smooth_l1": {"beta": [1.0, 0.5, 0.0, 3.7]}, "hinge": {"margin": [1.0, 0.25, 0.0, -2.0]}}
LOSSES = list(PARAMETERS)
TYPES = list(DTYPES)


def cases():
    """Every loss with every value of its parameter, as the name and the options."""
    for loss, parameters in PARAMETERS.items():
        yield loss, {}
        for name, values in parameters.items():
            yield from ((loss, {name: value}) for value in values)


def options(given):
    return [word for name, value in given.items() for word in (f"--{name}", repr(value))]


def type_of(array):
    return TYPE_NAMES[array.dtype.newbyteorder("=")]


def expected(loss, p, t, reduction="mean", weight=None, given=None):
    """The oracle's answer for arrays. A weight that is broadcast counts as often as it is used."""
    p, t = np.asarray(p), np.asarray(t)
    (parameter,) = (given or {"none": 1.0}).values()
    weighted = {}
    if weight is not None:
        shape = np.broadcast_shapes(p.shape, t.shape)
        weighted = {"weight": np.broadcast_to(exact(weight), shape), "weight_type": type_of(weight)}
    types = (type_of(p), type_of(t))
    return oracle.answer(loss, exact(p), exact(t), types, reduction, parameter, **weighted)


def exact(array):
    return np.asarray(array).astype(np.float64)


def read_number(text, type_name):
    """A printed number, rounded once to its type; a scalar array of that type."""
    return oracle.round_to(type_name, np.float64(text)).astype(DTYPES[type_name])


def bits_of(text, type_name):
    """The bits that --hex must show for a printed number."""
    number = read_number(text, type_name)
    return f"0x{int(bits(number)):0{2 * number.dtype.itemsize}x}"


def ulp(type_name, number):
    digits, least_step, _ = oracle.FORMATS[type_name]
    return 2.0 ** max(int(np.frexp(number)[1]) - digits, least_step)


def assert_number(text, answer, within_ulp=True):
    """A printed mean or sum is the oracle's: within the promised error and, for ordinary numbers, 1 ulp of it (but for
    f64, whose sums are not in anything wider)."""
    got, wanted = float(text), float(answer.value)
    if not np.isfinite(wanted):
        assert np.isnan(got) if np.isnan(wanted) else got == wanted, f"{text} for {wanted}"
        return
    low, high = (float(oracle.round_to(answer.result_type, wanted + side)) for side in (-answer.slack, answer.slack))
    assert low <= float(read_number(text, answer.result_type)) <= high, f"{text} is outside [{low!r}, {high!r}]"
    if within_ulp and answer.result_type != "f64":
        assert abs(got - wanted) <= ulp(answer.result_type, wanted), f"{text} is more than 1 ulp off {wanted!r}"


def assert_array(got, wanted, type_name, shape):
    """A written array has the type, the shape and every bit of the oracle's numbers."""
    assert got.dtype == DTYPES[type_name] and got.shape == shape, f"{got.dtype} {got.shape}"
    wanted = np.broadcast_to(wanted, shape).astype(DTYPES[type_name])
    nan = np.isnan(exact(wanted))
    same = np.where(nan, np.isnan(exact(got)), bits(got) == bits(wanted))
    assert same.all(), f"{(~same).sum()} of {same.size} differ: {got[~same][:4]} for {wanted[~same][:4]}"


def numbers(seed, shape, type_name="f32"):
    """Ordinary numbers, of both signs and around 1."""
    return np.asarray(np.random.default_rng(seed).standard_normal(shape)).astype(DTYPES[type_name])


def eighths(seed, shape, type_name="f32"):
    """Weights whose sum is exact in any order: 1/8 to 8/8."""
    return np.asarray(np.random.default_rng(seed).integers(1, 9, shape) / 8).astype(DTYPES[type_name])
