# Losses of regions against formulas written out in float64, and against those of segmentation-models-pytorch and Keras,
# written here after their code: what of ours is theirs, and with which words.
import itertools
import math

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

import onepass
import onepass.nn

from agreement import assert_same_bits
from operands import FLOATS, mask_of

TOLERANCE = {torch.float16: 2**-10, torch.bfloat16: 2**-7, torch.float32: 4e-7, torch.float64: 1e-13}
FUNCTIONS = {"dice_loss": (0.5, 0.5), "jaccard_loss": (1.0, 1.0), "tversky_loss": (0.25, 1.5)}
PERS = ["batch", "class", "sample", "sample_class"]


def words_of(name):
    return dict(zip(("alpha", "beta"), FUNCTIONS[name])) if name == "tversky_loss" else {}


def indexes(o, t, alpha, beta, smooth, eps, dims):
    """Tversky's, in double."""
    both, alone, missed = (o * t).sum(dims), (o * (1 - t)).sum(dims), ((1 - o) * t).sum(dims)
    return (both + smooth) / (both + alpha * alone + beta * missed + smooth).clamp(min=eps)


def formula(name, input, target, mode="binary", from_logits=True, per="class", smooth=0.0, eps=1e-7, ignore_index=None,
            skip_absent=False):
    """Each region's loss, in float64, differentiable."""
    x = input.double()
    valid = torch.ones_like(target, dtype=torch.bool) if ignore_index is None else target != ignore_index
    if mode == "multiclass":
        o = torch.softmax(x, 1) if from_logits else x
        t = torch.stack([(target == c) & valid for c in range(x.shape[1])], 1).double()
        o = o * valid.unsqueeze(1)
    else:
        o = (torch.sigmoid(x) if from_logits else x) * valid
        t = target.double() * valid
    rest = tuple(range(2, x.dim()))
    classes = mode != "binary"
    dims = {"batch": (0, 1, *rest), "class": (0, *rest) if classes else (0, 1, *rest), "sample": (1, *rest),
            "sample_class": rest if classes else (1, *rest)}[per]
    value = 1 - indexes(o, t, *FUNCTIONS[name], smooth, eps, dims)
    return value * (t.sum(dims) > 0) if skip_absent else value


def operands_of(mode, shape=(3, 4, 6, 5), dtype=torch.float32, device="cpu", from_logits=True):
    input = torch.randn(shape) if from_logits else torch.rand(shape)
    target = torch.randint(0, shape[1], shape[:1] + shape[2:]) if mode == "multiclass" else torch.randint(0, 2, shape)
    return input.to(dtype).to(device), target.to(device)


@pytest.mark.parametrize("mode", ["binary", "multilabel", "multiclass"])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_formula(name, dtype, mode, device):
    for per, from_logits in itertools.product(PERS, (True, False)):
        input, target = operands_of(mode, dtype=dtype, device=device, from_logits=from_logits)
        words = dict(mode=mode, from_logits=from_logits, per=per)
        for more in ({}, {"smooth": 1.0}, {"eps": 1000.0}):
            leaf, peer = input.clone().requires_grad_(), input.double().clone().requires_grad_()
            each = getattr(onepass, name)(leaf, target, reduction="none", **words, **more, **words_of(name))
            wanted = formula(name, peer, target, **words, **more)
            torch.testing.assert_close(each.detach().double(), wanted.detach(), rtol=TOLERANCE[dtype],
                                       atol=TOLERANCE[dtype])
            value = getattr(onepass, name)(leaf, target, **words, **more, **words_of(name))
            assert value.dtype == dtype and value.shape == ()
            torch.testing.assert_close(value.detach().double(), wanted.mean().detach(), rtol=TOLERANCE[dtype],
                                       atol=TOLERANCE[dtype])
            value.backward()
            wanted.mean().backward()
            size = peer.grad.abs().max()
            torch.testing.assert_close(leaf.grad.double() / size, peer.grad / size, rtol=0, atol=4 * TOLERANCE[dtype])


