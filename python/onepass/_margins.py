"""The margins of margins.py. PyTorch's own functions, taken before anybody can have patched them, are asked for every
row; what is made of the rows here is right where theirs is not: in 16 bits, and of no rows at all."""

import torch
import torch.nn.functional as F
from torch.nn import _reduction

from . import functional
from ._contract import CODES, broadcasts_to, code_of
from ._row_request import FLOATS, are_plain
from ._torch_state import is_in_single

_multi_margin, _multilabel_margin = F.multi_margin_loss, F.multilabel_margin_loss
_multilabel_soft_margin = F.multilabel_soft_margin_loss
_NARROW = (torch.float16, torch.bfloat16)
_INDICES = (torch.int32, torch.uint8)


def multi_margin_loss(input, target, p, margin, weight, size_average, reduce, reduction):
    reduction = reduction_of(size_average, reduce, reduction)
    if code_of(reduction) is None:
        return _multi_margin(input, target, p, margin, weight, reduction=reduction)
    each = _multi_margin(widened(input), indices(target), p, margin, widened(weight), reduction="none")
    return reduced(each, input, reduction)


def multilabel_margin_loss(input, target, size_average, reduce, reduction):
    reduction = reduction_of(size_average, reduce, reduction)
    if code_of(reduction) is None:
        return _multilabel_margin(input, target, reduction=reduction)
    return reduced(_multilabel_margin(widened(input), indices(target), reduction="none"), input, reduction)


def multilabel_soft_margin_loss(input, target, weight, size_average, reduce, reduction):
    """A mean over the classes and then over the rows is one over all elements."""
    if not are_binary(input, target, weight) or (size_average is None and reduce is None and
                                                 code_of(reduction) is None):
        return _multilabel_soft_margin(input, target, weight, size_average, reduce, reduction)
    reduction = reduction_of(size_average, reduce, reduction)
    target = target if target.is_floating_point() else target.to(input.dtype)
    value = functional.binary_cross_entropy_with_logits(input, target, weight, reduction=reduction)
    if reduction == "mean":
        return value
    return value.mean(-1) if reduction == "none" else value / input.shape[-1]


def are_binary(input, target, weight):
    """Whether it is a binary cross-entropy as the library has it; PyTorch broadcasts and promotes more."""
    if not are_plain((input, target, weight)) or input.dtype not in FLOATS or target.is_complex() or \
            input.is_nested or input.dim() == 0 or target.shape != input.shape or \
            (target.is_floating_point() and target.dtype not in FLOATS):
        return False
    dtype = torch.promote_types(input.dtype, target.dtype) if target.is_floating_point() else input.dtype
    return weight is None or (weight.dtype == dtype and broadcasts_to(weight.shape, input.shape))


def reduction_of(size_average, reduce, reduction):
    return reduction if size_average is None and reduce is None else _reduction.legacy_get_string(size_average, reduce)


def widened(tensor):
    return tensor.float() if getattr(tensor, "dtype", None) in _NARROW else tensor


def indices(target):
    return target.long() if getattr(target, "dtype", None) in _INDICES else target


def reduced(each, input, reduction):
    """Of the input's type, unless autocast wants float32."""
    assert reduction in CODES
    value = each if reduction == "none" else each.sum() if reduction == "sum" else each.mean()
    return value if is_in_single(input.device.type) else value.to(input.dtype)
