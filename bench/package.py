#!/usr/bin/env python3
"""The Python package on the CPU: mse_loss beside PyTorch's own, on arrays of 8192 x 8192 and of 1024 elements.

    PYTHONPATH=build/python python3 bench/package.py --json bench/results

Both take turns in one process, with the same number of threads; medians are compared. A missed bar is shown, not an
error: machines differ. What needs a GPU is in bench/gpu.py.
"""

import argparse
import datetime
import json
import os
import re
import statistics
import subprocess
import sys
import time

import torch
import torch.nn.functional as F

import onepass

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SIDE, SMALL = 8192, 1024
TURNS, SMALL_TURNS, SMALL_CALLS = 15, 41, 200

# At most so much of the time of F.mse_loss.
BARS = {"forward, 8192 x 8192": 0.5, "forward and backward, 8192 x 8192": 0.6,
        "a call, 1024 elements": 0.6, "a call and its backward, 1024 elements": 0.95}


def forward(function, p, t):
    return lambda: function(p, t)


def trained(function, p, t):
    """A training step's use of it: the loss, then the gradient into a fresh p.grad."""
    leaf = p.detach().requires_grad_()

    def run():
        leaf.grad = None
        function(leaf, t).backward()

    return run


def seconds_of(run, calls):
    begin = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - begin) / calls


def measure(work, ours, theirs, turns, calls):
    """One row: ours and PyTorch's in turns, each warmed up."""
    times = {"ours": [], "theirs": []}
    for run in (ours, theirs):
        seconds_of(run, 2)
    for _ in range(turns):
        for name, run in (("ours", ours), ("theirs", theirs)):
            times[name].append(seconds_of(run, calls))
    ours, theirs = (statistics.median(times[name]) for name in ("ours", "theirs"))
    row = {"work": work, "ours_us": 1e6 * ours, "beside_us": 1e6 * theirs, "peer": "F.mse_loss", "ratio": ours / theirs,
           "bar": BARS[work], "met": round(ours / theirs, 3) <= BARS[work], "turns": turns}
    print(f"  {work:<42} {row['ours_us']:>12.1f} us {row['beside_us']:>12.1f} us {row['ratio']:>8.3f}  <= {BARS[work]:<5} "
          f"{'met' if row['met'] else 'MISSED'}", flush=True)
    return row


def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def hardware():
    found = re.search(r"Model name:\s*(.+)", output_of("lscpu"))
    return found.group(1).strip() if found else os.uname().machine


def facts():
    machine = onepass.machine()
    return {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "engine": "package",
            "hardware": hardware(),
            "instruction_set": machine["instruction_set"],
            "threads": torch.get_num_threads(),
            "onepass": onepass.__version__,
            "sources": output_of("cmake", "-D", f"ROOT={ROOT}", "-D", "ENGINE=cpu", "-P",
                                 os.path.join(ROOT, "cmake/source_hash.cmake")),
            "torch": torch.__version__,
            "python": sys.version.split()[0],
            "method": "Medians of turns that ours and PyTorch's take one after the other, in one process and with the "
                      "same number of threads."}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--json", metavar="FOLDER", help="write the results to package-<processor>.json there")
    arguments = parser.parse_args()
    record = facts()
    print(f"onepass {record['onepass']} and PyTorch {record['torch']} on {record['hardware']}, "
          f"{record['threads']} threads\n  {'mse_loss':<42} {'ours':>15} {'F.mse_loss':>15} {'ratio':>8}  bar")
    torch.manual_seed(20)
    p, t = torch.rand(SIDE, SIDE), torch.rand(SIDE, SIDE)
    small = p.flatten()[:SMALL].clone(), t.flatten()[:SMALL].clone()
    works = iter(BARS)
    rows = [measure(next(works), *(forward(f, p, t) for f in (onepass.mse_loss, F.mse_loss)), TURNS, 1),
            measure(next(works), *(trained(f, p, t) for f in (onepass.mse_loss, F.mse_loss)), TURNS, 1),
            measure(next(works), *(forward(f, *small) for f in (onepass.mse_loss, F.mse_loss)), SMALL_TURNS, SMALL_CALLS),
            measure(next(works), *(trained(f, *small) for f in (onepass.mse_loss, F.mse_loss)), SMALL_TURNS, SMALL_CALLS)]
    if arguments.json:
        words = re.sub(r"[^a-z0-9]+", "-", record["hardware"].lower()).strip("-")
        path = os.path.join(arguments.json, f"package-{words}.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(dict(record, results=rows), file, indent=2)
            file.write("\n")
        print(f"Written to {path}")


if __name__ == "__main__":
    main()
