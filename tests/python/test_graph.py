# Life in PyTorch's graph: modes, hooks, threads, operands that change behind our back.
import warnings

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")

from agreement import Outcome, ask_oracle, assert_array_bits, assert_same_bits, exact
from operands import FLOATS, leaves, pair
from reference import LOSSES, REDUCTIONS, gradients, ours, theirs

pytestmark = [pytest.mark.usefixtures("borrowing"), pytest.mark.filterwarnings("ignore:Using a target size")]


@pytest.mark.parametrize("loss", LOSSES)
def test_no_grad_and_inference_mode(loss, device):
    p, t = pair(device=device)
    (a,) = leaves(p)
    wanted = ours(loss, p, t)
    with torch.no_grad():
        value = ours(loss, a, t)
        assert not value.requires_grad
    with torch.inference_mode():
        inferred = ours(loss, a, t)
        assert inferred.is_inference()
        assert_same_bits(ours(loss, p * 1, t), wanted)
    assert_same_bits(value, wanted)
    assert_same_bits(inferred.clone(), wanted)


@pytest.mark.parametrize("loss", LOSSES)
def test_inference_tensor_outside(loss):
    """As PyTorch: fine as a plain number; it cannot be saved for a backward pass."""
    with torch.inference_mode():
        t = torch.randn(3, 5)
    (p,) = leaves(torch.randn(3, 5))
    mine, peer = (Outcome(lambda: function(loss, p, t).backward()) for function in (ours, theirs))
    if mine.error is None:
        assert_array_bits(exact(p.grad), ask_oracle(loss, p, t.clone()).gradients[0])
    else:
        assert type(mine.error) is type(peer.error)
    assert_same_bits(ours(loss, t, t), ours(loss, t.clone(), t.clone()))


@pytest.mark.parametrize("loss", LOSSES)
def test_set_grad_enabled_inside(loss):
    p, t = pair()
    (a,) = leaves(p)
    with torch.no_grad():
        with torch.enable_grad():
            value = ours(loss, a, t)
    assert value.requires_grad and value.grad_fn is not None and not value.is_leaf
    assert_array_bits(exact(torch.autograd.grad(value, a)[0]), ask_oracle(loss, p, t).gradients[0])


@pytest.mark.parametrize("who", [0, 1])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("loss", LOSSES)
def test_in_place_change_of_an_operand_never_gives_a_wrong_gradient(loss, reduction, dtype, who, device):
    """It is an error, as in PyTorch, wherever the operand is read again; where it is not, the gradient is of
    the numbers that the loss was computed from."""
    p, t = pair(dtype=dtype, device=device)
    (a,) = leaves(p)
    operands = [a * 1, t.clone()]
    value = ours(loss, *operands, reduction)
    operands[who].add_(1)
    got = Outcome(lambda: torch.autograd.grad(value.sum(), a)[0])
    if got.error is None:
        assert_array_bits(exact(got.result), ask_oracle(loss, p, t, reduction).gradients[0])
    else:
        assert isinstance(got.error, RuntimeError) and "modified by an inplace operation" in str(got.error)


@pytest.mark.parametrize("loss", LOSSES)
def test_in_place_change_before_a_second_backward_is_detected(loss, device):
    p, t = pair(device=device)
    (a,) = leaves(p)
    value = ours(loss, a, t)
    torch.autograd.grad(value, a, retain_graph=True)
    t.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(value, a)


@pytest.mark.parametrize("loss", LOSSES)
def test_in_place_change_of_the_loss_itself(loss):
    p, t = pair()
    (a,) = leaves(p)
    value = ours(loss, a, t)
    value.mul_(2)
    value.backward()
    assert_array_bits(exact(a.grad), ask_oracle(loss, p, t, upstream=2.0).gradients[0])


@pytest.mark.parametrize("loss", LOSSES)
def test_hooks(loss):
    p, t = pair()
    (a,) = leaves(p)
    seen = []
    inner = a * 1
    inner.retain_grad()
    inner.register_hook(lambda gradient: gradient * 2)
    value = ours(loss, inner, t)
    value.register_hook(lambda gradient: seen.append(gradient.item()))
    value.backward()
    assert seen == [1.0]
    assert_array_bits(exact(a.grad), 2 * ask_oracle(loss, p, t).gradients[0])


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("loss", LOSSES)
def test_saved_tensor_hooks(loss, reduction):
    """What is saved for backward may be packed elsewhere, as save_on_cpu does."""
    p, t = pair()
    (a,) = leaves(p)
    with torch.autograd.graph.saved_tensors_hooks(lambda x: x.clone(), lambda x: x):
        value = ours(loss, a, t, reduction)
    got = torch.autograd.grad(value.sum(), a)[0]
    assert_array_bits(exact(got), ask_oracle(loss, p, t, reduction).gradients[0])


@pytest.mark.parametrize("loss", LOSSES)
def test_anomaly_mode(loss):
    p, t = pair()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly():
            (a,) = leaves(p)
            ours(loss, a, t).backward()
            assert_array_bits(exact(a.grad), ask_oracle(loss, p, t).gradients[0])
            if loss != "hinge":
                with pytest.raises(RuntimeError, match="nan values"):
                    ours(loss, *leaves(p * float("nan")), t).backward()


@pytest.mark.parametrize("loss", LOSSES)
def test_backward_in_another_thread(loss):
    import threading

    p, t = pair((300, 400))
    (a,) = leaves(p)
    value = ours(loss, a, t)
    thread = threading.Thread(target=value.backward)
    thread.start()
    thread.join()
    assert_array_bits(exact(a.grad), ask_oracle(loss, p, t).gradients[0])


@pytest.mark.parametrize("loss", LOSSES)
def test_many_threads_at_once(loss):
    from concurrent.futures import ThreadPoolExecutor

    p, t = pair((100, 301))
    wanted = gradients(ours, loss, p, t)
    with ThreadPoolExecutor(8) as pool:
        for result in pool.map(lambda _: gradients(ours, loss, p, t), range(64)):
            for one, other in zip(result, wanted):
                assert_same_bits(one, other)


def test_operands_that_want_no_gradient_get_none():
    p, t = pair()
    a, b = leaves(p, t)
    assert torch.autograd.grad(ours("mse", a, t), (a, b), allow_unused=True)[1] is None
