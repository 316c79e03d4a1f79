# Contrastive losses against their formulas in float64, with all cosines.
import math

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")

import onepass
import onepass.nn

from agreement import assert_same_bits
from test_linear import FLOATS, NEAR, REDUCTIONS, allocated, assert_near

SIZES = [(9, 5), (70, 24), (600, 12)]  # the last has rows whose state is kept


def normalized(rows):
    return rows / (rows * rows).sum(-1, keepdim=True).sqrt()


def reduced(each, reduction, count=None):
    return each if reduction == "none" else each.sum() / (1 if reduction == "sum" else count or each.numel())


def others(cosines):
    """Every row without its own column."""
    return cosines[~torch.eye(len(cosines), dtype=torch.bool)].reshape(len(cosines), -1)


def nt_xent(input1, input2, temperature, reduction, normalize=True):
    rows = torch.cat((input1, input2))
    rows = normalized(rows) if normalize else rows
    cosines, count = rows @ rows.T / temperature, len(input1)
    with_partner = torch.cat((cosines.diagonal(count), cosines.diagonal(-count)))
    each = others(cosines).logsumexp(1) - with_partner
    return reduced(each.reshape(2, count), reduction)


def supcon(input, labels, temperature, reduction):
    rows = normalized(input)
    cosines = rows @ rows.T / temperature
    same = (labels[:, None] == labels) & ~torch.eye(len(labels), dtype=torch.bool)
    shared = same.sum(1)
    each = others(cosines).logsumexp(1) - (cosines * same).sum(1) / shared.clamp(min=1)
    return reduced(torch.where(shared > 0, each, 0), reduction, (shared > 0).sum())


def check(function, wanted, leaves, dtype, near=1):
    value = function(*leaves)
    peers = [x.detach().double().cpu().requires_grad_() for x in leaves]
    peer = wanted(*peers)
    assert_near(value, peer, dtype, "value")
    upstream = torch.randn(value.shape)
    expected = torch.autograd.grad(peer, peers, upstream.double(), retain_graph=True)
    for turn in ("first", "second"):
        found = torch.autograd.grad(value, leaves, upstream.to(value), retain_graph=True)
        for own, other in zip(found, expected):
            size = other.abs().max().item()
            off = (own.double().cpu() - other).abs().max().item()
            assert off <= near * NEAR[dtype] * size, f"{turn} gradient: off by {off} of {size}"


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_nt_xent(size, dtype, reduction, device):
    leaves = [torch.randn(size).to(dtype).to(device).requires_grad_() for _ in range(2)]
    chunk = 13 if size[0] < 100 else None
    check(lambda x, y: onepass.nt_xent_loss(x, y, reduction=reduction, chunk_rows=chunk),
          lambda x, y: nt_xent(x, y, 0.5, reduction), leaves, dtype, near=4)


def test_rows_as_they_are(device):
    leaves = [torch.randn(8, 5, dtype=torch.float64, device=device, requires_grad=True) for _ in range(2)]
    check(lambda x, y: onepass.nt_xent_loss(x, y, temperature=0.07, normalize=False),
          lambda x, y: nt_xent(x, y, 0.07, "mean", normalize=False), leaves, torch.float64)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("size, kinds", [((9, 5), 6), ((70, 24), 7), ((1100, 12), 40)], ids=str)
def test_supcon(size, kinds, dtype, reduction, device):
    """With labels that one row alone has."""
    leaf = torch.randn(size).to(dtype).to(device).requires_grad_()
    labels = torch.randint(kinds, size[:1])
    labels[3], labels[5] = 1000, -100
    own = labels.to(device)
    check(lambda x: onepass.supcon_loss(x, own, reduction=reduction, chunk_rows=17 if size[0] < 100 else None),
          lambda x: supcon(x, labels, 0.1, reduction), [leaf], dtype, near=4)
    assert reduction != "none" or onepass.supcon_loss(leaf, own, reduction="none")[3] == 0


#: Of rows whose squares their type does not have.
LARGE_AND_TINY = [(torch.float32, 1e19), (torch.float32, 1e30), (torch.float32, 1e-15), (torch.float32, 1e-36),
                  (torch.bfloat16, 1e20), (torch.bfloat16, 1e-25), (torch.float16, 1e3), (torch.float16, 1e-4),
                  (torch.float64, 1e200), (torch.float64, 1e-200)]


@pytest.mark.parametrize("dtype, size", LARGE_AND_TINY, ids=str)
def test_large_and_tiny_rows(dtype, size, device):
    """The cosines do not depend on the rows' lengths, which differ: as those of the same directions near 1, and slopes
    as much larger as rows are smaller."""
    near_one = [torch.randn(7, 5).clamp(-3, 3).to(dtype).double() for _ in range(2)]
    lengths = 2.0 ** (torch.arange(7).double() % 3 - round(math.log2(1 / size)))[:, None]
    for function, reference in ((onepass.nt_xent_loss, lambda x, y: nt_xent(x, y, 0.5, "mean")),
                                (lambda x, y: onepass.supcon_loss(x, torch.arange(7, device=device) % 3),
                                 lambda x, y: supcon(x, torch.arange(7) % 3, 0.1, "mean") + 0 * y.sum())):
        peers = [rows.clone().requires_grad_() for rows in near_one]
        wanted = reference(*peers)
        slopes = torch.autograd.grad(wanted, peers)
        leaves = [(rows * lengths).to(dtype).to(device).requires_grad_() for rows in near_one]
        value = function(*leaves)
        assert_near(value, wanted, dtype, "value")
        found = torch.autograd.grad(value, leaves[0])[0].double().cpu() * lengths
        assert (found - slopes[0]).abs().max() <= 4 * NEAR[dtype] * slopes[0].abs().max()


