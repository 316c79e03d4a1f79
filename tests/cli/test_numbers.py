# How a number is printed: digits that read back as the same bits, the bits themselves, and JSON.
import math
import re

import numpy as np
import pytest

from expected import TYPES, bits_of, exact, numbers, options, read_number
from folder import DTYPES, bits

#: digits that are enough to tell a number from its neighbours
MOST_DIGITS = {"f16": 5, "bf16": 4, "f32": 9, "f64": 17}


def awkward(type_name):
    """Numbers of a type that are hard to print: the ends of its range, powers of two and ten, and random bits."""
    dtype = DTYPES[type_name]
    word = np.dtype(f"u{dtype.itemsize}")
    infinity = int(bits(np.array(np.inf).astype(dtype)))
    known = np.array([0, 1, 0.1, 1 / 3, 2 / 3, 0.5, 5, 123, 1e4, 6e4]).astype(dtype)
    ends = np.array([1, 2, 3, infinity - 1], word).view(dtype)
    exponents = range(-8 * dtype.itemsize, 9, 3)
    with np.errstate(over="ignore"):
        powers = np.array([base**exponent for base in (2.0, 10.0) for exponent in exponents]).astype(dtype)
    powers = powers[np.isfinite(exact(powers))]
    anything = np.random.default_rng(12).integers(0, infinity, 20).astype(word).view(dtype)
    return np.concatenate([known, ends, powers, anything])


@pytest.mark.parametrize("type_name", TYPES)
def test_digits_read_back_as_the_same_bits(folder, type_name):
    """With beta = 0, smooth L1 is the absolute error: of one number and 0 it is the number."""
    folder.save("zero.npy", np.zeros(1, DTYPES[type_name]))
    for number in awkward(type_name):
        folder.save("p.npy", np.array([number]))
        text = folder.answer("smooth_l1", "p.npy", "zero.npy", "--beta", "0")
        assert re.fullmatch(r"\d+(\.\d+)?(e[+-]?\d+)?", text), text
        assert int(bits(read_number(text, type_name))) == int(bits(number)), f"{text} for {number!r}"
        digits = re.sub(r"e.*|\.", "", text).strip("0")
        assert len(digits) <= MOST_DIGITS[type_name], f"{text} has more digits than it needs"


@pytest.mark.parametrize("type_name", TYPES)
def test_bits(folder, type_name):
    folder.save("zero.npy", np.zeros(1, DTYPES[type_name]))
    for number in awkward(type_name)[::5]:
        folder.save("p.npy", np.array([number]))
        text = folder.hex("smooth_l1", "p.npy", "zero.npy", "--beta", "0")
        assert text == f"0x{int(bits(number)):0{2 * DTYPES[type_name].itemsize}x}"


def test_negative_numbers(folder):
    folder.save("p.npy", np.array([0.1], np.float32)), folder.save("t.npy", np.zeros(1, np.float32))
    folder.save("w.npy", np.full(1, -1, np.float32))
    text = folder.answer("smooth_l1", "p.npy", "t.npy", "--beta", "0", "--weight", "w.npy", "--reduction", "sum")
    assert np.float32(text) == np.float32(-0.1) and len(text) <= len("-0.100000001")


# ------------------------------------------------------------------- JSON --

KEYS = "loss parameters reduction value bits type shape elements device threads seconds bytes grad none".split()
KEYS += ["gradients"]


def test_json(folder):
    p, t = numbers(1, (30, 40)), numbers(2, (30, 40))
    folder.save("p.npy", p), folder.save("t.npy", t)
    reply = folder.json("smooth_l1", "p.npy", "t.npy", "--beta", "0.5", "--threads", "1")
    assert sorted(reply) == sorted(KEYS)
    text = folder.answer("smooth_l1", "p.npy", "t.npy", "--beta", "0.5")
    assert reply["loss"] == "smooth_l1" and reply["reduction"] == "mean" and reply["type"] == "f32"
    assert reply["parameters"] == {"beta": 0.5}
    assert read_number(reply["value"], "f32") == read_number(text, "f32") and reply["bits"] == bits_of(text, "f32")
    assert reply["shape"] == [30, 40] and reply["elements"] == 1200
    assert reply["device"] == "cpu" and reply["threads"] == 1
    assert 0 <= reply["seconds"] < 60
    assert p.nbytes + t.nbytes <= reply["bytes"] <= p.nbytes + t.nbytes + 1000  # headers may count, or not
    assert reply["grad"] is None and reply["none"] is None
    assert reply["gradients"] == {"prediction": None, "target": None}


