# Margins between the scores of classes, against formulas written out in float64, and against PyTorch's functions: where
# PyTorch has no kernel for a type, or gives memory that nobody has written, ours is right.
import math

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

import onepass
import onepass.nn
import torch.nn.functional as F

from agreement import Outcome, assert_near_pytorch, assert_same_bits, assert_same_outcome
from compiling import assert_as_eager
from operands import FLOATS

TOLERANCE = {torch.float16: 2**-9, torch.bfloat16: 2**-6, torch.float32: 3e-6, torch.float64: 1e-13}


def multi_margin(scores, labels, p=1, margin=1.0, weight=None):
    """Row by row; and the gradient of their sum."""
    values, slopes = [], np.zeros_like(scores)
    for row, (x, y) in enumerate(zip(scores, labels)):
        w = 1.0 if weight is None else weight[y]
        beyond = np.where(np.arange(len(x)) == y, 0, np.maximum(0, margin - x[y] + x))
        values.append(w * (beyond**p).sum() / len(x))
        slope = w * p * beyond**(p - 1) * (beyond > 0) / len(x)
        slopes[row] = slope
        slopes[row, y] -= slope.sum()
    return np.array(values), slopes


def multilabel_margin(scores, labels):
    values, slopes = [], np.zeros_like(scores)
    for row, (x, t) in enumerate(zip(scores, labels)):
        targets = [int(y) for y in t[:(np.append(t, -1) < 0).argmax()]]
        total = 0.0
        for j in targets:
            for i in range(len(x)):
                beyond = 1 - x[j] + x[i]
                if i not in targets and beyond > 0:
                    total += beyond / len(x)
                    slopes[row, i] += 1 / len(x)
                    slopes[row, j] -= 1 / len(x)
        values.append(total)
    return np.array(values), slopes


def soft_margin(logits, target, weight=1.0):
    each = target * np.logaddexp(0, -logits) + (1 - target) * np.logaddexp(0, logits)
    return (each * weight).mean(-1), weight * (1 / (1 + np.exp(-logits)) - target) / logits.shape[-1]


def reduced(values, slopes, reduction):
    if reduction == "none":
        return values, slopes
    return (values.sum(), slopes) if reduction == "sum" else (values.mean(), slopes / len(values))


def check(call, scores, values, slopes, reduction):
    leaf = scores.detach().requires_grad_()
    value = call(leaf, reduction=reduction)
    value.backward(torch.ones_like(value))
    value_wanted, slope = reduced(values, slopes, reduction)
    for got, wanted in ((value, value_wanted), (leaf.grad, slope)):
        wanted = torch.from_numpy(np.asarray(wanted))
        assert got.dtype == scores.dtype
        torch.testing.assert_close(got.detach().double().cpu(), wanted, rtol=TOLERANCE[scores.dtype],
                                   atol=TOLERANCE[scores.dtype] * 0.3)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_multi_margin(dtype, reduction, device):
    scores, weight = torch.randn(7, 5).to(dtype).to(device), torch.rand(5).to(dtype).to(device)
    labels = torch.randint(0, 5, (7,))
    numbers = scores.double().cpu().numpy()
    for words in ({}, {"p": 2}, {"margin": 0.25, "weight": weight}):
        given = {key: value.double().cpu().numpy() if key == "weight" else value for key, value in words.items()}
        values, slopes = multi_margin(numbers, labels.numpy(), **given)
        for kind in (torch.int64, torch.int32, torch.uint8):
            call = lambda x, reduction: onepass.multi_margin_loss(x, labels.to(kind).to(device), reduction=reduction,
                                                                  **words)
            check(call, scores, values, slopes, reduction)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_multilabel_margin(dtype, reduction, device):
    scores = torch.randn(4, 5).to(dtype).to(device)
    labels = torch.tensor([[0, 3, -1, 2, 2], [1, 1, -1, 0, 0], [-1, 0, 0, 0, 0], [4, 3, 2, 1, 0]])
    values, slopes = multilabel_margin(scores.double().cpu().numpy(), labels.numpy())
    call = lambda x, reduction: onepass.multilabel_margin_loss(x, labels.to(device), reduction=reduction)
    check(call, scores, values, slopes, reduction)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_multilabel_soft_margin(dtype, reduction, device):
    logits = torch.randn(7, 5).to(dtype).to(device)
    target, weight = torch.randint(0, 2, (7, 5), device=device), torch.rand(5).to(dtype).to(device)
    numbers = logits.double().cpu().numpy()
    for own in (target, target.to(dtype), target.bool()):
        for words in ({}, {"weight": weight}):
            given = {key: value.double().cpu().numpy() for key, value in words.items()}
            values, slopes = soft_margin(numbers, target.cpu().numpy(), **given)
            call = lambda x, reduction: onepass.multilabel_soft_margin_loss(x, own, reduction=reduction, **words)
            check(call, logits, values, slopes, reduction)


