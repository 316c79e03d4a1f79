"""How far the library's terms and slopes are from their formulas, in units in the last place."""

import decimal
import itertools
import math
from decimal import Decimal

from exact import Formula, Undefined
from make_losses.shown import formulas_of, shortened

UNEXPLAINED, NOTHING = math.inf, 1e-20  # which is what the digits of the exact arithmetic leave
SMALLEST = 8  # of the type's smallest numbers: so far any number may be moved, as real_ratio() moves a numerator


def unit_of(number, form):
    """A unit in the last place of the type's numbers of this size."""
    if number < Decimal(2) ** form.least:
        return Decimal(2) ** form.least
    exponent = math.floor(Decimal(number).log10() / Decimal(2).log10())
    while Decimal(2) ** (exponent + 1) <= number:
        exponent += 1
    while Decimal(2) ** exponent > number:
        exponent -= 1
    return Decimal(2) ** max(exponent - form.precision + 1, form.least)


def within(number, form):
    """What is too large for the type is as good as infinite, and that as what lies next to the largest number."""
    beyond = Decimal(2) ** form.beyond
    return max(-beyond, min(number, beyond))


class Part:
    """The value or a slope of a loss: its formula, and how exact it is said to be."""

    def __init__(self, name, text, names, short, rounded, stated):
        self.name, self.ulp, self._rounded = name, stated.ulp, rounded
        self._formula = Formula(text, names, short, rounded)
        self._of = Formula(stated.of, names) if stated.of else None

    def exact(self, numbers, digits):
        """Undefined at a pole, too: what comes out at the edges is up to the loss."""
        result = self._formula.evaluate(numbers, digits)
        if result.is_infinite():
            raise Undefined(self.name)
        return result

    def error(self, got, numbers, form, enough):
        """In units of the result, or of what the accuracy is of where that is larger; what lies between the results
        that the roundings explain is none. The latter two, which take time, are asked only beyond what is `enough`."""
        low = high = within(self.exact(numbers, form.digits), form)
        least = Decimal(0)
        found = distance(got, low, high, least, form)
        if found > enough and self._of:
            least = within(self._of.evaluate(numbers, form.digits).copy_abs(), form)
            found = distance(got, low, high, least, form)
        if found > enough:
            low, high, possible = self._range(got, low, high, numbers, form)
            found = distance(got, low, high, least, form) if possible else 0.0
        return found

    def _range(self, got, low, high, numbers, form):
        """The least and the largest result that roundings make, given one of them; and whether to go on: infinity minus
        infinity, or 0/0, as roundings have made them, may be NaN or said to be 0."""
        for moved, *signs in itertools.product((-1, 0, 1), repeat=1 + len(self._rounded)):
            near = [moved_by(numbers[0], moved * SMALLEST, form), *numbers[1:]]
            try:
                result = within(self._formula.evaluate(near, form.digits, rounding(signs, form)), form)
            except Undefined:
                if math.isnan(got) or got == 0:
                    return low, high, False
                continue
            low, high = min(low, result), max(high, result)
        return low, high, True


def parts_of(library, loss):
    """The value and the slopes by the formulas of the loss's page."""
    shown, short = formulas_of(library, loss)
    names = ["p", "t", "v", "x", *(parameter.name for parameter in loss.parameters)]
    rounded = [shortened(part, short) for part in loss.rounded]
    parts = []
    for name, stated in zip(("value", "slope in p", "slope in t", "slope in v"), loss.errors):
        if name not in shown:
            raise SystemExit(f"{loss.name}: the {name} has no formula; docs/make_losses/notes.py should give it one")
        text = f"-({shown['slope in p']})" if shown[name].startswith("minus") else shown[name]
        parts.append(Part(name, text, names, short, rounded, stated))
    return parts


def distance(got, low, high, least, form):
    """Of a result from a range, in units of the range's larger end or of what is `least` taken for it."""
    if math.isnan(got):
        return UNEXPLAINED
    number = within(Decimal(got), form)
    unit = unit_of(max(low.copy_abs(), high.copy_abs(), least), form)
    found = float(max(low - number, number - high, Decimal(0)) / unit)
    return found if found > NOTHING else 0.0


def rounding(signs, form):
    """Each part changed as one rounding may: by half a unit in its last place, but not beyond 0, or to infinity."""
    def change(part, number):
        sign = signs[int(part)]
        if sign and number.copy_abs() >= Decimal(2) ** form.beyond * (1 - Decimal(2) ** -form.precision):
            return Decimal("Infinity").copy_sign(number)
        most = max(abs(number) * Decimal(2) ** -form.precision, SMALLEST * Decimal(2) ** form.least)
        changed = number + sign * most
        return changed if changed * number > 0 or not number else Decimal(0)
    return change


def moved_by(number, count, form):
    """Plus so many of the smallest numbers of the type, exactly."""
    return decimal.Context(prec=2000).add(Decimal(number), count * Decimal(2) ** form.least)


def judge(parts, points, results, parameters, form, measured=None):
    """Complaints about results that are further off than they are said to be; with `measured`, a dictionary, the
    largest errors are put there instead, and where they are."""
    for k, point in enumerate(points):
        numbers = [*point, *[0] * (3 - len(point)), 0, *parameters]
        for part, result in zip(parts, results):
            allowed = part.ulp if measured is None else 0.5
            try:
                error = part.error(result[k], numbers, form, allowed)
            except Undefined:
                continue
            place = f"{form.name}, {part.name} at {point}, parameters {parameters}: got {result[k]!r}"
            if measured is not None:
                measured[part.name] = max(measured.get(part.name, (0, "")), (error, place))
            elif error > allowed:
                yield f"{place}, which is {error:.3g} ulp off, where {allowed} are allowed"
