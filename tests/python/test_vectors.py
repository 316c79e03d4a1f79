# Vector losses: values and gradients against PyTorch in float64, in every type, reduction, shape and stride; PyTorch's
# edges, types, warnings and errors.
import math

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

import onepass
import torch.nn.functional as F

from agreement import Outcome, assert_near_pytorch, assert_same_bits, assert_same_outcome, strides
from operands import FLOATS, dyadic, mask_of
from vector_cases import CASES, assert_near, check, operands_of

pytestmark = pytest.mark.usefixtures("borrowing")

REDUCING = [name for name, case in CASES.items() if case.reduces]
REDUCTIONS = ["mean", "sum", "none", "batchmean"]
#: Of rows and elements: one alone, around a lane, a tile and several.
SHAPES = [(6, 5), (3, 1), (1, 128), (5, 129), (3, 1024), (4, 1025), (2, 5000), (1030, 3), (17,)]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_value_and_gradients(name, shape, dtype, device):
    if name.startswith("tversky") and len(shape) == 1:
        return  # which has no samples
    operands = operands_of(name, shape, dtype, device)
    check(name, operands)
    check(name, operands, words=CASES[name].others)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", REDUCING)
def test_reductions_weights_and_masks(name, reduction, dtype, device):
    operands = operands_of(name, (7, 12), dtype, device)
    weight, mask = dyadic((7,), dtype, device), mask_of((7,), device)
    upstream = torch.randn((7,) if reduction == "none" else (), device=device).to(dtype)
    for given in ({}, {"weight": weight}, {"mask": mask}, {"weight": weight, "mask": mask.to(torch.uint8)}):
        check(name, operands, reduction=reduction, **given)
        check(name, operands, upstream=upstream, reduction=reduction, **given)
    if reduction == "mean":
        for divisor in (19, torch.tensor(19, device=device)):
            leaf = [x.clone() for x in operands]
            value = CASES[name].ours(*leaf, divisor=divisor)
            assert_same_bits(value, CASES[name].ours(*leaf, divisor=19.0))
        check(name, operands, divisor=19.0)


@pytest.mark.parametrize("name", ["cosine_similarity", "pairwise_distance"])
def test_weights_and_masks_of_pairs(name, device):
    operands = operands_of(name, (3, 4, 6), device=device)
    weight, mask = dyadic((4,), device=device), mask_of((3, 1), device)
    check(name, operands, weight=weight)
    check(name, operands, mask=mask, upstream=torch.randn(3, 4, device=device))
    check(name, operands, weight=weight, mask=mask)


@pytest.mark.parametrize("name", CASES)
def test_hidden_rows_are_not_looked_at(name, device):
    operands = operands_of(name, (4, 5), device=device)
    mask = torch.tensor([True, False, True, False], device=device)
    for x in operands:
        if x.is_floating_point():
            x[~mask] = torch.tensor([math.nan, math.inf], device=device)[:, None]
    _, gradients = check(name, operands, mask=mask)
    for gradient in gradients:
        assert not gradient[~mask].any()


@pytest.mark.parametrize("name", REDUCING)
def test_nothing_takes_part(name, device):
    """The mean is NaN, its gradients are 0."""
    operands = operands_of(name, (4, 5), device=device)
    leaf = operands[0].requires_grad_()
    value = CASES[name].ours(*operands, mask=torch.zeros(4, dtype=torch.bool, device=device))
    value.backward()
    assert value.isnan() and not leaf.grad.any()


@pytest.mark.parametrize("name", CASES)
def test_strides(name, device):
    """Transposed and with gaps they are read where they lie; the gradient has the leaf's strides."""
    whole = operands_of(name, (12, 10), device=device)
    plain = [x[::2, ::2].contiguous() if x.dim() > 1 else x[::2].contiguous() for x in whole]
    ours = CASES[name].ours
    wanted = ours(*plain)
    assert_same_bits(ours(*(x[::2, ::2] if x.dim() > 1 else x[::2] for x in whole)), wanted)
    turned = [x.t().contiguous().t().requires_grad_() if x.dim() > 1 else x for x in plain]
    value = ours(*turned)
    assert_same_bits(value.detach(), wanted)
    value.sum().backward()
    assert strides(turned[0].grad) == strides(turned[0])
    straight = plain[0].clone().requires_grad_()
    ours(straight, *plain[1:]).sum().backward()
    assert_same_bits(turned[0].grad.contiguous(), straight.grad)


