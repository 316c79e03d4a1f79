# The Python examples run, each in a process of its own, quickly and without a complaint.
import os
import pathlib
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))


@pytest.mark.skipif(not EXAMPLES, reason="examples/ has no Python file")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_example(example):
    if "torch" in example.read_text():
        pytest.importorskip("torch")
    if "load_inline" in example.read_text():
        pytest.skip("compiles CUDA code; another test holds it up to date")
    # With one thread: their tensors are small, and two threads took twice the CPU seconds.
    done = subprocess.run([sys.executable, os.fspath(example)], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip(), "it prints nothing"
