"""Operands for fuzz_gpu.py: shapes around the edges of the kernels, any layout in memory, and awkward numbers."""
from typing import NamedTuple, Optional

import torch

FLOATS = torch.float32, torch.float16, torch.bfloat16, torch.float64
# Where kernels change: registers, warps, a tile of 1024, several tiles, a block's tiles, a vocabulary.
SHORT = (*range(1, 41), 48, 63, 64, 65, 100, *range(127, 131), 192, *range(255, 258), 300, *range(511, 514), 700, 1000,
         1001)
LONG = (*range(1023, 1026), 1028, 1500, *range(2047, 2050), 3000, *range(4095, 4098), *range(8191, 8194), 16384, 16385,
        32000, 32768, 32772, 50257)
ROWS = (1, 1, 2, 3, 5, 7, 8, 16, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 255, 256, 257, 511, 512, 513, 1000, 1023,
        1024, 1025, 2048, 4095, 4097, 10000, 33000, 70001, 270400)
BUDGETS = (2**8, 2**10, 2**11, 2**12, 2**13, 2**14, 2**15, 2**16)  # elements of an operand, mostly
LARGE = 2**22
INFINITY = float("inf")
SPECIAL = 0.0, -0.0, 1.0, -1.0, 20.0, -88.0, 104.0, 1e4, -1e4, 6e4, 3e38, -3e38, 1e-8, 1e-42, INFINITY, -INFINITY
POOL = 2**23  # random numbers, of which operands take a piece


class Operand(NamedTuple):
    """A tensor in a piece of memory of its own, on the CPU."""

    memory: torch.Tensor
    size: tuple
    stride: tuple
    offset: int
    far: Optional[torch.Tensor] = None  #: what is in it, where most of the memory is not to be touched

    def on(self, device):
        """The same view of a copy, at the same place in its memory."""
        if self.far is not None:
            memory = torch.empty(self.memory.shape, dtype=self.memory.dtype, device=device)
            view = memory.as_strided(self.size, self.stride, self.offset)
            view.copy_(self.far)
            return view
        memory = self.memory.clone() if device == "cpu" else self.memory.to(device)
        return memory.as_strided(self.size, self.stride, self.offset)

    def __str__(self):
        return f"{str(self.memory.dtype)[6:]}{self.size} strides {self.stride} at {self.offset}"


