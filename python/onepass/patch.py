"""The functions of torch.nn.functional, and with them the modules of torch.nn, replaced by ours for a while."""

import functools

from . import functional, margins, vectors
from ._torch_names import ROW_NAMES, TORCH_NAMES, VECTOR_NAMES

_NAMES = sorted({name.function for name in TORCH_NAMES.values()} | ROW_NAMES | VECTOR_NAMES)
_originals, _replacements = {}, {}
_patches = 0


def patch_torch():
    """Replaces the losses of torch.nn.functional, from mse_loss to cross_entropy, by onepass's of the same names, all but
    multilabel_soft_margin_loss, triplet_margin_with_distance_loss and linear_cross_entropy. Undo it by the object's
    undo(), or use it as a context manager:

        with onepass.patch_torch():
            train()

    Patches may be nested; PyTorch's own functions are back when the last one is undone.
    """
    return Patch()


class Patch:
    """One patch, in force from its making until undo()."""

    def __init__(self):
        global _patches
        import torch.nn.functional as F

        from . import _fallback, _margins, _rows_fallback, _vectors_fallback  # which keep PyTorch's own

        self._in_force = True
        _patches += 1
        if _patches == 1:
            _originals.update({name: getattr(F, name) for name in (*_NAMES, "handle_torch_function")})
            _replacements.update({name: replacement_of(_originals[name], ours_of(name),
                                                       name in ROW_NAMES | VECTOR_NAMES) for name in _NAMES})
            known = {_replacements[name]: _originals[name] for name in _NAMES}
            _replacements["handle_torch_function"] = handler_of_originals(_originals["handle_torch_function"], known)
            for name, replacement in _replacements.items():
                setattr(F, name, replacement)

    def undo(self):
        """PyTorch's own functions again, unless another patch is in force. What somebody else has put in the place of
        one of ours meanwhile stays there. A second undo does nothing."""
        global _patches
        import torch.nn.functional as F

        if not self._in_force:
            return
        self._in_force = False
        _patches -= 1
        if _patches == 0:
            for name, original in _originals.items():
                if getattr(F, name) is _replacements[name]:
                    setattr(F, name, original)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.undo()


def ours_of(name):
    return getattr(margins if name in margins.__all__ else vectors if name in VECTOR_NAMES else functional, name)


def replacement_of(original, ours, refuses_batchmean):
    """Our function in the place of PyTorch's. Whoever overrides the call sees PyTorch's own, which is what handlers,
    modes and graphs know. Ours of losses over rows and of vectors have a batchmean more, of which PyTorch says that
    there is none."""
    from torch.overrides import handle_torch_function, has_torch_function_variadic

    @functools.wraps(original)
    def function(*arguments, **given):
        operands = *arguments, *given.values()
        if has_torch_function_variadic(*operands) and not is_for_a_device_alone(operands):
            return handle_torch_function(original, operands, *arguments, **given)
        if refuses_batchmean and any([isinstance(operand, str) and operand == "batchmean" for operand in operands]):
            return original(*arguments, **given)
        return ours(*arguments, **given)

    return function


def handler_of_originals(handle_torch_function, known):
    """What PyTorch's own functions pass overridden calls on by. They name themselves by what stands in
    torch.nn.functional, which is our function now; those who are asked know PyTorch's."""

    @functools.wraps(handle_torch_function)
    def handle(function, *arguments, **given):
        return handle_torch_function(known.get(function, function), *arguments, **given)

    return handle


def is_for_a_device_alone(operands):
    """torch.set_default_device is a function mode, too, but says nothing about tensors that are there."""
    import torch
    from torch.overrides import _get_current_function_mode_stack
    from torch.utils._device import DeviceContext

    if not all(type(mode) is DeviceContext for mode in _get_current_function_mode_stack()):
        return False
    return all(type(operand) in (torch.Tensor, torch.nn.Parameter) or not hasattr(type(operand), "__torch_function__")
               for operand in operands)
