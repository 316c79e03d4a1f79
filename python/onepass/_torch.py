"""PyTorch's tensors. What is plain goes to the C library, with its gradient in the same pass if one will be needed;
anything else falls back to PyTorch."""

import math
import sys

import torch
from torch.nn import _reduction

from . import _contract, _fallback, _native, _operators
from ._autograd import LATER, attach_gradients, gradient_time, plain_time, weights_time
from ._catalog import CATALOG
from ._contract import ALL_CODES, BATCHMEAN, MEAN, MEAN_OF_ALL, NOTHING, code_of
from ._result import IN_SINGLE, result_flags
from ._torch_checks import (TYPES, are_all_tensors, are_tensors, check_kinds, check_weight, checked_parameters,
                            checked_reduction, checked_shape, checked_variance, is_for_pytorch)
from ._torch_state import is_any_autocast, is_compiling, is_in_single, is_plain_here

_native.learn_torch(torch)

Tensor = torch.Tensor
_torch_loss, _is_grad_enabled = _native.torch_loss, torch.is_grad_enabled
_FOR_INPUT, _FOR_TARGET, _FOR_THIRD = 1, 2, 4  # the gradients that are computed with a value
_DIVIDED_BY = 8  # and what a mean was divided by


def loss(name, input, target, parameters, reduction, given=None):
    """One of the public functions. What most calls are comes first, with as few questions as it can be told by."""
    if given is None and not is_compiling():
        code = code_of(reduction)
        if code is not None:
            value = compute(name, input, target, parameters, code)
            if value is not None:
                return value
    return checked_loss(name, input, target, parameters, reduction, given or NOTHING)


def checked_loss(name, input, target, parameters, reduction, given):
    """The same with every check that PyTorch makes, in its order."""
    if parameters and not is_compiling():
        parameters = checked_parameters(name, parameters)
    if not are_all_tensors(name, input, target, given) or _fallback.is_own_weight(name, given):
        check_kinds(name, input, target, given)
        return _fallback.answer(name, input, target, parameters, reduction, given)
    contract = _contract.contract_of(name)
    if contract.sizes == _contract.WARN and input.size() != target.size() and not is_compiling():
        _contract.warn(_contract.SIZES_DIFFER.format(target.size(), input.size()))
    if given.size_average is not None or given.reduce is not None:
        reduction = _reduction.legacy_get_string(given.size_average, given.reduce)
    elif name.startswith("kl_div") and reduction == "mean" and not is_compiling():
        _contract.warn(_contract.MEAN_OF_KL_DIV)
    third = checked_variance(input, given) if name == "gaussian_nll" else given.third
    reduction = checked_reduction(name, contract, input, target, reduction, given)
    tensors = input, target, third, given.weight, given.mask
    common = checked_shape(name, contract, tensors, given.broadcast_weight)
    if common is None or is_for_pytorch(name, contract, common, input, target):
        return _fallback.loss(name, *tensors[:3], parameters, reduction, *tensors[3:],
                              as_they_are=contract.sizes != _contract.WARN)
    value = dispatch(name, tensors, parameters, reduction, contract, common, given.broadcast_weight)
    if name == "bce" and reduction != "none" and not is_compiling() and is_nan(value):
        with torch.no_grad():  # which complains if an input is outside of [0, 1]
            _fallback.loss(name, *tensors[:3], parameters, reduction, *tensors[3:])
    return value


def is_nan(value):
    """Whether a number is NaN, where it costs nothing to look."""
    return value.is_cpu and is_plain_here() and math.isnan(value.item())


def dispatch(name, tensors, parameters, reduction, contract, common, broadcast_weight):
    """By us or by PyTorch, now that all is in order."""
    weight = tensors[3]
    code = ALL_CODES[reduction]
    if weight is not None and code == MEAN and contract.mean_of_all:
        code = MEAN_OF_ALL
    if counts_once(contract, tensors, code, common, broadcast_weight):
        return _fallback.loss(name, *tensors[:3], parameters, reduction, weight, weights_once=True)
    flags = result_flags(contract, code)
    if code == BATCHMEAN and name.startswith("kl_div") and tensors[0].size()[:1] != common[:1]:
        value = None  # PyTorch's batch is the input's alone
    elif is_compiling():
        return _operators.loss(name, tensors, parameters, code, flags)
    else:
        value = compute_all(name, tensors, parameters, code, flags)
    return _fallback.typed_loss(name, tensors, parameters, code, flags) if value is None else value


def counts_once(contract, tensors, code, common, broadcast_weight):
    """Whether PyTorch would divide a mean by the sum of the weights as they came: where the input was broadcast."""
    *_, weight, mask = tensors
    return weight is not None and mask is None and code == MEAN and weight.size() != common and \
        not (contract.free_weight or broadcast_weight)


def finite_limits(known):
    """The least and the largest finite number that the library takes for a parameter."""
    low, high = known["minimum"], known["maximum"]
    low = math.nextafter(low, math.inf) if known["minimum_excluded"] else low
    high = math.nextafter(high, -math.inf) if known["maximum_excluded"] else high
    return max(low, -sys.float_info.max), min(high, sys.float_info.max)


_LIMITS = {name: [finite_limits(known) for known in loss["parameters"]] for name, loss in CATALOG.items()}


