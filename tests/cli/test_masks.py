# Masks: what takes no part leaves no trace, in the number, the gradients and the losses, whatever stands there.
import numpy as np
import pytest

from expected import KINDS, LOSSES, REDUCTIONS, assert_array, assert_gradients, assert_losses, assert_number, booleans
from expected import eighths, expected, gradient_options, numbers, operands, save_operands
from folder import DTYPES, bits

SHAPE = (13, 211)


@pytest.fixture
def pair(folder):
    folder.p, folder.t = numbers(91, SHAPE), numbers(92, SHAPE)
    folder.save("p.npy", folder.p), folder.save("t.npy", folder.t)
    return folder


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("loss", LOSSES)
def test_values_and_gradients(folder, loss, reduction):
    arrays, mask = operands(loss, 93, SHAPE), booleans(93, SHAPE)
    command = [loss, *save_operands(folder, arrays), "--mask", folder.save("m.npy", mask), "--reduction", reduction]
    check(folder, loss, command, arrays, reduction, mask=mask)


def check(folder, loss, command, arrays, reduction, **how):
    answer = expected(loss, arrays, reduction, **how)
    outputs, files = gradient_options(loss)
    result = folder.run(*command, *outputs, "--none", "n.npy")
    assert result.status == 0 and result.err == "", result
    assert_gradients(folder, files, answer, ["f32"] * 3, SHAPE)
    assert_losses(folder, "n.npy", loss, arrays, **how)
    if reduction != "none":
        assert_number(result.out.strip(), answer)
        assert folder.answer(*command) == result.out.strip()


@pytest.mark.parametrize("of_weight", [None, SHAPE, (211,), (13, 1)], ids=str)
@pytest.mark.parametrize("of_mask", [SHAPE, (211,), (13, 1), (), (1, 1)], ids=str)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("loss", KINDS)
def test_broadcasting_and_weights(folder, loss, reduction, of_mask, of_weight):
    arrays, mask = operands(loss, 94, SHAPE), booleans(94, of_mask)
    mask.flat[0] = True
    how = {"mask": mask}
    command = [loss, *save_operands(folder, arrays), "--mask", folder.save("m.npy", mask), "--reduction", reduction]
    if of_weight is not None:
        how["weight"] = eighths(95, of_weight)
        command += ["--weight", folder.save("w.npy", how["weight"])]
    check(folder, loss, command, arrays, reduction, **how)


def test_types_and_layouts_have_the_same_bits(pair):
    mask = booleans(96, SHAPE)
    command = ["mse", "p.npy", "t.npy", "--grad", "g.npy", "--mask"]
    wanted = pair.hex(*command, pair.save("m.npy", mask))
    gradient = (pair / "g.npy").read_bytes()
    pair.save("bytes.npy", mask.astype("u1")), pair.save("fortran.npy", np.asfortranarray(mask))
    pair.save("any.npy", np.where(mask, np.random.default_rng(97).integers(1, 256, SHAPE), 0).astype("u1"))
    pair.save_tensors("f.safetensors", yes=mask, bytes=mask.astype("u1"), first=np.zeros(3, "u1"))
    names = ["bytes.npy", "fortran.npy", "any.npy", "f.safetensors:yes", "f.safetensors:bytes", "-"]
    for name in names:
        with open(pair / "m.npy", "rb") as file:
            assert pair.hex(*command, name, stdin=file) == wanted
        assert (pair / "g.npy").read_bytes() == gradient


@pytest.mark.parametrize("loss", KINDS)
def test_what_stands_there_does_not_matter(folder, loss):
    arrays, mask = operands(loss, 98, SHAPE), booleans(98, SHAPE)
    outputs, files = gradient_options(loss)
    command = [loss, "p.npy", "t.npy", "v.npy"][: 1 + len(arrays)] + ["--mask", folder.save("m.npy", mask)]
    found = []
    for filling in (0, np.nan, np.inf, -np.inf, 3e38):
        save_operands(folder, [np.where(mask, array, np.float32(filling)) for array in arrays])
        number = folder.hex(*command, *outputs, "--none", "n.npy")
        found.append([number] + [(folder / name).read_bytes() for name in [*files, "n.npy"]])
    assert all(other == found[0] for other in found)
    for name in [*files, "n.npy"]:
        assert (bits(folder.load(name))[~mask] == 0).all(), "a zero without a sign"


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_a_mask_of_everything_is_no_mask(pair, reduction):
    for shape in (SHAPE, (211,), ()):
        pair.save("m.npy", np.ones(shape, bool))
        command = ["mse", "p.npy", "t.npy", "--reduction", reduction, "--grad"]
        with_mask = pair.run(*command, "g.npy", "--mask", "m.npy")
        assert with_mask == pair.run(*command, "h.npy")
        assert (pair / "g.npy").read_bytes() == (pair / "h.npy").read_bytes()


