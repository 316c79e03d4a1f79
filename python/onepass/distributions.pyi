from typing import Any, SupportsFloat, overload

import numpy
from numpy.typing import NDArray
from torch import Tensor
from typing_extensions import TypeAlias

__all__ = ["js_div_with_logits", "kl_div_with_logits", "tv_distance_with_logits"]

_Array: TypeAlias = NDArray[numpy.floating[Any]]
_Mask: TypeAlias = NDArray[numpy.bool_] | NDArray[numpy.uint8]

@overload
def kl_div_with_logits(
    input: Tensor, target: Tensor, temperature: SupportsFloat = 1.0, reverse: bool = False,
    reduction: str = "mean", dim: int = -1, *,
    weight: Tensor | None = None, mask: Tensor | None = None, divisor: Tensor | float | None = None
) -> Tensor: ...
@overload
def kl_div_with_logits(
    input: _Array, target: _Array, temperature: SupportsFloat = 1.0, reverse: bool = False,
    reduction: str = "mean", dim: int = -1, *,
    weight: _Array | None = None, mask: _Mask | None = None, divisor: NDArray[Any] | float | None = None
) -> Any: ...
@overload
def js_div_with_logits(
    input: Tensor, target: Tensor, beta: SupportsFloat = 0.5, temperature: SupportsFloat = 1.0,
    reduction: str = "mean", dim: int = -1, *,
    weight: Tensor | None = None, mask: Tensor | None = None, divisor: Tensor | float | None = None
) -> Tensor: ...
@overload
def js_div_with_logits(
    input: _Array, target: _Array, beta: SupportsFloat = 0.5, temperature: SupportsFloat = 1.0,
    reduction: str = "mean", dim: int = -1, *,
    weight: _Array | None = None, mask: _Mask | None = None, divisor: NDArray[Any] | float | None = None
) -> Any: ...
@overload
def tv_distance_with_logits(
    input: Tensor, target: Tensor, temperature: SupportsFloat = 1.0,
    reduction: str = "mean", dim: int = -1, *,
    weight: Tensor | None = None, mask: Tensor | None = None, divisor: Tensor | float | None = None
) -> Tensor: ...
@overload
def tv_distance_with_logits(
    input: _Array, target: _Array, temperature: SupportsFloat = 1.0,
    reduction: str = "mean", dim: int = -1, *,
    weight: _Array | None = None, mask: _Mask | None = None, divisor: NDArray[Any] | float | None = None
) -> Any: ...
