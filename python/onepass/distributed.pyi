from typing import SupportsFloat

from torch import Tensor
from torch.distributed import ProcessGroup

__all__ = ["loss"]

def loss(
    name: str, input: Tensor, target: Tensor, third: Tensor | None = None, *, first: int | None = None,
    total: int | None = None, reduction: str = "mean", weight: Tensor | None = None, mask: Tensor | None = None,
    divisor: SupportsFloat | None = None, dim: int | None = None, averaged: bool = False,
    group: ProcessGroup | None = None, **parameters: SupportsFloat | None
) -> Tensor: ...
