"""PyTorch's own answers, for whatever is not for us: rare tensors, transforms, and every error.

Where PyTorch has the function, that is asked; it is taken when this module is loaded, before anybody can have patched
it by ours. All other losses are the catalogue's formulas in PyTorch's operations (_formula.py), so that none needs a
line here. Weights and masks are PyTorch's operations around either.
"""

import inspect
import math

import torch
import torch.nn.functional as F
from torch.nn import _reduction

from . import _formula
from ._catalog import CATALOG, check_parameters
from ._contract import NAMES, WARN, contract_of
from ._result import IN_SINGLE, NUMBERS_ABSTAIN, result_type
from ._torch_names import TORCH_NAMES
from ._torch_state import is_in_single

_FUNCTIONS = {name: getattr(F, name) for name, *_ in TORCH_NAMES.values()}
_TAKES_WEIGHT = {name for name, function in _FUNCTIONS.items() if "weight" in inspect.signature(function).parameters}
_TAKES_DEPRECATED = {name for name, function in _FUNCTIONS.items()
                     if "size_average" in inspect.signature(function).parameters}

# Written out, since a function of PyTorch does less: soft_margin_loss overflows and has no gradient for the target,
# binary_cross_entropy_with_logits none for pos_weight, and gaussian_nll_loss looks at the numbers.
_BY_FORMULA = {"soft_margin", "bce_with_logits_pos_weight", "gaussian_nll"}

_formulas = {name: _formula.translate(loss["value"], [parameter["name"] for parameter in loss["parameters"]])
             for name, loss in CATALOG.items()}

_NARROW = torch.float16, torch.bfloat16

# What stands in for operands that a mask leaves out: no loss is infinite here, or has a kink.
_HARMLESS = 0.5, 0.25, 1.0


def loss(name, input, target, third, parameters, reduction, weight=None, mask=None, weights_once=False,
         as_they_are=False):
    """The loss as PyTorch computes it, differentiable in every way; sizes that differ were warned of before.

    With weights_once a mean is divided by the sum of the weights as they came, and not as they were broadcast. Operands
    as_they_are are PyTorch's to judge, as integers are: neither broadcast nor of one type.
    """
    if contract_of(name).sizes != WARN and not (input.is_floating_point() and target.is_floating_point()) or \
            name == "l1" and torch.bool in (input.dtype, target.dtype):  # which PyTorch does not subtract
        as_they_are = True
    by_own = name in TORCH_NAMES and (as_they_are or name not in _BY_FORMULA)
    if name == "mse" and weight is not None and not torch.promote_types(input.dtype, target.dtype).is_floating_point:
        by_own = False  # beside weights PyTorch squares by itself, integers too
    input, target, third, weight = in_single(input, target, third, weight)
    operands = input, target, third
    if not as_they_are:
        operands = of_one_type(*operands, across_devices=by_own)
    if mask is not None:
        mask = mask != 0
        operands = [operand if operand is None else torch.where(mask, operand, harmless)
                    for operand, harmless in zip(operands, _HARMLESS)]
    if by_own and weight is None and mask is None and reduction != "batchmean":
        return by_pytorch(name, *operands, parameters, reduction)
    each = by_pytorch(name, *operands, parameters, "none") if by_own else by_formula(name, *operands, parameters)
    batch = input.shape[:1] if name.startswith("kl_div") else each.shape[:1]
    return reduced(each, reduction, weight, mask, contract_of(name), math.prod(batch), weights_once)


def in_single(*tensors):
    """In float32 if autocast asks for it, which knows nothing of the catalogue's formulas, and forgets PyTorch's own
    functions within some transforms."""
    if not is_in_single(tensors[0].device.type):
        return tensors
    return [x.float() if x is not None and x.dtype in _NARROW else x for x in tensors]


def typed_loss(name, tensors, parameters, code, flags):
    """The same of (input, target, third, weight, mask), with the type that the flags ask for: PyTorch computes in the
    operands' common type, and a number among them has no say in the result's."""
    value = loss(name, *tensors[:3], parameters, NAMES[code], *tensors[3:])
    operands = [operand for operand in tensors[:3] if operand is not None]
    if not flags & NUMBERS_ABSTAIN or all(operand.dim() for operand in operands) or \
            not all(operand.is_floating_point() for operand in operands):
        return value
    return value.to(result_type(tensors, flags | (IN_SINGLE if is_in_single(tensors[0].device.type) else 0)))


def of_one_type(input, target, third, across_devices):
    """Broadcast, and of one type: an integer beside a float becomes a float here, since some versions of PyTorch's
    mse_loss forget it in backward. PyTorch's functions broadcast a number of the CPU's beside a GPU's tensor, too, and
    refuse it then; to its operations it is a number and welcome."""
    operands = input, target
    if input.shape != target.shape and (across_devices or input.device == target.device):
        operands = torch.broadcast_tensors(input, target)
    dtype = torch.promote_types(input.dtype, target.dtype)
    if input.dtype != target.dtype and dtype.is_floating_point:
        operands = [operand.to(dtype) for operand in operands]
    return *operands, third


