# The number: every loss, reduction, parameter and type against the oracle, and broadcasting.
import math

import numpy as np
import pytest

from expected import FEW, LOSSES, TYPES, assert_number, bits_of, cases, eighths, expected, numbers, operands, options
from expected import operand_names, save_operands
from folder import DTYPES, bits

SHAPE = (13, 211)  # more than two tiles, and no multiple of anything
THREE = [loss for loss in LOSSES if len(operand_names(loss)) == 3]


@pytest.mark.parametrize("reduction", ["mean", "sum", "batchmean"])
@pytest.mark.parametrize("loss, given", list(cases()), ids=str)
def test_losses_parameters_and_reductions(folder, loss, given, reduction):
    arrays = operands(loss, 1, SHAPE)
    command = [loss, *save_operands(folder, arrays), *options(given), "--reduction", reduction]
    text = folder.answer(*command)
    assert_number(text, expected(loss, arrays, reduction, given=given))
    assert folder.hex(*command) == bits_of(text, "f32")


def test_the_mean_is_the_default(folder):
    folder.save("p.npy", numbers(1, SHAPE)), folder.save("t.npy", numbers(2, SHAPE))
    assert folder.hex("mse", "p.npy", "t.npy") == folder.hex("mse", "p.npy", "t.npy", "--reduction", "mean")


@pytest.mark.parametrize("of_target", TYPES)
@pytest.mark.parametrize("of_prediction", TYPES)
@pytest.mark.parametrize("loss", LOSSES)
def test_types(folder, loss, of_prediction, of_target):
    """A third operand has the target's type."""
    arrays = operands(loss, 3, SHAPE, [of_prediction, of_target])
    answer = expected(loss, arrays)
    reply = folder.json(loss, *save_operands(folder, arrays))
    assert reply["type"] == answer.result_type
    assert_number(repr(reply["value"]), answer)
    assert reply["bits"] == bits_of(reply["value"], answer.result_type)


@pytest.mark.parametrize("size", [0, 1, 127, 128, 129, 1023, 1024, 1025, 2048, 65537, 300_001])
def test_sizes_around_lanes_and_tiles(folder, size):
    p, t = numbers(5, size), numbers(6, size)
    text = folder.answer("smooth_l1", folder.save("p.npy", p), folder.save("t.npy", t))
    assert_number(text, expected("smooth_l1", [p, t]))


# ----------------------------------------------------------- broadcasting --

SHAPES = [
    ((40, 50), (50,)),  # a row for all
    ((40, 50), (40, 1)),  # a number a row
    ((40, 50), ()),
    ((40, 50), (1,)),
    ((40, 50), (1, 1, 1)),
    ((40, 1), (50,)),
    ((3, 1, 50), (40, 1)),
    ((2, 3, 1, 5), (1, 3, 4, 1)),
    ((5000,), (1,)),
    ((1030, 3), (3,)),
    ((3, 2050), (2050,)),
    ((0, 5), (5,)),
    ((3, 1), (0,)),
    ((1,) * 15 + (7,), (7,)),
]


@pytest.mark.parametrize("turned", [False, True], ids=["", "turned"])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_broadcasting(folder, shapes, turned):
    a, b = reversed(shapes) if turned else shapes
    p, t = numbers(7, a), numbers(8, b)
    reply = folder.json("mse", folder.save("p.npy", p), folder.save("t.npy", t), "--reduction", "sum")
    common = np.broadcast_shapes(a, b)
    assert reply["shape"] == list(common) and reply["elements"] == math.prod(common)
    assert_number(repr(reply["value"]), expected("mse", [p, t], "sum"))
    # The bits are those of arrays that were broadcast beforehand.
    folder.save("whole_p.npy", np.ascontiguousarray(np.broadcast_to(p, common)))
    folder.save("whole_t.npy", np.ascontiguousarray(np.broadcast_to(t, common)))
    assert reply["bits"] == folder.hex("mse", "whole_p.npy", "whole_t.npy", "--reduction", "sum")


@pytest.mark.parametrize(
    "shapes",
    [[(40, 50), (40, 50), (50,)], [(50,), (), (40, 1)], [(), (), (40, 50)], [(3, 1, 1), (50,), (40, 1)]],
    ids=str,
)
@pytest.mark.parametrize("loss", THREE)
def test_broadcasting_of_a_third_operand(folder, loss, shapes):
    """It takes part in the common shape as the others do."""
    arrays = operands(loss, 9, shapes)
    reply = folder.json(loss, *save_operands(folder, arrays), "--grad", "g.npy")
    common = np.broadcast_shapes(*(array.shape for array in arrays))
    assert reply["shape"] == list(common) and folder.load("g.npy").shape == common
    assert_number(repr(reply["value"]), expected(loss, arrays))
    whole = [np.ascontiguousarray(np.broadcast_to(array, common)) for array in arrays]
    assert folder.hex(loss, *save_operands(folder, whole)) == reply["bits"]


# -------------------------------------------------------------- batchmean --


