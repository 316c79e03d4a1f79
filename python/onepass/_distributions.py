"""Distances of distributions of PyTorch's tensors: vector losses whose two operands are logits."""

import torch

from ._contract import check_axis, checked_dim, code_of, common_shape
from ._row_request import FLOATS, is_known
from ._torch_checks import are_numbers
from ._vectors import check_kinds, checked_parameters, compute_plain, expanded, finished

Tensor = torch.Tensor


def loss(name, operands, parameters, reduction, dim, weight, mask, divisor):
    """Of (input, target), or the other way round."""
    parameters, code = checked_parameters(name, parameters), code_of(reduction)
    if weight is None and mask is None and divisor is None and code is not None and type(dim) is int and \
            are_numbers(parameters):
        value = compute_plain(name, code, parameters, *operands, None, dim)
        if value is not None:
            return value
    first, second = operands
    check_kinds(input=first, target=second, weight=weight, mask=mask)
    if not is_known(reduction):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return finished(name, (*rows_of(first, second, dim), None, weight, mask), parameters, -1, reduction, divisor)


def rows_of(first, second, dim):
    """Logits of one shape, with the classes as the last dimension."""
    for logits in (first, second):
        if logits.dtype not in FLOATS:
            raise TypeError(f"logits are of {logits.dtype}; expected a floating point type")
    common = common_shape(first.shape, second.shape)
    if not common:
        raise ValueError(f"logits of sizes {tuple(first.shape)} and {tuple(second.shape)}; expected rows of classes "
                         "that broadcast together")
    dim = checked_dim(dim)
    check_axis(len(common), dim + 1 if dim >= 0 else dim)
    first, second = expanded(common, first, second)
    return (first, second) if dim in (-1, len(common) - 1) else (first.movedim(dim, -1), second.movedim(dim, -1))