def test_every_dimension_of_a_cosine(device):
    a, b = torch.randn(3, 4, 5, device=device), torch.randn(3, 4, 5, device=device)
    for dim in (0, 1, 2, -1, -2, -3):
        leaf, peer = a.clone().requires_grad_(), a.double().requires_grad_()
        value, wanted = onepass.cosine_similarity(leaf, b, dim), F.cosine_similarity(peer, b.double(), dim)
        assert_near(value, wanted.detach().cpu(), 1, torch.float32, "value")
        value.sum().backward()
        wanted.sum().backward()
        assert_near(leaf.grad, peer.grad.cpu(), 1, torch.float32, "gradient")
        assert_same_bits(value.detach(), onepass.cosine_similarity(a.movedim(dim, -1).contiguous(),
                                                                   b.movedim(dim, -1).contiguous(), -1))


BROADCAST = {
    "cosine_similarity": [((4, 1, 5), (3, 5)), ((5,), (2, 5)), ((3, 1), (3, 5)), ((2, 3, 4), (1,))],
    "pairwise_distance": [((4, 1, 5), (3, 5)), ((5,), (2, 5)), ((3, 1), (3, 5)), ((1,), (2, 3, 4))],
    "cosine_embedding_loss": [((4, 5), (1, 5), (4,)), ((1, 5), (4, 5), (4,)), ((4, 5), (4, 5), (1,)),
                              ((1, 5), (1, 5), (4,)), ((4, 1), (4, 5), (4,))],
    "triplet_margin_loss": [((4, 5), (1, 5), (4, 5)), ((1, 5), (1, 5), (4, 5)), ((4, 1), (4, 1), (4, 5)),
                            ((2, 1, 5), (1, 3, 5), (2, 3, 5))],
}


@pytest.mark.parametrize("name", BROADCAST)
def test_broadcast_as_pytorch_does(name, device):
    """Where it reduces before it broadcasts, too."""
    for shapes in BROADCAST[name]:
        found = []
        drawn = [torch.randn(shape, dtype=torch.float64, device=device) for shape in shapes]
        if name == "cosine_embedding_loss":
            drawn[2] = drawn[2].sign()
        for function in (getattr(onepass, name), getattr(F, name)):
            leaves = [x.clone().requires_grad_(x.dim() == drawn[0].dim() or name != "cosine_embedding_loss")
                      for x in drawn]
            value = function(*leaves)
            value.sum().backward()
            found.append([value.detach(), *(x.grad for x in leaves if x.grad is not None)])
        for one, other in zip(*found):
            assert_near_pytorch(one, other, f"{name} {shapes}", 1e-12)


# ----------------------------------------------------------------------------- edges --


def test_cosines_of_zeros():
    """As in PyTorch, where a norm is held up by eps and its slope is not."""
    zero, b = torch.zeros(1, 4), torch.tensor([[3.0, 0, 4, 0]])
    for one, other in ((zero, b), (b, zero), (zero, zero), (b, 2 * b), (b * 1e-9, b)):
        found = []
        for function in (onepass.cosine_similarity, F.cosine_similarity):
            leaves = one.clone().requires_grad_(), other.clone().requires_grad_()
            value = function(*leaves)
            value.backward(torch.ones(1))
            found.append([value.detach(), *(x.grad for x in leaves)])
        for mine, peer in zip(*found):
            torch.testing.assert_close(mine, peer, rtol=1e-6, atol=1e-7)
        assert found[0][0].abs() <= 1


def test_a_cosine_is_never_beyond_1_by_more_than_its_rounding():
    a = torch.randn(10000, 64)
    c = onepass.cosine_similarity(a, a * 3)
    assert (c == 1).all()


