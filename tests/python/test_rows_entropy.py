# The entropy that comes beside log_prob: against its formula in more digits, the same bits whichever rows are taken
# together, and without temporaries of the logits' size.
import os
import subprocess
import sys
import textwrap
import tracemalloc

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

import onepass
from onepass import _numpy_rows, _rows_entropy
from onepass._row_cuts import cuts

from agreement import assert_same_bits
from operands import FLOATS

#: Of the entropy, and of its gradient relative to what that is the sum of: a few steps of the type.
STEPS = {torch.float16: 2**-10, torch.bfloat16: 2**-7, torch.float32: 2**-21, torch.float64: 2**-50}


def formula(logits, softcap=None, temperature=1.0):
    """Entropy and gradient by the definition, in more digits, and the size of what a gradient is the sum of."""
    z = logits.detach().double().cpu().numpy().astype(np.longdouble)
    tangent = np.tanh(z / softcap) if softcap else 0 * z
    x = (softcap * tangent if softcap else z) / temperature
    x = x - x.max(-1, keepdims=True)
    others = np.exp(x)
    np.put_along_axis(others, x.argmax(-1)[..., None], 0, -1)  # the largest is 1, and log1p keeps the others' digits
    logs = x - np.log1p(others.sum(-1, keepdims=True))
    p = np.exp(logs)
    entropy = -np.where(p > 0, p * np.where(p > 0, logs, 0), 0).sum(-1)
    slopes = -np.where(p > 0, p * (np.where(p > 0, logs, 0) + entropy[..., None]), 0)
    size = np.abs(np.where(p > 0, logs, 0))  # of the logarithm, whose rounding is relative to it and p's factor
    sizes = p * (size + entropy[..., None]) * (1 + size) / temperature
    return entropy, slopes * (1 - tangent * tangent) / temperature, sizes


def ours(logits, labels=None, **given):
    labels = torch.zeros(logits.shape[:-1], dtype=torch.int64, device=logits.device) if labels is None else labels
    leaf = logits.detach().requires_grad_()
    _, entropy = onepass.log_prob(leaf, labels, return_entropy=True, **given)
    entropy.sum().backward()
    return entropy.detach(), leaf.grad


def assert_is_formula(logits, **given):
    entropy, gradient = ours(logits, **given)
    wanted, slopes, sizes = formula(logits, **given)
    step, least = STEPS[logits.dtype], 2**-24 if logits.dtype == torch.float16 else 1e-38
    assert entropy.dtype == logits.dtype and gradient.dtype == logits.dtype
    off = np.abs(entropy.double().cpu().numpy() - wanted)
    assert (off <= step * wanted + least).all(), off.max()
    off = np.abs(gradient.double().cpu().numpy() - slopes)
    assert (off <= step * sizes + least).all(), off.max()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("given", [{}, {"temperature": 0.7}, {"softcap": 5.0}, {"softcap": 3.0, "temperature": 2.0}],
                         ids=str)
@pytest.mark.parametrize("shape", [(9,), (6, 1), (5, 37), (3, 4, 1100), (1, 70000)], ids=str)
def test_it_is_the_formula(shape, given, dtype, device):
    assert_is_formula((torch.randn(shape) * 3).to(dtype).to(device), **given)


def test_large_offsets_and_sure_rows(device):
    logits = torch.randn(4, 50, device=device)
    logits[1] += 30000
    logits[2, 7] = 25
    logits[3, 7] = 60
    entropy, _ = ours(logits)
    wanted, *_ = formula(logits)
    np.testing.assert_allclose(entropy.cpu(), wanted, rtol=1e-5)


def test_ignored_rows_have_none_whatever_stands_in_them(device):
    logits, labels = torch.randn(3, 5, device=device), torch.tensor([1, -100, 2], device=device)
    logits[1] = float("nan")
    entropy, gradient = ours(logits, labels)
    assert entropy[1] == 0 and not gradient[1].any() and entropy[[0, 2]].isfinite().all()
    logits[0, 1] = float("inf")
    entropy, gradient = ours(logits, labels)
    assert entropy[0].isnan() and gradient[0].isnan().all() and gradient[2].isfinite().all()


