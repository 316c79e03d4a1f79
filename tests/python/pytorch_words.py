# Each loss in PyTorch's own words, with one signature for all: what ours stand beside.
# F.mse_loss knows weights from 2.6 on; before, and for losses that PyTorch lacks, they are spelled out here.
# Old versions have no kernels for some 16-bit types on the CPU; where that is so is tried, not assumed.
#
# LOSSES are the three that every test is run for; ALL are the library's, which are sampled more thinly.
import functools
import inspect
import warnings

import onepass
import oracle
import torch
import torch.nn.functional as F

ALL = oracle.LOSSES
LOSSES = ["mse", "smooth_l1", "hinge"]
WEIGHTED = ["mse", "hinge"]
REDUCTIONS = ["mean", "sum", "none"]
KNOWS_WEIGHTS = "weight" in inspect.signature(F.mse_loss).parameters

#: Of each loss the function that has it, what is fixed in that function, and where a third operand goes.
FUNCTIONS = {
    "mse": ("mse_loss", {}),
    "l1": ("l1_loss", {}),
    "smooth_l1": ("smooth_l1_loss", {}),
    "huber": ("huber_loss", {}),
    "log_cosh": ("log_cosh_loss", {}),
    "charbonnier": ("charbonnier_loss", {}),
    "quantile": ("quantile_loss", {}),
    "epsilon_insensitive": ("epsilon_insensitive_loss", {}),
    "mape": ("mape_loss", {}),
    "msle": ("msle_loss", {}),
    "hinge": ("hinge_loss", {}),
    "squared_hinge": ("squared_hinge_loss", {}),
    "hinge_embedding": ("hinge_embedding_loss", {}),
    "soft_margin": ("soft_margin_loss", {}),
    "margin_ranking": ("margin_ranking_loss", {}),
    "bce": ("binary_cross_entropy", {}),
    "bce_with_logits": ("binary_cross_entropy_with_logits", {}),
    "bce_with_logits_pos_weight": ("binary_cross_entropy_with_logits", {}),
    "focal": ("sigmoid_focal_loss", {}),
    "focal_squared": ("sigmoid_focal_loss", {}),
    "poisson_nll": ("poisson_nll_loss", {}),
    "poisson_nll_full": ("poisson_nll_loss", {"full": True}),
    "poisson_nll_rate": ("poisson_nll_loss", {"log_input": False}),
    "poisson_nll_rate_full": ("poisson_nll_loss", {"log_input": False, "full": True}),
    "gaussian_nll": ("gaussian_nll_loss", {}),
    "kl_div": ("kl_div", {}),
    "kl_div_log_target": ("kl_div", {"log_target": True}),
    "gamma_deviance": ("gamma_deviance_loss", {}),
}
OURS = {loss: getattr(onepass, function) for loss, (function, _) in FUNCTIONS.items()}
#: Those that PyTorch has a function for.
PYTORCHS = [loss for loss, (function, _) in FUNCTIONS.items() if hasattr(F, function)]
PARAMETER_NAMES = {
    "smooth_l1": ("beta",),
    "huber": ("delta",),
    "charbonnier": ("eps",),
    "quantile": ("tau",),
    "epsilon_insensitive": ("eps",),
    "mape": ("eps",),
    "hinge": ("margin",),
    "squared_hinge": ("margin",),
    "hinge_embedding": ("margin",),
    "margin_ranking": ("margin",),
    "focal": ("alpha", "gamma"),
    "focal_squared": ("alpha",),
    "poisson_nll_rate": ("eps",),
    "poisson_nll_rate_full": ("eps",),
    "gaussian_nll": ("full", "eps"),
}
#: Parameters that are not the defaults, to be tried.
OTHER_PARAMETERS = {
    "smooth_l1": 0.25,
    "huber": 0.25,
    "charbonnier": 0.5,
    "quantile": 0.8,
    "epsilon_insensitive": 0.5,
    "mape": 0.25,
    "hinge": -0.5,
    "squared_hinge": 0.5,
    "hinge_embedding": 0.25,
    "margin_ranking": 0.25,
    "focal": (-1.0, 1.5),
    "focal_squared": 0.75,
    "poisson_nll_rate": 0.125,
    "poisson_nll_rate_full": 0.125,
    "gaussian_nll": (1.0, 0.25),
}


def options(loss, parameter=None, weight=None, mask=None):
    """The keyword arguments that a loss's function has for its parameters, a weight and a mask."""
    given = dict(FUNCTIONS[loss][1])
    if parameter is not None:
        values = parameter if isinstance(parameter, tuple) else (parameter,)
        given.update(zip(PARAMETER_NAMES.get(loss, ()), values))
    return {**given, **({} if weight is None else {"weight": weight}), **({} if mask is None else {"mask": mask})}


def ours(loss, input, target, reduction="mean", parameter=None, weight=None, third=None, mask=None, **more):
    """Our function of a loss, asked in one way for all."""
    given = {**options(loss, parameter, weight, mask), **more}
    if loss == "bce_with_logits_pos_weight":
        return OURS[loss](input, target, pos_weight=third, reduction=reduction, **given)
    return OURS[loss](*(x for x in (input, target, third) if x is not None), reduction=reduction, **given)


