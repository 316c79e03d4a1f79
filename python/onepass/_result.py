"""The type and the strides of a result: flags that the extension, the operators and the fallback read alike."""

import torch

from ._contract import NONE, QUIET, TO_INPUT

IN_SINGLE = 1  # at least float32, as autocast wants it
TWO_DECIDE = 2  # its type is that of input and target alone
NUMBERS_ABSTAIN = 4  # operands without dimensions have no say in it beside those that have some
LAYOUT_SHIFT = 3  # without a reduction: the number of the operand whose strides it has


def result_flags(contract, code):
    """Those that a loss's contract asks for; autocast's comes on top."""
    flags = TWO_DECIDE if contract.two_decide else 0
    if contract.sizes in (QUIET, TO_INPUT):  # where PyTorch does not expand operands first
        flags |= NUMBERS_ABSTAIN
    return flags | contract.layout << LAYOUT_SHIFT if code == NONE else flags


def result_type(tensors, flags):
    """The result's type, as the extension has it."""
    input, target, third, weight, _ = tensors
    deciding = [input, target] if third is None or flags & TWO_DECIDE else [input, target, third]
    has_dimensions = any([operand.dim() > 0 for operand in deciding])
    if flags & NUMBERS_ABSTAIN and has_dimensions:
        deciding = [operand for operand in deciding if operand.dim() > 0]
    if weight is not None and not flags & TWO_DECIDE and (weight.dim() > 0 or not has_dimensions):
        deciding.append(weight)
    dtype = deciding[0].dtype
    for operand in deciding[1:]:
        dtype = torch.promote_types(dtype, operand.dtype)
    return torch.float32 if flags & IN_SINGLE and dtype in (torch.float16, torch.bfloat16) else dtype