@pytest.mark.parametrize(
    "loss, given, wanted",
    [("mse", {}, {}), ("hinge", {}, {"margin": 1}), ("hinge", {"margin": -0.25}, {"margin": -0.25})],
    ids=str,
)
def test_json_names_the_parameters(folder, loss, given, wanted):
    folder.save("p.npy", numbers(1, 5)), folder.save("t.npy", numbers(2, 5))
    assert folder.json(loss, "p.npy", "t.npy", *options(given))["parameters"] == wanted


def test_json_has_no_word_for_infinity(folder):
    """An infinite parameter is allowed, and the object must still be JSON."""
    folder.save("p.npy", numbers(1, 5)), folder.save("t.npy", numbers(2, 5))
    assert folder.json("smooth_l1", "p.npy", "t.npy", "--beta", "inf")["parameters"] == {"beta": "inf"}
    assert folder.json("hinge", "p.npy", "t.npy", "--margin=-inf")["parameters"] == {"margin": "-inf"}


def test_json_names_the_outputs(folder):
    p = numbers(1, (30, 40))
    folder.save("p.npy", p), folder.save("t.npy", numbers(2, (30, 40)))
    reply = folder.json("mse", "p.npy", "t.npy", "--grad", "g.npy", "--none", folder / "n.npy")
    assert folder.path / reply["grad"] == folder / "g.npy" and folder.path / reply["none"] == folder / "n.npy"
    assert 4 * p.nbytes <= reply["bytes"] <= 4 * p.nbytes + 2000
    reply = folder.json("mse", "p.npy", "t.npy", "--grad-target", "h.npy")
    assert reply["grad"] is None and reply["gradients"] == {"prediction": None, "target": "h.npy"}
    assert 3 * p.nbytes <= reply["bytes"] <= 3 * p.nbytes + 1000


def test_json_without_a_reduction(folder):
    folder.save("p.npy", numbers(1, 5, "f16")), folder.save("t.npy", numbers(2, 5, "bf16"))
    reply = folder.json("mse", "p.npy", "t.npy", "--reduction", "none", "--none", "n.npy")
    assert sorted(reply) == sorted(KEYS)
    assert reply["reduction"] == "none" and reply["value"] is None and reply["bits"] is None
    assert reply["type"] == "f32" and folder.load("n.npy").dtype == np.float32


@pytest.mark.parametrize("type_name", TYPES)
def test_json_numbers_read_back_as_the_same_bits(folder, type_name):
    folder.save("zero.npy", np.zeros(1, DTYPES[type_name]))
    for number in awkward(type_name)[::7]:
        folder.save("p.npy", np.array([number]))
        reply = folder.json("smooth_l1", "p.npy", "zero.npy", "--beta", "0")
        assert int(bits(read_number(reply["value"], type_name))) == int(bits(number)) == int(reply["bits"], 16)


def test_json_numbers_are_short(folder):
    """As few digits as tell a parameter from its neighbours."""
    folder.save("p.npy", numbers(1, 5)), folder.save("t.npy", numbers(2, 5))
    assert '"parameters": {"beta": 0.1}' in folder.run("smooth_l1", "p.npy", "t.npy", "--beta", "0.1", "--json").out
    reply = folder.json("smooth_l1", "p.npy", "t.npy", "--beta", repr(1 / 3))
    assert reply["parameters"] == {"beta": 1 / 3}


def test_json_escapes_names(folder):
    folder.save("p.npy", numbers(1, 5)), folder.save("t.npy", numbers(2, 5))
    for name in ('quo"te.npy', "back\\slash.npy", "new\nline.npy", "tab\t.npy", "größe.npy", "bell\a.npy"):
        assert folder.path / folder.json("mse", "p.npy", "t.npy", "--grad", name)["grad"] == folder / name
        assert folder.load(name).shape == (5,)


def test_bytes_count_weights_as_often_as_they_are_read(folder):
    p, w = numbers(1, 50_000), np.ones(50_000, np.float32)
    folder.save("p.npy", p), folder.save("t.npy", numbers(2, 50_000)), folder.save("w.npy", w)
    command = ["mse", "p.npy", "t.npy", "--weight", "w.npy"]
    assert math.isclose(folder.json(*command)["bytes"], 3 * p.nbytes, rel_tol=0.01)
    assert math.isclose(folder.json(*command, "--grad", "g.npy")["bytes"], 5 * p.nbytes, rel_tol=0.01)
    folder.save("m.npy", w > 0)
    command += ["--mask", "m.npy"]
    assert math.isclose(folder.json(*command)["bytes"], 3.25 * p.nbytes, rel_tol=0.01)
    assert math.isclose(folder.json(*command, "--grad", "g.npy")["bytes"], 5.5 * p.nbytes, rel_tol=0.01)
