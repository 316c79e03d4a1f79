#!/usr/bin/env python3
"""Every value and every slope of every loss, in float and in double, against its formula in exact arithmetic: none may
be further off than the loss says of itself. And every slope that the page shows is the derivative of the value.

    python3 tests/accuracy/check_terms.py LIBRARY [--measure] [LOSS...]

--measure prints the largest errors that were found instead of complaining. ONEPASS_TEST_QUICK=1 in the environment
leaves out 15 of 16 points.
"""

import os
import sys

from judge import judge, parts_of
from make_losses.library import Library
from slopes import wrong_slopes
from sweep import FORMATS, Points, settings_of

POINTS = {"f32": 200, "f64": 30}  # with each setting of the parameters
SHARE = 16 if os.environ.get("ONEPASS_TEST_QUICK") == "1" else 1


def complaints_of(library, loss, measured=None):
    parts = parts_of(library, loss)
    yield from wrong_slopes(loss, parts)
    for form in FORMATS:
        for seed, parameters in enumerate(settings_of(loss, form)):
            draw = Points(loss, parameters, form, seed)
            points = [draw.point() for _ in range(POINTS[form.name] // SHARE)]
            results = library.evaluate(loss, parameters, *zip(*points), dtype=form.name)
            yield from judge(parts, points, results, parameters, form, measured)


def main():
    options = [word for word in sys.argv[1:] if word.startswith("-")]
    path, *names = [word for word in sys.argv[1:] if not word.startswith("-")] or sys.exit(__doc__)
    library, found = Library(path), 0
    for loss in library.losses():
        if names and loss.name not in names:
            continue
        measured = {} if "--measure" in options else None
        complaints = list(complaints_of(library, loss, measured))
        for complaint in complaints[:10]:
            print(f"{loss.name}: {complaint}")
        for name, (error, place) in (measured or {}).items():
            print(f"{loss.name}, {name}: {error:.4g} ulp; {place}")
        found += len(complaints)
        print(f"{loss.name}: {len(complaints)} complaints", flush=True)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
