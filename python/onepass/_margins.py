"""The margins of margins.py, of PyTorch's tensors. PyTorch's own functions, taken before anybody can have patched them,
answer for what it refuses."""

import torch
import torch.nn.functional as F
from torch.nn import _reduction

from . import _rows, _vectors, functional
from ._contract import CODES, broadcasts_to, code_of
from ._row_request import FLOATS, LABELS, Request, are_plain
from ._torch_checks import TYPES
from ._torch_state import is_in_single
from ._vector_request import Tensors, plain_parameters

Tensor = torch.Tensor
_multi_margin, _multilabel_margin = F.multi_margin_loss, F.multilabel_margin_loss
_multilabel_soft_margin = F.multilabel_soft_margin_loss
_NARROW = (torch.float16, torch.bfloat16)
_INDICES = (torch.int32, torch.uint8)


def multi_margin_loss(input, target, p, margin, weight, size_average, reduce, reduction, row_weight, mask, divisor):
    if weight is None and row_weight is None and mask is None and divisor is None and size_average is None and \
            reduce is None and _vectors.are_finite(p, margin) and p in (1, 2):
        value = of_rows("multi_margin", (p, margin), input, target, 1, reduction)
        if value is not None:
            return value
    reduction = reduction_of(size_average, reduce, reduction)
    parameters = plain_parameters("multi_margin", (p, margin)) if p in (1, 2) else None
    if code_of(reduction) is None:
        return _multi_margin(input, target, p, margin, weight, reduction=reduction)
    if parameters is None or not are_classes(input, target, weight):
        each = _multi_margin(widened(input), indices(target), p, margin, widened(weight), reduction="none")
        check_further(row_weight=row_weight, mask=mask, divisor=divisor)
        return reduced(each, input, reduction)
    number, tensor = _rows.checked_divisor(divisor, reduction, input)
    shape = target.shape  # which is (1), too, for one row
    target = target.reshape(input.shape[:-1])
    _vectors.check_kinds(input=input, target=target, weight=row_weight, mask=mask)
    tensors = Tensors(input, target, weight, row_weight, mask, tensor)
    request = Request("multi_margin", CODES[reduction], parameters, -1, None, number)
    try:
        value = _vectors.dispatch(request, tensors)
        return value.reshape(shape) if reduction == "none" else value
    except IndexError:  # of which PyTorch has its own to say, unless it does not know all that is given
        if row_weight is None and mask is None:
            _multi_margin(widened(input), indices(target), p, margin, widened(weight), reduction=reduction)
        raise


def of_rows(name, parameters, input, target, dimensions, reduction):
    """What most calls are: scores of rows, and a target of so many dimensions; None if that is not for us, or not in
    order."""
    code = code_of(reduction)
    if code is None or type(input) not in TYPES or type(target) not in TYPES or input.dim() != 2 or \
            target.shape != input.shape[:dimensions] or input.shape[1] == 0 or target.dtype not in LABELS:
        return None
    try:
        return _vectors.compute_plain(name, code, parameters, input, target)
    except IndexError:  # of which more is to be said
        return None


def are_classes(input, target, weight):
    """Whether they are scores and classes as the library has them; PyTorch says what is wrong with others."""
    return are_scores(input, target) and \
        (target.shape == input.shape[:-1] or (input.dim() == 1 and target.shape == (1,))) and \
        (weight is None or (isinstance(weight, torch.Tensor) and weight.dtype == input.dtype and
                            weight.shape == input.shape[-1:]))


def are_scores(input, target):
    return isinstance(input, torch.Tensor) and isinstance(target, torch.Tensor) and input.dtype in FLOATS and \
        not input.is_nested and input.dim() in (1, 2) and input.shape[-1] > 0 and target.dtype in LABELS and \
        target.device == input.device


def check_further(**given):
    """What PyTorch does not have must not be lost where it computes."""
    for name, value in given.items():
        if value is not None:
            raise TypeError(f"{name} is given, and PyTorch would compute this without it; expected numbers for parameters, "
                            "and tensors that belong together")


def multilabel_margin_loss(input, target, size_average, reduce, reduction, weight, mask, divisor):
    if weight is None and mask is None and divisor is None and size_average is None and reduce is None:
        value = of_rows("multilabel_margin", (), input, target, 2, reduction)
        if value is not None:
            return value
    reduction = reduction_of(size_average, reduce, reduction)
    if code_of(reduction) is None:
        return _multilabel_margin(input, target, reduction=reduction)
    if not are_lists(input, target):
        each = _multilabel_margin(widened(input), indices(target), reduction="none")
        check_further(weight=weight, mask=mask, divisor=divisor)
        return reduced(each, input, reduction)
    number, tensor = _rows.checked_divisor(divisor, reduction, input)
    _vectors.check_kinds(input=input, target=target, weight=weight, mask=mask)
    request = Request("multilabel_margin", CODES[reduction], (), -1, None, number)
    try:
        return _vectors.dispatch(request, Tensors(input, target, None, weight, mask, tensor))
    except IndexError:
        if weight is None and mask is None:
            _multilabel_margin(widened(input), indices(target), reduction=reduction)
        raise


def are_lists(input, target):
    """Whether they are scores and lists of labels as the library has them."""
    return are_scores(input, target) and target.shape == input.shape


def multilabel_soft_margin_loss(input, target, weight, size_average, reduce, reduction):
    """A mean over the classes and then over the rows is one over all elements. The sum of all elements may overflow in
    f16, where that of the rows' means does not."""
    if not are_binary(input, target, weight) or (size_average is None and reduce is None and
                                                 code_of(reduction) is None):
        return _multilabel_soft_margin(input, target, weight, size_average, reduce, reduction)
    reduction = reduction_of(size_average, reduce, reduction)
    target = target if target.is_floating_point() else target.to(input.dtype)
    is_narrow_sum = reduction == "sum" and torch.float16 in (input.dtype, target.dtype)
    value = functional.binary_cross_entropy_with_logits(input, target, weight,
                                                        reduction="mean" if is_narrow_sum else reduction)
    if reduction == "mean":
        return value
    if is_narrow_sum:
        return value * (input.numel() // input.shape[-1])
    return value.mean(-1) if reduction == "none" else value / input.shape[-1]


def are_binary(input, target, weight):
    """Whether it is a binary cross-entropy as the library has it; PyTorch broadcasts and promotes more."""
    if not are_plain((input, target, weight)) or input.dtype not in FLOATS or torch.is_complex(target) or \
            input.is_nested or input.dim() == 0 or input.numel() == 0 or target.shape != input.shape or \
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
