"""Every loss as a user of PyTorch writes it: the peer in the benchmarks and in the tests of the package.

A function of torch.nn.functional where there is one, else the expression that is found in people's code, else the
catalogue's formula in PyTorch's operations. Of several expressions the one stands here that is quickest under
torch.compile, so that nobody is beaten by a clumsy peer.
"""

import functools
import math

import torch
import torch.nn.functional as F

from .. import _formula
from .._catalog import CATALOG
from .._torch_names import TORCH_NAMES

# ------------------------------------------------------------- what PyTorch lacks --

# The loss of each element, from its operands and all of its parameters.


def log_cosh(p, t):
    x = p - t
    return x + F.softplus(-2 * x) - math.log(2)


def charbonnier(p, t, eps):
    x = p - t
    return torch.sqrt(x * x + eps * eps)


def tukey_biweight(p, t, c):
    rest = 1 - (((p - t) / c) ** 2).clamp(max=1)
    return c * c / 6 * (1 - rest**3)


def quantile(p, t, tau):
    e = t - p
    return torch.maximum(tau * e, (tau - 1) * e)


def epsilon_insensitive(p, t, eps):
    return ((p - t).abs() - eps).clamp(min=0)


def mape(p, t, eps):
    return 100 * (p - t).abs() / t.abs().clamp(min=eps)


def msle(p, t):
    return F.mse_loss(torch.log1p(p), torch.log1p(t), reduction="none")


def hinge(p, t, margin):
    return torch.clamp(margin - p * t, min=0)


def squared_hinge(p, t, margin):
    return torch.clamp(margin - p * t, min=0).square()


def focal(p, t, alpha, gamma=2.0):
    """torchvision.ops.sigmoid_focal_loss."""
    probability = torch.sigmoid(p)
    cross_entropy = F.binary_cross_entropy_with_logits(p, t, reduction="none")
    right = probability * t + (1 - probability) * (1 - t)
    loss = cross_entropy * ((1 - right) ** gamma)
    return loss if alpha < 0 else (alpha * t + (1 - alpha) * (1 - t)) * loss


def gaussian_nll(p, t, v, full, eps):
    """F.gaussian_nll_loss looks at the variances on the host, which ends the graph of torch.compile."""
    v = v.clamp(min=eps)
    loss = 0.5 * (torch.log(v) + (p - t) ** 2 / v)
    return loss + 0.5 * math.log(2 * math.pi) if full else loss


def relative_entropy(p, t):
    """F.kl_div of the logarithm, as people write it."""
    return F.kl_div(torch.log(p), t, reduction="none")


def gamma_deviance(p, t):
    ratio = t / p
    return 2 * (ratio - 1 - torch.log(ratio))


def tweedie_deviance(p, t, power):
    """torchmetrics.functional.tweedie_deviance_score, of each element."""
    if power == 1:
        return 2 * (torch.xlogy(t, t / p) + p - t)
    if power == 2:
        return gamma_deviance(p, t)
    term = t.pow(2 - power) / ((1 - power) * (2 - power))
    return 2 * (term - t * p.pow(1 - power) / (1 - power) + p.pow(2 - power) / (2 - power))


EXPRESSIONS = {
    "log_cosh": log_cosh,
    "charbonnier": charbonnier,
    "tukey_biweight": tukey_biweight,
    "quantile": quantile,
    "epsilon_insensitive": epsilon_insensitive,
    "mape": mape,
    "msle": msle,
    "hinge": hinge,
    "squared_hinge": squared_hinge,
    "focal": focal,
    "focal_squared": focal,
    "gaussian_nll": gaussian_nll,
    "relative_entropy": relative_entropy,
    "gamma_deviance": gamma_deviance,
    "tweedie_deviance": tweedie_deviance,
}

# -------------------------------------------------------------------- the losses --


def default_parameters(loss):
    return tuple(parameter["default"] for parameter in CATALOG[loss]["parameters"])


def by_function(loss, parameters=None, **more):
    """PyTorch's own function of a loss, as a function of its operands; without parameters it has its own defaults."""
    name = TORCH_NAMES[loss]
    function = getattr(F, name.function)
    given = {**name.fixed, **dict(zip(name.parameters, parameters or ())), **more}
    if name.third is not None:
        return lambda p, t, v: function(p, t, **{name.third: v}, **given)
    return functools.partial(function, **given) if given else function


