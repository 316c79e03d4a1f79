"""The losses of vectors.py, margins.py, regions.py and distributions.py as modules."""

from torch.nn import Module
from torch.nn.modules.loss import _Loss, _WeightedLoss

from . import distributions, margins, regions, vectors
from ._documentation import module_documentation

__all__ = ["CosineEmbeddingLoss", "CosineSimilarity", "DiceLoss", "JSDivWithLogitsLoss", "JaccardLoss",
           "KLDivWithLogitsLoss", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss",
           "PairwiseDistance", "TVDistanceWithLogitsLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss",
           "TverskyLoss"]


class CosineSimilarity(Module):
    """torch.nn.CosineSimilarity by onepass.cosine_similarity. A weight and a mask may be given with the operands."""

    __constants__ = ["dim", "eps"]

    def __init__(self, dim=1, eps=1e-8):
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1, x2, weight=None, *, mask=None):
        return vectors.cosine_similarity(x1, x2, self.dim, self.eps, weight=weight, mask=mask)


class PairwiseDistance(Module):
    """torch.nn.PairwiseDistance by onepass.pairwise_distance. A weight and a mask may be given with the operands."""

    __constants__ = ["norm", "eps", "keepdim"]

    def __init__(self, p=2.0, eps=1e-6, keepdim=False):
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1, x2, weight=None, *, mask=None):
        return vectors.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim, weight=weight, mask=mask)


class CosineEmbeddingLoss(_Loss):
    """torch.nn.CosineEmbeddingLoss by onepass.cosine_embedding_loss. A weight, a mask and a divisor may be given with
    the operands."""

    __constants__ = ["margin", "reduction"]

    def __init__(self, margin=0.0, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1, input2, target, weight=None, *, mask=None, divisor=None):
        return vectors.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction,
                                             weight=weight, mask=mask, divisor=divisor)


