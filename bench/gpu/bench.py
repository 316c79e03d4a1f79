"""What all works share: the arrays, the library, the report, and one way to put ours beside others.

Also the references that ours is checked against, in double precision and in pieces,
since a temporary of the arrays' size would not always fit.
"""

import dataclasses
from typing import Optional

import torch

from . import peers, timing
from .onepass_c import Call
from .report import AT_MOST, RATE, SELF, TIME, Bar, Row
from .timing import Contender

PADDING = 64  # elements a row that padded layouts may use
PIECE = 1024  # rows that a reference looks at together
LARGEST_ERROR = 1e-6  # of a mean, relative


@dataclasses.dataclass
class Beside:
    """Someone beside ours, and what is asked of ours there."""

    contender: Contender
    of: str = TIME
    bar: Optional[Bar] = None


class Bench:
    """Operands are uniform in [-2, 2): both branches of every loss are taken, and no sum is special."""

    def __init__(self, library, report, side, rounds, judged, with_frameworks=True, losses=()):
        self.library = library
        self.report = report
        self.side = side
        self.rounds = rounds
        self.judged = judged  # False: small arrays, no bars
        self.with_frameworks = with_frameworks
        self.losses = losses  # that the family is to have; none named: all
        self.limits = None
        self.limits_reason = "not built"
        self.scrub = timing.Scrub()
        generator = torch.Generator(device=timing.DEVICE)
        generator.manual_seed(20)
        self.flat = [torch.empty(side * (side + PADDING), device=timing.DEVICE) for _ in range(2)]
        for array in self.flat:
            array.uniform_(-2, 2, generator=generator)
        self.flat_gradient = torch.zeros(side * (side + PADDING), device=timing.DEVICE)
        self.p, self.t = (self.rows(array) for array in self.flat)
        self.g = self.rows(self.flat_gradient)
        self.value = torch.zeros((), device=timing.DEVICE)
        timing.free_memory()

    def rows(self, flat, columns=None, pitch=None, offset=0):
        """A matrix of `side` rows in a flat array, dense unless a pitch is given."""
        columns = columns or self.side
        pitch = pitch or columns
        return flat[offset:].as_strided((self.side, columns), (pitch, 1))

    def bar(self, kind, value):
        return Bar(kind, value) if self.judged else None

    def limit(self, name, choose):
        """A limit's contender, or one that says why there is none."""
        if self.limits is not None:
            return choose(self.limits)

        def make():
            raise timing.Absent(self.limits_reason)

        return Contender(name, make)

    def ours(self, loss, p, t, bytes, **tensors):
        """Our call as a contender. Its value, if one is wanted, is the loss that is checked."""
        call = Call(self.library, loss, p, t, **tensors)
        is_scalar = call.value is not None and call.value.dim() == 0
        run = call.run if is_scalar else lambda: (call.run(), None)[1]
        return Contender("onepass", lambda: run, bytes=bytes)


def measure(bench, ours, besides, rounds, scrub):
    """Times ours and the others in turns. Returns the others that took part, or should have."""
    besides = [beside for beside in besides if bench.with_frameworks or not beside.contender.is_framework]
    timing.measure([ours] + [beside.contender for beside in besides], rounds, scrub)
    if any(beside.contender.is_framework for beside in besides):
        peers.forget_compiled()
    return besides


def compare(bench, work, elements, ours, besides, reference=None, rounds=None):
    """Ours and the others in turns; a row for each of them, and one for the error if there is a reference."""
    besides = measure(bench, ours, besides, rounds or bench.rounds, bench.scrub)
    if ours.missing:
        bench.report.fail(work, ours.missing)
    for beside in besides:
        reject_wrong(beside.contender, reference)
        bench.report.add(row_of(work, elements, ours, beside))
    if reference is not None:
        add_error(bench, work, elements, ours, besides, reference)


def row_of(work, elements, ours, beside, unit="ms", per=1):
    """The line for one pair; `per` is the number of calls in a measurement."""
    scale = {"ms": 1e3, "us": 1e6}[unit] / per
    row = Row(work, unit, beside.contender.name, of=beside.of, bar=beside.bar, elements=elements, bytes=ours.bytes)
    row.missing = f"onepass: {ours.missing}" if ours.missing else beside.contender.missing
    if not ours.missing:
        times = ours.times()
        row.ours, row.ours_range, row.runs = scale * times.median, [scale * times.low, scale * times.high], times.count
    if not beside.contender.missing:
        times = beside.contender.times()
        row.beside, row.beside_range = scale * times.median, [scale * times.low, scale * times.high]
    if not row.missing:
        row.ratio = row.ours / row.beside
        if beside.of == RATE:
            row.ratio = (ours.bytes / row.ours) / (beside.contender.bytes / row.beside)
    return row


def reject_wrong(contender, reference):
    """A peer that computes something else, or runs on something else, is no peer. 16-bit results have 8 bits."""
    if reference is None or contender.loss is None or contender.missing:
        return
    if not abs(contender.loss - reference) <= 1e-2 * abs(reference):
        contender.missing = f"its loss is {contender.loss}, it should be {reference}"


def add_error(bench, work, elements, ours, besides, reference):
    """How far off the loss is, beside the first other whose loss is known."""
    others = [b.contender for b in besides if b.contender.loss is not None and not b.contender.missing]
    row = Row(f"{work}: error", "relative", others[0].name if others else "", of=SELF, elements=elements,
              bar=Bar(AT_MOST, LARGEST_ERROR))
    if others:
        row.beside = abs(others[0].loss / reference - 1)
    if ours.loss is None:
        row.missing = ours.missing or "no loss"
    else:
        row.ours = row.ratio = abs(ours.loss / reference - 1)
    bench.report.add(row)


# --------------------------------------------------------------- references --


def terms(loss, p, t):
    x = p - t
    if loss == "mse":
        return x * x
    if loss == "smooth_l1":
        return torch.where(x.abs() < 1, 0.5 * x * x, x.abs() - 0.5)
    return torch.clamp(1 - p * t, min=0)


def slopes(loss, p, t):
    x = p - t
    if loss == "mse":
        return 2 * x
    if loss == "smooth_l1":
        return torch.where(x.abs() >= 1, x.sign(), x)
    return torch.where(1 - p * t >= 0, -t, torch.zeros_like(p))


def pieces(p, t):
    """Both operands in double, some rows at a time, with the first row's number. The target may be broadcast."""
    t = t.expand_as(p)
    for first in range(0, p.shape[0], PIECE):
        yield first, p[first:first + PIECE].double(), t[first:first + PIECE].double()


def reference_mean(loss, p, t):
    return float(sum(terms(loss, x, y).sum() for _, x, y in pieces(p, t)) / p.numel())


def gradient_mistakes(loss, p, t, gradient, scale, tolerance):
    """The share of elements that are off by more than the tolerance, relative to the largest slope there is.

    A few may be: where 1 - p*t rounds to 0, float and double stand on two sides of hinge's kink."""
    wrong = 0
    for first, x, y in pieces(p, t):
        expected = slopes(loss, x, y) * scale
        found = gradient[first:first + PIECE].double()
        allowed = tolerance * float(expected.abs().max())
        wrong += int((~((found - expected).abs() <= allowed)).sum())
    return wrong / p.numel()
