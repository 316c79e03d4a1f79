"""PyTorch's tensors. What is plain goes to the C library, with its gradient in the same pass if one will be needed;
anything else is handed over to PyTorch."""

import math

import torch
import torch.autograd.forward_ad as forward_ad
from torch.nn import _reduction

from . import _contract, _handover, _native
from ._contract import BATCHMEAN, CODES, MEAN, MEAN_OF_ALL, NAMES, NONE, NOTHING
from .functional import CATALOG

_native.learn_torch(torch)

Tensor = torch.Tensor
_torch_loss, _torch_gradient, _torch_scale = _native.torch_loss, _native.torch_gradient, _native.torch_scale
_is_grad_enabled = torch.is_grad_enabled
_dispatch_modes = torch._C._len_torch_dispatch_stack
_transform, _tracing_state = torch._C._functorch.peek_interpreter_stack, torch._C._get_tracing_state
_is_any_autocast = getattr(torch._C, "_is_any_autocast_enabled", None) or torch._C.is_any_autocast_enabled
_is_compiling = getattr(torch.compiler, "is_compiling", None) or torch._dynamo.is_compiling

_TYPES = (Tensor, torch.nn.Parameter)
_FOR_INPUT, _FOR_TARGET, _FOR_THIRD = 1, 2, 4
_IN_SINGLE, _TWO_DECIDE, _NUMBERS_ABSTAIN, _LAYOUT_SHIFT = 1, 2, 4, 3  # how the extension makes a result


def loss(name, input, target, parameters, reduction, given=None):
    """One of the public functions. What most calls are comes first, with as few questions as it can be told by."""
    if given is None and not _is_compiling():
        code = CODES.get(reduction)
        if code is not None:
            value = compute(name, input, target, parameters, code)
            if value is not None:
                return value
    return with_care(name, input, target, parameters, reduction, given or NOTHING)


def with_care(name, input, target, parameters, reduction, given):
    """The same with every check that PyTorch makes, in its order."""
    if not are_all_tensors(name, input, target, given):
        check_kinds(name, input, target, given)
        return _handover.answer(name, input, target, parameters, reduction, given)
    contract = _contract.contract_of(name)
    if parameters and not _is_compiling():
        parameters = _contract.as_numbers(parameters)
    if contract.sizes == _contract.WARN and input.size() != target.size() and not _is_compiling():
        _contract.warn(_contract.SIZES_DIFFER.format(target.size(), input.size()))
    if given.size_average is not None or given.reduce is not None:
        reduction = _reduction.legacy_get_string(given.size_average, given.reduce)
    elif name.startswith("kl_div") and reduction == "mean" and not _is_compiling():
        _contract.warn(_contract.MEAN_OF_KL_DIV)
    third = checked_variance(input, given) if name == "gaussian_nll" else given.third
    reduction = checked_reduction(name, contract, input, target, reduction, given)
    tensors = input, target, third, given.weight, given.mask
    common = checked_shape(name, contract, tensors, given.broadcast_weight)
    if common is None or is_for_pytorch(name, contract, common, input, target):
        return _handover.loss(name, *tensors[:3], parameters, reduction, *tensors[3:],
                              as_they_are=contract.sizes != _contract.WARN)
    value = answered(name, tensors, parameters, reduction, contract, common, given.broadcast_weight)
    if name == "bce" and reduction != "none" and not _is_compiling() and is_nan(value):
        with torch.no_grad():  # which complains if an input is outside of [0, 1]
            _handover.loss(name, *tensors[:3], parameters, reduction, *tensors[3:])
    return value


def is_nan(value):
    """Whether a number is NaN, where it costs nothing to look."""
    return value.is_cpu and is_plain_here() and math.isnan(value.item())


