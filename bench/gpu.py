#!/usr/bin/env python3
"""onepass on a GPU: ours beside the memory's limit and beside what a user would pick instead.

    python3 bench/gpu.py --library build-gpu/src/libonepass.so --json bench/results

One process and one run: PyTorch (eager and compiled), JAX, CUB and plain kernels take
turns with ours on the same arrays, and medians are compared. A peer that is not there or
fails is named with the reason. A missed bar is shown, not an error: machines differ. A
call of ours that fails, or a wrong result, is an error.

The bars are those that the library has set itself for an NVIDIA H200, on arrays of
32768 x 32768 elements; the section "family", which has all losses, is on 16384 x 16384.
It needs PyTorch with CUDA, about 64 GiB of the device's memory, and nvcc for the limits;
the rest is optional.
"""

import argparse
import datetime
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

# Before PyTorch and JAX read them. A few compiling processes are enough for kernels of this size.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", str(min(8, os.cpu_count() or 1)))
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import torch

from gpu import family, large, package, peers, small
from gpu.bench import LARGEST_ERROR, Bench, reference_mean
from gpu.limits import Build, Limits
from gpu.onepass_c import Call, Failed, Library
from gpu.report import Report, file_name
from gpu.timing import free_memory, reason_of

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SIDE, QUICK_SIDE = 32768, 8192
ROUNDS = 25

# In this order: what takes memory is asked before anything else has used the library.
SECTIONS = {
    "memory": large.measure_memory,
    "limits": large.measure_limits,
    "forward": large.measure_forward,
    "types": large.measure_types,
    "gradient": large.measure_gradient,
    "family": family.measure_family,
    "small": small.measure_small,
    "shapes": large.measure_shapes,
    "host": small.measure_host,
    "package": package.measure_package,
}

METHOD = ("Times are medians; ranges leave out the tenth at either end. All contenders of a work take turns. On the "
          "stream: CUDA events around each turn, a pass over 256 MiB of other memory between turns. JAX, which has "
          "its own stream: wall clock over several dispatches in a row that end in block_until_ready, at least 50 ms "
          "or as many as 24 GiB of gradients allow, the device idle before. Small arrays: replays of a graph of 64 "
          "calls (16 above 2^20 elements) over up to 8 sets of operands. ours and beside are in the given unit; a "
          "ratio of rate is ours over the peer's rate, a ratio of time is ours over the peer's time. runs is the "
          "number of turns.")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--library", required=True, help="the shared library, as built with the CUDA engine")
    parser.add_argument("--json", metavar="PATH",
                        help="write the results to this .json, or to gpu-<name>.json in this folder")
    parser.add_argument("--quick", action="store_true", help="arrays of 2^26 elements, no bars: to see that it runs")
    parser.add_argument("--only", metavar="NAMES", help=f"some sections, with commas between: {', '.join(SECTIONS)}")
    parser.add_argument("--losses", metavar="NAMES",
                        help="some losses of the section family, with commas between; all unless said otherwise")
    parser.add_argument("--ours", action="store_true", help="leave PyTorch and JAX out: ours beside the limits alone")
    parser.add_argument("--build", metavar="FOLDER", help="keep the compiled limits there instead of building anew")
    arguments = parser.parse_args()
    arguments.losses = arguments.losses.split(",") if arguments.losses else []
    arguments.sections = arguments.only.split(",") if arguments.only else list(SECTIONS)
    for name in arguments.sections:
        if name not in SECTIONS:
            parser.error(f"--only: there is no section {name!r}; there are {', '.join(SECTIONS)}")
    if not os.path.exists(arguments.library):
        parser.error(f"--library: there is no file {arguments.library}")
    return arguments


def check_names(names, known):
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"--losses: there is no loss {unknown[0]!r}; there are {', '.join(known)}")


# ------------------------------------------------------------- the machine --


