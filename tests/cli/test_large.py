# Files larger than memory allows: the number is right, the memory stays small, and a file may shrink meanwhile.
import os
import resource
import signal
import time

import numpy as np
import pytest

from expected import LOSSES, gradient_options
from folder import QUICK, assert_sentence
from sparse import LARGE, MIB, ended, save_sparse, start, wait_until, watch_memory

ALLOWED = 256 * MIB
COUNT = LARGE // 4


def spots(count, seed):
    """Elements here and there, the first and the last among them, whose squares add up without rounding."""
    rng = np.random.default_rng(seed)
    places = [0, count - 1, *map(int, rng.integers(0, count, 500))]
    return {place: int(rng.integers(-64, 65)) / 8 for place in places}


def sum_of_squares(p, t):
    return sum((p.get(place, 0) - t.get(place, 0)) ** 2 for place in p.keys() | t.keys())


def run_small(folder, *arguments):
    """A run with little address space, watched. Two threads, since each takes address space for its stack."""

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (700 * MIB, 700 * MIB))

    with ended(start(folder, *arguments, "--threads", "2", preexec_fn=limit)) as process:
        peak, own = watch_memory(process)
        out, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (0, b""), err
    assert peak < ALLOWED and own < ALLOWED, f"{peak >> 20} MiB, of which {own >> 20} its own"
    return out.decode().strip()


def test_two_large_files(folder):
    p, t = spots(COUNT, 81), spots(COUNT, 82)
    save_sparse(folder / "p.npy", (COUNT,), p), save_sparse(folder / "t.npy", (COUNT,), t)
    assert np.float32(run_small(folder, "mse", "p.npy", "t.npy")) == np.float32(sum_of_squares(p, t) / COUNT)


def test_long_rows(folder):
    """Of 80 MB, of which one is seen at a time."""
    rows, classes = 4, 20 * 10**6
    save_sparse(folder / "z.npy", (rows, classes), {})
    folder.save("y.npy", np.array([0, 1, classes - 1, 5]))
    assert np.float32(run_small(folder, "cross_entropy", "z.npy", "y.npy")) == np.float32(np.log(classes))


def test_large_files_of_vectors(folder):
    """By rows, of a gibibyte; one file of a single vector, which is every row's."""
    rows, length = COUNT // 4 // 512, 512
    p = spots(rows * length, 84)
    save_sparse(folder / "p.npy", (rows, length), p)
    folder.save("t.npy", np.zeros(length, np.float32))
    options = ["--p", "1", "--eps", "0", "--reduction", "sum"]
    wanted = sum(abs(value) for value in p.values())
    assert np.float32(run_small(folder, "pairwise_distance", "p.npy", "t.npy", *options)) == np.float32(wanted)


