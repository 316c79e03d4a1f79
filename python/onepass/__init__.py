"""onepass: loss functions and their gradients in one pass over memory, for PyTorch and NumPy.

    import onepass
    loss = onepass.mse_loss(prediction, target)     # in place of torch.nn.functional.mse_loss
    loss.backward()

The functions have PyTorch's signatures, results, warnings and errors; for NumPy arrays they
return NumPy's numbers. The computation is in C (CPU and CUDA), reads each input once, makes no
temporaries, and gives the same bits on every machine.

PyTorch and NumPy are not imported by this package, but used where the caller has.
"""

from . import _forking, _native, accumulator, distributions, functional, linear, margins, regions, vectors
from .accumulator import *  # noqa: F403
from .distributions import *  # noqa: F403
from .functional import *  # noqa: F403: its __all__, in which the losses are that the library's catalogue adds
from .linear import *  # noqa: F403
from .margins import *  # noqa: F403
from .patch import patch_torch
from .regions import *  # noqa: F403
from .vectors import *  # noqa: F403

__version__ = _native.version
__all__ = [*accumulator.__all__, *distributions.__all__, *functional.__all__, *linear.__all__, *margins.__all__,
           *regions.__all__, *vectors.__all__, "distributed", "losses", "machine", "nn", "patch_torch", "row_losses",
           "vector_losses"]


def losses():
    """The losses of the library whose every element has a value: a list of dicts with name, meaning, formulas, operands
    and parameters."""
    return _native.losses()


def row_losses():
    """The library's losses over rows, such as cross-entropy: the same."""
    return _native.row_losses()


def vector_losses():
    """The library's losses of pairs and triples of vectors, such as the triplet margin loss, and of two distributions
    that are given as logits: the same."""
    return _native.vector_losses()


def machine():
    """What the library finds on this machine: a dict with the instruction set, the threads, the GPUs or why there are
    none."""
    return _native.machine()


def __getattr__(name):
    if name in ("distributed", "nn"):  # which are PyTorch's, so that they import PyTorch
        return _forking.imported(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(set(globals()) | {"distributed", "nn"})
