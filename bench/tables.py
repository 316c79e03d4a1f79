#!/usr/bin/env python3
"""The tables of figures in the documents, made of the records in bench/results.

    python3 bench/tables.py            writes them anew
    python3 bench/tables.py --check    says which are not what the records hold, and ends with 1

A table stands between the lines `<!-- bench/tables.py: NAME -->` and `<!-- end -->` of README.md or docs/*.md.
"""

import functools
import glob
import json
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOSSES = ("mse", "smooth_l1", "hinge")
XEON, N1, H200 = "cpu-intel-xeon", "cpu-neoverse-n1", "gpu-nvidia-h200"
ROW = ", target (32768,)"


@functools.lru_cache(maxsize=None)
def read_rows(record):
    with open(os.path.join(ROOT, "bench", "results", record + ".json"), encoding="utf-8") as file:
        return json.load(file)["results"]


def find(record, work, peer, key=None):
    """The figure that a bar would be about, or None."""
    for row in read_rows(record):
        if row["work"] == work and row["peer"] == peer:
            return row[key] if key else row.get("judged", row.get("ratio"))
    return None


def figure(value, digits):
    """Two or three decimals; one for what is large, where more would pretend."""
    if value is None:
        return ""
    return f"{value:.1f}" if value >= 1.5 and digits == 2 else f"{value:.{digits}f}"


def table(heading, rows):
    lines = ["| " + " | ".join(heading) + " |", "|" + "---|" * len(heading)]
    return lines + ["|" + "|".join(f" {cell} " if cell else " " for cell in row) + "|" for row in rows]


# ------------------------------------------------------------------ the CPU --


def cpu_cells(record, work, peer):
    """One figure a loss; `work` has {loss} in it."""
    return [figure(find(record, work.format(loss=loss), peer), 2) for loss in LOSSES]


def threads(record, work):
    """The records say with how many threads "all cores" was."""
    return work.replace("all cores", {XEON: "16 threads", N1: "2 threads"}[record])


CPU_ROWS = [  # what it is called, beside what, its goal; its work and its peer in the record
    ("forward, all cores", "plain loop", "0.95", "forward {loss}, all cores", "plain loop, same loss"),
    ("forward, all cores", "plain loop, tuned flags", "", "forward {loss}, all cores", "the same, tuned flags"),
    ("forward, one thread", "plain loop", "0.90", "forward {loss}, 1 thread", "plain loop, same loss"),
    ("forward and gradient", "plain loop, gradient alone", "0.90", "both {loss}", "plain loop, gradient alone"),
    ("forward and gradient", "plain loop, both", "", "both {loss}", "plain loop, value and gradient"),
    ("gradient alone", "plain loop, gradient alone", "", "backward {loss}", "plain loop, gradient alone"),
    ("forward, bf16", "ours in f32, bytes a second", "0.60", "forward {loss}, bf16", "ours, f32"),
    ("forward, f16", "ours in f32, bytes a second", "0.60", "forward {loss}, f16", "ours, f32"),
    ("forward, padded rows", "ours, dense", "0.85", "forward {loss}, padded rows", "ours, dense"),
    ("forward, a number per row", "ours, dense, bytes a second", "0.85", "forward {loss}, target a number per row",
     "ours, dense"),
    ("forward, a shared row", "ours, dense, bytes a second", "0.85", "forward {loss}, target a shared row",
     "ours, dense"),
    ("both, a number per row", "ours, dense, bytes a second", "0.85", "both {loss}, target a number per row",
     "ours, dense"),
    ("both, a shared row", "ours, dense, bytes a second", "0.85", "both {loss}, target a shared row", "ours, dense"),
    ("forward, target transposed", "plain nested loop", "1.00", "forward {loss}, target transposed",
     "plain nested loop"),
    ("forward, both transposed", "plain nested loop", "1.00", "forward {loss}, both transposed", "plain nested loop"),
    ("forward, every second element", "plain nested loop", "1.00", "forward {loss}, every second element",
     "plain nested loop"),
    ("forward, 4-D, inner dimension 3", "plain nested loop", "1.00", "forward {loss}, 4-D, inner dimension 3",
     "plain nested loop"),
]


def cpu():
    rows = [[called, beside, goal] + [", ".join(cpu_cells(record, threads(record, work), peer)) for record in (XEON, N1)]
            for called, beside, goal, work, peer in CPU_ROWS]
    return table(["work", "beside", "goal", "Xeon", "Neoverse N1"], rows)


