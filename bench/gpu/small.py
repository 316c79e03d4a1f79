"""The works on small arrays, where launches and the host count: graph replay, and the cost of a call.

A graph holds many calls over rotating operands, as a training step replays them; its time
is that of the calls one after another on the device, without the host.
"""

import time

import torch

from . import peers, timing
from .bench import LARGEST_ERROR, Beside, measure, reference_mean, reject_wrong, row_of
from .onepass_c import Call, workspace_size
from .report import AT_MOST
from .timing import Contender

SIZES = [1 << power for power in range(10, 25)] + [1 << 26]
REPLAYS = 93  # of each graph, in turns
MOST_SETS = 8  # of operands that the calls of a graph go through


def calls_in_graph(count):
    """Enough that the launch of the graph itself hardly counts."""
    return 64 if count <= 1 << 20 else 16


def operand_sets(bench, count):
    """Neighbouring pieces of the large arrays; beyond the cache from about 2^21 elements on."""
    sets = max(1, min(MOST_SETS, bench.p.numel() // count))
    return [(bench.flat[0][i * count:(i + 1) * count], bench.flat[1][i * count:(i + 1) * count]) for i in range(sets)]


class Replay:
    """A graph of calls, with everything that its kernels use: a graph keeps no tensor alive."""

    def __init__(self, function, sets, calls):
        self.function = function  # which holds workspaces
        self.sets = sets
        self.graph = torch.cuda.CUDAGraph()
        # Thread-local, since JAX's threads may use the device meanwhile.
        with torch.cuda.graph(self.graph, capture_error_mode="thread_local"):
            self.values = [function(*sets[i % len(sets)]) for i in range(calls)]

    def run(self):
        self.graph.replay()
        return self.values[-1]


def replayed(name, sets, calls, build, **details):
    """A contender that replays `calls` calls of what `build` returns: a function of a set's operands that enqueues one
    call and returns the tensor of its value. It first runs without a graph, to compile and load what it needs."""

    def make():
        function = build()
        for operands in sets:
            function(*operands)
        torch.cuda.synchronize()
        return Replay(function, sets, calls).run

    return Contender(name, make, **details)


def our_call(bench):
    """Calls that share a workspace of our own: they follow each other, so one serves all of them."""
    workspace = torch.zeros(workspace_size(), dtype=torch.uint8, device=timing.DEVICE)
    value = torch.zeros((), device=timing.DEVICE)
    return lambda p, t: Call(bench.library, "mse", p, t, value=value, workspace=workspace).run()


def measure_small(bench):
    bench.report.begin("small", "forward mse, f32, microseconds a call by graph replay")
    for count in SIZES:
        if count <= bench.p.numel():
            small_work(bench, count)


def small_bar(count):
    """The bars end at 2^24."""
    return None if count > 1 << 24 else 1.05


def small_work(bench, count):
    sets, calls = operand_sets(bench, count), calls_in_graph(count)
    work = f"forward mse, 2^{count.bit_length() - 1}"
    ours = replayed("onepass", sets, calls, lambda: our_call(bench), bytes=8.0 * count)
    bar = small_bar(count)
    compiled = replayed("torch.compile", sets, calls, lambda: peers.compiled(peers.mse), is_framework=True)
    eager = replayed("torch eager", sets, calls, lambda: peers.mse, is_framework=True)
    empty = bench.limit("an empty kernel", lambda limits: replayed(
        "an empty kernel", [()], calls, lambda: limits.launch_nothing))
    besides = [Beside(compiled, bar=bench.bar(AT_MOST, bar) if bar else None), Beside(eager), Beside(empty)]
    besides = measure(bench, ours, besides, REPLAYS, timing.lead)
    last_p, last_t = sets[(calls - 1) % len(sets)]
    reference = reference_mean("mse", last_p.view(1, -1), last_t.view(1, -1))
    if ours.missing:
        bench.report.fail(work, ours.missing)
    elif not abs(ours.loss / reference - 1) <= LARGEST_ERROR:
        bench.report.fail(work, f"the loss is {ours.loss}, it should be {reference}")
    for beside in besides:
        reject_wrong(beside.contender, reference)
        bench.report.add(row_of(work, count, ours, beside, "us", calls))


# ------------------------------------------------------------------- the host --

HOST_CALLS = 200  # in a row, fewer than a stream's queue holds
HOST_TURNS = 21


def host_seconds(contender):
    """Of one call, with the device idle at the start and not waited for."""
    run = contender.run
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(HOST_CALLS):
        run()
    seconds = (time.perf_counter() - begin) / HOST_CALLS
    torch.cuda.synchronize()
    return seconds


def measure_host(bench):
    """What a call costs the caller. Ours goes through ctypes, which is part of the figure."""
    bench.report.begin("host", "host time of a call, 2^10 elements, microseconds")
    p, t = (flat[:1024] for flat in bench.flat)
    call = Call(bench.library, "mse", p, t, value=bench.value)
    both = Call(bench.library, "mse", p, t, value=bench.value, gradient=bench.g.view(-1)[:1024])
    host_work(bench, "a call: forward", call,
              [peers.torch_forward("mse", p, t), peers.compiled_forward("mse", p, t)])
    host_work(bench, "a call: value and gradient", both,
              [peers.torch_gradient("mse", p, t), peers.compiled_autograd("mse", p, t)])


def host_work(bench, work, call, others):
    ours = Contender("onepass", lambda: call.run)
    contenders = [ours] + (others if bench.with_frameworks else [])
    for contender in contenders:
        timing.start(contender)
    for _ in range(HOST_TURNS):
        for contender in contenders:
            seconds = timing.attempt(contender, host_seconds) if contender.run else None
            contender.seconds += [seconds] if seconds else []
    if ours.missing:
        bench.report.fail(work, ours.missing)
    for other in contenders[1:] or [Contender("", None, missing="left out")]:
        bench.report.add(row_of(work, 1024, ours, Beside(other), "us"))
    peers.forget_compiled()
