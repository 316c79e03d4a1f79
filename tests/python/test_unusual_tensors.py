# Subclasses, modes, fake, meta, negative-bit, complex, sparse and other tensors: PyTorch's own
# answer or error, never a wrong one and never a crash.

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")

import onepass

from agreement import (
    Outcome,
    assert_near_pytorch,
    assert_same_outcome,
)
from operands import pair
from reference import LOSSES, REDUCTIONS, WEIGHTED, both, gradients, ours, theirs

pytestmark = [pytest.mark.usefixtures("borrowing"), pytest.mark.filterwarnings("ignore:Using a target size")]


class Plain(torch.Tensor):
    """A subclass that changes nothing: the result is one, too."""


class Answering(torch.Tensor):
    """A subclass that answers every function itself."""

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), given=None):
        return "answered by the subclass"


@pytest.mark.parametrize("loss", LOSSES)
def test_subclasses(loss):
    p, t = pair(dtype=torch.float64)
    for a, b in ((p.as_subclass(Plain), t), (p, t.as_subclass(Plain))):
        for reduction in REDUCTIONS:
            assert_near_pytorch(*both(loss, a, b, reduction), tolerance=1e-13)
    results = []
    for function in (ours, theirs):
        a = p.clone().as_subclass(Plain).requires_grad_()
        function(loss, a, t).backward()
        results.append(a.grad.as_subclass(torch.Tensor))
    assert_near_pytorch(*results, tolerance=1e-13)


@pytest.mark.parametrize("loss", ["mse", "smooth_l1"])
def test_a_subclass_may_answer_itself(loss):
    p, t = pair()
    assert ours(loss, p.as_subclass(Answering), t) == "answered by the subclass"
    assert ours(loss, p, t.as_subclass(Answering)) == "answered by the subclass"


def test_parameters_are_no_subclass_to_us():
    p, t = pair()
    value = onepass.mse_loss(torch.nn.Parameter(p), t)
    assert type(value) is torch.Tensor and value.requires_grad


@pytest.mark.parametrize("loss", LOSSES)
def test_function_and_dispatch_modes(loss):
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    class Functions(TorchFunctionMode):
        def __torch_function__(self, function, types, arguments=(), given=None):
            return function(*arguments, **(given or {}))

    class Dispatches(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), given=None):
            return function(*arguments, **(given or {}))

    p, t = pair(dtype=torch.float64)
    wanted = gradients(theirs, loss, p, t)
    for mode in (Functions(), Dispatches(), torch.device("cpu"), torch.device("meta")):
        with mode:
            got = gradients(ours, loss, p, t)
        for mine, peer in zip(got, wanted):
            assert_near_pytorch(mine, peer, tolerance=1e-13)


@pytest.mark.parametrize("loss", LOSSES)
def test_fake_tensors(loss):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode() as mode:
        p, t = (mode.from_tensor(torch.randn(4, 5)) for _ in "pt")
        value = ours(loss, p, t)
        assert value.shape == () and value.dtype == torch.float32
        a = torch.randn(4, 5, requires_grad=True)
        ours(loss, a, t).backward()
        assert a.grad.shape == (4, 5)


@pytest.mark.parametrize("loss", LOSSES)
def test_meta_backward(loss):
    p, t = torch.empty(4, 5, device="meta", requires_grad=True), torch.empty(4, 5, device="meta")
    ours(loss, p, t).backward()
    assert p.grad.device.type == "meta" and p.grad.shape == (4, 5)


@pytest.mark.parametrize("loss", LOSSES)
def test_negative_bit(loss):
    """The imaginary part of a conjugate is a view whose memory holds the numbers with the other sign."""
    numbers = torch.randn(3, 5, dtype=torch.complex128)
    p, t = numbers.conj().imag, torch.randn(3, 5, dtype=torch.float64)
    assert p.is_neg()
    for arguments in ((p, t), (t, p), (p, p)):
        for reduction in REDUCTIONS:
            assert_near_pytorch(*both(loss, *arguments, reduction), tolerance=1e-13)
    if loss in WEIGHTED:
        assert_near_pytorch(*both(loss, t, t + 1, weight=p), tolerance=1e-12)
    results = []
    for function in (ours, theirs):
        leaf = numbers.clone().requires_grad_()
        function(loss, leaf.conj().imag, t).backward()
        results.append(leaf.grad)
    assert_near_pytorch(*results, tolerance=1e-13)


@pytest.mark.parametrize("loss", LOSSES)
def test_zero_tensor(loss):
    """A tensor without memory, as forward-mode AD makes them."""
    p, t = torch._efficientzerotensor((3, 5)), torch.randn(3, 5)
    for arguments in ((p, t), (t, p)):
        assert_same_outcome(*(Outcome(function, loss, *arguments) for function in (ours, theirs)))


@pytest.mark.parametrize("loss", LOSSES)
def test_complex(loss):
    p, t = torch.randn(3, 5, dtype=torch.complex64), torch.randn(3, 5, dtype=torch.complex64)
    for arguments in ((p, t), (p, t.real), (t.real, p), (p.conj(), t)):
        for reduction in REDUCTIONS:
            assert_same_outcome(*(Outcome(function, loss, *arguments, reduction) for function in (ours, theirs)))
    assert_same_outcome(*(Outcome(function, "smooth_l1", p, t, "mean", 0) for function in (ours, theirs)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("loss", LOSSES)
def test_sparse_and_other_layouts(loss):
    p, t = torch.randn(4, 4).relu(), torch.randn(4, 4)
    for convert in (torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr, torch.Tensor.to_mkldnn):
        for arguments in ((convert(p), t), (t, convert(p)), (convert(p), convert(t))):
            mine, peer = (Outcome(function, loss, *arguments) for function in (ours, theirs))
            assert (mine.error is None) == (peer.error is None), f"{convert.__name__}: {mine!r}; PyTorch: {peer!r}"
            if peer.error is not None:
                assert type(mine.error) is type(peer.error), f"{convert.__name__}: {mine!r}; PyTorch: {peer!r}"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("loss", LOSSES)
def test_nested_tensors(loss):
    pieces = [torch.randn(2, 3), torch.randn(4, 3)]
    p, t = (torch.nested.nested_tensor(pieces) for _ in "pt")
    mine, peer = (Outcome(function, loss, p, t) for function in (ours, theirs))
    assert (mine.error is None) == (peer.error is None), f"{mine!r}; PyTorch: {peer!r}"


@pytest.mark.parametrize(
    "dtype", [getattr(torch, name) for name in ("float8_e4m3fn", "float8_e5m2") if hasattr(torch, name)], ids=str
)
@pytest.mark.parametrize("loss", LOSSES)
def test_float8(loss, dtype):
    p, t = torch.randn(6).to(dtype), torch.randn(6).to(dtype)
    mine, peer = (Outcome(function, loss, p, t) for function in (ours, theirs))
    assert type(mine.error) is type(peer.error), f"{mine!r}; PyTorch: {peer!r}"


@pytest.mark.gpu
@pytest.mark.parametrize("loss", LOSSES)
def test_cpu_scalar_beside_cuda(loss):
    p, scalar = torch.randn(3, 5, device="cuda"), torch.tensor(0.5)
    mine, peer = (Outcome(lambda: gradients(function, loss, p, scalar)) for function in (ours, theirs))
    assert type(mine.error) is type(peer.error), f"{mine!r}; PyTorch: {peer!r}"
    if peer.error is None:
        for one, other in zip(mine.result, peer.result):
            assert_near_pytorch(one, other)
