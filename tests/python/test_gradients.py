# Gradients by PyTorch's engine: the right ones by finite differences and to the bit by the
# formula, for either operand, for any upstream gradient and by every route.

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")

from torch.utils.checkpoint import checkpoint

from agreement import (
    Outcome,
    ask_oracle,
    assert_array_bits,
    assert_near_pytorch,
    assert_same_bits,
    assert_same_outcome,
    exact,
)
from operands import FLOATS, leaves, pair
from reference import LOSSES, REDUCTIONS, WEIGHTED, gradients, ours, theirs

pytestmark = [pytest.mark.usefixtures("borrowing"), pytest.mark.filterwarnings("ignore:Using a target size")]


@pytest.mark.parametrize("shapes", [((3, 4), (3, 4)), ((3, 4), (4,)), ((4, 1), (3,))], ids=str)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("loss", LOSSES)
def test_gradcheck_and_gradgradcheck(loss, reduction, shapes, device):
    p, t = (torch.randn(shape, dtype=torch.float64, device=device, requires_grad=True) for shape in shapes)

    def function(a, b):
        return ours(loss, a, b, reduction, 0.7)

    assert torch.autograd.gradcheck(function, (p, t))
    assert torch.autograd.gradgradcheck(function, (p, t))
    assert torch.autograd.gradcheck(function, (p, t.detach()))
    assert torch.autograd.gradcheck(function, (p.detach(), t))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("loss", WEIGHTED)
def test_gradcheck_with_a_weight(loss, reduction):
    p, t = pair((3, 4), torch.float64)
    weight = torch.rand(3, 4, dtype=torch.float64) + 0.1
    for tensors in (leaves(p, t) + [weight], leaves(p, t, weight), [p, t] + leaves(weight)):
        function = lambda a, b, w: ours(loss, a, b, reduction, weight=w)
        assert torch.autograd.gradcheck(function, tensors)
        assert torch.autograd.gradgradcheck(function, tensors)


@pytest.mark.parametrize("loss", LOSSES)
def test_gradcheck_of_forward_mode(loss):
    p, t = pair((3, 4), torch.float64)
    assert torch.autograd.gradcheck(lambda a, b: ours(loss, a, b), leaves(p, t), check_forward_ad=True)


# ------------------------------------------------------------------ routes --


@pytest.mark.parametrize("wanted", [(True, False), (False, True), (True, True)], ids=["input", "target", "both"])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_of_either_operand(loss, reduction, dtype, wanted, device):
    p, t = pair((37, 41), dtype, device)
    _, *got = gradients(ours, loss, p, t, wanted=wanted, reduction=reduction)
    for gradient, want, formula in zip(got, wanted, ask_oracle(loss, p, t, reduction).gradients):
        assert (gradient is not None) == want
        if want:
            assert_array_bits(exact(gradient), formula)


@pytest.mark.parametrize("factor", [3.0, 65536.0, -0.125, 0.0])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("loss", LOSSES)
def test_scaled_loss(loss, dtype, factor, device):
    """loss * factor, as a GradScaler does it, then a second time through the retained graph."""
    p, t = pair((37, 41), dtype, device)
    a, b = leaves(p, t)
    scaled = ours(loss, a, b) * factor
    first = torch.autograd.grad(scaled, (a, b), retain_graph=True)
    second = torch.autograd.grad(scaled, (a, b))
    for one, other, formula in zip(first, second, ask_oracle(loss, p, t, upstream=factor).gradients):
        assert_array_bits(exact(one), formula)
        assert_same_bits(one, other)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("loss", LOSSES)
def test_upstream_of_none(loss, dtype, device):
    p, t = pair((37, 41), dtype, device)
    upstream = torch.randn(37, 41, device=device).to(dtype)
    for given in (upstream, upstream[:1].expand(37, 41), upstream.t().contiguous().t()):
        _, *got = gradients(ours, loss, p, t, upstream=given, reduction="none")
        for gradient, formula in zip(got, ask_oracle(loss, p, t, "none", upstream=given).gradients):
            assert_array_bits(exact(gradient), formula)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("loss", LOSSES)
