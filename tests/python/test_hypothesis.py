# Random calls: shapes, strides, types, broadcasting, parameters, reductions, weights, upstream
# gradients and awkward numbers, against the oracle (to the bit where a bit is promised), against
# PyTorch, and NumPy's way in against PyTorch's. Derandomized, so that a run can be repeated.
import os
import warnings

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")
hypothesis = pytest.importorskip("hypothesis")

import onepass
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agreement import DTYPES, ask_oracle, assert_array_bits, assert_same_bits, assert_value, exact
from reference import PARAMETER_NAMES, REDUCTIONS, options, ours, theirs

pytestmark = pytest.mark.filterwarnings("ignore:Using a target size")

#: Of arithmetic alone, so that PyTorch has nearly the same numbers, whatever they are.
LOSSES = [
    "mse",
    "l1",
    "smooth_l1",
    "huber",
    "charbonnier",
    "quantile",
    "epsilon_insensitive",
    "hinge",
    "squared_hinge",
]

bounded = settings(
    max_examples=100 if os.environ.get("ONEPASS_TEST_QUICK") == "1" else 200,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)

SPECIALS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1e-45,
    -1e-40,
    6e-8,
    1e-300,
    300.0,
    65504.0,
    3e38,
    1e300,
    np.inf,
    -np.inf,
    np.nan,
]


@st.composite
def shapes(draw):
    """Two shapes that broadcast; mostly small, now and then around a line of lanes or a tile."""
    sizes = st.one_of(st.integers(0, 5), st.sampled_from([1, 1, 127, 129, 1025]))
    common = draw(st.lists(sizes, max_size=4))
    while np.prod([max(size, 1) for size in common], dtype=np.int64) > 20_000:  # an empty dimension may become 1
        common[common.index(max(common))] = 2
    pair = []
    for _ in "pt":
        shape = [draw(st.sampled_from([size, size, size, 1])) for size in common]
        pair.append(tuple(shape[draw(st.integers(0, len(shape))) if draw(st.booleans()) else 0 :]))
    return pair


def awkward(rng, shape, dtype, special):
    """Normal numbers of many magnitudes; a share of them replaced by zeros, denormals, infinities, NaN."""
    numbers = rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 3, shape)
    if special:
        numbers = np.where(rng.random(shape) < 0.1, rng.choice(SPECIALS, shape), numbers)
    return torch.from_numpy(np.asarray(numbers)).to(dtype)


def laid_out(rng, tensor):
    """The same numbers in other memory: permuted, with gaps, at an offset, or backwards in the dimensions' order."""
    way = rng.integers(0, 4)
    if way == 1 and tensor.dim() > 1:
        order = rng.permutation(tensor.dim()).tolist()
        return tensor.permute(order).contiguous().permute(np.argsort(order).tolist())
    if way == 2 and tensor.dim() > 0:
        wide = torch.full((*tensor.shape[:-1], 2 * tensor.shape[-1] + 1), 77.0, dtype=tensor.dtype)
        return wide[..., 1::2].copy_(tensor)
    if way == 3:
        room = torch.full((tensor.numel() + 3,), 77.0, dtype=tensor.dtype)
        return room[3:].view(tensor.shape).copy_(tensor)
    return tensor


@st.composite
def calls(draw, special):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    loss = draw(st.sampled_from(LOSSES))
    (p_shape, t_shape), dtypes = draw(shapes()), [draw(st.sampled_from(list(DTYPES.values()))) for _ in "ptw"]
    p, t = (laid_out(rng, awkward(rng, shape, dtype, special)) for shape, dtype in zip((p_shape, t_shape), dtypes))
    weight = None
    # beside a weight an input that is broadcast is PyTorch's to judge; test_contract_weight.py has that
    if np.broadcast_shapes(p_shape, t_shape) == tuple(p_shape) and draw(st.booleans()):
        # multiples of 1/8: their sum is exact in any order, so that a weighted mean's gradient is known to the bit
        weight = laid_out(rng, torch.from_numpy(np.asarray(rng.integers(1, 9, p_shape) / 8)).to(dtypes[2]))
    allowed = {"quantile": [0.5, 0.3, 1e-3], "huber": [1.0, 0.5, 2.0, 1e-3, 100.0]}
    parameter = draw(st.sampled_from(allowed.get(loss, [1.0, 0.5, 2.0, 0.0, 1e-3, 100.0])))
    parameter = parameter if loss in PARAMETER_NAMES else None
    return loss, p, t, draw(st.sampled_from(REDUCTIONS)), parameter, weight