def test_soft_margin_is_the_binary_cross_entropy():
    logits, target = torch.randn(7, 5, requires_grad=True), torch.rand(7, 5, requires_grad=True)
    assert_same_bits(onepass.multilabel_soft_margin_loss(logits, target).detach(),
                     onepass.binary_cross_entropy_with_logits(logits, target).detach())
    onepass.multilabel_soft_margin_loss(logits, target).backward()
    torch.testing.assert_close(target.grad, -logits.detach() / 35)


def test_a_sum_of_means_overflows_only_if_it_is_too_large():
    """That of all elements does so long before."""
    logits = torch.full((50, 1000), 4, dtype=torch.float16, requires_grad=True)
    value = onepass.multilabel_soft_margin_loss(logits, torch.zeros_like(logits), reduction="sum")
    value.backward()
    assert value.item() == pytest.approx(50 * math.log1p(math.exp(4)), rel=2e-3)
    assert logits.grad[0, 0].item() == pytest.approx(1e-3 / (1 + math.exp(-4)), rel=2e-3)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_no_rows(dtype):
    """PyTorch's mean of the first two is whatever stood in memory."""
    none, labels = torch.ones(0, 5, dtype=dtype), torch.ones(0, dtype=torch.int64)
    calls = {onepass.multi_margin_loss: labels, onepass.multilabel_margin_loss: torch.ones(0, 5, dtype=torch.int64),
             onepass.multilabel_soft_margin_loss: torch.ones(0, 5)}
    for function, target in calls.items():
        for reduction, wanted in (("mean", math.nan), ("sum", 0.0)):
            leaf = none.clone().requires_grad_()
            value = function(leaf, target, reduction=reduction)
            assert value.item() == wanted or math.isnan(value.item()) == math.isnan(wanted)
            value.backward()
            assert leaf.grad.shape == (0, 5)
        assert function(none, target, reduction="none").shape == (0,)


def long(*numbers):
    return torch.tensor(numbers)


