# Made by python/make_stubs.py of the package's signatures.

from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, SupportsFloat, SupportsIndex, overload

import numpy
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor
from typing_extensions import TypeAlias

__all__ = [
    "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "hinge_loss", "soft_margin_loss", "hinge_embedding_loss",
    "margin_ranking_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "sigmoid_focal_loss",
    "poisson_nll_loss", "gaussian_nll_loss", "kl_div", "cross_entropy", "nll_loss", "log_prob", "softmax_focal_loss",
    "poly_loss", "generalized_cross_entropy", "value_and_grad", "log_cosh_loss", "charbonnier_loss",
    "tukey_biweight_loss", "quantile_loss", "epsilon_insensitive_loss", "mape_loss", "msle_loss", "squared_hinge_loss",
    "relative_entropy_loss", "gamma_deviance_loss", "tweedie_deviance_loss"
]

_Number: TypeAlias = numpy.floating[Any]
_Real: TypeAlias = float | _Number | numpy.integer[Any] | Fraction | Decimal
_Array: TypeAlias = NDArray[numpy.floating[Any]]
_Mask: TypeAlias = NDArray[numpy.bool_] | NDArray[numpy.uint8]
_Labels: TypeAlias = NDArray[numpy.int64] | NDArray[numpy.int32] | NDArray[numpy.uint8]
_Reduced: TypeAlias = Literal["mean", "sum"]
_ReducedOrBatch: TypeAlias = Literal["mean", "sum", "batchmean"]