def theirs(loss, input, target, reduction="mean", parameter=None, weight=None, third=None, mask=None):
    """The same in PyTorch's words."""
    if weight is None and mask is None and loss in PYTORCHS and loss != "hinge":
        return by_function(loss, input, target, reduction, parameter, third)
    if loss == "mse" and KNOWS_WEIGHTS and mask is None:
        return F.mse_loss(input, target, reduction=reduction, weight=weight)
    return reduce(loss, each(loss, input, target, parameter, third), reduction, weight, mask)


def by_function(loss, input, target, reduction, parameter=None, third=None):
    function, given = getattr(F, FUNCTIONS[loss][0]), options(loss, parameter)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="reduction: 'mean' divides")
        if loss == "bce_with_logits_pos_weight":
            return function(input, target, pos_weight=third, reduction=reduction, **given)
        return function(*(x for x in (input, target, third) if x is not None), reduction=reduction, **given)


def each(loss, p, t, parameter=None, third=None):
    """Every element's loss, in PyTorch's operations where it has no function."""
    if loss in PYTORCHS:
        return by_function(loss, p, t, "none", parameter, third)
    values = oracle.DEFAULTS.get(loss, ()) if parameter is None else parameter
    values = values if isinstance(values, tuple) else (values,)
    return WORDS[loss](p, t, *values)


def focal(p, t, alpha, gamma=2):
    """As torchvision.ops.sigmoid_focal_loss has it."""
    entropy = F.binary_cross_entropy_with_logits(p, t, reduction="none")
    right = torch.sigmoid(p) * t + (1 - torch.sigmoid(p)) * (1 - t)
    value = entropy * ((1 - right) ** gamma)
    return value if alpha < 0 else (alpha * t + (1 - alpha) * (1 - t)) * value


WORDS = {
    "hinge": lambda p, t, margin: torch.clamp(margin - p * t, min=0),
    "log_cosh": lambda p, t: (p - t).abs() + torch.log1p(torch.exp(-2 * (p - t).abs())) - 0.6931471805599453,
    "charbonnier": lambda p, t, eps: torch.sqrt((p - t) ** 2 + eps**2),
    "quantile": lambda p, t, tau: torch.maximum(tau * (t - p), (tau - 1) * (t - p)),
    "epsilon_insensitive": lambda p, t, eps: torch.clamp(torch.abs(p - t) - eps, min=0),
    "mape": lambda p, t, eps: 100 * (p - t).abs() / t.abs().clamp(min=eps),
    "msle": lambda p, t: (torch.log1p(p) - torch.log1p(t)) ** 2,
    "squared_hinge": lambda p, t, margin: torch.clamp(margin - p * t, min=0) ** 2,
    "gamma_deviance": lambda p, t: 2 * (t / p - 1 - torch.log(t / p)),
    "focal": focal,
    "focal_squared": focal,
}


def reduce(loss, terms, reduction, weight=None, mask=None):
    """Terms as the loss's function reduces them; only those that the mask leaves are ever looked at."""
    dtype = terms.dtype
    if mask is not None:
        mask = (mask != 0).expand(terms.shape)
    weight = None if weight is None else weight.expand(terms.shape) if mask is not None else weight
    if mask is not None and reduction != "none":
        batch = terms.shape[0] if terms.dim() else 1
        terms, weight = terms[mask], None if weight is None else weight[mask]
    else:
        batch = terms.shape[0] if terms.dim() else 1
    terms = terms if weight is None else terms * weight
    if loss.startswith("bce"):
        terms = terms.to(dtype)
    if reduction == "none":
        return terms if mask is None else torch.where(mask, terms, 0)
    if reduction == "sum":
        return terms.sum()
    if reduction == "batchmean":
        return terms.sum() / batch
    return terms.mean() if weight is None or loss in oracle.MEANS_OF_ALL else terms.sum() / weight.sum()


@functools.lru_cache(maxsize=None)
def pytorch_has(loss, dtype, device, backward):
    """Whether this PyTorch's own function takes a type on a device, forward or backward, too; tried once."""
    operand = torch.ones(2, dtype=dtype, device=device, requires_grad=backward)
    try:
        value = theirs(loss, operand, operand)
        if backward:
            value.backward()
    except RuntimeError as error:
        if "not implemented for" not in str(error):
            raise
        return False
    return True


def by_float32(function):
    """A function of tensors of one type, computed in float32 and rounded to the type at the end."""
    return lambda *tensors, **given: function(*(x.float() for x in tensors), **given).to(tensors[0].dtype)


def theirs_of_any_type(loss, input, target, reduction="mean"):
    """Theirs for operands of one type; by way of float32 where this PyTorch has no kernel for the type."""
    backward = input.requires_grad or target.requires_grad
    function = functools.partial(theirs, loss, reduction=reduction)
    has = pytorch_has(loss, input.dtype, input.device.type, backward)
    return (function if has else by_float32(function))(input, target)


def both(loss, *arguments, **given):
    """Ours and theirs of the same call."""
    return ours(loss, *arguments, **given), theirs(loss, *arguments, **given)


def gradients(function, loss, input, target, upstream=None, wanted=(True, True, True), third=None, **given):
    """A loss and its gradients by autograd, from fresh leaves; with a third operand also that for it."""
    leaves = [
        tensor.detach().clone(memory_format=torch.preserve_format).requires_grad_(want)
        for tensor, want in zip((input, target, third), wanted)
        if tensor is not None
    ]
    more = {} if third is None else {"third": leaves[2]}
    value = function(loss, *leaves[:2], **more, **given)
    value.backward(torch.ones_like(value) if upstream is None else upstream)
    return value.detach(), *(leaf.grad for leaf in leaves)
