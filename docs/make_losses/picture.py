"""A loss's picture as SVG: on the left its value, on the right its slope in the first operand, or in the first element of
it.

The curves are the library's own numbers, whose bits are the same on every machine, so the file's are, too. Where the
slope jumps the curve is broken, and a dot says what it is there.
"""

import math
from collections import namedtuple

WIDTH, HEIGHT, LEGEND = 720, 226, 22
LEFT, RIGHT = 48, 408  # of the two panels
PANEL_WIDTH, PANEL_TOP, PANEL_HEIGHT = 296, 34, 148
STEPS = 720  # of a curve
DASHES = ("", "7 4", "1.5 4.5")

STYLE = """<style>
text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;fill:#59636e}
.head{font-size:13px;font-weight:600}
.end{text-anchor:end}.middle{text-anchor:middle}
.ground{fill:#fff}
.grid{stroke:#d8dee4;fill:none}
.axis{stroke:#8c959f;fill:none}
.line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
.jump{fill:none;stroke-dasharray:2 3}
.a{stroke:#0063a8}.fa{fill:#0063a8}
.b{stroke:#c24e00}.fb{fill:#c24e00}
.k{stroke:#59636e}
@media (prefers-color-scheme:dark){
text{fill:#9198a1}
.ground{fill:#0d1117}
.grid{stroke:#262c34}
.axis{stroke:#6e7681}
.a{stroke:#5cb3f5}.fa{fill:#5cb3f5}
.b{stroke:#ff9752}.fb{fill:#ff9752}
.k{stroke:#9198a1}
}
</style>"""

#: What is drawn: the range of p; the other operands and the parameters, a dictionary for each curve; and, where the
#: curves leave the panel, what the panels show of the value and of the slope.
Picture = namedtuple("Picture", "p curves value slope", defaults=(None, None))
STANDARD = Picture((-3, 3), [{"t": 1, "v": 1}])


#: The same of a row of vectors: a curve's dictionary has the operands by their names, and X is the element that varies.
RowPicture = namedtuple("RowPicture", "p curves value slope", defaults=(None, None))
X = None


def draw(library, loss, picture):
    """The text of the file."""
    letters = "tv"[:len(loss.operands) - 1]

    def evaluator(settings):
        return lambda p: library.evaluate(loss, parameters_of(loss, settings), p,
                                          *([settings[letter]] * len(p) for letter in letters))

    fixed, varied = told_apart(picture.curves, {*letters, *(parameter.name for parameter in loss.parameters)})
    below = f"{loss.operands[0]} p" + (f", with {fixed}" if fixed else "")
    return drawn(loss, picture, evaluator, "p", below, "", varied)


def draw_row(library, loss, picture):
    """That of a loss of vectors."""
    def evaluator(settings):
        given = [settings[name] for name in loss.operands if name in settings]
        return lambda p: library.evaluate_rows(loss, parameters_of(loss, settings),
                                               [[with_element(one, x) for one in given] for x in p])

    known = {*loss.operands, *(parameter.name for parameter in loss.parameters)}
    fixed, varied = told_apart(picture.curves, known)
    return drawn(loss, picture, evaluator, "x", "x", f"with {fixed}", varied)


def with_element(operand, x):
    return operand if isinstance(operand, (int, list)) else tuple(x if element is X else element for element in operand)


def parameters_of(loss, settings):
    return [settings.get(parameter.name, parameter.default_value) for parameter in loss.parameters]


def drawn(loss, picture, evaluator, variable, below, caption, varied):
    curves = [Curve(evaluator(settings), picture.p) for settings in picture.curves]
    panels = [Panel("value", "a", LEFT, [curve.broken(0) for curve in curves], picture.p, picture.value),
              Panel(f"slope in {variable}", "b", RIGHT, [curve.broken(1) for curve in curves], picture.p, picture.slope)]
    above_legend = HEIGHT + (LEGEND if caption else 0)
    height = above_legend + (LEGEND if len(curves) > 1 else 0)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
             f'height="{height}" role="img" aria-label="{loss.name}: value and slope">', STYLE,
             f'<rect class="ground" width="{WIDTH}" height="{height}" rx="6"/>']
    for panel in panels:
        lines += panel.drawn(below)
    if caption:
        lines.append(f'<text class="middle" x="{WIDTH // 2}" y="{above_legend - 9}">{caption}</text>')
    return "\n".join(lines + legend(varied, above_legend) + ["</svg>", ""])


