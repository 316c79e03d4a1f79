# What other processes do in the test of accumulators: apart, so that they need not import PyTorch.
import numpy as np

import onepass


def arrays_of(name, total, seed):
    """(input, target, third) of NumPy's, the same in each process."""
    generator = np.random.default_rng(seed)
    if name == "cross_entropy":
        return generator.random((total, 5), np.float32), generator.integers(0, 5, total), None
    if name == "cosine_embedding":
        return (*generator.random((2, total, 5), np.float32), generator.integers(0, 2, total) * 2 - 1)
    return (*generator.random((2, total), np.float32), None)


def part_of(name, total, seed, first, last):
    input, target, third = arrays_of(name, total, seed)
    part = onepass.Accumulator(name, total)
    part.add(input[first:last], target[first:last], None if third is None else third[first:last], first=first)
    return part