@overload
def mse_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: Tensor | None = None, *, mask: Tensor | None = None,
    broadcast_weight: bool = False
) -> Tensor: ...
@overload
def mse_loss(
    input: _Array, target: _Array, size_average: None = None, reduce: None = None, reduction: _Reduced = "mean",
    weight: _Array | None = None, *, mask: _Mask | None = None, broadcast_weight: bool = False
) -> _Number: ...
@overload
def mse_loss(
    input: _Array, target: _Array, size_average: None, reduce: None, reduction: Literal["none"],
    weight: _Array | None = None, *, mask: _Mask | None = None, broadcast_weight: bool = False
) -> _Array: ...
@overload
def mse_loss(
    input: _Array, target: _Array, size_average: None = None, reduce: None = None, *, reduction: Literal["none"],
    weight: _Array | None = None, mask: _Mask | None = None, broadcast_weight: bool = False
) -> _Array: ...
@overload
def mse_loss(
    input: _Array, target: _Array, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: _Array | None = None, *, mask: _Mask | None = None,
    broadcast_weight: bool = False
) -> _Number | _Array: ...
@overload
def l1_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: Tensor | None = None, *, mask: Tensor | None = None,
    broadcast_weight: bool = False
) -> Tensor: ...
@overload
def l1_loss(
    input: _Array, target: _Array, size_average: None = None, reduce: None = None, reduction: _Reduced = "mean",
    weight: _Array | None = None, *, mask: _Mask | None = None, broadcast_weight: bool = False
) -> _Number: ...
@overload
def l1_loss(
    input: _Array, target: _Array, size_average: None, reduce: None, reduction: Literal["none"],
    weight: _Array | None = None, *, mask: _Mask | None = None, broadcast_weight: bool = False
) -> _Array: ...
@overload
def l1_loss(
    input: _Array, target: _Array, size_average: None = None, reduce: None = None, *, reduction: Literal["none"],
    weight: _Array | None = None, mask: _Mask | None = None, broadcast_weight: bool = False
) -> _Array: ...
@overload
def l1_loss(
    input: _Array, target: _Array, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: _Array | None = None, *, mask: _Mask | None = None,
    broadcast_weight: bool = False
) -> _Number | _Array: ...
@overload
def smooth_l1_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", beta: SupportsFloat = 1.0, *, weight: Tensor | None = None, mask: Tensor | None = None
) -> Tensor: ...
@overload
def smooth_l1_loss(
    input: _Array, target: _Array, size_average: None = None, reduce: None = None, reduction: _Reduced = "mean",
    beta: SupportsFloat = 1.0, *, weight: _Array | None = None, mask: _Mask | None = None
) -> _Number: ...
@overload
def smooth_l1_loss(
    input: _Array, target: _Array, size_average: None, reduce: None, reduction: Literal["none"],
    beta: SupportsFloat = 1.0, *, weight: _Array | None = None, mask: _Mask | None = None
) -> _Array: ...
@overload
def smooth_l1_loss(
    input: _Array, target: _Array, size_average: None = None, reduce: None = None, *, reduction: Literal["none"],
    beta: SupportsFloat = 1.0, weight: _Array | None = None, mask: _Mask | None = None
) -> _Array: ...
@overload
def smooth_l1_loss(
    input: _Array, target: _Array, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", beta: SupportsFloat = 1.0, *, weight: _Array | None = None, mask: _Mask | None = None
) -> _Number | _Array: ...
@overload
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: SupportsFloat = 1.0, weight: Tensor | None = None,
    *, mask: Tensor | None = None, broadcast_weight: bool = False
) -> Tensor: ...
@overload
def huber_loss(
    input: _Array, target: _Array, reduction: _Reduced = "mean", delta: SupportsFloat = 1.0,
    weight: _Array | None = None, *, mask: _Mask | None = None, broadcast_weight: bool = False
) -> _Number: ...
@overload
def huber_loss(
    input: _Array, target: _Array, reduction: Literal["none"], delta: SupportsFloat = 1.0,
    weight: _Array | None = None, *, mask: _Mask | None = None, broadcast_weight: bool = False
) -> _Array: ...
@overload
def huber_loss(
    input: _Array, target: _Array, reduction: str = "mean", delta: SupportsFloat = 1.0, weight: _Array | None = None,
    *, mask: _Mask | None = None, broadcast_weight: bool = False
) -> _Number | _Array: ...
@overload
def hinge_loss(
    input: Tensor, target: Tensor, margin: SupportsFloat = 1.0, reduction: str = "mean", weight: Tensor | None = None,
    *, mask: Tensor | None = None
) -> Tensor: ...
@overload
def hinge_loss(
    input: _Array, target: _Array, margin: SupportsFloat = 1.0, reduction: _ReducedOrBatch = "mean",
    weight: _Array | None = None, *, mask: _Mask | None = None
) -> _Number: ...
@overload
def hinge_loss(
    input: _Array, target: _Array, margin: SupportsFloat, reduction: Literal["none"], weight: _Array | None = None, *,
    mask: _Mask | None = None
) -> _Array: ...
@overload
def hinge_loss(
    input: _Array, target: _Array, margin: SupportsFloat = 1.0, *, reduction: Literal["none"],
    weight: _Array | None = None, mask: _Mask | None = None
) -> _Array: ...
@overload
def hinge_loss(
    input: _Array, target: _Array, margin: SupportsFloat = 1.0, reduction: str = "mean", weight: _Array | None = None,
    *, mask: _Mask | None = None
) -> _Number | _Array: ...
@overload
def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", *, weight: Tensor | None = None, mask: Tensor | None = None
) -> Tensor: ...
@overload
def soft_margin_loss(
    input: _Array, target: _Array, size_average: None = None, reduce: None = None, reduction: _Reduced = "mean", *,
    weight: _Array | None = None, mask: _Mask | None = None
) -> _Number: ...
@overload
def soft_margin_loss(
    input: _Array, target: _Array, size_average: None, reduce: None, reduction: Literal["none"], *,
    weight: _Array | None = None, mask: _Mask | None = None
) -> _Array: ...
@overload
def soft_margin_loss(
    input: _Array, target: _Array, size_average: None = None, reduce: None = None, *, reduction: Literal["none"],
    weight: _Array | None = None, mask: _Mask | None = None
) -> _Array: ...
@overload
def soft_margin_loss(
    input: _Array, target: _Array, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", *, weight: _Array | None = None, mask: _Mask | None = None
) -> _Number | _Array: ...
@overload
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: SupportsFloat = 1.0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean", *, weight: Tensor | None = None, mask: Tensor | None = None
) -> Tensor: ...
@overload
def hinge_embedding_loss(
    input: _Array, target: _Array, margin: SupportsFloat = 1.0, size_average: None = None, reduce: None = None,
    reduction: _Reduced = "mean", *, weight: _Array | None = None, mask: _Mask | None = None
) -> _Number: ...
@overload
def hinge_embedding_loss(
    input: _Array, target: _Array, margin: SupportsFloat, size_average: None, reduce: None, reduction: Literal["none"],
    *, weight: _Array | None = None, mask: _Mask | None = None
) -> _Array: ...
@overload
def hinge_embedding_loss(
    input: _Array, target: _Array, margin: SupportsFloat = 1.0, size_average: None = None, reduce: None = None, *,
    reduction: Literal["none"], weight: _Array | None = None, mask: _Mask | None = None
) -> _Array: ...
@overload
def hinge_embedding_loss(
    input: _Array, target: _Array, margin: SupportsFloat = 1.0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean", *, weight: _Array | None = None, mask: _Mask | None = None
) -> _Number | _Array: ...
@overload
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: SupportsFloat = 0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean", *, weight: Tensor | None = None, mask: Tensor | None = None
) -> Tensor: ...
@overload
def margin_ranking_loss(
    input1: _Array, input2: _Array, target: _Array, margin: SupportsFloat = 0, size_average: None = None,
    reduce: None = None, reduction: _Reduced = "mean", *, weight: _Array | None = None, mask: _Mask | None = None
) -> _Number: ...
@overload
def margin_ranking_loss(
    input1: _Array, input2: _Array, target: _Array, margin: SupportsFloat, size_average: None, reduce: None,
    reduction: Literal["none"], *, weight: _Array | None = None, mask: _Mask | None = None
) -> _Array: ...
@overload
def margin_ranking_loss(
    input1: _Array, input2: _Array, target: _Array, margin: SupportsFloat = 0, size_average: None = None,
    reduce: None = None, *, reduction: Literal["none"], weight: _Array | None = None, mask: _Mask | None = None
) -> _Array: ...
@overload
def margin_ranking_loss(
    input1: _Array, input2: _Array, target: _Array, margin: SupportsFloat = 0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean", *, weight: _Array | None = None, mask: _Mask | None = None
) -> _Number | _Array: ...
@overload
def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean", *, mask: Tensor | None = None
) -> Tensor: ...
@overload
def binary_cross_entropy(
    input: _Array, target: _Array, weight: _Array | None = None, size_average: None = None, reduce: None = None,
    reduction: _Reduced = "mean", *, mask: _Mask | None = None
) -> _Number: ...
@overload
def binary_cross_entropy(
    input: _Array, target: _Array, weight: _Array | None, size_average: None, reduce: None, reduction: Literal["none"],
    *, mask: _Mask | None = None
) -> _Array: ...
@overload
def binary_cross_entropy(
    input: _Array, target: _Array, weight: _Array | None = None, size_average: None = None, reduce: None = None, *,
    reduction: Literal["none"], mask: _Mask | None = None
) -> _Array: ...
@overload
def binary_cross_entropy(
    input: _Array, target: _Array, weight: _Array | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean", *, mask: _Mask | None = None
) -> _Number | _Array: ...
@overload
def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean", pos_weight: Tensor | None = None, *,
    mask: Tensor | None = None
) -> Tensor: ...
@overload
def binary_cross_entropy_with_logits(
    input: _Array, target: _Array, weight: _Array | None = None, size_average: None = None, reduce: None = None,
    reduction: _Reduced = "mean", pos_weight: _Array | None = None, *, mask: _Mask | None = None
) -> _Number: ...
@overload
def binary_cross_entropy_with_logits(
    input: _Array, target: _Array, weight: _Array | None, size_average: None, reduce: None, reduction: Literal["none"],
    pos_weight: _Array | None = None, *, mask: _Mask | None = None
) -> _Array: ...
@overload
def binary_cross_entropy_with_logits(
    input: _Array, target: _Array, weight: _Array | None = None, size_average: None = None, reduce: None = None, *,
    reduction: Literal["none"], pos_weight: _Array | None = None, mask: _Mask | None = None
) -> _Array: ...
@overload
def binary_cross_entropy_with_logits(
    input: _Array, target: _Array, weight: _Array | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean", pos_weight: _Array | None = None, *,
    mask: _Mask | None = None
) -> _Number | _Array: ...
@overload
def sigmoid_focal_loss(
    inputs: Tensor, targets: Tensor, alpha: SupportsFloat = 0.25, gamma: SupportsFloat = 2, reduction: str = "none", *,
    weight: Tensor | None = None, mask: Tensor | None = None
) -> Tensor: ...
@overload
def sigmoid_focal_loss(
    inputs: _Array, targets: _Array, alpha: SupportsFloat = 0.25, gamma: SupportsFloat = 2,
    reduction: Literal["none"] = "none", *, weight: _Array | None = None, mask: _Mask | None = None
) -> _Array: ...
@overload
def sigmoid_focal_loss(
    inputs: _Array, targets: _Array, alpha: SupportsFloat, gamma: SupportsFloat, reduction: _Reduced, *,
    weight: _Array | None = None, mask: _Mask | None = None
) -> _Number: ...
@overload
def sigmoid_focal_loss(
    inputs: _Array, targets: _Array, alpha: SupportsFloat = 0.25, gamma: SupportsFloat = 2, *, reduction: _Reduced,
    weight: _Array | None = None, mask: _Mask | None = None
) -> _Number: ...
@overload
def sigmoid_focal_loss(
    inputs: _Array, targets: _Array, alpha: SupportsFloat = 0.25, gamma: SupportsFloat = 2, reduction: str = "none", *,
    weight: _Array | None = None, mask: _Mask | None = None
) -> _Number | _Array: ...
@overload
def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, size_average: bool | None = None,
    eps: SupportsFloat = 1e-08, reduce: bool | None = None, reduction: str = "mean", *, weight: Tensor | None = None,
    mask: Tensor | None = None
) -> Tensor: ...
@overload
def poisson_nll_loss(
    input: _Array, target: _Array, log_input: bool = True, full: bool = False, size_average: None = None,
    eps: SupportsFloat = 1e-08, reduce: None = None, reduction: _Reduced = "mean", *, weight: _Array | None = None,
    mask: _Mask | None = None
) -> _Number: ...
@overload
def poisson_nll_loss(
    input: _Array, target: _Array, log_input: bool, full: bool, size_average: None, eps: SupportsFloat, reduce: None,
    reduction: Literal["none"], *, weight: _Array | None = None, mask: _Mask | None = None
) -> _Array: ...
@overload
def poisson_nll_loss(
    input: _Array, target: _Array, log_input: bool = True, full: bool = False, size_average: None = None,
    eps: SupportsFloat = 1e-08, reduce: None = None, *, reduction: Literal["none"], weight: _Array | None = None,
    mask: _Mask | None = None
) -> _Array: ...
@overload
def poisson_nll_loss(
    input: _Array, target: _Array, log_input: bool = True, full: bool = False, size_average: bool | None = None,
    eps: SupportsFloat = 1e-08, reduce: bool | None = None, reduction: str = "mean", *, weight: _Array | None = None,
    mask: _Mask | None = None
) -> _Number | _Array: ...
@overload
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor | _Real, full: bool = False, eps: SupportsFloat = 1e-06,
    reduction: str = "mean", *, weight: Tensor | None = None, mask: Tensor | None = None
) -> Tensor: ...
@overload
def gaussian_nll_loss(
    input: _Array, target: _Array, var: _Array | _Real, full: bool = False, eps: SupportsFloat = 1e-06,
    reduction: _Reduced = "mean", *, weight: _Array | None = None, mask: _Mask | None = None
) -> _Number: ...
@overload
def gaussian_nll_loss(
    input: _Array, target: _Array, var: _Array | _Real, full: bool, eps: SupportsFloat, reduction: Literal["none"], *,
    weight: _Array | None = None, mask: _Mask | None = None
) -> _Array: ...
@overload
def gaussian_nll_loss(
    input: _Array, target: _Array, var: _Array | _Real, full: bool = False, eps: SupportsFloat = 1e-06, *,
    reduction: Literal["none"], weight: _Array | None = None, mask: _Mask | None = None
) -> _Array: ...
@overload
def gaussian_nll_loss(
    input: _Array, target: _Array, var: _Array | _Real, full: bool = False, eps: SupportsFloat = 1e-06,
    reduction: str = "mean", *, weight: _Array | None = None, mask: _Mask | None = None
) -> _Number | _Array: ...
@overload
def kl_div(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", log_target: bool = False, *, weight: Tensor | None = None, mask: Tensor | None = None
) -> Tensor: ...
@overload
def kl_div(
    input: _Array, target: _Array, size_average: None = None, reduce: None = None, reduction: _ReducedOrBatch = "mean",
    log_target: bool = False, *, weight: _Array | None = None, mask: _Mask | None = None
) -> _Number: ...
@overload
def kl_div(
    input: _Array, target: _Array, size_average: None, reduce: None, reduction: Literal["none"],
    log_target: bool = False, *, weight: _Array | None = None, mask: _Mask | None = None
) -> _Array: ...
@overload
def kl_div(
    input: _Array, target: _Array, size_average: None = None, reduce: None = None, *, reduction: Literal["none"],
    log_target: bool = False, weight: _Array | None = None, mask: _Mask | None = None
) -> _Array: ...
@overload
def kl_div(
    input: _Array, target: _Array, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", log_target: bool = False, *, weight: _Array | None = None, mask: _Mask | None = None
) -> _Number | _Array: ...
@overload
def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    ignore_index: SupportsIndex = -100, reduce: bool | None = None, reduction: str = "mean",
    label_smoothing: SupportsFloat = 0.0, *, z_loss: SupportsFloat = 0.0, softcap: SupportsFloat | None = None,
    temperature: SupportsFloat = 1.0, row_weight: Tensor | None = None, mask: Tensor | None = None,
    divisor: Tensor | _Real | NDArray[Any] | None = None, dtype: torch.dtype | None = None, inplace: bool = False,
    return_lse: Literal[False] = False, return_z_loss: Literal[False] = False, return_accuracy: Literal[False] = False
) -> Tensor: ...
@overload
def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    ignore_index: SupportsIndex = -100, reduce: bool | None = None, reduction: str = "mean",
    label_smoothing: SupportsFloat = 0.0, *, z_loss: SupportsFloat = 0.0, softcap: SupportsFloat | None = None,
    temperature: SupportsFloat = 1.0, row_weight: Tensor | None = None, mask: Tensor | None = None,
    divisor: Tensor | _Real | NDArray[Any] | None = None, dtype: torch.dtype | None = None, inplace: bool = False,
    return_lse: bool = False, return_z_loss: bool = False, return_accuracy: bool = False
) -> Any: ...
@overload
def cross_entropy(
    input: _Array, target: _Array | _Labels, weight: _Array | None = None, size_average: bool | None = None,
    ignore_index: SupportsIndex = -100, reduce: bool | None = None, reduction: str = "mean",
    label_smoothing: SupportsFloat = 0.0, *, z_loss: SupportsFloat = 0.0, softcap: SupportsFloat | None = None,
    temperature: SupportsFloat = 1.0, row_weight: _Array | None = None, mask: _Mask | None = None,
    divisor: _Real | NDArray[Any] | None = None, dtype: DTypeLike | None = None, inplace: Literal[False] = False,
    return_lse: Literal[False] = False, return_z_loss: Literal[False] = False, return_accuracy: Literal[False] = False
) -> Any: ...
@overload
def cross_entropy(
    input: _Array, target: _Array | _Labels, weight: _Array | None = None, size_average: bool | None = None,
    ignore_index: SupportsIndex = -100, reduce: bool | None = None, reduction: str = "mean",
    label_smoothing: SupportsFloat = 0.0, *, z_loss: SupportsFloat = 0.0, softcap: SupportsFloat | None = None,
    temperature: SupportsFloat = 1.0, row_weight: _Array | None = None, mask: _Mask | None = None,
    divisor: _Real | NDArray[Any] | None = None, dtype: DTypeLike | None = None, inplace: Literal[False] = False,
    return_lse: bool = False, return_z_loss: bool = False, return_accuracy: bool = False
) -> Any: ...
@overload
def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    ignore_index: SupportsIndex = -100, reduce: bool | None = None, reduction: str = "mean", *,
    row_weight: Tensor | None = None, mask: Tensor | None = None, divisor: Tensor | _Real | NDArray[Any] | None = None,
    dtype: torch.dtype | None = None
) -> Tensor: ...
@overload
def nll_loss(
    input: _Array, target: _Array | _Labels, weight: _Array | None = None, size_average: bool | None = None,
    ignore_index: SupportsIndex = -100, reduce: bool | None = None, reduction: str = "mean", *,
    row_weight: _Array | None = None, mask: _Mask | None = None, divisor: _Real | NDArray[Any] | None = None,
    dtype: DTypeLike | None = None
) -> Any: ...
@overload
def log_prob(
    logits: Tensor, labels: Tensor, temperature: SupportsFloat = 1.0, softcap: SupportsFloat | None = None,
    ignore_index: SupportsIndex = -100, return_entropy: Literal[False] = False, *, dtype: torch.dtype | None = None,
    inplace: bool = False
) -> Tensor: ...
@overload
def log_prob(
    logits: Tensor, labels: Tensor, temperature: SupportsFloat, softcap: SupportsFloat | None,
    ignore_index: SupportsIndex, return_entropy: Literal[True], *, dtype: torch.dtype | None = None,
    inplace: bool = False
) -> tuple[Tensor, Tensor]: ...
@overload
def log_prob(
    logits: Tensor, labels: Tensor, temperature: SupportsFloat = 1.0, softcap: SupportsFloat | None = None,
    ignore_index: SupportsIndex = -100, *, return_entropy: Literal[True], dtype: torch.dtype | None = None,
    inplace: bool = False
) -> tuple[Tensor, Tensor]: ...
@overload
def log_prob(
    logits: Tensor, labels: Tensor, temperature: SupportsFloat = 1.0, softcap: SupportsFloat | None = None,
    ignore_index: SupportsIndex = -100, return_entropy: bool = False, *, dtype: torch.dtype | None = None,
    inplace: bool = False
) -> Any: ...
@overload
def log_prob(
    logits: _Array, labels: _Labels, temperature: SupportsFloat = 1.0, softcap: SupportsFloat | None = None,
    ignore_index: SupportsIndex = -100, return_entropy: Literal[False] = False, *, dtype: DTypeLike | None = None,
    inplace: Literal[False] = False
) -> _Array: ...
@overload
def log_prob(
    logits: _Array, labels: _Labels, temperature: SupportsFloat, softcap: SupportsFloat | None,
    ignore_index: SupportsIndex, return_entropy: Literal[True], *, dtype: DTypeLike | None = None,
    inplace: Literal[False] = False
) -> tuple[_Array, _Array]: ...
@overload
def log_prob(
    logits: _Array, labels: _Labels, temperature: SupportsFloat = 1.0, softcap: SupportsFloat | None = None,
    ignore_index: SupportsIndex = -100, *, return_entropy: Literal[True], dtype: DTypeLike | None = None,
    inplace: Literal[False] = False
) -> tuple[_Array, _Array]: ...
@overload
def log_prob(
    logits: _Array, labels: _Labels, temperature: SupportsFloat = 1.0, softcap: SupportsFloat | None = None,
    ignore_index: SupportsIndex = -100, return_entropy: bool = False, *, dtype: DTypeLike | None = None,
    inplace: Literal[False] = False
) -> Any: ...
@overload
def softmax_focal_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, *, alpha: SupportsFloat = 1.0,
    gamma: SupportsFloat = 2.0, ignore_index: SupportsIndex = -100, softcap: SupportsFloat | None = None,
    temperature: SupportsFloat = 1.0, reduction: str = "mean", row_weight: Tensor | None = None,
    mask: Tensor | None = None, divisor: Tensor | _Real | NDArray[Any] | None = None, dtype: torch.dtype | None = None
) -> Tensor: ...
@overload
def softmax_focal_loss(
    input: _Array, target: _Array | _Labels, weight: _Array | None = None, *, alpha: SupportsFloat = 1.0,
    gamma: SupportsFloat = 2.0, ignore_index: SupportsIndex = -100, softcap: SupportsFloat | None = None,
    temperature: SupportsFloat = 1.0, reduction: str = "mean", row_weight: _Array | None = None,
    mask: _Mask | None = None, divisor: _Real | NDArray[Any] | None = None, dtype: DTypeLike | None = None
) -> Any: ...
@overload
def poly_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, *, ignore_index: SupportsIndex = -100,
    epsilon: SupportsFloat = 2.0, softcap: SupportsFloat | None = 0.0, temperature: SupportsFloat = 1.0,
    reduction: str = "mean", row_weight: Tensor | None = None, mask: Tensor | None = None,
    divisor: Tensor | _Real | NDArray[Any] | None = None, dtype: torch.dtype | None = None
) -> Tensor: ...
@overload
def poly_loss(
    input: _Array, target: _Array | _Labels, weight: _Array | None = None, *, ignore_index: SupportsIndex = -100,
    epsilon: SupportsFloat = 2.0, softcap: SupportsFloat | None = 0.0, temperature: SupportsFloat = 1.0,
    reduction: str = "mean", row_weight: _Array | None = None, mask: _Mask | None = None,
    divisor: _Real | NDArray[Any] | None = None, dtype: DTypeLike | None = None
) -> Any: ...
@overload
def generalized_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, *, ignore_index: SupportsIndex = -100,
    q: SupportsFloat = 0.7, softcap: SupportsFloat | None = 0.0, temperature: SupportsFloat = 1.0,
    reduction: str = "mean", row_weight: Tensor | None = None, mask: Tensor | None = None,
    divisor: Tensor | _Real | NDArray[Any] | None = None, dtype: torch.dtype | None = None
) -> Tensor: ...
@overload
def generalized_cross_entropy(
    input: _Array, target: _Array | _Labels, weight: _Array | None = None, *, ignore_index: SupportsIndex = -100,
    q: SupportsFloat = 0.7, softcap: SupportsFloat | None = 0.0, temperature: SupportsFloat = 1.0,
    reduction: str = "mean", row_weight: _Array | None = None, mask: _Mask | None = None,
    divisor: _Real | NDArray[Any] | None = None, dtype: DTypeLike | None = None
) -> Any: ...
@overload
def value_and_grad(
    name: str, input: Tensor, target: Tensor, third: Tensor | None = None, *, reduction: str = "mean",
    weight: Tensor | None = None, mask: Tensor | None = None, broadcast_weight: bool = False,
    **parameters: SupportsFloat
) -> tuple[Tensor, Tensor]: ...
@overload
def value_and_grad(
    name: str, input: _Array, target: _Array | _Labels, third: _Array | None = None, *, reduction: str = "mean",
    weight: _Array | None = None, mask: _Mask | None = None, broadcast_weight: bool = False,
    **parameters: SupportsFloat
) -> tuple[_Number, _Array]: ...
@overload
def log_cosh_loss(
    input: Tensor, target: Tensor, *, reduction: str = "mean", weight: Tensor | None = None,
    mask: Tensor | None = None
) -> Tensor: ...
@overload
def log_cosh_loss(
    input: _Array, target: _Array, *, reduction: _ReducedOrBatch = "mean", weight: _Array | None = None,
    mask: _Mask | None = None
) -> _Number: ...
@overload
def log_cosh_loss(
    input: _Array, target: _Array, *, reduction: Literal["none"], weight: _Array | None = None,
    mask: _Mask | None = None
) -> _Array: ...
@overload
def log_cosh_loss(
    input: _Array, target: _Array, *, reduction: str = "mean", weight: _Array | None = None, mask: _Mask | None = None
) -> _Number | _Array: ...
@overload
def charbonnier_loss(
    input: Tensor, target: Tensor, *, eps: SupportsFloat = 0.001, reduction: str = "mean",
    weight: Tensor | None = None, mask: Tensor | None = None
) -> Tensor: ...
@overload
def charbonnier_loss(
    input: _Array, target: _Array, *, eps: SupportsFloat = 0.001, reduction: _ReducedOrBatch = "mean",
    weight: _Array | None = None, mask: _Mask | None = None
) -> _Number: ...
@overload
def charbonnier_loss(
    input: _Array, target: _Array, *, eps: SupportsFloat = 0.001, reduction: Literal["none"],
    weight: _Array | None = None, mask: _Mask | None = None
) -> _Array: ...
@overload
def charbonnier_loss(
    input: _Array, target: _Array, *, eps: SupportsFloat = 0.001, reduction: str = "mean",
    weight: _Array | None = None, mask: _Mask | None = None
) -> _Number | _Array: ...
@overload
def tukey_biweight_loss(
    input: Tensor, target: Tensor, *, c: SupportsFloat = 4.685, reduction: str = "mean", weight: Tensor | None = None,
    mask: Tensor | None = None
) -> Tensor: ...
@overload
def tukey_biweight_loss(
    input: _Array, target: _Array, *, c: SupportsFloat = 4.685, reduction: _ReducedOrBatch = "mean",
    weight: _Array | None = None, mask: _Mask | None = None
) -> _Number: ...
@overload
def tukey_biweight_loss(
    input: _Array, target: _Array, *, c: SupportsFloat = 4.685, reduction: Literal["none"],
    weight: _Array | None = None, mask: _Mask | None = None
) -> _Array: ...
@overload
def tukey_biweight_loss(
    input: _Array, target: _Array, *, c: SupportsFloat = 4.685, reduction: str = "mean", weight: _Array | None = None,
    mask: _Mask | None = None
) -> _Number | _Array: ...
@overload
def quantile_loss(
    input: Tensor, target: Tensor, *, tau: SupportsFloat = 0.5, reduction: str = "mean", weight: Tensor | None = None,
    mask: Tensor | None = None
) -> Tensor: ...
@overload
def quantile_loss(
    input: _Array, target: _Array, *, tau: SupportsFloat = 0.5, reduction: _ReducedOrBatch = "mean",
    weight: _Array | None = None, mask: _Mask | None = None
) -> _Number: ...
@overload
def quantile_loss(
    input: _Array, target: _Array, *, tau: SupportsFloat = 0.5, reduction: Literal["none"],
    weight: _Array | None = None, mask: _Mask | None = None
) -> _Array: ...
@overload
def quantile_loss(
    input: _Array, target: _Array, *, tau: SupportsFloat = 0.5, reduction: str = "mean", weight: _Array | None = None,
    mask: _Mask | None = None
) -> _Number | _Array: ...
@overload
def epsilon_insensitive_loss(
    input: Tensor, target: Tensor, *, eps: SupportsFloat = 0.1, reduction: str = "mean", weight: Tensor | None = None,
    mask: Tensor | None = None
) -> Tensor: ...
@overload
def epsilon_insensitive_loss(
    input: _Array, target: _Array, *, eps: SupportsFloat = 0.1, reduction: _ReducedOrBatch = "mean",
    weight: _Array | None = None, mask: _Mask | None = None
) -> _Number: ...
@overload
def epsilon_insensitive_loss(
    input: _Array, target: _Array, *, eps: SupportsFloat = 0.1, reduction: Literal["none"],
    weight: _Array | None = None, mask: _Mask | None = None
) -> _Array: ...
@overload
def epsilon_insensitive_loss(
    input: _Array, target: _Array, *, eps: SupportsFloat = 0.1, reduction: str = "mean", weight: _Array | None = None,
    mask: _Mask | None = None
) -> _Number | _Array: ...
@overload
def mape_loss(
    input: Tensor, target: Tensor, *, eps: SupportsFloat = 1e-07, reduction: str = "mean",
    weight: Tensor | None = None, mask: Tensor | None = None
) -> Tensor: ...
@overload
def mape_loss(
    input: _Array, target: _Array, *, eps: SupportsFloat = 1e-07, reduction: _ReducedOrBatch = "mean",
    weight: _Array | None = None, mask: _Mask | None = None
) -> _Number: ...
@overload
def mape_loss(
    input: _Array, target: _Array, *, eps: SupportsFloat = 1e-07, reduction: Literal["none"],
    weight: _Array | None = None, mask: _Mask | None = None
) -> _Array: ...
@overload
def mape_loss(
    input: _Array, target: _Array, *, eps: SupportsFloat = 1e-07, reduction: str = "mean",
    weight: _Array | None = None, mask: _Mask | None = None
) -> _Number | _Array: ...
@overload
def msle_loss(
    input: Tensor, target: Tensor, *, reduction: str = "mean", weight: Tensor | None = None,
    mask: Tensor | None = None
) -> Tensor: ...
@overload
def msle_loss(
    input: _Array, target: _Array, *, reduction: _ReducedOrBatch = "mean", weight: _Array | None = None,
    mask: _Mask | None = None
) -> _Number: ...
@overload
def msle_loss(
    input: _Array, target: _Array, *, reduction: Literal["none"], weight: _Array | None = None,
    mask: _Mask | None = None
) -> _Array: ...
@overload
def msle_loss(
    input: _Array, target: _Array, *, reduction: str = "mean", weight: _Array | None = None, mask: _Mask | None = None
) -> _Number | _Array: ...
@overload
def squared_hinge_loss(
    input: Tensor, target: Tensor, *, margin: SupportsFloat = 1.0, reduction: str = "mean",
    weight: Tensor | None = None, mask: Tensor | None = None
) -> Tensor: ...
@overload
def squared_hinge_loss(
    input: _Array, target: _Array, *, margin: SupportsFloat = 1.0, reduction: _ReducedOrBatch = "mean",
    weight: _Array | None = None, mask: _Mask | None = None
) -> _Number: ...
@overload
def squared_hinge_loss(
    input: _Array, target: _Array, *, margin: SupportsFloat = 1.0, reduction: Literal["none"],
    weight: _Array | None = None, mask: _Mask | None = None
) -> _Array: ...
@overload
def squared_hinge_loss(
    input: _Array, target: _Array, *, margin: SupportsFloat = 1.0, reduction: str = "mean",
    weight: _Array | None = None, mask: _Mask | None = None
) -> _Number | _Array: ...
@overload
def relative_entropy_loss(
    input: Tensor, target: Tensor, *, reduction: str = "mean", weight: Tensor | None = None,
    mask: Tensor | None = None
) -> Tensor: ...
@overload
def relative_entropy_loss(
    input: _Array, target: _Array, *, reduction: _ReducedOrBatch = "mean", weight: _Array | None = None,
    mask: _Mask | None = None
) -> _Number: ...
@overload
def relative_entropy_loss(
    input: _Array, target: _Array, *, reduction: Literal["none"], weight: _Array | None = None,
    mask: _Mask | None = None
) -> _Array: ...
@overload
def relative_entropy_loss(
    input: _Array, target: _Array, *, reduction: str = "mean", weight: _Array | None = None, mask: _Mask | None = None
) -> _Number | _Array: ...
@overload
def gamma_deviance_loss(
    input: Tensor, target: Tensor, *, reduction: str = "mean", weight: Tensor | None = None,
    mask: Tensor | None = None
) -> Tensor: ...
@overload
def gamma_deviance_loss(
    input: _Array, target: _Array, *, reduction: _ReducedOrBatch = "mean", weight: _Array | None = None,
    mask: _Mask | None = None
) -> _Number: ...
@overload
def gamma_deviance_loss(
    input: _Array, target: _Array, *, reduction: Literal["none"], weight: _Array | None = None,
    mask: _Mask | None = None
) -> _Array: ...
@overload
def gamma_deviance_loss(
    input: _Array, target: _Array, *, reduction: str = "mean", weight: _Array | None = None, mask: _Mask | None = None
) -> _Number | _Array: ...
@overload
def tweedie_deviance_loss(
    input: Tensor, target: Tensor, *, power: SupportsFloat = 1.5, reduction: str = "mean",
    weight: Tensor | None = None, mask: Tensor | None = None
) -> Tensor: ...
@overload
def tweedie_deviance_loss(
    input: _Array, target: _Array, *, power: SupportsFloat = 1.5, reduction: _ReducedOrBatch = "mean",
    weight: _Array | None = None, mask: _Mask | None = None
) -> _Number: ...
@overload
def tweedie_deviance_loss(
    input: _Array, target: _Array, *, power: SupportsFloat = 1.5, reduction: Literal["none"],
    weight: _Array | None = None, mask: _Mask | None = None
) -> _Array: ...
@overload
def tweedie_deviance_loss(
    input: _Array, target: _Array, *, power: SupportsFloat = 1.5, reduction: str = "mean",
    weight: _Array | None = None, mask: _Mask | None = None
) -> _Number | _Array: ...
