# Losses over rows of NumPy's arrays, against the oracle; the bits of PyTorch's tensors; PyTorch stays away.
import subprocess
import sys

import pytest

np = pytest.importorskip("numpy")

import onepass
import oracle

TYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
STEPS = {"f16": 0.55 * 2**-10, "f32": 5 * 2**-23, "f64": 5 * 2**-52}
SHAPES = [(5,), (6, 5), (3, 1500), (2, 5, 3), (2, 7, 3, 4)]


def operands(shape, dtype=np.float32, kind="labels", seed=94):
    rng = np.random.default_rng(seed)
    input = (rng.standard_normal(shape) * 3).astype(dtype)
    if kind == "probabilities":
        return input, rng.uniform(size=shape).astype(dtype)
    rows = shape[:1] + shape[2:] if len(shape) > 1 else ()
    return input, np.asarray(rng.integers(0, input.shape[min(1, input.ndim - 1)], rows))


def assert_near(got, expected, size, step, what):
    off = np.abs(np.asarray(got, np.float64) - expected)
    assert (off <= step * np.maximum(np.abs(expected), size) + 2**-24).all(), f"{what}: {got} for {expected}"


@pytest.mark.parametrize("reduction", ["mean", "sum", "none", "batchmean"])
@pytest.mark.parametrize("kind", ["labels", "probabilities"])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_cross_entropy(shape, dtype, kind, reduction):
    input, target = operands(shape, TYPES[dtype], kind)
    loss = "cross_entropy" if kind == "labels" else "cross_entropy_with_probabilities"
    given = {"label_smoothing": 0.1, "z_loss": 0.01, "temperature": 1.5}
    weight = np.random.default_rng(1).integers(1, 9, input.shape[min(1, input.ndim - 1)]).astype(TYPES[dtype]) / 8
    value = onepass.cross_entropy(input, target, weight, reduction=reduction, **given)
    answer = oracle.answer_rows(loss, input, target, reduction=reduction, class_weight=weight, **given)
    sizes = answer.row_value_sizes if reduction == "none" else answer.row_value_sizes.sum() / (
        1 if reduction == "sum" else answer.divided_by)
    assert_near(value, answer.value, sizes, STEPS[dtype], "value")
    assert value.dtype == TYPES[dtype] and isinstance(value, np.ndarray if reduction == "none" and shape != (5,) else
                                                      (np.ndarray, np.floating))
    if reduction != "none":
        value, gradient = onepass.value_and_grad("cross_entropy", input, target, weight, reduction=reduction, **given)
        assert_near(gradient, answer.gradients[0], answer.gradient_sizes, STEPS[dtype], "gradient")
        assert gradient.dtype == input.dtype and gradient.shape == input.shape


@pytest.mark.parametrize("labels", [np.int64, np.int32, np.uint8])
def test_the_bits_of_tensors(labels):
    torch = pytest.importorskip("torch")
    input, target = operands((9, 1200))
    target = (target % 200).astype(labels)
    target[3] = 7
    mask, row_weight = target % 3 != 0, np.linspace(0.5, 1, 9, dtype=np.float32)
    tensors = [torch.from_numpy(x) for x in (input, target, mask, row_weight)]
    for given in ({}, {"ignore_index": 7, "reduction": "none"}, {"softcap": 5.0, "divisor": 12}):
        ours = onepass.cross_entropy(input, target, mask=mask, row_weight=row_weight, **given)
        theirs = onepass.cross_entropy(*tensors[:2], mask=tensors[2], row_weight=tensors[3], **given)
        assert np.array_equal(ours, theirs.numpy())
    found = onepass.cross_entropy(input, target, ignore_index=7, z_loss=0.5, row_weight=row_weight, return_lse=True,
                                  return_z_loss=True, return_accuracy=True)
    wanted = onepass.cross_entropy(*tensors[:2], ignore_index=7, z_loss=0.5, row_weight=tensors[3], return_lse=True,
                                   return_z_loss=True, return_accuracy=True)
    for one, other in zip(found, wanted):
        np.testing.assert_allclose(one, other.numpy(), rtol=1e-6)
    found = onepass.log_prob(input, target, temperature=2.0, return_entropy=True)
    for one, other in zip(found, onepass.log_prob(*tensors[:2], temperature=2.0, return_entropy=True)):
        np.testing.assert_allclose(one, other.numpy(), rtol=2e-6)
    assert np.array_equal(onepass.nll_loss(input, target), onepass.nll_loss(*tensors[:2]).numpy())


def test_strides():
    input, target = operands((8, 10, 6))
    wanted = onepass.cross_entropy(input.transpose(0, 2, 1).copy(), target[:, :1].repeat(10, 1) % 6)
    assert onepass.cross_entropy(input.transpose(0, 2, 1), (target[:, :1] % 6).repeat(10, 1)) == wanted
    assert onepass.cross_entropy(input[::2, ::-1], target[::2]) == onepass.cross_entropy(input[::2, ::-1].copy(),
                                                                                        target[::2].copy())


