"""Every loss of the library in PyTorch's words: what a user of PyTorch writes for its mean, and data that suit it.

A function of torch.nn.functional where there is one, else the formula as it is found in people's code. Where the two
differ in speed under torch.compile the quicker one stands here, so that nobody is beaten by a clumsy peer.
"""

import dataclasses
import math
from typing import Callable

import torch
import torch.nn.functional as F

# -------------------------------------------------------------------- the data --

# Each of these makes an operand of numbers that are uniform in [-2, 2).
DATA = {
    "any": lambda u: u,
    "sign": lambda u: torch.where(u < 0, -1.0, 1.0),
    "label": lambda u: torch.where(u < 0, 0.0, 1.0),
    "probability": lambda u: 0.24 * u + 0.5,  # without the ends, where logarithms and slopes are boundless
    "log_probability": lambda u: u - 2.01,
    "positive": lambda u: 0.5 * u + 1.5,
    "count": lambda u: torch.floor(2 * u + 4),
}


# ------------------------------------------------------------------ the formulas --


def log_cosh(p, t):
    x = p - t
    return (x + F.softplus(-2 * x) - math.log(2)).mean()


def charbonnier(p, t, eps=1e-3):
    x = p - t
    return torch.sqrt(x * x + eps * eps).mean()


def quantile(p, t, tau=0.5):
    e = t - p
    return torch.maximum(tau * e, (tau - 1) * e).mean()


def epsilon_insensitive(p, t, eps=0.1):
    return ((p - t).abs() - eps).clamp(min=0).mean()


def mape(p, t, eps=1e-7):
    return 100 * ((p - t).abs() / t.abs().clamp(min=eps)).mean()


def msle(p, t):
    return F.mse_loss(torch.log1p(p), torch.log1p(t))


def hinge(p, t, margin=1.0):
    return torch.clamp(margin - p * t, min=0).mean()


def squared_hinge(p, t, margin=1.0):
    return torch.clamp(margin - p * t, min=0).square().mean()


def bce_with_logits_pos_weight(p, t, v):
    return F.binary_cross_entropy_with_logits(p, t, pos_weight=v)


def focal(p, t, alpha=0.25, gamma=2.0):
    """torchvision.ops.sigmoid_focal_loss, of which there is no copy in PyTorch itself."""
    probability = torch.sigmoid(p)
    cross_entropy = F.binary_cross_entropy_with_logits(p, t, reduction="none")
    right = probability * t + (1 - probability) * (1 - t)
    loss = cross_entropy * ((1 - right) ** gamma)
    if alpha >= 0:
        loss = (alpha * t + (1 - alpha) * (1 - t)) * loss
    return loss.mean()


def gaussian_nll(p, t, v, eps=1e-6):
    """F.gaussian_nll_loss looks at the variances on the host, which ends the graph of torch.compile."""
    v = v.clamp(min=eps)
    return (0.5 * (torch.log(v) + (p - t) ** 2 / v)).mean()


def kl_div(log_target):
    """By its sum, since its mean warns that it will mean something else one day."""
    return lambda p, t: F.kl_div(p, t, reduction="sum", log_target=log_target) / p.numel()


def poisson_nll(log_input, full):
    return lambda p, t: F.poisson_nll_loss(p, t, log_input=log_input, full=full)


def gamma_deviance(p, t):
    ratio = t / p
    return 2 * (ratio - 1 - torch.log(ratio)).mean()


# ---------------------------------------------------------------------- the table --


@dataclasses.dataclass
class Words:
    """A loss: PyTorch's function of its operands, the data of each, and what is not the default in the library."""

    function: Callable
    data: tuple = ("any", "any")
    parameters: tuple = ()


WORDS = {
    "mse": Words(F.mse_loss),
    "l1": Words(F.l1_loss),
    "smooth_l1": Words(F.smooth_l1_loss),
    "huber": Words(F.huber_loss),
    "log_cosh": Words(log_cosh),
    "charbonnier": Words(charbonnier),
    "quantile": Words(lambda p, t: quantile(p, t, 0.9), parameters=(0.9,)),
    "epsilon_insensitive": Words(epsilon_insensitive),
    "mape": Words(mape, ("positive", "positive")),
    "msle": Words(msle, ("positive", "positive")),
    "hinge": Words(hinge, ("any", "sign")),
    "squared_hinge": Words(squared_hinge, ("any", "sign")),
    "hinge_embedding": Words(F.hinge_embedding_loss, ("any", "sign")),
    "soft_margin": Words(F.soft_margin_loss, ("any", "sign")),
    "margin_ranking": Words(F.margin_ranking_loss, ("any", "any", "sign")),
    "bce": Words(F.binary_cross_entropy, ("probability", "label")),
    "bce_with_logits": Words(F.binary_cross_entropy_with_logits, ("any", "label")),
    "bce_with_logits_pos_weight": Words(bce_with_logits_pos_weight, ("any", "label", "positive")),
    "focal": Words(lambda p, t: focal(p, t, gamma=1.5), ("any", "label"), parameters=(0.25, 1.5)),
    "focal_squared": Words(focal, ("any", "label")),
    "poisson_nll": Words(poisson_nll(True, False), ("any", "count")),
    "poisson_nll_full": Words(poisson_nll(True, True), ("any", "count")),
    "poisson_nll_rate": Words(poisson_nll(False, False), ("positive", "count")),
    "poisson_nll_rate_full": Words(poisson_nll(False, True), ("positive", "count")),
    "gaussian_nll": Words(gaussian_nll, ("any", "any", "positive")),
    "kl_div": Words(kl_div(False), ("log_probability", "probability")),
    "kl_div_log_target": Words(kl_div(True), ("log_probability", "log_probability")),
    "gamma_deviance": Words(gamma_deviance, ("positive", "positive")),
}

# -------------------------------------------------------- weights and masks by hand --

# A sum and what a mean divides it by. The mask is applied to the terms by torch.where, which torch.compile fuses;
# indexing by the mask would not.


def weighted_mse(p, t, weight):
    return (weight * (p - t) ** 2).sum(), weight.sum()


def masked_mse(p, t, mask):
    return torch.where(mask, (p - t) ** 2, 0).sum(), mask.sum()


def masked_bce_with_logits(p, t, weight, mask):
    loss = weight * F.binary_cross_entropy_with_logits(p, t, reduction="none")
    return torch.where(mask, loss, 0).sum(), torch.where(mask, weight, 0).sum()
