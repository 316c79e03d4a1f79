"""Ranks that share the classes of one tensor, all in one process: what they would send each other goes from hand to
hand. For tests and benchmarks on one machine."""

from ._class_cuts import owned_tiles, spans_of
from ._contract import code_of
from ._row_request import parameters_of
from ._vocabulary import Question, Share


def shares_of(inputs, target, weight=None, reduction="mean", **parameters):
    """A share for each tensor of inputs, which have the classes in this order."""
    spans = spans_of(tuple(input.shape[min(1, input.dim() - 1)] for input in inputs))
    numbers, sums = parameters_of("cross_entropy", **parameters), 4 if parameters.get("label_smoothing") else 2
    return [Share(Question("cross_entropy", code_of(reduction), numbers, 0, spans, rank, sums), input, target, weight)
            for rank, input in enumerate(inputs)]


def told_to_all(shares):
    """The sums of all tiles and the labels' logits."""
    waiting = {(rank, to): [] for rank in range(len(shares)) for to in range(len(shares))}
    for rank, share in enumerate(shares):
        for to, part in share.sent():
            waiting[rank, to].append(part)
    counts = owned_tiles(shares[0].question.spans)
    sums = shares[0].new(shares[0].rows, shares[0].question.sums, sum(counts))
    logits = shares[0].new(sum(len(share.added_up()) for share in shares), shares[0].rows)
    first = piece = 0
    for rank, (share, count) in enumerate(zip(shares, counts)):
        received = [(by, waiting[by, rank].pop(0)) for by, _ in share.received()]
        pieces = len(share.added_up())
        share.tile_sums(received, sums[:, :, first:first + count], logits[piece:piece + pieces])
        first, piece = first + count, piece + pieces
    return sums, logits.amax(0)


def value_and_gradients(shares, upstream, divisor=None, dtype=None):
    """What each rank would have: the value, and the gradients of all."""
    sums, logits = told_to_all(shares)
    value, state = shares[0].value(sums, logits, divisor, dtype or shares[0].input.dtype)
    return value, [share.gradient(state, logits, share.torn_sums(sums), divisor, upstream) for share in shares]
