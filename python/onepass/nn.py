"""The losses as modules, as torch.nn has them; those that it lacks are made out of the library's catalogue."""

import re

from torch import Tensor
from torch.nn.modules.loss import _Loss, _WeightedLoss

from . import _linear_modules, _vector_modules, functional
from ._catalog import CATALOG, GENERATED, ROW_CATALOG, ROWS_GENERATED, check_parameters, losses_of
from ._contract import check_reduction
from ._documentation import documentation_of
from ._generated import MODULE, ROW_MODULE, made, module_name
from ._linear_modules import *  # noqa: F403
from ._row_request import parameters_of as check_row_parameters
from ._torch_checks import checked_parameters
from ._vector_modules import *  # noqa: F403


class _ParametricLoss(_Loss):
    """A loss that PyTorch has no module of: its parameters and its reduction are checked when it is
    made, and shown."""

    def __init__(self, name, reduction, **parameters):
        check_parameters(name, checked_parameters(name, parameters.values()))
        check_reduction(name, reduction)
        super().__init__(None, None, reduction)
        self._names = list(parameters)
        for key, value in parameters.items():
            setattr(self, key, value)

    def extra_repr(self):
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in (*self._names, "reduction"))


class MSELoss(_Loss):
    """torch.nn.MSELoss by onepass.mse_loss. A weight and a mask may be given with the operands."""

    def __init__(self, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)

    def forward(self, input, target, weight=None, *, mask=None, broadcast_weight=False):
        return functional.mse_loss(input, target, reduction=self.reduction, weight=weight, mask=mask,
                                   broadcast_weight=broadcast_weight)


class L1Loss(_Loss):
    """torch.nn.L1Loss by onepass.l1_loss. A weight and a mask may be given with the operands."""

    def __init__(self, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)

    def forward(self, input, target, weight=None, *, mask=None, broadcast_weight=False):
        return functional.l1_loss(input, target, reduction=self.reduction, weight=weight, mask=mask,
                                  broadcast_weight=broadcast_weight)


class SmoothL1Loss(_Loss):
    """torch.nn.SmoothL1Loss by onepass.smooth_l1_loss. A weight and a mask may be given with the operands."""

    def __init__(self, size_average=None, reduce=None, reduction="mean", beta=1.0):
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input, target, weight=None, *, mask=None):
        return functional.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta, weight=weight,
                                         mask=mask)


class HuberLoss(_Loss):
    """torch.nn.HuberLoss by onepass.huber_loss. A weight and a mask may be given with the operands."""

    def __init__(self, reduction="mean", delta=1.0):
        if not isinstance(delta, (float, int)):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input, target, weight=None, *, mask=None, broadcast_weight=False):
        return functional.huber_loss(input, target, reduction=self.reduction, delta=self.delta, weight=weight,
                                     mask=mask, broadcast_weight=broadcast_weight)


class HingeLoss(_ParametricLoss):
    """onepass.hinge_loss for targets of -1 and 1. A weight and a mask may be given with the operands."""

    def __init__(self, margin=1.0, reduction="mean"):
        super().__init__("hinge", reduction, margin=margin)

    def forward(self, input, target, weight=None, *, mask=None):
        return functional.hinge_loss(input, target, margin=self.margin, reduction=self.reduction, weight=weight,
                                     mask=mask)


class SoftMarginLoss(_Loss):
    """torch.nn.SoftMarginLoss by onepass.soft_margin_loss. A weight and a mask may be given with the operands."""

    def __init__(self, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)

    def forward(self, input, target, weight=None, *, mask=None):
        return functional.soft_margin_loss(input, target, reduction=self.reduction, weight=weight, mask=mask)


class HingeEmbeddingLoss(_Loss):
    """torch.nn.HingeEmbeddingLoss by onepass.hinge_embedding_loss. A weight and a mask may be given with the operands.
    """

    def __init__(self, margin=1.0, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input, target, weight=None, *, mask=None):
        return functional.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction,
                                               weight=weight, mask=mask)


class MarginRankingLoss(_Loss):
    """torch.nn.MarginRankingLoss by onepass.margin_ranking_loss. A weight and a mask may be given with the operands."""

    def __init__(self, margin=0.0, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1, input2, target, weight=None, *, mask=None):
        return functional.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction,
                                              weight=weight, mask=mask)


class BCELoss(_WeightedLoss):
    """torch.nn.BCELoss by onepass.binary_cross_entropy. weight is a buffer; a mask may be given with the operands."""

    def __init__(self, weight=None, size_average=None, reduce=None, reduction="mean"):
        super().__init__(weight, size_average, reduce, reduction)

    def forward(self, input, target, *, mask=None):
        return functional.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction, mask=mask)


class BCEWithLogitsLoss(_Loss):
    """torch.nn.BCEWithLogitsLoss by onepass.binary_cross_entropy_with_logits. weight and pos_weight are buffers; a mask
    may be given with the operands."""

    def __init__(self, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input, target, *, mask=None):
        return functional.binary_cross_entropy_with_logits(input, target, self.weight, pos_weight=self.pos_weight,
                                                           reduction=self.reduction, mask=mask)


class SigmoidFocalLoss(_ParametricLoss):
    """onepass.sigmoid_focal_loss, which is torchvision.ops.sigmoid_focal_loss. A weight and a mask may be given with
    the operands."""

    def __init__(self, alpha=0.25, gamma=2, reduction="none"):
        super().__init__("focal", reduction, alpha=alpha, gamma=gamma)

    def forward(self, inputs, targets, weight=None, *, mask=None):
        return functional.sigmoid_focal_loss(inputs, targets, alpha=self.alpha, gamma=self.gamma,
                                             reduction=self.reduction, weight=weight, mask=mask)


