# Random arrays, layouts, types and options against the oracle. Derandomized, so that a run can be repeated.
import pathlib
import tempfile

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from expected import LOSSES, PARAMETERS, REDUCTIONS, TYPES, assert_gradients, assert_losses, assert_number, booleans
from expected import eighths, expected, gradient_options, operands, options
from folder import QUICK, Folder

bounded = settings(
    max_examples=30 if QUICK else 100,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@st.composite
def shapes(draw):
    """A common shape, and five that are broadcast to it: three operands, weights and a mask."""
    sizes = st.one_of(st.integers(0, 5), st.sampled_from([1, 3, 127, 129, 1025]))
    common = draw(st.lists(sizes, max_size=4))
    while np.prod([max(size, 1) for size in common], dtype=np.int64) > 20_000:
        common[common.index(max(common))] = 2
    found = []
    for _ in range(5):
        shape = [draw(st.sampled_from([size, size, size, 1])) for size in common]
        found.append(tuple(shape[draw(st.sampled_from([0, 0, 0, len(shape) // 2, len(shape)])) :]))
    return found


@st.composite
def files(draw, folder, name, array):
    """Writes an array in one of the many ways, and says how to call it."""
    if draw(st.booleans()):
        name = f"{name}.safetensors"
        tensor = draw(st.sampled_from(["a", "b:c", "ü x"]))
        others = {"first": np.zeros(draw(st.integers(0, 3)), np.uint8)} if draw(st.booleans()) else {}
        folder.save_tensors(name, **others, **{tensor: array})
        return f"{name}:{tensor}" if others or draw(st.booleans()) else name
    if draw(st.booleans()):
        array = np.array(array, order="F")
    if array.dtype.kind == "f" and draw(st.booleans()):
        array = array.astype(array.dtype.newbyteorder())
    return folder.save(f"{name}.npy", array, draw(st.sampled_from([None, (1, 0), (2, 0), (3, 0)])))


@st.composite
def parameters(draw, loss):
    return {name: draw(st.sampled_from(values)) for name, values in PARAMETERS[loss].items()}


@bounded
@given(data=st.data())
def test_random_calls(data):
    draw = data.draw
    with tempfile.TemporaryDirectory() as place:
        check_one(draw, Folder(pathlib.Path(place)))


def check_one(draw, folder):
    loss, reduction = draw(st.sampled_from(LOSSES)), draw(st.sampled_from(REDUCTIONS))
    kinds, (*of_operands, of_weight, of_mask) = [draw(st.sampled_from(TYPES)) for _ in "ptvw"], draw(shapes())
    arrays = operands(loss, draw(st.integers(0, 99)), of_operands, kinds)
    own = draw(parameters(loss))
    common = np.broadcast_shapes(*(array.shape for array in arrays))
    weight = mask = None
    command = [loss, *(draw(files(folder, name, array)) for name, array in zip("ptv", arrays)), *options(own)]
    if draw(st.booleans()) and can_be_broadcast(of_weight, common) and 0 not in common:
        weight = eighths(draw(st.integers(0, 99)), of_weight, kinds[3])
        command += ["--weight", draw(files(folder, "w", weight))]
    if draw(st.booleans()) and can_be_broadcast(of_mask, common):
        mask = booleans(draw(st.integers(0, 99)), of_mask).astype(draw(st.sampled_from(["?", "u1"])))
        command += ["--mask", draw(files(folder, "m", mask))]
    command += [f"--reduction={reduction}", "--threads", draw(st.integers(1, 4))]

    answer = expected(loss, arrays, reduction, weight, own, mask)
    outputs, names = gradient_options(loss)
    reply = folder.json(*command, *outputs, "--none", "n.npy")
    assert reply["shape"] == list(common) and reply["type"] == answer.result_type
    assert_gradients(folder, names, answer, kinds, common)
    assert_losses(folder, "n.npy", loss, arrays, weight=weight, given=own, mask=mask)
    if reduction != "none":
        assert_number(str(reply["value"]), answer)
        assert folder.hex(*command) == reply["bits"]  # whether or not anything is written


def can_be_broadcast(shape, common):
    try:
        return np.broadcast_shapes(shape, common) == common
    except ValueError:
        return False
