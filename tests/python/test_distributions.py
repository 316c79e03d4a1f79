# Distances of two rows of logits: PyTorch's F.kl_div in float64, the generalised divergence as TRL and Liger define it,
# edges, dimensions, errors, modules. What they have in common with other vector losses is in test_vectors*.py.
import math

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

import onepass
import onepass.nn
import torch.nn.functional as F

from agreement import assert_same_bits
from operands import FLOATS
from vector_cases import assert_near

FUNCTIONS = ["kl_div_with_logits", "js_div_with_logits", "tv_distance_with_logits"]
INF = math.inf


def generalised_jsd(student, teacher, beta=0.5, temperature=1.0):
    """Each row's, after TRL's generalized_jsd_loss, which is Liger's too."""
    student, teacher = (F.log_softmax(x / temperature, -1) for x in (student, teacher))
    if beta == 0:
        each = F.kl_div(student, teacher, reduction="none", log_target=True)
    elif beta == 1:
        each = F.kl_div(teacher, student, reduction="none", log_target=True)
    else:
        share = torch.tensor(beta, dtype=student.dtype)
        mixture = torch.logsumexp(torch.stack([student + torch.log1p(-share), teacher + torch.log(share)]), 0)
        each = share * F.kl_div(mixture, teacher, reduction="none", log_target=True) + \
            (1 - share) * F.kl_div(mixture, student, reduction="none", log_target=True)
    return each.sum(-1)


def logits_of(shape=(5, 40), dtype=torch.float32, device="cpu"):
    return [(3 * torch.randn(shape)).to(dtype).to(device) for _ in range(2)]


def both_ways(function, wanted, operands):
    """Value and gradients of ours, and of a formula in float64."""
    found = []
    for way, of in ((function, lambda x: x), (wanted, torch.Tensor.double)):
        leaves = [of(x.detach()).clone().requires_grad_() for x in operands]
        value = way(*leaves)
        value.sum().backward()
        found.append([value.detach(), *(x.grad for x in leaves)])
    return found


def check(function, wanted, operands, size=4.0):
    for k, (one, other) in enumerate(zip(*both_ways(function, wanted, operands))):
        assert_near(one, other.cpu(), size * (1 + abs(other.cpu().numpy()).max()), operands[0].dtype,
                    f"{'value' if k == 0 else 'gradient'}")


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("temperature", [1.0, 2.0, 0.5])
def test_kullback_and_leibler_are_pytorchs(dtype, temperature, device):
    operands = logits_of(dtype=dtype, device=device)
    for reverse in (False, True):
        def theirs(z, t):
            log_p, log_q = F.log_softmax(z / temperature, -1), F.log_softmax(t / temperature, -1)
            log_p, log_q = (log_q, log_p) if reverse else (log_p, log_q)
            return F.kl_div(log_p, log_q, reduction="batchmean", log_target=True)

        for reduction in ("mean", "batchmean"):
            check(lambda z, t: onepass.kl_div_with_logits(z, t, temperature, reverse, reduction), theirs, operands)


@pytest.mark.parametrize("beta", [-0.5, 2, math.inf])
def test_a_share_of_the_mixture_that_is_none(beta):
    with pytest.raises(ValueError, match="beta of js_div_with_logits is .*; expected at least 0 and at most 1"):
        onepass.js_div_with_logits(torch.rand(2, 3), torch.rand(2, 3), beta)


@pytest.mark.parametrize("beta", [0, 0.0, 0.1, 0.5, 0.9, 1, np.float64(1)])
def test_the_generalised_divergence_is_trls(beta, device):
    operands = logits_of(device=device)
    for temperature in (1.0, 3.0):
        check(lambda z, t: onepass.js_div_with_logits(z, t, beta, temperature, "none"),
              lambda z, t: generalised_jsd(z, t, beta, temperature), operands)
    if beta in (0, 1):
        assert_same_bits(onepass.js_div_with_logits(*operands, beta),
                         onepass.kl_div_with_logits(*operands, reverse=bool(beta)))


