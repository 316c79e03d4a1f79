"""Who takes part: onepass, what a user would pick instead, and the limit of the memory.

Each function returns a Contender for one work: the mean of a loss over two arrays ("forward"), or that and its gradient
for the first one ("both"), which in PyTorch is a training step's use of it: the loss, then backward() into a fresh
.grad. The arrays are PyTorch's tensors, or NumPy's where there is no PyTorch.
"""

import contextlib
import dataclasses
import importlib
import importlib.metadata
import os
from typing import Any

from .clock import Absent, Contender

NAMES = ("onepass", "numpy", "pytorch", "torch.compile", "jax", "limit")
SIZES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}
TYPES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}  # as the frameworks call them


@dataclasses.dataclass
class Work:
    loss: str
    mode: str
    type: str
    p: Any
    t: Any

    @property
    def elements(self):
        return int(self.p.shape[0])

    @property
    def bytes(self):
        """That must move: each operand read once, the gradient written once."""
        return (3 if self.mode == "both" else 2) * SIZES[self.type] * self.elements


def installed(name):
    """A module, or None."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def version_of(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return getattr(installed(name), "__version__", "unknown")


# ------------------------------------------------------------------------ formulas --

LOSSES = ("mse", "smooth_l1", "hinge")  # that have some; bench/gpu.py and bench/package.py measure all there are


def formula(np, loss):
    """The mean of a loss as NumPy's and JAX's users write it."""
    if loss == "mse":
        return lambda p, t: np.mean(np.square(p - t))
    if loss == "hinge":
        return lambda p, t: np.mean(np.maximum(1 - p * t, 0))
    if loss == "smooth_l1":
        def smooth_l1(p, t):
            x = np.abs(p - t)
            return np.mean(np.where(x < 1, 0.5 * x * x, x - 0.5))

        return smooth_l1
    raise Absent(f"it has no formula for {loss} here")


def formula_with_gradient(np, loss):
    """The same with its gradient, by hand."""
    if loss == "mse":
        def mse(p, t):
            x = p - t
            return np.mean(np.square(x)), x * (2 / x.size)

        return mse
    if loss == "hinge":
        def hinge(p, t):
            h = 1 - p * t
            return np.mean(np.maximum(h, 0)), np.where(h >= 0, t * (-1 / t.size), 0)

        return hinge
    if loss == "smooth_l1":
        def smooth_l1(p, t):
            x = p - t
            a = np.abs(x)
            return np.mean(np.where(a < 1, 0.5 * x * x, a - 0.5)), np.clip(x, -1, 1) * (1 / x.size)

        return smooth_l1
    raise Absent(f"it has no formula for {loss} here")


# ---------------------------------------------------------------------- contenders --


class Contenders:
    """What is installed, on one device."""

    def __init__(self, device, names):
        self.device = device
        self.names = [name for name in NAMES if name in names or name == "onepass"]
        self.torch = installed("torch")
        self.numpy = installed("numpy")
        self.jax = None
        self.limits = None  # the GPU's own kernels, if they could be built
        self.limit_words = "none"
        if self.torch:
            self.framework = importlib.import_module("gpu.peers")
            self.framework.set_up_torch()

    def of(self, work):
        """All that take part in a work, ours first."""
        makers = {"onepass": self.onepass, "numpy": self.numpy_peer, "pytorch": self.pytorch,
                  "torch.compile": self.compiled, "jax": self.jax_peer, "limit": self.limit}
        return [makers[name](work) for name in self.names]

    def forget_compiled(self):
        """Compiled functions are of one work each; without them, the next one's guards are quick to check."""
        if self.torch and "torch.compile" in self.names:
            self.framework.forget_compiled()

    def arrays(self, type, count, seed=20):
        """Two arrays of numbers in [-2, 2): both branches of every loss are taken, and no sum is special."""
        if self.torch:
            generator = self.torch.Generator(device=self.device)
            generator.manual_seed(seed)
            real = self.torch.float64 if type == "f64" else self.torch.float32
            return [self.torch.empty(count, dtype=real, device=self.device).uniform_(-2, 2, generator=generator)
                    .to(getattr(self.torch, TYPES[type])) for _ in range(2)]
        if type == "bf16":
            raise Absent("NumPy has no bf16, and PyTorch is not installed")
        generator = self.numpy.random.default_rng(seed)
        return [generator.uniform(-2, 2, count).astype(TYPES[type]) for _ in range(2)]

    def torch_function(self, loss):
        if not self.torch:
            raise Absent("it is not installed")
        if loss not in self.framework.TORCH:
            raise Absent(f"it has no formula for {loss} here")
        return self.framework.TORCH[loss]

    def used(self, function, work):
        """What runs a function of PyTorch's tensors in the mode of a work."""
        if work.mode == "both":
            return self.framework.trained(function, work.p, work.t)
        return lambda: function(work.p, work.t)

    def onepass(self, work):
        def make():
            package = importlib.import_module("onepass")
            function = getattr(package, f"{work.loss}_loss")
            if self.torch:
                return self.used(function, work)
            if work.mode == "both":
                return lambda: package.value_and_grad(work.loss, work.p, work.t)[0]
            return lambda: function(work.p, work.t)

        return Contender("onepass", make)

    def numpy_peer(self, work):
        def make():
            if not self.numpy:
                raise Absent("it is not installed")
            if self.device != "cpu":
                raise Absent("it has no GPU")
            if work.type == "bf16":
                raise Absent("it has no bf16")
            p, t = (array.numpy() if self.torch else array for array in (work.p, work.t))
            if work.mode == "both":
                function = formula_with_gradient(self.numpy, work.loss)
                return lambda: function(p, t)[0]
            function = formula(self.numpy, work.loss)
            return lambda: function(p, t)

        return Contender("numpy", make)

    def pytorch(self, work):
        return Contender("pytorch", lambda: self.used(self.torch_function(work.loss), work))

    def compiled(self, work):
        def make():
            function = self.torch_function(work.loss)  # first: without PyTorch it says so
            return self.used(self.framework.compiled(function), work)

        return Contender("torch.compile", make)

    # ------------------------------------------------------------------------ JAX --

    def import_jax(self):
        """JAX on the same device. It must neither take all of the memory nor compute somewhere else quietly."""
        if self.jax:
            return self.jax
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        jax = installed("jax")
        if not jax:
            raise Absent("it is not installed")
        jax.config.update("jax_enable_x64", True)  # or f64 would quietly be f32
        platform = "cpu" if self.device == "cpu" else "gpu"
        try:
            self.jax_device = jax.devices(platform)[0]
        except RuntimeError as error:
            raise Absent(f"it has no {platform} here") from error
        self.jax = jax
        return jax

    def jax_array(self, array):
        """The array's own memory where that is possible."""
        if not self.torch:
            return self.jax.device_put(array, self.jax_device)
        shared = self.jax.dlpack.from_dlpack(array)
        return shared if self.jax_device in shared.devices() else self.jax.device_put(shared, self.jax_device)

    def jax_peer(self, work):
        def make():
            jax = self.import_jax()
            p, t = (self.jax_array(array) for array in (work.p, work.t))
            function = formula(jax.numpy, work.loss)
            compiled = jax.jit(jax.value_and_grad(function) if work.mode == "both" else function)
            return lambda: compiled(p, t)

        return Contender("jax", make, wait=lambda result: self.jax.block_until_ready(result),
                         value_of=lambda result: float(result[0] if work.mode == "both" else result))

    # ---------------------------------------------------------------------- limit --

    def build_limits(self, build):
        """Takes the kernels of bench/gpu_limits.cu for the GPU's limit if nvcc could build them."""
        limits = importlib.import_module("gpu.limits")
        try:
            self.limits = limits.Limits(build, [])
        except Exception as error:
            print(f"The limit's own kernels could not be built ({error}); PyTorch's stand in for them.")

    def limit(self, work):
        """Reads the same bytes, and writes them where there is a gradient, and does nothing else."""
        def make():
            if not self.torch:
                raise Absent("PyTorch, which measures it here, is not installed")
            torch = self.torch
            self.limit_words = ("the best of many plain kernels over the same bytes" if self.limits else
                                "PyTorch's sum of each array, or its sum of both into a third")
            # A sum of 16-bit numbers would convert them; the bytes are the same.
            real = torch.float64 if work.type == "f64" else torch.float32
            p, t = (array.view(real) if work.elements % 2 == 0 else array for array in (work.p, work.t))
            g = torch.empty_like(p) if work.mode == "both" else None
            if self.limits:
                return self.limit_kernel(p, t, g)
            if g is not None:
                return lambda: (torch.add(p, t, out=g), None)[1]
            return lambda: (torch.sum(p), torch.sum(t), None)[2]

        return Contender("limit", make)

    def limit_kernel(self, p, t, g):
        contender = self.limits.reading(p, t) if g is None else self.limits.writing(g, p, t)
        with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere):
            run = contender.make()  # which prints the shapes that it tries
        return lambda: (run(), None)[1]
