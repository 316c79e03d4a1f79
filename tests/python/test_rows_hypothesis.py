# Random calls of cross_entropy: shapes, strides, types, labels, weights, masks, options, upstream gradients and awkward
# numbers, against the oracle; NumPy's way in against PyTorch's. Derandomized, so that a run can be repeated.
import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")
hypothesis = pytest.importorskip("hypothesis")

import onepass
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from operands import FLOATS
from row_cases import ask, assert_near, size_of_value

bounded = settings(max_examples=60, deadline=None, derandomize=True, database=None,
                   suppress_health_check=list(HealthCheck))
SPECIALS = [0.0, -0.0, 20.0, -88.0, 1e4, -1e4, -np.inf, 6e-8]


@st.composite
def calls(draw):
    """Logits with the classes in dimension 1, labels, and the words of a call."""
    rows = draw(st.lists(st.integers(0, 5), min_size=0, max_size=3))
    classes = draw(st.sampled_from([1, 2, 5, 17, 127, 128, 129, 1023, 1025, 2100]))
    shape = (*rows[:1], classes, *rows[1:])
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    numbers = rng.standard_normal(shape) * draw(st.sampled_from([0.1, 3.0, 50.0]))
    if draw(st.booleans()):
        numbers = np.where(rng.random(shape) < 0.1, rng.choice(SPECIALS, shape), numbers)
    input = torch.from_numpy(numbers).to(draw(st.sampled_from(FLOATS)))
    if draw(st.booleans()) and input.dim() > 1:
        input = input.transpose(0, 1).contiguous().transpose(0, 1)
    labels = torch.from_numpy(np.asarray(rng.integers(0, classes, rows)))
    ignored = draw(st.sampled_from([-100, 0, 255]))
    labels = torch.where(torch.from_numpy(np.asarray(rng.random(rows) < 0.2)), ignored, labels)
    words = {"reduction": draw(st.sampled_from(["mean", "sum", "none", "batchmean"])), "ignore_index": ignored}
    if draw(st.booleans()):
        words["label_smoothing"] = draw(st.sampled_from([0.1, 0.5, 1.0]))
    if draw(st.booleans()):
        words["z_loss"] = 0.01
    if draw(st.booleans()):
        words["temperature"] = draw(st.sampled_from([0.5, 2.0, 1.3]))
    tensors = {}
    if draw(st.booleans()):
        tensors["weight"] = torch.from_numpy(rng.integers(0, 9, classes) / 8).to(input.dtype)
    if draw(st.booleans()):
        tensors["row_weight"] = torch.from_numpy(np.asarray(rng.integers(1, 9, rows) / 8)).to(input.dtype)
    if draw(st.booleans()):
        tensors["mask"] = torch.from_numpy(np.asarray(rng.random(rows) < 0.7))
    return input, labels, words, tensors


@bounded
@given(calls())
def test_against_the_oracle(call):
    input, labels, words, tensors = call
    leaf = input.detach().requires_grad_()
    value = onepass.cross_entropy(leaf, labels, **words, **tensors)
    upstream = torch.full_like(value, 1.5)
    value.backward(upstream)
    answer = ask("cross_entropy", input, labels, upstream=upstream, **words, **tensors)
    if value.dtype is torch.float16 and np.abs(np.nan_to_num(answer.value)).max(initial=0) > 65000:
        return  # which rounds to infinity
    assert_near(value, answer.value, size_of_value(answer, words["reduction"]), value.dtype, "value")
    if np.isfinite(answer.row_values).all() and not (words["reduction"] == "mean" and answer.divided_by == 0):
        assert_near(leaf.grad, answer.gradients[0], answer.gradient_sizes, input.dtype, "gradient")


@bounded
@given(calls())
def test_arrays_are_tensors(call):
    input, labels, words, tensors = call
    if input.dtype is torch.bfloat16:
        return
    arrays = {key: tensor.numpy() for key, tensor in tensors.items()}
    value = onepass.cross_entropy(input.numpy(), labels.numpy(), **words, **arrays)
    np.testing.assert_array_equal(value, onepass.cross_entropy(input, labels, **words, **tensors).numpy())
