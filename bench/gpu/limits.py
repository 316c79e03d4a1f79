"""bench/gpu_limits.cu: builds it, loads it, and finds the best shape for each limit.

The limit of a work is the fastest of many shapes of a plain kernel that moves the same
bytes. All shapes run a few times; the best few then run in turns, and the winner stands
beside ours in the rounds of the work itself, so that it is measured anew there.
"""

import ctypes
import itertools
import math
import os
import subprocess
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p

import torch

from . import timing
from .timing import Contender

SOURCE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "gpu_limits.cu")
PLAIN, STREAMING, NO_ALLOCATE = 0, 1, 2
READING = {1: "plain read of one", 2: "plain read of both", 3: "plain read of three"}
WRITING = {1: "plain read one, write one", 2: "plain read two, write one", 3: "plain read three, write one"}
HINT_NAMES = {PLAIN: "plain", STREAMING: "cs", NO_ALLOCATE: "no allocate"}


class Shape(ctypes.Structure):
    _fields_ = [(name, c_int32) for name in ("in_flight", "threads", "waves", "load", "store")]

    def words(self):
        grid = f"{self.waves} x the blocks that fit" if self.waves else "a block a chunk"
        return (f"{self.in_flight} float4 in flight, {self.threads} threads, {grid}, "
                f"load {HINT_NAMES[self.load]}, store {HINT_NAMES[self.store]}")


def read_shapes():
    for in_flight, threads, waves, load in itertools.product(
            (1, 2, 4, 8), (128, 256, 512, 1024), (0, 1, 8), (PLAIN, STREAMING, NO_ALLOCATE)):
        if load != NO_ALLOCATE or in_flight >= 4:
            yield Shape(in_flight, threads, waves, load, PLAIN)


def write_shapes():
    hints = ((PLAIN, PLAIN), (PLAIN, STREAMING), (STREAMING, STREAMING), (NO_ALLOCATE, STREAMING))
    for in_flight, threads, waves, (load, store) in itertools.product(
            (1, 2, 4, 8), (128, 256, 512, 1024), (0, 1), hints):
        yield Shape(in_flight, threads, waves, load, store)


class Build:
    """nvcc at work in the background: it takes longer than PyTorch's import, and nothing needs it before that."""

    def __init__(self, folder, nvcc):
        major, minor = torch.cuda.get_device_capability()
        architecture = f"sm_{major}{minor}"
        self.path = os.path.join(folder, f"libgpu_limits_{architecture}.so")
        self.process = None
        self.reason = ""
        if os.path.exists(self.path) and os.path.getmtime(self.path) > os.path.getmtime(SOURCE):
            return
        os.makedirs(folder, exist_ok=True)
        command = [nvcc, f"-arch={architecture}", "-O3", "-shared", "-Xcompiler", "-fPIC", "-o", self.path, SOURCE]
        try:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        except OSError as error:
            self.reason = f"{' '.join(command)}: {error}"

    def finish(self):
        """The library's path. Raises with what nvcc said if there is none."""
        if self.process:
            output, _ = self.process.communicate()
            if self.process.returncode != 0:
                self.reason = f"nvcc failed: {output[-600:]}"
            self.process = None
        if self.reason:
            raise timing.Absent(self.reason)
        return self.path

    def stop(self):
        """For a program that ends early."""
        if self.process:
            self.process.kill()
            self.process.communicate()
            self.process = None


