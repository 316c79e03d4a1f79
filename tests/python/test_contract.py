# The contract of PyTorch's losses, case by case, ours beside PyTorch's own: results, types,
# devices, shapes, strides, warnings and errors. Where ours is meant to be better than
# PyTorch's, see test_better.py.
import inspect

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

import onepass
import torch.nn.functional as F

from agreement import (
    Outcome,
    ask_oracle,
    assert_array_bits,
    assert_near_pytorch,
    assert_same_outcome,
    assert_value,
    exact,
    strides,
)
from operands import FLOATS, pair
from reference import LOSSES, OURS, REDUCTIONS, both, gradients, ours, theirs, theirs_of_any_type

pytestmark = pytest.mark.usefixtures("borrowing")

PYTORCH_LOSSES = {"mse": F.mse_loss, "smooth_l1": F.smooth_l1_loss}
SHAPES = [(), (1,), (7,), (3, 5), (2, 3, 4, 5), (1025,)]


# ------------------------------------------------------------ signatures --


@pytest.mark.parametrize("loss", PYTORCH_LOSSES)
def test_signature_is_pytorchs(loss):
    wanted = {name: parameter.default for name, parameter in inspect.signature(PYTORCH_LOSSES[loss]).parameters.items()}
    if loss == "mse":
        wanted.setdefault("weight", None)  # PyTorch 2.2 has none yet
    assert list(by_position(OURS[loss]).items()) == list(wanted.items())


def by_position(function):
    """The parameters that may be given by position; what is ours alone comes by keyword."""
    parameters = inspect.signature(function).parameters.items()
    return {name: parameter.default for name, parameter in parameters if parameter.kind is not parameter.KEYWORD_ONLY}


def test_signature_of_the_hinge():
    got = by_position(onepass.hinge_loss)
    empty = inspect.Parameter.empty
    assert list(got.items()) == [
        ("input", empty),
        ("target", empty),
        ("margin", 1.0),
        ("reduction", "mean"),
        ("weight", None),
    ]


@pytest.mark.parametrize("loss", PYTORCH_LOSSES)
def test_arguments_by_position(loss):
    p, t = pair()
    last = {"mse": torch.rand(3, 5), "smooth_l1": 0.25}[loss]
    got = OURS[loss](p, t, None, None, "sum", last)
    assert_near_pytorch(got, theirs(loss, p, t, "sum", **{"weight" if loss == "mse" else "parameter": last}))


@pytest.mark.parametrize(
    "arguments, given",
    [((), {}), (("input",), {}), (("input", "target"), {"lambda_": 1}), (("input", "target") + (None,) * 5, {})],
)
@pytest.mark.parametrize("loss", LOSSES)
def test_wrong_arguments_are_type_errors(loss, arguments, given):
    p, t = pair()
    values = [{"input": p, "target": t}.get(argument, argument) for argument in arguments]
    with pytest.raises(TypeError):
        OURS[loss](*values, **given)


@pytest.mark.parametrize("other", [1.0, [1.0], None, "text"])
@pytest.mark.parametrize("loss", LOSSES)
def test_what_is_no_tensor_is_refused(loss, other):
    p, _ = pair()
    for arguments in ((p, other), (other, p), (other, other)):
        with pytest.raises((TypeError, AttributeError)):  # PyTorch's own is an AttributeError
            OURS[loss](*arguments)


# --------------------------------------------------------------- results --


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("loss", LOSSES)
def test_values(loss, reduction, dtype, shape, device):
    p, t = pair(shape, dtype, device)
    got, wanted = ours(loss, p, t, reduction), theirs_of_any_type(loss, p, t, reduction)
    assert_near_pytorch(got, wanted)
    assert strides(got) == strides(wanted)
    assert not got.requires_grad
    assert_value(exact(got), ask_oracle(loss, p, t, reduction))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("loss", LOSSES)
def test_gradients(loss, reduction, dtype, device):
    p, t = pair((13, 81), dtype, device)
    value, *got = gradients(ours, loss, p, t, reduction=reduction)
    _, *wanted = gradients(theirs_of_any_type, loss, p, t, reduction=reduction)
    answer = ask_oracle(loss, p, t, reduction)
    assert_value(exact(value), answer)
    for gradient, peer, formula in zip(got, wanted, answer.gradients):
        assert_near_pytorch(gradient, peer)
        assert strides(gradient) == strides(peer)
        assert_array_bits(exact(gradient), formula, "gradient")


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("loss", LOSSES)
def test_scalar_has_no_dimensions(loss, reduction, device):
    result = ours(loss, *pair((4, 4), device=device), reduction=reduction)
    assert result.shape == () and result.dim() == 0 and result.device.type == device