OUTCOMES = [
    ("multi_margin_loss", (torch.randn(3, 4), long(0, 1, 2)), {"p": 3}),
    ("multi_margin_loss", (torch.randn(3, 4), long(0, 1, 4)), {}),
    ("multi_margin_loss", (torch.randn(3, 4), long(0, 1)), {}),
    ("multi_margin_loss", (torch.randn(3, 4), long(0, 1, 2)), {"weight": torch.ones(2, 2)}),
    ("multi_margin_loss", (torch.randn(3, 4), long(0, 1, 2)), {"weight": torch.ones(3)}),
    ("multi_margin_loss", (torch.randn(3, 4), long(0, 1, 2)), {"reduction": "total"}),
    ("multi_margin_loss", (torch.randn(3, 4), long(0, 1, 2)), {"size_average": False}),
    ("multi_margin_loss", (torch.randn(3, 4), long(0, 1, 2)), {"reduction": "batchmean"}),
    ("multi_margin_loss", (torch.randn(4), long(2)), {}),
    ("multi_margin_loss", (torch.randn(4), torch.tensor(2)), {}),
    ("multi_margin_loss", (torch.randn(4), long(2)), {"reduction": "none"}),
    ("multi_margin_loss", (torch.randn(4), torch.tensor(2)), {"reduction": "none"}),
    ("multi_margin_loss", (torch.randn(2, 3, 4), long(0, 1)), {}),
    ("multilabel_margin_loss", (torch.randn(3, 4), torch.zeros(3, 4).long()), {"reduce": False}),
    ("multilabel_margin_loss", (torch.randn(4), long(1, -1, 0, 0)), {}),
    ("multilabel_margin_loss", (torch.randn(4), long(1, -1, 0, 9)), {}),
    ("multilabel_margin_loss", (torch.randn(4), long(1, -2, 0, 0)), {}),
    ("multilabel_margin_loss", (torch.randn(3, 4), long(1, 2, 3)), {}),
    ("multilabel_margin_loss", (torch.randn(3, 4), torch.zeros(3, 4).long()), {"reduction": "total"}),
    ("multilabel_soft_margin_loss", (torch.randn(3, 4), torch.ones(3, 4)), {"reduction": "total"}),
    ("multilabel_soft_margin_loss", (torch.randn(3, 4), torch.ones(3, 4)), {"size_average": False}),
    ("multilabel_soft_margin_loss", (torch.randn(3, 4), torch.ones(4)), {}),
    ("multilabel_soft_margin_loss", (torch.randn(3, 4), torch.ones(5)), {}),
    ("multilabel_soft_margin_loss", (torch.randn(3, 4), torch.ones(3, 4)), {"weight": torch.ones(4).double()}),
    ("multilabel_soft_margin_loss", (torch.randn(3, 4), torch.ones(3, 4)), {"weight": torch.ones(5)}),
    ("multilabel_soft_margin_loss", (torch.randn(4), torch.ones(4)), {}),
    ("multilabel_soft_margin_loss", (torch.randn(()), torch.ones(())), {}),
    ("multilabel_soft_margin_loss", (torch.randn(3, 0), torch.ones(3, 0)), {}),
    ("multilabel_soft_margin_loss", (torch.randn(3, 0), torch.ones(3, 0)), {"reduction": "sum"}),
    ("multilabel_soft_margin_loss", (torch.randn(2, 0, 0), torch.ones(2, 0, 0)), {"reduction": "sum"}),
    ("multilabel_soft_margin_loss", (torch.randn(2, 3, 4), torch.ones(2, 3, 4)), {"reduction": "none"}),
    ("multilabel_soft_margin_loss", (torch.ones(3, 4).int(), torch.ones(3, 4)), {}),
]


@pytest.mark.parametrize("name, operands, words", OUTCOMES)
def test_results_warnings_and_errors_are_pytorchs(name, operands, words):
    assert_same_outcome(*(Outcome(getattr(package, name), *operands, **words) for package in (onepass, F)))


LABELS = np.array([[0, 3, -1, 2, 2], [1, 1, -1, 0, 0], [-1, 0, 0, 0, 0], [4, 3, 2, 1, 0]])


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_arrays_of_several_labels(dtype, reduction):
    """NaN counts for nothing, as in PyTorch."""
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((4, 5)).astype(dtype)
    scores[3, 0] = np.nan
    values, slopes = multilabel_margin(scores.astype(np.float64), LABELS)
    if reduction != "none":  # rows are added up in the type that is computed in
        values = values.astype(np.promote_types(dtype, np.float32)).astype(np.float64)
    for kind in (np.int64, np.int32):
        got = onepass.multilabel_margin_loss(scores, LABELS.astype(kind), reduction=reduction)
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, reduced(values, slopes, reduction)[0].astype(dtype))
    assert onepass.multilabel_margin_loss(scores[0], LABELS[0]) == dtype(values[0])

    scores[3, 0], target, weight = 1, rng.random((4, 5)) < 0.5, rng.random(5).astype(dtype)
    for words in ({}, {"weight": weight}):
        values, slopes = soft_margin(scores.astype(np.float64), target, **words)
        for own in (target, target.astype(dtype), target.astype(np.int64)):
            got = onepass.multilabel_soft_margin_loss(scores, own, reduction=reduction, **words)
            assert got.dtype == dtype
            np.testing.assert_allclose(got, reduced(values, slopes, reduction)[0], rtol=4 * np.finfo(dtype).eps)


