"""The functions that users call. Tensors decide who computes: PyTorch's go one way, NumPy's arrays the other."""

import sys

from . import _native

# Of each loss the names of its parameters and their defaults, as the library lists them.
_PARAMETERS = {loss["name"]: {parameter["name"]: parameter["default"] for parameter in loss["parameters"]}
               for loss in _native.losses()}


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The squared error, (input - target)**2, as torch.nn.functional.mse_loss has it.

    reduction is 'mean', 'sum' or 'none'. weight, of input's size, multiplies each element's loss; the mean is then
    over the sum of the weights. size_average and reduce are PyTorch's deprecated arguments.
    """
    return _side(input, target).loss("mse", input, target, (), reduction, weight, size_average, reduce)


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """0.5 * x**2 / beta where abs(x) < beta, else abs(x) - 0.5 * beta, with x = input - target, as
    torch.nn.functional.smooth_l1_loss has it; beta 0 is the absolute error."""
    return _side(input, target).loss("smooth_l1", input, target, (beta,), reduction, None, size_average, reduce)


def hinge_loss(input, target, margin=1.0, reduction="mean", weight=None):
    """max(margin - input * target, 0) for targets of -1 and 1: torch.clamp(margin - input * target, min=0), reduced.

    reduction and weight are those of mse_loss.
    """
    return _side(input, target).loss("hinge", input, target, (margin,), reduction, weight, None, None)


def value_and_grad(name, input, target, *, reduction="mean", weight=None, **parameters):
    """The loss and its gradient for input, both from one pass, without autograd.

    name is 'mse', 'smooth_l1' or 'hinge' ('mse_loss' and so on are understood too); beta and margin are given by name.
    reduction is 'mean' or 'sum'. The gradient has the shape and the type of input.

        loss, gradient = onepass.value_and_grad("smooth_l1", prediction, target, beta=0.5)
    """
    loss = name[:-5] if isinstance(name, str) and name.endswith("_loss") else name
    known = _PARAMETERS.get(loss) if isinstance(loss, str) else None
    if known is None:
        raise ValueError(f"there is no loss {name!r}; there are {', '.join(map(repr, _PARAMETERS))}")
    for given in parameters:
        if given not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise TypeError(f"{loss} has no parameter {given!r}; {has}")
    if reduction not in ("mean", "sum"):
        raise ValueError(f"reduction is {reduction!r}; value_and_grad needs 'mean' or 'sum', since only a number has one "
                         "gradient")
    if weight is not None and loss == "smooth_l1":
        raise TypeError("smooth_l1 takes no weight")
    values = tuple(parameters.get(key, standard) for key, standard in known.items())
    return _side(input, target).value_and_grad(loss, input, target, values, reduction, weight)


_torch = None  # the module that computes for PyTorch's tensors, once there were some


def _side(input, target):
    """The module that computes for these operands."""
    global _torch
    if _torch is not None and isinstance(input, _torch.Tensor):
        return _torch
    if "torch" in sys.modules and (speaks_torch(input) or speaks_torch(target)):
        from . import _torch

        return _torch
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(input, numpy.ndarray) and isinstance(target, numpy.ndarray):
        from . import _numpy

        return _numpy
    names = " and ".join(type(operand).__name__ for operand in (input, target))
    raise TypeError(f"input and target are {names}; expected two PyTorch tensors or two NumPy arrays")


def speaks_torch(operand):
    """A tensor, or whatever stands for one, as tracers have it."""
    return hasattr(type(operand), "__torch_function__")