@pytest.mark.parametrize("types", [(a, b) for a in FLOATS for b in FLOATS if a != b], ids=str)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("loss", LOSSES)
def test_mixed_types_promote(loss, reduction, types, device):
    p, t = pair((3, 5), types[0], device, types[1])
    got = ours(loss, p, t, reduction)
    assert got.dtype == torch.promote_types(*types) == theirs(loss, p, t, reduction).dtype
    assert_value(exact(got), ask_oracle(loss, p, t, reduction))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("loss", PYTORCH_LOSSES)
def test_a_scalar_tensor_promotes_as_any_other(loss, reduction, device):
    """PyTorch broadcasts first, so a 0-dimensional f64 beside f32 counts as f64."""
    p, t = torch.randn(3, 4, device=device), torch.randn((), dtype=torch.float64, device=device)
    for arguments in ((p, t), (t, p)):
        assert_same_outcome(Outcome(ours, loss, *arguments, reduction), Outcome(theirs, loss, *arguments, reduction))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint8, torch.bool, torch.complex64], ids=str)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("loss", PYTORCH_LOSSES)
def test_integers_and_complex_are_refused(loss, reduction, dtype, device):
    p, t = torch.ones(4, device=device).to(dtype), torch.zeros(4, device=device).to(dtype)
    assert_same_outcome(Outcome(ours, loss, p, t, reduction), Outcome(theirs, loss, p, t, reduction))
    with pytest.raises((NotImplementedError, RuntimeError)):
        ours(loss, p, t, reduction)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.bool], ids=str)
@pytest.mark.parametrize("loss", PYTORCH_LOSSES)
def test_an_integer_beside_a_float_promotes(loss, dtype, device):
    """As in PyTorch, which refuses integers only where no operand is a float."""
    p, t = torch.randn(3, 4, device=device, requires_grad=True), torch.randint(0, 2, (3, 4), device=device).to(dtype)
    assert_same_outcome(Outcome(ours, loss, p, t), Outcome(theirs, loss, p, t))
    assert_same_outcome(Outcome(ours, loss, t, p), Outcome(theirs, loss, t, p))
    # with a float target, since PyTorch 2.11 fails in the backward of mse otherwise
    values = ours(loss, p, t), theirs(loss, p, t.to(p.dtype))
    assert_near_pytorch(*(torch.autograd.grad(value, p)[0] for value in values))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("loss", LOSSES)
def test_empty(loss, reduction, device):
    for shape in ((0,), (0, 3), (2, 0, 5)):
        p, t = pair(shape, device=device)
        got, wanted = both(loss, p, t, reduction)
        assert_near_pytorch(got, wanted)
        _, gradient, _ = gradients(ours, loss, p, t, reduction=reduction)
        assert gradient.shape == shape


def test_empty_mean_is_nan_and_sum_zero():
    p, t = pair((0, 3))
    for loss in LOSSES:
        assert ours(loss, p, t, "mean").isnan()
        assert ours(loss, p, t, "sum") == 0


@pytest.mark.parametrize("loss", LOSSES)
def test_more_dimensions_than_the_library_has(loss):
    p, t = torch.randn([1] * 18 + [2, 3]), torch.randn([1] * 18 + [2, 3])
    for reduction in REDUCTIONS:
        assert_near_pytorch(*both(loss, p, t, reduction))


