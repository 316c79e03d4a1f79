# What the tool must say: the formulas of the losses on arrays, with the library's promises of types, sums, weights,
# masks and divisors; and how near to it a printed number or a written array must be.
import json
import os
import subprocess
from collections import namedtuple

import numpy as np
import oracle  # of tests/python: types, rounding and exact sums

from folder import DTYPES, TYPE_NAMES, bits
from formulas import EXACT, FORMULAS, draw

TYPES = list(DTYPES)
REDUCTIONS = ["mean", "sum", "none", "batchmean"]

#: the losses as the tool lists them, by name
INFO = {
    info["name"]: info
    for info in json.loads(subprocess.run([os.environ["ONEPASS_TOOL"], "list", "--json"], capture_output=True).stdout)
}
LOSSES = [loss for loss in INFO if loss in FORMULAS]
PARAMETERS = {loss: FORMULAS[loss].parameters for loss in LOSSES}

#: one loss of each kind, for tests that need not try them all: exact, of an elementary function, of three operands
KINDS = [loss for loss in (*EXACT, "bce_with_logits", "gaussian_nll") if loss in LOSSES]

#: what a computed loss or slope may be off, as a share of its own magnitude and that of its terms: elementary functions
#: are right to some units of 2^-24 (or 2^-53), and sums of a few terms lose some more
LOOSE = {np.float32: 2.0**-18, np.float64: 2.0**-45}

#: value: exact for a reduction, an array in the result's type for none; slack: how far the tool's may be from it before
#: it is rounded. gradients: a pair of the same two for each operand.
Answer = namedtuple("Answer", "value slack gradients result_type")


# ------------------------------------------------------------------- calls --


def cases():
    """Every loss with every value of each of its parameters, and with several at once, as the name and the options."""
    for loss, parameters in PARAMETERS.items():
        yield loss, {}
        for name, values in parameters.items():
            yield from ((loss, {name: value}) for value in values)
        if len(parameters) > 1:
            yield loss, {name: values[-1] for name, values in parameters.items()}


def options(given):
    return [word for name, value in given.items() for word in (f"--{name}", repr(value))]


def operand_names(loss):
    return INFO[loss]["operands"]


def gradient_options(loss, prefix="g"):
    """The options for all gradients, and the files that they name."""
    names = ["--grad"] + [f"--grad-{name}" for name in operand_names(loss)[1:]]
    files = [f"{prefix}{k}.npy" for k in range(len(names))]
    return [word for pair in zip(names, files) for word in pair], files


def operands(loss, seed, shapes, types="f32"):
    """Arrays that the loss makes sense for. One shape or type serves all operands; the last of several goes on."""
    kinds = FORMULAS[loss].kinds
    shapes = shapes if isinstance(shapes, list) else [shapes]
    types = [types] if isinstance(types, str) else list(types)
    arrays = []
    for k, kind in enumerate(kinds):
        array = draw(kind, np.random.default_rng(100 * seed + k), shapes[min(k, len(shapes) - 1)])
        arrays.append(np.asarray(array).astype(DTYPES[types[min(k, len(types) - 1)]]))
    return arrays


def save_operands(folder, arrays):
    return [folder.save(f"{name}.npy", array) for name, array in zip("ptv", arrays)]


def numbers(seed, shape, type_name="f32"):
    """Ordinary numbers, of both signs and around 1."""
    return np.asarray(np.random.default_rng(seed).standard_normal(shape)).astype(DTYPES[type_name])


def eighths(seed, shape, type_name="f32"):
    """Weights whose sum is exact in any order: 1/8 to 8/8."""
    return np.asarray(np.random.default_rng(seed).integers(1, 9, shape) / 8).astype(DTYPES[type_name])


def booleans(seed, shape, share=0.6):
    """A mask that leaves about this share of the elements."""
    return np.asarray(np.random.default_rng(seed).random(shape) < share)


def type_of(array):
    return TYPE_NAMES[array.dtype.newbyteorder("=")]


def exact(array):
    return np.asarray(array).astype(np.float64)


# ----------------------------------------------------------------- answers --


def terms(loss, arrays, given, real):
    """The value and the slopes of each element, and what a computed one may be off: nothing for exact losses, which are
    in the compute type; the others are in float64."""
    kind = real if loss in EXACT else np.float64
    parameters = {p["name"]: given.get(p["name"], p["default"]) for p in INFO[loss]["parameters"]}
    parameters = {name: kind(real(value)) for name, value in parameters.items()}
    found = FORMULAS[loss].function(*(array.astype(kind) for array in arrays), **parameters)
    loose = 0 if loss in EXACT else LOOSE[real]
    return found, [loose * (FORMULAS[loss].size + np.abs(exact(array))) for array in found]


def divisor_of(reduction, taking_part, weight, shape):
    """What the sum is divided by: each weight counts as often as it is used. None: it is not divided."""
    if reduction == "batchmean":
        return float(shape[0]) if shape else 1.0
    if reduction != "mean":
        return None
    shares = np.ones(shape) if weight is None else exact(weight)
    return oracle.total(np.where(taking_part, np.broadcast_to(shares, shape), 0))