def test_edges():
    input, target = operands((3, 4))
    assert np.isnan(onepass.cross_entropy(input, np.full(3, -100)))
    assert onepass.cross_entropy(input, np.full(3, -100), reduction="sum") == 0
    assert np.isnan(onepass.cross_entropy(input[:0], target[:0]))
    assert onepass.cross_entropy(input, target, dtype=np.float64).dtype == np.float64
    with pytest.raises(IndexError, match="Target 9 is out of bounds."):
        onepass.cross_entropy(input, np.array([0, 9, 1]))


@pytest.mark.parametrize("change, error, says", [
    (dict(target=np.zeros(3)), TypeError, "target has dtype float64; expected int64, int32 or uint8"),
    (dict(target=np.zeros(4, int)), ValueError, r"target of shape \(4,\); expected \(3,\)"),
    (dict(input=np.zeros((3, 4), int)), TypeError, "input has dtype int64"),
    (dict(weight=np.zeros(3)), ValueError, r"weight of shape \(3,\); expected \(4,\)"),
    (dict(mask=np.zeros(4, bool)), ValueError, "mask of shape"),
    (dict(ignore_index=None), TypeError, "ignore_index is None"),
    (dict(ignore_index=2.5), TypeError, "ignore_index is 2.5"),
    (dict(ignore_index=float("nan")), TypeError, "ignore_index is nan"),
    (dict(target=np.zeros((3, 4)), ignore_index=3), RuntimeError, "ignore_index is not supported for floating point"),
    (dict(reduction="average"), ValueError, "average is not a valid value for reduction"),
    (dict(reduction=[]), ValueError, r"\[\] is not a valid value for reduction"),
    (dict(label_smoothing=1.5), ValueError, "label_smoothing of cross_entropy is 1.5"),
    (dict(label_smoothing="0.1"), TypeError, "label_smoothing of cross_entropy is str"),
    (dict(inplace=True), ValueError, "inplace is set, but arrays have no backward pass"),
    (dict(dtype=np.int64), TypeError, "dtype is .*int64.*; expected numpy.float32"),
    (dict(dtype="zzz"), TypeError, "dtype is 'zzz'; expected numpy.float32"),
    (dict(divisor=0), ValueError, "divisor is 0"), (dict(divisor="3"), TypeError, "divisor is '3'"),
    (dict(divisor=np.array(-1.0)), ValueError, "divisor is -1"), (dict(divisor=3, reduction="sum"), ValueError, "divisor is set"),
    (dict(row_weight=np.zeros(3, int)), TypeError, "row_weight has dtype int64"),
    (dict(target=np.zeros((3, 4)), return_accuracy=True), ValueError, "return_accuracy is set"),
], ids=str)
def test_refusals(change, error, says):
    input, target = operands((3, 4))
    with pytest.raises(error, match=says):
        onepass.cross_entropy(**{"input": input, "target": target, **change})


@pytest.mark.parametrize("given, error, says", [
    (dict(labels=np.zeros(2, int)), ValueError, r"labels of shape \(2,\); expected \(3,\)"),
    (dict(labels=np.zeros(3)), TypeError, "labels has dtype float64"),
    (dict(labels=np.full(3, 9)), IndexError, "Label 9 is out of bounds."),
    (dict(logits=np.zeros((3, 4), int)), TypeError, "logits has dtype int64"),
    (dict(logits=np.zeros(()), labels=np.zeros((), int)), ValueError, "logits has no dimensions"),
    (dict(logits=[[1.0]], labels=[0]), TypeError, "logits and labels are list and list"),
    (dict(temperature=0), ValueError, "temperature of log_prob is 0"),
    (dict(inplace=True), ValueError, "inplace is set, but arrays have no backward pass"),
], ids=str)
def test_refusals_of_log_prob_name_its_arguments(given, error, says):
    input, target = operands((3, 4))
    with pytest.raises(error, match=says):
        onepass.log_prob(**{"logits": input, "labels": target, **given})


def test_one_number_may_be_an_array():
    input, target = operands((3, 4))
    for one, other in ((dict(divisor=np.array(3.0)), dict(divisor=3)), (dict(divisor=np.array([3])), dict(divisor=3)),
                       (dict(ignore_index=np.array(1)), dict(ignore_index=1)),
                       (dict(label_smoothing=np.array(0.1)), dict(label_smoothing=0.1))):
        assert onepass.cross_entropy(input, target, **one) == onepass.cross_entropy(input, target, **other)
    found = onepass.cross_entropy(input, target, z_loss=0.5, divisor=np.array(3.0), return_z_loss=True)
    assert found == onepass.cross_entropy(input, target, z_loss=0.5, divisor=3, return_z_loss=True)


def test_old_names_of_reductions():
    input, target = operands((3, 4))
    with pytest.warns(UserWarning, match="size_average and reduce") as caught:
        assert onepass.cross_entropy(input, target, size_average=False) == onepass.cross_entropy(input, target,
                                                                                                reduction="sum")
    assert [warning.filename for warning in caught] == [__file__]


def test_arrays_do_not_bring_torch():
    subprocess.run([sys.executable, "-c", "import sys, onepass, numpy as np; a = np.ones((2, 3), 'f4'); "
                    "b = np.array([0, 2]); onepass.cross_entropy(a, b); onepass.nll_loss(a, b); "
                    "onepass.log_prob(a, b); onepass.value_and_grad('cross_entropy', a, b); onepass.row_losses(); "
                    "assert 'torch' not in sys.modules"], check=True)
