"""The points at which terms are judged, for one compute type: both sides of every kink and of every sum that cancels,
tiny and huge distances, everything between, and the ends of the parameters.
"""

import math
import os
import random
import re
import struct
from collections import namedtuple

#: A compute type: letters of its numbers and bits for struct, its digits, the exponents of its smallest number and of
#: what is too large, and the decimal digits in which formulas are evaluated for it.
Format = namedtuple("Format", "name number bits precision least beyond digits")
FORMATS = (Format("f32", "f", "I", 24, -149, 128, 200), Format("f64", "d", "Q", 53, -1074, 1024, 800))

LINES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle", "formulas.def")

ROUND = (0, 1, 0.5, 2, 3, 0.65, 17, 22.65, 88.5, 104, 300)
EXTREME = (-1022, -300, -149, -135, -126, -100, -64, 40, 63, 64, 100, 120, 127, 300, 600, 1000, 1023)
PARAMETERS = (0.75, 3, 0, -1, 1e-30, 1e30)

# Parameters at which a loss has something of its own.
SETTINGS = {"tweedie_deviance": (1 + 2**-23, 1.1, 1.9, 2 - 2**-23, 2, 2 + 2**-22, 2.5)}

# Points at which digits were lost once.
KNOWN = {
    "gamma_deviance": [(0.5181241, 0.5181244), (2e-5, 2.0000001e-5), (1e30, 1e-30), (1e-45, 3e38), (3e38, 1e-45)],
    "msle": [(3e38, -0.5), (-0.99999994, 3e38)],
    "bce_with_logits": [(22.65, 1), (-22.65, 0), (17, 1), (100, 1)],
    "bce_with_logits_pos_weight": [(22.65, 1, 3), (-22.65, 0, 3), (17, 1, 0.5)],
    "mape": [(1e37, -1e37), (3e38, 1e38), (1e-44, 2e-44)],
    "focal_squared": [(22.65, 1), (-22.65, 0)],
}


def domains():
    """What each operand of a loss is made for, as the oracle's lines have it."""
    with open(LINES, encoding="utf-8") as file:
        return {name: listed.split(", ") for name, listed in
                re.findall(r"^ORACLE_LOSS\((\w+), \(([A-Z, ]+)\)", file.read(), re.MULTILINE)}


def rounded(number, form):
    """The nearest number of the type; infinite beyond the largest."""
    try:
        return struct.unpack(form.number, struct.pack(form.number, number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)


def steps_from(number, count, form):
    """The number of the type that is so many steps further from 0."""
    bits = struct.unpack(form.bits, struct.pack(form.number, abs(number)))[0]
    return math.copysign(struct.unpack(form.number, struct.pack(form.bits, max(0, bits + count)))[0], number)


def settings_of(loss, form):
    """Lists of parameters: the defaults, and each of them at other values and near the ends of what it may be."""
    defaults = [rounded(parameter.default_value, form) for parameter in loss.parameters]
    yield defaults
    for k, parameter in enumerate(loss.parameters):
        ends = [end for end in (parameter.minimum, parameter.maximum) if math.isfinite(end)]
        near = [steps_from(end, -1, form) if end else 2.0 ** -100 for end in ends]
        for value in dict.fromkeys(rounded(value, form) for value in (*PARAMETERS, *ends, *near,
                                                                *SETTINGS.get(loss.name, ()))):
            low = value > parameter.minimum if parameter.minimum_excluded else value >= parameter.minimum
            high = value < parameter.maximum if parameter.maximum_excluded else value <= parameter.maximum
            if low and high and value != defaults[k]:
                yield defaults[:k] + [value] + defaults[k + 1:]


class Points:
    """Draws points of a loss."""

    def __init__(self, loss, parameters, form, seed):
        self._random, self._form, self._parameters = random.Random(seed), form, parameters
        self._domains = domains().get(loss.name, ["ANY"] * len(loss.operands))
        self._known = [[rounded(number, form) for number in point] for point in KNOWN.get(loss.name, [])]

    def _fitting(self, number, domain):
        """A number of the type and of the domain that is like this one."""
        if domain == "SIGN":
            return 1.0 if number > 0 else -1.0
        if domain == "PROBABILITY":
            number = abs(number)
            number = number if number <= 1 else 1 / number
        if domain == "POSITIVE" and self._random.random() < 0.9:
            number = abs(number)
        number = rounded(number, self._form)
        largest = math.ldexp(1 - math.ldexp(1, -self._form.precision), self._form.beyond)
        return max(-largest, min(number, largest))

    def _any(self, domain):
        draw, form = self._random, self._form
        sort = draw.randrange(8)
        if sort == 0:
            size = draw.choice(ROUND)
        elif sort == 1:
            size = math.ldexp(1 + draw.random(), draw.choice([e for e in EXTREME if form.least <= e < form.beyond]))
        elif sort == 2:
            size = math.ldexp(1 + draw.random(), draw.randrange(form.least, form.beyond))
        elif sort == 3:
            size = 1 - math.ldexp(1 + draw.random(), -draw.randrange(2, form.precision + 2))
        else:
            size = math.ldexp(1 + draw.random(), draw.randrange(*((-24, 8) if sort < 6 else (-4, 4))))
        return self._fitting(draw.choice((1, -1)) * size, domain)

    def _special(self, p, t, v):
        """A value for one of the operands at which something changes its side or cancels, given the others."""
        kink = self._random.choice([*self._parameters, 1, 0.5, 0.65, 1e-12])
        sort = self._random.randrange(11)
        if sort < 4:  # near each other, by a distance of any size or that of a kink
            distance = kink if sort < 2 else math.ldexp(p, -self._random.randrange(1, self._form.precision + 1))
            return p, p + self._random.choice((1, -1)) * distance, v
        if sort == 4:
            return kink, t, v
        if sort == 5:
            return p, kink, v
        if sort == 6:
            return p, t, kink
        if sort == 7:
            return p, kink / p if p else t, v
        if sort == 8:  # a sigmoid or an exponential that is the target
            return p, self._random.choice((1 / (1 + math.exp(-max(-700, min(p, 700)))), math.exp(min(p, 700)))), v
        if sort == 9:  # a prediction that is its logarithm
            return math.log(abs(t) or 1), t, v
        return p, t, self._random.choice(((p - t) * (p - t) if abs(p - t) < 1e150 else 1, kink / (p - t or 1)))

    def point(self):
        if self._known:
            return self._known.pop()
        point = [self._any(domain) for domain in [*self._domains, "POSITIVE"][:3]]
        if self._random.randrange(2):
            near = self._special(*point)
            point = [steps_from(self._fitting(number, domain), self._random.choice((-2, -1, 0, 0, 1, 2)), self._form)
                     if number != before else before
                     for number, before, domain in zip(near, point, [*self._domains, "POSITIVE"])]
            point = [self._fitting(number, domain) for number, domain in zip(point, [*self._domains, "POSITIVE"])]
        return point[:len(self._domains)]