def test_large_and_small_numbers():
    """Sums are in double: where PyTorch overflows, or loses all."""
    for scale in (1e-30, 1e-20, 1e20, 1e37):
        a, b = torch.randn(5, 7) * scale, torch.randn(5, 7) * scale
        wanted = F.cosine_similarity(a.double(), b.double(), eps=0.0)
        torch.testing.assert_close(onepass.cosine_similarity(a, b, eps=0), wanted.float())
        torch.testing.assert_close(onepass.pairwise_distance(a, b, eps=0.0),
                                   F.pairwise_distance(a.double(), b.double(), eps=0.0).float())
    half = torch.full((2, 4096), 16.0, dtype=torch.float16)  # squares add up to more than 65504
    assert onepass.cosine_embedding_loss(half, half, torch.ones(2)).item() == 0
    assert onepass.cosine_similarity(half, half).tolist() == [1, 1]
    assert F.cosine_embedding_loss(half, half, torch.ones(2)).isnan()


def test_targets_of_a_cosine_embedding():
    a, b = torch.randn(6, 5), torch.randn(6, 5)
    target = torch.tensor([1, -1, 0, 2, -1, 1])
    wanted = F.cosine_embedding_loss(a, b, target, 0.1, reduction="none")
    for dtype in (torch.int64, torch.int32, torch.int16, torch.int8, *FLOATS):
        value = onepass.cosine_embedding_loss(a, b, target.to(dtype), 0.1, reduction="none")
        torch.testing.assert_close(value, wanted, rtol=1e-6, atol=1e-6)
    for dtype in (torch.bool, torch.uint8):
        own = (target == 1).to(dtype)
        torch.testing.assert_close(onepass.cosine_embedding_loss(a, b, own, reduction="none"),
                                   F.cosine_embedding_loss(a, b, own, reduction="none"), rtol=1e-6, atol=1e-6)
    (leaf,) = (target.float().requires_grad_(),)
    value = onepass.cosine_embedding_loss(a.requires_grad_(), b, leaf)
    assert torch.autograd.grad(value, leaf, allow_unused=True) == (None,)


def test_kinks_let_the_gradient_pass_as_pytorchs_do():
    """At a cosine that is the margin, at a triple whose loss is exactly 0, and where a swap ties."""
    a, b = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    for margin in (0.0, 0.5):
        found = gradients_of("cosine_embedding_loss", (a, b, torch.tensor([-1])), {"margin": margin})
        for one, other in zip(*found):
            torch.testing.assert_close(one, other)
    anchor, near, far = torch.tensor([[0.0, 0.0]]), torch.tensor([[0.0, 2.0]]), torch.tensor([[0.0, 3.0]])
    tie = torch.tensor([[0.0, 0.0]]), torch.tensor([[2.0, 0.0]]), torch.tensor([[1.0, 4.0]])
    for operands, words in (((anchor, near, far), {"eps": 0.0}), (tie, {"swap": True, "eps": 0.0, "margin": 9.0}),
                            ((anchor, anchor, anchor), {"eps": 0.0}), ((anchor, near, anchor), {"swap": True})):
        found = gradients_of("triplet_margin_loss", operands, words)
        for one, other in zip(*found):
            torch.testing.assert_close(one, other)
    assert gradients_of("triplet_margin_loss", (anchor, near, far), {"eps": 0.0})[0][2].any()


def gradients_of(name, operands, words):
    found = []
    for function in (getattr(onepass, name), getattr(F, name)):
        leaves = [x.clone().requires_grad_(x.is_floating_point()) for x in operands]
        value = function(*leaves, **words)
        value.sum().backward()
        found.append([value.detach(), *(x.grad for x in leaves if x.grad is not None)])
    return found


@pytest.mark.parametrize("p", [1, 2.0])
def test_distance_of_a_vector_from_itself(p):
    a = torch.randn(3, 4)
    for eps in (0.0, 1e-6):
        found = gradients_of("pairwise_distance", (a, a), {"p": p, "eps": eps})
        for one, other in zip(*found):
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("name", REDUCING)
def test_no_rows_and_no_elements(name, device):
    for shape in ((0, 5), (0, 0), (4, 0)):
        operands = operands_of(name, shape, device=device)
        for reduction in ("mean", "sum", "none"):
            wanted = CASES[name].rows(*(x.double() if x.dim() > 1 else x for x in operands))
            wanted = wanted.mean() if reduction == "mean" else wanted.sum() if reduction == "sum" else wanted
            value = CASES[name].ours(*(x.requires_grad_() if x.dim() > 1 else x for x in operands),
                                     reduction=reduction)
            torch.testing.assert_close(value.detach(), wanted.float(), equal_nan=True)
            value.sum().backward()
            assert operands[0].grad.shape == shape


