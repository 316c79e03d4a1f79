# Losses over rows of tensors against the oracle: every shape, type, reduction and option; what is the same by every
# route, to the bit.
import contextlib
import functools
import itertools
from decimal import Decimal

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

import onepass
import onepass.nn
import oracle

from agreement import assert_same_bits, exact, strides
from compiling import assert_as_eager
from onepass._catalog import ROW_CATALOG, generated_name
from onepass._generated import module_name
from operands import FLOATS, dyadic, mask_of
from row_cases import (STEPS, ask, assert_near, classes_of, labels_of, logits_of, probabilities_of, rows_of,
                       size_of_value)

SHAPES = [(5,), (1, 1), (6, 5), (3, 1024), (4, 1500), (2, 5, 3), (2, 7, 3, 4), (2, 3, 2, 2, 2)]
REDUCTIONS = ["mean", "sum", "none", "batchmean"]


def check(loss, function, input, target, reduction="mean", upstream=None, dtype=None, **given):
    """A function's value and gradient against the oracle's. `given` are the oracle's words, which are ours but for
    weights."""
    leaf = input.detach().clone(memory_format=torch.preserve_format).requires_grad_()
    value = function(leaf)
    assert value.dtype == (dtype or input.dtype) and value.device == input.device
    upstream = torch.ones_like(value) if upstream is None else upstream.to(value)
    value.backward(upstream)
    answer = ask(loss, input, target, reduction=reduction, upstream=upstream, **given)
    assert_near(value, answer.value, size_of_value(answer, reduction), value.dtype, "value")
    assert_near(leaf.grad, answer.gradients[0], answer.gradient_sizes, input.dtype, "gradient")
    return value.detach(), leaf.grad


@contextlib.contextmanager
def no_waiting():
    """PyTorch raises if the host waits for the GPU in here."""
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_cross_entropy(shape, dtype, reduction, device):
    input, target = logits_of(shape, dtype, device), labels_of(shape, device=device, ignore_index=-100)
    upstream = torch.rand(rows_of(shape) if reduction == "none" else ()) + 0.5
    if shape == (5,):
        target = target.clamp(min=0)
    check("cross_entropy", lambda x: onepass.cross_entropy(x, target, reduction=reduction), input, target, reduction,
          upstream)


@pytest.mark.parametrize("classes", [5, 1500])
@pytest.mark.parametrize("weighted, smoothing, z_loss, softcap, temperature",
                         [(True, 0.0, 0, None, 1), (False, 0.1, 0, None, 1), (True, 0.2, 0, None, 1),
                          (False, 0, 1e-3, None, 1), (False, 0, 0, 2.5, 1), (False, 0, 0, None, 0.7),
                          (True, 0.1, 1e-2, 4.0, 1.5)])
@pytest.mark.parametrize("kind", ["labels", "probabilities"])
def test_options(kind, weighted, smoothing, z_loss, softcap, temperature, classes, device):
    shape = (6, classes)
    input = logits_of(shape, device=device)
    weight = dyadic((classes,), device=device) if weighted else None
    target = labels_of(shape, device=device, ignore_index=2) if kind == "labels" else probabilities_of(shape,
                                                                                                      device=device)
    loss = "cross_entropy" if kind == "labels" else "cross_entropy_with_probabilities"
    given = dict(label_smoothing=smoothing, z_loss=z_loss, temperature=temperature)
    ignored = {"ignore_index": 2} if kind == "labels" else {}
    for reduction in ("mean", "none"):
        if softcap:  # whose bound is wider, by the size of the capped logit
            value = onepass.cross_entropy(input, target, weight, reduction=reduction, softcap=softcap, **given,
                                          **ignored)
            answer = ask(loss, input, target, weight, reduction=reduction, softcap=softcap, **given, **ignored)
            assert_near(value, answer.value, 4 * size_of_value(answer, reduction), value.dtype, "value")
            continue
        check(loss, lambda x: onepass.cross_entropy(x, target, weight, reduction=reduction, **given, **ignored), input,
              target, reduction, weight=weight, **given, **ignored)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", [(5,), (4, 9), (2, 1100), (2, 5, 3, 4)], ids=str)
