"""What PyTorch's losses ask of tensors, with its complaints in its order."""

import torch
from torch.nn import _reduction

from . import _contract
from ._catalog import CATALOG, as_number, check_index, check_range, check_whole, function_of, is_number, plain_number
from ._contract import ALL_CODES, CODES, code_of
from ._torch_names import TORCH_NAMES
from ._torch_state import is_compiling, is_plain_here, is_transformed, is_transforming

TYPES = (torch.Tensor, torch.nn.Parameter)
_SYMBOLS = (torch.SymInt, torch.SymFloat)  # a tracer's numbers
_THREE = {"gaussian_nll": "var", "margin_ranking": "target"}  # what callers call a third operand that must be there
_WHOLE = 2**53  # up to which a double has every whole number


def are_tensors(*operands):
    """Whether these are PyTorch's own tensors, and no subclass that would answer for itself."""
    return all(type(operand) in TYPES or operand is None for operand in operands)


def are_all_tensors(name, input, target, given):
    third = None if name == "gaussian_nll" and is_number(given.third) else given.third
    return input is not None and target is not None and (given.third is not None or name not in _THREE) and \
        are_tensors(input, target, third, given.weight, given.mask)


def no_tensor(called, operand, other="the other operand"):
    """The complaint of what is none where another operand is one."""
    mixes = " (PyTorch's tensors and NumPy's arrays do not mix)" if hasattr(type(operand), "__array_interface__") else ""
    return TypeError(f"{called} is {type(operand).__name__}; expected a tensor, as {other} is one{mixes}")


def check_kinds(name, input, target, given):
    needed = ("input", "target", _THREE.get(name))
    named = ((input, "input"), (target, "target"), (given.third, _THREE.get(name, "the third operand")),
             (given.weight, "weight"), (given.mask, "mask"))
    for operand, called in named:
        if called == "var" and is_number(operand):
            continue
        if not hasattr(type(operand), "__torch_function__") and (operand is not None or called in needed):
            raise no_tensor(called, operand)


def checked_parameters(name, parameters):
    """Numbers where they can be had: a tensor stays one where a gradient flows to it, where it has dimensions, and
    where it cannot be looked at, since a GPU would be waited for or a transform is at work."""
    return tuple([value if isinstance(value, _SYMBOLS) else checked_tensor(name, known, value)
                  if isinstance(value, torch.Tensor) and not torch.is_complex(value) else as_number(name, known, value)
                  for known, value in zip(CATALOG[name]["parameters"], parameters)])


def checked_tensor(name, known, value, function=None):
    if type(value) not in TYPES or not value.is_cpu or not is_plain_here():
        return value
    if value.dim() == 0 and not (value.requires_grad and torch.is_grad_enabled()):
        return float(value.item())
    if name not in TORCH_NAMES and value.numel() > 0:  # whose complaints are PyTorch's
        for end in value.detach().double().aminmax():
            check_range(name, known, end.item(), function)
    return value


def row_parameter(name, known, value, function=None):
    """The same of one parameter of a loss over rows or of vectors, checked. A tensor has no dimensions there, and stays
    one in a compiled function, too."""
    if type(value) is float:
        pass  # as most are
    elif isinstance(value, torch.Tensor) and not torch.is_complex(value):
        if value.dim() > 0:
            raise TypeError(f"{known['name']} of {function or function_of(name)} is a tensor of size "
                            f"{tuple(value.shape)}; expected a real number, or a tensor without dimensions")
        value = value if is_compiling() else checked_tensor(name, known, value, function)
        if isinstance(value, torch.Tensor):
            return value
    elif type(value) is int and -_WHOLE <= value <= _WHOLE or isinstance(value, _SYMBOLS) or \
            is_compiling() and isinstance(value, (float, int)):
        value = float(value)
    else:
        value = as_number(name, known, value, function)
    check_range(name, known, value, function)
    return value


