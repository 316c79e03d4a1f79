from typing import Any, SupportsFloat

import torch
from torch import Tensor
from torch.nn.modules.loss import _Loss

__all__ = ["LinearCrossEntropyLoss", "NTXentLoss", "SupConLoss"]

class LinearCrossEntropyLoss(_Loss):
    num_classes: int
    out_features: tuple[int, ...]
    weight: Tensor | None
    ignore_index: int | None
    label_smoothing: float
    options: Any
    z_loss: SupportsFloat
    softcap: SupportsFloat | None
    temperature: SupportsFloat
    loss_dtype: torch.dtype | None
    chunk_rows: int | None
    linear: torch.nn.Linear
    def __init__(
        self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (), bias: bool = False,
        device: torch.device | str | None = None, dtype: torch.dtype | None = None, reduction: str = "mean",
        weight: Tensor | None = None, ignore_index: int | None = None, label_smoothing: float = 0.0,
        options: Any = None, z_loss: SupportsFloat = 0.0, softcap: SupportsFloat | None = None,
        temperature: SupportsFloat = 1.0, loss_dtype: torch.dtype | None = None, chunk_rows: int | None = None
    ) -> None: ...
    def forward(
        self, input: Tensor, target: Tensor, *, num_items: Tensor | float | None = None, num_ignored: int | None = None
    ) -> Tensor: ...
    def __call__(
        self, input: Tensor, target: Tensor, *, num_items: Tensor | float | None = None, num_ignored: int | None = None
    ) -> Tensor: ...

class NTXentLoss(_Loss):
    temperature: SupportsFloat
    normalize: bool
    def __init__(
        self, temperature: SupportsFloat = 0.5, reduction: str = "mean", normalize: bool = True
    ) -> None: ...
    def forward(self, input1: Tensor, input2: Tensor) -> Tensor: ...
    def __call__(self, input1: Tensor, input2: Tensor) -> Tensor: ...

class SupConLoss(_Loss):
    temperature: SupportsFloat
    normalize: bool
    def __init__(
        self, temperature: SupportsFloat = 0.1, reduction: str = "mean", normalize: bool = True
    ) -> None: ...
    def forward(self, input: Tensor, labels: Tensor) -> Tensor: ...
    def __call__(self, input: Tensor, labels: Tensor) -> Tensor: ...