class Maker:
    """Operands of a case, drawn by its own random numbers."""

    pools = {}

    def __init__(self, rng, far):
        self.rng, self.far = rng, far

    def chance(self, percent):
        return self.rng.random() * 100 < percent

    def layout(self, size, plain=50, axis=None):
        """(memory, strides, offset): dense and aligned, or any other."""
        rng, order = self.rng, list(range(len(size)))
        if self.chance(plain):
            offset = rng.choice((0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5))
            return self.strided(size, order, offset, 0, 0)
        if self.chance(50):
            if axis is not None and self.chance(60):
                order.append(order.pop(axis))
            else:
                rng.shuffle(order)
        return self.strided(size, order, rng.randrange(9), 40, 8)

    def strided(self, size, order, offset, gaps, expands):
        strides, step = [0] * len(size), self.rng.choice((1, 1, 1, 1, 2, 3)) if gaps and self.chance(30) else 1
        for place in reversed(order):
            if size[place] > 1 and self.chance(expands):
                continue
            strides[place] = step
            step *= max(size[place], 1)
            if gaps and self.chance(gaps):
                step += self.rng.choice((1, 2, 3, 4, 8, 13, 64))
        memory = offset + 1 + sum((n - 1) * stride for n, stride in zip(size, strides) if n)
        return memory, tuple(strides), offset

    def floats(self, size, dtype, scale=3.0, odd=25, plain=50, axis=None, positive=False, farness=0):
        """Random numbers; now and then awkward ones among them."""
        if farness and self.chance(farness) and self.far and len(size) > 1:
            return self.far_apart(size, dtype, axis)
        count, strides, offset = self.layout(size, plain, axis)
        memory = self.taken(count, dtype)
        if positive:
            memory = memory.abs_()
        if scale != 1:
            memory = memory.mul_(scale)
        if not positive and self.chance(4):
            memory = memory.add_(self.rng.choice((1e4, -6e4, 1e30, 88.0)))
        if not positive and self.chance(2):
            memory = memory.copy_(torch.tensor(self.rng.choice(SPECIAL)))
        if self.chance(odd):
            for _ in range(self.rng.choice((1, 1, 3, 20))):
                x = self.rng.choice(SPECIAL) if self.chance(93) else float("nan")
                memory[self.rng.randrange(count)] = torch.tensor(abs(x) if positive else x)
        return Operand(memory, tuple(size), strides, offset)

    def taken(self, count, dtype):
        if dtype not in self.pools:
            generator = torch.Generator().manual_seed(1)
            self.pools[dtype] = torch.randn(POOL, generator=generator).to(dtype)
        first = self.rng.randrange(max(POOL - count, 1))
        piece = self.pools[dtype][first:first + count].clone()
        return piece if piece.numel() == count else piece.repeat(count // POOL + 1)[:count]

    def far_apart(self, size, dtype, axis):
        """Classes further apart than 32 bits can say, or 32 of them together; rows are neighbours."""
        strides, step = [0] * len(size), 1
        for place in reversed(range(len(size))):
            if place != axis:
                strides[place], step = step, step * size[place]
        bytes_each = torch.empty((), dtype=dtype).element_size()
        reach = 2**31 if size[axis] * 2**31 * bytes_each < 2**34 else 2**26
        strides[axis] = reach + self.rng.choice((0, 1, -1, -2**10, 2**10))
        count = strides[axis] * (size[axis] - 1) + step
        if size[axis] < 2 or count * bytes_each > 2**34 or strides[axis] < step:
            return self.floats(size, dtype, axis=axis)
        numbers = 1
        for n in size:
            numbers *= n
        return Operand(torch.empty(count, dtype=dtype, device="meta"), tuple(size), tuple(strides), 0,
                       self.taken(numbers, dtype).reshape(size))

    def labels(self, size, classes, ignored):
        rng = self.rng
        dtype = rng.choice((torch.int64, torch.int64, torch.int32) + ((torch.uint8,) if classes <= 250 else ()))
        count, strides, offset = self.layout(size, 80)
        generator = torch.Generator().manual_seed(rng.randrange(2**62))
        memory = torch.randint(classes, (count,), generator=generator)
        share = rng.choice((0, 0, 0.2, 0.2, 0.9, 1))
        if share and (dtype is not torch.uint8 or ignored >= 0):
            memory = torch.where(torch.rand(count, generator=generator) < share, ignored, memory)
        return Operand(memory.to(dtype), tuple(size), strides, offset)

    def mask(self, rows):
        size = self.reaching(rows)
        count, strides, offset = self.layout(size, 70)
        memory = self.taken(count, torch.float32) > self.rng.choice((-1, -1, 0, 1.5, 9))
        return Operand(memory if self.chance(60) else memory.to(torch.uint8), size, strides, offset)

    def weights(self, size, dtype):
        return self.floats(size, dtype, self.rng.choice((1, 0.3)), 6, 75, positive=True)

    def reaching(self, rows):
        """A shape that is broadcast to the rows'."""
        if self.chance(70) or not rows:
            return tuple(rows)
        size = [n if self.chance(60) else 1 for n in rows]
        return tuple(size[self.rng.randrange(len(size)):] if self.chance(30) else size)

    def dtype(self):
        return self.rng.choice(FLOATS[:3] + FLOATS[:2] + FLOATS)

    def extents(self):
        """(rows, classes) within a budget of elements."""
        rng = self.rng
        budget = LARGE if self.chance(2) else 2**18 if self.chance(10) else rng.choice(BUDGETS)
        sizes = LONG if self.chance(15) else range(1, 1100) if self.chance(15) else SHORT + LONG
        classes = rng.choice([n for n in sizes if n <= max(budget, 8200)])
        return rng.choice([n for n in ROWS if n * classes <= budget] or [1]), classes

    def shape(self, last=False):
        """Of logits, and the dimension of the classes: a row, rows, or images."""
        rows, classes = self.extents()
        kind = self.rng.choice(("rows", "rows", "image", "sequence", "batches"))
        if rows == 1 and self.chance(20):
            return (classes,), 0
        if kind == "rows" or rows < 4:
            return (rows, classes), 1
        outer = self.rng.choice([n for n in (1, 2, 3, 4, 7) if n <= rows])
        inner = rows // outer
        if kind == "image" and not last:
            height = self.rng.choice([n for n in (1, 2, 3, 5, 8) if n <= inner])
            return (outer, classes, height, inner // height), 1
        if kind == "batches" and last:
            return (outer, inner, classes), 2
        return ((outer, inner, classes), 2) if last else ((outer, classes, inner), 1)