def expected(loss, arrays, reduction="mean", weight=None, given=None, mask=None):
    """The answer for arrays, one for each operand."""
    arrays = [np.asarray(array) for array in arrays]
    types = [type_of(array) for array in arrays]
    all_types = types + ([type_of(weight)] if weight is not None else [])
    result_type, real = oracle.promoted(*all_types), oracle.compute_type(*all_types)
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    taking_part = np.broadcast_to(True if mask is None else np.asarray(mask) != 0, shape)
    with np.errstate(all="ignore"):
        wide = [np.broadcast_to(exact(array), shape).astype(real) for array in arrays]
        found, loose = terms(loss, wide, given or {}, real)
        if weight is not None:
            w = np.broadcast_to(exact(weight), shape).astype(real)
            found, loose = [array * w for array in found], [slack * exact(np.abs(w)) for slack in loose]
        found = [np.where(taking_part, array, array.dtype.type(0)) for array in found]
        loose = [np.where(taking_part, slack, 0) for slack in loose]
        divisor = divisor_of(reduction, taking_part, weight, shape)
        value, slack = reduced(found[0], loose[0], real, reduction, result_type, divisor, weight is not None)
        gradients = [
            scaled(slope, slope_loose, real, divisor, taking_part, type_name)
            for slope, slope_loose, type_name in zip(found[1:], loose[1:], types)
        ]
    return Answer(value, slack, gradients, result_type)


def reduced(values, loose, real, reduction, result_type, divisor, weighted):
    """The sum, divided, and its slack; or for none the elements."""
    if reduction == "none":
        return oracle.round_to(result_type, exact(values)), loose
    levels = 12 + max(values.size, 1).bit_length()
    bound = 4 * 2.0**-24 if real is np.float32 else levels * 2.0**-53  # of the library's order, for terms of one sign
    total, slack = oracle.total(values), bound * oracle.total(np.abs(values)) + oracle.total(loose)
    if divisor is None:
        return total, slack
    value, slack = np.float64(total) / divisor, np.float64(slack) / abs(np.float64(divisor))
    if weighted:  # the sum of the weights is itself a sum in the library's order
        slack = slack + abs(value) * (4 * 2.0**-24 if real is np.float32 else 2.0**-48)
    return value, slack


def scaled(slope, loose, real, divisor, taking_part, type_name):
    """A gradient in the type of its operand. What takes no part has a zero without a sign."""
    if divisor is not None:
        scale = real(np.float64(1) / divisor)
        slope, loose = slope * slope.dtype.type(scale), loose * abs(np.float64(scale))
    slope = np.where(taking_part, exact(slope), 0.0)
    return oracle.round_to(type_name, slope), np.where(taking_part, loose, 0)


# ------------------------------------------------------------------- checks --


def read_number(text, type_name):
    """A printed number, rounded once to its type; a scalar array of that type."""
    return oracle.round_to(type_name, np.float64(text)).astype(DTYPES[type_name])


def bits_of(text, type_name):
    """The bits that --hex must show for a printed number."""
    number = read_number(text, type_name)
    return f"0x{int(bits(number)):0{2 * number.dtype.itemsize}x}"


def ulp(type_name, number):
    digits, least_step, _ = oracle.FORMATS[type_name]
    return np.ldexp(1.0, np.maximum(np.frexp(number)[1] - digits, least_step))


def assert_number(text, answer, within_ulp=False):
    """A printed mean or sum is within the promised error and, for exact losses and ordinary numbers, 1 ulp (but for
    f64, whose sums are not in anything wider)."""
    got, wanted = float(text), float(answer.value)
    if not np.isfinite(wanted):
        assert np.isnan(got) if np.isnan(wanted) else got == wanted, f"{text} for {wanted}"
        return
    low, high = (float(oracle.round_to(answer.result_type, wanted + side)) for side in (-answer.slack, answer.slack))
    assert low <= float(read_number(text, answer.result_type)) <= high, f"{text} is outside [{low!r}, {high!r}]"
    if within_ulp and answer.result_type != "f64":
        assert abs(got - wanted) <= ulp(answer.result_type, wanted), f"{text} is more than 1 ulp off {wanted!r}"


def assert_array(got, wanted, type_name, shape, slack=0):
    """A written array has the type and the shape, and every bit of the wanted numbers, or is as near as the slack,
    where there is one, and a rounding allow."""
    assert got.dtype == DTYPES[type_name] and got.shape == shape, f"{got.dtype} {got.shape}"
    wanted, slack = np.broadcast_to(wanted, shape), np.broadcast_to(slack, shape)
    same = bits(got) == bits(wanted.astype(DTYPES[type_name]))
    with np.errstate(all="ignore"):
        near = np.abs(exact(got) - wanted) <= slack + ulp(type_name, wanted)
        right = np.where(np.isnan(wanted), np.isnan(exact(got)), np.where(slack > 0, near, same))
    assert right.all(), f"{(~right).sum()} of {right.size} differ: {got[~right][:4]} for {wanted[~right][:4]}"


def assert_gradients(folder, files, answer, types, shape):
    """The written gradients, of all operands or the first ones."""
    for name, (wanted, slack), type_name in zip(files, answer.gradients, types):
        assert_array(folder.load(name), wanted, type_name, shape, slack)


def assert_losses(folder, name, loss, arrays, **how):
    """The written losses of the elements."""
    answer = expected(loss, arrays, "none", **how)
    shape = np.broadcast_shapes(*(np.shape(array) for array in arrays))
    assert_array(folder.load(name), answer.value, answer.result_type, shape, answer.slack)
