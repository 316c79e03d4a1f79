# Completion in bash: by calling its function as bash does, and once with a real Tab key.
import os
import pty
import select
import shlex
import signal
import subprocess
import time

import pytest

from expected import INFO, own_options
from folder import tool

COMPLETION = os.path.join(os.path.dirname(__file__), os.pardir, os.pardir, "cli", "completion.bash")

SCRIPT = """
source "$1"; shift
COMP_WORDS=("${@:2}") COMP_CWORD=$(($# - 2))
COMPREPLY=()
_onepass "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


def complete(folder, *words):
    """What bash offers after these words, the last of which is being typed."""
    command = ["bash", "--norc", "--noprofile", "-c", SCRIPT, "bash", COMPLETION, tool(), "onepass", *words]
    done = subprocess.run(command, cwd=folder.path, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    offered = [word for word in done.stdout.split("\n") if word]
    assert len(offered) == len(set(offered)), f"twice in {offered}"
    return sorted(offered)


@pytest.fixture
def files(folder):
    for name in ("a.npy", "b.safetensors", "c.txt", "d e.npy"):
        folder.write(name, b"")
    os.mkdir(folder / "sub")
    return folder


def test_commands(folder):
    assert complete(folder, "") == sorted([*INFO, "list", "info", "merge", "help", "--help", "--version"])
    assert complete(folder, "help", "") == sorted([*INFO, "list", "info", "merge"])
    assert complete(folder, "help", "mse", "") == []
    assert complete(folder, "sm") == ["smooth_l1"]
    assert complete(folder, "in") == ["info"]
    assert complete(folder, "x") == []


@pytest.mark.parametrize("loss", INFO)
def test_the_options_of_a_loss(folder, loss):
    own = own_options(loss)
    offered = set(complete(folder, loss, "p.npy", "--"))
    assert own <= offered and "--grad" in offered and "--mask" in offered
    others = {"--beta", "--margin", "--grad-prediction", "--grad-input2", "--grad-target", "--axis", "--lse"}
    assert not offered & (others - own)


def test_the_options_of_other_commands(folder):
    assert complete(folder, "list", "--") == complete(folder, "info", "--") == ["--help", "--json"]
    assert complete(folder, "merge", "--") == ["--help", "--hex", "--json"]


@pytest.mark.parametrize(
    "words, wanted",
    [
        (["mse", "--reduction", ""], ["batchmean", "mean", "none", "sum"]),
        (["mse", "--reduction", "=", "s"], ["sum"]),
        (["mse", "--reduction", "="], ["batchmean", "mean", "none", "sum"]),
        (["mse", "--device", ""], ["auto", "cpu", "cuda"]),
        (["mse", "--threads", ""], []),
        (["smooth_l1", "--beta", ""], []),
        (["list", ""], []),
    ],
    ids=" ".join,
)
def test_values(files, words, wanted):
    assert complete(files, *words) == wanted


@pytest.mark.parametrize(
    "words, wanted",
    [
        (["mse", ""], ["a.npy", "b.safetensors", "d e.npy", "sub"]),
        (["mse", "a.npy", "b"], ["b.safetensors"]),
        (["mse", "d"], ["d e.npy"]),
        (["mse", "--json", "a"], ["a.npy"]),
        (["mse", "a.npy", "--weight", ""], ["a.npy", "b.safetensors", "d e.npy", "sub"]),
        (["mse", "a.npy", "--mask", ""], ["a.npy", "b.safetensors", "d e.npy", "sub"]),
        (["mse", "--grad", ""], ["a.npy", "d e.npy", "sub"]),
        (["mse", "--grad-target", ""], ["a.npy", "d e.npy", "sub"]),
        (["cross_entropy", "--class-weight", ""], ["a.npy", "b.safetensors", "d e.npy", "sub"]),
        (["cross_entropy", "--predicted", ""], ["a.npy", "d e.npy", "sub"]),
        (["cross_entropy", "--axis", ""], []),
        (["mse", "--none", "=", "a"], ["a.npy"]),
        (["mse", "b.safetensors", ":"], []),
        (["mse", "b.safetensors", ":", "a"], []),
    ],
    ids=" ".join,
)
def test_files(files, words, wanted):
    assert complete(files, *words) == wanted


def test_a_tool_that_cannot_be_run(folder):
    """There are no losses to offer then, and no noise."""
    command = ["bash", "--norc", "-c", SCRIPT, "bash", COMPLETION, "/not/there", "onepass", ""]
    done = subprocess.run(command, cwd=folder.path, capture_output=True, text=True, timeout=300)
    assert done.stderr == "" and "list" in done.stdout.split()


def read_until(terminal, wanted, seconds=120):
    """What comes from a terminal, up to what is waited for."""
    seen = b""
    limit = time.monotonic() + seconds
    while wanted not in seen and time.monotonic() < limit:
        if select.select([terminal], [], [], 0.1)[0]:
            seen += os.read(terminal, 4096)
    return seen


def test_the_tab_key(files):
    """A name with a space is escaped, and a word that is complete is followed by a space."""
    os.mkdir(files / "bin")
    os.symlink(tool(), files / "bin/onepass")
    env = {**os.environ, "PATH": f"{files / 'bin'}:{os.environ['PATH']}", "TERM": "dumb", "PS1": "$ "}
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(files.path)
        os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], env)
    try:
        os.write(terminal, b"bind 'set enable-bracketed-paste off'; show() { printf '<%s>' \"$@\"; }\n")
        os.write(terminal, f"source {shlex.quote(os.path.abspath(COMPLETION))}; echo re''ady\n".encode())
        assert b"ready" in read_until(terminal, b"ready")
        os.write(terminal, b"onepass smo\td\t--red\tsu\t")
        os.write(terminal, b"\x01show \n")  # back to the beginning: it is shown, not run
        seen = read_until(terminal, b"<sum>")
        assert b"<onepass><smooth_l1><d e.npy><--reduction><sum>" in seen, seen
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(terminal)
