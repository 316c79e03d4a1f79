# Whoever records a computation instead of looking at it, and modes that only choose a device: neither
# may get a constant, nor change what is computed.
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")

import onepass
import torch.nn.functional as F
from reference import LOSSES, ours


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize("loss", LOSSES)
def test_a_trace_is_of_the_computation(loss):
    a, b = torch.randn(7), torch.randn(7)
    traced = torch.jit.trace(lambda x, y: ours(loss, x, y), (a, b))
    torch.testing.assert_close(traced(b, 2 * a), ours(loss, b, 2 * a))


@pytest.mark.parametrize("loss", LOSSES)
def test_symbolic_trace(loss):
    class Model(torch.nn.Module):
        def forward(self, x, y):
            return ours(loss, x, y)

    a, b = torch.randn(7), torch.randn(7)
    torch.testing.assert_close(torch.fx.symbolic_trace(Model())(a, b), ours(loss, a, b))


@pytest.mark.skipif(not hasattr(torch.library, "register_autograd"), reason="operators need PyTorch 2.4")
def test_a_transform_within_a_compiled_function():
    a, b = torch.randn(7), torch.randn(7)
    gradient = torch.compile(lambda x, y: torch.func.grad(lambda z: onepass.mse_loss(z, y))(x), backend="aot_eager")
    torch.testing.assert_close(gradient(a, b), torch.func.grad(lambda z: F.mse_loss(z, b))(a))


@pytest.mark.parametrize("loss", LOSSES)
def test_a_default_device_changes_nothing(loss):
    a, b = torch.full((1000,), 300.0).half(), torch.zeros(1000).half()
    a[1:] = 0.5
    plain = ours(loss, a, b)
    with torch.device("cpu"):
        assert torch.equal(ours(loss, a, b), plain)
    assert plain.isfinite()  # which PyTorch's own mean of squares is not


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_a_result_may_be_changed_in_place(dtype):
    a, b = torch.randn(9).to(dtype).requires_grad_(), torch.randn(9).to(dtype)
    for reduction in ("none", "mean"):
        value = onepass.mse_loss(a, b, reduction=reduction)
        expected = 2 * value.detach().clone()
        value.mul_(2)
        assert torch.equal(value.detach(), expected)
        value.sum().backward()


def test_numbers_across_the_boundaries_of_their_size():
    memory = bytearray(4 * 9 + 1)
    odd = torch.frombuffer(memory, dtype=torch.float32, offset=1, count=9)
    odd.copy_(torch.arange(9.0))
    torch.testing.assert_close(onepass.mse_loss(odd, torch.ones(9)), F.mse_loss(torch.arange(9.0), torch.ones(9)))
