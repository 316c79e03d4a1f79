#!/usr/bin/env python3
"""onepass beside what a user would pick instead, in one process and in turns: NumPy, PyTorch, torch.compile, JAX.

    PYTHONPATH=build/python python3 bench/compare.py --max 2^26 --json compare.json --plot compare.svg

Whoever is not installed is left out, with the reason. The package `onepass` is found by PYTHONPATH or in a build folder
of this tree; so is the tool that draws the picture. A first run takes minutes, most of which torch.compile does.
"""

import argparse
import glob
import os
import shutil
import subprocess
import sys
import tempfile

# Before PyTorch and JAX read them. PyTorch's compiling processes start up beside the first measurements, so there are
# none where it is the CPU that is measured.
on_gpu = os.path.exists("/dev/nvidiactl") and not {"cpu", "--device=cpu"} & set(sys.argv)
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", str(min(8, os.cpu_count() or 1) if on_gpu else 1))
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

from compare import clock
from compare.contenders import LOSSES, NAMES, SIZES, Contenders, Work, installed
from compare.report import Report, count_text

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODES = ("forward", "both")
STEP = 4  # from one size to the next
TEMPORARIES = 6  # arrays beside the operands that a peer may hold at once
TOLERANCE = {"f16": 1e-2, "bf16": 2e-2, "f32": 1e-3, "f64": 1e-3}  # of a peer's value; means in f16 are rough


# -------------------------------------------------------------------------- options --


def count_of(text):
    """1048576, or 2^20."""
    digits = text[2:] if text.startswith("2^") else text
    if not digits.isdecimal() or not 1 <= (count := 1 << int(digits) if digits != text else int(text)) <= 1 << 40:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of elements, such as 1000 or 2^20")
    return count


def names_among(known):
    def names(text):
        for name in text.split(","):
            if name not in known:
                raise argparse.ArgumentTypeError(f"there is no {name!r}; there are {', '.join(known)}")
        return text.split(",")

    return names


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto",
                        help="auto is the GPU if PyTorch finds one, else the CPU")
    parser.add_argument("--losses", type=names_among(LOSSES), default=list(LOSSES), help=", ".join(LOSSES))
    parser.add_argument("--type", type=names_among(list(SIZES)), default=["f32"], help="f32 unless said otherwise")
    parser.add_argument("--modes", type=names_among(MODES), default=list(MODES),
                        help="forward: the value; both: the value and its gradient, as a training step has it")
    parser.add_argument("--min", type=count_of, default=1 << 10, help="elements; 2^10 unless said otherwise")
    parser.add_argument("--max", type=count_of, default=1 << 26, help="elements; 2^26 unless said otherwise")
    parser.add_argument("--peers", type=names_among(NAMES[1:]), default=list(NAMES[1:]), help=", ".join(NAMES[1:]))
    parser.add_argument("--json", metavar="FILE", help="what was measured, as onepass bench --json writes it")
    parser.add_argument("--plot", metavar="FILE.svg", help="a picture of it, drawn by the tool")
    parser.add_argument("--tool", metavar="PATH", help="the tool; else that of a build folder of this tree, or of PATH")
    arguments = parser.parse_args()
    arguments.min = min(arguments.min, arguments.max)
    return arguments


# -------------------------------------------------------------------- what there is --


def find_package():
    """The package by PYTHONPATH or, of this tree's build folders, of the one that was built last."""
    if installed("onepass"):
        return installed("onepass")
    built = sorted(glob.glob(os.path.join(ROOT, "build*", "python", "onepass", "_native*.so")), key=os.path.getmtime)
    if built:
        sys.path.insert(0, os.path.dirname(os.path.dirname(built[-1])))
    if not installed("onepass"):
        sys.exit("compare.py: the package onepass is not here: set PYTHONPATH, or build it with -DONEPASS_PYTHON=ON")
    return installed("onepass")


def find_tool(asked_for):
    built = sorted(glob.glob(os.path.join(ROOT, "build*", "cli", "onepass")), key=os.path.getmtime)
    tool = asked_for or (built[-1] if built else shutil.which("onepass"))
    if not tool or not os.access(tool, os.X_OK):
        sys.exit(f"compare.py: {'--tool: ' + tool if tool else 'the tool onepass'} cannot be run, and it draws the "
                 "picture: name it with --tool, or leave out --plot")
    return tool


