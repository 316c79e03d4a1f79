#!/usr/bin/env python3
"""The Python package on the CPU beside PyTorch: mse_loss on two sizes, and then every loss on 4096 x 4096 elements.

    PYTHONPATH=build/python python3 bench/package.py --json bench/results

All take turns in one process, with the same number of threads; medians are compared. A missed bar is shown, not an
error: machines differ. A wrong result is an error. What needs a GPU is in bench/gpu.py.
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

# Before PyTorch reads it: processes that compile would run beside what is measured.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

import torch
import torch.nn.functional as F

import onepass
from torch_words import DATA, WORDS

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SECTIONS = ("mse", "family")

SIDE, SMALL = 8192, 1024
TURNS, SMALL_TURNS, SMALL_CALLS = 15, 41, 200

# At most so much of the time of F.mse_loss.
BARS = {"forward, 8192 x 8192": 0.5, "forward and backward, 8192 x 8192": 0.6,
        "a call, 1024 elements": 0.6, "a call and its backward, 1024 elements": 0.95}

FAMILY_SIDE = 4096
FEWEST_TURNS, MOST_TURNS, FAMILY_SECONDS = 3, 15, 1.0  # of a work: so many turns, or as many as fit

# At most so much of the time of PyTorch's. Eager PyTorch writes the terms of a mean before it adds them up, whichever
# the loss, so that there always is a temporary.
FAMILY_BARS = {"torch.compile": 1.0, "torch eager": 0.333}


# --------------------------------------------------------------------- measuring --


def forward(function, *tensors):
    return lambda: function(*tensors)


def trained(function, p, *others):
    """A training step's use of it: the loss, then the gradient into a fresh p.grad."""
    leaf = p.detach().requires_grad_()

    def run():
        leaf.grad = None
        value = function(leaf, *others)
        value.backward()
        return value.detach(), leaf.grad

    return run


def seconds_of(run, calls):
    begin = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - begin) / calls


def row_of(section, work, ours, peer, theirs, bar):
    """A line and its record, of two lists of seconds."""
    ours, beside, turns = statistics.median(ours), statistics.median(theirs), len(ours)
    row = {"section": section, "work": work, "ours_us": 1e6 * ours, "beside_us": 1e6 * beside, "peer": peer,
           "ratio": ours / beside, "bar": bar, "met": round(ours / beside, 3) <= bar, "turns": turns}
    print(f"  {work:<42} {row['ours_us']:>12.1f} us {peer:<14} {row['beside_us']:>12.1f} us {row['ratio']:>8.3f}  "
          f"<= {row['bar']:<5} {'met' if row['met'] else 'MISSED'}", flush=True)
    return row


# --------------------------------------------------------------------------- mse --


def measure(work, ours, theirs, turns, calls):
    """One row: ours and PyTorch's in turns, each warmed up."""
    times = {ours: [], theirs: []}
    for run in times:
        seconds_of(run, 2)
    for _ in range(turns):
        for run, seconds in times.items():
            seconds.append(seconds_of(run, calls))
    return row_of("mse", work, times[ours], "F.mse_loss", times[theirs], BARS[work])


def measure_mse():
    torch.manual_seed(20)
    p, t = torch.rand(SIDE, SIDE), torch.rand(SIDE, SIDE)
    small = p.flatten()[:SMALL].clone(), t.flatten()[:SMALL].clone()
    works = iter(BARS)
    both = onepass.mse_loss, F.mse_loss
    return [measure(next(works), *(forward(f, p, t) for f in both), TURNS, 1),
            measure(next(works), *(trained(f, p, t) for f in both), TURNS, 1),
            measure(next(works), *(forward(f, *small) for f in both), SMALL_TURNS, SMALL_CALLS),
            measure(next(works), *(trained(f, *small) for f in both), SMALL_TURNS, SMALL_CALLS)]


# ------------------------------------------------------------------------ family --

# Our functions whose names are not the loss's own with "_loss" after it, or that take more than operands.
OURS = {
    "quantile": lambda p, t: onepass.quantile_loss(p, t, tau=0.9),
    "bce": lambda p, t: onepass.binary_cross_entropy(p, t),
    "bce_with_logits": lambda p, t: onepass.binary_cross_entropy_with_logits(p, t),
    "bce_with_logits_pos_weight": lambda p, t, v: onepass.binary_cross_entropy_with_logits(p, t, pos_weight=v),
    "focal": lambda p, t: onepass.sigmoid_focal_loss(p, t, gamma=1.5, reduction="mean"),
    "focal_squared": lambda p, t: onepass.sigmoid_focal_loss(p, t, reduction="mean"),
    "poisson_nll_full": lambda p, t: onepass.poisson_nll_loss(p, t, full=True),
    "poisson_nll_rate": lambda p, t: onepass.poisson_nll_loss(p, t, log_input=False),
    "poisson_nll_rate_full": lambda p, t: onepass.poisson_nll_loss(p, t, log_input=False, full=True),
    "kl_div": lambda p, t: onepass.kl_div(p, t, reduction="sum") / p.numel(),
    "kl_div_log_target": lambda p, t: onepass.kl_div(p, t, reduction="sum", log_target=True) / p.numel(),
}


