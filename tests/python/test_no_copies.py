# What the engine allocates and waits for: the gradient once, nothing twice, and never the host.

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")

from agreement import ask_oracle, assert_array_bits, exact
from operands import FLOATS, leaves, mask_of, operands_of, pair
from reference import ALL, LOSSES, REDUCTIONS, WEIGHTED, ours

pytestmark = [pytest.mark.usefixtures("borrowing"), pytest.mark.filterwarnings("ignore:Using a target size")]


def big_allocations(work, least):
    """The sizes of all allocations of at least so many bytes that a piece of work makes on the CPU."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        work()
    events = profile.profiler.kineto_results.events()
    return [event.nbytes() for event in events if event.name() == "[memory]" and event.nbytes() >= least]


@pytest.mark.parametrize("factor", [1, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_first_backward_gives_the_gradient_away(loss, dtype, factor):
    """One allocation of the gradient's size in forward; in backward none, scaled or not, and no copy into p.grad."""
    p, t = (tensor.to(dtype) for tensor in pair((1 << 16,)))
    (a,) = leaves(p)
    size = a.numel() * a.element_size()
    losses = []
    assert big_allocations(lambda: a.clone(), size) == [size], "the profiler does not see allocations"
    assert big_allocations(lambda: losses.append(ours(loss, a, t) * factor), size) == [size]
    assert big_allocations(lambda: losses.pop().backward(), size) == []
    assert_array_bits(exact(a.grad), ask_oracle(loss, p, t, upstream=float(factor)).gradients[0])


@pytest.mark.parametrize("loss", LOSSES)
def test_half_computes_its_gradient_in_backward(loss):
    p, t = (tensor.to(torch.float16) for tensor in pair((1 << 16,)))
    (a,) = leaves(p)
    losses = []
    assert big_allocations(lambda: losses.append(ours(loss, a, t)), 1 << 17) == []
    assert big_allocations(lambda: losses.pop().backward(), 1 << 17) == [1 << 17]


@pytest.mark.parametrize("loss", LOSSES)
def test_without_gradients_nothing_is_allocated(loss):
    p, t = pair((1 << 16,))
    assert big_allocations(lambda: ours(loss, p, t), 1 << 12) == []


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")
@pytest.mark.parametrize("loss", ALL)
def test_masks_weights_and_third_operands_are_read_where_they_lie(loss):
    p, t, v = operands_of(loss, (1 << 8, 1 << 8))
    mask, weight = mask_of((1 << 8, 1 << 8)), torch.rand(1 << 8, 1 << 8)
    (a,) = leaves(p)
    for given in ({}, {"mask": mask}, {"weight": weight}):
        assert big_allocations(lambda: ours(loss, p, t, third=v, **given), 1 << 12) == []
        value = []
        found = big_allocations(lambda: value.append(ours(loss, a, t, third=v, **given)), 1 << 12)
        assert found + big_allocations(lambda: value.pop().backward(), 1 << 12) == [1 << 18]
        a.grad = None


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")
@pytest.mark.parametrize("loss", ALL)
def test_no_host_synchronisation_of_any_loss(loss):
    """With masks, weights and third operands."""
    p, t, v = operands_of(loss, (100, 301), device="cuda")
    mask, weight = mask_of((100, 301), "cuda"), torch.rand(100, 301, device="cuda")
    for step in range(2):  # the first loads kernels
        torch.cuda.synchronize()
        torch.cuda.set_sync_debug_mode("error" if step else "default")
        try:
            for w, m in ((None, None), (weight, None), (None, mask), (weight, mask)):
                operands = [x if x is None else x.detach().requires_grad_() for x in (p, t, v)]
                value = ours(loss, *operands[:2], third=operands[2], weight=w, mask=m)
                (value * 3).backward()
        finally:
            torch.cuda.set_sync_debug_mode("default")


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("loss", LOSSES)
def test_no_host_synchronisation(loss, reduction, dtype):
    p, t = pair((100, 301), dtype, "cuda")
    weight = torch.rand(100, 301, device="cuda").to(dtype) if loss in WEIGHTED else None
    upstream = torch.full((100, 301) if reduction == "none" else (), 3.0, dtype=dtype, device="cuda")
    for step in range(2):  # the first loads kernels
        torch.cuda.synchronize()
        torch.cuda.set_sync_debug_mode("error" if step else "default")
        try:
            for w in (None, weight):
                a, b = (tensor.detach().requires_grad_() for tensor in (p, t))
                value = ours(loss, a, b, reduction, weight=w)
                value.backward(upstream, retain_graph=True)
                value.backward(upstream)
        finally:
            torch.cuda.set_sync_debug_mode("default")
