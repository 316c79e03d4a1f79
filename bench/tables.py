#!/usr/bin/env python3
"""The tables of figures in the documents, made of the records in bench/results.

    python3 bench/tables.py              writes them anew
    python3 bench/tables.py --check      says which are not what the records hold, and ends with 1
    python3 bench/tables.py --records    lists the records, and says what is wrong with one

A table stands between the lines `<!-- bench/tables.py: NAME -->` and `<!-- end -->` of README.md or docs/*.md. Where
several records of a machine have a case, the newest counts.
"""

import functools
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RESULTS = os.path.join(ROOT, "bench", "results")
sys.path.insert(0, os.path.join(ROOT, "python", "onepass", "bench"))
import record  # noqa: E402: the package itself would have to be built

LOSSES = ("mse", "smooth_l1", "hinge")
XEON, XEON_2, N1, H200 = "intel-xeon-16", "intel-xeon-2", "neoverse-n1-2", "nvidia-h200"
LARGE = 1 << 30  # elements of the GPU's arrays that no cache holds

# ------------------------------------------------------------------- the records --


def record_paths():
    return sorted(glob.glob(os.path.join(RESULTS, "*.json")))


@functools.lru_cache(maxsize=None)
def records_of(machine):
    """The rows of each of a machine's records, the newest first; a quick look is no record."""
    paths = [path for path in record_paths() if re.fullmatch(rf"{machine}(-[a-z-]+)?\.json", os.path.basename(path))]
    records = sorted(map(record.read, paths), key=lambda found: found["date"], reverse=True)
    return [found["results"] for found in records if not found.get("quick")]


@functools.lru_cache(maxsize=None)
def rows_of(machine):
    return [row for rows in records_of(machine) for row in rows]


def find(machine, peer, ours="onepass", type="f32", variant="", **wanted):
    """The row in which both took part, or None. A wanted mode may be one of several."""
    wanted.update(type=type, variant=variant)
    for row in rows_of(machine):
        if ours in row["found"] and peer in row["found"]:
            if all(row[key] in value if isinstance(value, tuple) else row[key] == value for key, value in wanted.items()):
                return row
    return None


def ratio(machine, peer, digits, by_rate=None, **wanted):
    """A figure as the tables print it. By rate, more is better; by time, less."""
    row = find(machine, peer, **wanted)
    by_rate = record.by_rate(peer) if by_rate is None else by_rate
    return figure(row and (record.rate_ratio if by_rate else record.time_ratio)(row, peer, wanted.get("ours", "onepass")),
                  digits)


def figure(value, digits):
    """Two or three decimals; one for what is large, where more would pretend."""
    if value is None:
        return ""
    return f"{value:.1f}" if value >= 1.5 and digits == 2 else f"{value:.{digits}f}"


def table(heading, rows, labels=1):
    """Without the rows of which nothing was measured."""
    lines = ["| " + " | ".join(heading) + " |", "|" + "---|" * len(heading)]
    return lines + ["|" + "|".join(f" {cell} " if cell else " " for cell in row) + "|" for row in rows
                    if any(re.search(r"\d", cell) for cell in row[labels:])]


# ------------------------------------------------------------------ the CPU --


def cpu_cells(machine, peer, **wanted):
    """One figure a loss, by rate."""
    return [ratio(machine, peer, 2, by_rate=True, loss=loss, **wanted) for loss in LOSSES]


PLAIN, OURS_F32, DENSE = {"section": "plain", "elements": 1 << 26}, "onepass, f32", "onepass, dense"
CPU_ROWS = [  # what it is called, compared with what, its goal; the peer and the case in the record
    ("forward, all cores", "plain loop", "0.95", "plain loop", {**PLAIN, "mode": "forward"}),
    ("forward, all cores", "plain loop, tuned flags", "", "plain loop, tuned flags", {**PLAIN, "mode": "forward"}),
    ("forward, one thread", "plain loop", "0.90", "plain loop", {**PLAIN, "mode": "forward", "variant": "one thread"}),
    ("forward and gradient", "plain loop, gradient alone", "0.90", "plain loop, gradient alone",
     {**PLAIN, "mode": "both"}),
    ("forward and gradient", "plain loop, both", "", "plain loop", {**PLAIN, "mode": "both"}),
    ("gradient alone", "plain loop, gradient alone", "", "plain loop", {**PLAIN, "mode": "backward"}),
    *((f"forward, {type}", "ours in f32, bytes a second", "0.60", OURS_F32,
       {"section": "types", "mode": "forward", "type": type}) for type in ("bf16", "f16")),
    *((f"{mode}, {name}", "ours, dense, bytes a second", "0.85", DENSE,
       {"section": "shapes", "mode": mode, "variant": name}) for mode in ("forward", "both")
      for name in ("padded rows", "a number per row", "a shared row")),
    *((f"forward, {name}", "plain nested loop", "1.00", "plain loop",
       {"section": "shapes", "mode": "forward", "variant": name})
      for name in ("target transposed", "both transposed", "every second element", "4-D, inner dimension 3")),
]


