"""Rows, some at a time: for what is computed of them without temporaries of their whole size."""

import math


def cuts(shape, most):
    """Indices of neighbouring rows of an array, its classes in the last dimension: together they have `most` elements,
    or are one row."""
    if len(shape) < 2:
        yield (...,)
        return
    inner = math.prod(shape[1:])
    if inner > most and len(shape) > 2:
        for index in range(shape[0]):
            yield from ((index, *rest) for rest in cuts(shape[1:], most))
        return
    step = max(1, most // max(inner, 1))
    yield from ((slice(first, first + step),) for first in range(0, shape[0], step))
