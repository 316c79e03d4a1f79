# Losses of every family for tests that cut a whole into slices: operands, one call over the whole, and cuts.
import itertools
import random

import torch

import onepass

TILE = 1024  # of the order of summation: where cuts are most likely to be wrong

PAIRWISE = [loss["name"] for loss in onepass.losses()]
ROWS = [loss["name"] for loss in onepass.row_losses()]
VECTORS = [loss["name"] for loss in onepass.vector_losses()]
EVERY = [*PAIRWISE, *ROWS, *VECTORS]
LENGTH = 5  # classes of a row, elements of a vector
IGNORED = -100


def operands_of(name, total, dtype=torch.float32):
    """Of `total` elements or rows: input, target, and a third one or None. Some labels are ignored."""
    def shares(*shape):
        return torch.rand(shape, dtype=torch.float64).to(dtype)

    if name in PAIRWISE:
        three = len(next(loss for loss in onepass.losses() if loss["name"] == name)["operands"]) == 3
        return shares(total), shares(total), shares(total) if three else None
    if name in ROWS:
        input = torch.log(shares(total, LENGTH))
        if name == "cross_entropy_with_probabilities":
            return input, shares(total, LENGTH), None
        labels = torch.randint(0, LENGTH, (total,))
        return input, torch.where(torch.rand(total) < 0.2, IGNORED, labels), None
    third = None
    if name == "multi_margin":
        return shares(total, LENGTH), torch.randint(0, LENGTH, (total,)), shares(LENGTH)
    if name == "multilabel_margin":
        return shares(total, LENGTH), torch.randint(-1, LENGTH, (total, LENGTH)), None
    if name == "cosine_embedding":
        third = torch.randint(0, 2, (total,)) * 2 - 1
    elif name == "triplet_margin":
        third = shares(total, LENGTH)
    return shares(total, LENGTH), shares(total, LENGTH), third


def slice_of(tensors, total, first, last):
    """Of those that have an entry for each element or row; others are the weights of classes."""
    return [one[first:last] if one is not None and one.shape[:1] == (total,) else one for one in tensors]


def cuts_of(total, parts):
    """Random ones, near the edges of tiles and anywhere; shares may be empty."""
    near = [tile + off for tile in range(0, total + 1, TILE) for off in (-1, 0, 1)]
    places = [place for place in (*near, *random.sample(range(total + 1), min(8, total + 1))) if 0 <= place <= total]
    return [0, *sorted(random.choices(places, k=parts - 1)), total]


def spans_of(total, parts):
    return list(itertools.pairwise(cuts_of(total, parts)))


def same_bits(one, other):
    """Whether two tensors are the same, NaN with NaN and 0 apart from -0."""
    whole = {2: torch.int16, 4: torch.int32, 8: torch.int64}[one.element_size()]
    return one.dtype == other.dtype and one.shape == other.shape and \
        torch.equal(one.detach().contiguous().view(whole), other.detach().contiguous().view(whole))