class PoissonNLLLoss(_Loss):
    """torch.nn.PoissonNLLLoss by onepass.poisson_nll_loss. A weight and a mask may be given with the operands."""

    def __init__(self, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def forward(self, log_input, target, weight=None, *, mask=None):
        return functional.poisson_nll_loss(log_input, target, log_input=self.log_input, full=self.full, eps=self.eps,
                                           reduction=self.reduction, weight=weight, mask=mask)


class GaussianNLLLoss(_Loss):
    """torch.nn.GaussianNLLLoss by onepass.gaussian_nll_loss. A weight and a mask may be given with the operands."""

    def __init__(self, *, full=False, eps=1e-6, reduction="mean"):
        super().__init__(None, None, reduction)
        self.full, self.eps = full, eps

    def forward(self, input, target, var, weight=None, *, mask=None):
        return functional.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction,
                                            weight=weight, mask=mask)


class KLDivLoss(_Loss):
    """torch.nn.KLDivLoss by onepass.kl_div. A weight and a mask may be given with the operands."""

    def __init__(self, size_average=None, reduce=None, reduction="mean", log_target=False):
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input, target, weight=None, *, mask=None):
        return functional.kl_div(input, target, reduction=self.reduction, log_target=self.log_target, weight=weight,
                                 mask=mask)


class CrossEntropyLoss(_WeightedLoss):
    """torch.nn.CrossEntropyLoss by onepass.cross_entropy. weight is a buffer; a weight for each row, a mask and a
    divisor may be given with the operands."""

    __constants__ = ["ignore_index", "reduction", "label_smoothing"]

    def __init__(self, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean",
                 label_smoothing=0.0, *, z_loss=0.0, softcap=None, temperature=1.0, dtype=None, inplace=False,
                 return_lse=False, return_z_loss=False, return_accuracy=False):
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing
        self.z_loss, self.softcap, self.temperature = z_loss, softcap, temperature
        self.dtype, self.inplace = dtype, inplace
        self.return_lse, self.return_z_loss, self.return_accuracy = return_lse, return_z_loss, return_accuracy

    def forward(self, input, target, *, row_weight=None, mask=None, divisor=None):
        return functional.cross_entropy(input, target, self.weight, ignore_index=self.ignore_index,
                                        reduction=self.reduction, label_smoothing=self.label_smoothing,
                                        z_loss=self.z_loss, softcap=self.softcap, temperature=self.temperature,
                                        row_weight=row_weight, mask=mask, divisor=divisor, dtype=self.dtype,
                                        inplace=self.inplace, return_lse=self.return_lse,
                                        return_z_loss=self.return_z_loss, return_accuracy=self.return_accuracy)


class NLLLoss(_WeightedLoss):
    """torch.nn.NLLLoss by onepass.nll_loss. weight is a buffer; a weight for each row, a mask and a divisor may be
    given with the operands."""

    __constants__ = ["ignore_index", "reduction"]

    def __init__(self, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input, target, *, row_weight=None, mask=None, divisor=None):
        return functional.nll_loss(input, target, self.weight, ignore_index=self.ignore_index,
                                   reduction=self.reduction, row_weight=row_weight, mask=mask, divisor=divisor)


class SoftmaxFocalLoss(_WeightedLoss):
    """onepass.softmax_focal_loss. weight, and an alpha for each class, are buffers; a weight for each row, a mask and a
    divisor may be given with the operands."""

    def __init__(self, weight=None, *, alpha=1.0, gamma=2.0, ignore_index=-100, softcap=None, temperature=1.0,
                 reduction="mean"):
        of_classes = isinstance(alpha, Tensor) and alpha.dim() > 0
        check_row_parameters("softmax_focal", alpha=None if of_classes else alpha, gamma=gamma,
                             ignore_index=ignore_index, softcap=softcap, temperature=temperature)
        super().__init__(weight, None, None, reduction)
        if of_classes:
            self.register_buffer("alpha", alpha)
        else:
            self.alpha = alpha
        self.gamma, self.ignore_index, self.softcap, self.temperature = gamma, ignore_index, softcap, temperature

    def forward(self, input, target, *, row_weight=None, mask=None, divisor=None):
        return functional.softmax_focal_loss(input, target, self.weight, alpha=self.alpha, gamma=self.gamma,
                                             ignore_index=self.ignore_index, softcap=self.softcap,
                                             temperature=self.temperature, reduction=self.reduction,
                                             row_weight=row_weight, mask=mask, divisor=divisor)


# ----------------------------------------------------- what the catalogue offers --

globals().update({module_name(name): made(MODULE, CATALOG[name], globals()) for name in GENERATED})
globals().update({module_name(name): made(ROW_MODULE, ROW_CATALOG[name], globals()) for name in ROWS_GENERATED})

__all__ = ["BCELoss", "BCEWithLogitsLoss", "CrossEntropyLoss", "GaussianNLLLoss", "HingeEmbeddingLoss", "HingeLoss",
           "HuberLoss", "KLDivLoss", "L1Loss", "MSELoss", "MarginRankingLoss", "NLLLoss", "PoissonNLLLoss",
           "SigmoidFocalLoss", "SmoothL1Loss", "SoftMarginLoss", "SoftmaxFocalLoss", *map(module_name, GENERATED + ROWS_GENERATED)]

for _name in __all__:
    _module = globals()[_name]
    _function = re.search(r"onepass\.(\w+)", _module.__doc__)[1]  # which its first sentence names
    _module.__doc__ = documentation_of(_module.__doc__, losses_of(_function), getattr(functional, _function), _module)

__all__ += _linear_modules.__all__ + _vector_modules.__all__  # which say of themselves what they are