class TripletMarginLoss(_Loss):
    """torch.nn.TripletMarginLoss by onepass.triplet_margin_loss. A weight, a mask and a divisor may be given with the
    operands."""

    __constants__ = ["margin", "p", "eps", "swap", "reduction"]

    def __init__(self, margin=1.0, p=2.0, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead")
        self.margin, self.p, self.eps, self.swap = margin, p, eps, swap

    def forward(self, anchor, positive, negative, weight=None, *, mask=None, divisor=None):
        return vectors.triplet_margin_loss(anchor, positive, negative, margin=self.margin, p=self.p, eps=self.eps,
                                           swap=self.swap, reduction=self.reduction, weight=weight, mask=mask,
                                           divisor=divisor)


class TripletMarginWithDistanceLoss(_Loss):
    """torch.nn.TripletMarginWithDistanceLoss by onepass.triplet_margin_with_distance_loss."""

    __constants__ = ["margin", "swap", "reduction"]

    def __init__(self, *, distance_function=None, margin=1.0, swap=False, reduction="mean"):
        super().__init__(None, None, reduction)
        if margin <= 0:
            raise ValueError(
                f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin} instead")
        self.distance_function = PairwiseDistance() if distance_function is None else distance_function
        self.margin, self.swap = margin, swap

    def forward(self, anchor, positive, negative):
        distance = self.distance_function
        if type(distance) is PairwiseDistance and \
                (distance.norm, distance.eps, distance.keepdim) == (2.0, 1e-6, False):
            distance = None  # the usual one, which the library computes with the loss
        return vectors.triplet_margin_with_distance_loss(anchor, positive, negative, distance_function=distance,
                                                         margin=self.margin, swap=self.swap, reduction=self.reduction)


class MultiMarginLoss(_WeightedLoss):
    """torch.nn.MultiMarginLoss by onepass.multi_margin_loss. weight is a buffer."""

    __constants__ = ["p", "margin", "reduction"]

    def __init__(self, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D instead")
        self.p, self.margin = p, margin

    def forward(self, input, target):
        return margins.multi_margin_loss(input, target, p=self.p, margin=self.margin, weight=self.weight,
                                         reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """torch.nn.MultiLabelMarginLoss by onepass.multilabel_margin_loss."""

    __constants__ = ["reduction"]

    def __init__(self, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)

    def forward(self, input, target):
        return margins.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """torch.nn.MultiLabelSoftMarginLoss by onepass.multilabel_soft_margin_loss. weight is a buffer."""

    __constants__ = ["reduction"]

    def __init__(self, weight=None, size_average=None, reduce=None, reduction="mean"):
        super().__init__(weight, size_average, reduce, reduction)

    def forward(self, input, target):
        return margins.multilabel_soft_margin_loss(input, target, weight=self.weight, reduction=self.reduction)


# ------------------------------------------------------- regions and distributions --


class _GivenLoss(_Loss):
    """Keeps what its function is given by keyword."""

    def __init__(self, given):
        super().__init__(None, None, given.pop("reduction"))
        self._given = list(given)
        for name, value in given.items():
            setattr(self, name, value)

    def given(self):
        return {name: getattr(self, name) for name in (*self._given, "reduction")}

    def extra_repr(self):
        return ", ".join(f"{name}={value!r}" for name, value in self.given().items())


class DiceLoss(_GivenLoss):
    """onepass.dice_loss of regions. A weight, a mask and a divisor may be given with the operands."""

    def __init__(self, mode="binary", *, from_logits=True, per="class", smooth=0.0, eps=1e-7, ignore_index=None,
                 skip_absent=False, reduction="mean"):
        super().__init__(dict(mode=mode, from_logits=from_logits, per=per, smooth=smooth, eps=eps,
                              ignore_index=ignore_index, skip_absent=skip_absent, reduction=reduction))

    def forward(self, input, target, weight=None, *, mask=None, divisor=None):
        return regions.dice_loss(input, target, weight=weight, mask=mask, divisor=divisor, **self.given())


class JaccardLoss(_GivenLoss):
    """onepass.jaccard_loss of regions. A weight, a mask and a divisor may be given with the operands."""

    def __init__(self, mode="binary", *, from_logits=True, per="class", smooth=0.0, eps=1e-7, ignore_index=None,
                 skip_absent=False, reduction="mean"):
        super().__init__(dict(mode=mode, from_logits=from_logits, per=per, smooth=smooth, eps=eps,
                              ignore_index=ignore_index, skip_absent=skip_absent, reduction=reduction))

    def forward(self, input, target, weight=None, *, mask=None, divisor=None):
        return regions.jaccard_loss(input, target, weight=weight, mask=mask, divisor=divisor, **self.given())


class TverskyLoss(_GivenLoss):
    """onepass.tversky_loss of regions. A weight, a mask and a divisor may be given with the operands."""

    def __init__(self, mode="binary", *, from_logits=True, per="class", alpha=0.5, beta=0.5, smooth=0.0, eps=1e-7,
                 ignore_index=None, skip_absent=False, reduction="mean"):
        super().__init__(dict(mode=mode, from_logits=from_logits, per=per, alpha=alpha, beta=beta, smooth=smooth,
                              eps=eps, ignore_index=ignore_index, skip_absent=skip_absent, reduction=reduction))

    def forward(self, input, target, weight=None, *, mask=None, divisor=None):
        return regions.tversky_loss(input, target, weight=weight, mask=mask, divisor=divisor, **self.given())


class KLDivWithLogitsLoss(_GivenLoss):
    """onepass.kl_div_with_logits of rows. A weight, a mask and a divisor may be given with the operands."""

    def __init__(self, temperature=1.0, reverse=False, reduction="mean", dim=-1):
        super().__init__(dict(temperature=temperature, reverse=reverse, reduction=reduction, dim=dim))

    def forward(self, input, target, weight=None, *, mask=None, divisor=None):
        return distributions.kl_div_with_logits(input, target, weight=weight, mask=mask, divisor=divisor,
                                                **self.given())


class JSDivWithLogitsLoss(_GivenLoss):
    """onepass.js_div_with_logits of rows. A weight, a mask and a divisor may be given with the operands."""

    def __init__(self, beta=0.5, temperature=1.0, reduction="mean", dim=-1):
        super().__init__(dict(beta=beta, temperature=temperature, reduction=reduction, dim=dim))

    def forward(self, input, target, weight=None, *, mask=None, divisor=None):
        return distributions.js_div_with_logits(input, target, weight=weight, mask=mask, divisor=divisor,
                                                **self.given())


class TVDistanceWithLogitsLoss(_GivenLoss):
    """onepass.tv_distance_with_logits of rows. A weight, a mask and a divisor may be given with the operands."""

    def __init__(self, temperature=1.0, reduction="mean", dim=-1):
        super().__init__(dict(temperature=temperature, reduction=reduction, dim=dim))

    def forward(self, input, target, weight=None, *, mask=None, divisor=None):
        return distributions.tv_distance_with_logits(input, target, weight=weight, mask=mask, divisor=divisor,
                                                     **self.given())


for _name in __all__:
    globals()[_name].__doc__ = module_documentation(globals()[_name], [vectors, margins, regions, distributions])
