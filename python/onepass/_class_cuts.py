"""Where classes lie that are shared out over ranks, and who adds up which tile of them: whole numbers alone."""

import functools
from collections import namedtuple

TILE = 1024

#: Classes first to last - 1.
Classes = namedtuple("Classes", "first last")

#: A tile that more than one rank has classes of: its number, who adds it up, and (rank, classes) of those who have any.
Torn = namedtuple("Torn", "tile owner parts")


@functools.lru_cache(maxsize=64)
def spans_of(counts):
    """Of each rank, in their order."""
    spans, first = [], 0
    for count in counts:
        spans.append(Classes(first, first + count))
        first += count
    return tuple(spans)


@functools.lru_cache(maxsize=64)
def torn_tiles(spans):
    """Whoever has most of a tile adds it up, so that as little as possible travels."""
    edges = {span.last // TILE for span in spans if span.last % TILE and span.last < spans[-1].last}
    found = []
    for tile in sorted(edges):
        parts = [(rank, Classes(max(span.first, tile * TILE), min(span.last, tile * TILE + TILE)))
                 for rank, span in enumerate(spans)]
        parts = [(rank, part) for rank, part in parts if part.first < part.last]
        if len(parts) > 1:
            owner = max(parts, key=lambda one: one[1].last - one[1].first)[0]  # of equals the first
            found.append(Torn(tile, owner, tuple(parts)))
    return tuple(found)


def whole_tiles(spans, rank):
    """The first and the end of the tiles that a rank has all classes of. The last class ends a tile."""
    span, all_classes = spans[rank], spans[-1].last
    begin = -(-span.first // TILE)
    end = -(-all_classes // TILE) if span.last == all_classes and span.first < span.last else span.last // TILE
    return begin, max(begin, end) if begin * TILE < span.last else begin


@functools.lru_cache(maxsize=64)
def owned_tiles(spans):
    """How many each rank adds up: those that it has, and torn ones before or behind them. All ranks' make up the row, in
    the order of the ranks."""
    counts = []
    for rank in range(len(spans)):
        begin, end = whole_tiles(spans, rank)
        counts.append(end - begin + sum(torn.owner == rank for torn in torn_tiles(spans)))
    return tuple(counts)


def pieces_of(span, all_classes):
    """A share as classes that begin with a tile or are within one: a head, whole tiles with those that end the row, and a
    tail."""
    head = min(-(-span.first // TILE) * TILE, span.last)
    tail = span.last if span.last == all_classes else max(span.last // TILE * TILE, head)
    return [piece for piece in (Classes(span.first, head), Classes(head, tail), Classes(tail, span.last))
            if piece.first < piece.last]
