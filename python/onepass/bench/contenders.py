"""Who takes part in a case: onepass, and what a user would pick instead.

A mode is what is asked for: "forward", the mean alone; "step", as a training step has it: the loss, then backward()
into a fresh .grad; "both", a function that returns mean and gradient at once. NumPy and JAX have no step: theirs is
"both".
"""

import functools
import importlib
import math
import warnings

import onepass

from .._catalog import CATALOG, WRITTEN
from .._torch_names import TORCH_NAMES
from . import formula
from .clock import Absent, Contender
from .machine import installed

PEERS = ("numpy", "torch eager", "torch.compile", "torch.compile(grad_and_value)", "jax", "liger")
NAMES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}  # as the frameworks have them
SIZES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}
TOLERANCE = {"f16": 1e-2, "bf16": 2e-2, "f32": 1e-3, "f64": 1e-3}  # of a peer's mean; some add up in 16 bits

#: Parameters that are not the defaults, which are quicker special cases.
PARAMETERS = {"quantile": {"tau": 0.9}, "focal": {"alpha": 0.25, "gamma": 1.5}}


def our_function(loss):
    """The package's function of a loss, for its operands, weight and mask."""
    name = next((function for function, losses in WRITTEN.items() if loss in losses), f"{loss}_loss")
    fixed = dict(TORCH_NAMES[loss].fixed) if loss in TORCH_NAMES else {}
    fixed.update(PARAMETERS.get(loss, {}))
    if name == "sigmoid_focal_loss":  # whose default is no reduction
        fixed["reduction"] = "mean"
    function = getattr(onepass, name)
    if loss == "bce_with_logits_pos_weight":
        return lambda p, t, v: function(p, t, pos_weight=v)
    return functools.partial(function, **fixed) if fixed else function


def stepping(function, p, *others):
    """A training step's use of autograd."""
    leaf = p.detach().requires_grad_()

    def run():
        leaf.grad = None
        value = function(leaf, *others)
        value.backward()
        return value.detach()

    return run