def test_probabilities(shape, dtype, device):
    input, target = logits_of(shape, dtype, device), probabilities_of(shape, dtype, device)
    for reduction in REDUCTIONS:
        leaf = target.clone().requires_grad_()
        check("cross_entropy_with_probabilities", lambda x: onepass.cross_entropy(x, leaf, reduction=reduction), input,
              target, reduction)
        answer = ask("cross_entropy_with_probabilities", input, target, reduction=reduction)
        largest = np.abs(exact(input)).max() * 4 + 10
        assert_near(leaf.grad, answer.gradients[1], np.full(shape, largest) * (1 if reduction in ("sum", "none") else
                    1 / answer.divided_by) / 4, dtype, "gradient for the probabilities")


@pytest.mark.parametrize("shape", [(5,), (6, 5), (3, 1500), (2, 5, 3)], ids=str)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_nll_loss(shape, reduction, device):
    input = torch.log_softmax(logits_of(shape, device=device), min(1, len(shape) - 1))
    target, weight = labels_of(shape, device=device), dyadic((classes_of(shape),), device=device)
    for own in (None, weight):
        check("nll", lambda x: onepass.nll_loss(x, target, own, reduction=reduction), input, target, reduction,
              weight=own)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", [(7,), (4, 9), (2, 3, 1100)], ids=str)
def test_log_prob(shape, dtype, device):
    input, labels = logits_of(shape, dtype, device), torch.randint(0, shape[-1], shape[:-1], device=device)
    if shape[:-1]:
        labels.view(-1)[0] = -100
    upstream = torch.randn(shape[:-1])
    check("log_prob", lambda x: onepass.log_prob(x, labels, temperature=1.3), input, labels, "none", upstream,
          temperature=1.3, axis=-1)
    given = onepass.log_prob(input, labels, softcap=30.0, dtype=torch.float32)
    answer = ask("log_prob", input, labels, reduction="none", axis=-1, softcap=30.0)
    if dtype is not torch.float64:
        assert_near(given, answer.value, 4 * size_of_value(answer, "none"), torch.float32, "with a cap")


def test_entropy(device):
    logits = logits_of((4, 6), torch.float64, device).requires_grad_()
    labels = torch.tensor([1, 5, -100, 0], device=device)
    value, entropy = onepass.log_prob(logits, labels, temperature=2.0, return_entropy=True)
    p = torch.softmax(logits / 2, -1)
    wanted = -(p * p.log()).sum(-1) * (labels != -100)
    torch.testing.assert_close(entropy, wanted)
    for one, other in zip(*(torch.autograd.grad(x.sum(), logits, retain_graph=True) for x in (entropy, wanted))):
        torch.testing.assert_close(one, other)
    assert value[2] == 0 and entropy[2] == 0


@pytest.mark.parametrize("row", [[0, -float("inf"), 1], [200, 0, 1], [0, 0, -float("inf")]], ids=str)
def test_entropy_of_classes_without_probability(row, device):
    logits = torch.tensor([row], dtype=torch.float32, device=device, requires_grad=True)
    _, entropy = onepass.log_prob(logits, torch.tensor([0], device=device), return_entropy=True)
    entropy.sum().backward()
    p = torch.softmax(logits.detach(), -1)
    wanted = -torch.where(p > 0, p * (p.log() + entropy.detach()[:, None]), 0)
    torch.testing.assert_close(logits.grad, wanted)


# ----------------------------------------------------------------- labels and rows --


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8], ids=str)
@pytest.mark.parametrize("shape", [(5,), (6, 5), (3, 300), (2, 5, 3), (2, 5, 3, 4)], ids=str)
def test_types_of_labels(shape, dtype, device):
    input, target = logits_of(shape, device=device), labels_of(shape, ignore_index=255, device=device)
    weight = dyadic((classes_of(shape),), device=device)
    for given in ({}, {"label_smoothing": 0.1}, {"reduction": "none"}):
        wanted = onepass.cross_entropy(input, target, weight, ignore_index=255, **given)
        assert_same_bits(onepass.cross_entropy(input, target.to(dtype), weight, ignore_index=255, **given), wanted)


def test_the_default_index_does_not_wrap_to_156(device):
    input, target = logits_of((2, 200), device=device), torch.tensor([156, 3], dtype=torch.uint8, device=device)
    check("cross_entropy", lambda x: onepass.cross_entropy(x, target), input, target.long())


