"""The formulas of a loss as its page shows them: those of the catalogue, with short names for parts of them, and the
slopes in other operands than the first, from the notes. tests/accuracy/ compares all of them with what the library
computes.
"""

import re

from .notes import note_of


def formulas_of(library, loss):
    """Names and formulas, as the page shows them: the value, the slopes, and what their short names stand for."""
    note = note_of(loss)
    shown = {"value": shortened(loss.value, note.names), "slope in p": shortened(loss.slope, note.names)}
    for k, operand in enumerate("tv"[:len(loss.operands) - 1]):
        given = note.slopes[k] if k < len(note.slopes) else None
        shown[f"slope in {operand}"] = given or plain_slope(library, loss, 1 + k)
    shown = {name: words for name, words in shown.items() if words}
    used = {name: words for name, words in note.names.items()
            if any(re.search(rf"\b{name}\b", one) for one in shown.values())}
    return shown, used


def shortened(words, names):
    for name, part in names.items():
        words = re.sub(rf"(?<!\w)\({re.escape(part)}\)", name, words).replace(part, name)
    return words


def plain_slope(library, loss, operand):
    """In words, where no formula was given: what the numbers show."""
    samples = slopes_of(library, loss)
    if all(slopes[operand] == -slopes[0] for slopes in samples):
        return "minus the slope in p"
    if all(slopes[operand] == 0 for slopes in samples):
        return "0"
    return None


def slopes_of(library, loss):
    """In each operand, at points that the picture has and at some besides."""
    picture, samples = note_of(loss).picture, []
    low, high = picture.p
    p = [low + (high - low) * (i + 0.5) / 37 for i in range(37)]
    for settings in picture.curves:
        for shift in (0, 0.125):
            parameters = [settings.get(parameter.name, parameter.default_value) for parameter in loss.parameters]
            others = [settings["tv"[k]] + shift for k in range(len(loss.operands) - 1)]
            _, *slopes = library.evaluate(loss, parameters, p, *([other] * len(p) for other in others))
            samples += zip(*slopes)
    return samples
