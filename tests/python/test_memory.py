# Thousands of calls: neither the process, nor PyTorch's memory, nor Python's objects grow.
import gc
import os
import tracemalloc

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

import onepass

from reference import LOSSES, REDUCTIONS, WEIGHTED, ours

CALLS = 3_000 if os.environ.get("ONEPASS_TEST_QUICK") == "1" else 10_000


def work(device, calls):
    """A mix of all ways in, errors and warnings left out of it."""
    p, t = torch.randn(64, 16, device=device, requires_grad=True), torch.randn(64, 16, device=device)
    weight, half = (
        torch.rand(64, 16, device=device),
        torch.randn(64, 16, device=device, dtype=torch.float16, requires_grad=True),
    )
    mask = torch.rand(64, 16, device=device) > 0.5
    arrays = [np.ones((64, 16), np.float32), np.zeros((64, 16), np.float32)]
    for turn in range(calls):
        loss, reduction = LOSSES[turn % 3], REDUCTIONS[turn // 3 % 3]
        kind = turn // 9 % 6
        if kind == 0:
            ours(loss, p.detach(), t, reduction)
        elif kind == 1:
            ours(loss, p, t, reduction, weight=weight if loss in WEIGHTED else None).sum().backward()
        elif kind == 2:
            ours(loss, half, t, reduction).sum().backward()
        elif kind == 3:
            ours(loss, p, t, reduction)  # a graph that nobody goes back through
        elif kind == 4:
            ours("gaussian_nll", p, half, reduction, third=weight, mask=mask, weight=t).sum().backward()
        else:
            onepass.value_and_grad(loss, *arrays)


def errors(calls):
    p, t = torch.randn(3, 4), torch.randn(3, 5)
    for _ in range(calls):
        for arguments, given in (((p, t), {}), ((p, p), {"reduction": "bad"}), ((p, 1.0), {}), ((p, p), {"weight": t})):
            try:
                onepass.mse_loss(*arguments, **given)
            except (RuntimeError, ValueError, TypeError, AttributeError):
                continue
            raise AssertionError("no error")


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def torch_tensors():
    gc.collect()
    return sum(1 for thing in gc.get_objects() if type(thing) is torch.Tensor)


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="reads /proc/self/statm")
def test_the_process_does_not_grow(device):
    work(device, 1000)
    gc.collect()
    size, tensors = resident(), torch_tensors()
    on_device = torch.cuda.memory_allocated() if device == "cuda" else 0
    work(device, CALLS)
    gc.collect()
    assert torch_tensors() <= tensors
    assert resident() - size < 8 << 20  # 3,000 calls that leak one tensor of 4 KiB each leave 12 MiB
    if device == "cuda":
        assert torch.cuda.memory_allocated() <= on_device


@pytest.mark.filterwarnings("ignore:Using a target size")
def test_pythons_objects_do_not_grow(device):
    work(device, 500)
    errors(100)
    gc.collect()
    tracemalloc.start()
    try:
        work(device, 2000)  # free lists fill up with objects that are traced now
        errors(250)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        work(device, 2000)
        errors(250)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 32 << 10, f"{grown} bytes of Python's memory are left after 3000 calls"


def test_operands_are_not_kept():
    """Their reference counts are the same afterwards, by every way in."""
    import sys

    p, t, weight, third, mask = torch.randn(9), torch.randn(9), torch.rand(9), torch.rand(9), torch.rand(9) > 0.5
    array, flags = np.ones(9, np.float32), np.ones(9, bool)
    things = [p, t, weight, third, mask, array, flags]
    before = [sys.getrefcount(thing) for thing in things]
    for loss in LOSSES:
        for reduction in REDUCTIONS:
            ours(loss, p, t, reduction, weight=weight if loss in WEIGHTED else None)
            ours(loss, array, array, reduction)
        onepass.value_and_grad(loss, p, t)
        onepass.value_and_grad(loss, array, array)
    for reduction in REDUCTIONS:
        ours("gaussian_nll", p.requires_grad_(), t, reduction, third=third, mask=mask, weight=weight).sum().backward()
        ours("gaussian_nll", array, array, reduction, third=array, mask=flags, weight=array)
    onepass.value_and_grad("gaussian_nll", p, t, third, mask=mask)
    onepass.value_and_grad("gaussian_nll", array, array, array, mask=flags)
    gc.collect()
    assert [sys.getrefcount(thing) for thing in things] == before
