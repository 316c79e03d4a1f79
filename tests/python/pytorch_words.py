# Each loss in PyTorch's own words, with one signature for all: what ours stand beside.
# F.mse_loss knows weights from 2.6 on; before, and for the hinge, they are spelled out here.
# Old versions have no kernels for some 16-bit types on the CPU; where that is so is tried, not assumed.
import functools
import inspect

import onepass
import torch
import torch.nn.functional as F

OURS = {"mse": onepass.mse_loss, "smooth_l1": onepass.smooth_l1_loss, "hinge": onepass.hinge_loss}
LOSSES = list(OURS)
WEIGHTED = ["mse", "hinge"]
REDUCTIONS = ["mean", "sum", "none"]
PARAMETER_NAMES = {"smooth_l1": "beta", "hinge": "margin"}
KNOWS_WEIGHTS = "weight" in inspect.signature(F.mse_loss).parameters


def options(loss, parameter=1.0, weight=None):
    """The keyword arguments that a loss has for its parameter and a weight."""
    given = {PARAMETER_NAMES[loss]: parameter} if loss in PARAMETER_NAMES else {}
    return given if weight is None else {**given, "weight": weight}


def ours(loss, input, target, reduction="mean", parameter=1.0, weight=None):
    return OURS[loss](input, target, reduction=reduction, **options(loss, parameter, weight))


def theirs(loss, input, target, reduction="mean", parameter=1.0, weight=None):
    if loss == "smooth_l1":
        return F.smooth_l1_loss(input, target, reduction=reduction, beta=parameter)
    if loss == "mse" and weight is None:
        return F.mse_loss(input, target, reduction=reduction)
    if loss == "mse" and KNOWS_WEIGHTS:
        return F.mse_loss(input, target, reduction=reduction, weight=weight)
    each = (input - target) ** 2 if loss == "mse" else torch.clamp(parameter - input * target, min=0)
    each = each if weight is None else each * weight
    if reduction == "none":
        return each
    if reduction == "sum":
        return each.sum()
    return each.mean() if weight is None else each.sum() / weight.sum()


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


def gradients(function, loss, input, target, upstream=None, wanted=(True, True), **given):
    """A loss and its gradients by autograd, from fresh leaves."""
    leaves = [
        tensor.detach().clone(memory_format=torch.preserve_format).requires_grad_(want)
        for tensor, want in zip((input, target), wanted)
    ]
    value = function(loss, *leaves, **given)
    value.backward(torch.ones_like(value) if upstream is None else upstream)
    return value.detach(), leaves[0].grad, leaves[1].grad
