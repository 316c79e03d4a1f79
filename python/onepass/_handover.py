"""PyTorch's own answers, for whatever is not for us: rare tensors, transforms, and every error.

The functions are taken when this module is loaded, before anybody can have patched them by ours.
"""

import torch
import torch.nn.functional as F

_mse_loss, _smooth_l1_loss = F.mse_loss, F.smooth_l1_loss


def loss(name, input, target, parameters, reduction, weight=None):
    """The loss as PyTorch computes it, differentiable in every way; sizes that differ were warned of before."""
    if name == "hinge":
        return reduced(torch.clamp(parameters[0] - input * target, min=0), reduction, weight)
    input, target = of_one_type(*torch.broadcast_tensors(input, target))
    if name == "smooth_l1":
        return _smooth_l1_loss(input, target, reduction=reduction, beta=parameters[0])
    if name != "mse":
        raise NotImplementedError(f"PyTorch's words for {name} are missing in onepass/_handover.py")
    if weight is not None:
        return reduced((input - target) ** 2, reduction, weight)
    return _mse_loss(input, target, reduction=reduction)


def of_one_type(input, target):
    """An integer beside a float becomes a float here: some versions of PyTorch's mse_loss forget it in backward."""
    dtype = torch.promote_types(input.dtype, target.dtype)
    return (input.to(dtype), target.to(dtype)) if dtype.is_floating_point else (input, target)


def answer(name, input, target, parameters, reduction, weight, size_average, reduce):
    """The whole of PyTorch's function, for operands of which nothing is known, so that it warns and refuses as it does;
    a subclass of Tensor may answer for itself."""
    if name == "mse":
        weighted = {} if weight is None else {"weight": weight}
        return _mse_loss(input, target, size_average, reduce, reduction, **weighted)
    if name == "smooth_l1":
        return _smooth_l1_loss(input, target, size_average, reduce, reduction, *parameters)
    return loss(name, input, target, parameters, reduction, weight)


def reduced(terms, reduction, weight):
    """Terms as mse_loss reduces them."""
    if weight is not None:
        terms = terms * weight
    if reduction == "none":
        return terms
    if reduction == "sum":
        return terms.sum()
    if reduction in ("mean", "elementwise_mean"):
        return terms.mean() if weight is None else terms.sum() / weight.sum()
    raise ValueError(f"{reduction} is not a valid value for reduction")


def gradients(name, operands, parameters, reduction, weight, upstream, needed, create_graph):
    """The gradients for the operands that need one, by PyTorch; None for the others."""
    with torch.enable_grad():
        if not create_graph:
            operands = [operand.detach().requires_grad_(need) for operand, need in zip(operands, needed)]
        wanted = [operand for operand, need in zip(operands, needed) if need]
        value = loss(name, *operands, parameters, reduction, weight)
        found = iter(torch.autograd.grad(value, wanted, upstream.to(value.dtype), create_graph=create_graph))
    return [next(found) if need else None for need in needed]
