"""Parts of a loss that stay in the memory of a GPU: what src/order.h does with terms, done by PyTorch's additions,
which round as the library's do. Nobody waits for the GPU: the host knows where all shares lie, and no number of them.

A rank sends the terms of the tiles that its share tears, and the nodes of the tree that it has all tiles of.
"""

import collections
import functools
from collections import namedtuple

import torch

TILE, LINES, LANES = 1024, 8, 128

#: Where a share lies: elements, or rows, first to last - 1. Its head and its tail are those of torn tiles.
Span = namedtuple("Span", "first last")


def tiles_of(span):
    """The whole tiles of a share, as (first, end); before and behind them are its head and its tail."""
    begin = -(-span.first // TILE)
    return begin, max(begin, span.last // TILE)


def head_end(span):
    return min(tiles_of(span)[0] * TILE, span.last)


def tail_begin(span):
    return min(max(tiles_of(span)[1] * TILE, head_end(span)), span.last)


def emitted(begin, end):
    """The nodes that tiles begin to end - 1 fall into, as (level, index in it), in the order that nodes_of has."""
    level = 0
    while begin < end:
        if begin & 1:
            yield level, begin
            begin += 1
        if begin < end and end & 1:
            end -= 1
            yield level, end
        begin, end, level = begin >> 1, end >> 1, level + 1


def nodes_of(sums, begin):
    """Their sums, of those of the tiles."""
    found = []
    while len(sums):
        if begin & 1:
            found.append(sums[:1])
            sums, begin = sums[1:], begin + 1
        if len(sums) & 1:
            found.append(sums[-1:])
            sums = sums[:-1]
        sums, begin = sums[0::2] + sums[1::2], begin >> 1
    return found


def tile_sums(terms):
    """Of whole tiles: the tree over the lines in the type of the terms, and over the lanes, by halves, in double."""
    sums = terms.view(-1, LINES, LANES)
    while sums.shape[1] > 1:
        sums = sums[:, 0::2] + sums[:, 1::2]
    sums = sums[:, 0].double()
    while sums.shape[1] > 1:
        half = sums.shape[1] // 2
        sums = sums[:, :half] + sums[:, half:]
    return sums[:, 0]


def message_size(spans):
    """Numbers that each rank sends: as many as the one that has most."""
    return max(head_end(span) - span.first + span.last - tail_begin(span) + len(list(emitted(*tiles_of(span))))
               for span in spans)


def message_of(terms, span, size):
    """What a rank sends, of the terms of its share: head, tail, nodes, as doubles, which hold all of them."""
    begin, end = tiles_of(span)
    head, tail = head_end(span) - span.first, tail_begin(span) - span.first
    whole = terms[begin * TILE - span.first:end * TILE - span.first] if begin < end else terms[:0]
    parts = [terms[:head].double(), terms[tail:].double(), *nodes_of(tile_sums(whole), begin)]
    rest = size - sum(len(part) for part in parts)
    return torch.cat([*parts, terms.new_zeros(rest, dtype=torch.float64)])


#: How the ranks' messages become one sum: of the terms of torn tiles where each lies among all numbers (behind them is
#: a 0 for terms that are not there); the places of nodes; and of each level which of those found so far are added.
Plan = namedtuple("Plan", "torn leaves levels")


@functools.lru_cache(maxsize=8)
def plan_of(spans, total, device):
    """For spans that make up the whole. It is made on the host, whatever the default device is."""
    size = message_size(spans)
    nothing = len(spans) * size
    torn, leaves = {}, {}
    for rank, span in enumerate(spans):
        at = rank * size
        for begin, end in ((span.first, head_end(span)), (tail_begin(span), span.last)):
            if begin < end:
                places = torn.setdefault(begin // TILE, torch.full((TILE,), nothing, device="cpu"))
                places[begin % TILE:begin % TILE + end - begin] = torch.arange(at, at + end - begin, device="cpu")
                at += end - begin
        for node in emitted(*tiles_of(span)):
            leaves[node] = at
            at += 1
    places = torch.stack([torn[tile] for tile in sorted(torn)]) if torn else \
        torch.empty(0, TILE, dtype=torch.int64, device="cpu")
    tops = {node: place for place, node in enumerate(leaves)}
    tops.update({(0, tile): len(leaves) + place for place, tile in enumerate(sorted(torn))})
    leaf_places = torch.tensor(list(leaves.values()), dtype=torch.int64, device="cpu")
    return Plan(places.to(device), leaf_places.to(device),
                [tuple(torch.tensor(side, device="cpu").to(device) for side in pairs)
                 for pairs in levels_of(tops, total)])


def levels_of(tops, total):
    """Of each level, the places of left and right nodes that become one; what comes of them has the next places. A node
    at the end that has no right one goes up as it is."""
    by_level, found = collections.defaultdict(dict), len(tops)
    for (level, index), place in tops.items():
        by_level[level][index] = place
    for level in range(max(-(-total // TILE) - 1, 0).bit_length()):
        own, above, lefts, rights = by_level[level], by_level[level + 1], [], []
        for index in sorted(own):
            right = own.get(index + 1)
            if index & 1 or right is None:
                if not index & 1:
                    above[index >> 1] = own[index]
                continue
            lefts.append(own[index])
            rights.append(right)
            above[index >> 1], found = found, found + 1
        if lefts:
            yield lefts, rights


def sum_of(messages, plan, compute):
    """The sum over the whole, of all ranks' messages one behind the other."""
    with_nothing = torch.cat([messages, messages.new_zeros(1)])
    pool = torch.cat([messages[plan.leaves], tile_sums(with_nothing[plan.torn].to(compute))])
    for left, right in plan.levels:
        pool = torch.cat([pool, pool[left] + pool[right]])
    return pool[-1] if len(pool) else messages.new_zeros(())


def check_spans(spans, total):
    """That they make up the whole; an error names what is missing, or there twice."""
    at = 0
    for span, rank in sorted((span, rank) for rank, span in enumerate(spans) if span.first < span.last):
        if span.first != at:
            what = "leave a gap" if span.first > at else "overlap"
            raise RuntimeError(f"the ranks' shares {what} between elements {min(at, span.first)} and "
                               f"{max(at, span.first)}, where rank {rank}'s begins; expected each element once")
        at = span.last
    if at != total:
        raise RuntimeError(f"the ranks' shares do not make up the whole: they end at {at}, of {total}")