def cpu_short():
    rows = []
    for record, cores in (XEON, "16 Xeon cores"), (N1, "2 N1 cores"):
        forward = cpu_cells(record, threads(record, "forward {loss}, all cores"), "plain loop, same loss")
        both = cpu_cells(record, "both {loss}", "plain loop, gradient alone")
        if record == N1:
            tuned = cpu_cells(record, "forward {loss}, 2 threads", "the same, tuned flags")
            forward[1] += f" ({tuned[1]} beside one that vectorises)"
        rows.append([f"forward, {cores}", "8"] + forward)
        rows.append([f"forward and gradient in one pass, {cores}, beside a gradient alone", "12"] + both)
    return table(["work", "bytes an element", *LOSSES], rows)


# ------------------------------------------------------------------ the GPU --


def gpu_cells(work, peer, digits=3):
    return [figure(find(H200, work.format(loss=loss), peer), digits) for loss in LOSSES]


READ, BOTH = "rate of the plain read of both", "value and gradient"
GPU_ROWS = [
    ("forward", READ, "0.98", "forward {loss}", "plain read of both"),
    ("forward", "time of torch.compile", "below 1", "forward {loss}", "torch.compile"),
    ("forward", "time of torch eager", "", "forward {loss}", "torch eager"),
    ("forward", "time of jax.jit", "below 1", "forward {loss}", "jax.jit"),
    ("forward", "time of CUB", "below 1", "forward {loss}", "CUB TransformReduce"),
    ("forward, target (32768,)", "rate of the plain read of one", "0.95", "forward {loss}" + ROW, "plain read of one"),
    ("forward, target (32768, 1)", "rate of the plain read of one", "0.95", "forward {loss}, target (32768, 1)",
     "plain read of one"),
    ("forward, target (32768,)", "time of torch.compile", "below 1", "forward {loss}" + ROW, "torch.compile"),
    ("forward, target (32768, 1)", "time of torch.compile", "below 1", "forward {loss}, target (32768, 1)",
     "torch.compile"),
    ("forward, f16", READ, "0.93", "forward {loss}, f16", "plain read of both"),
    ("forward, bf16", READ, "0.93", "forward {loss}, bf16", "plain read of both"),
    ("forward, f16", "time of torch.compile", "1", "forward {loss}, f16", "torch.compile"),
    ("forward, bf16", "time of torch.compile", "1", "forward {loss}, bf16", "torch.compile"),
    (BOTH, "rate of read two, write one", "0.97", BOTH + " {loss}", "plain read two, write one"),
    (BOTH, "time of jax.jit(value_and_grad)", "0.92", BOTH + " {loss}", "jax.jit(value_and_grad)"),
    (BOTH, "time of torch.compile(grad_and_value)", "0.62, 0.62, 0.70", BOTH + " {loss}",
     "torch.compile(grad_and_value)"),
    (BOTH, "time of torch.compile with autograd", "0.45, 0.55, 0.60", BOTH + " {loss}", "torch.compile autograd"),
]


def gpu():
    """Where there is a gradient, the goals for hinge are about a target row that all rows share."""
    rows = []
    for called, beside, goal, work, peer in GPU_ROWS:
        cells = gpu_cells(work, peer)
        if called == BOTH:
            shared = "plain read one, write one" if "plain" in peer else peer
            cells[2] = figure(find(H200, BOTH + " hinge" + ROW, shared), 3)
        rows.append([called, beside, goal] + cells)
    return table(["work, f32 unless said", "beside", "goal", *LOSSES], rows)


def gpu_short():
    one_pass = "forward and gradient in one pass"
    rows = [["forward", "8", "rate of a plain read"] + gpu_cells("forward {loss}", "plain read of both"),
            ["forward", "8", "time of torch.compile"] + gpu_cells("forward {loss}", "torch.compile"),
            ["forward", "8", "time of torch eager"] + gpu_cells("forward {loss}", "torch eager"),
            [one_pass, "12", "time of torch.compile with autograd"] +
            gpu_cells(BOTH + " {loss}", "torch.compile autograd"),
            [one_pass, "12", "time of torch eager with autograd"] + gpu_cells(BOTH + " {loss}", "torch autograd"),
            [one_pass, "12", "time of jax.jit(value_and_grad)"] +
            gpu_cells(BOTH + " {loss}", "jax.jit(value_and_grad)")]
    return table(["work", "bytes an element", "beside", *LOSSES], rows)


