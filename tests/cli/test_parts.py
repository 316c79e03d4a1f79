# A whole in parts: onepass LOSS ... --part I/N --state FILE, and onepass merge, which has the bits of the whole call.
import os
import random
import signal
import struct
import subprocess
import time

import numpy as np
import pytest

from expected import ROW_LOSSES, VECTOR_LOSSES, operand_names
from folder import tool

PARTS = [1, 2, 3, 7]


def write_parts(folder, command, count):
    names = [f"part{i}.onepass" for i in range(1, count + 1)]
    for i, name in enumerate(names, 1):
        folder.quiet(*command, "--part", f"{i}/{count}", "--state", name)
    return names


def check(folder, command, counts=PARTS):
    """The whole call, and its parts in any order, print the same bits."""
    wanted = folder.hex(*command)
    for count in counts:
        names = write_parts(folder, command, count)
        random.Random(count).shuffle(names)
        assert folder.hex("merge", *names) == wanted
    assert folder.answer("merge", *names) == folder.answer(*command)


def numbers(seed, shape, dtype="f4"):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


@pytest.mark.parametrize("size", [0, 1, 3, 1023, 1024, 1025, 5000])
def test_sizes(folder, size):
    folder.save("p.npy", numbers(1, size)), folder.save("t.npy", numbers(2, size))
    check(folder, ["mse", "p.npy", "t.npy"])


@pytest.mark.parametrize("types", ["f2f2", "f4f4", "f8f8", "f2f8"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "batchmean"])
def test_types(folder, types, reduction):
    folder.save("p.npy", numbers(1, (61, 83), types[:2])), folder.save("t.npy", numbers(2, (61, 83), types[2:]))
    check(folder, ["smooth_l1", "p.npy", "t.npy", "--beta", 0.3, "--reduction", reduction], [3])


def test_layouts(folder):
    """Broadcasting, Fortran order, the other byte order: parts begin within rows."""
    folder.save("p.npy", np.asfortranarray(numbers(1, (70, 90)))), folder.save("t.npy", numbers(2, (90,)))
    folder.save("u.npy", numbers(2, (70, 1)).astype(">f4")), folder.save("c.npy", numbers(1, (70, 90)))
    check(folder, ["mse", "p.npy", "t.npy"]), check(folder, ["l1", "p.npy", "u.npy"])
    whole = folder.hex("mse", "c.npy", "t.npy")
    first, _ = write_parts(folder, ["mse", "p.npy", "t.npy"], 2)
    _, second = write_parts(folder, ["mse", "c.npy", "t.npy"], 2)
    assert folder.hex("merge", first, second) == whole  # the same numbers in another order of bytes


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_weights_and_masks(folder, weighted, masked):
    rng = np.random.default_rng(5)
    folder.save("p.npy", numbers(1, 3000)), folder.save("t.npy", numbers(2, 3000))
    folder.save("w.npy", rng.random(3000).astype("f4")), folder.save("m.npy", rng.random(3000) < 0.7)
    more = ["--weight", "w.npy"] * weighted + ["--mask", "m.npy"] * masked
    check(folder, ["mse", "p.npy", "t.npy", *more])


@pytest.mark.parametrize("axis", [1, 0])
def test_rows(folder, axis):
    labels = np.random.default_rng(3).integers(0, 9, 2500)
    labels[::7] = -100
    logits = numbers(1, (2500, 9))
    folder.save("l.npy", logits if axis else np.ascontiguousarray(logits.T)), folder.save("y.npy", labels)
    folder.save("w.npy", np.linspace(0.5, 2, 9).astype("f4"))
    command = ["cross_entropy", "l.npy", "y.npy", "--axis", axis, "--label-smoothing", 0.1, "--class-weight", "w.npy"]
    check(folder, command), check(folder, [*command, "--reduction", "sum"], [3])


def test_vectors(folder):
    loss = "triplet_margin"
    assert loss in VECTOR_LOSSES and "cross_entropy" in ROW_LOSSES
    files = [folder.save(f"{name}.npy", numbers(i, (2100, 5))) for i, name in enumerate(operand_names(loss))]
    check(folder, [loss, *files, "--margin", 0.5])
    folder.save("y.npy", np.arange(2100) % 5), folder.save("w.npy", np.linspace(0.5, 2, 5).astype("f4"))
    check(folder, ["multi_margin", files[0], "y.npy", "--class-weight", "w.npy"])
    folder.save("lists.npy", np.arange(2100 * 5).reshape(2100, 5) % 7 % 6 - 1)
    check(folder, ["multilabel_margin", files[0], "lists.npy"])