def by_expression(loss, parameters=None):
    """The loss of each element, as a function of the operands: the expression above, or the catalogue's formula."""
    values = default_parameters(loss) if parameters is None else parameters
    if loss in EXPRESSIONS:
        expression = EXPRESSIONS[loss]
        return lambda *operands: expression(*operands, *values)
    names = [parameter["name"] for parameter in CATALOG[loss]["parameters"]]
    formula = _formula.translate(CATALOG[loss]["value"], names)
    return lambda p, t, v=None: formula(p, t, v, *values)


def mean_of(loss, parameters=None):
    """What a user compiles for the mean of a loss: a function of its operands, with nothing left to look up. Many losses
    share its code, by which torch.compile keeps what it compiled: torch._dynamo.reset() between them."""
    if loss in EXPRESSIONS or loss not in TORCH_NAMES:
        each = by_expression(loss, parameters)
        return lambda *operands: each(*operands).mean()
    return by_function(loss, parameters)


# -------------------------------------------------------------- weights and masks --

# By hand: a sum, and what a mean divides it by. The mask is applied to the terms by torch.where, which torch.compile
# fuses; indexing by the mask would not.


def weighted_mse(p, t, weight):
    return (weight * (p - t) ** 2).sum(), weight.sum()


def masked_mse(p, t, mask):
    return torch.where(mask, (p - t) ** 2, 0).sum(), mask.sum()


def weighted_and_masked_mse(p, t, weight, mask):
    weight = torch.where(mask, weight, 0)
    return torch.where(mask, weight * (p - t) ** 2, 0).sum(), weight.sum()


def masked_bce_with_logits(p, t, weight, mask):
    loss = weight * F.binary_cross_entropy_with_logits(p, t, reduction="none")
    return torch.where(mask, loss, 0).sum(), mask.sum()  # PyTorch's weights of this loss do not count in a mean


# ---------------------------------------------------------------------- the data --

# Each of these makes an operand of numbers that are uniform in [-2, 2).
DATA = {
    "any": lambda u: u,
    "sign": lambda u: torch.where(u < 0, -1.0, 1.0).to(u.dtype),
    "label": lambda u: torch.where(u < 0, 0.0, 1.0).to(u.dtype),
    "probability": lambda u: 0.24 * u + 0.5,  # without the ends, where logarithms and slopes are boundless
    "log_probability": lambda u: u - 2.01,
    "positive": lambda u: 0.5 * u + 1.5,
    "count": lambda u: torch.floor(2 * u + 4),
}

_OPERANDS = {
    "mape": ("positive", "positive"),
    "msle": ("positive", "positive"),
    "hinge": ("any", "sign"),
    "squared_hinge": ("any", "sign"),
    "hinge_embedding": ("any", "sign"),
    "soft_margin": ("any", "sign"),
    "margin_ranking": ("any", "any", "sign"),
    "bce": ("probability", "label"),
    "bce_with_logits": ("any", "label"),
    "bce_with_logits_pos_weight": ("any", "label", "positive"),
    "focal": ("any", "label"),
    "focal_squared": ("any", "label"),
    "poisson_nll": ("any", "count"),
    "poisson_nll_full": ("any", "count"),
    "poisson_nll_rate": ("positive", "count"),
    "poisson_nll_rate_full": ("positive", "count"),
    "gaussian_nll": ("any", "any", "positive"),
    "kl_div": ("log_probability", "probability"),
    "kl_div_log_target": ("log_probability", "log_probability"),
    "relative_entropy": ("probability", "probability"),
    "gamma_deviance": ("positive", "positive"),
    "tweedie_deviance": ("positive", "positive"),
}


def operands_of(loss, uniform):
    """Data that suit a loss, made of as many uniform tensors as it has operands, or more."""
    kinds = _OPERANDS.get(loss, ("any",) * len(CATALOG[loss]["operands"]))
    return [DATA[kind](numbers) for kind, numbers in zip(kinds, uniform)]