@pytest.mark.parametrize("name", ["cosine_similarity", "pairwise_distance"])
def test_no_pairs_and_no_elements(name, device):
    for shape in ((0, 5), (0, 0), (4, 0)):
        a, b = torch.ones(shape, device=device), torch.ones(shape, device=device)
        assert_near_pytorch(getattr(onepass, name)(a, b), getattr(F, name)(a, b))


@pytest.mark.parametrize("name", CASES)
def test_nans_stay(name):
    operands = operands_of(name, (3, 4))
    operands[0][1, 2] = math.nan
    value = CASES[name].ours(*operands, **({"reduction": "none"} if CASES[name].reduces else {}))
    assert value.isnan().tolist() == [False, True, False]


# ----------------------------------------------------------------------------- types --


@pytest.mark.parametrize("name", BROADCAST)
def test_types_are_promoted_as_pytorch_does(name, device):
    for one in FLOATS:
        for other in FLOATS:
            operands = operands_of(name, (4, 5), device=device)
            operands[0], operands[1] = operands[0].to(one), operands[1].to(other)
            value, wanted = getattr(onepass, name)(*operands), getattr(F, name)(*operands)
            assert value.dtype == wanted.dtype, f"{one} {other}: {value.dtype}, but PyTorch {wanted.dtype}"
            leaves = [x.requires_grad_() if x.is_floating_point() else x for x in operands]
            getattr(onepass, name)(*leaves).sum().backward()
            assert leaves[0].grad.dtype == one and leaves[1].grad.dtype == other


@pytest.mark.parametrize("name", BROADCAST)
def test_autocast_as_pytorch_does(name, device):
    operands = operands_of(name, (4, 5), torch.bfloat16, device)
    with torch.autocast(device, dtype=torch.bfloat16):
        value, wanted = getattr(onepass, name)(*operands), getattr(F, name)(*operands)
    assert value.dtype == wanted.dtype
    leaf = operands[0].requires_grad_()
    with torch.autocast(device, dtype=torch.bfloat16):
        getattr(onepass, name)(*operands).sum().backward()
    assert leaf.grad.dtype == torch.bfloat16


# --------------------------------------------------- what is not ours, and what is wrong --


@pytest.mark.parametrize("name", ["pairwise_distance", "triplet_margin_loss"])
@pytest.mark.parametrize("p", [0, 0.5, 1.5, 3, math.inf, -1.0])
def test_other_norms_are_pytorchs(name, p, device):
    operands = operands_of(name, (4, 5), device=device)
    found = []
    for function in (getattr(onepass, name), getattr(F, name)):
        leaves = [x.clone().requires_grad_() for x in operands]
        value = function(*leaves, p=p)
        value.sum().backward()
        found.append([value.detach(), *(x.grad for x in leaves if x.grad is not None)])
    assert len(found[0]) == len(found[1]) >= 1
    for one, other in zip(*found):
        assert_same_bits(one, other)
    weighted = getattr(onepass, name)(*operands, p=p, weight=torch.tensor(2.0, device=device),
                                      **({"reduction": "sum"} if name == "triplet_margin_loss" else {}))
    assert weighted.isfinite().all()


def ones(*shape, **given):
    return torch.ones(shape, **given)