def test_no_rows_of_arrays():
    none = np.ones((0, 5), np.float32)
    for function in (onepass.multilabel_margin_loss, onepass.multilabel_soft_margin_loss):
        target = none.astype(np.int64)
        assert np.isnan(function(none, target)) and function(none, target, reduction="sum") == 0
        assert function(none, target, reduction="none").shape == (0,)


@pytest.mark.parametrize("operands, error, says", [
    ((np.ones((4, 5)), LABELS[:3]), ValueError, r"input has shape \(4, 5\) and target \(3, 5\); expected the same"),
    ((np.ones((2, 4, 5)), np.zeros((2, 4, 5), np.int64)), ValueError, r"\(N, C\) or \(C,\)"),
    ((np.ones(4), np.array([1, -1, 0, 9])), IndexError, "Target 9 is out of bounds"),
    ((np.ones(4), np.array([1, -2, 0, 0])), IndexError, "Target -2 is out of bounds"),
    ((np.ones(4), np.ones(4)), TypeError, "target has dtype float64; expected class indices"),
    ((np.ones(4, int), np.zeros(4, int)), TypeError, "input has dtype int64"),
    ((np.ones(4), [0, 1, 2, 3]), TypeError, "target is list; expected a NumPy array"),
])
def test_arrays_that_are_refused(operands, error, says):
    with pytest.raises(error, match=says):
        onepass.multilabel_margin_loss(*operands)
    for name in ("multilabel_margin_loss", "multilabel_soft_margin_loss"):
        with pytest.raises(ValueError, match="batchmean is not a valid value for reduction"):
            getattr(onepass, name)(np.ones(4), np.zeros(4, np.int64), reduction="batchmean")


def test_deprecated_words_of_arrays_are_the_callers():
    with pytest.warns(UserWarning, match="reduction='sum'") as caught:
        onepass.multilabel_margin_loss(np.ones(4), np.array([1, -1, 0, 0]), size_average=False)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("dtype, reduction", [(torch.bfloat16, "mean"), (torch.float64, "sum"), (torch.bfloat16, "none")],
                         ids=str)
def test_several_labels_compiled(dtype, reduction):
    """PyTorch 2.13 compiles its own function to another."""
    dynamo = pytest.importorskip("torch._dynamo")
    dynamo.reset()
    compiled = torch.compile(onepass.multilabel_margin_loss, fullgraph=True, backend="aot_eager")
    scores, labels = torch.randn(4, 5).to(dtype), torch.from_numpy(LABELS)
    values, slopes = multilabel_margin(scores.double().numpy(), LABELS)
    check(lambda x, reduction: compiled(x, labels, reduction=reduction), scores, values, slopes, reduction)
    assert_near_pytorch(compiled(scores[0], labels[0]), onepass.multilabel_margin_loss(scores[0], labels[0]))


def test_several_labels_have_the_same_bits():
    """With a gradient and without, of tensors and arrays, compiled, and as PyTorch's function."""
    dynamo = pytest.importorskip("torch._dynamo")
    dynamo.reset()
    scores, labels = torch.randn(3, 2500), torch.where(torch.rand(3, 2500) < 0.05, -1, torch.randint(0, 2500, (3, 2500)))
    leaf, other = scores.clone().requires_grad_(), scores.clone().requires_grad_()
    value = onepass.multilabel_margin_loss(leaf, labels)
    value.backward(torch.tensor(3.0))
    torch.compile(onepass.multilabel_margin_loss, fullgraph=True, backend="aot_eager")(other, labels).mul(3).backward()
    assert_as_eager(other.grad, leaf.grad)
    assert type(value.grad_fn).__name__ == "VectorLossBackward"
    values, slopes = multilabel_margin(scores.double().numpy(), labels.numpy())
    check(lambda x, reduction: onepass.multilabel_margin_loss(x, labels.int(), reduction=reduction), scores, values, slopes, "sum")
    assert onepass.multilabel_margin_loss(scores.numpy(), labels.numpy()) == value.item()
    for name in ("multilabel_margin", "multilabel_margin_loss"):
        for operands in ((scores, labels), (scores.numpy(), labels.numpy())):
            found, gradient = onepass.value_and_grad(name, *operands)
            assert found == value.item()
            assert_same_bits(torch.as_tensor(gradient) * 3, leaf.grad)
    with onepass.patch_torch():
        assert_same_bits(F.multilabel_margin_loss(scores, labels), value.detach())
    with pytest.raises(ValueError, match="target has size"):
        onepass.value_and_grad("multilabel_margin", scores, labels[:2])