class Contenders:
    """What is installed, on one device."""

    def __init__(self, device, peers):
        self.device, self.peers = device, peers
        self.torch, self.numpy = installed("torch"), installed("numpy")
        if self.numpy:
            self.numpy.seterr(all="ignore")  # a branch that is not taken may divide by zero
        self.reference = importlib.import_module(".torch_reference", __package__) if self.torch else None
        if self.torch:
            self.set_up_torch()

    def set_up_torch(self):
        """A compiled function that gave up and ran eagerly would be a wrong peer, so the limit on recompilations is out
        of reach, and graphs of inductor's own stay off."""
        dynamo = importlib.import_module("torch._dynamo")
        for name in ("recompile_limit", "cache_size_limit", "accumulated_recompile_limit",
                     "accumulated_cache_size_limit"):
            if hasattr(dynamo.config, name):
                setattr(dynamo.config, name, 1024)
        importlib.import_module("torch._inductor.config").triton.cudagraphs = False
        warnings.filterwarnings("ignore", message="Using a target size")  # broadcasting is meant; warning takes time

    def forget_compiled(self):
        """Compiled functions are of one case each; without them the next one's guards are quick to check."""
        if self.torch and any(name.startswith("torch.compile") for name in self.peers):
            self.torch._dynamo.reset()

    def named(self, name, case, operands):
        """A contender for a case, on operands of these."""
        makers = {"numpy": self.numpy_peer, "torch eager": self.eager, "torch.compile": self.compiled,
                  "torch.compile(grad_and_value)": self.grad_and_value, "jax": self.jax, "liger": self.liger}
        return makers[name](case, operands)

    # ------------------------------------------------------------------------ ours --

    def ours(self, case, operands, name="onepass"):
        def make():
            function = case.ours or our_function(case.loss)
            given = {key: tensor for key, tensor in (("weight", operands.weight), ("mask", operands.mask))
                     if tensor is not None}
            if given:
                function = functools.partial(function, **given)
            if case.mode == "both" or (case.mode == "step" and not self.torch):
                parameters = PARAMETERS.get(case.loss, {})
                return [lambda tensors=tensors: onepass.value_and_grad(case.loss, *tensors, **parameters, **given)[0]
                        for tensors in operands.sets]
            return self.used(function, case.mode, operands.sets)

        return Contender(name, make, bytes=operands.bytes(case.mode))

    @staticmethod
    def used(function, mode, sets):
        if mode == "forward":
            return [lambda tensors=tensors: function(*tensors) for tensors in sets]
        return [stepping(function, *tensors) for tensors in sets]

    # --------------------------------------------------------------------- PyTorch --

    def torch_function(self, case):
        """Of the operands, and after them weight and mask."""
        if not self.torch:
            raise Absent("it is not installed")
        if case.theirs:
            return case.theirs
        if case.by_hand:
            sums = getattr(self.reference, case.by_hand)
            return lambda *tensors: (lambda total, divisor: total / divisor)(*sums(*tensors))
        parameters = tuple(PARAMETERS[case.loss].values()) if case.loss in PARAMETERS else None
        return self.reference.mean_of(case.loss, parameters)

    def eager(self, case, operands):
        return Contender("torch eager", lambda: self.used(self.torch_function(case), case.mode, operands.all_sets()))

    def compiled(self, case, operands):
        def make():
            function = self.torch.compile(self.torch_function(case), dynamic=False, fullgraph=True) if self.torch \
                else self.torch_function(case)
            return self.used(function, case.mode, operands.all_sets())

        return Contender("torch.compile", make)

    def grad_and_value(self, case, operands):
        def make():
            function = self.torch_function(case)
            both = self.torch.compile(self.torch.func.grad_and_value(function), dynamic=False)
            return [lambda tensors=tensors: both(*tensors)[1] for tensors in operands.all_sets()]

        return Contender("torch.compile(grad_and_value)", make)

    def liger(self, case, operands):
        """It writes the gradient over its logits, so that it has some of its own, and its value is not compared."""
        def make():
            liger = installed("liger_kernel.transformers.functional")
            if not liger:
                raise Absent("liger-kernel is not installed")
            smoothing = (case.ours.keywords or {}).get("label_smoothing", 0.0)
            function = functools.partial(liger.liger_cross_entropy, label_smoothing=smoothing)
            logits, labels = operands.sets[0]
            run, = self.used(function, case.mode, [[logits.clone(), labels]])
            return [lambda: (run(), None)[1]]

        return Contender("liger", make)

    # --------------------------------------------------------------- NumPy and JAX --

    @staticmethod
    def by_formula(xp, case, with_gradient):
        known = CATALOG[case.loss]
        parameters = {parameter["name"]: parameter["default"] for parameter in known["parameters"]}
        parameters.update(PARAMETERS.get(case.loss, {}))
        formulas = [known["value"], known["slope"]] if with_gradient else [known["value"]]
        return formula.function_of(formulas, formula.words_for(xp, NAMES[case.type]), parameters)

    def numpy_peer(self, case, operands):
        def make():
            if not self.numpy:
                raise Absent("it is not installed")
            if self.device != "cpu" or case.type == "bf16":
                raise Absent("it has no GPU" if self.device != "cpu" else "it has no bf16")
            mean = self.numpy.mean
            sets = [[x.numpy() if self.torch else x for x in tensors] for tensors in operands.sets]
            function = self.by_formula(self.numpy, case, case.mode != "forward")
            if case.mode == "forward":
                return [lambda tensors=tensors: mean(function(*tensors)) for tensors in sets]

            def both(*tensors):
                value, slope = function(*tensors)
                return mean(value), slope * (1 / slope.size)

            return [lambda tensors=tensors: both(*tensors)[0] for tensors in sets]

        return Contender("numpy", make)

    @functools.cached_property
    def jax_library(self):
        """On the same device. It must neither take all of the memory nor compute somewhere else quietly."""
        jax = installed("jax")
        if not jax:
            raise Absent("it is not installed")
        jax.config.update("jax_enable_x64", True)  # or f64 would quietly be f32
        platform = "cpu" if self.device == "cpu" else "gpu"
        try:
            jax.devices(platform)
        except RuntimeError as error:
            raise Absent(f"it has no {platform} here") from error
        return jax

    def jax(self, case, operands):
        def make():
            jax = self.jax_library
            terms = self.by_formula(jax.numpy, case, False)
            mean = lambda *tensors: jax.numpy.mean(terms(*tensors))
            function = jax.jit(mean if case.mode == "forward" else jax.value_and_grad(mean))
            take = jax.dlpack.from_dlpack if self.torch else jax.numpy.asarray
            if self.device == "cuda":
                self.torch.cuda.synchronize()  # its stream knows nothing of ours
            sets = [[take(x) for x in tensors] for tensors in operands.sets[:1]]
            return [lambda tensors=tensors: function(*tensors) for tensors in sets]

        return Contender("jax", make, wait=lambda result: self.jax_library.block_until_ready(result),
                         value_of=lambda result: float(result[0] if isinstance(result, tuple) else result))
