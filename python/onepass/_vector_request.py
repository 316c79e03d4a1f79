"""One computation of a vector loss, as the extension, the operators and the fallback are told it alike."""

from collections import namedtuple

import torch

from ._catalog import VECTOR_CATALOG, WITH_LABELS, WITH_NUMBERS, is_number, vector_count
from ._row_request import FLOATS, LABELS, Request

assert Request  # which is that of losses over rows; its axis is the first of a row's dimensions

#: The tensors of one, each but the first two may be None; all vectors have one shape. The third of a loss with class
#: indices are the classes' weights.
Tensors = namedtuple("Tensors", "first second third weight mask divisor", defaults=(None,) * 4)

#: What a cosine embedding's targets may be: a number for each row.
SIGNS = (*FLOATS, *LABELS)


def vectors_of(request, tensors):
    return tuple(tensors)[:vector_count(request.name)]


def target_of(request, tensors):
    """The operand that is a number for each row, or a list of labels, rather than a vector; None if there is none."""
    return tensors[vector_count(request.name)] if request.name in WITH_NUMBERS else None


def class_weight_of(request, tensors):
    return tensors.third if request.name == "multi_margin" else None


def operand_types(request):
    """That the library takes, of each operand."""
    if request.name in WITH_LABELS:
        return FLOATS, LABELS, FLOATS
    return FLOATS, FLOATS, SIGNS if request.name == "cosine_embedding" else FLOATS


def first_dimension(tensor, axis):
    """Of a row's dimensions, counted from 0."""
    return axis - 1 if axis > 0 else tensor.dim() + (axis or -1)


def rows_shape(tensor, axis):
    return tensor.shape[:first_dimension(tensor, axis)]


def result_type(request, tensors, in_single):
    """The value's type, as the extension has it."""
    if request.dtype is not None:
        return request.dtype
    dtype = tensors.first.dtype
    for tensor in vectors_of(request, tensors)[1:]:
        dtype = torch.promote_types(dtype, tensor.dtype)
    if tensors.weight is not None and tensors.weight.dim() > 0:
        dtype = torch.promote_types(dtype, tensors.weight.dtype)
    return torch.float32 if in_single and dtype in (torch.float16, torch.bfloat16) else dtype


def plain_parameters(name, values):
    """As floats in the catalogue's order; None if the library does not take them, of which PyTorch has something to
    say."""
    found = []
    for known, value in zip(VECTOR_CATALOG[name]["parameters"], values):
        if not (isinstance(value, (torch.SymFloat, torch.SymInt)) or is_number(value)):
            return None
        value = float(value)
        if not known["minimum"] <= value <= known["maximum"] or abs(value) == float("inf") or \
                (known["minimum_excluded"] and value == known["minimum"]) or \
                (known["maximum_excluded"] and value == known["maximum"]):
            return None
        found.append(value)
    return tuple(found)
