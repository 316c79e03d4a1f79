from typing import Any, Literal, SupportsFloat, overload

import numpy
from numpy.typing import NDArray
from torch import Tensor
from typing_extensions import TypeAlias

__all__ = ["dice_loss", "jaccard_loss", "tversky_loss"]

_Array: TypeAlias = NDArray[numpy.floating[Any]]
_Mask: TypeAlias = NDArray[numpy.bool_] | NDArray[numpy.uint8]
_Mode: TypeAlias = Literal["binary", "multilabel", "multiclass"]
_Per: TypeAlias = Literal["batch", "class", "sample", "sample_class"]

@overload
def dice_loss(
    input: Tensor, target: Tensor, *, mode: _Mode = "binary", from_logits: bool = True, per: _Per = "class",
    smooth: SupportsFloat = 0.0, eps: SupportsFloat = 1e-07, ignore_index: int | None = None,
    skip_absent: bool = False, reduction: str = "mean", weight: Tensor | None = None, mask: Tensor | None = None,
    divisor: Tensor | float | None = None
) -> Tensor: ...
@overload
def dice_loss(
    input: _Array, target: NDArray[Any], *, mode: _Mode = "binary", from_logits: bool = True, per: _Per = "class",
    smooth: SupportsFloat = 0.0, eps: SupportsFloat = 1e-07, ignore_index: int | None = None,
    skip_absent: bool = False, reduction: str = "mean", weight: _Array | None = None, mask: _Mask | None = None,
    divisor: NDArray[Any] | float | None = None
) -> Any: ...
@overload
def jaccard_loss(
    input: Tensor, target: Tensor, *, mode: _Mode = "binary", from_logits: bool = True, per: _Per = "class",
    smooth: SupportsFloat = 0.0, eps: SupportsFloat = 1e-07, ignore_index: int | None = None,
    skip_absent: bool = False, reduction: str = "mean", weight: Tensor | None = None, mask: Tensor | None = None,
    divisor: Tensor | float | None = None
) -> Tensor: ...
@overload
def jaccard_loss(
    input: _Array, target: NDArray[Any], *, mode: _Mode = "binary", from_logits: bool = True, per: _Per = "class",
    smooth: SupportsFloat = 0.0, eps: SupportsFloat = 1e-07, ignore_index: int | None = None,
    skip_absent: bool = False, reduction: str = "mean", weight: _Array | None = None, mask: _Mask | None = None,
    divisor: NDArray[Any] | float | None = None
) -> Any: ...
@overload
def tversky_loss(
    input: Tensor, target: Tensor, *, mode: _Mode = "binary", from_logits: bool = True, per: _Per = "class",
    alpha: SupportsFloat = 0.5, beta: SupportsFloat = 0.5, smooth: SupportsFloat = 0.0, eps: SupportsFloat = 1e-07,
    ignore_index: int | None = None, skip_absent: bool = False, reduction: str = "mean", weight: Tensor | None = None,
    mask: Tensor | None = None, divisor: Tensor | float | None = None
) -> Tensor: ...
@overload
def tversky_loss(
    input: _Array, target: NDArray[Any], *, mode: _Mode = "binary", from_logits: bool = True, per: _Per = "class",
    alpha: SupportsFloat = 0.5, beta: SupportsFloat = 0.5, smooth: SupportsFloat = 0.0, eps: SupportsFloat = 1e-07,
    ignore_index: int | None = None, skip_absent: bool = False, reduction: str = "mean", weight: _Array | None = None,
    mask: _Mask | None = None, divisor: NDArray[Any] | float | None = None
) -> Any: ...
