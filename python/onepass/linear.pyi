from typing import Any, SupportsFloat

import torch
from torch import Tensor

__all__ = ["causal_lm_loss", "linear_cross_entropy", "linear_log_prob", "nt_xent_loss", "supcon_loss"]

def linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
    weight: Tensor | None = None, reduction: str = "mean", ignore_index: int | None = None,
    label_smoothing: float = 0.0, options: Any = None, z_loss: SupportsFloat = 0.0,
    softcap: SupportsFloat | None = None, temperature: SupportsFloat = 1.0, num_items: Tensor | float | None = None,
    num_ignored: int | None = None, dtype: torch.dtype | None = None, chunk_rows: int | None = None
) -> Tensor: ...
def linear_log_prob(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
    temperature: SupportsFloat = 1.0, softcap: SupportsFloat | None = None, ignore_index: int = -100,
    num_ignored: int | None = None, dtype: torch.dtype | None = None, chunk_rows: int | None = None
) -> Tensor: ...
def nt_xent_loss(
    input1: Tensor, input2: Tensor, *, temperature: SupportsFloat = 0.5, reduction: str = "mean",
    normalize: bool = True, dtype: torch.dtype | None = None, chunk_rows: int | None = None
) -> Tensor: ...
def supcon_loss(
    input: Tensor, labels: Tensor, *, temperature: SupportsFloat = 0.1, reduction: str = "mean",
    normalize: bool = True, dtype: torch.dtype | None = None, chunk_rows: int | None = None
) -> Tensor: ...
def causal_lm_loss(
    logits: Tensor, labels: Tensor, vocab_size: int, num_items_in_batch: Tensor | float | None = None,
    ignore_index: int = -100, shift_labels: Tensor | None = None, **kwargs: Any
) -> Tensor: ...
