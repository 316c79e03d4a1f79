# The scripts of bench/ that put the tool or the package beside others: a short look, so that they still run and leave what
# the documents' tables and pictures are made of. They need the package.
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

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


def test_compare(folder):
    """One size beside NumPy alone: others take long to compile."""
    told = run(folder, "compare.py", "--device", "cpu", "--losses", "mse", "--min", "2^12", "--max", "2^12", "--peers",
               "numpy", "--json", "f.json", "--plot", "f.svg")
    record = strict_json((folder / "f.json").read_text())
    assert record["engine"] == "speed-cpu" and len(record["sources"]) == 64
    found = {(point["series"], point["mode"], point["elements"]) for point in record["points"]}
    assert found == {(series, mode, 4096) for series in ("onepass", "numpy") for mode in ("forward", "both")}
    assert all(point["seconds"] > 0 and point["gbps"] > 0 for point in record["points"])
    assert "mse" in told and ElementTree.parse(folder / "f.svg").getroot().tag.endswith("svg")


def test_files(folder):
    run(folder, "files.py", "--folder", ".", "--gib", "0.01", "--json", ".")
    name, = [name for name in os.listdir(folder.path) if name.startswith("files-")]
    record = strict_json((folder / name).read_text())
    assert record["engine"] == "files" and len(record["sources"]) == 64
    rate, start, _ = (row["ratio"] for row in record["results"])  # so short a run may be over before its memory is seen
    assert rate > 0 and start > 0