def cpu():
    rows = [[called, beside, goal] + [", ".join(cpu_cells(machine, peer, **case)) for machine in (XEON, N1)]
            for called, beside, goal, peer, case in CPU_ROWS]
    return table(["work", "compared with", "goal", "Xeon", "Neoverse N1"], rows, labels=3)


def cpu_cached():
    """From the second-level cache to memory, on two cores."""
    works = [(power, mode, called, peer) for power in (16, 20, 26) for mode, called, peer in (
        ("forward", "forward", "plain loop"), ("both", "forward and gradient", "plain loop, gradient alone"))]
    rows = [[f"2^{power}", called, threads or "two threads"] + [", ".join(cpu_cells(
        machine, peer, section="plain", elements=1 << power, mode=mode, variant=threads)) for machine in (XEON_2, N1)]
        for power, mode, called, peer in works for threads in ("", "one thread")]
    return table(["elements", "work", "threads", "Xeon", "Neoverse N1"], rows, labels=3)


# ------------------------------------------------------------------ the GPU --


def gpu_cells(peer, mode, **wanted):
    wanted = {"section": "sizes", "elements": LARGE, **wanted}
    return [ratio(H200, peer, 3, loss=loss, mode=mode, **wanted) for loss in LOSSES]


READ, BOTH = "rate of a plain read", "value and gradient"
GPU_ROWS = [
    ("forward", READ, "0.98", "limit", "forward", {}),
    ("forward", "time of torch.compile", "below 1", "torch.compile", "forward", {}),
    ("forward", "time of torch eager", "", "torch eager", "forward", {}),
    ("forward", "time of jax.jit", "below 1", "jax", "forward", {}),
    *((f"forward, target {name}", *rest, "forward", {"section": "shapes", "variant": name})
      for rest in ((READ, "0.95", "limit"), ("time of torch.compile", "below 1", "torch.compile"))
      for name in ("a shared row", "a number per row")),
    *((f"forward, {type}", *rest, "forward", {"section": "types", "type": type})
      for rest in ((READ, "0.93", "limit"), ("time of torch.compile", "1", "torch.compile")) for type in ("f16", "bf16")),
    (BOTH, "rate of a plain read and write", "0.97", "limit", "both", {}),
    (BOTH, "time of jax.jit(value_and_grad)", "0.92", "jax", "both", {}),
    (BOTH, "time of torch.compile(grad_and_value)", "0.62, 0.62, 0.70", "torch.compile(grad_and_value)", "both", {}),
    (BOTH, "time of torch.compile with autograd", "0.45, 0.55, 0.60", "torch.compile", "both", {}),
    *((f"{BOTH}, target a shared row", beside, goal, peer, "both", {"section": "shapes", "variant": "a shared row"})
      for beside, goal, peer in (("rate of a plain read and write", "0.97", "limit"),
                                 ("time of torch.compile with autograd", "0.60", "torch.compile"))),
]


def gpu():
    rows = [[called, beside, goal] + gpu_cells(peer, mode, **case)
            for called, beside, goal, peer, mode, case in GPU_ROWS]
    return table(["work, f32 unless said", "compared with", "goal", *LOSSES], rows, labels=3)


def gpu_short():
    one_pass = "forward and gradient in one pass"
    rows = [["forward", "8", "rate of a plain read"] + gpu_cells("limit", "forward"),
            ["forward", "8", "time of torch.compile"] + gpu_cells("torch.compile", "forward"),
            ["forward", "8", "time of torch eager"] + gpu_cells("torch eager", "forward"),
            [one_pass, "12", "time of torch.compile with autograd"] + gpu_cells("torch.compile", "both"),
            [one_pass, "12", "time of torch eager with autograd"] + gpu_cells("torch eager", "both"),
            [one_pass, "12", "time of jax.jit(value_and_grad)"] + gpu_cells("jax", "both")]
    return table(["work", "bytes an element", "compared with", *LOSSES], rows, labels=3)


