"""What the package imports late, and forks. The child of a fork while another thread imports a module has that module's
lock, held by a thread that it does not have, and would wait for ever; so a fork first imports all of it, or waits."""

import importlib
import os
import sys

#: What is imported for the first tensors, and for the first arrays.
LATE = {
    "torch": ("_torch", "_fallback", "_rows", "_rows_fallback", "_vectors", "_vectors_fallback", "_regions",
              "_distributions", "_margins", "_linear", "_torch_state"),
    "numpy": ("_numpy", "_numpy_rows", "_numpy_vectors", "_numpy_regions", "_numpy_distributions", "_numpy_margins"),
}

_under_way = set()  # of what is imported only if somebody asks, since it is slow or not there


def imported(name):
    """A module, for which a fork waits meanwhile."""
    _under_way.add(name)  # before the import takes its lock
    try:
        return importlib.import_module(name)
    finally:
        _under_way.discard(name)


def _finish_imports():
    """Before a fork. Once all is there it takes microseconds."""
    late = [f"{__package__}.{name}" for side in LATE if _is_ready(side) for name in LATE[side]]
    for name in (*late, *_under_way):
        try:
            importlib.import_module(name)
        except Exception:  # who needs the module is told; a fork is to go on as if we were not here
            pass


def _is_ready(side):
    """Whether the caller has it. While it is being imported itself nobody has tensors or arrays yet."""
    module = sys.modules.get(side)
    return module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_finish_imports)
