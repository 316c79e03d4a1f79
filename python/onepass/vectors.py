"""Losses of pairs and triples of vectors: their cosines, their distances, and margins between these."""

import inspect
import sys

from .functional import _enabled, _overridden, _override, speaks_torch

__all__ = ["cosine_embedding_loss", "cosine_similarity", "pairwise_distance", "triplet_margin_loss",
           "triplet_margin_with_distance_loss"]


def cosine_similarity(x1, x2, dim=1, eps=1e-8, *, weight=None, mask=None):
    """The cosine of pairs of vectors, as torch.nn.functional.cosine_similarity has it: each norm is at least eps.

        n1 = maximum(sqrt(sum(x1*x1)), eps)
        n2 = maximum(sqrt(sum(x2*x2)), eps)
        value = sum(x1*x2)/(n1*n2)

    x1: vectors, a PyTorch tensor or a NumPy array
    x2: others, of the same kind; both broadcast
    dim: the dimension of a vector's elements; 1 if not given
    eps: what a norm is at least; 1e-08 if not given
    weight: multiplies each pair's cosine; broadcasts to the result
    mask: which pairs take part, of bool or uint8; the others are 0; broadcasts to the result
    """
    if _overridden(x1, x2, weight, mask) and _enabled():
        return _override(cosine_similarity, x1, x2, dim, eps, weight, mask)
    return _side(x1, x2).cosine_similarity(x1, x2, dim, eps, weight, mask)


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False, *, weight=None, mask=None):
    """The distance of pairs of vectors, as torch.nn.functional.pairwise_distance has it: eps is added to each element
    of their difference. Vectors are the last dimension.

        z = x1 - x2 + eps
        value = sum(abs(z)**p)**(1/p)

    x1: vectors, a PyTorch tensor or a NumPy array
    x2: others, of the same kind; both broadcast
    p: the norm, 1 or 2 by the library, any other by PyTorch; 2.0 if not given
    eps: what is added to each difference; 1e-06 if not given
    keepdim: whether the last dimension stays, with one element; False if not given
    weight: multiplies each pair's distance; broadcasts to the pairs
    mask: which pairs take part, of bool or uint8; the others are 0; broadcasts to the pairs
    """
    if _overridden(x1, x2, weight, mask) and _enabled():
        return _override(pairwise_distance, x1, x2, p, eps, keepdim, weight, mask)
    return _side(x1, x2).pairwise_distance(x1, x2, p, eps, keepdim, weight, mask)


def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean", *,
                          weight=None, mask=None, divisor=None):
    """How far pairs of vectors are from having the same direction where the target is 1, and how far their cosine is
    above a margin where it is -1, as torch.nn.functional.cosine_embedding_loss has it. For other targets it is 0.

        c = sum(input1*input2)/sqrt((sum(input1*input1) + 1e-12)*(sum(input2*input2) + 1e-12))
        value = where(target == 1, 1 - c, where(target == -1, maximum(0, c - margin), 0))

    input1: vectors, (N, D) or (D), a PyTorch tensor or a NumPy array
    input2: others, of the same kind
    target: 1 or -1 for each pair, (N) or (), of any type of float, of int64, int32 or uint8
    margin: what the cosine of a pair with target -1 may be; 0 if not given
    size_average: deprecated by PyTorch: False for reduction='sum'
    reduce: deprecated by PyTorch: False for reduction='none'
    reduction: 'mean', 'sum', 'none' or 'batchmean', the sum over the first extent; 'mean' if not given
    weight: multiplies each pair's loss; broadcasts to the pairs; a mean is over the sum of the weights
    mask: which pairs take part, of bool or uint8; broadcasts to the pairs
    divisor: what a mean is divided by instead: a number, or a tensor of one element on the device
    """
    if _overridden(input1, input2, target, weight, mask, divisor) and _enabled():
        return _override(cosine_embedding_loss, input1, input2, target, margin, size_average, reduce, reduction, weight,
                         mask, divisor)
    return _side(input1, input2, target).cosine_embedding_loss(input1, input2, target, margin, size_average, reduce,
                                                               reduction, weight, mask, divisor)