def test_no_index_wraps_where_pytorch_computes(device):
    input = logits_of((2, 200), device=device)
    for labels, dtype, index in (([156, 3], torch.uint8, -100), ([0, 3], torch.uint8, 256),
                                 ([0, 3], torch.int32, 2**32)):
        target = torch.tensor(labels, dtype=dtype, device=device)
        function = functools.partial(onepass.cross_entropy, reduction="none", ignore_index=index)
        torch.testing.assert_close(torch.vmap(function)(input[None], target[None])[0], function(input, target))
        leaf = input.clone().requires_grad_()
        once, = torch.autograd.grad(function(leaf, target).sum(), leaf)
        again, = torch.autograd.grad(function(leaf, target).sum(), leaf, create_graph=True)
        torch.testing.assert_close(again, once)
        _, entropy = onepass.log_prob(input, target, ignore_index=index, return_entropy=True)
        assert (entropy > 0).all()


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", [(6, 5), (2, 1100), (3, 5, 4)], ids=str)
def test_weights_and_masks_of_rows(shape, reduction, device):
    input, target = logits_of(shape, device=device), labels_of(shape, device=device, ignore_index=-100)
    rows = rows_of(shape)
    weight, row_weight = dyadic((classes_of(shape),), device=device), dyadic(rows[-1:], device=device)
    for mask in (mask_of(rows, device), mask_of(rows, device, torch.uint8), None):
        given = dict(row_weight=row_weight, mask=mask)
        check("cross_entropy", lambda x: onepass.cross_entropy(x, target, weight, reduction=reduction, **given), input,
              target, reduction, weight=weight, **given)
    probabilities = probabilities_of(shape, device=device)
    check("cross_entropy_with_probabilities", lambda x: onepass.cross_entropy(
        x, probabilities, reduction=reduction, row_weight=row_weight, mask=mask_of(rows, device) | True), input,
        probabilities, reduction, row_weight=row_weight)


def test_what_a_mask_leaves_out_may_be_anything(device):
    input, target = logits_of((3, 4), device=device), torch.tensor([1, 77, -3], device=device)
    input[1:] = torch.nan
    mask = torch.tensor([True, False, False], device=device)
    leaf = input.requires_grad_()
    value = onepass.cross_entropy(leaf, target, mask=mask)
    value.backward()
    assert value.isfinite() and leaf.grad[0].isfinite().all() and not leaf.grad[1:].any()


# ------------------------------------------------------------------------ divisors --


@pytest.mark.parametrize("divisor", [37, 37.0, np.float32(37), np.array(37.0), np.array([37])], ids=repr)
def test_a_number_as_divisor(divisor, device):
    input, target = logits_of((6, 5), device=device), labels_of((6, 5), device=device)
    check("cross_entropy", lambda x: onepass.cross_entropy(x, target, divisor=divisor), input, target, divisor=37.0)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("shape", [(), (1,)], ids=str)
def test_a_tensor_as_divisor(dtype, shape, device):
    """num_items_in_batch of transformers: on the device, since nobody waits for it."""
    input, target = logits_of((6, 5), device=device), labels_of((6, 5), device=device)
    divisor = torch.full(shape, 37, dtype=dtype, device=device)
    found = check("cross_entropy", lambda x: onepass.cross_entropy(x, target, divisor=divisor), input, target,
                  divisor=37.0)
    for one, other in zip(found, check("cross_entropy", lambda x: onepass.cross_entropy(x, target, divisor=37), input,
                                       target, divisor=37.0)):
        assert_same_bits(one, other)


@pytest.mark.parametrize("divisor, error", [
    (0, ValueError), (-1.0, ValueError), (float("inf"), ValueError), (Decimal("NaN"), ValueError),
    (10**400, ValueError), (torch.tensor(0.0), ValueError), (torch.tensor([-2]), ValueError),
    (torch.tensor(float("nan")), ValueError), (torch.tensor(float("inf"), dtype=torch.float64), ValueError),
    (np.array(-1.0), ValueError), ("3", TypeError), (torch.ones(2), TypeError), (torch.tensor(1j), TypeError),
    (np.ones(2), TypeError)], ids=lambda value: repr(value)[:24])
