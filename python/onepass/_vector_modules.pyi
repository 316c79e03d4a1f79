from collections.abc import Callable
from typing import Literal, SupportsFloat

from torch import Tensor
from torch.nn import Module
from torch.nn.modules.loss import _Loss
from typing_extensions import TypeAlias

__all__ = ["CosineEmbeddingLoss", "CosineSimilarity", "DiceLoss", "JSDivWithLogitsLoss", "JaccardLoss",
           "KLDivWithLogitsLoss", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss",
           "PairwiseDistance", "TVDistanceWithLogitsLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss",
           "TverskyLoss"]

_Distance: TypeAlias = Callable[[Tensor, Tensor], Tensor]
_Mode: TypeAlias = Literal["binary", "multilabel", "multiclass"]
_Per: TypeAlias = Literal["batch", "class", "sample", "sample_class"]

class CosineEmbeddingLoss(_Loss):
    margin: SupportsFloat
    def __init__(
        self, margin: SupportsFloat = 0.0, size_average: bool | None = None, reduce: bool | None = None,
        reduction: str = "mean"
    ) -> None: ...
    def forward(
        self, input1: Tensor, input2: Tensor, target: Tensor, weight: Tensor | None = None, *,
        mask: Tensor | None = None, divisor: Tensor | float | None = None
    ) -> Tensor: ...
    def __call__(
        self, input1: Tensor, input2: Tensor, target: Tensor, weight: Tensor | None = None, *,
        mask: Tensor | None = None, divisor: Tensor | float | None = None
    ) -> Tensor: ...