def output_of(command, otherwise=""):
    """What a program prints, or `otherwise` if it cannot run: no fact about the machine is worth a crash."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return otherwise


def ask_driver(what):
    return output_of(["nvidia-smi", "--id=0", f"--query-gpu={what}", "--format=csv,noheader"], "unknown")


def nvcc_path():
    return shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"


def nvcc_version():
    found = re.search(r"V(\d[\d.]*)", output_of([nvcc_path(), "--version"]))
    return f"nvcc {found.group(1)}" if found else "nvcc missing"


def source_hash():
    command = ["cmake", "-D", f"ROOT={ROOT}", "-D", "ENGINE=cuda", "-P", os.path.join(ROOT, "cmake/source_hash.cmake")]
    return output_of(command, "unknown")


def facts_of(arguments, bench):
    """What stands beside every figure."""
    device = torch.cuda.get_device_properties(torch.cuda.current_device())
    facts = {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
             "engine": "cuda",
             "hardware": device.name,
             "multiprocessors": device.multi_processor_count,
             "memory_bytes": device.total_memory,
             "cache_bytes": getattr(device, "L2_cache_size", None),
             "driver": ask_driver("driver_version"),
             "cuda": torch.version.cuda,
             "compiler": nvcc_version(),
             "onepass": bench.library.version(),
             "sources": source_hash(),
             "python": platform.python_version()}
    facts.update(peers.versions())
    facts.update({"quick": arguments.quick, "sections": arguments.sections, "frameworks": not arguments.ours,
                  "elements": bench.p.numel(), "rounds": bench.rounds, "losses": arguments.losses, "method": METHOD,
                  "clocks_before": clocks()})
    return facts


def clocks():
    return ask_driver("clocks.sm,clocks.mem,temperature.gpu,power.draw")


# ----------------------------------------------------------------- sections --


def check_library(bench):
    """Raises if a small mse does not work: nothing else would."""
    bench.library.prepare()
    p, t = (flat[:5000].view(1, 5000) for flat in bench.flat)
    Call(bench.library, "mse", p, t, value=bench.value).run()
    torch.cuda.synchronize()
    found, expected = float(bench.value), reference_mean("mse", p, t)
    if not abs(found / expected - 1) < LARGEST_ERROR:
        raise Failed(f"mse of 5000 elements is {found}, it should be {expected}")


def load_limits(bench, build, log):
    try:
        bench.limits = Limits(build, log)
    except Exception as error:
        bench.limits_reason = reason_of(error)
        bench.report.fail("limits", bench.limits_reason)


class Run:
    """One run of the program: its sections, and the record that is written anew after each of them."""

    def __init__(self, arguments, bench):
        self.arguments = arguments
        self.bench = bench
        self.facts = facts_of(arguments, bench)
        self.facts["section_seconds"] = {}
        self.facts["limits"] = []

    def sections(self, build):
        if "memory" in self.arguments.sections:
            self.section("memory")
        check_library(self.bench)
        load_limits(self.bench, build, self.facts["limits"])
        for name in SECTIONS:
            if name in self.arguments.sections and name != "memory":
                self.section(name)

    def section(self, name):
        begin = time.perf_counter()
        try:
            SECTIONS[name](self.bench)
        except Exception as error:  # the other sections are still worth having
            self.bench.report.fail(name, reason_of(error))
            traceback.print_exc()
        free_memory()
        seconds = self.facts["section_seconds"][name] = round(time.perf_counter() - begin, 1)
        print(f"  ({name}: {seconds} s)", flush=True)
        self.write()

    def path(self):
        path = self.arguments.json
        if path.endswith(".json"):
            return path
        given = self.arguments
        whole = not (given.quick or given.only or given.losses or given.ours)
        return os.path.join(path, file_name(self.facts["hardware"], whole))

    def write(self):
        if self.arguments.json:
            os.makedirs(os.path.dirname(self.path()) or ".", exist_ok=True)
            self.bench.report.write(self.path(), self.facts)


def main():
    arguments = parse()
    if not torch.cuda.is_available():
        sys.exit("PyTorch finds no GPU here.")
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as temporary:
        build = Build(arguments.build or temporary, nvcc_path())
        peers.set_up_torch()
        library = Library(os.path.abspath(arguments.library))
        check_names(arguments.losses, [loss.name for loss in library.losses()])
        side = QUICK_SIDE if arguments.quick else SIDE
        bench = Bench(library, Report(), side, ROUNDS, judged=not arguments.quick, with_frameworks=not arguments.ours,
                      losses=arguments.losses)
        run = Run(arguments, bench)
        print(f"onepass {run.facts['onepass']} on {run.facts['hardware']}, driver {run.facts['driver']}, "
              f"{run.facts['compiler']}, PyTorch {run.facts['torch']}, JAX {run.facts['jax']}\n"
              f"Arrays of {side} x {side}; medians of {ROUNDS} turns; clocks: {run.facts['clocks_before']}", flush=True)
        try:
            run.sections(build)
        except Failed as error:
            bench.report.fail("the library", str(error))
        finally:
            build.stop()
    run.facts["clocks_after"] = clocks()
    run.facts["seconds"] = round(time.perf_counter() - begin, 1)
    bench.report.summary()
    print(f"{run.facts['seconds']} s in all, by section: {run.facts['section_seconds']}")
    run.write()
    if arguments.json:
        print(f"Written to {run.path()}")
    return 1 if bench.report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
