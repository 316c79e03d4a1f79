#!/usr/bin/env python3
"""The test of the test: a loss whose terms lose their digits must be refused, though its formula has the same words.

Tukey's biweight is planted, as somebody may write it at first, 1 - (1 - u)^3 with u = (x/c)^2: near the target nothing
is left of it. In other words, u*(3 - 3*u + u*u), it keeps its digits, and must be accepted. ONEPASS_TEST_QUICK=1 in the
environment leaves out two of three points.
"""

import math
import os
import sys

from judge import Part, judge
from make_losses.library import Error, Loss, Parameter
from sweep import FORMATS, Points, rounded

VALUE = "abs(x) < c ? 1 - pow(1 - x*x/(c*c), 3) : 1"
SLOPE = "abs(x) < c ? 6*x/(c*c)*pow(1 - x*x/(c*c), 2) : 0"
BIWEIGHT = Loss("biweight", "", VALUE, SLOPE, ["prediction", "target"],
                [Parameter("c", "", 1, 0, math.inf, 1, 0)], ["x"], [Error(6, None), Error(6, None)])


def naive(p, t, c, near):
    u = near(near((x := near(p - t)) * x) / near(c * c))
    rest = near(1 - u)
    return near(1 - near(near(rest * rest) * rest)) if abs(x) < c else 1.0


def careful(p, t, c, near):
    u = near(near((x := near(p - t)) * x) / near(c * c))
    return near(u * near(3 - near(u * near(3 - u)))) if abs(x) < c else 1.0


def complaints_about(term, form):
    part = Part("value", VALUE, ["p", "t", "v", "x", "c"], {}, BIWEIGHT.rounded, BIWEIGHT.errors[0])
    draw = Points(BIWEIGHT, [1.0], form, 0)
    points = [draw.point() for _ in range(100 if os.environ.get("ONEPASS_TEST_QUICK") == "1" else 300)]
    results = [term(p, t, 1.0, lambda number: rounded(number, form)) for p, t in points]
    return list(judge([part], points, [results], [1.0], form))


def main():
    wrong = 0
    for form in FORMATS:
        refused, accepted = complaints_about(naive, form), not complaints_about(careful, form)
        print(f"{form.name}: of the naive biweight {len(refused)} terms are refused; the careful one is "
              f"{'accepted' if accepted else 'refused'}")
        wrong += not refused or not accepted
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
