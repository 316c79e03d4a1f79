# Each loss by our package and by PyTorch, with one signature for all.
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
from onepass._torch_names import TORCH_NAMES
from onepass.bench import torch_reference

from agreement import MEANS_OF_ALL

ALL = list(oracle.LOSSES)
LOSSES = ["mse", "smooth_l1", "hinge"]
WEIGHTED = ["mse", "hinge"]
REDUCTIONS = ["mean", "sum", "none"]
KNOWS_WEIGHTS = "weight" in inspect.signature(F.mse_loss).parameters

#: The names of the functions that PyTorch lacks and that are not the loss's.
OTHER_NAMES = {"focal": "sigmoid_focal_loss", "focal_squared": "sigmoid_focal_loss"}
#: Of each loss the function that has it, and what is fixed in that function.
FUNCTIONS = {
    loss: TORCH_NAMES[loss][:2] if loss in TORCH_NAMES else (OTHER_NAMES.get(loss, f"{loss}_loss"), {}) for loss in ALL
}
OURS = {loss: getattr(onepass, function) for loss, (function, _) in FUNCTIONS.items()}
#: Those that PyTorch has a function for.
PYTORCHS = [loss for loss in ALL if loss in TORCH_NAMES]
PARAMETER_NAMES = {
    loss["name"]: tuple(parameter["name"] for parameter in loss["parameters"])
    for loss in onepass.losses()
    if loss["parameters"]
}
THREE = [loss for loss in ALL if len(oracle.LOSSES[loss].domains) == 3]
#: Parameters that are not the defaults, to be tried.
OTHER_PARAMETERS = {
    loss["name"]: tuple([*oracle.other_values(parameter), parameter["default"]][0] for parameter in loss["parameters"])
    for loss in onepass.losses()
    if loss["parameters"]
}


def values_of(parameter):
    """A loss's only parameter, or a tuple of several, as a tuple; None for the defaults."""
    return parameter if parameter is None or isinstance(parameter, tuple) else (parameter,)


def options(loss, parameter=None, weight=None, mask=None):
    """The keyword arguments that a loss's function has for its parameters, a weight and a mask."""
    given = {**FUNCTIONS[loss][1], **dict(zip(PARAMETER_NAMES.get(loss, ()), values_of(parameter) or ()))}
    return {**given, **({} if weight is None else {"weight": weight}), **({} if mask is None else {"mask": mask})}


def ours(loss, input, target, reduction="mean", parameter=None, weight=None, third=None, mask=None, **more):
    """Our function of a loss, asked in one way for all."""
    given = {**options(loss, parameter, weight, mask), **more}
    if loss == "bce_with_logits_pos_weight":
        return OURS[loss](input, target, pos_weight=third, reduction=reduction, **given)
    return OURS[loss](*(x for x in (input, target, third) if x is not None), reduction=reduction, **given)


def theirs(loss, input, target, reduction="mean", parameter=None, weight=None, third=None, mask=None):
    """The same by PyTorch."""
    if weight is None and mask is None and loss in TORCH_NAMES:
        return by_function(loss, input, target, reduction, parameter, third)
    if loss == "mse" and KNOWS_WEIGHTS and mask is None:
        return F.mse_loss(input, target, reduction=reduction, weight=weight)
    return reduce(loss, each(loss, input, target, parameter, third), reduction, weight, mask)


@functools.lru_cache(maxsize=None)
def pytorchs(name):
    """PyTorch's function of a name. What later versions of it take is spelled out for those that do not take it yet."""
    function = getattr(F, name)
    if name in ("mse_loss", "l1_loss", "huber_loss") and "weight" not in inspect.signature(function).parameters:
        return weighted(function)
    if name == "gaussian_nll_loss" and not takes_a_number(function):
        return with_any_variance
    return function


def weighted(function):
    """One of those that take weights from PyTorch 2.6 on, with them."""

    def weigh(input, target, *more, weight=None, reduction="mean", **given):
        if weight is None:
            return function(input, target, *more, reduction=reduction, **given)
        if weight.size() != input.size():
            raise ValueError("Weights and input must have the same size.")
        terms = function(input, target, reduction="none", **given) * weight
        if reduction == "mean" and function is not F.huber_loss:
            return terms.sum() / weight.sum()
        return {"none": lambda: terms, "mean": terms.mean, "sum": terms.sum}[reduction]()

    return weigh


def takes_a_number(gaussian_nll_loss):
    try:
        gaussian_nll_loss(torch.ones(1), torch.ones(1), 1.0)
    except AttributeError:
        return False
    return True


def with_any_variance(input, target, var, **given):
    """gaussian_nll_loss with the variances that later versions take, and their order of complaints."""
    var = torch.full_like(input, var) if isinstance(var, float) else var
    if (var < 0).any():
        raise ValueError("var has negative entry/entries")
    if var.dim() == input.dim() and [own for own, size in zip(var.size(), input.size()) if own != size] == [1]:
        var = var.expand_as(input)
    return F.gaussian_nll_loss(input, target, var, **given)


def by_function(loss, input, target, reduction, parameter=None, third=None):
    function = torch_reference.by_function(loss, values_of(parameter), reduction=reduction)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="reduction: 'mean' divides")
        return function(*(x for x in (input, target, third) if x is not None))


def each(loss, p, t, parameter=None, third=None):
    """Every element's loss, in PyTorch's operations where it has no function."""
    if loss in TORCH_NAMES:
        return by_function(loss, p, t, "none", parameter, third)
    return torch_reference.by_expression(loss, values_of(parameter))(*(x for x in (p, t, third) if x is not None))


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
    return terms.mean() if weight is None or loss in MEANS_OF_ALL else terms.sum() / weight.sum()


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
