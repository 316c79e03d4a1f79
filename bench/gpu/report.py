"""What the benchmark found: a table for people, JSON for bench/results.

A bar is judged by the figure as it is printed. A bar whose peer is missing is not
judged, and the summary says so.
"""

import dataclasses
import json
import math
import os
import re
from typing import Optional

AT_LEAST, AT_MOST, BELOW = "at least", "at most", "below"
SIGNS = {AT_LEAST: ">=", AT_MOST: "<=", BELOW: "<"}

UNITS = {"relative": "rel"}  # as the table has room for

# What the ratio is of: the peer's rate (more is better) or the peer's time (less is better).
RATE, TIME, SELF = "rate", "time", "itself"


@dataclasses.dataclass
class Bar:
    kind: str
    value: float


@dataclasses.dataclass
class Row:
    """One line. `ratio` is what the bar is about; `ours` and `beside` are in `unit`."""

    work: str
    unit: str
    peer: str
    ours: Optional[float] = None
    beside: Optional[float] = None
    ratio: Optional[float] = None
    of: str = TIME
    bar: Optional[Bar] = None
    elements: int = 0
    bytes: float = 0
    ours_range: Optional[list] = None
    beside_range: Optional[list] = None
    runs: int = 0
    missing: str = ""

    def printed_ratio(self):
        if self.ratio is None:
            return "-"
        return f"{self.ratio:.1e}" if self.unit == "relative" else f"{self.ratio:.3f}"

    def is_met(self):
        """None where there is no bar, or nothing to judge."""
        if self.bar is None or self.ratio is None or math.isnan(self.ratio):
            return None
        ratio = float(self.printed_ratio())
        if self.bar.kind == AT_LEAST:
            return ratio >= self.bar.value
        return ratio <= self.bar.value if self.bar.kind == AT_MOST else ratio < self.bar.value

    def verdict(self):
        if self.bar is None:
            return ""
        met = self.is_met()
        word = "not judged" if met is None else "met" if met else "MISSED"
        return f"{SIGNS[self.bar.kind]:>2} {self.bar.value:<5g} {word}"

    def as_json(self, section):
        row = {"section": section, "work": self.work, "elements": self.elements, "bytes": self.bytes,
               "ours": number(self.ours), "beside": number(self.beside), "ratio": number(self.ratio),
               "ratio_of": self.of, "unit": self.unit, "peer": self.peer}
        if self.bar:
            row.update({"bar_kind": self.bar.kind, "bar": self.bar.value, "met": self.is_met()})
        if self.ours_range:
            row["ours_range"] = [number(x) for x in self.ours_range]
        if self.beside_range:
            row["beside_range"] = [number(x) for x in self.beside_range]
        if self.runs:
            row["runs"] = self.runs
        if self.missing:
            row["missing"] = self.missing
        return row


def number(x):
    """Six digits; JSON has neither NaN nor infinity."""
    return None if x is None or not math.isfinite(x) else float(f"{x:.6g}")


def figure(x, unit):
    """In eight characters at most, with as many decimals as the unit deserves."""
    if x is None:
        return "-"
    return f"{x:.1e}" if unit == "relative" else f"{x:.2f}" if unit in ("us", "MiB") else f"{x:.4f}"


def spread(median, both_ends):
    """Half of the range, in per cent of the median."""
    return f"+-{50 * (both_ends[1] - both_ends[0]) / median:.1f}%" if median and both_ends else ""


class Report:
    def __init__(self):
        self.section = ""
        self.rows = []  # (section, Row)
        self.failures = []  # (section, reason)

    def begin(self, section, title):
        self.section = section
        print(f"\n{title}\n  {'work':<49} {'ours':>9} {'':4} {'':8} {'GB/s':>6}  {'beside':<30} {'':>9} {'':8} "
              f"{'ratio':>8} of    bar", flush=True)

    def add(self, row):
        self.rows.append((self.section, row))
        rate = ""
        if row.bytes and row.ours and row.unit in ("ms", "us"):
            rate = f"{1e-9 * row.bytes / (row.ours * (1e-3 if row.unit == 'ms' else 1e-6)):.0f}"
        ratio_of = "" if row.of == SELF else row.of
        print(f"  {row.work:<49} {figure(row.ours, row.unit):>9} {UNITS.get(row.unit, row.unit):<4} "
              f"{spread(row.ours, row.ours_range):<8} {rate:>6}  {row.peer:<30} {figure(row.beside, row.unit):>9} "
              f"{spread(row.beside, row.beside_range):<8} {row.printed_ratio():>8} {ratio_of:<5} "
              f"{row.verdict()}".rstrip(), flush=True)

    def fail(self, section, reason):
        """A section that ended early, or a result that is wrong."""
        self.failures.append((section, reason))
        print(f"  FAILED in {section}: {reason}", flush=True)

    def summary(self):
        """Every bar, those that were not met last, since the end of a long output is what people see."""
        judged = [row for _, row in self.rows if row.bar]
        judged.sort(key=lambda row: {True: 0, None: 1, False: 2}[row.is_met()])
        print(f"\nThe bars\n  {'work':<49} {'beside':<30} {'ours':>9} {'beside':>9} {'':4} {'ratio':>8} bar")
        for row in judged:
            print(f"  {row.work:<49} {row.peer:<30} {figure(row.ours, row.unit):>9} {figure(row.beside, row.unit):>9} "
                  f"{UNITS.get(row.unit, row.unit):<4} {row.printed_ratio():>8} {row.verdict()}", flush=True)
        for peer, reason in sorted({(row.peer, row.missing[:160]) for _, row in self.rows if row.missing}):
            print(f"  missing: {peer}: {reason}")
        for section, reason in self.failures:
            print(f"  FAILED in {section}: {reason}")
        count = {met: sum(row.is_met() is met for row in judged) for met in (True, False, None)}
        print(f"{len(judged)} bars: {count[True]} met, {count[False]} missed, {count[None]} not judged; "
              f"{len(self.failures)} failures", flush=True)

    def write(self, path, facts):
        """Whole or not at all, so that a run that is cut short leaves a file that can be read."""
        missed = sum(row.is_met() is False for _, row in self.rows)
        head = dict(facts, missed=missed, failures=[{"section": s, "reason": r} for s, r in self.failures])
        lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
        rows = ",\n".join("    " + json.dumps(row.as_json(section)) for section, row in self.rows)
        text = "{\n" + ",\n".join(lines) + ',\n  "results": [\n' + rows + "\n  ]\n}\n"
        partial = path + ".partial"
        with open(partial, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(partial, path)


def file_name(gpu, whole):
    """gpu-nvidia-h200.json; a run of some sections, or of small arrays, does not replace the record of a whole one."""
    words = re.sub(r"[^a-z0-9]+", "-", gpu.lower()).strip("-")
    return f"gpu-{words}{'' if whole else '-partial'}.json"
