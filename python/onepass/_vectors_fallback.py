"""Vector losses in PyTorch's operations, for whatever is not for us: rare tensors, transforms, second derivatives.

PyTorch's own functions are taken when this module is loaded, before anybody can have patched them by ours. They answer
for all that PyTorch refuses, and for every p but 1 and 2.
"""

import torch
import torch.nn.functional as F

from ._catalog import WITH_LISTS
from ._contract import MEAN, MEAN_OF_ALL
from ._fallback import differentiated
from ._row_request import casts
from ._rows_fallback import reduced, weight_of_each
from ._vector_request import Tensors, class_weight_of, first_dimension, result_type, target_of, vectors_of

FUNCTIONS = {name: getattr(F, name) for name in (
    "cosine_embedding_loss", "cosine_similarity", "pairwise_distance", "triplet_margin_loss",
    "triplet_margin_with_distance_loss")}

# What stands in for vectors that a mask leaves out: no slope is infinite here.
_HARMLESS = 1.0, 0.5, 0.25


def loss(request, tensors):
    """The value, differentiable in every way. Rows that take no part have no gradient, whatever stands in them."""
    in_single = casts(request.name, tensors.first.device.type)
    dtype = result_type(request, tensors, in_single)
    wide = torch.promote_types(dtype, torch.float32)
    place = first_dimension(tensors.first, request.axis)
    vectors = [vector.to(wide).flatten(place) for vector in vectors_of(request, tensors)]
    target = target_of(request, tensors)
    has_list = request.name in WITH_LISTS
    target = target.flatten(place) if has_list else target
    if tensors.mask is not None:
        takes_part = (tensors.mask != 0).expand(vectors[0].shape[:-1]).unsqueeze(-1)
        vectors = [torch.where(takes_part, vector, harmless) for vector, harmless in zip(vectors, _HARMLESS)]
        target = None if target is None else torch.where(takes_part if has_list else takes_part.squeeze(-1),
                                                               target, 0)
    each = each_row(request, *vectors, *([] if target is None else [target]))
    of_classes = class_weight_of(request, tensors)
    if of_classes is not None:
        each = each * weight_of_each(target.long(), of_classes.to(wide))
    return reduced_rows(each, request.code, tensors.weight, tensors.mask,
                        request.divisor if tensors.divisor is None else tensors.divisor).to(dtype)


def reduced_rows(each, code, weight, mask, divisor):
    """Rows' values as all losses over rows are reduced."""
    takes_part = None if mask is None else (mask != 0).expand(each.shape)
    if weight is not None:
        each = each * weight
    if takes_part is not None:
        each = torch.where(takes_part, each, 0)
    if code not in (MEAN, MEAN_OF_ALL):
        return reduced(each, code)
    counted = None if code == MEAN_OF_ALL else weight
    return each.sum() / (count(each, counted, takes_part) if divisor is None else divisor)


def count(each, weight, takes_part):
    """What a mean is divided by."""
    if weight is None:
        return each.numel() if takes_part is None else takes_part.sum()
    weight = weight.expand(each.shape).double()
    return (weight if takes_part is None else torch.where(takes_part, weight, 0)).sum()


def each_row(request, *operands):
    """Of vectors in the last dimension."""
    given = request.parameters
    if request.name == "cosine_similarity":
        return FUNCTIONS["cosine_similarity"](*operands, -1, *given)
    if request.name == "pairwise_distance":
        return FUNCTIONS["pairwise_distance"](*operands, *given)
    if request.name == "cosine_embedding":
        one, other, target = operands  # of which PyTorch takes one dimension of rows
        each = FUNCTIONS["cosine_embedding_loss"](one.reshape(-1, one.shape[-1]), other.reshape(-1, other.shape[-1]),
                                                  target.reshape(-1), *given, reduction="none")
        return each.reshape(target.shape)
    if request.name == "triplet_margin":
        margin, p, eps, swap = given
        return torch.triplet_margin_loss(*operands, margin, p, eps, bool(swap), 0)
    if request.name == "multi_margin":
        return multi_margin(*operands, *given)
    if request.name == "multilabel_margin":
        return multilabel_margin(*operands)
    if request.name in _DISTRIBUTIONS:
        each = _DISTRIBUTIONS[request.name](*operands, *given)
        return each if operands[0].shape[-1] != 0 else each + float("nan")  # no distribution
    return tversky(request, *operands, *given)


def multi_margin(scores, target, p, margin):
    """PyTorch's own has no second derivatives. What is not above 0 counts for nothing, and so does NaN."""
    own = target.long().unsqueeze(-1)
    lacking = margin - scores.gather(-1, own) + scores
    counts = (lacking > 0) & (torch.arange(scores.shape[-1], device=scores.device) != own)
    return torch.where(counts, lacking, 0).pow(p).sum(-1) / scores.shape[-1]


def multilabel_margin(scores, target):
    """With a table of labels and classes for each row: PyTorch's own has no second derivatives, and PyTorch 2.13 compiles
    it to something that counts class 0 for every label that a row lacks."""
    target = target.long()
    own = scores.gather(-1, target.clamp(min=0)).unsqueeze(-1)
    counts = ((target < 0).cumsum(-1) == 0).unsqueeze(-1)
    is_target = (counts & (target.unsqueeze(-1) == torch.arange(scores.shape[-1], device=scores.device))).any(-2)
    lacking = 1 - own + scores.unsqueeze(-2)
    counts = counts & ~is_target.unsqueeze(-2) & (lacking > 0)
    return torch.where(counts, lacking, 0).sum((-2, -1)) / scores.shape[-1]


def tversky(request, input, target, alpha, beta, smooth, eps):
    chances = torch.sigmoid(input) if request.name == "tversky_with_logits" else input
    both = (chances * target).sum(-1)
    one, other = chances.sum(-1) - both, target.sum(-1) - both
    return 1 - (both + smooth) / (both + alpha * one + beta * other + smooth).clamp(min=eps)


# Of a class whose probability is 0 the logarithm is not looked at, so that neither it nor its slope is NaN.


def kl_div_with_logits(input, target, temperature):
    log_p, log_q = (torch.log_softmax(logits / temperature, -1) for logits in (input, target))
    q = log_q.exp()
    return (q * torch.where(q == 0, 0, log_q - log_p)).sum(-1)


def js_div_with_logits(input, target, beta, temperature):
    log_p, log_q = (torch.log_softmax(logits / temperature, -1) for logits in (input, target))
    p, q = log_p.exp(), log_q.exp()
    mixture = (1 - beta) * p + beta * q
    log_m = torch.where(mixture == 0, 1, mixture).log()
    return (1 - beta) * (p * torch.where(p == 0, 0, log_p - log_m)).sum(-1) + \
        beta * (q * torch.where(q == 0, 0, log_q - log_m)).sum(-1)


def tv_distance_with_logits(input, target, temperature):
    p, q = (torch.softmax(logits / temperature, -1) for logits in (input, target))
    return (p - q).abs().sum(-1) / 2


_DISTRIBUTIONS = {"kl_div_with_logits": kl_div_with_logits, "js_div_with_logits": js_div_with_logits,
                  "tv_distance_with_logits": tv_distance_with_logits}


def gradients(request, tensors, upstream, needed, create_graph):
    """Those for the operands where they are needed, else None."""
    return differentiated(lambda *operands: loss(request, Tensors(*operands, *tensors[3:])), tensors[:3], upstream,
                          needed, create_graph)
