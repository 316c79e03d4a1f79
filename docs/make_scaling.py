#!/usr/bin/env python3
"""The picture of docs/scaling.md: what three ranks send of one tree of sums.

    python3 docs/make_scaling.py            writes docs/pictures/scaling.svg
    python3 docs/make_scaling.py --check    says whether that is what it would write, and ends with 1 if not
"""

import os
import sys

sys.dont_write_bytecode = True

from make_losses.picture import STYLE

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pictures", "scaling.svg")
TILES, CUTS = 16, (0, 5.4, 11, 16)  # of the whole; where the ranks' shares begin, the first cut within a tile
KINDS = "abk"  # of the ranks' colours
WIDTH, HEIGHT, LEFT, PITCH = 720, 300, 40, 40  # of the picture; of a tile
BOTTOM, STEP, TALL = 236, 38, 20  # of the tiles; between the levels; of a box


def x_of(tile):
    return LEFT + PITCH * tile


def y_of(level):
    return BOTTOM - STEP * level


def box(kind, first, last, level, filled):
    style = f'class="{"f" if filled else ""}{kind}"' + ("" if filled else ' fill="none" stroke-width="2"')
    shade = ' fill-opacity="0.75"' if filled else ""
    return (f'<rect {style}{shade} x="{x_of(first) + 2:g}" y="{y_of(level):g}" width="{PITCH * (last - first) - 4:g}" '
            f'height="{TALL}" rx="3"/>')


def nodes_of(tile, end):
    """The aligned spans of whole tiles that a span falls into, as (first, level)."""
    while tile < end:
        level = 0
        while not tile >> level & 1 and end - tile >= 2 << level:
            level += 1
        yield tile, level
        tile += 1 << level


def whole_tiles(first, last):
    return -int(-first // 1), int(last)


def lines_to_children(sent):
    """From every node of the tree to its two, where these are not within what one rank sends."""
    within = {(tile, level) for first, top in sent for level in range(top) for tile in range(first, first + (1 << top))}
    for level in range(1, TILES.bit_length()):
        for tile in range(0, TILES, 1 << level):
            if (tile, level) in within or (tile, level) in sent:
                continue
            middle = x_of(tile + (1 << level) / 2)
            for child in (tile, tile + (1 << level - 1)):
                below = x_of(child + (1 << level - 1) / 2)
                yield f'<path class="axis" d="M{middle:g} {y_of(level) + TALL}L{below:g} {y_of(level - 1)}"/>'
            yield box("k", tile + (1 << level) / 2 - 0.3, tile + (1 << level) / 2 + 0.3, level, False)


def draw():
    spans = list(zip(CUTS, CUTS[1:]))
    sent = {node: rank for rank, span in enumerate(spans) for node in nodes_of(*whole_tiles(*span))}
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
             f'height="{HEIGHT}" role="img" '
             'aria-label="Sixteen tiles over three ranks, and the nodes of the tree that each of them sends">',
             STYLE.replace("</style>", ".fk{fill:#8c959f}\n</style>"),
             f'<rect class="ground" width="{WIDTH}" height="{HEIGHT}" rx="6"/>', *lines_to_children(set(sent))]
    for (first, level), rank in sent.items():
        lines.append(box(KINDS[rank], first, first + (1 << level), level, True))
        lines += [box(KINDS[rank], tile, tile + 1, 0, False) for tile in range(first, first + (1 << level)) if level]
    for (rank, (first, last)), words in zip(enumerate(spans), ("two nodes, 0.4 of a tile", "0.6 of a tile, three nodes",
                                                               "two nodes")):
        for begin, end in ((first, -int(-first // 1)), (int(last), last)):
            if begin < end:
                lines.append(box(KINDS[rank], begin, end, 0, True))
        middle = x_of((first + last) / 2)
        lines.append(f'<text class="middle" x="{middle:g}" y="{BOTTOM + 40}">rank {rank} sends {words}</text>')
    lines.append(f'<text class="middle" x="{x_of(TILES / 2):g}" y="{y_of(4) - 8}">the sum, the same on every rank'
                 '</text>')
    lines.append(f'<text x="{LEFT}" y="24" class="head">One tree over all tiles of 1024 elements; filled: what travels'
                 '</text>')
    return "\n".join([*lines, "</svg>", ""])


def main():
    text = draw()
    if "--check" in sys.argv:
        with open(FILE, encoding="utf-8") as file:
            if file.read() != text:
                sys.exit(f"{FILE} is not what docs/make_scaling.py draws")
        return
    with open(FILE, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
