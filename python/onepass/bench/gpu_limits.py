"""A GPU's plain reading of up to three arrays, and writing of one, by Triton, which comes with PyTorch."""

import triton
import triton.language as tl

SHAPES = ((4096, 8), (8192, 8), (8192, 16), (16384, 16))  # numbers and warps of a block


@triton.jit
def move(a, b, c, out, count, arrays: tl.constexpr, writes: tl.constexpr, block: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    inside = i < count
    x = tl.load(a + i, mask=inside, other=0.0, eviction_policy="evict_first")
    if arrays > 1:
        x += tl.load(b + i, mask=inside, other=0.0, eviction_policy="evict_first")
    if arrays > 2:
        x += tl.load(c + i, mask=inside, other=0.0, eviction_policy="evict_first")
    if writes:
        tl.store(out + i, x, mask=inside)
    else:
        tl.store(out + tl.program_id(0), tl.sum(x, axis=0))


def mover(arrays, out, writes, shape):
    """A function that moves the bytes of these arrays of float once. Where it writes nothing, `out` is for a number of
    each block."""
    block, warps = shape
    first, second, third = (*arrays, arrays[0], arrays[0])[:3]
    count = first.numel()
    grid = (triton.cdiv(count, block),)
    return lambda: move[grid](first, second, third, out, count, len(arrays), writes, block, num_warps=warps)