SPECIALS = [0.0, -0.0, 1.0, -1.0, 0.5, float("inf"), -float("inf"), float("nan"), 1e-45, -1e-40, 3e38, -3e38]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("parameter", [1.0, 0.5, 0.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_nan_infinity_kinks_and_zeros(loss, parameter, dtype, device):
    """Every special number against every other, values and slopes, as the formula and as PyTorch have them.

    Two differences, on purpose: the target's slope at a difference of 0 is -0 by the formula, and with beta = 0 the
    slope of a NaN is NaN, where PyTorch's l1_loss has 0.
    """
    p, t = (
        grid.flatten()
        for grid in torch.meshgrid(*2 * [torch.tensor(SPECIALS, dtype=dtype, device=device)], indexing="ij")
    )
    got = gradients(ours, loss, p, t, reduction="none", parameter=parameter)
    wanted = gradients(theirs, loss, p, t, reduction="none", parameter=parameter)
    answer = ask_oracle(loss, p, t, "none", parameter)
    for mine, formula in zip(got, (answer.value, *answer.gradients)):
        assert_array_bits(exact(mine), formula)
    for index, (mine, peer) in enumerate(zip(got, wanted)):
        if loss == "smooth_l1" and parameter == 0 and index > 0:
            peer = torch.where((p - t).isnan(), torch.nan, peer)
        torch.testing.assert_close(mine, peer, rtol=1e-6, atol=1e-38, equal_nan=True)


@pytest.mark.parametrize("loss", LOSSES)
def test_stored_nan_is_the_canonical_one(loss):
    payload = torch.tensor([-4194259, 2143289344 + 77], dtype=torch.int32).view(torch.float32)
    values = ours(loss, payload, torch.ones(2), "none")
    assert (values.view(torch.int32) == 0x7FC00000).all()


# ------------------------------------------------------------ parameters --


@pytest.mark.parametrize("beta", [0, 0.0, -0.0, 0.3, 2, True, 1e-40, 1e30, float("inf")], ids=str)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_beta(beta, reduction, device):
    p, t = pair((5, 9), device=device)
    t[0, 0] = p[0, 0]
    got, wanted = both("smooth_l1", p, t, reduction, beta)
    assert_near_pytorch(got, wanted)
    for mine, peer in zip(
        gradients(ours, "smooth_l1", p, t, reduction=reduction, parameter=beta),
        gradients(theirs, "smooth_l1", p, t, reduction=reduction, parameter=beta),
    ):
        assert_near_pytorch(mine, peer)


@pytest.mark.parametrize("beta", [0.0, 1.0])
def test_gradient_of_smooth_l1_at_zero_is_zero(beta, device):
    p = torch.randn(9, device=device)
    _, gradient, _ = gradients(ours, "smooth_l1", p, p, reduction="sum", parameter=beta)
    assert (gradient == 0).all()


def test_beta_zero_is_l1(device):
    p, t = pair((100,), torch.float64, device)
    assert_near_pytorch(ours("smooth_l1", p, t, parameter=0), F.l1_loss(p, t))


@pytest.mark.parametrize("beta", [-1, -1e-9, -float("inf"), float("nan"), "wide", None], ids=str)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_bad_beta(beta, reduction):
    p, t = pair()
    wanted = Outcome(F.smooth_l1_loss, p, t, reduction=reduction, beta=beta)
    assert wanted.error is not None
    got = Outcome(onepass.smooth_l1_loss, p, t, reduction=reduction, beta=beta)
    assert_same_outcome(got, wanted, same_text=isinstance(beta, (int, float)))


@pytest.mark.parametrize("margin", [0, 0.5, 1, 2.5, -1.0], ids=str)
def test_margin(margin, device):
    p, t = pair((5, 9), device=device)
    for reduction in REDUCTIONS:
        got = gradients(ours, "hinge", p, t, reduction=reduction, parameter=margin)
        for mine, peer in zip(got, gradients(theirs, "hinge", p, t, reduction=reduction, parameter=margin)):
            assert_near_pytorch(mine, peer)


# ------------------------------------------------------------- reduction --


@pytest.mark.parametrize("reduction", ["bad", "", "Mean", None, 1])
@pytest.mark.parametrize("loss", PYTORCH_LOSSES)
def test_bad_reduction(loss, reduction):
    p, t = pair()
    with pytest.raises(ValueError) as caught:
        OURS[loss](p, t, reduction=reduction)
    assert str(caught.value) == f"{reduction} is not a valid value for reduction"


def test_bad_reduction_of_the_hinge():
    with pytest.raises(ValueError, match="bad is not a valid value for reduction"):
        onepass.hinge_loss(*pair(), reduction="bad")


@pytest.mark.parametrize("loss", PYTORCH_LOSSES)
def test_elementwise_mean_is_deprecated(loss):
    p, t = pair()
    assert_same_outcome(
        Outcome(OURS[loss], p, t, reduction="elementwise_mean"),
        Outcome(PYTORCH_LOSSES[loss], p, t, reduction="elementwise_mean"),
    )
    with pytest.warns(UserWarning, match="reduction='elementwise_mean' is deprecated"):
        assert ours(loss, p, t, "elementwise_mean") == ours(loss, p, t, "mean")


@pytest.mark.parametrize("size_average", [None, False, True])
@pytest.mark.parametrize("reduce", [None, False, True])
@pytest.mark.parametrize("loss", PYTORCH_LOSSES)
def test_deprecated_arguments(loss, size_average, reduce):
    """With the same warning, and stronger than a reduction, even a bad one."""
    p, t = pair()
    for given in ({}, {"reduction": "sum"}, {"reduction": "bad"}):
        given = {"size_average": size_average, "reduce": reduce, **given}
        assert_same_outcome(Outcome(OURS[loss], p, t, **given), Outcome(PYTORCH_LOSSES[loss], p, t, **given))


# --------------------------------------------------------------- devices --


def test_meta_tensors():
    p, t = torch.empty(3, 4, device="meta"), torch.empty(3, 4, device="meta")
    for loss in LOSSES:
        for reduction in REDUCTIONS:
            got, wanted = both(loss, p, t, reduction)
            assert (got.device, got.dtype, got.shape) == (wanted.device, wanted.dtype, wanted.shape)


@pytest.mark.parametrize("loss", PYTORCH_LOSSES)
def test_meta_beside_cpu(loss):
    p = torch.empty(3, 4, device="meta")
    for t in (torch.empty(3, 4), torch.tensor(0.5)):
        for arguments in ((p, t), (t, p)):
            assert_same_outcome(Outcome(ours, loss, *arguments), Outcome(theirs, loss, *arguments))


@pytest.mark.gpu
@pytest.mark.parametrize("loss", PYTORCH_LOSSES)
def test_cpu_beside_cuda(loss):
    """A tensor is refused as PyTorch refuses it; a scalar of the CPU is taken where PyTorch takes it."""
    there = torch.randn(3, 4, device="cuda")
    for here in (torch.randn(3, 4), torch.randn(())):
        for arguments in ((there, here), (here, there)):
            for reduction in REDUCTIONS:
                assert_same_outcome(
                    Outcome(ours, loss, *arguments, reduction),
                    Outcome(theirs, loss, *arguments, reduction),
                    same_text=False,
                )


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available() or torch.cuda.device_count() < 2, reason="needs two GPUs")
@pytest.mark.parametrize("loss", LOSSES)
def test_a_gpu_that_is_not_the_current_one(loss):
    p, t = pair((1000,), device="cuda:1")
    got = ours(loss, p, t)
    assert got.device == p.device
    assert_near_pytorch(got, theirs(loss, p, t))


@pytest.mark.gpu
@pytest.mark.parametrize("loss", LOSSES)
def test_work_goes_to_the_current_stream(loss):
    p, t = pair((1 << 20,), device="cuda")
    wanted = ours(loss, p, t)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        late = p * 1  # on this stream only; a kernel elsewhere would read what is not there yet
        got = ours(loss, late, t)
    stream.synchronize()
    assert got == wanted


@pytest.mark.filterwarnings("ignore:size_average and reduce args")
@pytest.mark.parametrize("given", [{"size_average": True}, {"size_average": False}, {"reduce": False}], ids=str)
def test_a_batchmean_of_kl_div_beside_deprecated_arguments(given):
    """PyTorch divides by the batch whatever those say."""
    p, t = torch.randn(3, 4), torch.rand(3, 4)
    wanted = F.kl_div(p, t, reduction="batchmean", **given)
    torch.testing.assert_close(onepass.kl_div(p, t, reduction="batchmean", **given), wanted)
    got = onepass.kl_div(p.numpy(), t.numpy(), reduction="batchmean", **given)
    assert got.dtype == np.float32
    torch.testing.assert_close(torch.as_tensor(got, dtype=torch.float32), wanted)


@pytest.mark.filterwarnings("ignore:size_average and reduce args")
def test_a_batch_whose_size_is_no_float16():
    p, t = np.full(70000, -2.0, np.float16), np.ones(70000, np.float16)
    got = onepass.kl_div(p, t, size_average=True, reduction="batchmean")
    assert got.dtype == np.float16 and got == np.float16(2 / 70000)
