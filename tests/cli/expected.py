# What the tool must say: the oracle's answers for arrays, and how a printed number or a written array is held to them.
import json
import os
import subprocess

import numpy as np
import oracle

from folder import DTYPES, TYPE_NAMES, bits

TYPES = list(DTYPES)
REDUCTIONS = ["mean", "sum", "none", "batchmean"]

#: the losses as the tool lists them, by name
INFO = {
    info["name"]: info
    for info in json.loads(subprocess.run([os.environ["ONEPASS_TOOL"], "list", "--json"], capture_output=True).stdout)
}
#: those whose every element has a value, those whose every row of classes has one, and those of vectors
LOSSES = [loss for loss, info in INFO.items() if not info["over_rows"] and not info["of_vectors"]]
VECTOR_LOSSES = [loss for loss, info in INFO.items() if info["of_vectors"]]
ROW_LOSSES = [loss for loss, info in INFO.items() if info["over_rows"]]
#: values of each parameter, of which the first is its default
PARAMETERS = {
    loss: {
        parameter["name"]: [parameter["default"], *oracle.other_values(parameter)]
        for parameter in INFO[loss]["parameters"]
    }
    for loss in LOSSES
}

#: a few losses, for tests that need not try them all
FEW = ["mse", "smooth_l1", "hinge"]
#: one of each kind: those, one of an elementary function, one of three operands
KINDS = [*FEW, "bce_with_logits", "gaussian_nll"]


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


def file_names(loss):
    """The operands that a command names as files."""
    return [name for name in operand_names(loss) if name != "class_weight"]


def names_with_gradients(loss):
    """Operands that have a gradient, those of losses over rows left aside: a number for each vector has none."""
    names = file_names(loss)
    return names[:-1] if loss in VECTOR_LOSSES and INFO[loss]["target"] != "vectors" else names


def own_options(loss):
    """The options that a loss has and others need not have: its parameters, the gradients but for the first, and what
    losses over rows have."""
    own = {f"--{parameter['name'].replace('_', '-')}" for parameter in INFO[loss]["parameters"]}
    if "class_weight" in operand_names(loss):
        own.add("--class-weight")
    if loss in VECTOR_LOSSES:
        own.add("--axis")
    if loss not in ROW_LOSSES:
        return own | {f"--grad-{name.replace('_', '-')}" for name in names_with_gradients(loss)[1:]}
    own |= {"--axis", "--predicted"} | ({"--lse"} if INFO[loss]["log_sum_exp"] else set())
    return own | ({"--grad-target"} if INFO[loss]["target"] == "class probabilities" else set())


def gradient_options(loss, prefix="g"):
    """The options for all gradients, and the files that they name."""
    names = ["--grad"] + [f"--grad-{name}" for name in names_with_gradients(loss)[1:]]
    files = [f"{prefix}{k}.npy" for k in range(len(names))]
    return [word for pair in zip(names, files) for word in pair], files


def draw(domain, rng, shape):
    """Numbers that an operand is made for."""
    normal = rng.standard_normal(shape)
    return {
        "any": normal,
        "positive": np.exp(normal / 2),
        "probability": rng.random(shape),
        "sign": np.where(normal < 0, -1, 1),
    }[domain]


def operands(loss, seed, shapes, types="f32"):
    """Arrays that the loss makes sense for. One shape or type serves all operands; the last of several goes on."""
    shapes = shapes if isinstance(shapes, list) else [shapes]
    types = [types] if isinstance(types, str) else list(types)
    arrays = []
    for k, domain in enumerate(oracle.LOSSES[loss].domains):
        array = draw(domain, np.random.default_rng(100 * seed + k), shapes[min(k, len(shapes) - 1)])
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


def value_type(loss, arrays, weight):
    """The promoted type of what has a say in it."""
    deciding = [*arrays[:2]] if loss.startswith("bce") else [*arrays]
    has_dimensions = any(np.ndim(array) for array in arrays)
    if weight is not None and not loss.startswith("bce") and (np.ndim(weight) or not has_dimensions):
        deciding.append(weight)
    return oracle.promoted(*(type_of(np.asarray(array)) for array in deciding))


def expected(loss, arrays, reduction="mean", weight=None, given=None, mask=None):
    """The oracle's answer for arrays, one for each operand."""
    names = [parameter["name"] for parameter in INFO[loss]["parameters"]]
    values = {**dict(zip(names, oracle.LOSSES[loss].defaults)), **(given or {})}
    return oracle.answer(
        loss,
        [exact(array) for array in arrays],
        [type_of(np.asarray(array)) for array in arrays],
        reduction,
        [values[name] for name in names],
        None if weight is None else exact(weight),
        None if weight is None else type_of(weight),
        mask=mask,
        result_type=value_type(loss, arrays, weight),
    )


# ------------------------------------------------------------------- checks --


def read_number(text, type_name):
    """A printed number, rounded once to its type; a scalar array of that type."""
    return oracle.round_to(type_name, float(text)).astype(DTYPES[type_name])


def bits_of(text, type_name):
    """The bits that --hex must show for a printed number."""
    number = read_number(text, type_name)
    return f"0x{int(bits(number)):0{2 * number.dtype.itemsize}x}"


def assert_number(text, answer):
    """A printed mean or sum is the oracle's, to the bit."""
    right = answer.value.astype(DTYPES[answer.result_type])
    assert int(bits(read_number(text, answer.result_type))) == int(bits(right)), f"{text} for {right!r}"


def assert_array(got, right, type_name, shape):
    """A written array has the type, the shape and every bit of the right numbers."""
    assert got.dtype == DTYPES[type_name] and got.shape == shape, f"{got.dtype} {got.shape}"
    right = np.broadcast_to(right, shape).astype(DTYPES[type_name])
    same = bits(got) == bits(right)
    assert same.all(), f"{(~same).sum()} of {same.size} differ: {got[~same][:4]} for {right[~same][:4]}"


def assert_gradients(folder, files, answer, types, shape):
    """The written gradients, of all operands or the first ones."""
    for name, right, type_name in zip(files, answer.gradients, types):
        assert_array(folder.load(name), right, type_name, shape)


def assert_losses(folder, name, loss, arrays, **how):
    """The written losses of the elements."""
    answer = expected(loss, arrays, "none", **how)
    assert_array(folder.load(name), answer.value, answer.result_type, answer.value.shape)
