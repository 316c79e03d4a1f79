# The types that the package declares: they are those of its signatures, they are installed, and mypy reads them.
import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytest.importorskip("numpy")

import onepass

HERE = pathlib.Path(__file__).resolve().parent
INSTALLED = pathlib.Path(onepass.__file__).parent


def test_stubs_are_the_signatures():
    found = subprocess.run([sys.executable, HERE.parents[1] / "python" / "make_stubs.py", "--check"],
                           capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize("name", ["py.typed", "__init__.pyi", "functional.pyi", "nn.pyi", "patch.pyi"])
def test_they_are_installed(name):
    assert (INSTALLED / name).read_bytes() == (HERE.parents[1] / "python" / "onepass" / name).read_bytes()


def test_mypy_finds_them(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not here, which reads the types")
    found = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path, HERE / "typed_use.py"],
        capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "MYPYPATH": str(INSTALLED.parent)})
    assert found.returncode == 0, found.stdout + found.stderr