def test_divisors_that_are_none(divisor, error):
    with pytest.raises(error, match="divisor is"):
        onepass.cross_entropy(logits_of((6, 5)), labels_of((6, 5)), divisor=divisor)


@pytest.mark.gpu
@pytest.mark.parametrize("number, wanted", [(0.0, "inf"), (-2.0, "negative"), (float("nan"), "nan")])
def test_nobody_waits_for_a_gpu_to_judge_a_divisor(number, wanted):
    """What such a tensor holds is known when the kernel runs; the quotient says what it was."""
    input, target = logits_of((6, 5), device="cuda"), labels_of((6, 5), device="cuda")
    divisor = torch.tensor(number, device="cuda")
    with no_waiting():
        value = onepass.cross_entropy(input, target, divisor=divisor)
    assert {"inf": value.isinf(), "negative": value < 0, "nan": value.isnan()}[wanted]


def test_a_divisor_is_of_a_mean():
    with pytest.raises(ValueError, match="divisor is set, but reduction is 'sum'"):
        onepass.cross_entropy(logits_of((6, 5)), labels_of((6, 5)), divisor=3, reduction="sum")


# --------------------------------------------------------------------- what else comes --


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("kind", ["plain", "weighted"])
def test_what_comes_beside_the_loss(reduction, kind, device):
    shape = (9, 7)
    input, target = logits_of(shape, device=device), labels_of(shape, device=device, ignore_index=-1)
    weight = dyadic((7,), device=device) if kind == "weighted" else None
    given = dict(reduction=reduction, z_loss=0.125, ignore_index=-1)
    row_weight = dyadic((9,), device=device) if kind == "weighted" else None
    value, lse, z_loss, accuracy = onepass.cross_entropy(input, target, weight, row_weight=row_weight, **given,
                                                         return_lse=True, return_z_loss=True, return_accuracy=True)
    assert_same_bits(value, onepass.cross_entropy(input, target, weight, row_weight=row_weight, **given))
    answer = ask("cross_entropy", input, target, weight, row_weight, **given)
    assert_near(lse, answer.log_sum_exp, 1, torch.float32, "log-sum-exp")
    each = 0.125 * answer.log_sum_exp**2 * (1 if row_weight is None else exact(row_weight))
    wanted = each if reduction == "none" else each.sum() / (1 if reduction == "sum" else answer.divided_by)
    assert_near(z_loss, wanted, np.abs(wanted), torch.float32, "z-loss")
    counts = answer.predicted >= 0
    right = (answer.predicted == target.cpu().numpy()) & counts
    assert_near(accuracy, right if reduction == "none" else right.sum() / counts.sum(), 1, torch.float32, "accuracy")


def test_some_of_it_and_no_gradient_through_it(device):
    input, target = logits_of((4, 5), device=device).requires_grad_(), labels_of((4, 5), device=device)
    found = onepass.cross_entropy(input, target, return_accuracy=True, return_lse=True)
    assert len(found) == 3 and found[0].requires_grad
    assert not found[1].requires_grad and not found[2].requires_grad and found[1].shape == (4,)
    with pytest.raises(ValueError, match="return_accuracy"):
        onepass.cross_entropy(input, torch.rand(4, 5, device=device), return_accuracy=True)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_a_wide_loss_of_narrow_logits(dtype, device):
    """Without a copy in f32; the gradient has the logits' type."""
    input, target = logits_of((50, 1300), dtype, device), labels_of((50, 1300), device=device)
    check("cross_entropy", lambda x: onepass.cross_entropy(x, target, dtype=torch.float32), input, target,
          dtype=torch.float32)
    weight = dyadic((1300,), device=device)
    check("cross_entropy", lambda x: onepass.cross_entropy(x, target, weight, dtype=torch.float32), input, target,
          weight=weight, dtype=torch.float32)
    with pytest.raises(TypeError, match="dtype is torch.int64"):
        onepass.cross_entropy(input, target, dtype=torch.int64)


# ----------------------------------------------------------------------------- strides --