def gpu_small():
    rows = []
    for power in (10, 12, 13, 16, 20, 21, 22, 23, 24):
        work = f"forward mse, 2^{power}"
        times = [find(H200, work, "torch.compile", "ours")]
        times += [find(H200, work, peer, "beside") for peer in ("torch.compile", "torch eager", "an empty kernel")]
        rows.append([f"2^{power}"] + [f"{time:.2f}" for time in times])
    return table(["elements", "ours", "torch.compile", "torch eager", "an empty kernel"], rows)


LAYOUTS = {"rows padded by 32 elements": "rows padded by 32", "rows padded by 1 element": "rows padded by 1",
           "one element fewer a row": "one element fewer a row", "both from element 1 on": "both from element 1 on",
           "target transposed": "target transposed", "both transposed": "both transposed",
           "bf16 prediction, f32 target": "bf16 with target f32", "f64": "f64, half the rows"}


def gpu_layouts():
    return table(["layout", "share"], [[called, f"{find(H200, 'forward mse, ' + work, 'ours, dense f32'):.2f}"]
                                       for called, work in LAYOUTS.items()])


# -------------------------------------------------------------- the package --


STEPS = [f"training step {loss}" + (ROW if loss == "hinge" else "") for loss in LOSSES]


def training_step():
    """The package's page begins with it: time as a share of the peer's, and what eager mse takes beside ours."""
    rows = [[f"time of {called}"] + [figure(find(H200, step, peer), 2) for step in STEPS]
            for called, peer in (("torch.compile", "torch.compile autograd"), ("eager PyTorch", "torch autograd"))]
    ours, eager = (find(H200, "training step mse: peak memory", "torch autograd", key) for key in ("ours", "beside"))
    rows.append(["memory beyond inputs and gradient", f"{1024 * ours:.0f} KiB, eager {eager / 1024:.0f} GiB", "", ""])
    return table(["beside", "mse", "smooth_l1", "hinge, target (32768,)"], rows)


def package():
    rows = [["training step, H200", beside, goal] + [figure(find(H200, step, peer), 3) for step in STEPS]
            for beside, goal, peer in (("torch.compile", "0.47, 0.55, 0.62", "torch.compile autograd"),
                                       ("eager", "0.4", "torch autograd"))]
    for called, goal, work in (("a call without gradient", "0.6", "forward"),
                               ("forward and backward", "0.95", "forward and backward"),
                               ("a Function that does nothing", "", "an empty Function")):
        rows.append([f"host, {called}, H200", "F.mse_loss", goal,
                     figure(find(H200, f"host time of mse_loss, {work}, 2^10", "F.mse_loss"), 3), "", ""])
    for record, cores in ("package-neoverse-n1", "2 N1 cores"), ("package-intel-xeon", "2 Xeon cores"):
        for called, goal, work in (("forward", "0.5", "forward, 8192 x 8192"),
                                   ("forward and backward", "0.6", "forward and backward, 8192 x 8192"),
                                   ("host, a call without gradient", "0.6", "a call, 1024 elements"),
                                   ("host, forward and backward", "0.95", "a call and its backward, 1024 elements")):
            rows.append([f"{called}, {cores}", "F.mse_loss", goal, figure(find(record, work, "F.mse_loss"), 3), "", ""])
    return table(["work", "beside", "goal", "mse", "smooth_l1", "hinge, target (32768,)"], rows)


# ---------------------------------------------------------------- every loss --

NOT_MEASURED = ["Not measured yet."]


def family_rows(record):
    """The rows of the section that has every loss, by work and peer; empty where the record has none."""
    return {(row["work"], row["peer"]): row for row in read_rows(record) if row.get("section") == "family"}


def judged(row, digits):
    """A row's ratio; bold where it misses its goal."""
    if row is None or row["ratio"] is None:
        return ""
    text = figure(row["ratio"], digits)
    return f"**{text}**" if row.get("met") is False else text


def goals(rows):
    """One word for all the goals of a loss."""
    met = [row["met"] for row in rows if row and row.get("met") is not None]
    return "" if not met else "met" if all(met) else "missed"


