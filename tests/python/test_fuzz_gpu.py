"""tests/fuzz_gpu.py, for which a GPU is rarely there: on the CPU it must run, differ nowhere and notice a bit."""
import pathlib
import subprocess
import sys

SCRIPT = pathlib.Path(__file__).parents[1] / "fuzz_gpu.py"


def fuzz(*options):
    return subprocess.run([sys.executable, SCRIPT, "--device", "cpu", "--seed", "7", "--seconds", "1", *options],
                          capture_output=True, text=True, check=False)


def test_nothing_differs():
    found = fuzz()
    assert found.returncode == 0, found.stdout + found.stderr
    assert "\n0 differ, " in found.stdout


def test_a_bit_is_noticed():
    found = fuzz("--break", "--most", "1")
    assert found.returncode == 1 and "1 of " in found.stdout, found.stdout + found.stderr