def test_backward_twice_with_different_upstreams(loss, reduction, dtype, device):
    """The first backward may give its buffer away: what it gave must not change by the second."""
    p, t = pair((37, 41), dtype, device)
    (a,) = leaves(p)
    value = ours(loss, a, t, reduction)
    ones = torch.ones_like(value)
    results = [torch.autograd.grad(value, a, ones * factor, retain_graph=True)[0] for factor in (1, 2, 1, -4)]
    for factor, gradient in zip((1, 2, 1, -4), results):
        assert_array_bits(
            exact(gradient), ask_oracle(loss, p, t, reduction, upstream=float(factor)).gradients[0], f"times {factor}"
        )


@pytest.mark.parametrize("loss", LOSSES)
def test_what_was_given_away_may_be_written_over(loss, device):
    """An optimizer, or clipping, changes p.grad in place; a retained graph must not see that."""
    p, t = pair(device=device)
    (a,) = leaves(p)
    value = ours(loss, a, t)
    value.backward(retain_graph=True)
    first = a.grad.clone()
    a.grad.mul_(100)
    a.grad = None
    value.backward(retain_graph=True)
    assert_same_bits(a.grad, first)
    a.grad.zero_()
    value.backward()
    assert torch.equal(a.grad, first)  # but for signed zeros: 0 + -0 is 0


@pytest.mark.parametrize("loss", LOSSES)
def test_backward_after_the_graph_is_freed_is_pytorchs_error(loss):
    p, t = pair()
    outcomes = []
    for function in (ours, theirs):
        value = function(loss, *leaves(p, t))
        value.backward()
        outcomes.append(Outcome(value.backward))
    assert_same_outcome(*outcomes)
    assert "second time" in str(outcomes[0].error)


@pytest.mark.parametrize("loss", LOSSES)
def test_accumulation(loss, device):
    p, t = pair((37, 41), device=device)
    (a,) = leaves(p)
    for _ in range(3):
        (ours(loss, a, t) / 4).backward()
    quarter = torch.from_numpy(ask_oracle(loss, p, t, upstream=0.25).gradients[0]).float().to(device)
    assert_same_bits(a.grad, quarter + quarter + quarter)


@pytest.mark.parametrize("loss", LOSSES)
def test_one_tensor_used_twice(loss, device):
    """The same leaf as input and target, and in two losses at once."""
    p, t = pair(dtype=torch.float64, device=device)
    results = []
    for function in (ours, theirs):
        (a,) = leaves(p)
        (function(loss, a, a * a) + 2 * function(loss, t, a, "sum")).backward()
        results.append(a.grad)
    assert_near_pytorch(*results, tolerance=1e-13)


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("loss", LOSSES)
def test_checkpoint(loss, dtype, reentrant, device):
    p, t = pair((37, 41), dtype, device)
    a, b = leaves(p, p)
    checkpoint(lambda x: ours(loss, x * 2, t), a, use_reentrant=reentrant).backward()
    ours(loss, b * 2, t).backward()
    assert_same_bits(a.grad, b.grad)


@pytest.mark.parametrize("loss", LOSSES)
def test_broadcast_operands(loss, device):
    p, t = (
        torch.randn(6, 1, 7, dtype=torch.float64, device=device),
        torch.randn(5, 1, dtype=torch.float64, device=device),
    )
    for reduction in REDUCTIONS:
        for mine, peer in zip(
            gradients(ours, loss, p, t, reduction=reduction), gradients(theirs, loss, p, t, reduction=reduction)
        ):
            assert_near_pytorch(mine, peer)


@pytest.mark.parametrize("loss", WEIGHTED)
def test_weight_that_requires_a_gradient(loss, device):
    p, t = pair(dtype=torch.float64, device=device)
    weight = torch.rand(3, 5, dtype=torch.float64, device=device)
    for reduction in REDUCTIONS:
        results = []
        for function in (ours, theirs):
            a, w = leaves(p, weight)
            value = function(loss, a, t, reduction, weight=w)
            results.append((value.detach(), *torch.autograd.grad(value.sum(), (a, w))))
        for mine, peer in zip(*results):
            assert_near_pytorch(mine, peer)
