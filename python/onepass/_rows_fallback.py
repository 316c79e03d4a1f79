"""Losses over rows in PyTorch's operations, for whatever is not for us: rare tensors, transforms, second derivatives.

PyTorch's own functions are taken when this module is loaded, before anybody can have patched them by ours. They answer
for all that PyTorch refuses.
"""

import re

import torch
import torch.nn.functional as F

from ._catalog import ROW_CATALOG
from ._contract import BATCHMEAN, MEAN, MEAN_OF_ALL, NAMES, NONE, SUM
from ._documentation import in_python
from ._fallback import differentiated
from ._row_request import LABELS, WITH_PROBABILITIES, Tensors, class_axis, has_labels, named, result_type
from ._torch_state import is_in_single

_FUNCTIONS = {"cross_entropy": F.cross_entropy, "nll_loss": F.nll_loss}
_BY_PYTORCH = ("cross_entropy", WITH_PROBABILITIES, "nll", "log_prob")
_NO_LABEL = -2**63  # of rows that take no part; any other that is no class is PyTorch's error


def answer(function, input, target, weight, size_average, ignore_index, reduce, reduction, *more):
    """The whole of PyTorch's function, so that it warns and refuses as it does. Its targets are int64, and it has no
    batchmean."""
    if getattr(target, "dtype", None) in LABELS and target.shape != input.shape:
        target = target.long()
    over_batch = isinstance(reduction, str) and reduction == "batchmean" and size_average is None and reduce is None
    value = _FUNCTIONS[function](input, target, weight, size_average, ignore_index, reduce,
                                 "sum" if over_batch else reduction, *more)
    return value / (input.shape[0] if input.dim() > 1 else 1) if over_batch else value


def loss(request, tensors):
    """The value, differentiable in every way. Rows that take no part have no gradient, whatever stands in them."""
    input, target, weight, row_weight, mask, divisor = tensors
    dtype = result_type(request, tensors, is_in_single(input.device.type))
    wide = torch.promote_types(dtype, torch.float32)
    takes_part = None if mask is None else mask != 0
    if has_labels(request):
        counts = target.long() != int(named(request)["ignore_index"])  # which a narrow type would wrap
        takes_part = counts if takes_part is None else counts & takes_part
        target = torch.where(takes_part, target, 0).long()
    each = each_row(request, input.to(wide), target if has_labels(request) else target.to(wide),
                    None if weight is None else weight.to(wide), takes_part)
    counted = row_weight
    if row_weight is not None:
        each = each * row_weight
    if takes_part is not None:
        takes_part = takes_part.expand(each.shape)
        each = torch.where(takes_part, each, 0)
    if request.code in (MEAN, MEAN_OF_ALL):
        divisor = request.divisor if divisor is None else divisor
        divisor = count(request, each, target, weight, counted, takes_part) if divisor is None else divisor
        return (each.sum() / divisor).to(dtype)
    return reduced(each, request.code).to(dtype)


def reduced(each, code):
    if code == NONE:
        return each
    total = each.sum()
    if code == SUM:
        return total
    assert code == BATCHMEAN, NAMES[code]
    return total / (each.shape[0] if each.dim() else 1)


def count(request, each, target, weight, row_weight, takes_part):
    """What a mean is divided by."""
    counted = None
    if request.code == MEAN_OF_ALL:
        weight = row_weight = None
    if has_labels(request) and weight is not None:
        counted = weight_of_each(target, weight.double())
    if row_weight is not None:
        counted = row_weight.expand(each.shape).double() if counted is None else counted * row_weight
    if counted is None:
        return each.numel() if takes_part is None else takes_part.sum()
    return (counted if takes_part is None else torch.where(takes_part, counted, 0)).sum()


def weight_of_each(target, weight):
    """The class weights of labels. A label without dimensions would be read as a number, which old versions of vmap
    refuse."""
    return weight[target.unsqueeze(-1)].squeeze(-1)


def capped(logits, given):
    """What the softmax is of."""
    softcap, temperature = given.get("softcap", 0), given.get("temperature", 1)
    if isinstance(softcap, torch.Tensor):
        cap = torch.where(softcap == 0, 1, softcap)
        logits = torch.where(softcap == 0, logits, cap * torch.tanh(logits / cap))
    elif softcap:
        logits = softcap * torch.tanh(logits / softcap)
    return logits / temperature if is_not(temperature, 1) else logits


def is_not(parameter, number):
    """Whether a parameter is another number, as far as it can be looked at."""
    return isinstance(parameter, torch.Tensor) or parameter != number