def test_derivatives_of_derivatives():
    logits = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    function = lambda z: onepass.log_prob(z, torch.tensor([0, -100, 2]), 1.3, 4.0, return_entropy=True)[1]
    assert torch.autograd.gradcheck(function, (logits,)) and torch.autograd.gradgradcheck(function, (logits,))
    batched = torch.vmap(lambda z: onepass.log_prob(z, torch.tensor([0, 1, 2]), return_entropy=True)[1])
    torch.testing.assert_close(batched(logits[None])[0], onepass.log_prob(logits, torch.tensor([0, 1, 2]),
                                                                          return_entropy=True)[1])


# ---------------------------------------------------------------- some rows at a time --


@pytest.mark.parametrize("shape", [(7,), (5, 3), (4, 3, 6), (2, 3, 4, 5), (0, 4), (3, 0, 4)], ids=str)
@pytest.mark.parametrize("most", [1, 7, 13, 30, 1000])
def test_cuts_are_every_row_once(shape, most):
    counts = np.zeros(shape, int)
    for rows in cuts(shape, most):
        counts[rows] += 1
        assert counts[rows].size <= most or counts[rows].size == shape[-1]
    assert (counts == 1).all()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("layout", ["dense", "transposed", "with gaps"])
@pytest.mark.parametrize("given", [{}, {"softcap": 5.0, "temperature": 0.7}], ids=str)
def test_the_same_bits_whichever_rows_are_taken_together(dtype, layout, given, device, monkeypatch):
    logits = (torch.randn(3, 11, 1037, device=device) * 3).to(dtype)
    if layout == "transposed":
        logits = logits.transpose(1, 2).contiguous().transpose(1, 2)
    elif layout == "with gaps":
        logits = logits[:, ::2, 1:-3]
    labels = torch.zeros(logits.shape[:-1], dtype=torch.int64, device=device)
    labels[1, 2] = -100
    wanted = ours(logits, labels, **given)
    for most in (1, 1037, 5000, 11 * 1037, 2**30):
        monkeypatch.setattr(_rows_entropy, "AT_ONCE", {device: most})
        for one, other in zip(ours(logits, labels, **given), wanted):
            assert_same_bits(one, other)
    for row in ((0, 0), (2, 3)):  # and beside no other at all
        for one, other in zip(ours(logits[row], labels[row], **given), wanted):
            assert_same_bits(one, other[row])


def test_numpys_rows_too(monkeypatch):
    logits = np.random.default_rng(5).standard_normal((3, 11, 1037)).astype(np.float32)
    labels = np.zeros((3, 11), np.int64)
    for array in (logits, np.asfortranarray(logits)):
        _, wanted = onepass.log_prob(array, labels, return_entropy=True)
        np.testing.assert_allclose(wanted, formula(torch.from_numpy(logits))[0], rtol=1e-6)
        for most in (1, 5000, 2**30):
            monkeypatch.setattr(_numpy_rows, "AT_ONCE", most)
            assert np.array_equal(onepass.log_prob(array, labels, return_entropy=True)[1], wanted)


PEAK = """
import torch, onepass

def status(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(name))

def work(rows):
    logits = torch.randn(rows, 32768, requires_grad=True)
    before = status("VmRSS")
    _, entropy = onepass.log_prob(logits, torch.zeros(rows, dtype=torch.int64), return_entropy=True)
    forward = status("VmHWM") - before
    entropy.sum().backward()
    return forward, status("VmHWM") - before - logits.grad.nbytes

work(8)
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
print(*work(512))
"""


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="/proc/self/clear_refs cannot be written")
def test_no_temporary_has_the_logits_size():
    """The logits have 64 MiB; beyond them, and in backward their gradient, there are a few MiB."""
    found = subprocess.run([sys.executable, "-c", textwrap.dedent(PEAK)], capture_output=True, text=True, check=True)
    forward, backward = map(int, found.stdout.split())
    assert forward < 24 << 20 and backward < 24 << 20, f"{forward >> 20} and {backward >> 20} MiB"


def test_nor_has_one_of_numpys():
    logits, labels = np.zeros((512, 8192), np.float32), np.zeros(512, np.int64)  # 16 MiB
    tracemalloc.start()
    try:
        onepass.log_prob(logits, labels, return_entropy=True)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20, f"{peak >> 20} MiB"
