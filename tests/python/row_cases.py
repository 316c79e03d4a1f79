# Losses over rows: operands to compute with, and how a result is compared with the oracle's.
import numpy as np
import oracle
import torch

from agreement import exact

#: Steps of a type that a result may be off, relative to the sum of its terms' magnitudes: 4 of the compute type, and
#: half a step of 16-bit types, which round once.
STEPS = {torch.float16: 0.55 * 2**-10, torch.bfloat16: 0.51 * 2**-7, torch.float32: 5 * 2**-23,
         torch.float64: 5 * 2**-52}
#: What is lost below the smallest normal number, and with classes that are 2^-126 (float64: 2^-1022) of their row's
#: largest: they count as 0, and the factors of a gradient make at most 8 times that of it.
SMALLEST = {torch.float16: 2**-24, torch.bfloat16: 2**-123, torch.float32: 2**-123, torch.float64: 2**-1000}


def rows_of(shape):
    return shape[:1] + shape[2:] if len(shape) > 1 else ()


def classes_of(shape):
    return shape[1] if len(shape) > 1 else shape[0]


def logits_of(shape, dtype=torch.float32, device="cpu"):
    return (torch.randn(shape) * 3).to(dtype).to(device)


def labels_of(shape, dtype=torch.int64, device="cpu", ignore_index=None):
    """With some ignored, if there is an index for it."""
    rows = rows_of(shape)
    labels = torch.randint(0, min(classes_of(shape), 250), rows)
    if ignore_index is not None:
        labels = torch.where(torch.rand(rows) < 0.3, ignore_index, labels)
    return labels.to(dtype).to(device)


def probabilities_of(shape, dtype=torch.float32, device="cpu"):
    return torch.softmax(torch.randn(shape) * 2, min(1, len(shape) - 1)).to(dtype).to(device)


def assert_near(got, expected, sizes, dtype, what):
    """Within a few steps of the type, relative to what was added up; NaN and infinity where they are expected."""
    got, expected, sizes = exact(got), np.asarray(expected), np.maximum(np.abs(expected), np.asarray(sizes))
    assert got.shape == expected.shape, f"{what}: {got.shape} for {expected.shape}"
    finite = np.isfinite(expected)
    assert ((got == expected) | (np.isnan(got) & np.isnan(expected)) | finite).all(), f"{what}: {got} for {expected}"
    off = np.abs(got[finite] - expected[finite]) - (STEPS[dtype] * sizes[finite] + SMALLEST[dtype])
    worst = off.argmax() if off.size else 0
    assert (off <= 0).all(), f"{what}: {got[finite][worst]} for {expected[finite][worst]}, too far by {off[worst]}"


def ask(loss, input, target, weight=None, row_weight=None, mask=None, upstream=1.0, axis=None, **given):
    """The oracle, for tensors."""
    return oracle.answer_rows(
        loss, exact(input), target.cpu().numpy() if not target.is_floating_point() else exact(target), axis=axis,
        class_weight=None if weight is None else exact(weight),
        weight=None if row_weight is None else exact(row_weight), mask=None if mask is None else mask.cpu().numpy(),
        upstream=exact(upstream) if isinstance(upstream, torch.Tensor) else upstream, **given)


def size_of_value(answer, reduction):
    """What a value's rows add up in magnitude."""
    sizes = np.maximum(answer.row_value_sizes, np.abs(answer.row_values))
    if reduction in ("mean", "batchmean") and answer.divided_by == 0:
        return 0
    return sizes if reduction == "none" else sizes.sum() / (answer.divided_by if reduction != "sum" else 1)
