# --device cuda: the bits of the CPU, for every kind of file. Skipped, with the tool's own reason, where there is no GPU.
import json
import os
import subprocess

import numpy as np
import pytest

from expected import LOSSES, TYPES, numbers
from folder import bits

MACHINE = json.loads(subprocess.run([os.environ["ONEPASS_TOOL"], "info", "--json"], capture_output=True).stdout)
pytestmark = pytest.mark.skipif(MACHINE["gpus"] == 0, reason=f"no GPU here: {MACHINE['gpu_reason']}")

SHAPE = (37, 1031)


def assert_same(folder, *command, outputs=True):
    """The number, the gradient and the losses, on both devices."""
    found = {}
    for device in ("cpu", "cuda"):
        files = ["--grad", f"{device}_g.npy", "--none", f"{device}_n.npy"] if outputs else []
        reply = folder.json(*command, "--device", device, *files)
        found[device] = [reply["bits"]] + [bits(folder.load(name)).tolist() for name in files[1::2]]
        assert reply["device"] == ("cpu" if device == "cpu" else "cuda:0")
    assert found["cpu"] == found["cuda"]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("loss", LOSSES)
def test_losses(folder, loss, reduction):
    folder.save("p.npy", numbers(1, SHAPE)), folder.save("t.npy", numbers(2, SHAPE))
    assert_same(folder, loss, "p.npy", "t.npy", "--reduction", reduction)


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