def test_weights_and_masks_of_several_labels():
    """Of rows that the mask hides the labels are not looked at; nor by what falls back to PyTorch."""
    scores, labels = torch.randn(4, 5), torch.from_numpy(LABELS).clone()
    values, slopes = multilabel_margin(scores.double().numpy(), LABELS)
    weight, mask = torch.tensor([2.0, 3, 5, 7]), torch.tensor([True, True, False, True])
    labels[2] = 99
    for kind in ("tensors", "arrays", "weight that has a gradient"):
        given = dict(weight=weight.clone().requires_grad_(len(kind) > 7), mask=mask)
        if kind == "arrays":
            given = {key: one.detach().numpy() for key, one in given.items()}
        operands = [one.numpy() if kind == "arrays" else one for one in (scores, labels)]
        wanted = (values * weight.numpy() * mask.numpy()).sum() / 12
        assert float(onepass.multilabel_margin_loss(*operands, **given)) == pytest.approx(wanted, rel=1e-6)
        assert float(onepass.multilabel_margin_loss(*operands, **given, divisor=3)) == pytest.approx(wanted * 4, rel=1e-6)
    leaf = scores.clone().requires_grad_()
    onepass.multilabel_margin_loss(leaf, labels, reduction="sum", weight=weight, mask=mask).backward()
    torch.testing.assert_close(leaf.grad.double(), torch.from_numpy(slopes * (weight * mask).numpy()[:, None]))
    with pytest.raises(IndexError, match="Target 99 is out of bounds"):
        onepass.multilabel_margin_loss(scores, labels, weight=weight)
    with pytest.raises(TypeError, match="mask is given"):
        onepass.multilabel_margin_loss(scores[0, 0], labels[0, :1] * 0, mask=torch.tensor(True))


def test_derivatives_and_transforms_of_several_labels():
    scores, labels = torch.randn(4, 5, dtype=torch.float64, requires_grad=True), torch.from_numpy(LABELS)
    call = lambda x: onepass.multilabel_margin_loss(x, labels, reduction="sum")
    assert torch.autograd.gradcheck(call, (scores,)) and torch.autograd.gradgradcheck(lambda x: call(x) ** 2, (scores,))
    rows = torch.func.vmap(onepass.multilabel_margin_loss)(scores.detach(), labels)
    torch.testing.assert_close(rows, F.multilabel_margin_loss(scores.detach(), labels, reduction="none"))


# ---------------------------------------------------------- multi_margin_loss, by the library --


def test_the_library_computes_it():
    """With the same bits by every way: with a gradient and without, as arrays, compiled, by its name, patched."""
    scores, labels = torch.randn(7, 5), torch.randint(0, 5, (7,))
    leaf = scores.clone().requires_grad_()
    value = onepass.multi_margin_loss(leaf, labels, 2, 0.5)
    assert type(value.grad_fn).__name__ == "VectorLossBackward"
    value.backward()
    assert_same_bits(onepass.multi_margin_loss(scores, labels, 2, 0.5), value.detach())
    assert onepass.multi_margin_loss(scores.numpy(), labels.numpy(), 2, 0.5) == value.item()
    for name in ("multi_margin", "multi_margin_loss"):
        for package in (lambda x: x, lambda x: x.numpy()):
            found = onepass.value_and_grad(name, package(scores), package(labels), p=2, margin=0.5)
            assert_same_bits(torch.as_tensor(found[0]), value.detach())
            assert_same_bits(torch.as_tensor(found[1]), leaf.grad)
    with pytest.raises(TypeError, match="class indices"):
        onepass.value_and_grad("multi_margin", scores, labels.double())
    with pytest.raises(ValueError, match="a number for each row"):
        onepass.value_and_grad("multi_margin", scores, labels[:3])


