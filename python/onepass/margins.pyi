from typing import SupportsFloat

from torch import Tensor

__all__ = ["multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss"]

def multi_margin_loss(
    input: Tensor, target: Tensor, p: int = 1, margin: SupportsFloat = 1.0, weight: Tensor | None = None,
    size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Tensor: ...
def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean"
) -> Tensor: ...
def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean"
) -> Tensor: ...