def test_json(folder):
    folder.save("p.npy", numbers(1, 3000, "f8")), folder.save("t.npy", numbers(2, 3000))
    command = ["huber", "p.npy", "t.npy", "--delta", 0.5]
    whole, merged = folder.json(*command), folder.json("merge", *write_parts(folder, command, 3))
    assert merged == {**{key: whole[key] for key in merged if key != "parts"}, "parts": 3}
    assert merged["type"] == "f64" and merged["parameters"] == {"delta": 0.5} and merged["elements"] == 3000
    command += ["--reduction", "batchmean"]
    whole, merged = folder.json(*command), folder.json("merge", *write_parts(folder, command, 2))
    assert (merged["reduction"], merged["divisor"], merged["bits"]) == ("mean", 3000, whole["bits"])


def test_a_part_looks_at_its_own_files_alone(folder):
    """NaN in one half comes out of that half."""
    p = numbers(1, 4000)
    p[3999] = np.nan
    folder.save("p.npy", p), folder.save("t.npy", numbers(2, 4000))
    write_parts(folder, ["mse", "p.npy", "t.npy"], 2)
    p[3999] = 0
    folder.save("p.npy", p)
    folder.quiet("mse", "p.npy", "t.npy", "--part", "2/2", "--state", "part2.onepass")
    assert folder.hex("merge", "part1.onepass", "part2.onepass") == folder.hex("mse", "p.npy", "t.npy")


def test_states_are_small(folder):
    for dtype, most in (("f4", 20000), ("f8", 40000)):
        files = [folder.save(f"{name}.npy", numbers(1, 300000, dtype) ** 2) for name in "ptw"]
        for name in write_parts(folder, ["mse", *files[:2], "--weight", files[2]], 3):
            assert (folder / name).stat().st_size < most


# -------------------------------------------------------------------- outputs --


def check_outputs(folder, command, outputs, count=3, moved=None):
    """What the parts write, one behind the other, is what the whole call writes, bit by bit."""
    def written(name):
        return [option for output in outputs for option in (output, f"{name}{output}.npy")]

    wanted = folder.hex(*command, *written("whole"))
    names = [f"part{i}.onepass" for i in range(1, count + 1)]
    for i, name in enumerate(names, 1):
        folder.quiet(*command, *written(f"part{i}"), "--part", f"{i}/{count}", "--state", name)
    assert folder.hex("merge", *names) == wanted
    for output in outputs:
        whole = folder.load(f"whole{output}.npy")
        parts = [folder.load(f"part{i}{output}.npy") for i in range(1, count + 1)]
        if moved is not None and output.startswith("--grad"):
            whole = np.moveaxis(whole, moved, -1)
            whole = whole.reshape(-1, whole.shape[-1])
        found = np.concatenate(parts)
        assert found.dtype == whole.dtype and found.tobytes() == whole.tobytes(), output
        assert found.shape == (whole.shape if moved is not None and output.startswith("--grad") else (whole.size,))