def family_gpu():
    rows = family_rows(H200)
    if not rows:
        return NOT_MEASURED
    works = list(dict.fromkeys(work.rpartition(": ")[0] for work, _ in rows if not work.endswith(": error")))
    lines = []
    for loss in works:
        forward, both = f"{loss}: forward", f"{loss}: value and gradient"
        plain = next((row for (work, peer), row in rows.items() if work == forward and peer.startswith("plain")), None)
        limit = next((row for (work, peer), row in rows.items() if work == both and peer.startswith("plain")), None)
        compiled = rows.get((forward, "torch.compile"))
        trained = rows.get((both, "torch.compile autograd"))
        lines.append([loss, judged(plain, 3), f"{plain['bar']:.2f}" if plain and "bar" in plain else "",
                      judged(compiled, 3), judged(trained, 3),
                      f"{trained['bar']:g}" if trained and "bar" in trained else "", judged(limit, 3),
                      goals((plain, compiled, trained, limit))])
    return table(["32768 x 32768, f32", "forward, rate of a plain read", "goal", "forward, time of torch.compile",
                  "value and gradient, time of torch.compile with autograd", "goal",
                  "value and gradient, rate of a plain read and write", "goals"], lines)


def family_cpu():
    """Those machines that were measured share a cell."""
    machines = {name: rows for name, record in (("Neoverse N1", "package-neoverse-n1"), ("Xeon", "package-intel-xeon"))
                if (rows := family_rows(record))}
    if not machines:
        return NOT_MEASURED
    works = list(dict.fromkeys(work.rpartition(": ")[0] for rows in machines.values() for work, _ in rows))
    columns = [(work, peer) for peer in ("torch.compile", "torch eager")
               for work in ("forward", "forward and backward")]
    lines = []
    for loss in works:
        found = [[rows.get((f"{loss}: {work}", peer)) for rows in machines.values()] for work, peer in columns]
        lines.append([loss] + [", ".join(judged(row, 2) for row in cell) for cell in found] +
                     [goals([row for cell in found for row in cell])])
    heading = [f"{work}, time of {peer}" for work, peer in columns]
    return table([f"4096 x 4096, f32; {', '.join(machines)}"] + heading + ["goals"], lines)


# ------------------------------------------------------------------ pictures --

PEERS = ("numpy", "pytorch", "torch.compile", "jax")


def compared(record):
    """Ours over each peer's time, at the largest size that was measured."""
    with open(os.path.join(ROOT, "bench", "results", record + ".json"), encoding="utf-8") as file:
        points = json.load(file)["points"]
    largest = max(point["elements"] for point in points)
    rows = []
    for mode, called in (("forward", "value"), ("both", "value and gradient")):
        for loss in LOSSES:
            seconds = {point["series"]: point["seconds"] for point in points
                       if (point["loss"], point["mode"], point["elements"]) == (loss, mode, largest)}
            rows.append([f"{called}, {loss}"] +
                        [figure(seconds["onepass"] / seconds[peer], 2) if peer in seconds else "" for peer in PEERS])
    return table([f"2^{largest.bit_length() - 1} elements, f32", *PEERS], rows)


def compare_cpu():
    return compared("compare-neoverse-n1")


def compare_gpu():
    return compared("compare-nvidia-h200")


def files():
    rows = read_rows("files-neoverse-n1")
    rate, start, memory = (row["ratio"] for row in rows)
    return table(["work", "goal", "measured"],
                 [["two files of 4 GiB in the page cache, beside the library in memory", "0.85", f"{rate:.2f}"],
                  ["two files of 1 KiB, from start to end", "10 ms", f"{start:.1f} ms"],
                  ["largest resident set, windows of the files included", "256 MiB", f"{memory:.0f} MiB"]])


# ------------------------------------------------------------- the documents --

TABLES = {function.__name__: function
          for function in (cpu, cpu_short, gpu, gpu_short, gpu_small, gpu_layouts, training_step, package, family_gpu, family_cpu,
                           compare_cpu, compare_gpu, files)}
MARKED = re.compile(r"(<!-- bench/tables\.py: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def refill(text):
    return MARKED.sub(lambda found: found[1] + "\n".join(TABLES[found[2]]()) + "\n" + found[3], text)


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__.strip())
    stale, seen = 0, 0
    for path in [os.path.join(ROOT, "README.md"), *sorted(glob.glob(os.path.join(ROOT, "docs", "*.md")))]:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        seen += len(MARKED.findall(text))
        if refill(text) == text:
            continue
        stale += 1
        name = os.path.relpath(path, ROOT)
        if check:
            print(f"{name}: its tables are not what bench/results holds; python3 bench/tables.py writes them anew")
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(refill(text))
            print(f"{name}: written anew")
    print(f"{seen} tables")
    sys.exit(1 if seen == 0 or (check and stale) else 0)


if __name__ == "__main__":
    main()