def by_formula(request, logits, target, weight):
    """Every row's loss, by the catalogue. The classes are the last dimension; a number a row has one element there."""
    at = lambda classes: classes.expand(logits.shape).gather(-1, target.unsqueeze(-1))
    given = named(request)
    if isinstance(given.get("q"), torch.Tensor):
        chances = at(torch.log_softmax(logits, -1))
        return (generalized(chances, given["q"]) * (1 if weight is None else at(weight))).squeeze(-1)
    names = {"z": logits, "w": logits.new_ones(()) if weight is None else weight, "C": logits.shape[-1], "at": at,
             "lse": torch.logsumexp(logits, -1, keepdim=True), "softmax": lambda z: torch.softmax(z, -1),
             "sum": lambda classes: classes.expand(logits.shape).sum(-1, keepdim=True), "log": torch.log,
             "exp": torch.exp, "expm1": torch.expm1, "pow": torch.pow, **given}
    return _formulas[request.name](**names).squeeze(-1)


def generalized(log_chances, q):
    """The generalized cross-entropy -expm1(q*log_chances)/q by a q whose slope is asked for: near 0, where that cancels
    and the formula has a case of its own, by its series."""
    exponent = q * log_chances
    is_near = exponent.abs() < 0.5
    near, series = torch.where(is_near, exponent, 0), 1.0
    for term in range(15, 1, -1):
        series = 1 + series * near / term
    far = -torch.expm1(exponent) / torch.where(q == 0, 1, q)
    return torch.where(is_near, -torch.where(is_near, log_chances, 0) * series, far)


def function_of(loss):
    """A formula of the catalogue in Python, with what stands at the label picked by a function."""
    names = [*_NAMES, *(parameter["name"] for parameter in loss["parameters"])]
    return eval(f"lambda {', '.join(names)}: " + re.sub(r"(\w+(?:\(z\))?)\[y\]", r"at(\1)", in_python(loss["value"])))


#: Of the losses that PyTorch does not have. They are functions, since a tracer cannot look into what is evaluated.
_NAMES = "z", "w", "C", "at", "lse", "softmax", "sum", "log", "exp", "expm1", "pow"
_formulas = {name: function_of(loss) for name, loss in ROW_CATALOG.items() if name not in _BY_PYTORCH}


def each_row(request, logits, target, weight, takes_part):
    """Every row's loss; those of rows that take no part mean nothing."""
    given = named(request)
    axis = class_axis(logits, request.axis)
    if takes_part is not None:
        logits = torch.where(takes_part.unsqueeze(axis) if takes_part.dim() else takes_part, logits, 0)
    logits = capped(logits, given).movedim(axis, min(1, logits.dim() - 1))
    if request.name in _formulas:
        return by_formula(request, logits.movedim(min(1, logits.dim() - 1), -1), target, weight)
    if has_labels(request) and takes_part is not None:
        target = torch.where(takes_part, target, _NO_LABEL)
    if request.name == "nll":
        return _FUNCTIONS["nll_loss"](logits, target, weight, reduction="none", ignore_index=_NO_LABEL)
    each = _FUNCTIONS["cross_entropy"](logits, target, weight, reduction="none", ignore_index=_NO_LABEL,
                                       label_smoothing=given.get("label_smoothing", 0.0))
    if request.name == "log_prob":
        return -each
    if is_not(given["z_loss"], 0):
        each = each + given["z_loss"] * torch.logsumexp(logits, min(1, logits.dim() - 1)) ** 2
    return each


def extras(request, tensors, outputs):
    """Log-sum-exp, prediction and divisor, where they are asked for; of rows that take no part 0 and -1."""
    if not outputs:
        return None, None, None
    input, target, weight, row_weight, mask, divisor = tensors
    with torch.no_grad():
        axis, dtype = class_axis(input, request.axis), torch.promote_types(input.dtype, torch.float32)
        logits = capped(input.detach().to(dtype), named(request))  # nor do they flow forward
        lse = torch.logsumexp(logits, axis)
        takes_part = torch.ones_like(lse, dtype=torch.bool) if mask is None else (mask != 0).expand(lse.shape)
        if has_labels(request):
            takes_part = takes_part & (target.long() != int(named(request)["ignore_index"]))
            target = torch.where(takes_part, target, 0).long()
        if request.code == MEAN:
            divisor = request.divisor if divisor is None else divisor
            divisor = count(request, lse, target, weight, row_weight, takes_part) if divisor is None else divisor
        return torch.where(takes_part, lse, 0), torch.where(takes_part, input.argmax(axis), -1), divisor


def gradients(request, tensors, upstream, needed, create_graph):
    """Those for the operands where they are needed, else None."""
    return differentiated(lambda *operands: loss(request, Tensors(*operands, *tensors[3:])), tensors[:3], upstream,
                          needed, create_graph)


def entropy(logits, ignored, softcap, temperature):
    """Of the softmax over the last dimension; 0 of rows that are ignored, without a gradient for them."""
    logits = torch.where(ignored.unsqueeze(-1), 0, logits.float() if logits.dtype != torch.float64 else logits)
    logs = torch.log_softmax(capped(logits, {"softcap": softcap, "temperature": temperature}), -1)
    chances = logs.exp()
    return torch.where(ignored, 0, (chances * torch.where(chances == 0, 0, -logs)).sum(-1))  # entr's slope is inf at 0
