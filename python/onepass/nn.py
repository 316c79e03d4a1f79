"""The losses as modules, as torch.nn has them."""

from torch.nn.modules.loss import _Loss

from . import functional

__all__ = ["HingeLoss", "MSELoss", "SmoothL1Loss"]


class MSELoss(_Loss):
    """torch.nn.MSELoss by onepass.mse_loss. A weight for each element may be given with the operands."""

    def __init__(self, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)

    def forward(self, input, target, weight=None):
        return functional.mse_loss(input, target, reduction=self.reduction, weight=weight)


class SmoothL1Loss(_Loss):
    """torch.nn.SmoothL1Loss by onepass.smooth_l1_loss."""

    def __init__(self, size_average=None, reduce=None, reduction="mean", beta=1.0):
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input, target):
        return functional.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HingeLoss(_Loss):
    """onepass.hinge_loss for targets of -1 and 1. A weight for each element may be given with the operands."""

    def __init__(self, margin=1.0, reduction="mean"):
        super().__init__(None, None, reduction)
        self.margin = margin

    def forward(self, input, target, weight=None):
        return functional.hinge_loss(input, target, margin=self.margin, reduction=self.reduction, weight=weight)
