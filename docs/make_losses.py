#!/usr/bin/env python3
"""What the documents say of the losses, made of the library's own catalogue and numbers.

    python3 docs/make_losses.py [LIBRARY]            writes it anew
    python3 docs/make_losses.py --check [LIBRARY]    says what is not what the library says, and ends with 1

LIBRARY is the shared library, build/src/libonepass.so unless said otherwise. What is made stands between the lines
`<!-- docs/make_losses.py: NAME -->` and `<!-- end -->` of docs/losses.md, a part for each loss, the `table` of all
and those of the losses over `rows` and of `vectors`, in docs/pictures/loss-NAME.svg, and in the README, which says how
many there are. A loss that has no part in docs/losses.md gets one, after that of the loss before it: its paragraph,
which is the catalogue's word for the loss at first, is for a person to write. So are lines of tables in docs/pytorch.md
and docs/numerics.md: which are missing is said either way.
docs/make_losses/notes.py has what else the catalogue does not know; a loss can do without.
"""

import glob
import math
import os
import re
import sys
import textwrap

sys.dont_write_bytecode = True

from make_losses.library import Library
from make_losses.notes import NOTES, note_of
from make_losses.picture import RowPicture, draw, draw_row
from make_losses.shown import formulas_of, shortened

DOCS = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(DOCS)
PAGE = os.path.join(DOCS, "losses.md")
README = os.path.join(ROOT, "README.md")
MARKED = re.compile(r"(<!-- docs/make_losses\.py: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
COLUMNS = 110


# ----------------------------------------------------------------- the formulas --


def laid_out(shown, used):
    """A block of code, long formulas in several lines."""
    width = max(map(len, shown))
    lines = []
    for name, words in list(shown.items()) + [("with" if k == 0 else "", f"{short} = {part}")
                                              for k, (short, part) in enumerate(used.items())]:
        lines += [f"{name if k == 0 else '':{width}}  {line}" for k, line in enumerate(wrapped(words, COLUMNS - width))]
    return ["```", *lines, "```"]


def wrapped(words, width):
    """In lines, broken before a sign that stands within as few parentheses as can be."""
    lines = []
    while len(words) > width:
        depth, best = 0, (math.inf, width)
        for i, sign in enumerate(words[:width]):
            depth += (sign == "(") - (sign == ")")
            if i > width // 3 and sign == " " and words[i + 1] in "+-?:" and depth <= best[0]:
                best = depth, i
        lines.append(words[:best[1]])
        words = words[best[1]:].lstrip()
    return lines + [words]


# --------------------------------------------------------------------- the parts --


def part_of(library, loss):
    """What the page says of a loss, but for its paragraph."""
    note = note_of(loss)
    lines = [*picture_of(loss), "", *laid_out(*formulas_of(library, loss))]
    if loss.operands != ["prediction", "target"]:
        words = [f"{letter} is `{name}`" for letter, name in zip("ptv", loss.operands)]
        lines += ["", f"Operands: {', '.join(words)}."]
    return lines + [*parameters_of(loss), "", *accuracy_of(loss, note), "", *names_of(loss, note)]


def picture_of(loss):
    return [f"![{loss.name}: value and slope]({os.path.relpath(picture_path(loss), DOCS)})"]


def has_row_picture(loss):
    """A loss of vectors has one if its note says what it shows."""
    return isinstance(note_of(loss).picture, RowPicture)


def part_of_rows(loss):
    """That of a loss over rows, which has no picture."""
    lines = laid_out({"value": loss.value, "slope in z[c]": loss.slope}, {})
    return lines + [*parameters_of(loss), "", *names_of(loss, note_of(loss))]


def part_of_vectors(loss):
    """That of a loss of vectors."""
    lines = laid_out({"value": loss.value, f"slope in {loss.operands[0]}": loss.slope}, {})
    if has_row_picture(loss):
        lines = [*picture_of(loss), "", *lines]
    slopes = [f"slope in {name}" for name in loss.operands]
    return lines + ["", f"Operands: {', '.join(f'`{name}`' for name in loss.operands)}.", *parameters_of(loss), "",
                    *accuracy_of(loss, note_of(loss), slopes, VECTORS_IN_DOUBLE), "", *names_of(loss, note_of(loss))]


def parameters_of(loss):
    if not loss.parameters:
        return []
    return ["", "| parameter | unless given | allowed | |", "|---|---|---|---|",
            *(f"| `{parameter.name}` | {parameter.default_value:g} | {range_of(parameter)} | {parameter.meaning} |"
              for parameter in loss.parameters)]


VECTORS_IN_DOUBLE = "; in double as [numerics.md](numerics.md#vector-losses) counts, by the length"


def accuracy_of(loss, note, slopes=("slope in p", "slope in t", "slope in v"), in_double=""):
    """How far off the value and the slopes may be."""
    errors = []
    for name, error in zip(("value", *slopes), loss.errors):
        of = f" (of `{shortened(error.of, note.names)}` where that is larger)" if error.of else ""
        errors.append(f"{name} {error.ulp:g}{of}")
    parts = ", ".join(f"`{shortened(part, note.names)}`" for part in loss.rounded)
    more = f"; and by what one rounding {'each ' if len(loss.rounded) > 1 else ''}of {parts} changes" if parts else ""
    words = f"Off by at most, in ulp{' of a float' if in_double else ''}: {', '.join(errors)}{more}{in_double}."
    return textwrap.wrap(words, COLUMNS, break_long_words=False, break_on_hyphens=False)


def range_of(parameter):
    """What a parameter may be, in words."""
    if parameter.name == "ignore_index":
        return "whole numbers from -2^53 to 2^53"
    if parameter.name in ("p", "swap"):
        return f"{parameter.minimum:g} or {parameter.maximum:g}"
    if parameter.name == "softcap":
        return "0, or 1e-30 to 1e30"
    low = f"{'above' if parameter.minimum_excluded else 'at least'} {parameter.minimum:g}"
    high = f"{'below' if parameter.maximum_excluded else 'at most'} {parameter.maximum:g}"
    ends = [words for words, end in ((low, parameter.minimum), (high, parameter.maximum)) if not math.isinf(end)]
    if parameter.maximum_excluded and math.isinf(parameter.maximum):
        ends.append("finite")
    return ", ".join(ends).replace("e+", "e") or "any number"


def python_names(loss, note):
    """The function, and the module or None."""
    module = "".join(word.capitalize() for word in loss.name.split("_")) + "Loss"
    return note.python or (f"{loss.name}_loss", module)


def names_of(loss, note):
    """Ours, and those elsewhere."""
    function, module = python_names(loss, note)
    elsewhere = [f"in {who} {name}" for who, name in
                 (("PyTorch", note.torch), ("optax", note.optax), ("Keras", note.keras)) if name]
    if not elsewhere and loss.name in NOTES:
        elsewhere = ["PyTorch, optax and Keras have none"]
    ours = f"In Python `onepass.{function}`" + (f", `onepass.nn.{module}`" if module else "")
    words = "; ".join([ours, ", ".join(elsewhere)] if elsewhere else [ours]) + "."
    return textwrap.wrap(words, COLUMNS, break_long_words=False, break_on_hyphens=False)


def picture_path(loss):
    return os.path.join(DOCS, "pictures", f"loss-{loss.name}.svg")


def table(losses, called):
    """A row for each loss, or for those that share one."""
    lines = [f"{len(losses)} {called}, by their names in `torch.nn.functional`, `optax.losses` and `keras.losses`:", "",
             "| loss | PyTorch | optax | Keras | better here |", "|---|---|---|---|---|"]
    for loss in losses:
        note = note_of(loss)
        if note.of:
            continue
        own = [loss] + [other for other in losses if note_of(other).of == loss.name]
        called = ", ".join(f"[{one.name if one is loss else one.name[len(loss.name):]}](#{one.name})"
                           for one in own)
        names = [", ".join(dict.fromkeys(name for name in column if name))
                 for column in zip(*((n.torch, n.optax, n.keras) for n in map(note_of, own)))]
        if len(own) > 1:
            names[0] = note.torch
        lines.append("|" + "|".join(f" {cell} " if cell else " " for cell in [called, *names, note.better]) + "|")
    return lines


# ----------------------------------------------------------------- the documents --


def with_sections(text, losses):
    """The page, with a section for each loss that has none yet, and a complaint about sections without a loss."""
    for name in {found[1] for found in MARKED.findall(text)} - {loss.name for loss in losses} - {"table", "rows", "vectors"}:
        sys.exit(f"docs/losses.md: there is no loss {name}; take its part out, and docs/pictures/loss-{name}.svg")
    at = len(text)
    for loss in losses:
        found = re.search(rf"<!-- docs/make_losses\.py: {loss.name} -->\n.*?(?=^##|\Z)", text, re.DOTALL | re.MULTILINE)
        if found:
            at = found.end()
            continue
        meaning = loss.meaning[0].upper() + loss.meaning[1:] + "."
        section = f"### {loss.name}\n\n{meaning}\n\n<!-- docs/make_losses.py: {loss.name} -->\n<!-- end -->\n\n"
        text = text[:at].rstrip("\n") + "\n\n" + section + text[at:]
        at = text.index(section) + len(section)
    return text.rstrip("\n") + "\n"


def refilled(text, parts):
    return MARKED.sub(lambda found: found[1] + "\n".join(parts[found[2]]) + "\n" + found[3], text)


def counted(text, count):
    """The README, with the number of losses."""
    text, found = re.subn(r"\[\d+ losses\]\(docs/losses\.md\)", f"[{count} losses](docs/losses.md)", text)
    if found != 1:
        sys.exit("README.md: expected [N losses](docs/losses.md) once")
    return text


def missing_lines(losses, row_losses):
    """What a person has not written yet: a sentence for each line of a table."""
    functions = read(os.path.join(DOCS, "pytorch.md"))
    numerics = read(os.path.join(DOCS, "numerics.md")).partition("\n## The losses\n")[2].partition("\n## ")[0]
    formulas, _, edges = numerics.partition("What comes out at the edges")
    for loss in losses + row_losses:
        function, _ = python_names(loss, note_of(loss))
        if f"\n| `onepass.{function}(" not in functions:
            yield f"docs/pytorch.md: expected a line of `onepass.{function}(...)` in a table of functions"
    for loss in losses:
        if not re.search(rf"^\|[^|]*`{loss.name}`", formulas, re.MULTILINE):
            yield f"docs/numerics.md: expected a line of `{loss.name}` in the table of formulas"
        if not re.search(rf"^\|( input \|.*)?[^|]*`{loss.name}`", edges, re.MULTILINE):
            yield f"docs/numerics.md: expected a line of `{loss.name}` in the table of what comes out at the edges"


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def main():
    options = [word for word in sys.argv[1:] if word.startswith("-")]
    paths = [word for word in sys.argv[1:] if not word.startswith("-")]
    if options not in ([], ["--check"]) or len(paths) > 1:
        sys.exit(__doc__.strip())
    library = Library(paths[0] if paths else os.path.join(ROOT, "build", "src", "libonepass.so"))
    losses, row_losses, vector_losses = library.losses(), library.row_losses(), library.vector_losses()
    parts = {loss.name: part_of(library, loss) for loss in losses} | {"table": table(losses, "losses")}
    parts |= {loss.name: part_of_rows(loss) for loss in row_losses} | {"rows": table(row_losses, "losses over rows")}
    parts |= {loss.name: part_of_vectors(loss) for loss in vector_losses}
    parts["vectors"] = table(vector_losses, "losses of vectors")
    count = len(losses) + len(row_losses) + len(vector_losses)
    files = {PAGE: refilled(with_sections(read(PAGE), losses + row_losses + vector_losses), parts)}
    files[README] = counted(read(README), count)
    files.update({picture_path(loss): draw(library, loss, note_of(loss).picture) for loss in losses})
    files.update({picture_path(loss): draw_row(library, loss, note_of(loss).picture) for loss in vector_losses
                  if has_row_picture(loss)})
    for path in set(glob.glob(os.path.join(DOCS, "pictures", "loss-*.svg"))) - set(files):
        sys.exit(f"{os.path.relpath(path, ROOT)}: there is no such loss; take it out")
    stale = [path for path, text in files.items() if read(path) != text]
    for path in stale:
        name = os.path.relpath(path, ROOT)
        if options:
            print(f"{name}: not what the library says; python3 docs/make_losses.py writes it anew")
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(files[path])
            print(f"{name}: written")
    missing = list(missing_lines(losses, row_losses))
    print(*missing, f"{count} losses", sep="\n")
    sys.exit(1 if options and (stale or missing) else 0)


if __name__ == "__main__":
    main()
