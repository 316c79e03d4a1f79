# Tensors to compute with: pairs of random operands, operands of any loss, leaves of a graph, weights that add up
# exactly, masks.
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


def counts(shape):
    return torch.randint(0, 6, shape).to(torch.float32)


def shares(shape):
    """From 0 to 1, both among them."""
    return (torch.rand(shape) * 1.2 - 0.1).clamp(0, 1)


#: Of those losses that are not for any numbers: what their operands are drawn from.
DOMAINS = {
    "msle": (rates, rates),
    "hinge_embedding": (torch.randn, lambda shape: signs(shape) * torch.randint(0, 5, shape).clamp(max=1)),
    "soft_margin": (torch.randn, signs),
    "margin_ranking": (torch.randn, torch.randn, signs),
    "bce": (lambda shape: torch.rand(shape) * 0.96 + 0.02, shares),
    "bce_with_logits": (torch.randn, shares),
    "bce_with_logits_pos_weight": (torch.randn, shares, rates),
    "focal": (torch.randn, shares),
    "focal_squared": (torch.randn, shares),
    "poisson_nll": (torch.randn, counts),
    "poisson_nll_full": (torch.randn, counts),
    "poisson_nll_rate": (rates, counts),
    "poisson_nll_rate_full": (rates, counts),
    "gaussian_nll": (torch.randn, torch.randn, lambda shape: torch.rand(shape) * 2 + 0.01),
    "kl_div": (lambda shape: -rates(shape), shares),
    "kl_div_log_target": (lambda shape: -rates(shape), lambda shape: -rates(shape)),
    "gamma_deviance": (rates, rates),
}


def operands_of(loss, shape=(3, 5), dtype=torch.float32, device="cpu", dtypes=None):
    """Input, target and a third operand or None, each in its type and in what the loss is for."""
    drawn = [draw(shape) for draw in DOMAINS.get(loss, (torch.randn, torch.randn))]
    dtypes = dtypes or (dtype,) * 3
    found = [x.to(own).to(device) for x, own in zip(drawn, dtypes)]
    return found if len(found) == 3 else [*found, None]


def mask_of(shape, device="cpu", dtype=torch.bool):
    """About half; uint8 masks have other numbers than 1, too."""
    drawn = torch.randint(0, 4, shape, device=device)
    return drawn > 1 if dtype is torch.bool else (drawn // 2 * drawn).to(dtype)