def test_a_row_of_zeros(device):
    """Its cosines are 0."""
    rows = torch.randn(4, 3, device=device)
    rows[1] = 0
    for dtype in FLOATS:
        value = onepass.nt_xent_loss(rows[:2].to(dtype), rows[2:].to(dtype), reduction="none")
        assert_near(value[0, 1], torch.tensor(3.0).double().log(), dtype, "value")


def test_two_views_are_a_label_that_two_share(device):
    one, other = torch.randn(30, 8, device=device), torch.randn(30, 8, device=device)
    labels = torch.arange(30, device=device).repeat(2)
    torch.testing.assert_close(onepass.supcon_loss(torch.cat((one, other)), labels, temperature=0.3),
                               onepass.nt_xent_loss(one, other, temperature=0.3))


def test_nobody_shares_a_label(device):
    leaf = torch.randn(6, 3, device=device, requires_grad=True)
    value = onepass.supcon_loss(leaf, torch.arange(6, device=device))
    assert value.isnan() and not torch.autograd.grad(value, leaf)[0].any()
    total = onepass.supcon_loss(leaf, torch.arange(6, device=device), reduction="sum")
    assert total == 0 and not torch.autograd.grad(total, leaf)[0].any()
    for reduction, is_nan in (("mean", True), ("sum", False)):
        function = lambda x: onepass.supcon_loss(x, torch.arange(6, device=device), reduction=reduction)
        slopes, value = torch.func.grad_and_value(function)(leaf.detach())
        assert value.isnan() == is_nan and not slopes.any()


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_one_row_alone(reduction, device):
    """Such as the last of a data set: it shares its label with nobody."""
    leaf = torch.randn(1, 3, device=device, requires_grad=True)
    value = onepass.supcon_loss(leaf, torch.zeros(1, dtype=torch.long, device=device), reduction=reduction)
    assert value.isnan() if reduction == "mean" else not value.any()
    assert not torch.autograd.grad(value.sum(), leaf)[0].any()


@pytest.mark.parametrize("loss", ["nt_xent", "supcon"])
def test_chunks_leave_no_trace(loss, device):
    """Of whole numbers, whose products are exact, to the bit."""
    rows = torch.randint(-3, 4, (1200, 4), device=device).float()
    labels = torch.randint(50, (1200,), device=device)
    function = (lambda chunk: onepass.nt_xent_loss(rows[:600], rows[600:], normalize=False, chunk_rows=chunk)) \
        if loss == "nt_xent" else (lambda chunk: onepass.supcon_loss(rows, labels, normalize=False, chunk_rows=chunk))
    wanted = function(1200)
    for chunk in (1, 100, 1199, None):
        assert_same_bits(function(chunk), wanted)


def test_the_cosines_are_never_all_held():
    rows, chunk = 3000, 50
    leaf, labels = torch.randn(rows, 8, requires_grad=True), torch.randint(100, (rows,))
    for step, bytes_each in ((lambda: onepass.nt_xent_loss(leaf[::2], leaf[1::2], chunk_rows=chunk), 4),
                             (lambda: onepass.supcon_loss(leaf, labels, chunk_rows=chunk), 13)):
        step()
        _, peak, largest = allocated(lambda: torch.autograd.grad(step(), leaf))
        assert largest <= 4.1 * chunk * rows
        assert peak <= 1.1 * bytes_each * chunk * rows + 4 * rows * 8 * 12


def test_second_derivatives_and_transforms(device):
    x, y = (torch.randn(4, 3, dtype=torch.float64, device=device, requires_grad=True) for _ in range(2))
    labels = torch.tensor([0, 1, 0, 2], device=device)
    for function, leaves in ((onepass.nt_xent_loss, (x, y)), (lambda x: onepass.supcon_loss(x, labels), (x,))):
        torch.autograd.gradcheck(function, leaves)
        torch.autograd.gradgradcheck(function, leaves)
        wanted = torch.autograd.grad(function(*leaves), leaves[0])[0]
        found = torch.func.grad(function)(*(leaf.detach() for leaf in leaves))
        torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("make, error, words", [
    (lambda x, t: onepass.nt_xent_loss(x, x[1:]), ValueError, "expected the same two dimensions"),
    (lambda x, t: onepass.nt_xent_loss(x[0], x[0]), ValueError, "expected the same two dimensions"),
    (lambda x, t: onepass.nt_xent_loss(x, x, temperature=0), ValueError, "temperature"),
    (lambda x, t: onepass.nt_xent_loss(x, x, reduction="best"), ValueError, "not a valid value for reduction"),
    (lambda x, t: onepass.supcon_loss(x, t[1:]), ValueError, "a label for each"),
    (lambda x, t: onepass.supcon_loss(x, t.float()), TypeError, "expected integers"),
    (lambda x, t: onepass.supcon_loss(x, [0, 1, 2]), TypeError, "labels is list; expected a PyTorch tensor"),
])
def test_errors(make, error, words):
    with pytest.raises(error, match=words):
        make(torch.randn(3, 4), torch.arange(3))


def test_modules(device):
    x, y, labels = *torch.randn(2, 6, 4, device=device), torch.arange(6, device=device) // 2
    assert_same_bits(onepass.nn.NTXentLoss(0.2)(x, y), onepass.nt_xent_loss(x, y, temperature=0.2))
    assert_same_bits(onepass.nn.SupConLoss(reduction="none")(x, labels),
                     onepass.supcon_loss(x, labels, reduction="none"))
    assert repr(onepass.nn.SupConLoss()) == "SupConLoss(temperature=0.1, reduction='mean', normalize=True)"
