"""The margins of margins.py, of NumPy's arrays."""

from . import functional
from ._numpy import LABELS, check_floats, check_type
from ._numpy_rows import reduction_of
from ._numpy_vectors import checked_norm, loss, parameters_of


def multi_margin_loss(input, target, p, margin, weight, size_average, reduce, reduction, row_weight, mask, divisor):
    check_floats(input, "input")
    check_labels(target)
    reduction = reduction_of(size_average, reduce, reduction)
    parameters = parameters_of("multi_margin", (checked_norm(p), margin))
    return loss("multi_margin", (input, target, weight, row_weight, mask), parameters, -1, reduction, divisor)


def multilabel_margin_loss(input, target, size_average, reduce, reduction, weight, mask, divisor):
    check_floats(input, "input")
    check_labels(target)
    reduction = checked_reduction(size_average, reduce, reduction)
    if input.ndim not in (1, 2) or input.shape[-1] == 0 or target.shape != input.shape:
        raise ValueError(f"input has shape {input.shape} and target {target.shape}; expected the same for both, (N, C) "
                         "or (C,)")
    return loss("multilabel_margin", (input, target, None, weight, mask), (), -1, reduction, divisor)


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


def check_labels(target):
    check_type(target, "target", LABELS, "class indices: int64, int32 or uint8")


def checked_reduction(size_average, reduce, reduction):
    reduction = reduction_of(size_average, reduce, reduction)
    if reduction == "batchmean":  # which PyTorch's do not have
        raise ValueError("batchmean is not a valid value for reduction")
    return reduction