WRONG = [
    ("cosine_similarity", (ones(3, 4), ones(3, 5)), {}),
    ("cosine_similarity", (ones(3, 4), ones(3, 4)), {"dim": 2}),
    ("cosine_similarity", (ones(4), ones(4)), {}),
    ("cosine_similarity", (ones(3, 4).int(), ones(3, 4).int()), {}),
    ("cosine_similarity", (ones(3, 4).int(), ones(3, 4)), {}),
    ("cosine_similarity", (ones(), ones()), {"dim": 0}),
    ("cosine_similarity", (ones(3, 4), ones(3, 4)), {"dim": 1.5}),
    ("cosine_similarity", (ones(3, 4), ones(3, 4)), {"eps": "x"}),
    ("pairwise_distance", (ones(3, 4), ones(3, 5)), {}),
    ("pairwise_distance", (ones(), ones()), {"keepdim": True}),
    ("pairwise_distance", (ones(), ones(4)), {"keepdim": True}),
    ("pairwise_distance", (ones(3, 4).int(), ones(3, 4).int()), {}),
    ("pairwise_distance", (ones(3, 4).int(), ones(3, 4)), {}),
    ("pairwise_distance", (ones(), ones()), {}),
    ("pairwise_distance", (ones(3, 4), ones(3, 4)), {"p": "x"}),
    ("cosine_embedding_loss", (ones(3, 4), ones(3, 4), ones(3, 1)), {}),
    ("cosine_embedding_loss", (ones(3, 4), ones(3, 4), ones()), {}),
    ("cosine_embedding_loss", (ones(4), ones(4), ones(3)), {}),
    ("cosine_embedding_loss", (ones(3, 4), ones(3, 4), ones(2)), {}),
    ("cosine_embedding_loss", (ones(3, 4), ones(3, 4), ones(3)), {"reduction": "total"}),
    ("cosine_embedding_loss", (ones(3, 4), ones(3, 4), ones(3)), {"size_average": False}),
    ("cosine_embedding_loss", (ones(3, 4), ones(3, 4), ones(3)), {"reduce": False}),
    ("cosine_embedding_loss", (ones(3, 4), ones(3, 4), ones(3)), {"reduction": "elementwise_mean"}),
    ("cosine_embedding_loss", (ones(3, 4).int(), ones(3, 4).int(), ones(3)), {}),
    ("triplet_margin_loss", (ones(3, 4), ones(4), ones(3, 4)), {}),
    ("triplet_margin_loss", (ones(3, 4), ones(3, 4), ones(3, 5)), {}),
    ("triplet_margin_loss", (ones(3, 4), ones(3, 4), ones(2, 4)), {}),
    ("triplet_margin_loss", (ones(3, 4), ones(3, 4), ones(3, 4)), {"margin": 0.0}),
    ("triplet_margin_loss", (ones(3, 4), ones(3, 4), ones(3, 4)), {"margin": -1}),
    ("triplet_margin_loss", (ones(3, 4), ones(3, 4), ones(3, 4)), {"reduction": None}),
    ("triplet_margin_loss", (ones(3, 4), ones(3, 4), ones(3, 4)), {"size_average": True, "reduce": True}),
    ("triplet_margin_loss", (ones(), ones(), ones()), {}),
    ("triplet_margin_loss", (ones(3, 4).int(), ones(3, 4).int(), ones(3, 4).int()), {}),
    ("triplet_margin_with_distance_loss", (ones(3, 4), ones(3, 4), ones(3, 4)), {"reduction": "batchmean"}),
    ("triplet_margin_with_distance_loss", (ones(3, 4), ones(3, 4), ones(3)), {}),
    ("triplet_margin_with_distance_loss", (ones(3, 4), ones(3, 4), ones(3, 4)), {"margin": 0}),
]


@pytest.mark.parametrize("name, operands, words", WRONG)
def test_errors_and_warnings_are_pytorchs(name, operands, words):
    mine, peer = (Outcome(getattr(package, name), *operands, **words) for package in (onepass, F))
    assert_same_outcome(mine, peer)


def test_errors_of_ours():
    a, b = ones(3, 4), ones(3, 4)
    with pytest.raises(TypeError, match="x2 is ndarray; expected a tensor"):
        onepass.cosine_similarity(a, np.ones((3, 4)))
    with pytest.raises(RuntimeError, match=r"weight of size \(4,\) does not broadcast"):
        onepass.cosine_similarity(a, b, weight=ones(4))
    with pytest.raises(TypeError, match="mask is of torch.float32"):
        onepass.pairwise_distance(a, b, mask=ones(3))
    with pytest.raises(ValueError, match="divisor is set, but reduction is 'sum'"):
        onepass.triplet_margin_loss(a, b, a, reduction="sum", divisor=3)
    with pytest.raises(ValueError, match="divisor is 0; expected a positive number"):
        onepass.triplet_margin_loss(a, b, a, divisor=0)
    with pytest.raises(TypeError, match="expected PyTorch tensors or NumPy arrays"):
        onepass.pairwise_distance([1.0], [2.0])


