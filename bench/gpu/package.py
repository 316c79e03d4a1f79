"""The Python package in PyTorch: a training step of a loss, its memory, and what a call costs the host.

`import onepass` must find the package; where it does not, the rows say so.
"""

import importlib
import warnings

import torch
import torch.nn.functional as F

from . import peers, timing
from .bench import Beside, compare, reference_mean
from .large import MIB, eager_peak, size_of
from .report import AT_MOST, BELOW, SELF, Row
from .small import host_seconds
from .timing import Contender

# At most so much of the time of torch.compile, and of eager PyTorch.
STEP_BARS = {"mse": (0.47, 0.4), "smooth_l1": (0.55, 0.4), "hinge": (0.62, 0.4)}
HOST_ELEMENTS, HOST_TURNS = 1024, 41
HOST_BARS = {"forward": 0.6, "forward and backward": 0.95}


def import_package():
    """The package, or a sentence that says why it is not there."""
    try:
        return importlib.import_module("onepass"), ""
    except ImportError as error:
        return None, f"the package cannot be imported: {error}"


def functions(onepass):
    return {"mse": onepass.mse_loss, "smooth_l1": onepass.smooth_l1_loss, "hinge": onepass.hinge_loss}


def measure_package(bench):
    bench.report.begin("package", "the Python package: a training step of the loss, forward and backward")
    onepass, missing = import_package()
    if not onepass:
        bench.report.fail("package", missing)
        return
    for loss in peers.LOSSES:
        target = bench.t[0] if loss == "hinge" else bench.t
        step_work(bench, loss, functions(onepass)[loss], bench.p, target)
    memory_work(bench, functions(onepass)["mse"])
    host_works(bench, onepass)


def quiet(function):
    """Broadcasting warns, and each warning costs the host; PyTorch's own hinge has none."""
    def call(p, t):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(p, t)

    return call


def step_work(bench, loss, function, p, t):
    work = f"training step {loss}" + ("" if t.shape == p.shape else f", target {tuple(t.shape)}")
    run = peers.trained(quiet(function), p, t)
    ours = Contender("onepass", lambda: run, bytes=size_of(p, t, p))
    compiled, eager = STEP_BARS[loss]
    besides = [Beside(peers.compiled_autograd(loss, p, t), bar=bench.bar(AT_MOST, compiled)),
               Beside(peers.torch_gradient(loss, p, t), bar=bench.bar(AT_MOST, eager))]
    compare(bench, work, p.numel(), ours, besides, reference_mean(loss, p, t))


def memory_work(bench, function):
    """What the step has allocated at its peak beyond its inputs and the gradient that it is for."""
    gradient = size_of(bench.p) / MIB
    peak = eager_peak(peers.trained(function, bench.p, bench.t)) / MIB - gradient
    row = Row("training step mse: peak memory", "MiB", "torch autograd", ours=peak, ratio=peak, of=SELF,
              elements=bench.p.numel(), bar=bench.bar(BELOW, 8))
    row.beside = eager_peak(peers.trained(peers.mse, bench.p, bench.t)) / MIB - gradient
    bench.report.add(row)


def host_works(bench, onepass):
    p, t = (flat[:HOST_ELEMENTS].clone() for flat in bench.flat)
    forward = lambda function: lambda: function(p, t)
    host_work(bench, "forward", forward(onepass.mse_loss), forward(F.mse_loss))
    host_work(bench, "forward and backward", peers.trained(onepass.mse_loss, p, t), peers.trained(F.mse_loss, p, t))
    host_work(bench, "an empty Function", peers.trained(empty_loss(p, t), p, t), peers.trained(F.mse_loss, p, t))


def empty_loss(p, t):
    """What PyTorch itself takes for a step of anything that is not in its own C++: nothing is launched or allocated."""
    value, gradient = torch.zeros((), device=p.device), torch.zeros_like(p)

    class Empty(torch.autograd.Function):
        @staticmethod
        def forward(ctx, p, t):
            return value.view(())

        @staticmethod
        def backward(ctx, upstream):
            return gradient, None

    return Empty.apply


def host_work(bench, what, our_run, their_run):
    """In turns, as everywhere; the median of each."""
    ours, theirs = Contender("onepass", lambda: our_run), Contender("F.mse_loss", lambda: their_run)
    for contender in (ours, theirs):
        timing.start(contender)
    for _ in range(HOST_TURNS):
        for contender in (ours, theirs):
            contender.seconds.append(host_seconds(contender))
    row = Row(f"host time of mse_loss, {what}, 2^10", "us", "F.mse_loss", elements=HOST_ELEMENTS,
              bar=bench.bar(AT_MOST, HOST_BARS[what]) if what in HOST_BARS else None, runs=HOST_TURNS)
    row.ours, row.beside = 1e6 * ours.times().median, 1e6 * theirs.times().median
    row.ratio = row.ours / row.beside
    bench.report.add(row)
