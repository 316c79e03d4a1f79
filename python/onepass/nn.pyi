# Made by python/make_stubs.py of the package's signatures.

from decimal import Decimal
from fractions import Fraction
from typing import Any, SupportsFloat, SupportsIndex

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.modules.loss import _Loss
from typing_extensions import TypeAlias

from ._linear_modules import *
from ._vector_modules import *

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CrossEntropyLoss", "GaussianNLLLoss", "HingeEmbeddingLoss", "HingeLoss",
    "HuberLoss", "KLDivLoss", "L1Loss", "MSELoss", "MarginRankingLoss", "NLLLoss", "PoissonNLLLoss",
    "SigmoidFocalLoss", "SmoothL1Loss", "SoftMarginLoss", "SoftmaxFocalLoss", "LogCoshLoss", "CharbonnierLoss",
    "TukeyBiweightLoss", "QuantileLoss", "EpsilonInsensitiveLoss", "MapeLoss", "MsleLoss", "SquaredHingeLoss",
    "RelativeEntropyLoss", "GammaDevianceLoss", "TweedieDevianceLoss", "PolyLoss", "GeneralizedCrossEntropyLoss",
    "LinearCrossEntropyLoss", "NTXentLoss", "SupConLoss", "CosineEmbeddingLoss", "CosineSimilarity", "DiceLoss",
    "JSDivWithLogitsLoss", "JaccardLoss", "KLDivWithLogitsLoss", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss",
    "MultiMarginLoss", "PairwiseDistance", "TVDistanceWithLogitsLoss", "TripletMarginLoss",
    "TripletMarginWithDistanceLoss", "TverskyLoss"
]

_Number: TypeAlias = numpy.floating[Any]
_Real: TypeAlias = float | _Number | numpy.integer[Any] | Fraction | Decimal

class BCELoss(_Loss):
    weight: Tensor | None
    def __init__(
        self, weight: Tensor | None = None, size_average: bool | None = None, reduce: bool | None = None,
        reduction: str = "mean"
    ) -> None: ...
    def forward(self, input: Tensor, target: Tensor, *, mask: Tensor | None = None) -> Tensor: ...
    def __call__(self, input: Tensor, target: Tensor, *, mask: Tensor | None = None) -> Tensor: ...

class BCEWithLogitsLoss(_Loss):
    weight: Tensor | None
    pos_weight: Tensor | None
    def __init__(
        self, weight: Tensor | None = None, size_average: bool | None = None, reduce: bool | None = None,
        reduction: str = "mean", pos_weight: Tensor | None = None
    ) -> None: ...
    def forward(self, input: Tensor, target: Tensor, *, mask: Tensor | None = None) -> Tensor: ...
    def __call__(self, input: Tensor, target: Tensor, *, mask: Tensor | None = None) -> Tensor: ...

class CrossEntropyLoss(_Loss):
    weight: Tensor | None
    ignore_index: SupportsIndex
    label_smoothing: SupportsFloat
    z_loss: SupportsFloat
    softcap: SupportsFloat | None
    temperature: SupportsFloat
    dtype: torch.dtype | None
    inplace: bool
    return_lse: bool
    return_z_loss: bool
    return_accuracy: bool
    def __init__(
        self, weight: Tensor | None = None, size_average: bool | None = None, ignore_index: SupportsIndex = -100,
        reduce: bool | None = None, reduction: str = "mean", label_smoothing: SupportsFloat = 0.0, *,
        z_loss: SupportsFloat = 0.0, softcap: SupportsFloat | None = None, temperature: SupportsFloat = 1.0,
        dtype: torch.dtype | None = None, inplace: bool = False, return_lse: bool = False, return_z_loss: bool = False,
        return_accuracy: bool = False
    ) -> None: ...
    def forward(
        self, input: Tensor, target: Tensor, *, row_weight: Tensor | None = None, mask: Tensor | None = None,
        divisor: Tensor | _Real | NDArray[Any] | None = None
    ) -> Any: ...
    def __call__(
        self, input: Tensor, target: Tensor, *, row_weight: Tensor | None = None, mask: Tensor | None = None,
        divisor: Tensor | _Real | NDArray[Any] | None = None
    ) -> Any: ...

class GaussianNLLLoss(_Loss):
    full: bool
    eps: SupportsFloat
    def __init__(self, *, full: bool = False, eps: SupportsFloat = 1e-06, reduction: str = "mean") -> None: ...
    def forward(
        self, input: Tensor, target: Tensor, var: Tensor | _Real, weight: Tensor | None = None, *,
        mask: Tensor | None = None
    ) -> Tensor: ...
    def __call__(
        self, input: Tensor, target: Tensor, var: Tensor | _Real, weight: Tensor | None = None, *,
        mask: Tensor | None = None
    ) -> Tensor: ...