@pytest.mark.parametrize("lay", ["transposed", "channels_last", "every second", "expanded", "flipped"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_strides(lay, dtype, device):
    """The same bits, and a gradient with the strides that PyTorch gives it."""
    whole = logits_of((4, 6, 4, 10), dtype, device)
    input = {"transposed": lambda: whole.transpose(1, 3), "every second": lambda: whole[:, ::2, :, 1::2],
             "channels_last": lambda: whole.contiguous(memory_format=torch.channels_last),
             "expanded": lambda: whole[:, :1].expand(4, 6, 4, 10), "flipped": lambda: whole.transpose(0, 2)}[lay]()
    target = labels_of(tuple(input.shape), device=device)
    for reduction in ("mean", "none"):
        leaf, dense = input.detach().requires_grad_(), input.detach().contiguous().clone().requires_grad_()
        peer = input.detach().float().requires_grad_()
        value, wanted = (onepass.cross_entropy(x, target, reduction=reduction) for x in (leaf, dense))
        torch.nn.functional.cross_entropy(peer, target, reduction=reduction).sum().backward()
        value.sum().backward(), wanted.sum().backward()
        assert_same_bits(value, wanted), assert_same_bits(leaf.grad, dense.grad)
        assert strides(leaf.grad) == strides(peer.grad) and value.is_contiguous()


def test_strided_labels_and_weights(device):
    input, target = logits_of((6, 5), device=device), labels_of((12, 5), device=device)
    weight = dyadic((10,), device=device)
    assert_same_bits(onepass.cross_entropy(input, target[::2], weight[::2]),
                     onepass.cross_entropy(input, target[::2].clone(), weight[::2].clone()))


def test_both_ways_of_borrowing(borrowing):
    input, target = logits_of((6, 5)).requires_grad_(), labels_of((6, 5))
    mask = mask_of((6,)) | torch.tensor([True] + [False] * 5)
    for labels in (target, target.int(), target.byte()):
        check("cross_entropy", lambda x: onepass.cross_entropy(x, labels, mask=mask), input, target, mask=mask)


# -------------------------------------------------------------------------- exact digits --


def test_confident_rows_keep_their_digits(device):
    """PyTorch's loss of such rows is off by per cents, and its bf16 gradient is 0."""
    for dtype in FLOATS:
        input = torch.zeros(3, 1000, dtype=dtype, device=device)
        input[:, 7] = torch.tensor([10.0, 20.0, 60.0])
        target = torch.full((3,), 7, device=device)
        check("cross_entropy", lambda x: onepass.cross_entropy(x, target, reduction="none"), input, target, "none")


def test_a_common_offset_costs_no_digit(device):
    input = torch.randn(4, 1100, device=device).mul(8).round() / 8
    target = labels_of((4, 1100), device=device)
    for offset in (-2.0**14, 2.0**14):
        check("cross_entropy", lambda x: onepass.cross_entropy(x, target, reduction="none"), input + offset, target,
              "none")


def test_divisors_of_many_rows_in_16_bits(device):
    """In the element type 257 rows are 256 and 70,001 are infinite."""
    for rows, dtype in ((257, torch.bfloat16), (70001, torch.float16)):
        input, target = logits_of((rows, 3), dtype, device), labels_of((rows, 3), device=device)
        check("cross_entropy", lambda x: onepass.cross_entropy(x, target), input, target)


# ---------------------------------------------------------------------- value_and_grad --


@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss", "nll", "log_prob", "probabilities"])
def test_value_and_grad(name, device):
    input = logits_of((4, 5), device=device)
    target = probabilities_of((4, 5), device=device) if name == "probabilities" else labels_of((4, 5), device=device)
    loss = {"nll_loss": "nll", "probabilities": "cross_entropy_with_probabilities"}.get(name, name)
    weight = dyadic((5,), device=device)
    for third, mask in itertools.product((None, weight), (None, torch.tensor([True, False, True, True],
                                                                             device=device))):
        value, gradient = onepass.value_and_grad("cross_entropy" if name == "probabilities" else name, input, target,
                                                 third, mask=mask)
        answer = ask(loss, input, target, third, mask=mask)
        assert_near(value, answer.value, size_of_value(answer, "mean"), torch.float32, "value")
        assert_near(gradient, answer.gradients[0], answer.gradient_sizes, torch.float32, "gradient")


def test_value_and_grad_refuses():
    with pytest.raises(ValueError, match="expected a class index for each row"):
        onepass.value_and_grad("cross_entropy", logits_of((4, 5)), labels_of((3, 5)))
    with pytest.raises(TypeError, match="cross_entropy has no parameter 'beta'"):
        onepass.value_and_grad("cross_entropy", logits_of((4, 5)), labels_of((4, 5)), beta=1)


#: What PyTorch does not have: the function, the module.
FURTHER = {name: (getattr(onepass, generated_name(name)), getattr(onepass.nn, module_name(name)))
           for name in ROW_CATALOG
           if name not in ("cross_entropy", "cross_entropy_with_probabilities", "nll", "log_prob")}


def test_every_further_loss_is_there():
    assert FURTHER["poly"] == (onepass.poly_loss, onepass.nn.PolyLoss)
    assert FURTHER["softmax_focal"] == (onepass.softmax_focal_loss, onepass.nn.SoftmaxFocalLoss)
    assert FURTHER["generalized_cross_entropy"] == (onepass.generalized_cross_entropy,
                                                    onepass.nn.GeneralizedCrossEntropyLoss)


@pytest.mark.parametrize("name", FURTHER)
def test_every_further_loss(name, device):
    """Its derivatives are of its formula in the catalogue."""
    function, module = FURTHER[name]
    numbers = {"ignore_index": 2, "softcap": 0.0, "q": 0.75}
    given = {one["name"]: numbers.get(one["name"], 1.25 if one["minimum"] <= 1.25 <= one["maximum"] else one["default"])
             for one in ROW_CATALOG[name]["parameters"]}
    for shape in ((6, 5), (3, 1500), (2, 5, 3)):
        input, target = logits_of(shape, device=device), labels_of(shape, device=device, ignore_index=2)
        weight, mask = dyadic((shape[1],), device=device), mask_of(rows_of(shape), device) | (target == 1)
        for reduction in REDUCTIONS:
            check(name, lambda x: function(x, target, weight, mask=mask, reduction=reduction, **given), input, target,
                  reduction, weight=weight, mask=mask, **given)
        assert_same_bits(module(weight, **given)(input, target, mask=mask), function(input, target, weight, mask=mask,
                                                                                    **given))
    arrays = [x.cpu().numpy() for x in (input, target, weight, mask)]
    assert np.array_equal(function(*arrays[:3], mask=arrays[3], **given),
                          function(input, target, weight, mask=mask, **given).cpu().numpy())
    leaf, labels = logits_of((4, 5), torch.float64).requires_grad_(), torch.tensor([0, 3, 2, 1])
    assert torch.autograd.gradcheck(lambda x: function(x, labels, **given), leaf, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(lambda x: function(x, labels, **given), leaf)
    with pytest.raises(ValueError, match="expected a class index for each row"):
        function(input, target[:1])
    with pytest.raises(ValueError, match="temperature of"):
        module(temperature=0)


def eager(name, logits, target, **given):
    """Every row's loss in PyTorch's operations and float64, as the papers have it."""
    nll = torch.nn.functional.cross_entropy(logits, target, reduction="none")
    chance = torch.exp(-nll)
    if name == "poly":
        return nll + given["epsilon"] * (1 - chance)
    if name == "softmax_focal":
        return given["alpha"] * (1 - chance) ** given["gamma"] * nll
    return (1 - chance ** given["q"]) / given["q"]


@pytest.mark.parametrize("name, given", [
    ("poly", {"epsilon": 2.0}), ("poly", {"epsilon": 0.5}),
    ("softmax_focal", {"alpha": 1.0, "gamma": 2.0}), ("softmax_focal", {"alpha": 0.25, "gamma": 0.5}),
    ("generalized_cross_entropy", {"q": 0.7}), ("generalized_cross_entropy", {"q": 1.0}),
], ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_further_losses_are_eager_formulas(name, given, dtype, device):
    function = FURTHER[name][0]
    for shape in ((8, 30), (4, 3000), (2, 7, 5)):
        input, target = logits_of(shape, dtype, device=device), labels_of(shape, device=device)
        ours, theirs = input.clone().requires_grad_(), input.double().requires_grad_()
        each = function(ours, target, reduction="none", **given)
        expected = eager(name, theirs, target, **given)
        step = {torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.float32: 3e-6, torch.float64: 1e-12}[dtype]
        torch.testing.assert_close(each.double(), expected, rtol=step, atol=step * 1e-2)
        each.double().sum().backward()
        expected.sum().backward()
        torch.testing.assert_close(ours.grad.double(), theirs.grad, rtol=step, atol=step * 1e-2)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_no_power_is_cross_entropy(dtype, device):
    input, target = logits_of((9, 40), dtype, device=device), labels_of((9, 40), device=device, ignore_index=-100)
    weight = dyadic((40,), device=device).to(dtype)
    for function, given in ((onepass.softmax_focal_loss, {"gamma": 0}), (onepass.generalized_cross_entropy, {"q": 0})):
        for reduction in REDUCTIONS:
            expected, got = input.clone().requires_grad_(), input.clone().requires_grad_()
            value = onepass.cross_entropy(expected, target, weight, reduction=reduction)
            same = function(got, target, weight, reduction=reduction, **given)
            assert_same_bits(same, value)
            value.sum().backward()
            same.sum().backward()
            assert_same_bits(got.grad, expected.grad)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_an_alpha_for_each_class(reduction, device):
    """It multiplies as weight does, and counts for nothing in a mean."""
    input, target = logits_of((6, 5), device=device), labels_of((6, 5), device=device, ignore_index=2)
    target[0], alpha, given = 1, dyadic((5,), device=device), {"ignore_index": 2, "gamma": 1.5}
    counted = {"divisor": float((target != 2).sum())} if reduction == "mean" else {}
    leaf, same = input.clone().requires_grad_(), input.clone().requires_grad_()
    value = onepass.softmax_focal_loss(leaf, target, alpha=alpha, reduction=reduction, **given)
    expected = onepass.softmax_focal_loss(same, target, alpha, reduction=reduction, **counted, **given)
    assert_same_bits(value, expected)
    value.sum().backward()
    expected.sum().backward()
    assert_same_bits(leaf.grad, same.grad)
    module = onepass.nn.SoftmaxFocalLoss(alpha=alpha, reduction=reduction, **given)
    assert_same_bits(module(input, target), value)
    assert "alpha" in module.state_dict() and "alpha" not in onepass.nn.SoftmaxFocalLoss(alpha=0.5).state_dict()
    compiled = torch.compile(lambda x: onepass.softmax_focal_loss(x, target, alpha=alpha, reduction=reduction, **given),
                             backend="aot_eager", fullgraph=True)
    assert_as_eager(compiled(input), value.detach())
    if reduction != "none":
        slope = torch.func.grad(lambda x: onepass.softmax_focal_loss(x, target, alpha=alpha, reduction=reduction,
                                                                     **given))(input)
        torch.testing.assert_close(slope, leaf.grad, rtol=1e-4, atol=1e-6)
    arrays = [x.cpu().numpy() for x in (input, target, alpha)]
    assert np.array_equal(onepass.softmax_focal_loss(*arrays[:2], alpha=arrays[2], reduction=reduction, **given),
                          value.detach().cpu().numpy())


def test_alphas_that_are_refused():
    input, target = logits_of((6, 5)), labels_of((6, 5))
    with pytest.raises(ValueError, match="expected one of them"):
        onepass.softmax_focal_loss(input, target, torch.ones(5), alpha=torch.ones(5))
    with pytest.raises(ValueError, match="as many weights as classes"):
        onepass.softmax_focal_loss(input, target, alpha=torch.ones(4))
    with pytest.raises(ValueError, match="alpha of softmax_focal_loss is -1; expected at least 0"):
        onepass.softmax_focal_loss(input, target, alpha=-1)
    with pytest.raises(ValueError, match="q of generalized_cross_entropy is 1.5"):
        onepass.nn.GeneralizedCrossEntropyLoss(q=1.5)
    for all_ignored in (onepass.softmax_focal_loss, onepass.generalized_cross_entropy):
        leaf = input.clone().requires_grad_()
        value = all_ignored(leaf, torch.full((6,), -100))
        value.backward()
        assert value.isnan() and (leaf.grad == 0).all()


def test_the_catalogue_is_the_oracles():
    found = {loss["name"]: {one["name"]: one["default"] for one in loss["parameters"]} for loss in onepass.row_losses()}
    assert found == oracle.ROW_LOSSES
    assert STEPS.keys() == set(FLOATS)
