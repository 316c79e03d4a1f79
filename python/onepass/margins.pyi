from typing import Any, SupportsFloat, overload

import numpy
from numpy.typing import NDArray
from torch import Tensor
from typing_extensions import TypeAlias

__all__ = ["multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss"]

_Array: TypeAlias = NDArray[numpy.floating[Any]]
_Mask: TypeAlias = NDArray[numpy.bool_] | NDArray[numpy.uint8]

@overload
def multi_margin_loss(
    input: Tensor, target: Tensor, p: int = 1, margin: SupportsFloat = 1.0, weight: Tensor | None = None,
    size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean", *,
    row_weight: Tensor | None = None, mask: Tensor | None = None, divisor: Tensor | float | None = None
) -> Tensor: ...
@overload
def multi_margin_loss(
    input: _Array, target: NDArray[numpy.integer[Any]], p: int = 1, margin: SupportsFloat = 1.0,
    weight: _Array | None = None, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
    *, row_weight: _Array | None = None, mask: _Mask | None = None, divisor: float | None = None
) -> Any: ...
@overload
def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", *, weight: Tensor | None = None, mask: Tensor | None = None,
    divisor: Tensor | float | None = None
) -> Tensor: ...
@overload
def multilabel_margin_loss(
    input: _Array, target: NDArray[numpy.integer[Any]], size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", *, weight: _Array | None = None, mask: _Mask | None = None, divisor: float | None = None
) -> Any: ...
@overload
def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean"
) -> Tensor: ...
@overload
def multilabel_soft_margin_loss(
    input: _Array, target: NDArray[Any], weight: _Array | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean"
) -> Any: ...