def choose_device(asked_for):
    """The GPU if both PyTorch and onepass can use it."""
    torch, machine = installed("torch"), installed("onepass").machine()
    missing = ("PyTorch is not installed" if not torch else "PyTorch finds none" if not torch.cuda.is_available() else
               "" if machine["gpu_count"] else machine["gpu_reason"])
    if asked_for == "cuda" and missing:
        sys.exit(f"compare.py: --device cuda: there is no GPU to use: {missing}")
    if asked_for == "auto" and missing and torch and torch.cuda.is_available():
        print(f"On the CPU, since onepass has no GPU: {missing}")
    return "cpu" if asked_for == "cpu" or missing else "cuda"


def free_memory(device):
    if device == "cuda":
        return installed("torch").cuda.mem_get_info()[0]
    with open("/proc/meminfo", encoding="ascii") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith("MemAvailable"))


def sizes(arguments, type, free):
    """From the least on by steps, and always the largest that fits with what the peers need beside it."""
    most = arguments.max
    while most > arguments.min and SIZES[type] * most * (2 + TEMPORARIES) > 0.9 * free:
        most = max(most // 2, arguments.min)
    if most < arguments.max:
        print(f"{type}: {count_text(arguments.max)} elements may need "
              f"{1e-9 * SIZES[type] * arguments.max * (2 + TEMPORARIES):.0f} GB, and {1e-9 * free:.0f} GB are free: "
              f"measured up to {count_text(most)}")
    counts = []
    count = arguments.min
    while count < most:
        counts.append(count)
        count *= STEP
    return counts + [most]


# ------------------------------------------------------------------------- measuring --


def reject_wrong(work, contenders):
    """A peer that computes something else is no peer."""
    ours = contenders[0].value
    for contender in contenders[1:]:
        if ours is not None and contender.value is not None:
            if not abs(contender.value - ours) <= TOLERANCE[work.type] * abs(ours):
                contender.missing = f"its loss is {contender.value:.6g}, ours {ours:.6g}"


def measure(arguments, contenders, report, timer):
    for type in arguments.type:
        counts = sizes(arguments, type, free_memory(contenders.device))
        p, t = contenders.arrays(type, counts[-1])
        for loss in arguments.losses:
            for mode in arguments.modes:
                report.columns()
                for count in counts:
                    work = Work(loss, mode, type, p[:count], t[:count])
                    taking_part = contenders.of(work)
                    clock.measure(taking_part, timer, work.bytes, work.bytes // 3 if mode == "both" else 0)
                    reject_wrong(work, taking_part)
                    report.add(work, taking_part)
                    contenders.forget_compiled()
    report.summary()


def build_limits(contenders, folder):
    """The kernels of the GPU's limit, for which nvcc takes about half a minute."""
    if contenders.device != "cuda" or "limit" not in contenders.names:
        return
    from gpu.limits import Build

    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    contenders.build_limits(Build(folder, nvcc))


def command_line(arguments):
    """As it was typed, but for the files."""
    words, left = [], sys.argv[1:]
    while left:
        word = left.pop(0)
        if word in ("--json", "--plot", "--tool"):
            left = left[1:]
        elif not word.startswith(("--json=", "--plot=", "--tool=")):
            words.append(word)
    return " ".join(["bench/compare.py"] + words)


def main():
    find_package()
    arguments = parse()
    tool = find_tool(arguments.tool) if arguments.plot else None
    if not installed("torch") and not installed("numpy"):
        sys.exit("compare.py: neither PyTorch nor NumPy is installed")
    device = choose_device(arguments.device)
    contenders = Contenders(device, arguments.peers)
    report = Report(contenders, command_line(arguments))
    report.heading()
    with tempfile.TemporaryDirectory() as folder:
        build_limits(contenders, folder)
        timer = clock.GpuClock(contenders.torch) if device == "cuda" else clock.WallClock()
        measure(arguments, contenders, report, timer)
    if arguments.json:
        report.write(arguments.json)
        print(f"written to {arguments.json}")
    if arguments.plot:
        try:
            report.plot(tool, arguments.plot, arguments.json)
        except subprocess.CalledProcessError:
            return 1
        print(f"drawn in {arguments.plot}")
    return 0 if any(point["series"] == "onepass" for point in report.points) else 1


if __name__ == "__main__":
    sys.exit(main())
