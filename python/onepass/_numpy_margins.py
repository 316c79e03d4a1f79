"""Margins of several labels a row, of NumPy's arrays: by NumPy, and by the library's binary cross-entropy."""

import numpy

from . import functional
from ._numpy import check_floats
from ._numpy_rows import reduction_of

_LABELS = (numpy.int64, numpy.int32)


def multilabel_margin_loss(input, target, size_average, reduce, reduction):
    """Row by row, in float64; rounded once."""
    check_floats(input, "input")
    reduction = checked_reduction(size_average, reduce, reduction)
    check_labels(input, target)
    rows = zip(numpy.atleast_2d(input.astype(numpy.float64)), numpy.atleast_2d(target))
    each = numpy.array([of_row(scores, labels) for scores, labels in rows]).reshape(input.shape[:-1])
    return reduced(each, reduction, input.dtype)


def check_labels(input, target):
    if target.dtype not in _LABELS or not target.dtype.isnative:
        raise TypeError(f"target has dtype {target.dtype}; expected class indices: int64 or int32 of this machine")
    if input.ndim not in (1, 2) or input.shape[-1] == 0 or target.shape != input.shape:
        raise ValueError(f"input has shape {input.shape} and target {target.shape}; expected the same for both, (N, C) "
                         "or (C,)")
    wrong = target[(target < -1) | (target >= input.shape[-1])]
    if wrong.size:
        raise IndexError(f"Target {wrong[0]} is out of bounds.")


def of_row(scores, labels):
    """What is not above 0 counts for nothing, and so does NaN."""
    own = labels[:numpy.append(labels < 0, True).argmax()]
    others = numpy.delete(scores, own)
    with numpy.errstate(invalid="ignore"):
        beyond = 1 - scores[own][:, None] + others
        return beyond[beyond > 0].sum() / len(scores)


def multilabel_soft_margin_loss(input, target, weight, size_average, reduce, reduction):
    check_floats(input, "input")
    reduction = checked_reduction(size_average, reduce, reduction)
    if input.ndim == 0 or target.shape != input.shape:
        raise ValueError(f"input has shape {input.shape} and target {target.shape}; expected the same for both, with the "
                         "classes last")
    target = target if target.dtype.kind == "f" else target.astype(input.dtype)
    value = functional.binary_cross_entropy_with_logits(input, target, weight, reduction=reduction)
    if reduction == "mean":
        return value
    return value.mean(-1, dtype=value.dtype) if reduction == "none" else value.dtype.type(value / input.shape[-1])


def checked_reduction(size_average, reduce, reduction):
    reduction = reduction_of(size_average, reduce, reduction)
    if reduction == "batchmean":  # which PyTorch's do not have
        raise ValueError("batchmean is not a valid value for reduction")
    return reduction


def reduced(each, reduction, dtype):
    if reduction == "none":
        return each.astype(dtype)[()]
    with numpy.errstate(invalid="ignore"):  # of no rows
        return dtype.type(each.sum() / numpy.float64(each.size if reduction == "mean" else 1))
