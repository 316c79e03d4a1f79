#!/usr/bin/env python3
"""The command-line tool on two files of gigabytes beside the library on the same numbers in memory.

    PYTHONPATH=build-python/python python3 bench/files.py --tool build/cli/onepass --json bench/results

The files are in the page cache. Both take turns, with the same number of threads; medians are compared, and the bits must
be the same. Also: how long the tool takes from start to end on files of 1 KiB, and how much memory it holds.
"""

import argparse
import datetime
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import onepass

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TURNS, SMALL_TURNS, PIECE = 7, 51, 1 << 24


def write_array(path, count, seed):
    """Random numbers, the same ones again after a while, written as NumPy writes them; and the array itself."""
    array = np.empty(count, "<f4")
    numbers = np.random.default_rng(seed).standard_normal(min(count, PIECE), dtype="f4")
    for first in range(0, count, PIECE):
        array[first:first + PIECE] = numbers[:count - first]
    np.save(path, array)
    return array


def run_tool(tool, files):
    """Its own answer, and the seconds from start to end."""
    begun = time.perf_counter()
    done = subprocess.run([tool, "mse", *files, "--json"], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout), time.perf_counter() - begun


def largest_resident_set(tool, files):
    """In bytes, as the kernel counts it while the tool runs: what wait4 tells afterwards is this program's."""
    largest = 0
    with subprocess.Popen([tool, "mse", *files], stdout=subprocess.DEVNULL) as child:
        while child.poll() is None:
            with open(f"/proc/{child.pid}/status", encoding="ascii") as file:
                found = re.search(r"VmHWM:\s*(\d+) kB", file.read())
            largest = max(largest, 1024 * int(found.group(1)) if found else 0)
    return largest


def measure_large(tool, folder, count):
    files = [os.path.join(folder, name) for name in ("predictions.npy", "targets.npy")]
    arrays = [write_array(path, count, seed) for seed, path in enumerate(files)]
    in_memory, in_files = [], []
    for _ in range(TURNS):
        begun = time.perf_counter()
        value = onepass.mse_loss(*arrays)
        in_memory.append(time.perf_counter() - begun)
        answer, seconds = run_tool(tool, files)
        in_files.append(seconds)
        if answer["bits"] != f"0x{int(value.view('u4')):08x}":
            sys.exit(f"the tool's bits are {answer['bits']}, the library's are those of {value!r}")
    return statistics.median(in_memory), statistics.median(in_files), largest_resident_set(tool, files)


def measure_small(tool, folder):
    files = [os.path.join(folder, name) for name in ("small_p.npy", "small_t.npy")]
    for seed, path in enumerate(files):
        write_array(path, 224, seed)  # 1 KiB with the header
    return statistics.median(run_tool(tool, files)[1] for _ in range(SMALL_TURNS))


def row(work, ours, beside, unit, peer, ratio, kind, bar):
    """As the other records have it; a bar is about the ratio."""
    met = ratio >= bar if kind == "at least" else ratio < bar
    print(f"  {work:<48} {ours:10.4g} {'' if beside is None else format(beside, '.4g'):>10} {unit:<4} {peer:<24} "
          f"{ratio:8.3f}  {'>=' if kind == 'at least' else '<'} {bar:g} {'met' if met else 'MISSED'}")
    return {"work": work, "ours": ours, "beside": beside, "unit": unit, "peer": peer, "ratio": ratio, "bar_kind": kind,
            "bar": bar, "met": met}


def machine(tool):
    return json.loads(subprocess.run([tool, "info", "--json"], capture_output=True, check=True).stdout)


def source_hash():
    script = os.path.join(ROOT, "cmake", "source_hash.cmake")
    told = subprocess.run(["cmake", "-D", f"ROOT={ROOT}", "-D", "ENGINE=cpu", "-P", script], capture_output=True,
                          text=True, check=True)
    return told.stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", default=os.path.join(ROOT, "build", "cli", "onepass"))
    parser.add_argument("--folder", help="where the files go, and are deleted; else the usual place for temporary files")
    parser.add_argument("--gib", type=float, default=4, help="GiB a file (4)")
    parser.add_argument("--json", metavar="FOLDER", help="keeps the figures there")
    options = parser.parse_args()
    here = machine(options.tool)
    print(f"onepass {here['version']} on {here['cpu']}, {here['threads']} threads, files of {options.gib:g} GiB")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        count = int(options.gib * 2**30) // 4
        in_memory, in_files, largest = measure_large(options.tool, folder, count)
        small = measure_small(options.tool, folder)
    rows = [row("mse of two .npy files in the page cache", 8 * count / in_files / 1e9, 8 * count / in_memory / 1e9, "GB/s",
                "the library, in memory", in_memory / in_files, "at least", 0.85),
            row("mse of files of 1 KiB, from start to end", 1e3 * small, None, "ms", "", 1e3 * small, "below", 10),
            row("largest resident set, mapped windows included", largest / 2**20, None, "MiB", "", largest / 2**20,
                "below", 256)]
    if options.json:
        name = re.sub(r"[^a-z0-9]+", "-", here["cpu"].lower()).strip("-")
        path = os.path.join(options.json, f"files-{name}.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                       "engine": "files", "hardware": here["cpu"], "threads": here["threads"],
                       "instruction_set": here["instruction_set"], "onepass": here["version"],
                       "sources": source_hash(), "results": rows}, file, indent=1)
            file.write("\n")
        print(f"Written to {path}")


if __name__ == "__main__":
    main()
