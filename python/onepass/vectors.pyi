from collections.abc import Callable
from typing import Any, SupportsFloat, overload

import numpy
from numpy.typing import NDArray
from torch import Tensor
from typing_extensions import TypeAlias

__all__ = ["cosine_embedding_loss", "cosine_similarity", "pairwise_distance", "triplet_margin_loss",
           "triplet_margin_with_distance_loss"]

_Array: TypeAlias = NDArray[numpy.floating[Any]]
_Mask: TypeAlias = NDArray[numpy.bool_] | NDArray[numpy.uint8]

@overload
def cosine_similarity(
    x1: Tensor, x2: Tensor, dim: int = 1, eps: SupportsFloat = 1e-08, *, weight: Tensor | None = None,
    mask: Tensor | None = None
) -> Tensor: ...
@overload
def cosine_similarity(
    x1: _Array, x2: _Array, dim: int = 1, eps: SupportsFloat = 1e-08, *, weight: _Array | None = None,
    mask: _Mask | None = None
) -> Any: ...
@overload
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: SupportsFloat = 2.0, eps: SupportsFloat = 1e-06, keepdim: bool = False, *,
    weight: Tensor | None = None, mask: Tensor | None = None
) -> Tensor: ...
@overload
def pairwise_distance(
    x1: _Array, x2: _Array, p: SupportsFloat = 2.0, eps: SupportsFloat = 1e-06, keepdim: bool = False, *,
    weight: _Array | None = None, mask: _Mask | None = None
) -> Any: ...
@overload
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: SupportsFloat = 0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean", *, weight: Tensor | None = None, mask: Tensor | None = None,
    divisor: Tensor | float | None = None
) -> Tensor: ...
@overload
def cosine_embedding_loss(
    input1: _Array, input2: _Array, target: NDArray[Any], margin: SupportsFloat = 0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean", *, weight: _Array | None = None, mask: _Mask | None = None,
    divisor: NDArray[Any] | float | None = None
) -> Any: ...
@overload
def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: SupportsFloat = 1.0, p: SupportsFloat = 2,
    eps: SupportsFloat = 1e-06, swap: bool = False, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", *, weight: Tensor | None = None, mask: Tensor | None = None,
    divisor: Tensor | float | None = None
) -> Tensor: ...
@overload
def triplet_margin_loss(
    anchor: _Array, positive: _Array, negative: _Array, margin: SupportsFloat = 1.0, p: SupportsFloat = 2,
    eps: SupportsFloat = 1e-06, swap: bool = False, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", *, weight: _Array | None = None, mask: _Mask | None = None,
    divisor: NDArray[Any] | float | None = None
) -> Any: ...
def triplet_margin_with_distance_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, margin: SupportsFloat = 1.0,
    swap: bool = False, reduction: str = "mean"
) -> Tensor: ...
