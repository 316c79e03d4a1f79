"""Losses of regions, such as those of a segmentation: how little a prediction and a target overlap."""

import inspect

from . import functional
from .functional import _enabled, _overridden, _override

__all__ = ["dice_loss", "jaccard_loss", "tversky_loss"]

_ARGUMENTS = """
    input: logits or probabilities, a PyTorch tensor or a NumPy array, (N, ...); of classes (N, C, ...)
    target: of mode 'binary' and 'multilabel' 0 or 1, or between, of the size of input; of 'multiclass' class indices,
        (N, ...)
    mode: 'binary': one region; 'multilabel': one for each class; 'multiclass': the same, of which each element has one,
        by a softmax and a one-hot copy before the pass; 'binary' if not given
    from_logits: whether input is logits, of whose sigmoid or softmax the loss is; True if not given
    per: what a region is: 'class': each class over the whole batch; 'sample': each sample, all classes together;
        'sample_class': each class of each sample; 'batch': everything; 'class' if not given
{more}    smooth: what is added to both sides of the quotient; 0.0 if not given
    eps: what the divisor is at least; 1e-07 if not given
    ignore_index: elements whose target is this take no part, by copies before the pass; None: all do
    skip_absent: whether regions whose target is 0 everywhere have the loss 0, and count in a mean all the same; it
        costs one more read of the target; False if not given
    reduction: 'mean', 'sum', 'none' or 'batchmean', the sum over the first extent of the regions; 'mean' if not given
    weight: multiplies each region's loss; broadcasts to the regions; a mean is over the sum of the weights
    mask: which regions take part, of bool or uint8; broadcasts to the regions
    divisor: what a mean is divided by instead: a number, or a tensor of one element on the device
    """


def dice_loss(input, target, *, mode="binary", from_logits=True, per="class", smooth=0.0, eps=1e-7, ignore_index=None,
              skip_absent=False, reduction="mean", weight=None, mask=None, divisor=None):
    """1 less the Dice coefficient of regions: tversky_loss with alpha and beta of 0.5.

        o = 1/(1 + exp(-input)) if from_logits else input
        both = sum(o*target)
        value = 1 - (both + smooth)/maximum(sum(o)/2 + sum(target)/2 + smooth, eps)
    """
    if _overridden(input, target, weight, mask, divisor) and _enabled():
        return _override(dice_loss, input, target, mode, from_logits, per, smooth, eps, ignore_index, skip_absent,
                         reduction, weight, mask, divisor)
    return _side(input, target).loss("dice_loss", input, target, mode, from_logits, per, (0.5, 0.5, smooth, eps),
                                     ignore_index, skip_absent, reduction, weight, mask, divisor)


def jaccard_loss(input, target, *, mode="binary", from_logits=True, per="class", smooth=0.0, eps=1e-7,
                 ignore_index=None, skip_absent=False, reduction="mean", weight=None, mask=None, divisor=None):
    """1 less the Jaccard index of regions, the intersection over the union: tversky_loss with alpha and beta of 1.

        o = 1/(1 + exp(-input)) if from_logits else input
        both = sum(o*target)
        value = 1 - (both + smooth)/maximum(sum(o) + sum(target) - both + smooth, eps)
    """
    if _overridden(input, target, weight, mask, divisor) and _enabled():
        return _override(jaccard_loss, input, target, mode, from_logits, per, smooth, eps, ignore_index, skip_absent,
                         reduction, weight, mask, divisor)
    return _side(input, target).loss("jaccard_loss", input, target, mode, from_logits, per, (1.0, 1.0, smooth, eps),
                                     ignore_index, skip_absent, reduction, weight, mask, divisor)


def tversky_loss(input, target, *, mode="binary", from_logits=True, per="class", alpha=0.5, beta=0.5, smooth=0.0,
                 eps=1e-7, ignore_index=None, skip_absent=False, reduction="mean", weight=None, mask=None,
                 divisor=None):
    """1 less the Tversky index of regions: what is in both, over that, alpha times what is in the prediction alone and
    beta times what is in the target alone.

        o = 1/(1 + exp(-input)) if from_logits else input
        both = sum(o*target)
        all = both + alpha*(sum(o) - both) + beta*(sum(target) - both)
        value = 1 - (both + smooth)/maximum(all + smooth, eps)
    """
    if _overridden(input, target, weight, mask, divisor) and _enabled():
        return _override(tversky_loss, input, target, mode, from_logits, per, alpha, beta, smooth, eps, ignore_index,
                         skip_absent, reduction, weight, mask, divisor)
    return _side(input, target).loss("tversky_loss", input, target, mode, from_logits, per, (alpha, beta, smooth, eps),
                                     ignore_index, skip_absent, reduction, weight, mask, divisor)


# -------------------------------------------------------------------- who computes --

_regions = None  # the module that computes for PyTorch's tensors, once there were some


def _side(input, target):
    """The module that computes for these operands."""
    global _regions
    if _regions is not None and isinstance(input, _regions.Tensor):
        return _regions
    if functional.is_for_torch(input, target):
        from . import _regions

        return _regions
    from . import _numpy_regions

    return _numpy_regions


_OF_TVERSKY = ("    alpha: the weight of what is in the prediction alone; 0.5 if not given\n"
               "    beta: the weight of what is in the target alone; 0.5 if not given\n")

for _name in __all__:
    _more = _OF_TVERSKY if _name == "tversky_loss" else ""
    _text = globals()[_name].__doc__.rstrip() + "\n" + _ARGUMENTS.format(more=_more)
    globals()[_name].__doc__ = inspect.cleandoc(_text)
