# The contract of weights: the input's size, any type, PyTorch's rules for the mean.

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")

import onepass
import torch.nn.functional as F

from agreement import (
    DTYPES,
    Outcome,
    ask_oracle,
    assert_array_bits,
    assert_near_pytorch,
    assert_same_outcome,
    assert_value,
    exact,
)
from operands import FLOATS, dyadic, pair
from reference import KNOWS_WEIGHTS, REDUCTIONS, WEIGHTED, both, gradients, ours, theirs

#: The functions whose weight PyTorch knows, and wants in the input's size.
STRICT = ["mse", "l1", "huber"]

pytestmark = [pytest.mark.usefixtures("borrowing"), pytest.mark.filterwarnings("ignore:Using a target size")]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("loss", WEIGHTED)
def test_weight(loss, reduction, dtype, device):
    p, t = pair((13, 81), dtype, device)
    weight = dyadic((13, 81), dtype, device)
    got = gradients(ours, loss, p, t, reduction=reduction, weight=weight)
    answer = ask_oracle(loss, p, t, reduction, weight=weight)
    assert got[0].dtype == dtype and got[0].device == p.device
    assert_value(exact(got[0]), answer)
    for mine, formula in zip(got[1:], answer.gradients):
        assert_array_bits(exact(mine), formula, "gradient")
    if dtype in (torch.float32, torch.float64):  # in 16 bits PyTorch's weighted mean is off by whole per cents
        for mine, peer in zip(got, gradients(theirs, loss, p, t, reduction=reduction, weight=weight)):
            assert_near_pytorch(mine, peer)


@pytest.mark.parametrize(
    "types", [("f32", "f32", "f64"), ("f16", "f16", "f32"), ("bf16", "f32", "f16"), ("f64", "f32", "f32")], ids=str
)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("loss", WEIGHTED)
def test_weight_of_another_type_promotes(loss, reduction, types, device):
    p, t, weight = (torch.randn(3, 5, device=device).to(DTYPES[name]) for name in types)
    weight = dyadic((3, 5), weight.dtype, device)
    got, wanted = both(loss, p, t, reduction, weight=weight)
    assert got.dtype == wanted.dtype
    assert_value(exact(got), ask_oracle(loss, p, t, reduction, weight=weight))
    for factor in (1.0, 3.0):  # a gradient is rounded once, however the upstream one comes to it
        upstream = torch.full_like(got, factor)
        _, *found = gradients(ours, loss, p, t, upstream=upstream, reduction=reduction, weight=weight)
        answer = ask_oracle(loss, p, t, reduction, weight=weight, upstream=factor)
        for gradient, formula in zip(found, answer.gradients):
            assert_array_bits(exact(gradient), formula, f"gradient times {factor}")


@pytest.mark.parametrize("loss", WEIGHTED)
def test_weight_of_zeros_negatives_and_nothing(loss):
    p, t = pair((3, 4), torch.float64)
    signed = torch.tensor([1.0, -2.0, 0.0, 4.0], dtype=torch.float64).expand(3, 4)
    for weight in (torch.zeros(3, 4, dtype=torch.float64), signed):
        for reduction in REDUCTIONS:
            assert_near_pytorch(*both(loss, p, t, reduction, weight=weight))
    assert ours(loss, p[:0], t[:0], weight=signed[:0]).isnan()