def summed_to(gradient, shape):
    """A gradient of the common shape summed to an operand's own."""
    gradient = gradient.sum(axis=tuple(range(gradient.ndim - len(shape))))
    axes = tuple(axis for axis, size in enumerate(shape) if size == 1 and gradient.shape[axis] != 1)
    return gradient.sum(axis=axes, keepdims=True) if axes else gradient


def assert_gradient(got, formula, leaf):
    if formula.shape == tuple(leaf.shape):
        return assert_array_bits(exact(got), formula, "gradient")
    with np.errstate(all="ignore"):
        wanted, magnitude = summed_to(formula, tuple(leaf.shape)), summed_to(np.abs(formula), tuple(leaf.shape))
        tolerance = {torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.float32: 1e-6, torch.float64: 1e-13}[leaf.dtype]
        # each summand was rounded to the operand's type, and so is the sum
        room = tolerance * magnitude * max(1, np.log2(max(formula.size, 1))) + 1e-7
        ours_ = exact(got)
        near = (np.abs(ours_ - wanted) <= room) | (~np.isfinite(ours_) & ~np.isfinite(wanted)) | (magnitude > 6e4)
    assert near.all(), f"{ours_[~near][:4]} for {wanted[~near][:4]}"


@bounded
@given(calls(special=True), st.sampled_from([1.0, 1.0, 3.0, -0.5, 2048.0]))
def test_against_the_oracle(call, upstream):
    loss, p, t, reduction, parameter, weight = call
    a, b = p.detach().requires_grad_(), t.detach().requires_grad_()
    answer = ask_oracle(loss, p, t, reduction, parameter, weight, upstream)
    value = ours(loss, a, b, reduction, parameter, weight)
    assert_value(exact(value), answer)
    for turn in range(2):
        got = torch.autograd.grad(value, (a, b), torch.full_like(value, upstream), retain_graph=True)
        for gradient, formula, leaf in zip(got, answer.gradients, (a, b)):
            assert gradient.dtype == leaf.dtype and gradient.shape == leaf.shape
            assert_gradient(gradient, formula, leaf)


@bounded
@given(calls(special=True))
def test_against_pytorch(call):
    """Element by element, in the type that both compute in: 3 steps, infinities and NaN in the same places."""
    loss, p, t, _, parameter, weight = call
    types = [x.dtype for x in (p, t, weight) if x is not None]
    real = torch.float64 if torch.float64 in types else torch.float32
    wide = [None if x is None else x.to(real) for x in (p, t, weight)]
    got = ours(loss, *wide[:2], "none", parameter, wide[2])
    wanted = theirs(loss, *wide[:2], "none", parameter, wide[2])
    assert got.dtype == wanted.dtype and got.shape == wanted.shape
    torch.testing.assert_close(got, wanted, rtol=3 * torch.finfo(real).eps, atol=0, equal_nan=True)


@bounded
@given(calls(special=False))
def test_reductions_against_pytorch_in_double(call):
    loss, p, t, reduction, parameter, weight = call
    p, t, weight = (None if x is None else x.double() for x in (p, t, weight))
    got, wanted = (function(loss, p, t, reduction, parameter, weight) for function in (ours, theirs))
    torch.testing.assert_close(got, wanted, rtol=1e-13, atol=1e-300, equal_nan=True)


@bounded
@given(calls(special=True), st.sampled_from(["mean", "sum"]))
def test_numpy_is_the_same_to_the_bit(call, reduction):
    loss, p, t, _, parameter, weight = call
    tensors = [None if x is None else x.float() if x.dtype == torch.bfloat16 else x for x in (p, t, weight)]
    arrays = [None if x is None else x.numpy() for x in tensors]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for way in (reduction, "none"):
            result = ours(loss, *arrays[:2], way, parameter, arrays[2])
            assert_same_bits(torch.from_numpy(np.asarray(result)), ours(loss, *tensors[:2], way, parameter, tensors[2]))
        if p.shape == torch.broadcast_shapes(p.shape, t.shape):
            value, gradient = onepass.value_and_grad(
                loss, *arrays[:2], reduction=reduction, **options(loss, parameter, arrays[2])
            )
            answer = ask_oracle(loss, *tensors[:2], reduction, parameter, tensors[2])
            assert_value(float(value), answer)
            assert_array_bits(gradient.astype(np.float64), answer.gradients[0], "NumPy's gradient")