@pytest.mark.parametrize("shape, first", [((), 1), ((7,), 7), ((1, 5), 1), ((5, 1, 3), 5), ((4, 0), 4)], ids=str)
def test_a_batchmean_is_divided_by_the_first_extent(folder, shape, first):
    p, t = numbers(16, shape), numbers(17, shape)
    command = ["mse", folder.save("p.npy", p), folder.save("t.npy", t), "--reduction"]
    reply = folder.json(*command, "batchmean", "--grad", "g.npy")
    assert reply["reduction"] == "batchmean"
    assert_number(repr(reply["value"]), expected("mse", [p, t], "batchmean"))
    assert np.isclose(reply["value"] * first, float(folder.answer(*command, "sum")), rtol=1e-6)
    gradient = (p - t) * np.float32(2) * np.float32(1 / first)
    assert folder.load("g.npy").tobytes() == np.asarray(gradient, np.float32).tobytes()


def test_a_batchmean_of_no_rows(folder):
    folder.save("p.npy", numbers(18, (0, 3))), folder.save("t.npy", numbers(19, (0, 3)))
    assert folder.answer("mse", "p.npy", "t.npy", "--reduction", "batchmean", "--grad", "g.npy") == "nan"


def test_the_first_extent_is_that_of_the_common_shape(folder):
    p, t = numbers(20, (5,)), numbers(21, (4, 1))
    folder.save("p.npy", p), folder.save("t.npy", t)
    text = folder.answer("mse", "p.npy", "t.npy", "--reduction", "batchmean")
    assert_number(text, expected("mse", [p, t], "batchmean"))


# ---------------------------------------------------------- awkward cases --


@pytest.mark.parametrize("type_name", TYPES)
@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 2**40), (2, 0, 3)], ids=str)
def test_empty_arrays(folder, shape, type_name):
    empty = np.zeros(shape, DTYPES[type_name])
    command = ["hinge", folder.save("p.npy", empty), folder.save("t.npy", empty)]
    assert folder.answer(*command) == "nan"
    assert float(folder.answer(*command, "--reduction", "sum")) == 0
    assert int(folder.hex(*command, "--reduction", "sum"), 16) == 0


@pytest.mark.parametrize("type_name", TYPES)
def test_arrays_without_dimensions(folder, type_name):
    p, t = (np.array(number, DTYPES[type_name]) for number in (3.0, 1.0))
    reply = folder.json("mse", folder.save("p.npy", p), folder.save("t.npy", t))
    assert reply["value"] == 4 and reply["shape"] == [] and reply["elements"] == 1


INFINITE = [
    ([np.nan, 1], [0, 0], "nan"),
    ([np.inf, 1], [0, 0], "inf"),
    ([np.inf, 1], [np.inf, 0], "nan"),
    ([3e38, 1], [-3e38, 0], "inf"),
]


@pytest.mark.parametrize("p, t, wanted", INFINITE, ids=str)
def test_nan_and_infinity(folder, p, t, wanted):
    folder.save("p.npy", np.array(p, np.float32)), folder.save("t.npy", np.array(t, np.float32))
    assert folder.answer("mse", "p.npy", "t.npy") == wanted
    reply = folder.json("mse", "p.npy", "t.npy")
    assert reply["value"] == wanted
    assert reply["bits"] == folder.hex("mse", "p.npy", "t.npy")
    assert reply["bits"] == {"nan": "0x7fc00000", "inf": "0x7f800000"}[wanted]


def test_minus_infinity(folder):
    folder.save("p.npy", np.array([np.inf], np.float64)), folder.save("t.npy", np.zeros(1))
    folder.save("w.npy", -np.ones(1))
    command = ["mse", "p.npy", "t.npy", "--weight", "w.npy", "--reduction", "sum"]
    assert folder.answer(*command) == "-inf"
    assert folder.json(*command)["value"] == "-inf"
    assert folder.hex(*command) == "0xfff0000000000000"


@pytest.mark.parametrize("type_name, canonical", [("f16", "7e00"), ("bf16", "7fc0"), ("f64", "7ff8000000000000")])
def test_nan_has_one_face(folder, type_name, canonical):
    p = np.zeros(5, DTYPES[type_name])
    bits_of_p = p.view(f"u{p.itemsize}")
    bits_of_p[2] = ~np.zeros(1, bits_of_p.dtype)[0]  # a NaN with all bits set
    assert folder.hex("mse", folder.save("p.npy", p), folder.save("t.npy", np.zeros_like(p))) == f"0x{canonical}"


def test_a_sum_too_large_for_the_type(folder):
    folder.save("p.npy", np.full(100, 200, np.float16)), folder.save("t.npy", np.zeros(100, np.float16))
    assert folder.answer("mse", "p.npy", "t.npy", "--reduction", "sum") == "inf"
    assert float(folder.answer("mse", "p.npy", "t.npy")) == 40000


# -------------------------------------------------------------- the package --


def test_the_bits_are_those_of_the_python_package(folder):
    onepass = pytest.importorskip("onepass", reason="the Python package is not installed here")
    p, t, weight = numbers(9, (200, 311)), numbers(10, (200, 311)), eighths(11, (200, 311))
    command = ["mse", folder.save("p.npy", p), folder.save("t.npy", t)]
    value, gradient = onepass.value_and_grad("mse", p, t, weight=weight)
    folder.save("w.npy", weight)
    got = folder.hex(*command, "--weight", "w.npy", "--grad", "g.npy")
    assert got == f"0x{int(bits(value)):08x}"
    assert folder.load("g.npy").tobytes() == gradient.tobytes()
    for loss in FEW:
        value = onepass.value_and_grad(loss, p, t, reduction="sum")[0]
        assert folder.hex(loss, *command[1:], "--reduction", "sum") == f"0x{int(bits(value)):08x}"