@pytest.mark.parametrize("wrong", [-1, 3, 255])
def test_a_label_that_is_no_class(wrong):
    """The first of them, as cross_entropy says it, of tensors and of arrays; one that is ignored is none."""
    input, target = torch.rand(2, 3, 5), torch.tensor([[0, 1, 2, wrong, 7], [2, 2, 2, 1, 1]])
    for side in (torch.Tensor.clone, torch.Tensor.numpy):
        for function in (onepass.dice_loss, onepass.cross_entropy):
            more = {"mode": "multiclass"} if function is onepass.dice_loss else {}
            with pytest.raises(IndexError, match=f"^Target {wrong} is out of bounds.$"):
                function(side(input), side(target), **more)
            with pytest.raises(IndexError, match="^Target 7 is out of bounds.$"):
                function(side(input), side(target), ignore_index=wrong, **more)


@pytest.mark.parametrize("mode, ignored", [("binary", -1), ("multilabel", 255), ("multiclass", 255), ("multiclass", 0)])
@pytest.mark.parametrize("from_logits", [True, False])
def test_elements_that_are_ignored(mode, ignored, from_logits, device):
    """Whatever stands there, and even if it is one of the classes."""
    input, target = operands_of(mode, device=device, from_logits=from_logits)
    target[torch.rand(target.shape, device=device) < 0.3] = ignored
    for per in PERS:
        words = dict(mode=mode, from_logits=from_logits, per=per, ignore_index=ignored)
        leaf, peer = input.clone().requires_grad_(), input.double().clone().requires_grad_()
        value = onepass.dice_loss(leaf, target, **words)
        wanted = formula("dice_loss", peer, target, **words).mean()
        value.backward()
        wanted.backward()
        torch.testing.assert_close(value.double(), wanted, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(leaf.grad.double(), peer.grad, rtol=1e-5, atol=1e-7)
        hidden = (target == ignored).unsqueeze(1).expand(input.shape) if mode == "multiclass" else target == ignored
        assert not leaf.grad[hidden].any()
        if mode != "multiclass":
            wild = torch.where(hidden, math.nan, input).requires_grad_()
            same = onepass.dice_loss(wild, target, **words)
            assert_same_bits(same.detach(), value.detach())
            same.backward()
            assert_same_bits(wild.grad, leaf.grad)


# ------------------------------------------------------------------------------- peers --


def smp(name, input, target, mode, from_logits=True, smooth=0.0, eps=1e-7, ignore_index=None, classes=None):
    """DiceLoss, JaccardLoss and TverskyLoss of segmentation_models_pytorch, without log_loss and gamma."""
    if from_logits:
        input = input.log_softmax(dim=1).exp() if mode == "multiclass" else torch.nn.functional.logsigmoid(input).exp()
    batch, count = target.size(0), input.size(1)
    o = input.view(batch, 1 if mode == "binary" else count, -1)
    t = target.view(batch, -1) if mode == "multiclass" else target.view(o.shape)
    valid = None if ignore_index is None else t != ignore_index
    if mode == "multiclass":
        if valid is not None:
            o = o * valid.unsqueeze(1)
            t = torch.nn.functional.one_hot((t * valid).long(), count).permute(0, 2, 1) * valid.unsqueeze(1)
        else:
            t = torch.nn.functional.one_hot(t, count).permute(0, 2, 1)
    elif valid is not None:
        o, t = o * valid, t * valid
    t = t.type_as(o)
    alpha, beta = FUNCTIONS[name]
    difference = torch.linalg.vector_norm(o - t, ord=1, dim=(0, 2))
    sums = o.sum((0, 2)), t.sum((0, 2))
    both = (sums[0] + sums[1] - difference) / 2
    fp, fn = sums[0] - both, sums[1] - both
    loss = 1 - (both + smooth) / (both + alpha * fp + beta * fn + smooth).clamp_min(eps)
    loss = loss * (t.sum((0, 2)) > 0).to(loss.dtype)
    return (loss if classes is None else loss[classes]).mean()


@pytest.mark.parametrize("mode", ["binary", "multilabel", "multiclass"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_segmentation_models_pytorch(name, mode):
    """Ours with skip_absent, of targets that are 0 or 1; their classes are a mask of ours."""
    shape = (3, 1, 6, 5) if mode == "binary" else (3, 4, 6, 5)
    for smooth, ignored, from_logits in itertools.product((0.0, 1.0), (None, 255), (True, False)):
        input, target = operands_of(mode, shape, torch.float64, from_logits=from_logits)
        if mode == "multiclass":
            target[target == 2] = 1  # a class that is absent
        elif mode == "multilabel":
            target[:, 2] = 0
        if ignored is not None:
            target[torch.rand(target.shape) < 0.2] = ignored
        words = dict(mode=mode, from_logits=from_logits, smooth=smooth, ignore_index=ignored)
        ours = getattr(onepass, name)(input, target, skip_absent=True, **words, **words_of(name))
        torch.testing.assert_close(ours, smp(name, input, target, **words))
        if mode != "binary":
            mask = torch.tensor([True, False, True, False])
            ours = getattr(onepass, name)(input, target, skip_absent=True, mask=mask, **words, **words_of(name))
            torch.testing.assert_close(ours, smp(name, input, target, classes=[0, 2], **words))
    if mode == "binary":  # whose target they take without the class
        value = onepass.dice_loss(input, target[:, 0], **words)
        assert_same_bits(value, onepass.dice_loss(input, target, **words))


def test_keras():
    """dice(y_true, y_pred) and tversky(y_true, y_pred) of Keras are of probabilities and the whole batch, or of the
    dimensions that axis leaves; their epsilon is added, not a least value."""
    o, t = torch.rand(3, 4, 6, dtype=torch.float64), torch.randint(0, 2, (3, 4, 6)).double()
    both, epsilon = (o * t).sum(), 1e-7
    dice = 1 - 2 * both / (o.sum() + t.sum() + epsilon)
    torch.testing.assert_close(onepass.dice_loss(o, t, from_logits=False, per="batch"), dice, rtol=1e-8, atol=1e-8)
    fp, fn = (o * (1 - t)).sum(), ((1 - o) * t).sum()
    tversky = 1 - (both + epsilon) / (both + 0.25 * fp + 1.5 * fn + epsilon)
    ours = onepass.tversky_loss(o, t, from_logits=False, per="batch", alpha=0.25, beta=1.5, smooth=epsilon)
    torch.testing.assert_close(ours, tversky)


# ------------------------------------------------------------------------------- edges --


def test_regions_that_are_absent(device):
    """The loss is 1 and has no slope where nothing is added; with skip_absent it is 0, and counts in a mean."""
    input, target = torch.randn(3, 4, 5, device=device), torch.zeros(3, 4, 5, device=device)
    target[:, 1] = 1
    each = onepass.dice_loss(input, target, mode="multilabel", reduction="none")
    assert (each != 1).tolist() == [False, True, False, False]
    leaf = input.clone().requires_grad_()
    onepass.dice_loss(leaf, target, mode="multilabel").backward()
    skipped = input.clone().requires_grad_()
    value = onepass.dice_loss(skipped, target, mode="multilabel", skip_absent=True)
    value.backward()
    torch.testing.assert_close(value, each[1].double().float() / 4)
    assert_same_bits(leaf.grad.abs(), skipped.grad.abs())
    assert not leaf.grad[:, 0].any()
    weight = torch.tensor([1.0, 2, 3, 4], device=device)
    value = onepass.dice_loss(input, target, mode="multilabel", skip_absent=True, weight=weight)
    torch.testing.assert_close(value, each[1] * 2 / 10)
    assert onepass.dice_loss(input, target * 0, mode="multilabel", skip_absent=True).item() == 0
    whole = onepass.dice_loss(input, target * 0, mode="multilabel", skip_absent=True, reduction="none")
    assert whole.tolist() == [0] * 4


def test_nothing_in_either():
    """0 over eps."""
    zero = torch.zeros(2, 5)
    assert onepass.dice_loss(zero, zero, from_logits=False).item() == 1
    assert onepass.dice_loss(zero, zero, from_logits=False, smooth=1.0).item() == 0
    sure = torch.full((2, 5), -math.inf)
    leaf = sure.clone().requires_grad_()
    onepass.dice_loss(leaf, zero).backward()
    assert not leaf.grad.any()


def test_no_samples():
    for mode in ("binary", "multilabel"):
        input = torch.ones(0, 4, 5, requires_grad=True)
        assert onepass.dice_loss(input, torch.ones(0, 4, 5), mode=mode, per="sample").isnan()
        assert onepass.dice_loss(input, torch.ones(0, 4, 5), mode=mode, per="sample", reduction="sum").item() == 0
        assert onepass.dice_loss(input, torch.ones(0, 4, 5), mode=mode, per="sample", skip_absent=True).isnan()
        value = onepass.dice_loss(input, torch.ones(0, 4, 5), mode=mode)  # a region without elements: 0 over eps
        assert value.item() == 1
        value.backward()
        assert input.grad.shape == (0, 4, 5)


@pytest.mark.parametrize("shape", [(7,), (3, 4), (3, 4, 5), (2, 3, 2, 2, 2)], ids=str)
def test_shapes(shape):
    input, target = torch.randn(shape), torch.randint(0, 2, shape).bool()
    for per in PERS:
        for mode in ("binary", "multilabel"):
            if mode == "multilabel" and len(shape) < 2:
                continue
            each = onepass.jaccard_loss(input, target, mode=mode, per=per, reduction="none")
            expected = {"batch": (), "class": shape[1:2] if mode == "multilabel" else (), "sample": shape[:1],
                        "sample_class": shape[:2] if mode == "multilabel" else shape[:1]}[per]
            assert each.shape == expected
            wide = (x.reshape(*shape, *(1,) * max(1, 3 - len(shape))) for x in (input, target))
            wanted = formula("jaccard_loss", *wide, mode=mode, per=per)
            torch.testing.assert_close(each, wanted.float())


def test_views_are_not_copied():
    """Per class the batch is read across, where it lies: the bits are those of a copy that has classes first."""
    input, target = torch.randn(3, 4, 50), torch.rand(3, 4, 50)
    value = onepass.dice_loss(input, target, mode="multilabel", reduction="none")
    turned = [x.transpose(0, 1).contiguous() for x in (input, target)]
    assert_same_bits(value, onepass.dice_loss(*turned, per="sample", reduction="none"))


def test_types_and_autocast(device):
    input, target = torch.randn(3, 4, device=device), torch.randint(0, 2, (3, 4), device=device)
    assert onepass.dice_loss(input.bfloat16(), target.double()).dtype == torch.float64
    assert onepass.dice_loss(input.bfloat16(), target.float()).dtype == torch.float32
    for dtype in (torch.uint8, torch.bool, torch.int16, torch.float32):
        assert_same_bits(onepass.dice_loss(input, target.to(dtype)), onepass.dice_loss(input, target))
    for mode, own in (("binary", target), ("multiclass", target[:, 0])):
        with torch.autocast(device, dtype=torch.bfloat16):
            assert onepass.dice_loss(input.bfloat16(), own, mode=mode).dtype == torch.float32
        assert onepass.dice_loss(input.bfloat16(), own, mode=mode).dtype == torch.bfloat16


def test_labels_that_wrap(device):
    """A uint8 would take 1 for -255."""
    input, target = torch.randn(3, 4, device=device), torch.ones(3, 4, dtype=torch.uint8, device=device)
    assert_same_bits(onepass.dice_loss(input, target, ignore_index=-255), onepass.dice_loss(input, target))


def test_gradients_for_the_target():
    input, target = torch.randn(3, 4), torch.rand(3, 4, requires_grad=True)
    onepass.dice_loss(input, target).backward()
    peer = target.detach().double().requires_grad_()
    formula("dice_loss", input, peer).backward()
    torch.testing.assert_close(target.grad.double(), peer.grad, rtol=1e-5, atol=1e-7)


def test_errors():
    input, target = torch.randn(3, 4, 5), torch.ones(3, 4, 5)
    with pytest.raises(ValueError, match="mode of dice_loss is 'ternary'; expected 'binary', 'multilabel'"):
        onepass.dice_loss(input, target, mode="ternary")
    with pytest.raises(ValueError, match="per of jaccard_loss is 'pixel'"):
        onepass.jaccard_loss(input, target, per="pixel")
    with pytest.raises(ValueError, match=r"target of size \(3, 5\) beside input of size \(3, 4, 5\)"):
        onepass.dice_loss(input, torch.ones(3, 5))
    with pytest.raises(ValueError, match="expected class indices of size"):
        onepass.dice_loss(input, target.long(), mode="multiclass")
    with pytest.raises(TypeError, match="expected class indices of torch.int64"):
        onepass.dice_loss(input, torch.ones(3, 5), mode="multiclass")
    with pytest.raises(TypeError, match="input is of torch.int64"):
        onepass.dice_loss(input.long(), target)
    with pytest.raises(ValueError, match="smooth of tversky_loss is -1; expected at least 0"):
        onepass.tversky_loss(input, target, smooth=-1)
    with pytest.raises(ValueError, match="total is not a valid value for reduction"):
        onepass.dice_loss(input, target, reduction="total")
    with pytest.raises(RuntimeError, match=r"weight of size \(4,\) does not broadcast"):
        onepass.dice_loss(input, target, per="sample", weight=torch.ones(4))


# --------------------------------------------------------------- arrays, modules, compiled --


@pytest.mark.parametrize("mode", ["binary", "multilabel", "multiclass"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_arrays(name, mode):
    for per, from_logits, ignored, absent in itertools.product(PERS, (True, False), (None, 1), (False, True)):
        input, target = operands_of(mode, from_logits=from_logits)
        words = dict(mode=mode, from_logits=from_logits, per=per, ignore_index=ignored, skip_absent=absent,
                     **words_of(name))
        for reduction in ("mean", "none"):
            value = getattr(onepass, name)(input.numpy(), target.numpy(), reduction=reduction, **words)
            wanted = getattr(onepass, name)(input, target, reduction=reduction, **words)
            assert np.asarray(value).dtype == np.float32 and np.shape(value) == tuple(wanted.shape)
            if mode == "multiclass":  # whose softmax is NumPy's
                np.testing.assert_allclose(value, wanted.numpy(), rtol=1e-5, atol=1e-6)
            else:
                np.testing.assert_array_equal(value, wanted.numpy())
    with pytest.raises(IndexError, match="Target 9 is out of bounds"):
        onepass.dice_loss(np.ones((2, 3)), np.array([0, 9]), mode="multiclass")


@pytest.mark.parametrize("name, module", [("dice_loss", "DiceLoss"), ("jaccard_loss", "JaccardLoss"),
                                          ("tversky_loss", "TverskyLoss")])
def test_modules(name, module):
    input, target = operands_of("multilabel")
    mask = mask_of((4,))
    mask[0] = True
    words = dict(per="class", smooth=0.5, **words_of(name))
    criterion = getattr(onepass.nn, module)("multilabel", **words)
    assert_same_bits(criterion(input, target, mask=mask), getattr(onepass, name)(input, target, mode="multilabel",
                                                                                 mask=mask, **words))
    assert "mode='multilabel'" in repr(criterion) and "smooth=0.5" in repr(criterion)


@pytest.mark.skipif(not hasattr(torch.library, "register_autograd"), reason="operators here cannot be differentiated")
def test_they_are_compiled(device):
    dynamo = pytest.importorskip("torch._dynamo")
    dynamo.reset()

    def many(x, t, labels):
        return [onepass.dice_loss(x, t, mode="multilabel", per=per, smooth=1.0) for per in PERS] + \
            [onepass.jaccard_loss(x, labels, mode="multiclass", ignore_index=2),
             onepass.dice_loss(x, t, skip_absent=True, weight=t.new_ones(()))]

    input, target = operands_of("multilabel", device=device)
    labels = operands_of("multiclass", device=device)[1]
    found = []
    for way in (torch.compile(many, fullgraph=True, backend="aot_eager"), many):
        leaf = input.clone().requires_grad_()
        values = way(leaf, target.float(), labels)
        values[1].backward(retain_graph=True)
        found.append([*(value.detach() for value in values), leaf.grad])
    for one, other in zip(*found):
        assert_same_bits(one, other)
