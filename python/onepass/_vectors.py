"""Vector losses of PyTorch's tensors. What is plain goes to the C library, with its gradients in the same call if they
will be needed and the upstream gradient is likely to be 1; anything else falls back to PyTorch.

Operands that broadcast are expanded here, by PyTorch's views, so that autograd sums their gradients.
"""

import math
import sys

import torch
from torch.nn import _reduction

from . import _native, _rows, _torch, _upstream_habit, _vectors_fallback, _vectors_operators
from ._catalog import VECTOR_CATALOG, WITH_LABELS, WITH_LISTS, WITH_NUMBERS, vector_count
from ._contract import ALL_CODES, NONE, check_axis, checked_flag, code_of, common_shape
from ._row_request import (FLOATS, FOR_INPUT, FOR_TARGET, FOR_THIRD, LABELS, Request, are_plain, check_row_tensors,
                           is_known)
from ._rows import ask
from ._rows_autograd import attach_vector_gradients, saved
from ._torch_checks import TYPES, are_numbers, no_tensor, row_parameter
from ._torch_state import is_compiling, is_plain_here
from ._vector_request import SIGNS, Tensors, class_weight_of, plain_parameters, rows_shape

assert _torch  # which has told the extension of PyTorch

Tensor = torch.Tensor
_is_grad_enabled = torch.is_grad_enabled
_LARGEST, _NORMS = sys.float_info.max, (1, 2)
_theirs = _vectors_fallback.FUNCTIONS


# ----------------------------------------------------------------- the functions --


def cosine_similarity(x1, x2, dim, eps, weight, mask):
    if weight is None and mask is None and type(dim) is int and are_finite(eps) and eps >= 0:
        value = compute_plain("cosine_similarity", NONE, (eps,), x1, x2, None, dim)
        if value is not None:
            return value
    check_kinds(x1=x1, x2=x2, weight=weight, mask=mask)
    parameters = plain_parameters("cosine_similarity", (eps,))
    common = shape_of(x1, x2)
    if parameters is None or not common or type(dim) is not int or not -len(common) <= dim < len(common):
        return weighted(_theirs["cosine_similarity"](x1, x2, dim=dim, eps=eps), weight, mask)
    x1, x2 = expanded(common, x1, x2)
    if dim not in (-1, len(common) - 1):
        x1, x2 = x1.movedim(dim, -1), x2.movedim(dim, -1)
    return dispatch(Request("cosine_similarity", NONE, parameters, -1, None, None), Tensors(x1, x2, None, weight, mask))


def pairwise_distance(x1, x2, p, eps, keepdim, weight, mask):
    if weight is None and mask is None and not keepdim and are_finite(p, eps) and p in _NORMS:
        value = compute_plain("pairwise_distance", NONE, (p, eps), x1, x2)
        if value is not None:
            return value
    check_kinds(x1=x1, x2=x2, weight=weight, mask=mask)
    parameters = norm_parameters("pairwise_distance", (p, eps), p)
    common = shape_of(x1, x2)
    if parameters is None or not common:
        value = weighted(_theirs["pairwise_distance"](x1, x2, p=p, eps=eps), weight, mask)
    else:
        x1, x2 = expanded(common, x1, x2)
        request = Request("pairwise_distance", NONE, parameters, -1, None, None)
        value = dispatch(request, Tensors(x1, x2, None, weight, mask))
    return value.unsqueeze(-1) if keepdim and (x1.dim() or x2.dim()) else value  # of two numbers there is none to keep


def cosine_embedding_loss(input1, input2, target, margin, size_average, reduce, reduction, weight, mask, divisor):
    code = code_of(reduction)
    if weight is None and mask is None and divisor is None and size_average is None and reduce is None and \
            code is not None and are_finite(margin):
        value = compute_plain("cosine_embedding", code, (margin,), input1, input2, target)
        if value is not None:
            return value
    check_kinds(input1=input1, input2=input2, target=target, weight=weight, mask=mask)
    whole = input1, input2, target, margin, size_average, reduce, reduction
    reduction = reduction_of(size_average, reduce, reduction)
    parameters = plain_parameters("cosine_embedding", (margin,))
    common = shape_of(input1, input2)
    in_order = parameters is not None and common and is_known(reduction) and target.dtype in SIGNS and \
        target.dim() < 2 and input1.dim() == input2.dim() == target.dim() + 1 and \
        input1.shape[-1] == input2.shape[-1] and common[:-1] == target.shape
    if not in_order:
        each = (input1, input2, target, margin)
        return answer("cosine_embedding_loss", whole, each, reduction, weight, mask, divisor)
    warn_of(size_average, reduce)
    tensors = *expanded(common, input1, input2), target.detach(), weight, mask
    return finished("cosine_embedding", tensors, parameters, -1, reduction, divisor)


def triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, size_average, reduce, reduction, weight, mask,
                        divisor):
    code, swap = code_of(reduction), checked_flag("swap", swap)
    if weight is None and mask is None and divisor is None and size_average is None and reduce is None and \
            code is not None and are_finite(margin, p, eps) and margin > 0 and p in _NORMS:
        value = compute_plain("triplet_margin", code, (margin, p, eps, 1.0 if swap else 0.0), anchor, positive,
                              negative)
        if value is not None:
            return value
    check_kinds(anchor=anchor, positive=positive, negative=negative, weight=weight, mask=mask)
    whole = anchor, positive, negative, margin, p, eps, swap, size_average, reduce, reduction
    reduction = reduction_of(size_average, reduce, reduction)
    parameters = norm_parameters("triplet_margin", (margin, p, eps, 1.0 if swap else 0.0), p)
    common = shape_of(anchor, positive, negative)
    in_order = parameters is not None and common and is_known(reduction) and parameters[0] > 0 and \
        anchor.dim() == positive.dim() == negative.dim() and \
        anchor.shape[-1] == positive.shape[-1] == negative.shape[-1]
    if not in_order:
        return answer("triplet_margin_loss", whole, whole[:7], reduction, weight, mask, divisor)
    warn_of(size_average, reduce)
    tensors = *expanded(common, anchor, positive, negative), weight, mask
    return finished("triplet_margin", tensors, parameters, -1, reduction, divisor)


def triplet_margin_with_distance_loss(anchor, positive, negative, distance_function, margin, swap, reduction):
    """By the library where the distance is the usual one."""
    if distance_function is None and reduction in ("mean", "sum", "none"):
        return triplet_margin_loss(anchor, positive, negative, margin, 2.0, 1e-6, swap, None, None, reduction, None,
                                   None, None)
    return _theirs["triplet_margin_with_distance_loss"](anchor, positive, negative, distance_function=distance_function,
                                                        margin=margin, swap=swap, reduction=reduction)


def tversky(function, name, input, target, parameters, axis, dtype, reduction, weight, mask, divisor):
    """A row is everything from the axis on; whoever calls has made input and target of one shape, and floats of both.
    """
    if not is_known(reduction):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    tensors = input, target, None, weight, mask
    return finished(name, tensors, checked_parameters(name, parameters, function), axis, reduction, divisor, dtype)


def are_finite(*parameters):
    """Whether they are numbers of Python's that every double has."""
    return all([type(value) in (float, int) and -_LARGEST <= value <= _LARGEST for value in parameters])


def compute_plain(name, code, parameters, first, second, third=None, dim=-1):
    """What most calls are, with as few questions as it can be told by; None if that is not for us, or not in order:
    vectors of one shape in the last dimension, without a weight or a mask."""
    if not (type(first) in TYPES and type(second) in TYPES and (third is None or type(third) in TYPES)) or \
            is_compiling() or not is_plain_here():
        return None
    if dim != -1 and dim != first.dim() - 1:
        return None
    if name == "cosine_embedding" and (third.requires_grad or third.dim() > 1):
        return None
    return compute(Request(name, code, parameters, -1, None, None), Tensors(first, second, third))


def finished(name, tensors, parameters, axis, reduction, divisor, dtype=None):
    number, tensor = _rows.checked_divisor(divisor, reduction, tensors[0])
    request = Request(name, ALL_CODES[reduction], parameters, axis, dtype, number)
    return dispatch(request, Tensors(*tensors, tensor))


def value_and_grad(name, operands, parameters, axis, reduction, weight, mask):
    """Both from one call; by PyTorch where the operands are not plain. The gradient is that of the first operand."""
    check_kinds(**dict(zip(VECTOR_CATALOG[name]["operands"], operands)), weight=weight, mask=mask)
    operands = [operand.detach() for operand in operands]
    vectors = operands[:vector_count(name)]
    common = shape_of(*vectors)
    if not common:
        raise ValueError(f"operands of sizes {', '.join(str(tuple(one.shape)) for one in operands)} and types "
                         f"{', '.join(str(one.dtype) for one in operands)}; expected floats that broadcast together")
    check_axis(len(common), axis)
    check_target(name, operands, common[:axis - 1] if axis > 0 else common[:axis])
    tensors = Tensors(*(*expanded(common, *vectors), *operands[len(vectors):], None)[:3], weight, mask)
    request = Request(name, ALL_CODES[reduction], checked_parameters(name, parameters), axis, None, None)
    check_row_tensors(weight, mask, rows_shape(tensors.first, axis))
    shape = operands[0].shape
    if are_plain(tensors) and is_plain_here() and are_numbers(request.parameters):
        computed = _native.torch_rows(*request[:4], *tensors[:5], None, 0, FOR_INPUT)
        if computed is not None:
            return computed[0], computed[1] if computed[1].shape == shape else computed[1].sum_to_size(shape)
    with torch.enable_grad():
        leaf = tensors.first.detach().requires_grad_()
        value = _vectors_fallback.loss(request, tensors._replace(first=leaf))
        gradient, = torch.autograd.grad(value, (leaf,))
    return value.detach(), gradient.sum_to_size(shape)


# -------------------------------------------------------------------- the checks --


def check_kinds(**named):
    for called, operand in named.items():
        if operand is None and called in ("weight", "mask", "class_weight"):
            continue
        if not hasattr(type(operand), "__torch_function__"):
            raise no_tensor(called, operand, "another operand")