def gpu_small():
    names = ("onepass", "torch.compile", "an empty kernel")
    rows = []
    for power in (10, 11, 12, 13, 14, 16, 18, 20, 21, 22, 23, 24):
        row = find(H200, "an empty kernel", section="sizes", loss="mse", mode="forward", elements=1 << power)
        rows.append([f"2^{power}"] + [f"{1e6 * row['found'][name]:.2f}" if row and name in row["found"] else ""
                                      for name in names])
    return table(["elements", "ours", "torch.compile", "an empty kernel"], rows)


def gpu_weights():
    variants = ("weight", "mask", "weight and mask")
    powers = (10, 11, 12, 13, 14, 16, 20, 24, 28)
    rows = [[f"2^{power}"] + [ratio(H200, "torch.compile", 3, section="weights", loss="mse", mode=mode, variant=variant,
                                    elements=1 << power) for mode in ("forward", "step") for variant in variants]
            for power in powers]
    return table(["elements", *(f"{mode}, {variant}" for mode in ("forward", "step") for variant in variants)], rows)


def gpu_layouts():
    names = ("padded rows", "rows padded by 1", "one element fewer a row", "both from element 1 on", "target transposed",
             "both transposed", "every second element", "bf16 prediction, f32 target", "f64")
    return table(["layout", "share"], [[name, ratio(H200, DENSE, 2, section="shapes", loss="mse", mode="forward",
                                                    variant=name)] for name in names])


# ----------------------------------------------------------- losses over rows --


def row_works(machine, section):
    """In the order of the record that has most of them."""
    records = [[row for row in rows if row["section"] == section and not row["variant"].endswith("memory")]
               for rows in records_of(machine)]
    return list(dict.fromkeys((row["loss"], row["type"], row["variant"])
                              for rows in sorted(records, key=len, reverse=True) for row in rows))


def over_rows(machine, section, modes, columns):
    """A line a loss, shape and mode: what is in bold misses its goal."""
    lines, works = [], row_works(machine, section)
    names = {loss: f"{loss} " if len({loss for loss, _, _ in works}) > 1 else "" for loss, _, _ in works}
    for loss, type, variant in works:
        for mode, called in modes:
            of = lambda peer: find(machine, peer, section=section, loss=loss, type=type, variant=variant, mode=mode)
            lines.append([f"{names[loss]}{type} {variant}", called] + [judged(of(peer), peer, 3) for _, peer in columns])
    return table(["vectors" if section == "vectors" else "logits", "work", *(name for name, _ in columns)], lines, labels=2)


ROW_MODES = [("forward", "forward"), ("step", "step"), ("scaled", "step, loss * 0.3")]
ROW_PEERS = [("time of torch.compile", "torch.compile"), ("time of torch eager", "torch eager")]


def rows_gpu():
    return over_rows(H200, "rows", ROW_MODES,
                     [*ROW_PEERS, ("time of Liger", "liger"), ("rate of the memory's limit", "limit")])


def rows_short():
    """A step of cross-entropy, for README.md."""
    works = (("a language model's logits", "bf16", "8192 x 128256"), ("rows of 4096 classes", "f32", "32768 x 4096"),
             ("millions of rows", "f32", "4194304 x 10"), ("images of 21 classes", "f32", "8 x 21 x 1024 x 1024"))
    peers = [*ROW_PEERS, ("time of Liger", "liger")]
    rows = [[f"{called}, {type} {shape}"] + [ratio(H200, peer, 3, section="rows", loss="cross_entropy", type=type,
                                                   variant=shape, mode="step") for _, peer in peers]
            for called, type, shape in works]
    return table(["cross-entropy, forward and backward", *(name for name, _ in peers)], rows)


def vectors_gpu():
    return over_rows(H200, "vectors", ROW_MODES[:2], [*ROW_PEERS, ("rate of the memory's limit", "limit")])


def distributions_gpu():
    return over_rows(H200, "distributions", ROW_MODES[:2], [*ROW_PEERS, ("rate of the memory's limit", "limit")])