def our_function(loss):
    return OURS[loss] if loss in OURS else getattr(onepass, f"{loss}_loss")


def measure_family(losses):
    """Each loss forward and as a training step, beside torch.compile and beside eager PyTorch."""
    generator = torch.Generator().manual_seed(20)
    uniform = [torch.empty(FAMILY_SIDE, FAMILY_SIDE).uniform_(-2, 2, generator=generator) for _ in range(3)]
    rows = []
    for loss in losses:
        if loss not in WORDS:
            sys.exit(f"{loss}: bench/torch_words.py has no words for it")
        words = WORDS[loss]
        operands = [DATA[kind](numbers) for kind, numbers in zip(words.data, uniform)]
        compiled = torch.compile(words.function, dynamic=False, fullgraph=True)
        functions = {"onepass": our_function(loss), "torch.compile": compiled, "torch eager": words.function}
        for work, use in (("forward", forward), ("forward and backward", trained)):
            runs = {name: use(function, *operands) for name, function in functions.items()}
            times = family_times(f"{loss}: {work}", runs)
            for peer, bar in FAMILY_BARS.items():
                rows.append(row_of("family", f"{loss}: {work}", times["onepass"], peer, times[peer], bar))
        torch._dynamo.reset()  # what was compiled is of one loss
    return rows


def family_times(work, runs):
    """The seconds of each, in turns, after a run that warms it up and shows that all compute the same."""
    results = {name: run() for name, run in runs.items()}
    check_same(work, results)
    del results
    times = {name: [] for name in runs}
    begin = time.perf_counter()
    for turn in range(MOST_TURNS):
        if turn >= FEWEST_TURNS and time.perf_counter() - begin > FAMILY_SECONDS:
            break
        for name, run in runs.items():
            times[name].append(seconds_of(run, 1))
    return times


def check_same(work, results):
    """Values and gradients within what floats that are added up in other orders may differ by."""
    listed = {name: result if isinstance(result, tuple) else (result,) for name, result in results.items()}
    ours = listed.pop("onepass")
    for name, theirs in listed.items():
        for found, expected in zip(ours, theirs):
            is_close = (found - expected).abs() <= 1e-4 * expected.abs().max()
            wrong = 1 - float(is_close.double().mean())
            if wrong > (0 if found.dim() == 0 else 1e-6):  # at a kink the two may stand on different sides
                sys.exit(f"{work}: ours differs from {name}'s: {found} and {expected}")


# -------------------------------------------------------------------- the program --


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


def names_among(known):
    def names(text):
        for name in text.split(","):
            if name not in known:
                raise argparse.ArgumentTypeError(f"there is no {name!r}; there are {', '.join(known)}")
        return text.split(",")

    return names


def parse(losses):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--json", metavar="FOLDER", help="write the results to package-<processor>.json there, or to "
                        "package-<processor>-partial.json if they are not all")
    parser.add_argument("--only", type=names_among(SECTIONS), default=SECTIONS, metavar="NAMES",
                        help=f"some sections, with commas between: {', '.join(SECTIONS)}")
    parser.add_argument("--losses", type=names_among(losses), default=losses, metavar="NAMES",
                        help="some losses of the section family, with commas between; all unless said otherwise")
    return parser.parse_args()


def main():
    losses = [loss["name"] for loss in onepass.losses()]
    arguments = parse(losses)
    record = facts()
    print(f"onepass {record['onepass']} and PyTorch {record['torch']} on {record['hardware']}, "
          f"{record['threads']} threads\n  {'work':<42} {'ours':>15} {'beside':<14} {'':>15} {'ratio':>8}  bar")
    begin = time.perf_counter()
    rows = []
    if "mse" in arguments.only:
        rows += measure_mse()
    if "family" in arguments.only:
        rows += measure_family(arguments.losses)
    record["seconds"] = round(time.perf_counter() - begin, 1)
    print(f"{sum(row['met'] for row in rows)} bars met, {sum(not row['met'] for row in rows)} missed, "
          f"in {record['seconds']} s")
    if arguments.json:
        words = re.sub(r"[^a-z0-9]+", "-", record["hardware"].lower()).strip("-")
        whole = set(arguments.only) == set(SECTIONS) and arguments.losses == losses
        path = os.path.join(arguments.json, f"package-{words}{'' if whole else '-partial'}.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(dict(record, results=rows), file, indent=2)
            file.write("\n")
        print(f"Written to {path}")


if __name__ == "__main__":
    main()