def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None,
                        reduce=None, reduction="mean", *, weight=None, mask=None, divisor=None):
    """How far a vector's distance from a positive one falls short of its distance from a negative one by less than a
    margin, as torch.nn.functional.triplet_margin_loss has it. Vectors are the last dimension.

        distance = lambda x1, x2: sum(abs(x1 - x2 + eps)**p)**(1/p)
        near = distance(anchor, positive)
        far = distance(anchor, negative)
        far = minimum(far, distance(positive, negative)) if swap else far
        value = maximum(0, margin + near - far)

    anchor: vectors, a PyTorch tensor or a NumPy array
    positive: those that should be near, of the same kind and number of dimensions
    negative: those that should be far
    margin: by how much, above 0; 1.0 if not given
    p: the norm of the distances, 1 or 2 by the library, any other by PyTorch; 2 if not given
    eps: what is added to each difference; 1e-06 if not given
    swap: whether a negative one that is nearer to the positive one counts from there; False if not given
    size_average: deprecated by PyTorch: False for reduction='sum'
    reduce: deprecated by PyTorch: False for reduction='none'
    reduction: 'mean', 'sum', 'none' or 'batchmean', the sum over the first extent; 'mean' if not given
    weight: multiplies each triple's loss; broadcasts to the triples; a mean is over the sum of the weights
    mask: which triples take part, of bool or uint8; broadcasts to the triples
    divisor: what a mean is divided by instead: a number, or a tensor of one element on the device
    """
    if _overridden(anchor, positive, negative, weight, mask, divisor) and _enabled():
        return _override(triplet_margin_loss, anchor, positive, negative, margin, p, eps, swap, size_average, reduce,
                         reduction, weight, mask, divisor)
    return _side(anchor, positive, negative).triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap,
                                                                 size_average, reduce, reduction, weight, mask, divisor)


def triplet_margin_with_distance_loss(anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False,
                                      reduction="mean"):
    """The triplet margin loss of any distance, as torch.nn.functional.triplet_margin_with_distance_loss has it. Without
    a function it is triplet_margin_loss; with one it is computed by PyTorch.

        near = distance_function(anchor, positive)
        far = distance_function(anchor, negative)
        far = minimum(far, distance_function(positive, negative)) if swap else far
        value = maximum(0, margin + near - far)

    anchor: vectors, a PyTorch tensor
    positive: those that should be near, of the same number of dimensions
    negative: those that should be far
    distance_function: of two tensors; the Euclidean distance of the last dimension if not given
    margin: by how much, above 0; 1.0 if not given
    swap: whether a negative one that is nearer to the positive one counts from there; False if not given
    reduction: 'mean', 'sum' or 'none'; 'mean' if not given
    """
    if _overridden(anchor, positive, negative) and _enabled():
        return _override(triplet_margin_with_distance_loss, anchor, positive, negative, distance_function, margin, swap,
                         reduction)
    return _side(anchor, positive, negative).triplet_margin_with_distance_loss(anchor, positive, negative,
                                                                               distance_function, margin, swap,
                                                                               reduction)


# -------------------------------------------------------------------- who computes --

_vectors = None  # the module that computes for PyTorch's tensors, once there were some


def _side(*operands):
    """The module that computes for these operands."""
    global _vectors
    if _vectors is not None and isinstance(operands[0], _vectors.Tensor):
        return _vectors
    if "torch" in sys.modules and any([speaks_torch(operand) for operand in operands]):
        from . import _vectors

        return _vectors
    numpy = sys.modules.get("numpy")
    if numpy is not None and all(isinstance(operand, numpy.ndarray) for operand in operands):
        from . import _numpy_vectors

        return _numpy_vectors
    raise TypeError(f"the operands are {', '.join(type(operand).__name__ for operand in operands)}; expected PyTorch "
                    "tensors or NumPy arrays")


for _name in __all__:
    globals()[_name].__doc__ = inspect.cleandoc(globals()[_name].__doc__)