def test_a_triplet_of_any_distance(device):
    a, b, c = (torch.randn(4, 5, device=device) for _ in range(3))
    assert_same_bits(onepass.triplet_margin_with_distance_loss(a, b, c, swap=True),
                     onepass.triplet_margin_loss(a, b, c, swap=True))
    distance = lambda x, y: 1 - onepass.cosine_similarity(x, y)
    leaf, peer = a.clone().requires_grad_(), a.clone().requires_grad_()
    value = onepass.triplet_margin_with_distance_loss(leaf, b, c, distance_function=distance, margin=0.5)
    wanted = F.triplet_margin_with_distance_loss(
        peer, b, c, distance_function=lambda x, y: 1 - F.cosine_similarity(x, y), margin=0.5)
    value.backward()
    wanted.backward()
    torch.testing.assert_close(value, wanted)
    torch.testing.assert_close(leaf.grad, peer.grad)


def test_numbers_of_every_kind_are_parameters():
    from fractions import Fraction

    a, b, c = torch.randn(4, 5), torch.randn(4, 5), torch.randn(4, 5)
    wanted = onepass.triplet_margin_loss(a, b, c, margin=0.5, p=1)
    for kind in (np.float32, np.float64, Fraction):
        assert_same_bits(onepass.triplet_margin_loss(a, b, c, margin=kind(0.5), p=kind(1)), wanted)
    torch.testing.assert_close(onepass.triplet_margin_loss(a, b, c, margin=torch.tensor(0.5), p=1), wanted)


class Own(torch.Tensor):
    """A subclass that does nothing of its own."""


def test_value_and_grad_has_the_same_bits(device):
    for name, case in CASES.items():
        operands = operands_of(name, (4, 7), device=device)
        leaf = operands[0].clone().requires_grad_()
        value = case.ours(leaf, *operands[1:])
        value.sum().backward()
        third = operands[2] if len(operands) > 2 else None
        found, gradient = onepass.value_and_grad(case.library, *operands[:2], third,
                                                 reduction="mean" if case.reduces else "sum")
        if case.reduces:
            assert_same_bits(found, value.detach())
        else:
            torch.testing.assert_close(found, value.detach().sum())
        assert_same_bits(gradient, leaf.grad)
    a, b = torch.randn(3, 4, 5, device=device), torch.randn(4, 5, device=device)
    whole, gradient = onepass.value_and_grad("pairwise_distance", a, b, dim=1, reduction="sum")
    torch.testing.assert_close(whole, F.pairwise_distance(a.flatten(1), b.flatten()).sum())
    assert gradient.shape == a.shape
    assert onepass.value_and_grad("pairwise_distance", b, a, dim=1)[1].shape == b.shape
    for name in ("pairwise_distance", "cosine_similarity", "tversky_with_logits"):  # by PyTorch, too, whatever a row is
        weight = torch.rand(3, device=device)
        mine = onepass.value_and_grad(name, a, a * a, dim=-2, weight=weight, mask=weight > 0.1)
        peer = onepass.value_and_grad(name, a.as_subclass(Own), a * a, dim=-2, weight=weight, mask=weight > 0.1)
        for one, other in zip(mine, peer):
            torch.testing.assert_close(one, other.as_subclass(torch.Tensor))
    target = torch.ones(3, 4, device=device)
    mine, peer = (onepass.value_and_grad("cosine_embedding", x, a * a, target) for x in (a, a.as_subclass(Own)))
    torch.testing.assert_close(mine[1], peer[1].as_subclass(torch.Tensor))
    with pytest.raises(IndexError, match=r"Dimension out of range .*\[-3, 2\], but got 3"):
        onepass.value_and_grad("pairwise_distance", a, a, dim=3)
    with pytest.raises(TypeError, match="triplet_margin has the operands anchor, positive, negative; 2 were given"):
        onepass.value_and_grad("triplet_margin_loss", a, a)
    with pytest.raises(TypeError, match="cosine_similarity has no parameter 'margin'; it has eps"):
        onepass.value_and_grad("cosine_similarity", a, a, margin=2)