def rows_cpu():
    """Losses over rows and of vectors; those machines that were measured share a cell."""
    machines = {name: machine for name, machine in (("Xeon", XEON_2), ("Neoverse N1", N1)) if row_works(machine, "rows")}
    works = dict.fromkeys((section, *work) for section in ("rows", "vectors", "distributions")
                          for machine in machines.values() for work in row_works(machine, section))
    lines = []
    for section, loss, type, variant in works:
        found = [[find(machine, "torch.compile", section=section, loss=loss, type=type, variant=variant, mode=mode)
                  for machine in machines.values()] for mode in ("forward", "step")]
        goals = [next((f"{row['goals']['torch.compile']:g}" for row in cell if row and row.get("goals")), "")
                 for cell in found]
        lines.append([f"{loss} {type} {variant}"] + [text for cell, goal in zip(found, goals) for text in (
            ", ".join(filter(None, (judged(row, "torch.compile", 2) for row in cell))), goal)])
    return table([f"two cores: {', '.join(machines)}", "forward", "goal", "step", "goal"], lines)


# -------------------------------------------------------------- the package --


def step_cells(peer, digits):
    """mse and smooth_l1, and hinge with a target row that all rows share."""
    return [ratio(H200, peer, digits, mode="step", loss=loss, **(
        {"section": "shapes", "variant": "a shared row"} if loss == "hinge" else
        {"section": "sizes", "elements": LARGE})) for loss in LOSSES]


def training_step():
    """The package's page begins with it: time as a share of the peer's, and what eager mse takes, and ours."""
    rows = [[f"time of {called}"] + step_cells(peer, 2)
            for called, peer in (("torch.compile", "torch.compile"), ("eager PyTorch", "torch eager"))]
    memory = find(H200, "torch eager", section="memory", mode="step")
    if memory:
        ours, eager = memory["found"]["onepass"], memory["found"]["torch eager"]
        rows.append(["memory beyond inputs and gradient",
                     f"{ours / 1024:.0f} KiB, eager {eager / (1 << 30):.0f} GiB", "", ""])
    return table(["compared with", "mse", "smooth_l1", "hinge, target (32768,)"], rows)


def package():
    rows = [["training step, H200", beside, goal] + step_cells(peer, 3)
            for beside, goal, peer in (("torch.compile", "0.47, 0.55, 0.62", "torch.compile"),
                                       ("torch eager", "0.4", "torch eager"))]
    host = [("a call without gradient", "0.6", "onepass", "forward"), ("forward and backward", "0.95", "onepass", "step"),
            ("a Function that does nothing", "", "an empty Function", "step")]
    for machine, name in (H200, "H200"), (N1, "2 N1 cores"), (XEON_2, "2 Xeon cores"):
        for called, goal, mode in (("forward", "0.5", "forward"), ("forward and backward", "0.6", "step")):
            rows.append([f"{called}, {name}", "torch eager", goal, ratio(
                machine, "torch eager", 3, section="sizes", loss="mse", mode=mode, variant="8192 x 8192"), "", ""])
        for called, goal, ours, mode in host:
            rows.append([f"host, {called}, {name}", "torch eager", goal, ratio(
                machine, "torch eager", 3, ours=ours, section="host", mode=mode), "", ""])
    return table(["work", "compared with", "goal", "mse", "smooth_l1", "hinge, a shared row"], rows, labels=3)


# ---------------------------------------------------------------- every loss --


def judged(row, peer, digits):
    """A row's ratio; bold where it misses its goal."""
    text = figure(row and record.ratio(row, peer), digits)
    return f"**{text}**" if text and record.misses(row, peer) else text


def goals_of(cells):
    """One word for all the goals of a loss."""
    asked = [(row, peer) for row, peer in cells if row and peer in row.get("goals", {})]
    return "" if not asked else "missed" if any(record.misses(*cell) for cell in asked) else "met"


def all_losses(machine):
    return list(dict.fromkeys((row["loss"], row["variant"]) for row in rows_of(machine) if row["section"] == "losses"))