def told_apart(settings, known):
    """What all curves share, in words, and what each has of its own."""
    shared = {name for name in known if all(name in one and one[name] == settings[0][name] for one in settings)}
    own = [", ".join(f"{name} = {in_words(one[name])}" for name in one if name in known - shared) for one in settings]
    return ", ".join(f"{name} = {in_words(settings[0][name])}" for name in settings[0] if name in shared), own


def in_words(number):
    if isinstance(number, (tuple, list)):
        return f"({', '.join(map(in_words, number))})"
    return "x" if number is X else f"{number:g}"


def legend(varied, top):
    """A dashed sample for each of several curves, below both panels."""
    if len(varied) == 1:
        return []
    widths = [34 + 7 * len(words) for words in varied]
    x, lines = (WIDTH - sum(widths) - 24 * (len(widths) - 1)) / 2, []
    for words, width, dash in zip(varied, widths, DASHES):
        lines.append(f'<path class="line k"{dashed(dash)} d="M{x:g} {top + LEGEND - 13}h26"/>')
        lines.append(f'<text x="{x + 34:g}" y="{top + LEGEND - 9}">{words}</text>')
        x += width + 24
    return lines


def dashed(dash):
    return f' stroke-dasharray="{dash}"' if dash else ""


# ------------------------------------------------------------------- the curves --


class Curve:
    """Value and slope over p, for one choice of all else."""

    def __init__(self, evaluate, p_range):
        self._evaluate = evaluate
        low, high = p_range
        self.p = [low + (high - low) * i / STEPS for i in range(STEPS + 1)]
        self.results = self._evaluate(self.p)[:2]

    def at(self, part, p):
        return self._evaluate([p])[part][0]

    def jumps(self, part):
        """Where the curve jumps: where a step is large, beside all of it and beside a rounding, and stays so as it is
        halved."""
        y = self.results[part]
        finite = [number for number in y if abs(number) < 1e30]
        least = max(0.04 * (max(finite) - min(finite)), 1e-6 * max(map(abs, finite)))
        found = []
        for a, b, ya, yb in zip(self.p, self.p[1:], y, y[1:]):
            size = abs(yb - ya)
            if not least < size < 1e30:
                continue
            while b - a > 1e-12:
                middle = (a + b) / 2
                y_middle = self.at(part, middle)
                if abs(y_middle - ya) > abs(yb - y_middle):
                    b, yb = middle, y_middle
                else:
                    a, ya = middle, y_middle
            if abs(yb - ya) > size / 2 and round(b, 9) not in found:
                found.append(round(b, 9))
        return found

    def broken(self, part):
        """Pieces without a jump, as lists of points, and the dots between them."""
        jumps = self.jumps(part)
        pieces, low = [], self.p[0]
        for high in jumps + [self.p[-1]]:
            inner = [(p, y) for p, y in zip(self.p, self.results[part]) if low < p < high]
            first = (low, self.at(part, low + 1e-9 if low in jumps else low))
            last = (high, self.at(part, high - 1e-9 if high in jumps else high))
            pieces.append([point for point in [first, *inner, last] if abs(point[1]) < 1e30])
            low = high
        return pieces, [(p, self.at(part, p)) for p in jumps]


def simplified(points, tolerance=0.12):
    """Without the points that lie on the way, by Douglas and Peucker."""
    if len(points) < 3:
        return points
    (xa, ya), (xb, yb) = points[0], points[-1]
    length = ((xb - xa) ** 2 + (yb - ya) ** 2) ** 0.5 or 1
    distances = [abs((xb - xa) * (ya - y) - (xa - x) * (yb - ya)) / length for x, y in points[1:-1]]
    if max(distances) <= tolerance:
        return [points[0], points[-1]]
    k = distances.index(max(distances)) + 1
    return simplified(points[:k + 1], tolerance)[:-1] + simplified(points[k:], tolerance)


# ------------------------------------------------------------------- the panels --