def test_a_large_file_and_one_number(folder):
    """All the terms are 1 or near it, so that every tile counts."""
    p = spots(COUNT // 4, 83)
    save_sparse(folder / "p.npy", (COUNT // 4,), p)
    folder.save("t.npy", np.ones((), np.float32))
    wanted = COUNT // 4 + sum(max(1 - value, 0) - 1 for value in p.values())
    assert np.float32(run_small(folder, "hinge", "p.npy", "t.npy", "--reduction", "sum")) == np.float32(wanted)


@pytest.mark.parametrize("shape", [(4096, 4096), (64, 512, 512), (2, 2**23), (2**23, 2)], ids=str)
def test_fortran_order(folder, shape):
    count = int(np.prod(shape))
    p, t = spots(count, 84), spots(count, 85)
    save_sparse(folder / "p.npy", shape, p, fortran=True), save_sparse(folder / "t.npy", shape, t)
    text = run_small(folder, "mse", "p.npy", "t.npy")
    assert np.float32(text) == np.float32(sum_of_squares(p, t) / count)


@pytest.mark.parametrize("rows", [2**14, 2**8, 3])
def test_a_large_file_in_fortran_order(folder, rows):
    """The elements of a row are far from each other, so that a piece of the work has parts of it all over the file."""
    shape = (rows, (2**26 if QUICK else 2**28) // rows)
    count = shape[0] * shape[1]
    p = spots(count, 86)
    save_sparse(folder / "p.npy", shape, p, fortran=True)
    folder.save("t.npy", np.zeros((rows, 1), np.float32))
    text = run_small(folder, "mse", "p.npy", "t.npy")
    assert np.float32(text) == np.float32(sum_of_squares(p, {}) / count)


@pytest.mark.parametrize(
    "size, classes, more", [(1024, 1000, []), (96, 10, ["--grad", "g.npy"]), (400, 30000, ["--grad", "g.npy"])]
)
def test_rows(folder, size, classes, more):
    """Rows of zeros, whose every class has the same probability; gradients of many classes are written part by part."""
    rows = (64 if QUICK else size) * MIB // 4 // classes
    save_sparse(folder / "z.npy", (rows, classes), {})
    folder.save("y.npy", np.arange(rows) % classes)
    value = run_small(folder, "cross_entropy", "z.npy", "y.npy", *more)
    assert float(value) == pytest.approx(np.log(classes), rel=1e-6)
    if more:
        gradient = np.load(folder / "g.npy", mmap_mode="r")
        for row in (0, rows // 2, rows - 1):
            assert gradient[row, row % classes] == pytest.approx((1 / classes - 1) / rows, rel=1e-6)
            assert gradient[row, (row + 1) % classes] == pytest.approx(1 / classes / rows, rel=1e-6)


def test_outputs(folder):
    count = 48 * MIB // 4
    p, t = spots(count, 87), spots(count, 88)
    save_sparse(folder / "p.npy", (count,), p), save_sparse(folder / "t.npy", (count,), t)
    run_small(folder, "mse", "p.npy", "t.npy", "--reduction", "sum", "--grad", "g.npy", "--none", "n.npy")
    gradient, losses = folder.load("g.npy"), folder.load("n.npy")
    assert np.count_nonzero(gradient) == np.count_nonzero(losses)
    for place in p.keys() | t.keys():
        x = p.get(place, 0) - t.get(place, 0)
        assert gradient[place] == 2 * x and losses[place] == x * x


@pytest.mark.parametrize("loss", [loss for loss in ("gaussian_nll",) if loss in LOSSES])
def test_everything_at_once(folder, loss):
    """Three operands, weights and a mask in, three gradients and the losses out; half of it needs copies."""
    shape = (2048, 2048 if QUICK else 8192)
    count = shape[0] * shape[1]
    save_sparse(folder / "p.npy", shape, spots(count, 87)), save_sparse(folder / "t.npy", shape, spots(count, 88), True)
    save_sparse(folder / "w.npy", shape, {1: 1, 5: 3}), folder.save("v.npy", np.ones(shape[1], np.float32))
    save_sparse(folder / "m.npy", shape, {1: 1, 5: 1, count - 1: 1}, True, np.uint8)
    outputs, files = gradient_options(loss)
    command = [loss, "p.npy", "t.npy", "v.npy", "--weight", "w.npy", "--mask", "m.npy", *outputs, "--none", "n.npy"]
    run_small(folder, *command)
    for name in [*files, "n.npy"]:
        assert np.load(folder / name, mmap_mode="r").shape == shape


def test_outputs_larger_than_the_memory_that_is_allowed(folder):
    """An output of 512 MiB from a number for each row and one for each column."""
    side = 4096 if QUICK else 11585
    folder.save("p.npy", np.arange(side, dtype=np.float32)[:, None])
    folder.save("t.npy", np.arange(side, dtype=np.float32))
    run_small(folder, "smooth_l1", "p.npy", "t.npy", "--reduction", "sum", "--grad", "g.npy")
    gradient = np.load(folder / "g.npy", mmap_mode="r")
    assert gradient.shape == (side, side)
    for row in (0, 1, side // 2, side - 1):
        assert (gradient[row] == np.sign(row - np.arange(side))).all()


# ---------------------------------------------------- files that shrink ----


@pytest.mark.parametrize("victim", ["p.npy", "t.npy", "w.npy", "m.npy"])
@pytest.mark.parametrize("fortran", [False, True], ids=["C", "fortran"])
def test_a_file_that_shrinks(folder, victim, fortran):
    """It is stopped in the middle and the file cut short: a sentence, not a crash, and nothing is left behind."""
    side = 2**13 if fortran else 2**15
    for name in ("p.npy", "t.npy", "w.npy"):
        save_sparse(folder / name, (side, side), {1: 1}, fortran)
    save_sparse(folder / "m.npy", (side, side), {1: 1}, fortran, np.uint8)
    before = set(os.listdir(folder.path))
    command = ["mse", "p.npy", "t.npy", "--weight", "w.npy", "--mask", "m.npy", "--threads", "1"]
    with ended(start(folder, *command)) as process:
        assert wait_until(lambda: mapped(process, "p.npy"), process), "it was over before it could be stopped"
        process.send_signal(signal.SIGSTOP)
        os.truncate(folder / victim, 4096)
        process.send_signal(signal.SIGCONT)
        out, err = process.communicate(timeout=300)
    assert process.returncode in (1, 2), (process.returncode, err)
    assert out == b""
    assert_sentence(err.decode(), victim)
    assert set(os.listdir(folder.path)) == before


def mapped(process, name):
    """Whether the process has begun to read a file, by mapping it or otherwise."""
    try:
        with open(f"/proc/{process.pid}/maps") as file:
            return name in file.read()
    except OSError:
        return False


def test_a_file_that_shrinks_while_a_gradient_is_written(folder):
    side = 2**14
    for name in ("p.npy", "t.npy"):
        save_sparse(folder / name, (side, side), {1: 1})
    folder.write("g.npy", b"earlier")
    with ended(start(folder, "mse", "p.npy", "t.npy", "--grad", "g.npy", "--threads", "1")) as process:
        assert wait_until(lambda: len(os.listdir(folder.path)) > 3, process), "no output was begun"
        process.send_signal(signal.SIGSTOP)
        os.truncate(folder / "p.npy", 4096)
        process.send_signal(signal.SIGCONT)
        out, err = process.communicate(timeout=300)
    assert process.returncode in (1, 2) and out == b"", (process.returncode, err)
    assert_sentence(err.decode(), "p.npy")
    assert sorted(os.listdir(folder.path)) == ["g.npy", "p.npy", "t.npy"]
    assert (folder / "g.npy").read_bytes() == b"earlier"
