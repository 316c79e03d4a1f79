# Tensors to compute with: pairs of random operands, leaves of a graph, weights that add up exactly.
import torch

from agreement import DTYPES

FLOATS = list(DTYPES.values())


def pair(shape=(3, 5), dtype=torch.float32, device="cpu", other=None):
    """An input and a target; `other` is the target's type where it is not the input's."""
    return torch.randn(shape, device=device).to(dtype), torch.randn(shape, device=device).to(other or dtype)


def leaves(*tensors):
    return [tensor.detach().clone().requires_grad_() for tensor in tensors]


def dyadic(shape, dtype=torch.float32, device="cpu"):
    """Weights whose sum is exact in any order, so that a weighted mean's gradient is known to the bit."""
    return (torch.randint(1, 9, shape) / 8).to(dtype).to(device)