@pytest.mark.parametrize("weight", [None, 1, 0, np.nan])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_nothing_takes_part(pair, reduction, weight):
    pair.save("m.npy", np.zeros((211,), bool))
    command = ["mse", "p.npy", "t.npy", "--mask", "m.npy", "--reduction", reduction]
    if weight is not None:
        pair.save("w.npy", np.full(SHAPE, weight, np.float32))
        command += ["--weight", "w.npy"]
    outputs, files = gradient_options("mse")
    result = pair.run(*command, *outputs, "--none", "n.npy")
    assert result.status == 0 and result.err == "", result
    for name in [*files, "n.npy"]:
        assert_array(pair.load(name), 0.0, "f32", SHAPE)
    assert result.out.strip() == {"mean": "nan", "none": ""}.get(reduction, "0")
    if reduction != "none":
        assert pair.answer(*command) == result.out.strip()


@pytest.mark.parametrize("type_name", DTYPES)
def test_the_mean_of_nothing_in_every_type(folder, type_name):
    folder.save("p.npy", numbers(99, SHAPE, type_name)), folder.save("m.npy", np.zeros((), bool))
    command = ["mse", "p.npy", "p.npy", "--mask", "m.npy"]
    assert folder.hex(*command, "--grad", "g.npy") == folder.hex(*command)
    assert folder.json(*command, "--grad", "g.npy")["type"] == type_name


def test_weights_that_the_mask_leaves_out(pair):
    """They count for nothing, so that the rest may be divided by its sum; and the rest may have none."""
    weight = np.ones(SHAPE, np.float32)
    weight[0], weight[1] = np.inf, -1000
    mask = np.ones(SHAPE, bool)
    mask[:2] = False
    pair.save("w.npy", weight), pair.save("m.npy", mask)
    command = ["mse", "p.npy", "t.npy", "--weight", "w.npy", "--mask", "m.npy", "--grad", "g.npy"]
    assert_number(pair.answer(*command), expected("mse", [pair.p, pair.t], "mean", weight, mask=mask))
    for bad in (0, -1, np.nan, np.inf):
        weight[2:] = bad
        pair.save("w.npy", weight)
        pair.refuse(*command, says=["w.npy", "take part"])
        pair.answer(*command, "--reduction", "sum")


def test_no_elements(folder):
    folder.save("p.npy", numbers(1, (0, 3))), folder.save("m.npy", np.ones((1, 3), bool))
    assert folder.answer("mse", "p.npy", "p.npy", "--mask", "m.npy", "--grad", "g.npy") == "nan"
    assert folder.load("g.npy").shape == (0, 3)


def test_several_windows(folder):
    """The mask is read twice, a window at a time."""
    shape = (2500, 3001)
    p, t, mask = numbers(88, shape), numbers(89, shape), booleans(90, shape)
    folder.save("p.npy", p), folder.save("t.npy", t), folder.save("m.npy", mask)
    folder.save("f.npy", np.asfortranarray(mask))
    x = np.where(mask, p - t, 0)
    wanted = np.square(x).sum(dtype=np.float64) / mask.sum()
    for name in ("m.npy", "f.npy"):
        text = folder.answer("mse", "p.npy", "t.npy", "--mask", name, "--grad", "g.npy")
        assert np.float32(text) == np.float32(wanted)
        assert_array(folder.load("g.npy"), np.where(mask, 2 * x * np.float32(1 / mask.sum()), 0), "f32", shape)


# ---------------------------------------------------------------- mistakes --


@pytest.mark.parametrize("shape", [(12,), (13,), (2, 13, 211)], ids=str)
def test_a_mask_has_no_say_in_the_shape(pair, shape):
    pair.save("m.npy", np.ones(shape, bool))
    pair.refuse("mse", "p.npy", "t.npy", "--mask", "m.npy", says=["m.npy", str(shape), str(SHAPE)])


@pytest.mark.parametrize("type_name", ["f2", "f4", "f8", "i1", "u2", "i4", "i8", "c8", "S1", "V2"])
def test_a_mask_of_another_type(pair, type_name):
    pair.save("m.npy", np.zeros(SHAPE, type_name))
    pair.refuse("mse", "p.npy", "t.npy", "--mask", "m.npy", says=["m.npy", type_name[-2:], "b1", "u1"])
    pair.refuse("mse", "p.npy", "t.npy", "--mask", "m.npy", "--bf16", says=["m.npy", "b1", "u1"])


@pytest.mark.parametrize("dtype, name", [("f4", "F32"), ("i8", "I64"), ("i1", "I8")])
def test_a_tensor_of_another_type(pair, dtype, name):
    pair.save_tensors("f.safetensors", m=np.zeros(SHAPE, dtype))
    pair.refuse("mse", "p.npy", "t.npy", "--mask", "f.safetensors:m", says=["f.safetensors", name, "BOOL", "U8"])


@pytest.mark.parametrize("dtype", ["?", "u1"])
def test_a_mask_is_no_operand(pair, dtype):
    pair.save("m.npy", np.zeros(SHAPE, dtype)), pair.save_tensors("f.safetensors", m=np.zeros(SHAPE, dtype))
    for name in ("m.npy", "f.safetensors:m"):
        for command in ([name, "t.npy"], ["p.npy", name], ["p.npy", "t.npy", "--weight", name]):
            pair.refuse("mse", *command, says=name.split(":")[0])
