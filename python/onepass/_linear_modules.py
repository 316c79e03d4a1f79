"""The losses of linear.py as modules."""

import math

import torch
from torch.nn.modules.loss import _Loss, _WeightedLoss

from . import linear
from ._documentation import module_documentation

__all__ = ["LinearCrossEntropyLoss", "NTXentLoss", "SupConLoss"]


class LinearCrossEntropyLoss(_WeightedLoss):
    """torch.nn.LinearCrossEntropyLoss by onepass.linear_cross_entropy: a linear layer, which has the parameters, and
    the cross-entropy of its outputs. num_items and num_ignored may be given with the operands."""

    __constants__ = ["num_classes", "out_features", "reduction", "ignore_index", "label_smoothing"]

    def __init__(self, in_features, num_classes, *, out_features=(), bias=False, device=None, dtype=None,
                 reduction="mean", weight=None, ignore_index=None, label_smoothing=0.0, options=None, z_loss=0.0,
                 softcap=None, temperature=1.0, loss_dtype=None, chunk_rows=None):
        if weight is not None and weight.shape != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(weight, None, None, reduction)
        self.num_classes, self.out_features, self.ignore_index = num_classes, out_features, ignore_index
        self.label_smoothing, self.options = label_smoothing, options
        self.z_loss, self.softcap, self.temperature = z_loss, softcap, temperature
        self.loss_dtype, self.chunk_rows = loss_dtype, chunk_rows
        self.linear = torch.nn.Linear(in_features, math.prod(out_features, start=num_classes), bias=bias, device=device,
                                      dtype=dtype)

    def forward(self, input, target, *, num_items=None, num_ignored=None):
        classes = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return linear.linear_cross_entropy(
            input, self.linear.weight.reshape(*classes, self.linear.in_features), target,
            linear_bias=None if bias is None else bias.reshape(classes), weight=self.weight, reduction=self.reduction,
            ignore_index=self.ignore_index, label_smoothing=self.label_smoothing, options=self.options,
            z_loss=self.z_loss, softcap=self.softcap, temperature=self.temperature, num_items=num_items,
            num_ignored=num_ignored, dtype=self.loss_dtype, chunk_rows=self.chunk_rows)

    def extra_repr(self):
        return (f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
                f"out_features={self.out_features}, bias={self.linear.bias is not None}, reduction={self.reduction}, "
                f"ignore_index={self.ignore_index}, label_smoothing={self.label_smoothing}, options={self.options}")


class _ContrastiveLoss(_Loss):
    def __init__(self, temperature, reduction, normalize):
        super().__init__(None, None, reduction)
        self.temperature, self.normalize = temperature, normalize

    def extra_repr(self):
        return f"temperature={self.temperature}, reduction={self.reduction!r}, normalize={self.normalize}"


class NTXentLoss(_ContrastiveLoss):
    """onepass.nt_xent_loss of two views."""

    def __init__(self, temperature=0.5, reduction="mean", normalize=True):
        super().__init__(temperature, reduction, normalize)

    def forward(self, input1, input2):
        return linear.nt_xent_loss(input1, input2, temperature=self.temperature, reduction=self.reduction,
                                   normalize=self.normalize)


class SupConLoss(_ContrastiveLoss):
    """onepass.supcon_loss of embeddings and their labels."""

    def __init__(self, temperature=0.1, reduction="mean", normalize=True):
        super().__init__(temperature, reduction, normalize)

    def forward(self, input, labels):
        return linear.supcon_loss(input, labels, temperature=self.temperature, reduction=self.reduction,
                                  normalize=self.normalize)


# -------------------------------------------------------------------- what help() says --

_ARGUMENTS = {
    "in_features": "features of a hidden state",
    "num_classes": "how many classes there are",
    "out_features": "positions for each of which there are these classes; () if not given",
    "bias": "whether the layer has one; False if not given",
    "device": "where the layer's parameters are",
    "dtype": "their type",
    "loss_dtype": "the type of the loss, whatever that of the input",
}


for _name in __all__:
    globals()[_name].__doc__ = module_documentation(globals()[_name], [linear], _ARGUMENTS)
