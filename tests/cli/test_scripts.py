# The script of bench/ that compares the tool with the package: a short look, so that it still runs and leaves what the
# documents' table is made of. It needs the package.
import os
import subprocess
import sys

import pytest

from folder import strict_json, tool

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir, "bench")
onepass = pytest.importorskip("onepass", reason="the Python package is not here to be measured")


def run(folder, script, *arguments):
    env = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(os.path.abspath(onepass.__file__)))}
    done = subprocess.run([sys.executable, os.path.join(BENCH, script), "--tool", tool(), *arguments], cwd=folder.path,
                          env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_files(folder):
    run(folder, "files.py", "--folder", ".", "--gib", "0.01", "--json", ".")
    name, = [name for name in os.listdir(folder.path) if name.startswith("files-")]
    record = strict_json((folder / name).read_text())
    assert record["engine"] == "files" and len(record["sources"]) == 64
    rate, start, _ = (row["ratio"] for row in record["results"])  # so short a run may be over before its memory is seen
    assert rate > 0 and start > 0