class Panel:
    """Axes, and curves of one colour."""

    def __init__(self, head, colour, left, curves, p_range, shown):
        self.head, self.colour, self.left, self.curves, self.p_range = head, colour, left, curves, p_range
        numbers = [y for pieces, dots in curves for piece in [*pieces, dots] for _, y in piece]
        low, high = shown or (min(numbers), max(numbers))
        if high - low < 1e-9:
            low, high = low - 1, high + 1
        margin = 0 if shown else 0.06 * (high - low)
        self.low, self.high = low - margin, high + margin

    def x(self, p):
        low, high = self.p_range
        return self.left + PANEL_WIDTH * (p - low) / (high - low)

    def y(self, number):
        return PANEL_TOP + PANEL_HEIGHT * (self.high - number) / (self.high - self.low)

    def drawn(self, below):
        right, bottom = self.left + PANEL_WIDTH, PANEL_TOP + PANEL_HEIGHT
        lines = [f'<text class="head f{self.colour}" x="{self.left}" y="{PANEL_TOP - 13}">{self.head}</text>',
                 f'<clipPath id="c{self.colour}"><path d="M{self.left} {PANEL_TOP - 3}H{right + 3}V{bottom + 3}'
                 f'H{self.left - 3}V{PANEL_TOP - 3}z"/></clipPath>']
        for number in ticks(self.low, self.high):
            y = f"{self.y(number):.1f}"
            lines.append(f'<path class="{"axis" if number == 0 else "grid"}" d="M{self.left} {y}H{right}"/>')
            lines.append(f'<text class="end" x="{self.left - 7}" y="{self.y(number) + 4:.1f}">{number:g}</text>')
        for p in ticks(*self.p_range):
            x = f"{self.x(p):.1f}"
            lines.append(f'<path class="{"axis" if p == 0 else "grid"}" d="M{x} {PANEL_TOP}V{bottom}"/>')
            lines.append(f'<text class="middle" x="{x}" y="{bottom + 17}">{p:g}</text>')
        lines.append(f'<text class="middle" x="{self.left + PANEL_WIDTH // 2}" y="{bottom + 35}">{below}</text>')
        lines.append(f'<g clip-path="url(#c{self.colour})">')
        for (pieces, dots), dash in zip(self.curves, DASHES):
            lines += self.jumps_of(pieces)
            path = "".join(self.path_of(piece) for piece in pieces if len(piece) > 1)
            lines.append(f'<path class="line {self.colour}"{dashed(dash)} d="{path}"/>')
            lines += [f'<circle class="f{self.colour}" cx="{self.x(p):.1f}" cy="{self.y(number):.1f}" r="3.5"/>'
                      for p, number in dots]
        return lines + ["</g>"]

    def jumps_of(self, pieces):
        """A faint line from where a piece ends to where the next begins."""
        ends = [(*before[-1], after[0][1]) for before, after in zip(pieces, pieces[1:])]
        return [f'<path class="jump {self.colour}" d="M{self.x(p):.1f} {self.y(a):.1f}V{self.y(b):.1f}"/>'
                for p, a, b in ends]

    def path_of(self, piece):
        """In steps from point to point, of a tenth of a pixel. What lies far beyond the panel is cut to just beyond."""
        points = [(self.x(p), max(PANEL_TOP - 40, min(PANEL_TOP + PANEL_HEIGHT + 40, self.y(y)))) for p, y in piece]
        at_x, at_y = (round(number * 10) for number in points[0])
        words = [f"M{at_x / 10:g} {at_y / 10:g}l"]
        for x, y in simplified(points)[1:]:
            x, y = round(x * 10), round(y * 10)
            words.append(f"{(x - at_x) / 10:g} {(y - at_y) / 10:g} ")
            at_x, at_y = x, y
        return "".join(words).rstrip()


def ticks(low, high):
    """Four to eight round numbers in a range, or a hair outside."""
    low, high, step = low - 0.002 * (high - low), high + 0.002 * (high - low), 10.0 ** -6
    while (high - low) / step > 8.1:
        for factor in (2, 2.5, 2):  # 1, 2, 5, 10
            if (high - low) / step > 8.1:
                step *= factor
    return [round(i * step, 6) + 0.0 for i in range(math.ceil(low / step), math.floor(high / step) + 1)]
