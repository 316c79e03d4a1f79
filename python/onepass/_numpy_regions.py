"""Losses of regions of NumPy's arrays; see _regions.py."""

import numpy

from . import _numpy_vectors
from ._numpy import LABELS, check_floats
from ._numpy_rows import reduction_of
from ._region_rows import check_sizes, check_words, rows_of


def loss(function, input, target, mode, from_logits, per, parameters, ignore_index, skip_absent, reduction, weight,
         mask, divisor):
    check_words(function, mode, per)
    check_floats(input, "input")
    if target.dtype.kind not in "fiub" or (mode == "multiclass" and target.dtype not in LABELS):
        raise TypeError(f"target has dtype {target.dtype}; expected "
                        f"{'int64, int32 or uint8' if mode == 'multiclass' else 'floats, integers or bool'}")
    if check_sizes(input, target, mode):
        target = target[:, None]
    prepare = of_classes if mode == "multiclass" else of_labels
    dtype = input.dtype
    input, target = prepare(input, target, from_logits, ignore_index)
    name = "tversky_with_logits" if from_logits and mode != "multiclass" else "tversky"
    input, axis = view_of(input, mode, per)
    target, _ = view_of(target, mode, per)
    reduction = reduction_of(None, None, reduction)
    if skip_absent:
        mask, divisor = of_present(target, axis, reduction, weight, mask, divisor)
    value = _numpy_vectors.loss(name, (input, target, None, weight, mask),
                                _numpy_vectors.parameters_of(name, parameters, function), axis, reduction, divisor)
    return value.astype(dtype) if mode == "multiclass" else value


def of_labels(input, target, from_logits, ignore_index):
    takes_part = None if ignore_index is None else target != ignore_index
    if target.dtype.kind != "f":
        target = target.astype(input.dtype)
    if takes_part is None:
        return input, target
    out = input.dtype.type(-numpy.inf if from_logits else 0)
    return numpy.where(takes_part, input, out), numpy.where(takes_part, target, target.dtype.type(0))


def of_classes(input, target, from_logits, ignore_index):
    wide = numpy.promote_types(input.dtype, numpy.float32)
    chances = softmax(input.astype(wide)) if from_logits else input
    takes_part = numpy.ones(target.shape, bool) if ignore_index is None else target != ignore_index
    target = numpy.where(takes_part, target, 0).astype(numpy.int64)
    wrong = target[(target < 0) | (target >= input.shape[1])]
    if wrong.size:
        raise IndexError(f"Target {wrong[0]} is out of bounds.")
    ones = numpy.zeros_like(chances)
    numpy.put_along_axis(ones, target[:, None], takes_part[:, None].astype(ones.dtype), 1)
    return numpy.where(takes_part[:, None], chances, chances.dtype.type(0)), ones


def softmax(logits):
    e = numpy.exp(logits - logits.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def view_of(array, mode, per):
    return rows_of(array, mode, per, lambda x: x.swapaxes(0, 1), lambda x: x[..., None])


def of_present(target, axis, reduction, weight, mask, divisor):
    rows = target.shape[:axis - 1]
    present = (target != 0).any(axis=tuple(range(axis - 1, target.ndim)))
    counted = numpy.ones(rows) if weight is None else numpy.broadcast_to(weight.astype(numpy.float64), rows)
    counted = float(counted.sum() if mask is None else numpy.where(mask != 0, counted, 0).sum())
    mask = numpy.asarray(present if mask is None else present & (mask != 0))
    return mask, counted if divisor is None and reduction == "mean" and counted > 0 else divisor
