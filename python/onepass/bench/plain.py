"""The plain C loops that a user would write instead, and the library itself in C, both called in a loop in C.

bench/plain.c of the source tree, built by `make bench`; where it is not here, its contenders are left out.
"""

import ctypes
import os
from ctypes import c_char_p, c_float, c_int32, c_int64, c_void_p

from .clock import Absent

JOBS = {"forward": 0, "backward": 1, "both": 2, "nested": 3, "read": 4, "write": 5}


class Work(ctypes.Structure):
    _fields_ = [("loss", c_char_p), ("job", c_int32), ("tuned", c_int32), ("threads", c_int32), ("ndim", c_int32),
                ("shape", c_int64 * 4), ("strides", c_int64 * 4 * 2), ("operand", c_void_p * 2), ("gradient", c_void_p),
                ("parameter", c_float), ("value", c_float)]


def default_path():
    """Where the build that has this package in its tree leaves it."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return os.path.join(os.path.dirname(os.path.dirname(package)), "bench", "libonepass_plain.so")


class Plain:
    def __init__(self, path, threads):
        self.threads = threads
        try:
            self.c = ctypes.CDLL(path or default_path())
        except OSError as error:
            if path:
                raise Absent(f"--plain: {path} cannot be loaded: {error}") from error
            self.c = None
            return
        for function in (self.c.plain_repeat, self.c.onepass_repeat):
            function.argtypes, function.restype = [ctypes.POINTER(Work), c_int64], c_char_p

    def looping(self, who, job, tensors, gradient=None, loss="mse", parameter=0.0, threads=None, tuned=False):
        """A function that runs a job so many times: by "plain" loops or by "onepass". Of `read` and `write` the tensors
        are up to two arrays of float."""
        if not self.c:
            raise Absent("its library, which make bench builds, is not here")
        function = getattr(self.c, f"{who}_repeat")
        work = Work(loss.encode(), JOBS[job], tuned, threads or self.threads, tensors[0].dim(), parameter=parameter)
        work.shape[4 - work.ndim:] = tensors[0].shape
        work.shape[:4 - work.ndim] = [1] * (4 - work.ndim)
        for index, tensor in enumerate(tensors):
            work.strides[index][4 - work.ndim:] = tensor.stride()
            work.operand[index] = tensor.data_ptr()
        work.gradient = gradient.data_ptr() if gradient is not None else None

        def run(calls):
            problem = function(work, calls)
            if problem:
                raise RuntimeError(problem.decode())

        run.work, run.kept = work, (tensors, gradient)
        return run
