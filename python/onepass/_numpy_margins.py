"""multilabel_soft_margin_loss of NumPy's arrays, by the library's binary cross-entropy."""

from . import functional
from ._numpy import check_floats
from ._numpy_vectors import checked_reduction


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