def answered(name, tensors, parameters, reduction, contract, common, broadcast_weight):
    """By us or by PyTorch, now that all is in order."""
    weight = tensors[3]
    code = BATCHMEAN if reduction == "batchmean" else CODES[reduction]
    if weight is not None and code == MEAN and contract.mean_of_all:
        code = MEAN_OF_ALL
    if counts_once(contract, tensors, code, common, broadcast_weight):
        return _handover.loss(name, *tensors[:3], parameters, reduction, weight, weights_once=True)
    made = how_made(contract, code)
    if code == BATCHMEAN and name.startswith("kl_div") and tensors[0].size()[:1] != common[:1]:
        return handed_over(name, tensors, parameters, code, made)  # whose batch is the input's alone
    return by_us_or_pytorch(name, tensors, parameters, code, made)


def counts_once(contract, tensors, code, common, broadcast_weight):
    """Whether PyTorch would divide a mean by the sum of the weights as they came: where the input was broadcast."""
    *_, weight, mask = tensors
    return weight is not None and mask is None and code == MEAN and weight.size() != common and \
        not (contract.free_weight or broadcast_weight)


def how_made(contract, code):
    """The bits that tell the extension how to make a result."""
    how = _TWO_DECIDE if contract.two_decide else 0
    if contract.sizes in (_contract.QUIET, _contract.TO_INPUT):  # where PyTorch does not expand operands first
        how |= _NUMBERS_ABSTAIN
    return how | contract.layout << _LAYOUT_SHIFT if code == NONE else how


def by_us_or_pytorch(name, tensors, parameters, code, made):
    if _is_compiling():
        return _operators.loss(name, tensors, parameters, code, made)
    value = compute_all(name, tensors, parameters, code, made)
    return handed_over(name, tensors, parameters, code, made) if value is None else value


def handed_over(name, tensors, parameters, code, made):
    """By PyTorch, which computes in the operands' common type; a number among them has no say in the result's."""
    value = _handover.loss(name, *tensors[:3], parameters, NAMES[code], *tensors[3:])
    operands = [operand for operand in tensors[:3] if operand is not None]
    if not made & _NUMBERS_ABSTAIN or all(operand.dim() for operand in operands) or \
            not all(operand.is_floating_point() for operand in operands):
        return value
    return value.to(_operators.value_type(tensors, made | is_in_single(tensors[0].device.type)))


# -------------------------------------------------------------- PyTorch's checks --


def are_tensors(*operands):
    """Whether these are PyTorch's own tensors, and no subclass that would answer for itself."""
    return all(type(operand) in _TYPES or operand is None for operand in operands)


def are_all_tensors(name, input, target, given):
    third = None if name == "gaussian_nll" and _contract.is_number(given.third) else given.third
    return are_tensors(input, target, third, given.weight, given.mask)


def check_kinds(name, input, target, given):
    third = None if name == "gaussian_nll" and _contract.is_number(given.third) else given.third
    named = ((input, "input"), (target, "target"), (third, "the third operand"), (given.weight, "weight"),
             (given.mask, "mask"))
    for operand, called in named:
        if not hasattr(type(operand), "__torch_function__") and (operand is not None or called in ("input", "target")):
            raise TypeError(f"{called} is {type(operand).__name__}; expected a tensor, as the other operand is one "
                            "(PyTorch's tensors and NumPy's arrays do not mix)")


