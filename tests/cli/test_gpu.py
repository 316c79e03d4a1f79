# --device cuda: the bits of the CPU, for every kind of file. Skipped, with the tool's own reason, where there is no GPU.
import json
import os
import subprocess

import numpy as np
import pytest

from expected import LOSSES, REDUCTIONS, TYPES, booleans, gradient_options, numbers, operands, save_operands
from folder import bits

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
