"""What a user would pick instead: PyTorch eager and compiled, JAX.

Each function returns a Contender for the mean of one loss over given tensors. The
formulas are those that the frameworks' users write.
"""

import importlib.metadata
import os

import torch
import torch._dynamo
import torch._inductor.config
import torch.nn.functional as F

from . import timing
from .timing import Contender

LOSSES = ("mse", "smooth_l1", "hinge")

# Of JAX's gradients, as many bytes as may be on the device at once.
JAX_IN_FLIGHT_BYTES = 24 << 30


def mse(p, t):
    return F.mse_loss(p, t)


def smooth_l1(p, t):
    return F.smooth_l1_loss(p, t)


def hinge(p, t):
    return torch.clamp(1 - p * t, min=0).mean()


TORCH = {"mse": mse, "smooth_l1": smooth_l1, "hinge": hinge}


# ------------------------------------------------------------------ PyTorch --


def set_up_torch():
    """Before the first compilation. A compiled function that gave up and ran eagerly would be a wrong peer, so the
    limit on recompilations is out of reach, and graphs of inductor's own stay off."""
    for name in ("recompile_limit", "cache_size_limit", "accumulated_recompile_limit", "accumulated_cache_size_limit"):
        if hasattr(torch._dynamo.config, name):
            setattr(torch._dynamo.config, name, 1024)
    torch._inductor.config.triton.cudagraphs = False


def compiled(function):
    """torch.compile for exact shapes. The whole function must become one graph; where a version of PyTorch cannot do
    that, it says so and takes what it gets."""
    whole = torch.compile(function, dynamic=False, fullgraph=True)
    chosen = []

    def call(*tensors):
        if not chosen:
            try:
                result = whole(*tensors)
                chosen.append(whole)
                return result
            except Exception as error:
                print(f"  note: not one graph: {timing.reason_of(error)}", flush=True)
                chosen.append(torch.compile(function, dynamic=False))
        return chosen[0](*tensors)

    return call


def forget_compiled():
    """Compiled functions are of one work each; without them, the next one's guards are quick to check."""
    torch._dynamo.reset()


def peer(name, make, **details):
    return Contender(name, make, is_framework=True, **details)


def torch_forward(loss, p, t):
    return peer("torch eager", lambda: lambda: TORCH[loss](p, t))


def compiled_call(function, *tensors):
    """torch.compile of a function of these tensors."""
    def make():
        chosen = compiled(function)
        return lambda: chosen(*tensors)

    return peer("torch.compile", make)


def compiled_forward(loss, p, t):
    return compiled_call(TORCH[loss], p, t)


def trained(function, p, *others):
    """A training step's use of autograd: the loss, then the gradient into a fresh p.grad."""
    leaf = p.detach().requires_grad_()

    def run():
        leaf.grad = None
        value = function(leaf, *others)
        value.backward()
        return value.detach()

    return run


def torch_gradient(loss, p, t):
    return peer("torch autograd", lambda: trained(TORCH[loss], p, t))


def compiled_training(function, *tensors):
    """torch.compile of a function, and autograd's gradient for the first of these tensors."""
    return peer("torch.compile autograd", lambda: trained(compiled(function), *tensors))


def compiled_autograd(loss, p, t):
    return compiled_training(TORCH[loss], p, t)


def compiled_grad_and_value(loss, p, t):
    def both(p, t):
        return torch.func.grad_and_value(TORCH[loss])(p, t)

    def make():
        function = compiled(both)
        return lambda: function(p, t)[1]

    return peer("torch.compile(grad_and_value)", make)


# ---------------------------------------------------------------------- JAX --


def import_jax():
    """JAX, on the same device. It must neither take all of the memory nor fall back to the CPU quietly."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax

    platform = "gpu" if timing.DEVICE == "cuda" else timing.DEVICE
    if jax.default_backend() != platform:
        raise timing.Absent(f"JAX runs on {jax.default_backend()}, not on {platform}")
    return jax


def jax_loss(jax, loss):
    jnp = jax.numpy

    def smooth_l1(p, t):
        x = jnp.abs(p - t)
        return jnp.mean(jnp.where(x < 1, 0.5 * x * x, x - 0.5))

    return {
        "mse": lambda p, t: jnp.mean(jnp.square(p - t)),
        "smooth_l1": smooth_l1,
        "hinge": lambda p, t: jnp.mean(jnp.maximum(1 - p * t, 0)),
    }[loss]


def jax_arrays(jax, *tensors):
    """The tensors' own memory."""
    arrays = [jax.dlpack.from_dlpack(tensor) for tensor in tensors]
    for array in arrays:
        array.block_until_ready()
    return arrays


def jax_wait(result):
    result.block_until_ready()


def jax_forward(loss, p, t):
    def make():
        jax = import_jax()
        x, y = jax_arrays(jax, p, t)
        function = jax.jit(jax_loss(jax, loss))
        return lambda: function(x, y)

    return peer("jax.jit", make, wait=jax_wait)


def jax_value_and_grad(loss, p, t):
    def make():
        jax = import_jax()
        x, y = jax_arrays(jax, p, t)
        function = jax.jit(jax.value_and_grad(jax_loss(jax, loss)))
        return lambda: function(x, y)[0]  # the gradient goes as soon as it is there

    gradient_bytes = p.numel() * p.element_size()
    most = max(1, JAX_IN_FLIGHT_BYTES // gradient_bytes)
    return peer("jax.jit(value_and_grad)", make, wait=jax_wait, most_runs=int(most))


def versions():
    """Of what is installed; a package that is not is "missing"."""
    found = {"torch": torch.__version__}
    for name in ("jax", "jaxlib", "triton", "numpy"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "missing"
    return found