class CosineSimilarity(Module):
    dim: int
    eps: SupportsFloat
    def __init__(self, dim: int = 1, eps: SupportsFloat = 1e-08) -> None: ...
    def forward(
        self, x1: Tensor, x2: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...
    def __call__(
        self, x1: Tensor, x2: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...

class DiceLoss(_Loss):
    mode: _Mode
    from_logits: bool
    per: _Per
    smooth: SupportsFloat
    eps: SupportsFloat
    ignore_index: int | None
    skip_absent: bool
    def __init__(
        self, mode: _Mode = "binary", *, from_logits: bool = True, per: _Per = "class", smooth: SupportsFloat = 0.0,
        eps: SupportsFloat = 1e-07, ignore_index: int | None = None, skip_absent: bool = False,
        reduction: str = "mean"
    ) -> None: ...
    def forward(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None,
        divisor: Tensor | float | None = None
    ) -> Tensor: ...
    def __call__(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None,
        divisor: Tensor | float | None = None
    ) -> Tensor: ...

class JSDivWithLogitsLoss(_Loss):
    beta: SupportsFloat
    temperature: SupportsFloat
    dim: int
    def __init__(
        self, beta: SupportsFloat = 0.5, temperature: SupportsFloat = 1.0, reduction: str = "mean", dim: int = -1
    ) -> None: ...
    def forward(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None,
        divisor: Tensor | float | None = None
    ) -> Tensor: ...
    def __call__(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None,
        divisor: Tensor | float | None = None
    ) -> Tensor: ...

class JaccardLoss(_Loss):
    mode: _Mode
    from_logits: bool
    per: _Per
    smooth: SupportsFloat
    eps: SupportsFloat
    ignore_index: int | None
    skip_absent: bool
    def __init__(
        self, mode: _Mode = "binary", *, from_logits: bool = True, per: _Per = "class", smooth: SupportsFloat = 0.0,
        eps: SupportsFloat = 1e-07, ignore_index: int | None = None, skip_absent: bool = False,
        reduction: str = "mean"
    ) -> None: ...
    def forward(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None,
        divisor: Tensor | float | None = None
    ) -> Tensor: ...
    def __call__(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None,
        divisor: Tensor | float | None = None
    ) -> Tensor: ...

class KLDivWithLogitsLoss(_Loss):
    temperature: SupportsFloat
    reverse: bool
    dim: int
    def __init__(
        self, temperature: SupportsFloat = 1.0, reverse: bool = False, reduction: str = "mean", dim: int = -1
    ) -> None: ...
    def forward(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None,
        divisor: Tensor | float | None = None
    ) -> Tensor: ...
    def __call__(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None,
        divisor: Tensor | float | None = None
    ) -> Tensor: ...

class MultiLabelMarginLoss(_Loss):
    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None: ...
    def forward(self, input: Tensor, target: Tensor) -> Tensor: ...
    def __call__(self, input: Tensor, target: Tensor) -> Tensor: ...

class MultiLabelSoftMarginLoss(_Loss):
    weight: Tensor | None
    def __init__(
        self, weight: Tensor | None = None, size_average: bool | None = None, reduce: bool | None = None,
        reduction: str = "mean"
    ) -> None: ...
    def forward(self, input: Tensor, target: Tensor) -> Tensor: ...
    def __call__(self, input: Tensor, target: Tensor) -> Tensor: ...

class MultiMarginLoss(_Loss):
    p: int
    margin: SupportsFloat
    weight: Tensor | None
    def __init__(
        self, p: int = 1, margin: SupportsFloat = 1.0, weight: Tensor | None = None, size_average: bool | None = None,
        reduce: bool | None = None, reduction: str = "mean"
    ) -> None: ...
    def forward(self, input: Tensor, target: Tensor) -> Tensor: ...
    def __call__(self, input: Tensor, target: Tensor) -> Tensor: ...

class PairwiseDistance(Module):
    norm: SupportsFloat
    eps: SupportsFloat
    keepdim: bool
    def __init__(self, p: SupportsFloat = 2.0, eps: SupportsFloat = 1e-06, keepdim: bool = False) -> None: ...
    def forward(
        self, x1: Tensor, x2: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...
    def __call__(
        self, x1: Tensor, x2: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...

class TVDistanceWithLogitsLoss(_Loss):
    temperature: SupportsFloat
    dim: int
    def __init__(
        self, temperature: SupportsFloat = 1.0, reduction: str = "mean", dim: int = -1
    ) -> None: ...
    def forward(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None,
        divisor: Tensor | float | None = None
    ) -> Tensor: ...
    def __call__(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None,
        divisor: Tensor | float | None = None
    ) -> Tensor: ...

class TripletMarginLoss(_Loss):
    margin: SupportsFloat
    p: SupportsFloat
    eps: SupportsFloat
    swap: bool
    def __init__(
        self, margin: SupportsFloat = 1.0, p: SupportsFloat = 2.0, eps: SupportsFloat = 1e-06, swap: bool = False,
        size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None: ...
    def forward(
        self, anchor: Tensor, positive: Tensor, negative: Tensor, weight: Tensor | None = None, *,
        mask: Tensor | None = None, divisor: Tensor | float | None = None
    ) -> Tensor: ...
    def __call__(
        self, anchor: Tensor, positive: Tensor, negative: Tensor, weight: Tensor | None = None, *,
        mask: Tensor | None = None, divisor: Tensor | float | None = None
    ) -> Tensor: ...

class TripletMarginWithDistanceLoss(_Loss):
    distance_function: _Distance | None
    margin: SupportsFloat
    swap: bool
    def __init__(
        self, *, distance_function: _Distance | None = None, margin: SupportsFloat = 1.0, swap: bool = False,
        reduction: str = "mean"
    ) -> None: ...
    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor: ...
    def __call__(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor: ...

class TverskyLoss(_Loss):
    mode: _Mode
    from_logits: bool
    per: _Per
    alpha: SupportsFloat
    beta: SupportsFloat
    smooth: SupportsFloat
    eps: SupportsFloat
    ignore_index: int | None
    skip_absent: bool
    def __init__(
        self, mode: _Mode = "binary", *, from_logits: bool = True, per: _Per = "class", alpha: SupportsFloat = 0.5,
        beta: SupportsFloat = 0.5, smooth: SupportsFloat = 0.0, eps: SupportsFloat = 1e-07,
        ignore_index: int | None = None, skip_absent: bool = False, reduction: str = "mean"
    ) -> None: ...
    def forward(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None,
        divisor: Tensor | float | None = None
    ) -> Tensor: ...
    def __call__(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None,
        divisor: Tensor | float | None = None
    ) -> Tensor: ...
