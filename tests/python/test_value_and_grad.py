# onepass.value_and_grad for tensors: the value and the input's gradient from one pass, without autograd.

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")

import onepass

from agreement import (
    ask_oracle,
    assert_array_bits,
    assert_near_pytorch,
    assert_same_bits,
    exact,
)
from operands import FLOATS, leaves, pair
from reference import LOSSES, theirs, theirs_of_any_type

pytestmark = [pytest.mark.usefixtures("borrowing"), pytest.mark.filterwarnings("ignore:Using a target size")]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("loss", LOSSES)
def test_value_and_grad(loss, reduction, dtype, device):
    p, t = pair((37, 41), dtype, device)
    for name in (loss, f"{loss}_loss"):
        for a, b in ((p, t), leaves(p, t)):
            value, gradient = onepass.value_and_grad(name, a, b, reduction=reduction)
            assert not value.requires_grad and not gradient.requires_grad
            assert value.shape == () and gradient.shape == p.shape and gradient.dtype == dtype
            assert gradient.device == p.device
            assert_array_bits(exact(gradient), ask_oracle(loss, p, t, reduction).gradients[0])
            assert_near_pytorch(value, theirs_of_any_type(loss, p, t, reduction))
    with torch.no_grad():
        assert_same_bits(onepass.value_and_grad(loss, p, t, reduction=reduction)[1], gradient)


def test_value_and_grad_of_a_broadcast_input(device):
    p, t = torch.randn(5, dtype=torch.float64, device=device), torch.randn(3, 5, dtype=torch.float64, device=device)
    for loss in LOSSES:
        value, gradient = onepass.value_and_grad(loss, p, t)
        (a,) = leaves(p)
        peer = theirs(loss, a, t)
        peer.backward()
        assert_near_pytorch(value, peer.detach())
        assert_near_pytorch(gradient, a.grad)


def test_value_and_grad_parameters_and_weights():
    p, t = pair(dtype=torch.float64)
    weight = torch.rand(3, 5, dtype=torch.float64)
    for loss, given, words in (
        ("smooth_l1", {"beta": 0.3}, {"parameter": 0.3}),
        ("hinge", {"margin": 0.3}, {"parameter": 0.3}),
        ("mse", {"weight": weight}, {"weight": weight}),
        ("hinge", {"weight": weight, "margin": 2.0}, {"weight": weight, "parameter": 2.0}),
    ):
        value, gradient = onepass.value_and_grad(loss, p, t, **given)
        (a,) = leaves(p)
        peer = theirs(loss, a, t, **words)
        peer.backward()
        assert_near_pytorch(value, peer.detach())
        assert_near_pytorch(gradient, a.grad)


def test_value_and_grad_errors():
    p, t = pair()
    for name, given, error in (
        ("mse", {"reduction": "none"}, ValueError),
        ("mse", {"reduction": "bad"}, ValueError),
        ("nonsense", {}, ValueError),
        ("mse", {"beta": 1.0}, TypeError),
        ("smooth_l1", {"margin": 1.0}, TypeError),
    ):
        with pytest.raises(error):
            onepass.value_and_grad(name, p, t, **given)
    with pytest.raises(TypeError):
        onepass.value_and_grad("mse", p, t, "mean")
