from collections.abc import Sequence
from typing import SupportsFloat

import torch
from torch import Tensor
from torch.distributed import ProcessGroup

__all__ = ["loss", "vocab_parallel_cross_entropy"]

def loss(
    name: str, input: Tensor, target: Tensor, third: Tensor | None = None, *, first: int | None = None,
    total: int | None = None, reduction: str = "mean", weight: Tensor | None = None, mask: Tensor | None = None,
    divisor: SupportsFloat | Tensor | None = None, dim: int | None = None, averaged: bool = False,
    group: ProcessGroup | None = None, **parameters: SupportsFloat | None
) -> Tensor: ...

def vocab_parallel_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, *, ignore_index: int = -100,
    reduction: str = "mean", label_smoothing: float = 0.0, z_loss: float = 0.0, softcap: float | None = None,
    temperature: float = 1.0, divisor: SupportsFloat | Tensor | None = None, dtype: torch.dtype | None = None,
    classes: Sequence[int] | None = None, group: ProcessGroup | None = None
) -> Tensor: ...
