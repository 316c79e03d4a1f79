# --device cuda: the bits of the CPU, for every kind of file. Skipped, with the tool's own reason, where there is no GPU.
import json
import os
import subprocess

import numpy as np
import pytest

from expected import LOSSES, REDUCTIONS, TYPES, VECTOR_LOSSES, booleans, gradient_options, numbers, operands
from expected import save_operands
from folder import bits
from test_rows import LABELLED, PROBABILITIES, draw_target, labels
from test_vectors import draw as draw_vectors, save as save_vectors

MACHINE = json.loads(subprocess.run([os.environ["ONEPASS_TOOL"], "info", "--json"], capture_output=True).stdout)
pytestmark = pytest.mark.skipif(MACHINE["gpus"] == 0, reason=f"no GPU here: {MACHINE['gpu_reason']}")

SHAPE = (37, 1031)


def assert_same(folder, loss, *command):
    """The number, the gradients and the losses, on both devices."""
    found = {}
    for device in ("cpu", "cuda"):
        outputs, files = gradient_options(loss, device)
        reply = folder.json(loss, *command, "--device", device, *outputs, "--none", f"{device}_n.npy")
        found[device] = [reply["bits"]] + [bits(folder.load(name)).tolist() for name in (*files, f"{device}_n.npy")]
        assert reply["device"] == ("cpu" if device == "cpu" else "cuda:0")
    assert found["cpu"] == found["cuda"]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("loss", LOSSES)
def test_losses(folder, loss, reduction):
    assert_same(folder, loss, *save_operands(folder, operands(loss, 1, SHAPE)), "--reduction", reduction)


@pytest.mark.parametrize("of_target", TYPES)
@pytest.mark.parametrize("of_prediction", TYPES)
def test_types(folder, of_prediction, of_target):
    folder.save("p.npy", numbers(3, SHAPE, of_prediction)), folder.save("t.npy", numbers(4, SHAPE, of_target))
    assert_same(folder, "mse", "p.npy", "t.npy")


def assert_same_rows(folder, loss, *command):
    """The same of a loss over rows, with what its rows have."""
    found = {}
    for device in ("cpu", "cuda"):
        files = {"--grad": "g.npy", "--none": "n.npy", "--predicted": "p.npy"}
        files |= {} if loss == "nll" else {"--lse": "l.npy"}
        files |= {"--grad-target": "h.npy"} if loss == PROBABILITIES else {}
        reply = folder.json(loss, *command, "--device", device, *(word for pair in files.items() for word in pair))
        found[device] = [reply["bits"]] + [bits(folder.load(name)).tolist() for name in files.values()]
    assert found["cpu"] == found["cuda"]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("loss", [*LABELLED, PROBABILITIES])
@pytest.mark.parametrize("axis, shape", [(1, (300, 10)), (1, (70, 2100)), (1, (3, 21, 40)), (0, (1000, 33))])
def test_rows(folder, loss, reduction, axis, shape):
    z = numbers(21, shape)
    folder.save("z.npy", z), folder.save("y.npy", draw_target(loss, 22, z, axis=axis))
    assert_same_rows(folder, loss, "z.npy", "y.npy", "--axis", axis, "--reduction", reduction)


def test_rows_with_weights(folder):
    z, y = numbers(23, (400, 9)), labels(24, 400, 9, ignored=-100, dtype=np.uint8)
    folder.save("z.npy", z), folder.save("y.npy", y), folder.save("c.npy", np.abs(numbers(25, 9)))
    folder.save("w.npy", np.abs(numbers(26, 400))), folder.save("m.npy", booleans(27, 400))
    options = ["--class-weight", "c.npy", "--weight", "w.npy", "--mask", "m.npy", "--ignore-index", "156"]
    assert_same_rows(folder, "cross_entropy", "z.npy", "y.npy", *options)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("loss", VECTOR_LOSSES)
@pytest.mark.parametrize("shape, axis", [((300, 40), 1), ((70, 2100), 1), ((6, 5, 7, 8), 2), ((3, 8192), 1)])
def test_vectors(folder, loss, reduction, shape, axis):
    files = save_vectors(folder, draw_vectors(loss, 31, shape, shape[:axis]))
    assert_same(folder, loss, *files, "--axis", axis, "--reduction", reduction)


def test_vectors_with_weights(folder):
    files = save_vectors(folder, draw_vectors("cosine_embedding", 32, (400, 9), (400,)))
    folder.save("w.npy", np.abs(numbers(33, 400))), folder.save("m.npy", booleans(34, 400))
    assert_same(folder, "cosine_embedding", *files, "--weight", "w.npy", "--mask", "m.npy")


def test_a_label_out_of_range(folder):
    folder.save("z.npy", numbers(28, (400, 9))), folder.save("y.npy", np.full(400, 9))
    folder.refuse("cross_entropy", "z.npy", "y.npy", "--device", "cuda", says="target 9 in row 0")


def test_layouts(folder):
    p, t = numbers(5, SHAPE), numbers(6, SHAPE)
    folder.save("p.npy", np.asfortranarray(p)), folder.save("t.npy", t.astype(">f4")), folder.save("row.npy", t[0])
    folder.save("column.npy", t[:, :1])
    for target in ("t.npy", "row.npy", "column.npy"):
        assert_same(folder, "smooth_l1", "p.npy", target)


def test_weights(folder):
    folder.save("p.npy", numbers(7, SHAPE)), folder.save("t.npy", numbers(8, SHAPE))
    folder.save("w.npy", np.abs(numbers(9, SHAPE)))
    assert_same(folder, "mse", "p.npy", "t.npy", "--weight", "w.npy")


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("shape", [SHAPE, (37, 1), (1031,), ()], ids=str)
@pytest.mark.parametrize("share", [0.6, 0, 1])
def test_masks(folder, share, shape, weighted):
    folder.save("m.npy", np.asfortranarray(booleans(16, shape, share)))
    folder.save("w.npy", np.abs(numbers(17, SHAPE)))
    weight = ["--weight", "w.npy"] if weighted else []
    for loss in ("mse", "gaussian_nll"):
        if loss in LOSSES:
            names = save_operands(folder, operands(loss, 18, SHAPE))
            assert_same(folder, loss, *names, "--mask", "m.npy", *weight)


def test_pieces(folder):
    """More than one chunk of 32 MiB up and down."""
    folder.save("p.npy", numbers(10, (3000, 4001))), folder.save("t.npy", numbers(11, 4001))
    assert_same(folder, "mse", "p.npy", "t.npy")


def test_nothing(folder):
    folder.save("p.npy", numbers(12, (0, 3))), folder.save("t.npy", numbers(13, (0, 3)))
    assert_same(folder, "mse", "p.npy", "t.npy")


def test_a_gpu_that_is_not_there(folder):
    folder.save("p.npy", numbers(14, 5)), folder.save("t.npy", numbers(15, 5))
    done = folder.run("mse", "p.npy", "t.npy", "--device", f"cuda:{MACHINE['gpus']}")
    assert done.status == 1 and str(MACHINE["gpus"]) in done.err
