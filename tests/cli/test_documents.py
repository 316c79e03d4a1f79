# The commands that the documents, the help and the man page show, run on files of the names that they use.
import os
import re
import shlex

import numpy as np
import pytest

from expected import INFO, LOSSES, ROW_LOSSES, VECTOR_LOSSES, file_names, names_with_gradients, operand_names
from folder import strict_json

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir)
LOSS_COMMAND = re.compile(rf"\s*(onepass (?:{'|'.join(INFO)}) .*\.npy.*)")


def commands_in(text):
    """Those for files, a line each, without the words behind them."""
    found = [LOSS_COMMAND.fullmatch(line) for line in text.splitlines()]
    return [re.split(r"\s{2,}|\s#", match.group(1))[0] for match in found if match]


def shown_in(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return commands_in(file.read())


@pytest.fixture
def files(folder):
    """The README's four numbers, under the names of every operand."""
    p, t = np.float32([2.5, 0, 2, 8]), np.float32([3, -0.5, 2, 7])
    folder.save("mask.npy", np.array([True, False, True, True]))
    for name in {name for loss in LOSSES for name in operand_names(loss)} | {"pred", "weight"}:
        folder.save(f"{name}.npy", {"pred": p, "target": t}.get(name, np.ones(4, "f4")))
    folder.save_tensors("run.safetensors", logits=p)
    # of losses over rows: four rows of three classes
    rows = np.outer(p, t[:3])
    folder.save("logits.npy", rows), folder.save("labels.npy", np.array([0, 2, 1, 2]))
    folder.save("probabilities.npy", np.full((4, 3), 1 / 3, "f4")), folder.save("class_weight.npy", t[[0, 2, 3]])
    return folder


def save_vectors(files, loss):
    """Four vectors of three elements under the names of the loss's operands, which others share."""
    for name in file_names(loss):
        files.save(f"{name}.npy", np.ones((4, 3) if name in names_with_gradients(loss) else 4, "f4"))
    if INFO[loss]["target"] == "lists of class indices":
        files.save("labels.npy", np.array([[0, -1, -1], [2, 0, -1], [-1, -1, -1], [1, 2, 0]]))
    files.save_tensors("model.safetensors", out=files.load(f"{operand_names(loss)[0]}.npy"))


def run(files, command):
    """A tensor of a model has the loss's own shape."""
    words = shlex.split(command)[1:]
    if words[0] in VECTOR_LOSSES:
        kept = {path: path.read_bytes() for path in files.path.glob("*.npy")}
        save_vectors(files, words[0])
        done = files.run(*words)
        for path, content in kept.items():
            path.write_bytes(content)
        return done
    logits = files.load("logits.npy" if words[0] in ROW_LOSSES else "pred.npy")
    files.save_tensors("model.safetensors", logits=logits)
    return files.run(*words)


@pytest.mark.parametrize("path", ["README.md", "docs/tool.md"])
def test_documents(files, path):
    commands = shown_in(path)
    assert len(commands) >= 3
    for command in commands:
        done = run(files, command)
        assert done.status == 0 and done.err == "", (command, done.err)


def test_the_number_of_the_readme(files):
    assert files.answer("mse", "pred.npy", "target.npy") == "0.375"


@pytest.mark.parametrize("command", ["", *INFO])
def test_help(files, command):
    commands = commands_in(files.run(*command.split(), "--help").out)
    assert len(commands) >= 3
    for command in commands:
        done = run(files, command)
        assert done.status == 0, (command, done.err)
        if "--json" in command:
            assert strict_json(done.out)["loss"] == shlex.split(command)[1]