@pytest.mark.parametrize("reduction", ["mean", "sum", "batchmean"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_outputs_of_elements(folder, reduction, weighted, masked):
    folder.save("p.npy", numbers(1, (70, 51))), folder.save("t.npy", numbers(2, (51,), "f8"))
    folder.save("w.npy", numbers(3, (70, 51)) ** 2), folder.save("m.npy", numbers(4, (70, 1)) > 0)
    command = ["smooth_l1", "p.npy", "t.npy", "--beta", 0.3, "--reduction", reduction]
    command += ["--weight", "w.npy"] * weighted + ["--mask", "m.npy"] * masked
    check_outputs(folder, command, ["--grad", "--grad-target", "--none"])


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("axis", [2, 1])
@pytest.mark.parametrize("more", [[], ["--class-weight", "c.npy", "--weight", "w.npy"]], ids=str)
def test_outputs_of_rows(folder, reduction, axis, more):
    """The classes come last, and all rows one behind the other."""
    folder.save("l.npy", numbers(1, (6, 40, 40))), folder.save("c.npy", np.linspace(0.5, 2, 40).astype("f4"))
    folder.save("y.npy", np.random.default_rng(1).integers(0, 40, (6, 40)))
    folder.save("w.npy", numbers(3, (6, 40)) ** 2)
    command = ["cross_entropy", "l.npy", "y.npy", "--axis", axis, "--ignore-index", 3, "--reduction", reduction, *more]
    check_outputs(folder, command, ["--grad", "--none", "--lse", "--predicted"], moved=axis)


def test_outputs_of_vectors(folder):
    folder.save("a.npy", numbers(1, (300, 7))), folder.save("b.npy", numbers(2, (300, 7)))
    folder.save("c.npy", numbers(3, 7))
    outputs = ["--grad", "--grad-negative", "--none"]
    check_outputs(folder, ["triplet_margin", "a.npy", "b.npy", "c.npy"], outputs, moved=1)


def test_outputs_of_more_parts_than_rows(folder):
    folder.save("l.npy", numbers(1, (3, 9))), folder.save("y.npy", np.array([1, -100, 2]))
    check_outputs(folder, ["cross_entropy", "l.npy", "y.npy"], ["--grad", "--predicted"], count=7, moved=1)


def test_gradients_where_nothing_takes_part(folder):
    """A mean of nothing is NaN, and its gradients are zeros."""
    folder.save("l.npy", numbers(1, (5, 3))), folder.save("y.npy", np.full(5, -100))
    folder.save("m.npy", np.zeros(5, "?"))
    folder.save("c.npy", np.ones(3, "f4")), folder.save("w.npy", np.ones(5, "f4"))
    for command in (["cross_entropy", "l.npy", "y.npy"],
                    ["cross_entropy", "l.npy", "y.npy", "--class-weight", "c.npy", "--lse", "lse.npy"],
                    ["cosine_similarity", "l.npy", "l.npy", "--mask", "m.npy"],
                    ["mse", "w.npy", "w.npy", "--mask", "m.npy"],
                    ["mse", "w.npy", "w.npy", "--mask", "m.npy", "--weight", "w.npy", "--none", "n.npy"]):
        command += ["--grad", "g.npy"]
        check(folder, command, [2])
        assert folder.answer("merge", *write_parts(folder, command, 2)) == "nan"
        assert len(folder.load("g.npy")) == 3 and not folder.load("g.npy").any()  # the second part's


def test_gradients_of_some_parts(folder):
    """Which know what the mean is divided by, and the others do not."""
    folder.save("l.npy", numbers(1, (30, 9))), folder.save("y.npy", np.arange(30) % 9)
    command = ["cross_entropy", "l.npy", "y.npy"]
    write_parts(folder, command, 2)
    folder.quiet(*command, "--part", "1/2", "--state", "part1.onepass", "--grad", "g.npy")
    folder.refuse("merge", "part1.onepass", "part2.onepass", says="the divisor is 30 in the first and 0 in the second")


# ------------------------------------------------------------------- refusals --


@pytest.fixture
def parts(folder):
    folder.save("p.npy", numbers(1, 3000)), folder.save("t.npy", numbers(2, 3000))
    folder.save("w.npy", np.ones(3000, "f4")), folder.save("short.npy", numbers(2, 2999))
    folder.save("wide.npy", numbers(2, 3000, "f8")), folder.save("half.npy", numbers(1, 3000, "f2"))
    folder.save("m.npy", np.ones(3000, "u1")), folder.save("one.npy", numbers(2, 1))
    folder.save("square.npy", numbers(2, (50, 60)))
    write_parts(folder, ["mse", "p.npy", "t.npy"], 12)
    return folder


def test_missing(parts):
    names = [f"part{i}.onepass" for i in range(1, 13)]
    parts.refuse("merge", *names[:2], *names[3:], says="part 3 of 12 is missing")
    parts.refuse("merge", *names[1:11], says="parts 1 and 12 of 12 are missing")
    parts.refuse("merge", *names[:2], says="parts 3, 4, 5, 6, 7, 8, 9, 10 and 2 more of 12 are missing")
    parts.refuse("merge", says="no part is given")
    parts.refuse("merge", "none.onepass", says=["none.onepass", "No such file"])


def test_missing_and_empty(folder):
    """Two elements in five parts: those without any are missed, and their types compared, too."""
    folder.save("p.npy", numbers(1, 2)), folder.save("half.npy", numbers(1, 2, "f2"))
    write_parts(folder, ["mse", "p.npy", "p.npy"], 5)
    folder.refuse("merge", "part3.onepass", "part5.onepass", says="parts 1, 2 and 4 of 5 are missing")
    for i in (1, 3):
        names = [f"part{k}.onepass" for k in range(1, 6)]
        folder.quiet("mse", "half.npy", "half.npy", "--part", f"{i}/5", "--state", names[i - 1])
        folder.refuse("merge", *names, says=[names[i - 1], "the type of the answer is"])
        folder.refuse("merge", *names[::-1], says=[names[i - 1], "the type of the answer is"])
        write_parts(folder, ["mse", "p.npy", "p.npy"], 5)


def test_given_twice(parts):
    os.link(parts / "part3.onepass", parts / "copy.onepass")
    parts.refuse("merge", "part3.onepass", "part1.onepass", "copy.onepass", says=["part3", "copy", "both part 3 of 12"])


@pytest.mark.parametrize(
    "command, says",
    [
        (["l1", "p.npy", "t.npy"], "the loss is mse in the first and l1 in the second"),
        (["mse", "p.npy", "t.npy", "--reduction", "sum"], "the reduction is mean"),
        (["mse", "p.npy", "t.npy", "--reduction", "batchmean"], "the divisor is 0 in the first and 3000"),
        (["mse", "short.npy", "short.npy"], "of 3000 elements, the second of 2999"),
        (["mse", "p.npy", "wide.npy"], "the type of the answer is f32 in the first and f64"),
        (["mse", "half.npy", "half.npy"], "the type of the answer is f32 in the first and f16"),
        (["mse", "p.npy", "t.npy", "--weight", "w.npy"], "the weight is not there in the first and f32 of shape"),
        (["mse", "p.npy", "t.npy", "--mask", "m.npy"], "the mask is not there in the first and bool of shape (3000,)"),
        (["mse", "p.npy", "one.npy"], "the target is f32 of shape (3000,) in the first and f32 of shape (1,)"),
        (["mse", "square.npy", "square.npy"], "(3000,) in the first and f32 of shape (50, 60)"),
        (["mse", "half.npy", "t.npy"], "the prediction is f32 of shape (3000,) in the first and f16"),
    ],
    ids=str,
)
def test_another_whole(parts, command, says):
    parts.quiet(*command, "--part", "2/12", "--state", "other.onepass")
    parts.refuse("merge", "part1.onepass", "other.onepass", says=["other.onepass", says])


def refuse_a_foreign_part(folder, command, other, says=("foreign.onepass", "have other numbers")):
    """Each of three parts, computed from other files than the two others."""
    names = write_parts(folder, command, 3)
    for i, name in enumerate(names, 1):
        folder.quiet(*other, "--part", f"{i}/3", "--state", "foreign.onepass")
        those = [one if one != name else "foreign.onepass" for one in names]
        folder.refuse("merge", *those, says=says)
        folder.refuse("merge", *those[::-1], says=says)
    folder.hex("merge", *names)


def test_files_of_the_same_shape(folder):
    for name, seed in (("p", 1), ("t", 2), ("other", 3)):
        folder.save(f"{name}.npy", numbers(seed, (50, 60)))
    folder.save("w.npy", np.full((50, 60), 2, "f4")), folder.save("v.npy", np.full((50, 60), 3, "f4"))
    folder.save("row.npy", numbers(4, 60)), folder.save("rows.npy", numbers(5, 60))
    refuse_a_foreign_part(folder, ["mse", "p.npy", "t.npy"], ["mse", "other.npy", "t.npy"])
    refuse_a_foreign_part(folder, ["mse", "p.npy", "t.npy"], ["mse", "p.npy", "other.npy"])
    refuse_a_foreign_part(folder, ["mse", "p.npy", "row.npy"], ["mse", "p.npy", "rows.npy"])
    command = ["l1", "p.npy", "t.npy", "--reduction", "sum"]
    refuse_a_foreign_part(folder, [*command, "--weight", "w.npy"], [*command, "--weight", "v.npy"])


def test_rows_of_the_same_shape(folder):
    folder.save("l.npy", numbers(1, (9, 40, 40))), folder.save("m.npy", numbers(2, (9, 40, 40)))
    folder.save("y.npy", np.random.default_rng(1).integers(0, 40, (9, 40)))
    folder.save("z.npy", np.random.default_rng(2).integers(0, 40, (9, 40)))
    command = ["cross_entropy", "l.npy", "y.npy", "--axis", 2]
    refuse_a_foreign_part(folder, command, ["cross_entropy", "m.npy", "y.npy", "--axis", 2])
    refuse_a_foreign_part(folder, command, ["cross_entropy", "l.npy", "z.npy", "--axis", 2])
    refuse_a_foreign_part(folder, command, ["cross_entropy", "l.npy", "y.npy"], "the axis is")
    command = ["kl_div_with_logits", "l.npy", "m.npy"]
    refuse_a_foreign_part(folder, command, ["kl_div_with_logits", "l.npy", "l.npy"])


def test_long_rows_of_the_same_shape(folder):
    """Of which the first numbers are looked at."""
    logits = numbers(1, (5, 20000))
    folder.save("l.npy", logits), folder.save("y.npy", np.arange(5))
    logits[:, 8000] += 1
    folder.save("m.npy", logits)
    check(folder, ["cross_entropy", "l.npy", "y.npy"])
    refuse_a_foreign_part(folder, ["cross_entropy", "l.npy", "y.npy"], ["cross_entropy", "m.npy", "y.npy"])


@pytest.mark.parametrize("loss, more", [("cross_entropy", []), ("nll", ["--reduction", "sum"]), ("multi_margin", [])])
def test_other_class_weights(folder, loss, more):
    folder.save("l.npy", numbers(1, (900, 7))), folder.save("y.npy", np.arange(900) % 7)
    folder.save("w.npy", np.linspace(0.5, 2, 7).astype("f4")), folder.save("v.npy", np.linspace(0.5, 3, 7).astype("f4"))
    command = [loss, "l.npy", "y.npy", *more, "--class-weight"]
    check(folder, [*command, "w.npy"], [3])
    refuse_a_foreign_part(folder, [*command, "w.npy"], [*command, "v.npy"], "other class weights")
    refuse_a_foreign_part(folder, [*command, "w.npy"], command[:-1], "the class_weight is")


def test_another_parameter_or_division(parts):
    for i, beta in ((1, 0.5), (2, 0.25)):
        parts.quiet("smooth_l1", "p.npy", "t.npy", "--beta", beta, "--part", f"{i}/2", "--state", f"b{i}")
    parts.refuse("merge", "b1", "b2", says=["b1", "b2", "beta is 0.5 in the first and 0.25"])
    parts.quiet("mse", "p.npy", "t.npy", "--part", "2/3", "--state", "other.onepass")
    parts.refuse("merge", "part1.onepass", "other.onepass", says=["part 1 of 12 and part 2 of 3"])


def test_damage(parts):
    good = (parts / "part2.onepass").read_bytes()
    for size in [*range(0, 60), *range(60, 200, 3), *range(200, len(good), 211), len(good) - 1]:
        parts.write("bad", good[:size])
        parts.refuse("merge", "part1.onepass", "bad", says="bad: ")
    for at in [*range(0, 60), *range(60, 200, 3), *range(200, len(good), 97), len(good) - 1]:
        parts.write("bad", good[:at] + bytes([good[at] ^ 4]) + good[at + 1 :])
        parts.refuse("merge", "part1.onepass", "bad", says="bad: ")
    parts.write("bad", good + b"more")
    parts.refuse("merge", "bad", says=["bad: ", "damaged"])
    parts.refuse("merge", "p.npy", says=["p.npy: is not a part"])
    parts.refuse("merge", ".", says=[".: cannot be read"])


def test_more_parts_than_there_can_be(parts):
    """Though the header's checksum is right."""
    good = (parts / "part2.onepass").read_bytes()
    for place, number in ((5, 2**31 - 1), (6, 99), (9, 77), (10, 17), (11, 2**63)):
        words = list(struct.unpack_from(f"<{header_of(good) // 8 - 1}Q", good))
        words[place] = number
        parts.write("bad", sealed(words) + good[header_of(good):])
        parts.refuse("merge", "bad", says=["bad: is not a part that the tool wrote"])
    for more in (1, -1):
        words = list(struct.unpack_from(f"<{header_of(good) // 8 - 1}Q", good))[:more if more < 0 else None]
        words += [0] * max(more, 0)
        words[2] += more
        parts.write("bad", sealed(words) + good[header_of(good):])
        parts.refuse("merge", "bad", says=["bad: is not a part that the tool wrote"])


def header_of(part):
    """How many bytes the tool's own are; the library's state follows."""
    return 8 * struct.unpack_from("<Q", part, 16)[0]


def sealed(words):
    """With the checksum."""
    checksum = 0
    for word in words:
        checksum = (checksum ^ word) * 0x9E3779B97F4A7C15 % 2**64
    return struct.pack(f"<{len(words) + 1}Q", *words, checksum)


def test_another_version(parts):
    good = (parts / "part2.onepass").read_bytes()
    for version in (1, 3):
        parts.write("bad", good[:8] + bytes([version]) + good[9:])
        parts.refuse("merge", "bad", says=[f"bad: is a part of version {version}"])
        at = header_of(good) + 8
        parts.write("bad", good[:at] + bytes([version]) + good[at + 1:])
        parts.refuse("merge", "bad", says=["bad: ", f"version {version}"])


def test_what_a_program_exported(parts):
    """Behind the header is the library's own state, which is a part by itself."""
    parts.quiet("mse", "half.npy", "half.npy", "--part", "1/1", "--state", "all.onepass")
    whole, second = (parts / "all.onepass").read_bytes(), (parts / "part2.onepass").read_bytes()
    parts.write("raw", whole[header_of(whole):])
    assert parts.json("merge", "raw")["type"] == "f32" and parts.json("merge", "all.onepass")["type"] == "f16"
    parts.write("raw", second[header_of(second):])
    parts.refuse("merge", "raw", says=["250 of the 3000 elements", "0 to 249"])
    names = [f"part{i}.onepass" for i in range(1, 13)]
    assert parts.hex("merge", *names[:1], "raw", *names[2:]) == parts.hex("mse", "p.npy", "t.npy")


@pytest.mark.parametrize(
    "options, says",
    [
        (["--part", "1/2"], "--part is given without --state"),
        (["--state", "s"], "--state is given without --part"),
        (["--part", "0/2", "--state", "s"], '--part is "0/2"'),
        (["--part", "3/2", "--state", "s"], '--part is "3/2", and part 3 is beyond 2; expected one from 1 to 2'),
        (["--part", "1", "--state", "s"], '--part is "1"'),
        (["--part", "1/", "--state", "s"], '--part is "1/"'),
        (["--part", "1/1000001", "--state", "s"], "such as 3/8, of up to 1000000"),
        (["--part", "1/2/3", "--state", "s"], '--part is "1/2/3"'),
        (["--part", "11111111111111111111/2", "--state", "s"], "--part is"),
        (["--part", "1/2", "--state", "p.npy"], "is an input too"),
        (["--part", "1/2", "--state", "-"], "-: "),
        (["--part", "1/2", "--state", "none/s"], "cannot be written"),
        (["--part", "1/2", "--state", "s", "--grad", "s"], "s and s: are one file"),
        (["--part", "1/2", "--state", "s", "--none", "./s"], "./s and s: are one file"),
        (["--part", "1/2", "--state", "s", "--reduction", "none"], "expected --reduction mean, sum or batchmean, with"),
        (["--part", "1/2", "--state", "s", "--reduction", "none", "--none", "n.npy"], "expected --reduction mean, sum"),
        (["--part", "1/2", "--state", "s", "--hex"], "--hex is given"),
        (["--part", "1/2", "--state", "s", "--json"], "--json is given"),
        (["--part", "1/2", "--state", "s", "--device", "cuda"], "on the CPU"),
    ],
    ids=str,
)
def test_options(parts, options, says):
    parts.refuse("mse", "p.npy", "t.npy", *options, says=says)


def test_options_of_merge(parts):
    parts.refuse("merge", "--hex", "--json", "part1.onepass", says="expected one of them")
    parts.refuse("merge", "--grad", "g.npy", says="--grad: there is no such option")
    parts.refuse("merge", "-", "part1.onepass", "-", says='"-" is given 2 times; standard input can be read once')


def test_killed(parts):
    """A state is there as a whole or not at all, whenever the process dies, and no sooner than the gradient."""
    parts.save("long.npy", numbers(1, 1 << 21))
    command = [tool(), "mse", "long.npy", "long.npy", "--part", "1/1", "--state", "s.onepass", "--threads", "1"]
    command += ["--grad", "g.npy"]
    found = 0
    for i in range(12):
        process = subprocess.Popen(command, cwd=parts.path)
        time.sleep(0.001 * i)
        process.send_signal([signal.SIGKILL, signal.SIGTERM][i % 2])
        process.wait(timeout=300)
        if os.path.exists(parts / "s.onepass"):
            assert parts.answer("merge", "s.onepass") == "0" and not parts.load("g.npy").any()
            os.remove(parts / "s.onepass"), os.remove(parts / "g.npy")
            found += 1
        for name in os.listdir(parts.path):
            assert not name.endswith(".part") or i % 2 == 0, "a part of a file is left where there was time to go"
            if name.endswith(".part"):
                os.remove(parts / name)
    assert found < 12