def by_pytorch(name, input, target, third, parameters, reduction, **more):
    """PyTorch's function, which may warn and refuse."""
    function, fixed, names, called = TORCH_NAMES[name]
    given = {**fixed, **dict(zip(names, parameters)), **more}
    if function == "kl_div" and not more:  # without the warning of a mean, which was given before
        return torch.kl_div(input, target, _reduction.get_enum(reduction), **given)
    if called is not None:
        given[called] = third
    return _FUNCTIONS[function](input, target, reduction=reduction, **given)


def by_formula(name, input, target, third, parameters):
    """Every element's loss, by the catalogue."""
    if name not in TORCH_NAMES:  # whose complaints are PyTorch's
        check_parameters(name, parameters)
    if name == "gaussian_nll":  # whose slope does not vanish where the variance is held up
        full, eps = parameters
        third = torch.where(third < eps, third - third.detach() + eps, third)
        parameters = full, -math.inf
    return _formulas[name](input, target, third, *parameters)


def reduced(each, reduction, weight, mask, contract, batch, weights_once):
    """Terms as mse_loss reduces them, or as the loss's contract says."""
    if mask is not None:
        mask = mask.expand(each.shape)
        weight = None if weight is None else torch.where(mask, weight, 0)
    weighted = each if weight is None else each * weight
    if contract.two_decide:
        weighted = weighted.to(each.dtype)
    if mask is not None:
        weighted = torch.where(mask, weighted, 0)
    if reduction == "none":
        return weighted
    if reduction == "sum":
        return weighted.sum()
    if reduction == "batchmean":
        return weighted.sum() / batch
    if reduction not in ("mean", "elementwise_mean"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if weight is None or contract.mean_of_all:
        return weighted.mean() if mask is None else weighted.sum() / mask.sum()
    as_it_is = weights_once or weight.shape == each.shape  # a sparse weight cannot be expanded
    return weighted.sum() / (weight if as_it_is else weight.expand(each.shape)).sum()


def answer(name, input, target, parameters, reduction, given):
    """The whole of PyTorch's function, for operands of which nothing is known, so that it warns and refuses as it does;
    a subclass of Tensor may answer for itself."""
    function = TORCH_NAMES[name][0] if name in TORCH_NAMES else None
    has_weight = given.weight is not None
    if function and given.mask is None and (not has_weight or can_weigh(name, function, given)):
        more = {"weight": given.weight} if has_weight else {}
        if function in _TAKES_DEPRECATED:
            more.update(size_average=given.size_average, reduce=given.reduce)
        return by_pytorch(name, input, target, given.third, parameters, reduction, **more)
    if given.size_average is not None or given.reduce is not None:
        reduction = _reduction.legacy_get_string(given.size_average, given.reduce)
    third = torch.full_like(input, given.third) if isinstance(given.third, (int, float)) else given.third
    if not has_weight and given.mask is None:
        each = by_formula(name, *in_single(input, target, third), parameters)
        return reduced(each, reduction, None, None, contract_of(name), each.shape[0] if reduction == "batchmean" else 1,
                       False)
    return loss(name, input, target, third, parameters, reduction, given.weight, given.mask)


def can_weigh(name, function, given):
    """Whether PyTorch's function does with a weight what ours would."""
    return function in _TAKES_WEIGHT and (contract_of(name).free_weight or not given.broadcast_weight)


def is_own_weight(name, given):
    """Whether the weight is complex or sparse: PyTorch's function, if it takes one, computes that or refuses it."""
    weight = given.weight
    return weight is not None and (torch.is_complex(weight) or weight.layout is not torch.strided) and \
        name in TORCH_NAMES and can_weigh(name, TORCH_NAMES[name].function, given)


def gradients(name, operands, parameters, reduction, weight, mask, upstream, needed, create_graph):
    """The gradients for the operands that need one, by PyTorch; None for the others."""
    return differentiated(lambda *own: loss(name, *own, parameters, reduction, weight, mask), operands, upstream,
                          needed, create_graph)


def differentiated(loss, operands, upstream, needed, create_graph):
    """The gradients of a function of operands, for those that need one; None for the others. Each is of a view of its
    operand, since that may be computed from another, or be the same: the caller's graph adds up such paths."""
    with torch.enable_grad():
        own = [None if operand is None else operand.view_as(operand) if create_graph
               else operand.detach().requires_grad_(need) for operand, need in zip(operands, needed)]
        value = loss(*own)
        leaves = [operand for operand, need in zip(own, needed) if need]
        found = iter(torch.autograd.grad(value, leaves, upstream.to(value.dtype), create_graph=create_graph,
                                         allow_unused=True, materialize_grads=True))
    return [next(found) if need else None for need in needed]