class HingeEmbeddingLoss(_Loss):
    margin: SupportsFloat
    def __init__(
        self, margin: SupportsFloat = 1.0, size_average: bool | None = None, reduce: bool | None = None,
        reduction: str = "mean"
    ) -> None: ...
    def forward(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...
    def __call__(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...

class HingeLoss(_Loss):
    margin: SupportsFloat
    def __init__(self, margin: SupportsFloat = 1.0, reduction: str = "mean") -> None: ...
    def forward(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...
    def __call__(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...

class HuberLoss(_Loss):
    delta: float
    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None: ...
    def forward(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None,
        broadcast_weight: bool = False
    ) -> Tensor: ...
    def __call__(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None,
        broadcast_weight: bool = False
    ) -> Tensor: ...

class KLDivLoss(_Loss):
    log_target: bool
    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
        log_target: bool = False
    ) -> None: ...
    def forward(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...
    def __call__(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...

class L1Loss(_Loss):
    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None: ...
    def forward(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None,
        broadcast_weight: bool = False
    ) -> Tensor: ...
    def __call__(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None,
        broadcast_weight: bool = False
    ) -> Tensor: ...

class MSELoss(_Loss):
    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None: ...
    def forward(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None,
        broadcast_weight: bool = False
    ) -> Tensor: ...
    def __call__(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None,
        broadcast_weight: bool = False
    ) -> Tensor: ...

class MarginRankingLoss(_Loss):
    margin: SupportsFloat
    def __init__(
        self, margin: SupportsFloat = 0.0, size_average: bool | None = None, reduce: bool | None = None,
        reduction: str = "mean"
    ) -> None: ...
    def forward(
        self, input1: Tensor, input2: Tensor, target: Tensor, weight: Tensor | None = None, *,
        mask: Tensor | None = None
    ) -> Tensor: ...
    def __call__(
        self, input1: Tensor, input2: Tensor, target: Tensor, weight: Tensor | None = None, *,
        mask: Tensor | None = None
    ) -> Tensor: ...

class NLLLoss(_Loss):
    weight: Tensor | None
    ignore_index: SupportsIndex
    def __init__(
        self, weight: Tensor | None = None, size_average: bool | None = None, ignore_index: SupportsIndex = -100,
        reduce: bool | None = None, reduction: str = "mean"
    ) -> None: ...
    def forward(
        self, input: Tensor, target: Tensor, *, row_weight: Tensor | None = None, mask: Tensor | None = None,
        divisor: Tensor | _Real | NDArray[Any] | None = None
    ) -> Tensor: ...
    def __call__(
        self, input: Tensor, target: Tensor, *, row_weight: Tensor | None = None, mask: Tensor | None = None,
        divisor: Tensor | _Real | NDArray[Any] | None = None
    ) -> Tensor: ...

class PoissonNLLLoss(_Loss):
    log_input: bool
    full: bool
    eps: SupportsFloat
    def __init__(
        self, log_input: bool = True, full: bool = False, size_average: bool | None = None, eps: SupportsFloat = 1e-08,
        reduce: bool | None = None, reduction: str = "mean"
    ) -> None: ...
    def forward(
        self, log_input: bool, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...
    def __call__(
        self, log_input: bool, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...

class SigmoidFocalLoss(_Loss):
    alpha: SupportsFloat
    gamma: SupportsFloat
    def __init__(self, alpha: SupportsFloat = 0.25, gamma: SupportsFloat = 2, reduction: str = "none") -> None: ...
    def forward(
        self, inputs: Tensor, targets: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...
    def __call__(
        self, inputs: Tensor, targets: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...

class SmoothL1Loss(_Loss):
    beta: SupportsFloat
    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
        beta: SupportsFloat = 1.0
    ) -> None: ...
    def forward(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...
    def __call__(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...

class SoftMarginLoss(_Loss):
    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None: ...
    def forward(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...
    def __call__(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...

class SoftmaxFocalLoss(_Loss):
    weight: Tensor | None
    alpha: SupportsFloat
    gamma: SupportsFloat
    ignore_index: SupportsIndex
    softcap: SupportsFloat | None
    temperature: SupportsFloat
    def __init__(
        self, weight: Tensor | None = None, *, alpha: SupportsFloat = 1.0, gamma: SupportsFloat = 2.0,
        ignore_index: SupportsIndex = -100, softcap: SupportsFloat | None = None, temperature: SupportsFloat = 1.0,
        reduction: str = "mean"
    ) -> None: ...
    def forward(
        self, input: Tensor, target: Tensor, *, row_weight: Tensor | None = None, mask: Tensor | None = None,
        divisor: Tensor | _Real | NDArray[Any] | None = None
    ) -> Tensor: ...
    def __call__(
        self, input: Tensor, target: Tensor, *, row_weight: Tensor | None = None, mask: Tensor | None = None,
        divisor: Tensor | _Real | NDArray[Any] | None = None
    ) -> Tensor: ...

class LogCoshLoss(_Loss):
    def __init__(self, reduction: str = "mean") -> None: ...
    def forward(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...
    def __call__(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...

class CharbonnierLoss(_Loss):
    eps: SupportsFloat
    def __init__(self, eps: SupportsFloat = 0.001, reduction: str = "mean") -> None: ...
    def forward(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...
    def __call__(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...

class TukeyBiweightLoss(_Loss):
    c: SupportsFloat
    def __init__(self, c: SupportsFloat = 4.685, reduction: str = "mean") -> None: ...
    def forward(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...
    def __call__(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...

class QuantileLoss(_Loss):
    tau: SupportsFloat
    def __init__(self, tau: SupportsFloat = 0.5, reduction: str = "mean") -> None: ...
    def forward(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...
    def __call__(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...

class EpsilonInsensitiveLoss(_Loss):
    eps: SupportsFloat
    def __init__(self, eps: SupportsFloat = 0.1, reduction: str = "mean") -> None: ...
    def forward(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...
    def __call__(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...

class MapeLoss(_Loss):
    eps: SupportsFloat
    def __init__(self, eps: SupportsFloat = 1e-07, reduction: str = "mean") -> None: ...
    def forward(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...
    def __call__(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...

class MsleLoss(_Loss):
    def __init__(self, reduction: str = "mean") -> None: ...
    def forward(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...
    def __call__(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...

class SquaredHingeLoss(_Loss):
    margin: SupportsFloat
    def __init__(self, margin: SupportsFloat = 1.0, reduction: str = "mean") -> None: ...
    def forward(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...
    def __call__(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...

class RelativeEntropyLoss(_Loss):
    def __init__(self, reduction: str = "mean") -> None: ...
    def forward(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...
    def __call__(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...

class GammaDevianceLoss(_Loss):
    def __init__(self, reduction: str = "mean") -> None: ...
    def forward(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...
    def __call__(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...

class TweedieDevianceLoss(_Loss):
    power: SupportsFloat
    def __init__(self, power: SupportsFloat = 1.5, reduction: str = "mean") -> None: ...
    def forward(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...
    def __call__(
        self, input: Tensor, target: Tensor, weight: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor: ...

class PolyLoss(_Loss):
    weight: Tensor | None
    ignore_index: SupportsIndex
    epsilon: SupportsFloat
    softcap: SupportsFloat | None
    temperature: SupportsFloat
    def __init__(
        self, weight: Tensor | None = None, *, ignore_index: SupportsIndex = -100, epsilon: SupportsFloat = 2.0,
        softcap: SupportsFloat | None = 0.0, temperature: SupportsFloat = 1.0, reduction: str = "mean"
    ) -> None: ...
    def forward(
        self, input: Tensor, target: Tensor, *, row_weight: Tensor | None = None, mask: Tensor | None = None,
        divisor: Tensor | _Real | NDArray[Any] | None = None
    ) -> Tensor: ...
    def __call__(
        self, input: Tensor, target: Tensor, *, row_weight: Tensor | None = None, mask: Tensor | None = None,
        divisor: Tensor | _Real | NDArray[Any] | None = None
    ) -> Tensor: ...

class GeneralizedCrossEntropyLoss(_Loss):
    weight: Tensor | None
    ignore_index: SupportsIndex
    q: SupportsFloat
    softcap: SupportsFloat | None
    temperature: SupportsFloat
    def __init__(
        self, weight: Tensor | None = None, *, ignore_index: SupportsIndex = -100, q: SupportsFloat = 0.7,
        softcap: SupportsFloat | None = 0.0, temperature: SupportsFloat = 1.0, reduction: str = "mean"
    ) -> None: ...
    def forward(
        self, input: Tensor, target: Tensor, *, row_weight: Tensor | None = None, mask: Tensor | None = None,
        divisor: Tensor | _Real | NDArray[Any] | None = None
    ) -> Tensor: ...
    def __call__(
        self, input: Tensor, target: Tensor, *, row_weight: Tensor | None = None, mask: Tensor | None = None,
        divisor: Tensor | _Real | NDArray[Any] | None = None
    ) -> Tensor: ...
