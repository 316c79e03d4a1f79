# Weights: dense and broadcast, of any type, in the mean, the sum and the gradient.
import numpy as np
import pytest

from expected import LOSSES, TYPES, assert_gradients, assert_losses, assert_number, eighths, expected
from expected import gradient_options, numbers, operands, save_operands
from folder import DTYPES

SHAPE = (13, 211)


@pytest.fixture
def pair(folder):
    folder.p, folder.t = numbers(51, SHAPE), numbers(52, SHAPE)
    folder.save("p.npy", folder.p), folder.save("t.npy", folder.t)
    return folder


@pytest.mark.parametrize("shape", [SHAPE, (211,), (13, 1), (), (1,), (1, 1)], ids=str)
@pytest.mark.parametrize("reduction", ["mean", "sum", "batchmean"])
@pytest.mark.parametrize("loss", LOSSES)
def test_values_and_gradients(folder, loss, reduction, shape):
    arrays, weight = operands(loss, 53, SHAPE), eighths(53, shape)
    folder.save("w.npy", weight)
    answer = expected(loss, arrays, reduction, weight)
    command = [loss, *save_operands(folder, arrays), "--weight", "w.npy", "--reduction", reduction]
    outputs, files = gradient_options(loss)
    text = folder.answer(*command, *outputs, "--none", "n.npy")
    assert_number(text, answer)
    assert folder.answer(*command) == text
    assert_gradients(folder, files, answer, ["f32"] * 3, SHAPE)
    assert_losses(folder, "n.npy", loss, arrays, weight=weight)


@pytest.mark.parametrize("of_weight", TYPES)
@pytest.mark.parametrize("of_operands", TYPES)
def test_types(folder, of_operands, of_weight):
    p, t = numbers(54, SHAPE, of_operands), numbers(55, SHAPE, of_operands)
    weight = eighths(56, (13, 1), of_weight)
    folder.save("p.npy", p), folder.save("t.npy", t), folder.save("w.npy", weight)
    answer = expected("smooth_l1", [p, t], "mean", weight)
    reply = folder.json("smooth_l1", "p.npy", "t.npy", "--weight", "w.npy", "--grad", "g.npy", "--none", "n.npy")
    assert reply["type"] == answer.result_type
    assert_number(repr(reply["value"]), answer)
    assert_gradients(folder, ["g.npy"], answer, [of_operands], SHAPE)
    assert folder.load("n.npy").dtype == DTYPES[answer.result_type]


def test_layouts_have_the_same_bits(pair):
    weight = numbers(57, SHAPE) ** 2
    command = ["mse", "p.npy", "t.npy", "--grad", "g.npy", "--weight"]
    wanted = pair.hex(*command, pair.save("w.npy", weight))
    gradient = (pair / "g.npy").read_bytes()
    pair.save("f.npy", np.asfortranarray(weight)), pair.save("s.npy", weight.astype(">f4"))
    pair.save_tensors("w.safetensors", w=weight)
    for name in ("f.npy", "s.npy", "w.safetensors:w", "w.safetensors", "-"):
        with open(pair / "w.npy", "rb") as file:
            assert pair.hex(*command, name, stdin=file) == wanted
        assert (pair / "g.npy").read_bytes() == gradient


def test_weights_of_1_are_no_weights(pair):
    for shape in (SHAPE, (211,), ()):
        pair.save("w.npy", np.ones(shape, np.float32))
        for reduction in ("mean", "sum"):
            command = ["mse", "p.npy", "t.npy", "--reduction", reduction]
            assert pair.hex(*command, "--weight", "w.npy") == pair.hex(*command)


def test_any_weights_without_a_gradient(pair):
    """The arithmetic takes its course."""
    weight = np.zeros(SHAPE, np.float32)
    command = ["mse", "p.npy", "t.npy", "--weight", "w.npy"]
    pair.save("w.npy", weight)
    assert pair.answer(*command) == "nan"
    assert float(pair.answer(*command, "--reduction", "sum")) == 0
    weight[0, 0], weight[1, 1] = 1, -1
    pair.save("w.npy", weight)
    assert pair.answer(*command) in ("inf", "-inf")
    weight[2, 2] = np.nan
    pair.save("w.npy", weight)
    assert pair.answer(*command) == "nan"


@pytest.mark.parametrize("kind", ["zero", "cancelling", "negative", "infinite", "nan"])
def test_the_gradient_of_a_mean_needs_a_sum_to_divide_by(pair, kind):
    weight = {
        "zero": np.zeros(SHAPE),
        "cancelling": np.tile([[1.0], [-1.0]], (7, 1))[: SHAPE[0]] * np.where(np.arange(13) < 12, 1, 0)[:, None],
        "negative": -np.ones(SHAPE),
        "infinite": np.full(SHAPE, np.inf),
        "nan": np.full(SHAPE, np.nan),
    }[kind]
    pair.save("w.npy", weight.astype(np.float32))
    command = ["mse", "p.npy", "t.npy", "--weight", "w.npy", "--grad", "g.npy"]
    pair.refuse(*command, says=["w.npy"])
    pair.refuse(*command, "--none", "n.npy", says=["w.npy"])
    pair.answer(*command, "--reduction", "sum")  # which divides by nothing
    pair.quiet(*command, "--reduction", "none")


@pytest.mark.parametrize("shape", [(12,), (13,), (2, 13, 211)], ids=str)
def test_a_weight_has_no_say_in_the_shape(pair, shape):
    pair.save("w.npy", np.ones(shape, np.float32))
    pair.refuse("mse", "p.npy", "t.npy", "--weight", "w.npy", says=["w.npy", str(shape), str(SHAPE)])


def test_several_windows(folder):
    """The weights are read twice, a window at a time."""
    shape = (2500, 3001)
    p, t, weight = numbers(58, shape), numbers(59, shape), eighths(60, shape)
    folder.save("p.npy", p), folder.save("t.npy", t), folder.save("w.npy", np.asfortranarray(weight))
    text = folder.answer("mse", "p.npy", "t.npy", "--weight", "w.npy", "--grad", "g.npy")
    answer = expected("mse", [p, t], "mean", weight)
    assert_number(text, answer)
    assert_gradients(folder, ["g.npy"], answer, ["f32"], shape)