def check_target(name, operands, rows):
    """Of a loss that has a number for each row, or a list of labels."""
    target = operands[vector_count(name)] if name in WITH_NUMBERS else None
    if name in WITH_LISTS and target.shape != operands[0].shape:
        raise ValueError(f"target has size {tuple(target.shape)}; expected {tuple(operands[0].shape)}, that of input")
    if target is not None and name not in WITH_LISTS and target.shape != rows:
        raise ValueError(f"target has size {tuple(target.shape)}; expected {tuple(rows)}, a number for each row")
    if name not in WITH_LABELS:
        return
    if target.dtype not in LABELS:
        raise TypeError(f"target is of {target.dtype}; expected class indices: torch.int64, torch.int32 or torch.uint8")
    classes = math.prod(operands[0].shape[len(rows):])
    for weight in operands[2:]:
        if weight is not None and (weight.dtype not in FLOATS or weight.shape != (classes,)):
            raise ValueError(f"the classes' weights have size {tuple(weight.shape)} and type {weight.dtype}; expected "
                             f"({classes},), a floating point number for each")


def shape_of(*vectors):
    """The common shape of vectors that are floats; None where there is none, or no dimension, or no element."""
    if not all(vector.dtype in FLOATS and not vector.is_nested and vector.dim() > 0 for vector in vectors):
        return None
    common = common_shape(*[vector.shape for vector in vectors])
    return common if common and common[-1] != 0 else None


def expanded(common, *vectors):
    return [vector if vector.shape == common else vector.expand(common) for vector in vectors]


def norm_parameters(name, values, p):
    """The library has the norms of 1 and 2."""
    parameters = plain_parameters(name, values)
    return parameters if parameters is not None and (p == 1 or p == 2) else None


def checked_parameters(name, values, function=None):
    """With words of ours for what the library does not take."""
    return tuple([row_parameter(name, known, value, function)
                  for known, value in zip(VECTOR_CATALOG[name]["parameters"], values)])


def reduction_of(size_average, reduce, reduction):
    return reduction if size_average is None and reduce is None else \
        _reduction.legacy_get_string(size_average, reduce, emit_warning=False)


def warn_of(size_average, reduce):
    """As PyTorch does, of what it has deprecated."""
    if size_average is not None or reduce is not None:
        _reduction.legacy_get_string(size_average, reduce)


def weighted(each, weight, mask):
    """PyTorch's rows, with what only ours has."""
    return _vectors_fallback.reduced_rows(each, NONE, weight, mask, None)


def answer(function, whole, each, reduction, weight, mask, divisor):
    """The whole of PyTorch's function, so that it warns and refuses as it does; beside a weight, a mask or a divisor
    its rows."""
    if weight is None and mask is None and divisor is None:
        if reduction != "batchmean":  # which PyTorch does not have
            return _theirs[function](*whole)
    elif not is_known(reduction):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    number, tensor = _rows.checked_divisor(divisor, reduction, each[0])
    rows = _theirs[function](*each, reduction="none")
    return _vectors_fallback.reduced_rows(rows, ALL_CODES[reduction], weight, mask,
                                          number if tensor is None else tensor)


# ------------------------------------------------------------------- who computes --


def dispatch(request, tensors):
    """By us or by PyTorch, now that all is in order."""
    check_row_tensors(tensors.weight, tensors.mask, rows_shape(tensors.first, request.axis))
    if is_compiling() and are_plain(tensors):  # torch.export shows fake tensors, unless it is strict
        return _vectors_operators.loss(request, tensors)
    found = None
    if are_plain(tensors) and is_plain_here() and are_numbers(request.parameters):
        found = compute(request, tensors)
    return _vectors_fallback.loss(request, tensors) if found is None else found


def compute(request, tensors):
    """With its way back if one is needed; None if that is not for us."""
    first, second, third, weight, _, divisor = tensors
    needed = 0
    if _is_grad_enabled():
        of_classes = class_weight_of(request, tensors)
        if weight is not None and weight.requires_grad or of_classes is not None and of_classes.requires_grad or \
                divisor is not None and divisor.requires_grad:
            return None
        needed = FOR_INPUT * first.requires_grad | FOR_TARGET * second.requires_grad
        if third is not None and request.name not in WITH_NUMBERS:
            needed |= FOR_THIRD * third.requires_grad
    return compute_with_gradients(request, tensors, needed) if needed else ask(request, tensors, 0)


def compute_with_gradients(request, tensors, needed):
    """The gradients are computed with the value if the upstream gradient is likely to be 1, else by backward; without a
    reduction each row has its own."""
    first, kind, outputs = tensors.first, None, 0
    if request.code != NONE:
        kind = _upstream_habit.kind_of(request, first, first.shape[-1] if first.dim() else 1)
        if _upstream_habit.expected(kind) == 1:
            outputs = needed
    computed = ask(request, tensors, outputs)
    if computed is None:
        return None
    value, *gradients = computed[:4] if outputs else (computed, None, None, None)
    return attach_vector_gradients((request, kind, False, 1.0), (value, None, *gradients), *saved(tensors))