@pytest.mark.parametrize("shape", [(5,), (1, 5), (3, 1), (), (5, 3), (1, 3, 5)], ids=str)
@pytest.mark.parametrize("reduction", REDUCTIONS + ["bad"])
@pytest.mark.parametrize("loss", STRICT)
def test_weight_must_have_the_inputs_size(loss, reduction, shape):
    with pytest.raises(ValueError) as caught:
        ours(loss, *pair(), reduction=reduction, weight=torch.ones(shape))
    assert str(caught.value) == "Weights and input must have the same size."


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("loss", STRICT)
def test_weight_beside_a_broadcast_input(loss, reduction, device):
    """It has the input's own size, broadcasts with it, and counts once in the divisor: PyTorch's rule."""
    p, t = torch.randn(5, dtype=torch.float64, device=device), torch.randn(3, 5, dtype=torch.float64, device=device)
    weight = torch.rand(5, dtype=torch.float64, device=device)
    for mine, peer in zip(
        gradients(ours, loss, p, t, reduction=reduction, weight=weight),
        gradients(theirs, loss, p, t, reduction=reduction, weight=weight),
    ):
        assert_near_pytorch(mine, peer)


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("loss", WEIGHTED)
def test_weight_beside_a_broadcast_target(loss, device):
    p, t, weight = torch.randn(3, 5, device=device), torch.randn(5, device=device), torch.rand(3, 5, device=device)
    for reduction in REDUCTIONS:
        assert_near_pytorch(*both(loss, p, t, reduction, weight=weight))


@pytest.mark.parametrize("reduction", ["bad", "elementwise_mean"])
def test_bad_reduction_with_a_weight(reduction):
    p, t = pair()
    got = Outcome(onepass.mse_loss, p, t, reduction=reduction, weight=torch.ones(3, 5))
    assert isinstance(got.error, ValueError)
    if KNOWS_WEIGHTS:
        assert_same_outcome(got, Outcome(F.mse_loss, p, t, reduction=reduction, weight=torch.ones(3, 5)))


@pytest.mark.parametrize("loss", WEIGHTED)
def test_weight_of_integers(loss):
    p, t = pair()
    weight = torch.randint(1, 5, (3, 5))
    for reduction in REDUCTIONS:
        assert_same_outcome(
            Outcome(ours, loss, p, t, reduction, weight=weight), Outcome(theirs, loss, p, t, reduction, weight=weight)
        )


@pytest.mark.skipif(not KNOWS_WEIGHTS, reason="this PyTorch takes no weights")
@pytest.mark.parametrize("kind", [torch.int64, torch.uint8, torch.bool], ids=str)
@pytest.mark.parametrize("loss", WEIGHTED)
def test_weight_beside_integers(loss, kind):
    p, t = (torch.randint(0, 2, (3, 5)).to(kind) for _ in range(2))
    for reduction in REDUCTIONS:
        for weight in (torch.rand(3, 5), torch.randint(1, 5, (3, 5))):
            assert_same_outcome(Outcome(ours, loss, p, t, reduction, weight=weight),
                                Outcome(theirs, loss, p, t, reduction, weight=weight))


@pytest.mark.parametrize("loss", WEIGHTED)
def test_strided_weight(loss):
    p, t = pair((6, 4))
    weight = torch.rand(4, 6).t()
    for reduction in REDUCTIONS:
        assert_near_pytorch(*both(loss, p, t, reduction, weight=weight))


def test_weight_of_smooth_l1_is_ours_alone():
    """By keyword, and of any size that broadcasts: PyTorch has none here."""
    p, t = pair()
    weight = dyadic((5,))
    each = onepass.smooth_l1_loss(p, t, reduction="none")
    assert_near_pytorch(onepass.smooth_l1_loss(p, t, weight=weight), (each * weight).sum() / (3 * weight.sum()))
    with pytest.raises(TypeError):
        onepass.smooth_l1_loss(p, t, None, None, "mean", 1.0, weight)


@pytest.mark.parametrize("loss", STRICT)
def test_broadcast_weight(loss, device):
    """Allowed on request; in the mean each element's weight counts, also where the input was broadcast."""
    p, t = torch.randn(5, device=device), torch.randn(3, 5, device=device)
    weight = dyadic((5,), device=device)
    for reduction in REDUCTIONS:
        answer = ask_oracle(loss, p, t, reduction, weight=weight, broadcast_weight=True)
        assert_value(exact(ours(loss, p, t, reduction, weight=weight, broadcast_weight=True)), answer)
        got = ours(loss, p, t, reduction, weight=weight, broadcast_weight=True)
        wide = ours(loss, p.expand(3, 5), t, reduction, weight=weight.expand(3, 5))
        assert_near_pytorch(got, wide, tolerance=1e-7)