def test_exchanging_the_operands(device):
    z, t = logits_of(device=device)
    assert_same_bits(onepass.kl_div_with_logits(z, t, reverse=True), onepass.kl_div_with_logits(t, z))
    torch.testing.assert_close(onepass.js_div_with_logits(z, t, 0.25), onepass.js_div_with_logits(t, z, 0.75))
    assert_same_bits(onepass.tv_distance_with_logits(z, t), onepass.tv_distance_with_logits(t, z))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_dimension(name, device):
    z, t = logits_of((3, 4, 5), device=device)
    function = getattr(onepass, name)
    for dim in (0, 1, 2, -1, -2, -3):
        found = []
        for way in (lambda a, b: function(a, b, dim=dim, reduction="none"),
                    lambda a, b: function(a.movedim(dim, -1).contiguous(), b.movedim(dim, -1).contiguous(),
                                          reduction="none")):
            leaves = [x.clone().requires_grad_() for x in (z, t)]
            value = way(*leaves)
            value.sum().backward()
            found.append([value.detach(), *(x.grad for x in leaves)])
        for one, other in zip(*found):
            assert_same_bits(one, other)
    rows = function(z, t, dim=1, reduction="none")
    torch.testing.assert_close(function(z, t, dim=1, reduction="batchmean"), rows.sum() / 3)
    torch.testing.assert_close(function(z, t, dim=0, reduction="batchmean"),
                               function(z, t, dim=0, reduction="sum") / 4)
    torch.testing.assert_close(function(z, t[0], reduction="mean"), function(z, t[:1].expand(3, 4, 5)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_number_for_all_classes(name, device):
    z, number = logits_of(device=device)[0], torch.tensor(0.5, device=device)
    function = getattr(onepass, name)
    for turn in (1, -1):
        leaves = [x.clone().requires_grad_() for x in (z, number)]
        value = function(*leaves[::turn])
        value.backward()
        assert_same_bits(value.detach(), function(*(z, number.expand(z.shape))[::turn]))
        assert leaves[1].grad.shape == () and leaves[1].grad.abs() < 1e-5  # which an offset does not change


# ---------------------------------------------------------------------------------- edges --


class Own(torch.Tensor):
    """A subclass, of which PyTorch's operations compute the loss."""


def by_pytorch(package, name):
    function = getattr(package, name)
    return lambda a, b, **given: function(a.as_subclass(Own), b, **given).as_subclass(torch.Tensor)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_rows_without_a_distribution(name, device):
    """A NaN, +inf, nothing but -inf, or nothing: the row is NaN, and no other one; by PyTorch as well, but for the
    slope of abs at NaN."""
    function = getattr(onepass, name)
    for bad in ([math.nan, 0, 0], [INF, 0, 0], [-INF, -INF, -INF]):
        for k in range(2):
            operands = logits_of((4, 3), device=device)
            operands[k][2] = torch.tensor(bad, device=device)
            leaves = [x.requires_grad_() for x in operands]
            for way in (getattr, by_pytorch):
                each = way(onepass, name)(*leaves, reduction="none")
                assert each.isnan().tolist() == [False, False, True, False]
                for gradient in torch.autograd.grad(each.sum(), leaves):
                    assert gradient[2].isnan().all() or (way is by_pytorch and name == "tv_distance_with_logits")
                    assert not gradient[[0, 1, 3]].isnan().any()
    for shape in ((2, 0), (0, 0)):
        a, b = torch.ones(shape, device=device), torch.ones(shape, device=device)
        assert function(a, b, reduction="none").isnan().all() and function(a, b).isnan()
        assert by_pytorch(onepass, name)(a, b, reduction="none").isnan().all()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_classes_that_cannot_be(name, device):
    """-inf in the target, or in both; in the input alone Kullback and Leibler's divergence is infinite."""
    function = getattr(onepass, name)
    z = torch.tensor([[0.5, 1, -INF, 2], [0.5, 1, 3, 2], [-INF, 1, 0, 2]], device=device)
    t = torch.tensor([[0.5, 2, -INF, 1], [-INF, 2, 0, -INF], [1.0, 2, 0, -1]], device=device)
    each = function(z, t, reduction="none")
    torch.testing.assert_close(each, by_pytorch(onepass, name)(z, t, reduction="none"))
    assert each[2].isinf() == (name == "kl_div_with_logits") and each[:2].isfinite().all()
    rows, found = 2 if name == "kl_div_with_logits" else 3, []
    for way in (getattr, by_pytorch):
        leaves = [x[:rows].clone().requires_grad_() for x in (z, t)]
        found.append(torch.autograd.grad(way(onepass, name)(*leaves, reduction="sum"), leaves))
    for one, other in zip(*found):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-7)
    assert not found[0][1][1, [0, 3]].any()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_offsets_and_equal_rows(name, device):
    """A large offset of a row costs no digit; equal rows are about 0 apart, and never less."""
    function = getattr(onepass, name)
    z, t = (torch.randn(50, 100, device=device).mul(64).round() / 64 for _ in range(2))
    wanted = function(z, t, reduction="none")
    for offset in (4096.0, 131072.0):
        torch.testing.assert_close(function(z + offset, t - offset, reduction="none"), wanted, rtol=1e-6, atol=1e-6)
    for other in (z, z + 4096.0):
        each = function(z, other, reduction="none")
        assert (each >= 0).all() and (each < 1e-6).all()
    assert not function(z, z, reduction="none").any()
    leaves = [x.clone().requires_grad_() for x in (z, z)]
    for gradient in torch.autograd.grad(function(*leaves), leaves):
        assert gradient.abs().max() < 1e-8


def test_confident_rows_keep_their_digits(device):
    """Where float32 has no probability left but 1, PyTorch's loss is 0 and ours is right."""
    z, t = torch.tensor([[0.0, 30.0]], device=device), torch.tensor([[0.0, 25.0]], device=device)
    value = onepass.kl_div_with_logits(z, t)
    wanted = onepass.kl_div_with_logits(z.double(), t.double())
    torch.testing.assert_close(value.double(), wanted, rtol=1e-6, atol=0)


# --------------------------------------------------------------------- errors and modules --


def test_errors():
    z = torch.randn(3, 4)
    with pytest.raises(ValueError, match="temperature of kl_div_with_logits is 0; expected at least 1e-30"):
        onepass.kl_div_with_logits(z, z, 0)
    with pytest.raises(ValueError, match="beta of js_div_with_logits is 1.00000001; expected at least 0 and at most 1"):
        onepass.js_div_with_logits(z, z, 1.00000001)
    with pytest.raises(ValueError, match="beta of js_div_with_logits is 1.5; expected at least 0 and at most 1"):
        onepass.js_div_with_logits(z, z, 1.5)
    with pytest.raises(TypeError, match="temperature of tv_distance_with_logits is str; expected a real number"):
        onepass.tv_distance_with_logits(z, z, "warm")
    with pytest.raises(ValueError, match=r"logits of sizes \(3, 4\) and \(3, 5\); expected rows of classes"):
        onepass.kl_div_with_logits(z, torch.randn(3, 5))
    with pytest.raises(ValueError, match=r"logits of sizes \(\) and \(\)"):
        onepass.kl_div_with_logits(z[0, 0], z[0, 0])
    with pytest.raises(TypeError, match="logits are of torch.int64; expected a floating point type"):
        onepass.kl_div_with_logits(z, z.long())
    with pytest.raises(IndexError, match=r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)"):
        onepass.kl_div_with_logits(z, z, dim=2)
    with pytest.raises(ValueError, match="total is not a valid value for reduction"):
        onepass.kl_div_with_logits(z, z, reduction="total")
    with pytest.raises(RuntimeError, match=r"weight of size \(4,\) does not broadcast"):
        onepass.kl_div_with_logits(z, z, weight=torch.ones(4))
    with pytest.raises(TypeError, match="expected two PyTorch tensors or two NumPy arrays"):
        onepass.kl_div_with_logits([1.0], [2.0])
    with pytest.raises(IndexError, match=r"but got -3"):
        onepass.kl_div_with_logits(np.ones((2, 3)), np.ones((2, 3)), dim=-3)
    with pytest.raises(TypeError, match="target has dtype int64"):
        onepass.kl_div_with_logits(np.ones((2, 3)), np.ones((2, 3), np.int64))


def test_modules():
    z, t = logits_of()
    mask = torch.tensor([True, False, True, True, False])
    for module, wanted in (
            (onepass.nn.KLDivWithLogitsLoss(2.0, reverse=True), onepass.kl_div_with_logits(z, t, 2.0, True, mask=mask)),
            (onepass.nn.JSDivWithLogitsLoss(0.1, dim=-1), onepass.js_div_with_logits(z, t, 0.1, mask=mask)),
            (onepass.nn.TVDistanceWithLogitsLoss(), onepass.tv_distance_with_logits(z, t, mask=mask))):
        assert_same_bits(module(z, t, mask=mask), wanted)
        assert "temperature=" in repr(module)


def test_formulas_of_the_help_are_python():
    """As NumPy says them, of one row."""
    import re

    rng = np.random.default_rng(7)
    for name in FUNCTIONS:
        function = getattr(onepass, name)
        lines = re.findall(r"^    (\w+ = .*)$", function.__doc__, re.MULTILINE)
        for given in ({"temperature": 2.0}, {"temperature": 1.0, "reverse": True}):
            if name != "kl_div_with_logits":
                given.pop("reverse", None)
            z, t = rng.normal(size=6), rng.normal(size=6)
            scope = {**vars(np), "input": z, "target": t, "beta": 0.5, "reverse": False, **given}
            exec("\n".join(lines), scope)
            assert math.isclose(function(z, t, **given), scope["value"], rel_tol=1e-12)