def family_gpu():
    lines = []
    for loss, variant in all_losses(H200):
        of = lambda peer, *modes: find(H200, peer, section="losses", loss=loss, variant=variant, mode=modes)
        plain, compiled = of("limit", "forward"), of("torch.compile", "forward")
        trained, limit = of("torch.compile", "step", "both"), of("limit", "step", "both")
        goal = lambda row, peer, form: format(row["goals"][peer], form) if row and peer in row.get("goals", {}) else ""
        lines.append([f"{loss}, {variant}" if variant else loss, judged(plain, "limit", 3), goal(plain, "limit", ".2f"),
                      judged(compiled, "torch.compile", 3), judged(trained, "torch.compile", 3),
                      goal(trained, "torch.compile", "g"), judged(limit, "limit", 3),
                      goals_of([(plain, "limit"), (compiled, "torch.compile"), (trained, "torch.compile")])])
    return table(["32768 x 32768, f32", "forward, rate of a plain read", "goal", "forward, time of torch.compile",
                  "value and gradient, time of torch.compile with autograd", "goal",
                  "value and gradient, rate of a plain read and write", "goals"], lines)


def family_cpu():
    """Those machines that were measured share a cell."""
    machines = {name: machine for name, machine in (("Xeon", XEON), ("Neoverse N1", N1)) if all_losses(machine)}
    columns = [(mode, peer) for peer in ("torch.compile", "torch eager") for mode in ("forward", "step")]
    lines = []
    for loss, variant in dict.fromkeys(found for machine in machines.values() for found in all_losses(machine)):
        found = [[(find(machine, peer, section="losses", loss=loss, variant=variant, mode=mode), peer)
                  for machine in machines.values()] for mode, peer in columns]
        lines.append([f"{loss}, {variant}" if variant else loss] +
                     [", ".join(filter(None, (judged(row, peer, 2) for row, peer in cell))) for cell in found] +
                     [goals_of([one for cell in found for one in cell])])
    heading = [f"{'forward and backward' if mode == 'step' else mode}, time of {peer}" for mode, peer in columns]
    return table([f"4096 x 4096, f32; {', '.join(machines)}"] + heading + ["goals"], lines)


# ---------------------------------------------------------------------- sizes --

PEERS = {"numpy": "numpy", "pytorch": "torch eager", "torch.compile": "torch.compile", "jax": "jax"}


def compared(machine):
    """Ours over each peer's time, at the largest size at which steps were compared with others than PyTorch."""
    largest = max(row["elements"] for row in rows_of(machine) if row["section"] == "sizes" and row["mode"] == "step" and
                  {"numpy", "jax"} & set(row["found"]))
    rows = [[f"{called}, {loss}"] + [ratio(machine, peer, 2, section="sizes", loss=loss, mode=mode, elements=largest)
                                     for peer in PEERS.values()]
            for mode, called in (("forward", "value"), ("step", "value and gradient")) for loss in LOSSES]
    return table([f"2^{largest.bit_length() - 1} elements, f32", *PEERS], rows)


def compare_cpu():
    return compared(N1)


def compare_gpu():
    return compared(H200)


# ------------------------------------------------------------- the documents --

TABLES = {function.__name__: function
          for function in (cpu, cpu_cached, gpu, gpu_short, gpu_small, gpu_weights, gpu_layouts, rows_gpu, rows_short,
                           vectors_gpu, distributions_gpu, rows_cpu, training_step, package, family_gpu, family_cpu, compare_cpu, compare_gpu)}
MARKED = re.compile(r"(<!-- bench/tables\.py: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def refill(text):
    return MARKED.sub(lambda found: found[1] + "\n".join(TABLES[found[2]]()) + "\n" + found[3], text)


def refill_documents(check):
    """The number of tables, and of documents whose tables are not what the records hold."""
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
    return seen, stale


def main():
    if sys.argv[1:] not in ([], ["--check"], ["--records"]):
        sys.exit(__doc__.strip())
    try:
        for path in record_paths():
            found = record.read(path)
            if sys.argv[1:] == ["--records"]:
                print(f"{os.path.basename(path)}: {', '.join(found['hardware'].values())}, {found['date']}, "
                      f"{len(found['results'])} cases")
        if sys.argv[1:] == ["--records"]:
            return 0 if record_paths() else "there are no records"
        seen, stale = refill_documents(check=bool(sys.argv[1:]))
    except record.Unreadable as error:
        return str(error)
    print(f"{seen} tables")
    return 1 if seen == 0 or (sys.argv[1:] and stale) else 0


if __name__ == "__main__":
    sys.exit(main())
