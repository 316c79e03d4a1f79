"""Whether slopes are the derivatives of the value: difference quotients of the value's formula in exact arithmetic."""

import random
from decimal import Decimal

from exact import Undefined
from sweep import domains

POINTS = 60
STEP, CLOSE = Decimal("1e-25"), Decimal("1e-12")


def wrong_slopes(loss, parts):
    """Complaints. Points are drawn where losses are smooth, but for kinks, at which the two sides differ; those say
    nothing. Of a variance below its bound the slope is not the derivative, by intent, so there is none."""
    draw, value = random.Random(1), parts[0]
    parameters = [Decimal(parameter.default_value) for parameter in loss.parameters]
    for k, part in enumerate(parts[1:]):
        smooth = 0
        for _ in range(POINTS):
            point = [number_of(domain, draw) for domain in domains().get(loss.name, ["ANY"] * len(loss.operands))]
            numbers = [*point, *[Decimal(0)] * (3 - len(point)), Decimal(0), *parameters]
            try:
                below, here, above = (value.exact([*numbers[:k], numbers[k] + side * STEP, *numbers[k + 1:]], 200)
                                      for side in (-1, 0, 1))
                slope = part.exact(numbers, 200)
            except Undefined:
                continue
            left, right = (here - below) / STEP, (above - here) / STEP
            if abs(right - left) > CLOSE:
                continue
            smooth += 1
            if abs((left + right) / 2 - slope) > CLOSE * (1 + abs(slope)):
                yield f"{part.name} at {point}: {slope} by its formula, {(left + right) / 2} by differences"
        if smooth < POINTS / 8:
            yield f"{part.name}: the value is smooth at {smooth} of {POINTS} points only, which prove little"


def number_of(domain, draw):
    """Of moderate size, between where it is made for."""
    if domain == "SIGN":
        return Decimal(draw.choice((-1, 1)))
    low, high = {"ANY": (-4, 4), "POSITIVE": (0.05, 8), "PROBABILITY": (0.02, 0.98)}[domain]
    return Decimal(draw.uniform(low, high))