def are_allowed(name, parameters):
    """Whether the parameters are numbers that the library takes; PyTorch says what is wrong with others."""
    return all(type(p) in (float, int) and low <= p <= high for p, (low, high) in zip(parameters, _LIMITS[name]))


def borrowable(tensor):
    """A tensor as the extension can borrow it: with no minus that is only noted, at an address that is a multiple of an
    element's size."""
    if type(tensor) not in TYPES:
        raise TypeError(f"an operand is of type {type(tensor).__name__}; expected a tensor of PyTorch's own type")
    if tensor.layout is not torch.strided:
        return tensor
    tensor = tensor.resolve_neg()
    return tensor.clone() if tensor.is_cpu and tensor.data_ptr() % tensor.element_size() else tensor


# ------------------------------------------------------------------- who computes --


def compute(name, input, target, parameters, code):
    """The value of two operands and nothing else, with its way back if one is needed; None if that is not for us."""
    if not (type(input) in TYPES and type(target) in TYPES and is_plain_here()):
        return None
    if parameters and not are_allowed(name, parameters):
        return None
    in_single = is_any_autocast() and is_in_single(input.device.type)
    outputs = 0
    if _is_grad_enabled():
        outputs = _FOR_INPUT * input.requires_grad | _FOR_TARGET * target.requires_grad
    if not outputs:
        return _torch_loss(name, code, parameters, input, target, in_single, 0, False)
    types = input.dtype, target.dtype
    how = plain_time(gradient_time(code, types, None, None, outputs), types, outputs, input)
    computed = _torch_loss(name, code, parameters, input, target, in_single, 0 if how is LATER else outputs, False)
    if computed is None:
        return None
    kept = (computed,) if how is LATER else computed
    return attach_gradients((name, code, parameters, how, False, None), kept, input, target)


def compute_all(name, tensors, parameters, code, flags):
    """The same with whatever a call may have: (input, target, third, weight, mask), of any shapes."""
    input, target, *rest = tensors
    third, weight, mask = rest
    if not (is_plain_here() and are_allowed(name, parameters)):
        return None
    if is_any_autocast() and is_in_single(input.device.type):
        if name == "bce" and input.is_cuda:  # which PyTorch refuses under autocast
            return None
        flags |= IN_SINGLE
    outputs = 0
    if _is_grad_enabled():
        outputs = _FOR_INPUT * input.requires_grad | _FOR_TARGET * target.requires_grad
        if third is not None:
            outputs |= _FOR_THIRD * third.requires_grad
        if weight is not None and weight.requires_grad:
            return None
    operands = (name, code, parameters, input, target)
    if not outputs:
        return _torch_loss(*operands, flags, 0, True, *rest)
    types = (input.dtype, target.dtype) if third is None else (input.dtype, target.dtype, third.dtype)
    how, keeps_divisor = weights_time(code, gradient_time(code, types, weight, mask, outputs), tensors)
    asked = (0 if how is LATER else outputs) | (_DIVIDED_BY if keeps_divisor else 0)
    computed = _torch_loss(*operands, flags, asked, True, *rest)
    if computed is None:
        return None
    divisor = computed[-1] if keeps_divisor else None
    value = computed[0] if asked else computed
    kept = (value,) if how is LATER else computed[:1 + len(types)]
    return attach_gradients((name, code, parameters, how, True, divisor), kept, *tensors)


# ----------------------------------------------------------- value_and_grad --


def value_and_grad(name, input, target, parameters, reduction, given):
    """Both from one pass; by PyTorch where the operands are not plain."""
    parameters = checked_parameters(name, parameters)
    check_kinds(name, input, target, given)
    contract = _contract.contract_of(name)
    third = checked_variance(input, given) if name == "gaussian_nll" else given.third
    if given.weight is not None and not contract.free_weight:
        check_weight(input, given)
    tensors = input, target, third, given.weight, given.mask
    common = checked_shape(name, contract, tensors, given.broadcast_weight)
    if common is not None and are_tensors(*tensors):
        code = ALL_CODES[reduction]
        computed = from_one_pass(name, tensors, parameters, code, contract, common, given.broadcast_weight)
        if computed is not None:
            return computed
    with torch.enable_grad():
        leaf, *rest = (None if x is None else x.detach() for x in tensors)
        leaf.requires_grad_()
        if common is None:
            value = _fallback.loss(name, leaf, *rest[:2], parameters, reduction, *rest[2:],
                                   as_they_are=contract.sizes != _contract.WARN)
        else:
            value = dispatch(name, (leaf, *rest), parameters, reduction, contract, common, given.broadcast_weight)
        gradient, = torch.autograd.grad(value, (leaf,))
    return value.detach(), gradient


def from_one_pass(name, tensors, parameters, code, contract, common, broadcast_weight):
    """The value and the gradient for the input; None if that is not for us, or has another divisor."""
    input, target, *rest = tensors
    weight = rest[1]
    if not (is_plain_here() and are_allowed(name, parameters)) or \
            counts_once(contract, tensors, code, common, broadcast_weight):
        return None
    if weight is not None and code == MEAN and contract.mean_of_all:
        code = MEAN_OF_ALL
    with torch.no_grad():
        computed = _torch_loss(name, code, parameters, input, target, result_flags(contract, code), _FOR_INPUT,
                               True, *rest)
        if computed is None:
            return None
        value, gradient, *_ = computed
        return value, gradient if gradient.shape == input.shape else gradient.sum_to_size(input.shape)
