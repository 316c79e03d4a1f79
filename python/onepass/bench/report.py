"""What people see: a table that lines up, filled row by row, and a progress bar where somebody watches."""

import sys

from . import record
from .cases import count_text

ORDER = ("numpy", "torch eager", "torch.compile", "torch.compile(grad_and_value)", "jax", "liger",
         "three products", "torch chunked", "plain loop",
         "plain loop, tuned flags", "plain loop, gradient alone", "onepass, f32", "onepass, dense", "an empty kernel",
         "an empty Function", "limit")
SHORT = {"torch.compile(grad_and_value)": "grad_and_value", "plain loop, tuned flags": "tuned loop",
         "plain loop, gradient alone": "gradient loop", "an empty kernel": "empty kernel",
         "an empty Function": "empty Function", "limit": "of the limit"}

NOTE = """\
Time: the median of a call. Of a peer: onepass's time as a share of its; below 1 onepass is faster. Of the limit, and
of onepass itself: onepass's bytes a second as a share of its. A star marks a missed goal."""


def quantity(figure, unit):
    """With three digits and a unit."""
    if unit == "s":
        for name, size in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
            if figure >= size:
                return f"{figure / size:.3g} {name}" if figure < 1000 * size else f"{figure / size:.0f} {name}"
        return f"{figure * 1e9:.0f} ns"
    if unit == "B":
        return f"{figure / (1 << 20):.1f} MiB" if figure >= 1 << 20 else f"{figure / 1024:.0f} KiB"
    return f"{figure:.3g} {unit}"


class Table:
    """One section's: its columns are those who may take part in any of its rows."""

    def __init__(self, section, cases, peers, write=print):
        self.write = write
        names = {name for case in cases for name in peers(case)}
        self.peers = [name for name in ORDER if name in names]
        self.first = max([len(section), *(len(words(case.loss, case.mode, case.type, case.elements, case.variant))
                                          for case in cases)])
        columns = "".join(f" {SHORT.get(name, name):>{self.width(name)}}" for name in self.peers)
        self.write(f"\n{section:<{self.first}} {'onepass':>9} {'GB/s':>7}{columns}")

    @staticmethod
    def width(name):
        return max(9, len(SHORT.get(name, name)))

    def add(self, row):
        ours, unit = row["found"].get("onepass"), row.get("unit", "s")
        rate = f"{1e-9 * row['bytes'] / ours:.3g}" if unit == "s" and ours else ""
        cells = "".join(f" {self.cell(row, name, unit):>{self.width(name)}}" for name in self.peers)
        label = words(row["loss"], row["mode"], row["type"], row["elements"], row["variant"])
        time = quantity(ours, unit) if ours is not None else "-"
        self.write(f"{label:<{self.first}} {time:>9} {rate:>7}{cells}".rstrip())

    @staticmethod
    def cell(row, name, unit):
        if unit != "s":
            return quantity(row["found"][name], unit) if name in row["found"] else "-"
        ratio = record.ratio(row, name)
        return "-" if ratio is None else f"{ratio:.3f}{'*' if record.misses(row, name) else ''}"


def words(loss, mode, type, elements, variant):
    return f"{loss} {mode} {type} {count_text(elements)}" + (f", {variant}" if variant else "")


def heading(facts):
    """A few lines on what is measured and with what."""
    lines = []
    if "cpu" in facts["hardware"]:
        lines.append(f"{facts['hardware']['cpu']}: {facts['threads']} threads, {facts['instruction_set']}")
    if "cuda" in facts["hardware"]:
        lines.append(f"{facts['hardware']['cuda']}: driver {facts['driver'] or 'unknown'}")
    lines.append(", ".join(f"{name} {version}" for name, version in facts["versions"].items()))
    return "\n".join(lines) + "\n" + NOTE


class Progress:
    """One line on a terminal, drawn over and over; nothing anywhere else."""

    WIDTH = 20

    def __init__(self, total, file=sys.stderr):
        self.total, self.done, self.file, self.shown = total, 0, file, file.isatty()

    def show(self, text):
        if self.shown:
            full = self.WIDTH * self.done // max(self.total, 1)
            bar = "#" * full + "." * (self.WIDTH - full)
            self.file.write(f"\r\033[K[{bar}] {self.done}/{self.total} {text}")
            self.file.flush()
        self.done += 1

    def wipe(self):
        if self.shown:
            self.file.write("\r\033[K")
            self.file.flush()
