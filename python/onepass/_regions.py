"""Losses of regions of PyTorch's tensors: by views, the library's tversky; softmax, one-hot targets and elements that
are ignored are PyTorch's operations before it."""

import torch

from . import _vectors
from ._region_rows import check_sizes, check_words, rows_of
from ._row_request import FLOATS, LABELS
from ._torch_state import is_compiling, is_in_single, is_plain_here

Tensor = torch.Tensor


def loss(function, input, target, mode, from_logits, per, parameters, ignore_index, skip_absent, reduction, weight,
         mask, divisor):
    _vectors.check_kinds(input=input, target=target, weight=weight, mask=mask)
    check_words(function, mode, per)
    check_types(input, target, mode)
    if check_sizes(input, target, mode):
        target = target.unsqueeze(1)
    dtype = None
    if mode == "multiclass":
        dtype = torch.float32 if is_in_single(input.device.type) and input.dtype != torch.float64 else input.dtype
        input, target = of_classes(input, target, from_logits, ignore_index)
    else:
        input, target = of_labels(input, target, from_logits, ignore_index)
    name = "tversky_with_logits" if from_logits and mode != "multiclass" else "tversky"
    input, axis = view_of(input, mode, per)
    target, _ = view_of(target, mode, per)
    if skip_absent:
        mask, divisor = of_present(target, axis, reduction, weight, mask, divisor)
    return _vectors.tversky(function, name, input, target, parameters, axis, dtype, reduction, weight, mask, divisor)


def check_types(input, target, mode):
    if input.dtype not in FLOATS:
        raise TypeError(f"input is of {input.dtype}; expected a floating point type")
    if mode == "multiclass" and target.dtype not in LABELS:
        raise TypeError(f"target is of {target.dtype}; expected class indices of torch.int64, torch.int32 or "
                        "torch.uint8")
    if torch.is_complex(target) or (target.is_floating_point() and target.dtype not in FLOATS):
        raise TypeError(f"target is of {target.dtype}; expected a floating point type, bool or integers")


def of_labels(input, target, from_logits, ignore_index):
    """Both as floats. An element that is ignored is in neither: its logit is that of the probability 0."""
    is_float = target.is_floating_point()
    takes_part = None if ignore_index is None else (target if is_float else target.long()) != ignore_index
    target = target if is_float else target.to(input.dtype)
    if takes_part is None:
        return input, target
    return torch.where(takes_part, input, float("-inf") if from_logits else 0.0), torch.where(takes_part, target, 0.0)


def of_classes(input, target, from_logits, ignore_index):
    """Probabilities, and 1 where the target is."""
    wide = torch.promote_types(input.dtype, torch.float32)
    chances = torch.softmax(input, 1, dtype=wide) if from_logits else input
    target = target.long()
    takes_part = None if ignore_index is None else target != ignore_index
    check_classes(target, takes_part, input.shape[1])
    target = (target if takes_part is None else torch.where(takes_part, target, 0)).unsqueeze(1)
    if takes_part is None:
        return chances, torch.zeros_like(chances).scatter(1, target, 1.0)
    takes_part = takes_part.unsqueeze(1)
    ones = torch.zeros_like(chances).scatter(1, target, takes_part.to(chances.dtype))
    return torch.where(takes_part, chances, 0.0), ones


def check_classes(target, takes_part, classes):
    """In the words that PyTorch has of other losses' labels. Nobody waits for a GPU to tell."""
    if target.is_cpu and not is_compiling() and is_plain_here() and target.numel() > 0:
        low, high = (int(end) for end in target.aminmax())
        if 0 <= low and high < classes:
            return
        is_wrong = (target < 0) | (target >= classes)
        wrong = target[is_wrong if takes_part is None else is_wrong & takes_part]
        if len(wrong):
            raise IndexError(f"Target {int(wrong[0])} is out of bounds.")


def view_of(tensor, mode, per):
    return rows_of(tensor, mode, per, lambda x: x.transpose(0, 1), lambda x: x.unsqueeze(-1))


def of_present(target, axis, reduction, weight, mask, divisor):
    """The regions that are there, and what a mean is divided by: all that take part, there or not."""
    with torch.no_grad():
        rows = target.shape[:axis - 1]
        present = torch.any(target != 0, dim=tuple(range(axis - 1, target.dim())))
        if mask is None and weight is None:
            counted = None if present.numel() == 0 else float(present.numel())
        else:
            counted = torch.ones(rows, dtype=torch.float64, device=target.device) if weight is None else \
                weight.double().expand(rows)
            counted = (counted if mask is None else torch.where(mask != 0, counted, 0)).sum()
            if counted.is_cpu and not is_compiling() and is_plain_here() and counted.item() <= 0:
                counted = None  # a mean of nothing
        mask = present if mask is None else present & (mask != 0)
    return mask, counted if divisor is None and reduction == "mean" else divisor
