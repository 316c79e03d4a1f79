"""What PyTorch is doing around a call: compiling, transforming, watching, casting."""

import torch
import torch.autograd.forward_ad as forward_ad

_dispatch_modes = torch._C._len_torch_dispatch_stack
_transform, _tracing_state = torch._C._functorch.peek_interpreter_stack, torch._C._get_tracing_state
is_any_autocast = getattr(torch._C, "_is_any_autocast_enabled", None) or torch._C.is_any_autocast_enabled
is_compiling = getattr(torch.compiler, "is_compiling", None) or torch._dynamo.is_compiling


def _knows_kinds():
    try:
        torch.is_autocast_enabled("cpu")
    except TypeError:  # before PyTorch 2.4 there was a question for each kind, and torch.compile traces no other
        return False
    return True


_KNOWS_KINDS = _knows_kinds()


def is_plain_here():
    """Whether nobody is watching: no transform of torch.func, no dispatch mode, no tracer, no forward-mode derivative.
    Function modes have seen the call before."""
    return not (_dispatch_modes() or _transform() is not None or forward_ad._current_level >= 0 or
                _tracing_state() is not None)


def is_transforming():
    """Whether a transform of torch.func is at work, of whatever."""
    return _transform() is not None


def is_transformed(tensor):
    """Whether a transform of torch.func or a forward-mode derivative sees through it."""
    if is_compiling():
        return torch._C._are_functorch_transforms_active()
    if _transform() is not None and (torch._C._functorch.is_gradtrackingtensor(tensor) or
                                     torch._C._functorch.is_batchedtensor(tensor)):
        return True
    return forward_ad._current_level >= 0 and forward_ad.unpack_dual(tensor).tangent is not None


def is_batch(tensor):
    """Whether it stands for the several upstream gradients of is_grads_batched, whose memory cannot be asked for."""
    try:
        tensor.data_ptr()
    except RuntimeError:
        return True
    return False


def is_in_single(device_type):
    """Whether autocast asks for float32 on this kind of device."""
    if _KNOWS_KINDS:
        return is_any_autocast() and torch.is_autocast_enabled(device_type)
    return torch.is_autocast_cpu_enabled() if device_type == "cpu" else torch.is_autocast_enabled()
