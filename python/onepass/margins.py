"""Margins between the scores of classes, as PyTorch has them. multi_margin_loss and multilabel_margin_loss are vector
losses of the library's, multilabel_soft_margin_loss its binary cross-entropy.
"""

import inspect
import sys

from .functional import _enabled, _overridden, _override, speaks_torch

__all__ = ["multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss"]


def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean", *,
                      row_weight=None, mask=None, divisor=None):
    """How far the other classes' scores are above that of the target less a margin, as
    torch.nn.functional.multi_margin_loss has it.

        others = arange(len(input)) != target
        value = weight[target]*sum(maximum(0, margin - input[target] + input)**p, where=others)/len(input)

    input: scores of classes, (N, C) or (C), a PyTorch tensor or a NumPy array
    target: class indices (int64, int32 or uint8), (N) or (), of the same kind
    p: 1 or 2, the power; 1 if not given
    margin: by how much the target's score should be above all others; 1.0 if not given
    weight: a weight for each class; a mean is over the number of rows all the same
    size_average: deprecated by PyTorch: False for reduction='sum'
    reduce: deprecated by PyTorch: False for reduction='none'
    reduction: 'mean', 'sum' or 'none'; 'mean' if not given
    row_weight: multiplies each row's loss; broadcasts to the rows; a mean is over the sum of these weights
    mask: which rows take part, of bool or uint8; broadcasts to the rows
    divisor: what a mean is divided by instead: a number, or a tensor of one element on the device
    """
    if _overridden(input, target, weight, row_weight, mask, divisor) and _enabled():
        return _override(multi_margin_loss, input, target, p, margin, weight, size_average, reduce, reduction,
                         row_weight, mask, divisor)
    return _side(input, target).multi_margin_loss(input, target, p, margin, weight, size_average, reduce, reduction,
                                                  row_weight, mask, divisor)


def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean", *, weight=None, mask=None,
                           divisor=None):
    """How far the scores of classes that are not among the targets are above those of the targets less 1, as
    torch.nn.functional.multilabel_margin_loss has it.

        targets = target[:argmax(append(target, -1) < 0)]
        others = [i for i in range(len(input)) if i not in targets]
        value = sum([maximum(0, 1 - input[j] + input[i]) for j in targets for i in others])/len(input)

    input: scores of classes, (N, C) or (C), a PyTorch tensor or a NumPy array
    target: class indices (int64, int32 or uint8), of the size of input; those before the first -1 count
    size_average: deprecated by PyTorch: False for reduction='sum'
    reduce: deprecated by PyTorch: False for reduction='none'
    reduction: 'mean', 'sum' or 'none'; 'mean' if not given
    weight: multiplies each row's loss; broadcasts to the rows; a mean is over the sum of these weights
    mask: which rows take part, of bool or uint8; broadcasts to the rows
    divisor: what a mean is divided by instead: a number, or a tensor of one element on the device
    """
    if _overridden(input, target, weight, mask, divisor) and _enabled():
        return _override(multilabel_margin_loss, input, target, size_average, reduce, reduction, weight, mask, divisor)
    return _side(input, target).multilabel_margin_loss(input, target, size_average, reduce, reduction, weight, mask,
                                                       divisor)


def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """The binary cross-entropy of logits, averaged over the classes, as torch.nn.functional.multilabel_soft_margin_loss
    has it: a mean or a sum is one pass, that of onepass.binary_cross_entropy_with_logits.

        each = target*log1p(exp(-input)) + (1 - target)*log1p(exp(input))
        value = sum(weight*each)/len(input)

    input: logits, the classes in the last dimension, a PyTorch tensor or a NumPy array
    target: what the sigmoid of the logits should be, from 0 to 1, of the same size
    weight: a weight for each class, or whatever broadcasts to the size of input
    size_average: deprecated by PyTorch: False for reduction='sum'
    reduce: deprecated by PyTorch: False for reduction='none'
    reduction: 'mean', 'sum' or 'none'; 'mean' if not given
    """
    if _overridden(input, target, weight) and _enabled():
        return _override(multilabel_soft_margin_loss, input, target, weight, size_average, reduce, reduction)
    return _side(input, target).multilabel_soft_margin_loss(input, target, weight, size_average, reduce, reduction)


# -------------------------------------------------------------------- who computes --

_margins = None  # the module that computes for PyTorch's tensors, once there were some


def _side(input, target):
    """The module that computes for these operands."""
    global _margins
    if _margins is not None and isinstance(input, _margins.Tensor):
        return _margins
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(input, numpy.ndarray):
        if not isinstance(target, numpy.ndarray):
            raise TypeError(f"target is {type(target).__name__}; expected a NumPy array, as input is")
        from . import _numpy_margins

        return _numpy_margins
    if not speaks_torch(input):
        raise TypeError(f"input is {type(input).__name__}; expected a PyTorch tensor")
    from . import _margins

    return _margins


for _name in __all__:
    globals()[_name].__doc__ = inspect.cleandoc(globals()[_name].__doc__)
