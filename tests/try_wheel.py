"""A loss with the installed package alone, without PyTorch and NumPy, and with the installed command: try_wheel.py TOOL"""

import os
import struct
import subprocess
import sys
import tempfile

import onepass
from onepass import _native

TOOL = sys.argv[1]
assert "site-packages" in onepass.__file__, onepass.__file__
assert "mse" in [loss["name"] for loss in onepass.losses()]
for types in ("functional.pyi", "nn.pyi", "py.typed"):
    assert os.path.exists(os.path.join(os.path.dirname(onepass.__file__), types)), types
version = subprocess.run([TOOL, "--version"], capture_output=True, text=True, check=True).stdout
assert version.split() == ["onepass", onepass.__version__], version


def write_npy(path, numbers):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(numbers)},), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack(f"<{len(numbers)}f", *numbers))


with tempfile.TemporaryDirectory() as folder:
    prediction, target = os.path.join(folder, "p.npy"), os.path.join(folder, "t.npy")
    write_npy(prediction, [2.5, 0, 2, 8])
    write_npy(target, [3, -0.5, 2, 7])
    told = subprocess.run([TOOL, "mse", prediction, target], capture_output=True, text=True, check=True).stdout
assert float(told) == 0.375, told
print(f"onepass {onepass.__version__} for {_native.machine()['instruction_sets']}: the command says mse = {float(told)}")
