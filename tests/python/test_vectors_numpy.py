# Vector losses of NumPy's arrays: PyTorch's bits, types and words.
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

import onepass

from operands import dyadic, mask_of
from vector_cases import CASES, operands_of

TYPES = [torch.float16, torch.float32, torch.float64]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_they_have_the_bits_of_tensors(name, dtype):
    operands = operands_of(name, (5, 130), dtype)
    arrays = [x.numpy() for x in operands]
    weight, mask = dyadic((5,), dtype), mask_of((5,))
    reductions = ["mean", "sum", "none", "batchmean"] if CASES[name].reduces else [None]
    for reduction in reductions:
        given = {} if reduction is None else {"reduction": reduction}
        for more in ({}, {"weight": weight}, {"mask": mask}, CASES[name].others):
            value = CASES[name].ours(*arrays, **given, **{key: x.numpy() if isinstance(x, torch.Tensor) else x
                                                          for key, x in more.items()})
            wanted = CASES[name].ours(*operands, **given, **more).numpy()
            assert np.asarray(value).dtype == wanted.dtype
            np.testing.assert_array_equal(value, wanted)
            assert isinstance(value, np.ndarray) == (wanted.ndim > 0)
    if CASES[name].reduces:
        assert CASES[name].ours(*arrays, divisor=11) == CASES[name].ours(*operands, divisor=11).numpy()


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_value_and_grad(name, dtype):
    operands = operands_of(name, (5, 130), dtype)
    operands = [*operands, None][:3]
    arrays = [None if x is None else x.numpy() for x in operands]
    found = onepass.value_and_grad(CASES[name].library, *arrays, reduction="sum")
    wanted = onepass.value_and_grad(CASES[name].library, *operands, reduction="sum")
    for one, other in zip(found, wanted):
        np.testing.assert_array_equal(one, other.numpy())
        assert one.dtype == other.numpy().dtype
    if operands[2] is None:
        narrow = arrays[0][:1]
        value, gradient = onepass.value_and_grad(CASES[name].library, narrow, arrays[1])
        assert gradient.shape == narrow.shape and np.isfinite(gradient).all()


def test_dimensions_and_strides():
    a, b = np.random.randn(3, 4, 5), np.random.randn(4, 5)
    for dim in (0, 1, -1):
        wanted = onepass.cosine_similarity(torch.from_numpy(a), torch.from_numpy(b), dim).numpy()
        np.testing.assert_array_equal(onepass.cosine_similarity(a, b, dim), wanted)
        np.testing.assert_array_equal(onepass.cosine_similarity(a[::-1, :, ::-1], b[:, ::-1], dim),
                                      onepass.cosine_similarity(a[::-1, :, ::-1].copy(), b[:, ::-1].copy(), dim))
    assert onepass.pairwise_distance(a, b, keepdim=True).shape == (3, 4, 1)
    assert isinstance(onepass.pairwise_distance(b[0], b[1]), np.float64)


def test_targets():
    a, b = np.random.randn(4, 5), np.random.randn(4, 5)
    target = np.array([1, -1, 0, 1])
    wanted = onepass.cosine_embedding_loss(a, b, target)
    for dtype in (np.int32, np.float16, np.float32, np.float64):
        assert onepass.cosine_embedding_loss(a, b, target.astype(dtype)) == wanted


def test_errors():
    a, b = np.ones((3, 4)), np.ones((3, 5))
    with pytest.raises(ValueError, match=r"operands of shapes \(3, 4\), \(3, 5\); expected vectors that broadcast"):
        onepass.pairwise_distance(a, b)
    with pytest.raises(ValueError, match="p is 3; expected 1 or 2 for arrays"):
        onepass.pairwise_distance(a, a, p=3)
    with pytest.raises(IndexError, match=r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)"):
        onepass.cosine_similarity(a, a, 2)
    with pytest.raises(TypeError, match="x2 has dtype int64; expected float16, float32 or float64"):
        onepass.cosine_similarity(a, np.ones((3, 4), np.int64))
    with pytest.raises(ValueError, match="margin must be greater than 0, got 0"):
        onepass.triplet_margin_loss(a, a, a, margin=0)
    with pytest.raises(RuntimeError, match="same number of dimensions"):
        onepass.triplet_margin_loss(a, a[0], a)
    with pytest.raises(RuntimeError, match="multi-target not supported"):
        onepass.cosine_embedding_loss(a, a, np.ones((3, 1)))
    with pytest.raises(RuntimeError, match="1D target tensor expects 2D input tensors"):
        onepass.cosine_embedding_loss(a[0], a[0], np.ones(3))
    with pytest.raises(ValueError, match=r"target of shape \(2,\); expected \(3,\), a number for each row"):
        onepass.cosine_embedding_loss(a, a, np.ones(2))
    with pytest.raises(TypeError, match="target has dtype bool"):
        onepass.cosine_embedding_loss(a, a, np.ones(3, bool))
    with pytest.raises(ValueError, match="total is not a valid value for reduction"):
        onepass.triplet_margin_loss(a, a, a, reduction="total")
    with pytest.raises(ValueError, match=r"weight of shape \(4,\) does not broadcast"):
        onepass.pairwise_distance(a, a, weight=np.ones(4))
    with pytest.raises(TypeError, match="triplet_margin_loss takes arrays"):
        onepass.triplet_margin_with_distance_loss(a, a, a)
    with pytest.raises(IndexError, match=r"Dimension out of range .*\[-2, 1\], but got -3"):
        onepass.value_and_grad("pairwise_distance", a, a, dim=-3)
    with pytest.raises(TypeError, match="positive has dtype int64"):
        onepass.value_and_grad("triplet_margin", a, np.ones((3, 4), np.int64), a)


def test_without_pytorch():
    program = ("import sys, numpy as np, onepass; a, b = np.ones((3, 4)), np.zeros((3, 4)); "
               "onepass.cosine_similarity(a, b); onepass.triplet_margin_loss(a, b, b); onepass.dice_loss(a, b); "
               "onepass.kl_div_with_logits(a, b); "
               "onepass.value_and_grad('triplet_margin', a, b, b); onepass.vector_losses(); "
               "assert 'torch' not in sys.modules")
    subprocess.run([sys.executable, "-c", program], check=True)