def row_number(name, known, value, function=None):
    """The same of a parameter that is a number in any case."""
    if isinstance(value, torch.Tensor):
        check_no_gradient(known["name"], value, function or function_of(name))
        value = plain_number(value)
    if known["name"] == "ignore_index" and not isinstance(value, (int, torch.SymInt)):
        check_whole(plain_number(value))
    check_index(name, known, value)
    return row_parameter(name, known, value, function)


def are_numbers(parameters):
    """Whether none of them stayed a tensor, with which only PyTorch computes."""
    for value in parameters:
        if isinstance(value, torch.Tensor):
            return False
    return True


def is_differentiated(value):
    """Whether it is a tensor that a gradient flows to, or that a transform looks at: to compute with the number that it
    is would lose the derivative without a word."""
    return isinstance(value, torch.Tensor) and (value.requires_grad and torch.is_grad_enabled() or is_transformed(value))


def check_no_gradient(called, value, function, instead=""):
    if is_differentiated(value):
        what = "requires a gradient" if value.requires_grad else "is under a transform"
        raise TypeError(f"{called} of {function} {what}, which {function} does not have for it; expected "
                        f"{instead}a number, such as {called}.item()")


def check_no_transform(*tensors):
    """What PyTorch says of its own, of a missing setup_context, does not help who calls a loss over ranks."""
    if is_transforming() or any(tensor is not None and is_transformed(tensor) for tensor in tensors):
        raise NotImplementedError("a loss over ranks has no forward mode and no transforms of torch.func; expected "
                                  "loss.backward() or torch.autograd.grad")


def checked_reduction(name, contract, input, target, reduction, given):
    """A reduction that we know, after PyTorch's complaints in its order: with a weight, that the operands can be
    broadcast, the weight's size, the reduction."""
    known = code_of(reduction, ALL_CODES if contract.has_batchmean else CODES) is not None
    if given.weight is not None and not contract.free_weight:
        if input.size() != target.size():
            torch.broadcast_tensors(input, target)
        check_weight(input, given)
        if not known:
            raise ValueError(f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'.")
    if known:
        return reduction
    if contract.strict_reductions:
        _contract.check_reduction(name, reduction)
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
    if is_number(variance):
        if variance < 0 and given.mask is None:
            raise ValueError(_contract.VARIANCE_NEGATIVE)
        return torch.full((), float(variance), dtype=input.dtype, device=input.device)
    if given.mask is None:
        check_variance(variance)
    return _contract.fitted_variance(input, variance)


def check_memory(called, tensor):
    """What the extension says of a tensor whose memory was given back, for one that PyTorch's operations see first:
    they would crash."""
    if type(tensor) not in TYPES or is_compiling() or not is_plain_here() or not tensor.is_cpu or \
            tensor.layout is not torch.strided or tensor.numel() == 0:
        return
    last = tensor.storage_offset() + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride()))
    has, needs = tensor.untyped_storage().nbytes(), (last + 1) * tensor.element_size()
    if has < needs:
        raise RuntimeError(f"{called} has no memory: its storage has {has} bytes, and it needs {needs}")


def check_own(called, tensor):
    """That it is a tensor of PyTorch's own type, with memory."""
    if type(tensor) not in TYPES or tensor.is_nested:
        kind = "a nested tensor" if isinstance(tensor, torch.Tensor) and tensor.is_nested else type(tensor).__name__
        raise TypeError(f"{called} is {kind}; expected a tensor of PyTorch's own type")
    check_memory(called, tensor)


def check_variance(variance, mask=None):
    """That it is not negative where it takes part. On a GPU nobody looks: that would wait."""
    if is_compiling() or not variance.is_cpu or not is_plain_here() or variance.numel() == 0:
        return
    check_memory("var", variance)
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
    if tensor.layout is not torch.strided:
        raise TypeError(f"{called} is of {tensor.layout}; expected a dense tensor")
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