@pytest.mark.parametrize("kind", ["tensors", "arrays"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_weights_and_masks(kind, reduction):
    """Class weights have no say in what a mean is divided by, rows' weights have. Labels that are hidden need be no
    classes."""
    scores, labels = torch.randn(9, 5, dtype=torch.float64), torch.randint(0, 5, (9,))
    weight, row_weight, mask = torch.rand(5).double(), torch.rand(9).double(), torch.rand(9) < 0.7
    mask[0], mask[1] = True, False
    values, _ = multi_margin(scores.numpy(), labels.numpy())
    labels[1] = 77
    for has in range(8):
        given = {"weight": weight if has & 1 else None, "row_weight": row_weight if has & 2 else None,
                 "mask": mask if has & 4 else None}
        if mask is not given["mask"]:
            continue
        seen, own = mask.numpy(), (given["row_weight"] if has & 2 else torch.ones(9).double()).numpy()
        each = np.where(seen, values * own * (weight[labels.clamp(0, 4)].numpy() if has & 1 else 1), 0)
        wanted = each if reduction == "none" else each.sum() / (own[seen].sum() if reduction == "mean" else 1)
        got = onepass.multi_margin_loss(*(x if kind == "tensors" else x.numpy() for x in (scores, labels)),
                                        reduction=reduction,
                                        **{name: one if one is None or kind == "tensors" else one.numpy()
                                           for name, one in given.items()})
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-12)
    if reduction == "mean":
        value = onepass.multi_margin_loss(scores[2:], labels[2:], weight=weight, divisor=4)
        np.testing.assert_allclose(value, (values[2:] * weight[labels[2:]].numpy()).sum() / 4, rtol=1e-12)


def test_gradients_with_weights_and_masks():
    """Those that autograd makes of PyTorch's rows."""
    scores, labels = torch.randn(9, 5, dtype=torch.float64), torch.randint(0, 5, (9,))
    weight, row_weight, mask = torch.rand(5).double(), torch.rand(9).double(), torch.rand(9) < 0.7
    for p in (1, 2):
        leaf, peer = (scores.clone().requires_grad_() for _ in range(2))
        onepass.multi_margin_loss(leaf, labels, p, weight=weight, row_weight=row_weight, mask=mask).backward()
        rows = F.multi_margin_loss(peer, labels, p, weight=weight, reduction="none")
        ((rows * row_weight)[mask].sum() / row_weight[mask].sum()).backward()
        torch.testing.assert_close(leaf.grad, peer.grad, rtol=1e-12, atol=1e-14)


def test_class_weights_are_the_librarys():
    """With the same bits by every way, a row's own weight or none beside them; none of them by the fallback."""
    scores, labels, weight, own = torch.randn(9, 5), torch.randint(0, 5, (9,)), torch.rand(5), torch.rand(9)
    for row_weight in (None, own):
        leaf = scores.clone().requires_grad_()
        value = onepass.multi_margin_loss(leaf, labels, 2, weight=weight, row_weight=row_weight)
        assert type(value.grad_fn).__name__ == "VectorLossBackward"
        value.backward()
        arrays = [one if one is None else one.numpy() for one in (scores, labels, weight, row_weight)]
        assert onepass.multi_margin_loss(*arrays[:2], 2, weight=arrays[2], row_weight=arrays[3]) == value.item()
        for given in ((scores, labels, weight, row_weight), arrays):
            found = onepass.value_and_grad("multi_margin", *given[:3], p=2, weight=given[3])
            assert_same_bits(torch.as_tensor(found[0]), value.detach())
            assert_same_bits(torch.as_tensor(found[1]), leaf.grad)
    for wrong in (weight[:4], weight.long(), weight.expand(9, 5)):
        with pytest.raises(ValueError, match="the classes' weights have size"):
            onepass.value_and_grad("multi_margin", scores, labels, wrong)
    with pytest.raises(ValueError, match="one for each class"):
        onepass.value_and_grad("multi_margin", scores.numpy(), labels.numpy(), weight[:4].numpy())


def test_a_gradient_for_class_weights():
    scores, labels, mask = torch.randn(9, 5).double(), torch.randint(0, 5, (9,)), torch.rand(9) < 0.7
    weight = torch.rand(5, dtype=torch.float64, requires_grad=True)
    onepass.multi_margin_loss(scores, labels, weight=weight, reduction="sum", mask=mask).backward()
    values, _ = multi_margin(scores.numpy(), labels.numpy())
    wanted = np.bincount(labels.numpy(), np.where(mask.numpy(), values, 0), 5)
    np.testing.assert_allclose(weight.grad, wanted, rtol=1e-12)


def test_class_weights_under_transforms():
    scores, labels, weight = torch.randn(4, 5).double(), long(0, 3, 1, 4), torch.rand(5).double()
    call = lambda x: onepass.multi_margin_loss(x, labels, 2, weight=weight)
    assert torch.autograd.gradgradcheck(call, scores.clone().requires_grad_())
    rows = torch.func.vmap(lambda x, y: onepass.multi_margin_loss(x, y, 2, weight=weight))(scores, labels)
    torch.testing.assert_close(rows, F.multi_margin_loss(scores, labels, 2, weight=weight, reduction="none"))


def test_what_is_not_above_the_margin_has_no_slope():
    """As in PyTorch: neither at the margin itself nor where a score is NaN."""
    scores = torch.tensor([[1.0, 2.0, 1.5], [math.nan, 1.0, 2.0], [0.0, math.nan, 1.0], [-math.inf, 0.0, 1.0]])
    labels = long(1, 0, 0, 2)
    results = []
    for package in (onepass, F):
        leaf = scores.clone().requires_grad_()
        value = package.multi_margin_loss(leaf, labels, reduction="none")
        value.sum().backward()
        results.append((value.detach(), leaf.grad))
    for mine, peer in zip(*results):
        torch.testing.assert_close(mine, peer, rtol=1e-6, atol=0)


def test_second_derivatives_and_transforms():
    """Which PyTorch's own function does not have."""
    scores, labels = torch.randn(4, 5, dtype=torch.float64, requires_grad=True), long(0, 3, 1, 4)
    call = lambda x: onepass.multi_margin_loss(x, labels, 2)
    assert torch.autograd.gradcheck(call, scores) and torch.autograd.gradgradcheck(call, scores)
    rows = torch.func.vmap(lambda x, y: onepass.multi_margin_loss(x, y, 2))(scores.detach(), labels)
    torch.testing.assert_close(rows, onepass.multi_margin_loss(scores.detach(), labels, 2, reduction="none"))
    torch.testing.assert_close(torch.func.grad(call)(scores.detach()), torch.autograd.grad(call(scores), scores)[0])


def test_labels_that_are_no_classes_and_weights():
    scores = torch.randn(3, 4)
    with pytest.raises(IndexError, match="Target 4 is out of bounds"):
        onepass.multi_margin_loss(scores, long(0, 1, 4), mask=torch.ones(3, dtype=torch.bool))
    with pytest.raises(IndexError, match="Target -1 is out of bounds"):
        onepass.multi_margin_loss(scores.numpy(), np.array([-1, 0, 0]))
    with pytest.raises(TypeError, match="class indices"):
        onepass.multi_margin_loss(scores.numpy(), np.ones(3))
    with pytest.raises(ValueError, match="one for each class"):
        onepass.multi_margin_loss(scores.numpy(), np.array([1, 0, 0]), weight=np.ones(3, np.float32))


def test_what_pytorch_does_not_have_is_not_lost():
    """Class weights of another type than the scores are PyTorch's to judge, which knows of no masks."""
    scores, labels, weight = torch.randn(3, 4).bfloat16(), long(0, 1, 3), torch.rand(4)
    for given in ({"mask": labels > 0}, {"row_weight": torch.rand(3)}, {"divisor": 2.0}):
        with pytest.raises(TypeError, match=f"{next(iter(given))} is given, and PyTorch would compute this without it"):
            onepass.multi_margin_loss(scores, labels, weight=weight, **given)
    assert onepass.multi_margin_loss(scores, labels, weight=weight).dtype == torch.bfloat16


def test_labels_elsewhere():
    for words in ({}, {"mask": torch.ones(3, dtype=torch.bool)}):
        with pytest.raises(RuntimeError, match="device meta"):
            onepass.multi_margin_loss(torch.randn(3, 4), long(0, 1, 3).to("meta"), **words)
    with pytest.raises(TypeError, match="target is int64; expected a NumPy array, as input is"):
        onepass.multi_margin_loss(np.ones(4), np.int64(2))


def test_a_compiled_step_has_the_same_bits():
    dynamo = pytest.importorskip("torch._dynamo")
    dynamo.reset()
    labels, weight = long(0, 3, 1), torch.rand(4)

    def step(x):
        return torch.autograd.grad(onepass.multi_margin_loss(x, labels, 2, 0.5, weight).mul(3), x)[0]

    def loss(x):
        return onepass.multi_margin_loss(x, labels, 2, 0.5, weight) * 3

    leaf, other = (torch.linspace(-1, 1, 12).reshape(3, 4).requires_grad_() for _ in range(2))
    torch.compile(loss, fullgraph=True, backend="aot_eager")(other).backward()
    assert_as_eager(other.grad, step(leaf))


@pytest.mark.parametrize("name", ["MultiMarginLoss", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss"])
def test_modules(name):
    scores = torch.randn(3, 4)
    target = {"MultiMarginLoss": long(0, 3, 1), "MultiLabelMarginLoss": long(0, -1, 0, 0).expand(3, 4)}.get(
        name, torch.rand(3, 4))
    words = [{}, {"reduction": "sum"}] + ([] if name == "MultiLabelMarginLoss" else [{"weight": torch.rand(4)}])
    for given in words:
        ours, theirs = (getattr(package, name)(**given) for package in (onepass.nn, torch.nn))
        assert_near_pytorch(ours(scores, target), theirs(scores, target))
        assert list(ours.state_dict()) == list(theirs.state_dict())
    if name == "MultiMarginLoss":
        for given in ({"p": 3}, {"weight": torch.ones(2, 2)}):
            assert_same_outcome(*(Outcome(getattr(package, name), **given) for package in (onepass.nn, torch.nn)))


def test_they_are_compiled():
    dynamo = pytest.importorskip("torch._dynamo")
    dynamo.reset()

    def many(x, labels, t):
        return onepass.multi_margin_loss(x, labels), onepass.multilabel_soft_margin_loss(x, t, reduction="none"), \
            onepass.multilabel_margin_loss(x, labels[:, None].expand(3, 4))

    operands = torch.randn(3, 4), long(0, 3, 1), torch.rand(3, 4)
    for one, other in zip(torch.compile(many, fullgraph=True, backend="aot_eager")(*operands), many(*operands)):
        assert_near_pytorch(one, other)


def test_a_trace_of_a_class_for_each_row():
    x, y = torch.randn(4, 5), torch.tensor([0, 4, 2, 1])
    traced = torch.jit.trace(lambda x, y: onepass.multi_margin_loss(x, y), (x, y), check_trace=False)
    torch.testing.assert_close(traced(-x, 4 - y), torch.nn.functional.multi_margin_loss(-x, 4 - y))


def test_a_distance_function_is_shown():
    for distance in (None, torch.nn.CosineSimilarity(), lambda x, y: (x - y).norm(dim=-1)):
        ours, theirs = (package.TripletMarginWithDistanceLoss(distance_function=distance) for package in
                        (onepass.nn, torch.nn))
        assert repr(ours) == repr(theirs)
        x = torch.randn(3, 4, 5)
        torch.testing.assert_close(ours(*x), theirs(*x))
