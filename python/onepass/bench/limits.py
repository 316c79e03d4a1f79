"""The memory's limit: what reads the same bytes, and writes those of a gradient, and does next to nothing else.

On a GPU a plain kernel, the quickest of a few shapes; on the CPU the plain loops of bench/plain.c. Without these
PyTorch's own sum of each array, or its sum of two into a third.
"""

import importlib

from .clock import Contender
from .machine import installed


class Limits:
    def __init__(self, torch, device, clock, plain):
        self.torch, self.device, self.clock, self.plain = torch, device, clock, plain
        self.best = {}  # the shape by what is moved
        self.kernels = importlib.import_module(".gpu_limits", __package__) if device == "cuda" and installed("triton") \
            else None

    def contender(self, sets, gradient_of):
        """For sets of tensors, of which only those as large as the first count: a mask or a row that all rows share is
        next to nothing. `gradient_of` makes the array that is written; None where there is none."""
        first, most = sets[0][0], 3 if self.kernels else 2
        sets = [[self.as_floats(x) for x in tensors if x.dtype == first.dtype and x.numel() == first.numel()][:most]
                for tensors in sets]
        writes = gradient_of is not None
        moved = 4.0 * sets[0][0].numel() * (len(sets[0]) + writes)

        def make():
            return [self.mover(arrays, self.as_floats(gradient_of()) if writes else None) for arrays in sets]

        return Contender("limit", make, bytes=moved, loops=self.in_c)

    def as_floats(self, tensor):
        """The same bytes: a sum of 16-bit numbers would convert them."""
        flat = tensor.view(-1) if tensor.is_contiguous() else tensor.contiguous().view(-1)
        if flat.dtype == self.torch.float32:
            return flat
        even = flat.numel() * flat.element_size() // 4 * 4 // flat.element_size()
        return flat[:even].view(self.torch.float32)

    @property
    def in_c(self):
        return self.device == "cpu" and self.plain.c is not None

    def mover(self, arrays, out):
        torch = self.torch
        if self.in_c:
            return self.plain.looping("plain", "read" if out is None else "write", arrays, out)
        if self.kernels:
            return self.quickest_kernel(arrays, out)
        if out is None:
            return lambda: ([torch.sum(array) for array in arrays], None)[1]
        if len(arrays) == 1:
            return lambda: (out.copy_(arrays[0]), None)[1]
        return lambda: (torch.add(*arrays, out=out), None)[1]

    def quickest_kernel(self, arrays, out):
        key = len(arrays), out is not None, arrays[0].numel()
        sums = self.torch.zeros(arrays[0].numel() // 1024 + 1, device="cuda") if out is None else out
        movers = [self.kernels.mover(arrays, sums, out is not None, shape) for shape in self.kernels.SHAPES]
        if key not in self.best:
            seconds = [self.clock.fastest(mover) for mover in movers]
            self.best[key] = seconds.index(min(seconds))
        kernel = movers[self.best[key]]
        return lambda: (kernel(), None)[1]