def checked_reduction(name, contract, input, target, reduction, given):
    """A reduction that we know, after PyTorch's complaints in its order: with a weight, that the operands can be
    broadcast, the weight's size, the reduction."""
    known = reduction in CODES or (contract.has_batchmean and reduction == "batchmean")
    if given.weight is not None and not contract.free_weight:
        if input.size() != target.size():
            torch.broadcast_tensors(input, target)
        check_weight(input, given)
        if not known:
            raise ValueError(f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'.")
    if known:
        return reduction
    if contract.strict_reductions:
        _contract.check_strict_reduction(name, reduction)
    if contract.sizes == _contract.WARN:
        torch.broadcast_tensors(input, target)  # PyTorch complains of sizes first
    _reduction.get_enum(reduction)  # raises, or warns of an old name of the mean
    return "mean"


def check_weight(input, given):
    if not given.broadcast_weight and given.weight.size() != input.size():
        raise ValueError(_contract.WEIGHT_DIFFERS)


def checked_variance(input, given):
    """What gaussian_nll_loss asks of a variance. Beside a mask its numbers are looked at once both have a shape."""
    variance = given.third
    if _contract.is_number(variance):
        if variance < 0:
            raise ValueError(_contract.VARIANCE_NEGATIVE)
        return torch.full((), float(variance), dtype=input.dtype, device=input.device)
    if given.mask is None:
        check_variance(variance)
    return _contract.fitted_variance(input, variance)


def check_variance(variance, mask=None):
    """That it is not negative where it takes part. On a GPU nobody looks: that would wait."""
    if _is_compiling() or not variance.is_cpu or not is_plain_here() or variance.numel() == 0:
        return
    variance = variance.detach()
    if variance.amin() >= 0:  # without a temporary
        return
    negative = variance < 0  # beside a NaN, too
    if (negative if mask is None else negative & (mask != 0)).any():
        raise ValueError(_contract.VARIANCE_NEGATIVE)


def checked_shape(name, contract, tensors, broadcast_weight):
    """The common shape, with weight and mask in order; None if there is none, of which PyTorch has something to say."""
    input, target, third, weight, mask = tensors
    _contract.check_sizes(contract.sizes, input, target, third)
    common = _contract.common_shape(input.shape, target.shape) if third is None else \
        _contract.common_shape(input.shape, target.shape, third.shape)
    if common is None:
        return None
    if weight is not None and (contract.free_weight or broadcast_weight):
        check_reach("weight", weight, common)
    if mask is not None:
        if mask.dtype not in (torch.bool, torch.uint8):
            raise TypeError(f"mask is of {mask.dtype}; expected torch.bool or torch.uint8")
        check_reach("mask", mask, common)
        if name == "gaussian_nll":
            check_variance(third, mask)
    return common


def check_reach(called, tensor, common):
    if not _contract.broadcasts_to(tensor.shape, common):
        raise RuntimeError(f"{called} of size {tuple(tensor.shape)} does not broadcast to that of the loss, "
                           f"{tuple(common)}")


def is_for_pytorch(name, contract, common, input, target):
    """What PyTorch has a word of its own for: a size that it refuses, and the type of a number beside tensors where it
    is the input's."""
    if common != input.size() and contract.sizes in (_contract.TO_INPUT, _contract.EQUAL_LOGITS):
        return True
    return name == "hinge_embedding" and input.dtype != target.dtype and \
        input.size() != target.size() and 0 in (input.dim(), target.dim())


# What the library takes of each loss's parameters: finite numbers; the ends that are excluded stand one step inside.
_LARGEST = 1.7976931348623157e308
_RANGES = {name: [(max(math.nextafter(known["minimum"], math.inf) if known["minimum_excluded"] else known["minimum"], -_LARGEST),
                   min(math.nextafter(known["maximum"], -math.inf) if known["maximum_excluded"] else known["maximum"],
                       _LARGEST)) for known in loss["parameters"]] for name, loss in CATALOG.items()}


def are_allowed(name, parameters):
    """Whether the parameters are numbers that the library takes; PyTorch says what is wrong with others."""
    return all(type(p) in (float, int) and low <= p <= high for p, (low, high) in zip(parameters, _RANGES[name]))


# ------------------------------------------------------------------- who computes --


def is_plain_here():
    """Whether nobody is watching: no transform of torch.func, no dispatch mode, no tracer, no forward-mode derivative.
    Function modes have seen the call before."""
    return not (_dispatch_modes() or _transform() is not None or forward_ad._current_level >= 0 or
                _tracing_state() is not None)


def is_in_single(device_type):
    """Whether autocast asks for float32 on this kind of device."""
    if not _is_any_autocast():
        return False
    try:
        return torch.is_autocast_enabled(device_type)
    except TypeError:  # before PyTorch 2.4 there was a question for each kind
        return torch.is_autocast_cpu_enabled() if device_type == "cpu" else torch.is_autocast_enabled()


def compute(name, input, target, parameters, code):
    """The value of two operands and nothing else, with its way back if one is needed; None if that is not for us."""
    if not (type(input) in _TYPES and type(target) in _TYPES and is_plain_here()):
        return None
    if parameters and not are_allowed(name, parameters):
        return None
    in_single = _is_any_autocast() and is_in_single(input.device.type)
    wanted = 0
    if _is_grad_enabled():
        wanted = _FOR_INPUT * input.requires_grad | _FOR_TARGET * target.requires_grad
    if not wanted:
        return _torch_loss(name, code, parameters, input, target, in_single, 0, False)
    if code != NONE and input.dtype is _SINGLE and target.dtype is _SINGLE:
        how = SCALE
    else:
        how = how_to(code, (input.dtype, target.dtype), None, None, wanted)
    computed = _torch_loss(name, code, parameters, input, target, in_single, 0 if how is LATER else wanted, False)
    if computed is None:
        return None
    return _apply((name, code, parameters, how, False), computed if how is not LATER else (computed,), input, target)


def compute_all(name, tensors, parameters, code, made):
    """The same with whatever a call may have: (input, target, third, weight, mask), of any shapes."""
    input, target, *rest = tensors
    third, weight, mask = rest
    if not (is_plain_here() and are_allowed(name, parameters)):
        return None
    if _is_any_autocast() and is_in_single(input.device.type):
        if name == "bce" and input.is_cuda:  # which PyTorch refuses under autocast
            return None
        made |= _IN_SINGLE
    wanted = 0
    if _is_grad_enabled():
        wanted = _FOR_INPUT * input.requires_grad | _FOR_TARGET * target.requires_grad
        if third is not None:
            wanted |= _FOR_THIRD * third.requires_grad
        if weight is not None and weight.requires_grad:
            return None
    operands = (name, code, parameters, input, target)
    if not wanted:
        return _torch_loss(*operands, made, 0, True, *rest)
    types = (input.dtype, target.dtype) if third is None else (input.dtype, target.dtype, third.dtype)
    how = how_to(code, types, weight, mask, wanted)
    computed = _torch_loss(*operands, made, 0 if how is LATER else wanted, True, *rest)
    if computed is None:
        return None
    return _apply((name, code, parameters, how, True), computed if how is not LATER else (computed,), *tensors)


# ---------------------------------------------------------------- autograd --

# What backward does with an upstream gradient that only the device knows: nothing where it is 1, ...
SCALE = "scale"  # ... else it multiplies the gradient, ...
ANEW = "anew"  # ... or computes it anew, since a rounded one cannot be scaled; ...
LATER = "later"  # ... or the gradient was not computed before.

_SINGLE = torch.float32


def how_to(code, types, weight, mask, wanted):
    """An f16 gradient would underflow before GradScaler's factor; without a reduction each element has its own; and
    what a mask leaves out is 0 even if that factor is infinite."""
    if code == NONE:
        return LATER
    gradients = [dtype for k, dtype in enumerate(types) if wanted >> k & 1]
    if torch.float16 in gradients:
        return LATER
    if mask is not None:
        return ANEW
    in_double = torch.float64 in types or (weight is not None and weight.dtype == torch.float64)
    return SCALE if all(dtype is (torch.float64 if in_double else torch.float32) for dtype in gradients) else ANEW


class Loss(torch.autograd.Function):
    """The value, computed before; its gradients, computed with it or to be computed. The tensors are input and target,
    or those and third operand, weight and mask, if only one of these is there.

    The gradients are not saved tensors of the graph: whoever runs backward first gets the only reference, so that
    PyTorch need not copy them.
    """

    @staticmethod
    def forward(ctx, question, computed, *tensors):
        ctx.question = question
        ctx.save_for_backward(*tensors)
        value, *ctx.kept = computed
        return value

    @staticmethod
    def backward(ctx, upstream):
        saved = ctx.saved_tensors  # once: checkpointing computes them; and it says so if one was changed in place
        if _is_grad_enabled():
            return None, None, *by_handover(ctx, saved, upstream, create_graph=True), None, None
        _, _, _, how, broadcast = ctx.question
        found = ctx.__dict__.pop("kept", None)  # in one step, should two threads run backward at once
        if not (found and how is SCALE and _torch_scale(upstream, *found)):
            found = compute_gradients(ctx, saved, upstream, found if how is ANEW else None)
        if broadcast:
            found = summed(saved, found)
        return None, None, *found, *(None,) * (len(saved) - len(found))


# Without what torch.autograd.Function.apply asks first, and compute has asked: a tenth of a small call's time. And
# without its choice between backward and vjp, on the way back.
_apply = super(torch.autograd.Function, Loss).apply
Loss._backward_cls.apply = Loss.backward


def compute_gradients(ctx, saved, upstream, kept):
    """At the common shape. With `kept`, computed for an upstream gradient of 1, only if it is another."""
    wanted = kept or [need or None for need in ctx.needs_input_grad[2:5]]
    computed = None
    if is_plain_here():
        computed = _torch_gradient(*ctx.question[:3], *saved[:2], upstream, tuple(wanted), *saved[2:])
    return by_handover(ctx, saved, upstream, create_graph=False) if computed is None else computed


def by_handover(ctx, saved, upstream, create_graph):
    name, code, parameters, *_ = ctx.question
    operands, (weight, mask) = (saved[:3], saved[3:]) if len(saved) > 2 else ((*saved, None), (None, None))
    needed = (*ctx.needs_input_grad[2:5], False)[:3]
    return _handover.gradients(name, operands, parameters, NAMES[code], weight, mask, upstream, needed, create_graph)


def summed(saved, gradients):
    """Each at its operand's own shape."""
    return [gradient if gradient is None or gradient.shape == operand.shape else gradient.sum_to_size(operand.shape)
            for gradient, operand in zip(gradients, saved)]


# ----------------------------------------------------------- value_and_grad --


def value_and_grad(name, input, target, parameters, reduction, given):
    """Both from one pass; by PyTorch where the operands are not plain."""
    check_kinds(name, input, target, given)
    contract = _contract.contract_of(name)
    third = checked_variance(input, given) if name == "gaussian_nll" else given.third
    if given.weight is not None and not contract.free_weight:
        check_weight(input, given)
    tensors = input, target, third, given.weight, given.mask
    common = checked_shape(name, contract, tensors, given.broadcast_weight)
    if common is not None and are_tensors(*tensors):
        code = BATCHMEAN if reduction == "batchmean" else CODES[reduction]
        computed = from_one_pass(name, tensors, parameters, code, contract, common, given.broadcast_weight)
        if computed is not None:
            return computed
    with torch.enable_grad():
        leaf, *rest = (None if x is None else x.detach() for x in tensors)
        leaf.requires_grad_()
        if common is None:
            value = _handover.loss(name, leaf, *rest[:2], parameters, reduction, *rest[2:],
                                   as_they_are=contract.sizes != _contract.WARN)
        else:
            value = answered(name, (leaf, *rest), parameters, reduction, contract, common, given.broadcast_weight)
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
        computed = _torch_loss(name, code, parameters, input, target, how_made(contract, code), _FOR_INPUT, True, *rest)
        if computed is None:
            return None
        value, gradient, *_ = computed
        return value, gradient if gradient.shape == input.shape else gradient.sum_to_size(input.shape)


from . import _operators  # noqa: E402: last, since it needs what is above
