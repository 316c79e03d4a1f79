# Tensors to compute with: pairs of random operands, operands of any loss, leaves of a graph, weights that add up
# exactly, masks.
import oracle
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


def signs(shape):
    return torch.randint(0, 2, shape) * 2.0 - 1


def rates(shape):
    return torch.rand(shape) * 3 + 0.1


def shares(shape):
    """From 0 to 1, both among them."""
    return (torch.rand(shape) * 1.2 - 0.1).clamp(0, 1)


def probabilities(shape):
    """Without the ends, where logarithms and slopes are boundless."""
    return torch.rand(shape) * 0.96 + 0.02


#: What an operand is drawn from, by the numbers that it is made for.
DOMAINS = {"any": torch.randn, "positive": rates, "probability": shares, "sign": signs}
#: Of the losses that are not for any such numbers, or for more.
OTHER_DOMAINS = {
    "hinge_embedding": (torch.randn, lambda shape: signs(shape) * torch.randint(0, 5, shape).clamp(max=1)),
    "bce": (probabilities, shares),
    "relative_entropy": (probabilities, probabilities),
}


def operands_of(loss, shape=(3, 5), dtype=torch.float32, device="cpu", dtypes=None):
    """Input, target and a third operand or None, each in its type and in what the loss is for."""
    domains = OTHER_DOMAINS.get(loss) or [DOMAINS[name] for name in oracle.LOSSES[loss].domains]
    drawn = [draw(shape) for draw in domains]
    dtypes = dtypes or (dtype,) * 3
    found = [x.to(own).to(device) for x, own in zip(drawn, dtypes)]
    return found if len(found) == 3 else [*found, None]


def mask_of(shape, device="cpu", dtype=torch.bool):
    """About half; uint8 masks have other numbers than 1, too."""
    drawn = torch.randint(0, 4, shape, device=device)
    return drawn > 1 if dtype is torch.bool else (drawn // 2 * drawn).to(dtype)