class Limits:
    """The kernels, and the best shape found for each kind of work."""

    def __init__(self, build, log):
        self.c = ctypes.CDLL(build.finish())
        self.c.limit_read.argtypes = [POINTER(c_void_p), c_int, c_int64, c_void_p, POINTER(Shape), c_void_p]
        self.c.limit_write.argtypes = [POINTER(c_void_p), c_int, c_void_p, c_int64, POINTER(Shape), c_void_p]
        self.c.limit_copy.argtypes = [c_void_p, c_void_p, c_int64, c_void_p]
        self.c.limit_launch.argtypes = [c_void_p]
        self.c.cub_mse.argtypes = [c_void_p, POINTER(c_size_t), c_void_p, c_void_p, c_int64, c_void_p, c_int, c_void_p]
        self.c.limit_error.argtypes = [c_int]
        self.c.limit_error.restype = c_char_p
        self.sum = torch.zeros((), device=timing.DEVICE)
        self.best = {}
        self.log = log  # what was tried, for the record

    def check(self, error):
        if error:
            raise RuntimeError(f"CUDA error {error}: {self.c.limit_error(error).decode()}")

    # Each of these enqueues one run.

    def read(self, arrays, bytes, shape):
        self.check(self.c.limit_read(pointers(arrays), len(arrays), bytes, self.sum.data_ptr(), shape, stream()))

    def write(self, to, arrays, bytes, shape):
        self.check(self.c.limit_write(pointers(arrays), len(arrays), to.data_ptr(), bytes, shape, stream()))

    def copy(self, to, source, bytes):
        self.check(self.c.limit_copy(to.data_ptr(), source.data_ptr(), bytes, stream()))

    def launch_nothing(self):
        self.check(self.c.limit_launch(stream()))

    # ------------------------------------------------------------ contenders --

    def reading(self, *arrays):
        """The best plain reading of the bytes of up to three arrays of one size; those that are None are left out."""
        arrays = [array for array in arrays if array is not None]
        bytes = arrays[0].numel() * arrays[0].element_size()

        def make():
            shape = self.best_shape(("read", len(arrays), bytes), read_shapes(), lambda s: self.read(arrays, bytes, s),
                                    len(arrays) * bytes)
            return lambda: self.read(arrays, bytes, shape)

        return Contender(READING[len(arrays)], make, bytes=len(arrays) * bytes)

    def writing(self, to, *arrays):
        """The best plain kernel that reads the bytes of up to three arrays and writes as many as one of them has."""
        arrays = [array for array in arrays if array is not None]
        bytes = to.numel() * to.element_size()

        def make():
            shape = self.best_shape(("write", len(arrays), bytes), write_shapes(),
                                    lambda s: self.write(to, arrays, bytes, s), (len(arrays) + 1) * bytes)
            return lambda: self.write(to, arrays, bytes, shape)

        return Contender(WRITING[len(arrays)], make, bytes=(len(arrays) + 1) * bytes)

    def copying(self, to, source):
        bytes = source.numel() * source.element_size()
        return Contender("copy on the device", lambda: lambda: self.copy(to, source, bytes), bytes=2 * bytes)

    def cub(self, p, t):
        """CUB's TransformReduce for mse, by whichever of its two iterators is faster."""
        count = p.numel()

        def make():
            runs = [self.cub_run(p, t, by_index) for by_index in (0, 1)]
            times = [fastest_of(run, 5) for run in runs]
            self.log.append({"limit": "CUB TransformReduce", "zip_ms": 1e3 * times[0], "by_index_ms": 1e3 * times[1]})
            return runs[0 if times[0] <= times[1] else 1]

        return Contender("CUB TransformReduce", make, loss_of=lambda sum: float(sum) / count)

    def cub_run(self, p, t, by_index):
        size = c_size_t(0)
        sum = torch.zeros((), device=timing.DEVICE)
        arguments = (p.data_ptr(), t.data_ptr(), p.numel(), sum.data_ptr(), by_index)
        self.check(self.c.cub_mse(None, size, *arguments, stream()))
        temporary = torch.empty(max(size.value, 1), dtype=torch.uint8, device=timing.DEVICE)

        def run():
            self.check(self.c.cub_mse(temporary.data_ptr(), size, *arguments, stream()))
            return sum

        return run

    # ---------------------------------------------------------------- search --

    def best_shape(self, key, shapes, run, bytes):
        if key not in self.best:
            shapes = list(shapes)
            first = sorted(shapes, key=lambda shape: self.seconds_of(shape, run))
            second = [(median_of(lambda: run(shape), 11), shape) for shape in first[:6]]
            seconds, self.best[key] = min(second, key=lambda found: found[0])
            name = f"{key[0]} {key[1]}, {key[2]} bytes each"
            print(f"  limit: {name}: {1e3 * seconds:.4f} ms, {1e-9 * bytes / seconds:.0f} GB/s, best of {len(shapes)}: "
                  f"{self.best[key].words()}", flush=True)
            self.log.append({"limit": name, "ms": 1e3 * seconds, "gbps": 1e-9 * bytes / seconds, "tried": len(shapes),
                             "shape": self.best[key].words()})
        return self.best[key]

    @staticmethod
    def seconds_of(shape, run):
        """A shape that the GPU refuses, with more blocks or registers than it has, is no limit."""
        try:
            return fastest_of(lambda: run(shape), 3)
        except RuntimeError as error:
            print(f"  limit: {shape.words()} is left out: {error}", flush=True)
            return math.inf

    def reads_everything(self, a, b):
        """Whether the best reading of two arrays adds up what PyTorch does."""
        shape = self.best[("read", 2, a.numel() * a.element_size())]
        self.sum.zero_()
        self.read([a, b], a.numel() * a.element_size(), shape)
        rows = range(a.shape[0])
        expected = sum(float(x[i:i + 1024].abs().sum(dtype=torch.float64)) for x in (a, b) for i in rows[::1024])
        return abs(float(self.sum) / expected - 1) < 1e-3


def pointers(tensors):
    return (c_void_p * len(tensors))(*(tensor.data_ptr() for tensor in tensors))


def stream():
    return torch.cuda.current_stream().cuda_stream or None


def event_seconds(run, times):
    """Seconds of each of a few runs in a row."""
    run()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(times + 1)]
    marks[0].record()
    for mark in marks[1:]:
        run()
        mark.record()
    torch.cuda.synchronize()
    return sorted(1e-3 * begin.elapsed_time(end) for begin, end in zip(marks, marks[1:]))


def fastest_of(run, times):
    return event_seconds(run, times)[0]


def median_of(run, times):
    return event_seconds(run, times)[times // 2]
