# The Python examples run, each in a process of its own, quickly and without a complaint. The processes are forks of one
# that has imported PyTorch, which took most of their time.
import contextlib
import io
import pathlib
import runpy

import pytest
from rank_processes import LIMIT, started

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))


def run(_, example, results):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        runpy.run_path(example, run_name="__main__")
    results.put(printed.getvalue())


@pytest.mark.skipif(not EXAMPLES, reason="examples/ has no Python file")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_example(example):
    if "torch" in example.read_text():
        pytest.importorskip("torch")
    if "load_inline" in example.read_text():
        pytest.skip("compiles CUDA code; another test holds it up to date")
    (process,), results = started(run, 1, example)
    process.join(LIMIT)
    assert process.exitcode == 0, "standard error says why"
    assert results.get(timeout=LIMIT).strip(), "it prints nothing"
