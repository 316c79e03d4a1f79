# Cross-entropy as those call it who come from Liger's kernels or from transformers: flattened batches of sequences, so
# many ignored labels, smoothing, softcap, z-loss, class weights, each alone and together, losses that are not the last
# layer, bfloat16, inputs with gaps, labels shifted by one, sums over so many items. The formula is written out below.
import itertools

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

import onepass
import onepass.nn
import torch.nn.functional as F

from agreement import assert_same_bits

#: Of value and gradient, relative to the largest gradient of the row: what rounding to the type leaves.
TOLERANCE = {torch.float32: 3e-6, torch.bfloat16: 2**-8, torch.float16: 2**-10, torch.float64: 1e-14}
SHAPES = [(2, 40, 320), (3, 23, 1000), (1, 7, 4100), (4, 5, 1), (1, 1, 3)]  # samples, tokens, vocabulary


def tokens(shape, dtype=torch.float32, device="cpu", scale=1.0, ignored=0, ignore_index=-100):
    """Logits (samples * tokens, vocabulary) and labels, so many of which are ignored."""
    samples, length, vocabulary = shape
    logits = (torch.randn(samples * length, vocabulary) * scale).to(dtype).to(device)
    labels = torch.randint(vocabulary, (samples * length,), device=device)
    labels[torch.randperm(samples * length, device=device)[:ignored]] = ignore_index
    return logits, labels


def formula(logits, labels, reduction="mean", ignore_index=-100, label_smoothing=0.0, z_loss=0.0, softcap=None,
            weight=None, items=None):
    """(loss, z-loss, gradient for the logits), in float64, row by row. Liger's users know z_loss as lse_square_scale."""
    z, count = logits.detach().double().cpu().numpy(), logits.shape[-1]
    weights = np.ones(count) if weight is None else weight.double().cpu().numpy()
    values, zs, gradient, divisor = [], [], np.zeros_like(z), 0.0
    for row, label in enumerate(labels.tolist()):
        if label == ignore_index:
            values.append(0.0)
            zs.append(0.0)
            continue
        tangent = np.tanh(z[row] / softcap) if softcap else 0 * z[row]
        x = softcap * tangent if softcap else z[row]
        lse = x.max() + np.log(np.exp(x - x.max()).sum())
        p, own = np.exp(x - lse), np.eye(count)[label]
        zs.append(z_loss * lse * lse)
        values.append((1 - label_smoothing) * weights[label] * (lse - x[label]) +
                      label_smoothing / count * (weights * (lse - x)).sum() + zs[-1])
        slope = (1 - label_smoothing) * weights[label] * (p - own) + \
            label_smoothing / count * (weights.sum() * p - weights) + 2 * z_loss * lse * p
        gradient[row] = slope * (1 - tangent * tangent)
        divisor += weights[label]
    if reduction == "none":
        return np.array(values), np.array(zs), gradient
    by = 1.0 if reduction == "sum" else divisor if items is None else items
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.divide(sum(values), by), np.divide(sum(zs), by), np.divide(gradient, by if by else 1)


def assert_near(got, wanted, dtype, what):
    got = got.detach().double().cpu().numpy()
    scale = np.maximum(np.abs(wanted).max(-1, keepdims=True) if got.ndim > 1 else np.abs(wanted), 1e-7)
    assert got.shape == np.shape(wanted), what
    assert ((np.abs(got - wanted) <= TOLERANCE[dtype] * scale) | (np.isnan(got) & np.isnan(wanted))).all(), \
        f"{what}: {got} for {wanted}"


def check(logits, labels, call=onepass.cross_entropy, factor=1.0, **given):
    """Value and gradient of a call, behind which the loss is multiplied by something."""
    leaf = logits.detach().requires_grad_()
    words = {"divisor" if key == "items" else key: value for key, value in given.items() if value is not None}
    value = call(leaf, labels, **words)
    (value * factor).backward(torch.ones_like(value))
    wanted, _, gradient = formula(logits, labels, **given)
    assert value.dtype == logits.dtype and leaf.grad.dtype == logits.dtype
    assert_near(value, wanted, logits.dtype, "value")
    assert_near(leaf.grad, gradient * factor, logits.dtype, "gradient")


# ------------------------------------------------------------------------------- Liger --


@pytest.mark.parametrize("dtype, scale", [(torch.float32, 1.0), (torch.float32, 10.0), (torch.bfloat16, 1.0),
                                          (torch.float16, 1.0)], ids=str)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_batches_of_sequences(shape, reduction, dtype, scale, device):
    check(*tokens(shape, dtype, device, scale), reduction=reduction)


@pytest.mark.parametrize("ignore_index", [-100, -1, 2, 255])
@pytest.mark.parametrize("ignored", [0, 1, 40, 79, 80])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_so_many_labels_are_ignored(reduction, ignored, ignore_index, device):
    logits, labels = tokens((2, 40, 320), device=device)
    labels[labels == ignore_index] = 0
    labels[torch.randperm(80, device=device)[:ignored]] = ignore_index
    check(logits, labels, reduction=reduction, ignore_index=ignore_index)
    value = onepass.cross_entropy(logits, labels, ignore_index=ignore_index)
    assert value.isnan() == (ignored == 80)


OPTIONS = {"ignore_index": 2, "label_smoothing": 0.1, "softcap": 30.0, "z_loss": 1e-4, "weight": True}


@pytest.mark.parametrize("names", [names for count in range(1, 6) for names in itertools.combinations(OPTIONS, count)],
                         ids="+".join)
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_options_alone_and_together(names, reduction, device):
    logits, labels = tokens((3, 23, 100), device=device, scale=4.0, ignored=9, ignore_index=2)
    given = {name: OPTIONS[name] for name in names}
    if "weight" in given:
        given["weight"] = torch.rand(100, device=device) + 0.1
    check(logits, labels, reduction=reduction, **given)


@pytest.mark.parametrize("label_smoothing, ignore_index", [(0.1, -100), (0.1, 0), (0.5, 42), (1.0, -123)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_smoothing(dtype, label_smoothing, ignore_index, device):
    logits, labels = tokens((3, 23, 320), dtype, device, ignored=11, ignore_index=ignore_index)
    check(logits, labels, label_smoothing=label_smoothing, ignore_index=ignore_index)


@pytest.mark.parametrize("scale", [1e-4, 1e-2, 0.5])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("others", [{}, {"label_smoothing": 0.1, "ignore_index": 2}], ids=str)
def test_z_loss_and_what_it_is(scale, reduction, others, device):
    logits, labels = tokens((3, 23, 320), device=device, ignored=7, ignore_index=2)
    check(logits, labels, reduction=reduction, z_loss=scale, **others)
    value, z_loss = onepass.cross_entropy(logits, labels, reduction=reduction, z_loss=scale, return_z_loss=True, **others)
    assert_same_bits(value, onepass.cross_entropy(logits, labels, reduction=reduction, z_loss=scale, **others))
    wanted, part, _ = formula(logits, labels, reduction=reduction, z_loss=scale, **others)
    assert_near(value, wanted, torch.float32, "value")
    assert_near(z_loss, part, torch.float32, "z-loss")


def test_accuracy_of_tokens(device):
    logits, labels = tokens((3, 23, 50), device=device, ignored=9)
    labels[labels != -100] = logits.argmax(-1)[labels != -100]
    labels[torch.arange(69, device=device) % 4 == 0] = 1
    _, accuracy = onepass.cross_entropy(logits, labels, return_accuracy=True)
    counts = labels != -100
    torch.testing.assert_close(accuracy, ((logits.argmax(-1) == labels) & counts).sum() / counts.sum())


@pytest.mark.parametrize("factor", [0.3, -2.0, 1024.0])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shape", [(2, 40, 320), (1, 3, 5000)], ids=str)
def test_not_the_last_layer(shape, reduction, factor, device):
    check(*tokens(shape, device=device), reduction=reduction, factor=factor)


def test_beside_another_loss_of_the_same_logits(device):
    """Gradients add up, and the logits are what they were."""
    logits, labels = tokens((2, 20, 320), device=device)
    leaf = logits.clone().requires_grad_()
    (onepass.cross_entropy(leaf, labels) + (leaf * leaf).mean()).backward()
    _, _, gradient = formula(logits, labels)
    assert_near(leaf.grad, gradient + 2 * logits.double().cpu().numpy() / logits.numel(), torch.float32, "gradient")
    assert torch.equal(leaf.detach(), logits)


@pytest.mark.parametrize("layout", ["transposed", "every other token", "part of a vocabulary", "expanded"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_inputs_with_gaps(layout, dtype, device):
    logits, labels = tokens((2, 20, 321), dtype, device)
    gapped = {"transposed": logits.t().contiguous().t(), "every other token": logits.repeat_interleave(2, 0)[::2],
              "part of a vocabulary": F.pad(logits, (3, 5))[:, 3:-5],
              "expanded": logits[:1].expand(40, 321)}[layout]
    assert not gapped.is_contiguous()
    check(gapped, labels)
    if layout != "expanded":
        assert_same_bits(onepass.cross_entropy(gapped, labels), onepass.cross_entropy(logits, labels))


def test_bfloat16_is_computed_in_float32(device):
    """Exponentials that would be 0 or infinite in 16 bits, and a mean that has its digits."""
    logits, labels = tokens((4, 100, 250), torch.bfloat16, device, scale=12.0)
    wanted, *_ = formula(logits, labels)
    value = onepass.cross_entropy(logits, labels, dtype=torch.float32)
    assert value.dtype == torch.float32 and abs(value.item() - wanted) <= 3e-6 * wanted
    assert onepass.cross_entropy(logits, labels).item() == torch.tensor(wanted).bfloat16().item()
    for offset in (1e4, -1e4):
        moved = logits.float() + offset
        wanted, *_ = formula(moved, labels)
        assert abs(onepass.cross_entropy(moved, labels).item() - wanted) <= 3e-6 * wanted


def test_forward_only(device):
    logits, labels = tokens((2, 20, 320), device=device)
    with torch.no_grad():
        value = onepass.cross_entropy(logits.requires_grad_(), labels)
    assert not value.requires_grad
    assert_same_bits(value, onepass.cross_entropy(logits.detach(), labels))
    with torch.inference_mode():
        assert_same_bits(onepass.cross_entropy(logits, labels).clone(), value)


def test_modules(device):
    logits, labels = tokens((2, 20, 320), device=device, ignored=5)
    weight = torch.rand(320, device=device)
    module = onepass.nn.CrossEntropyLoss(weight=weight, label_smoothing=0.1, z_loss=1e-3, softcap=30.0)
    check(logits, labels, call=lambda z, y, **_: module(z, y), weight=weight, label_smoothing=0.1, z_loss=1e-3,
          softcap=30.0)
    plain = onepass.nn.CrossEntropyLoss()
    check(logits, labels, call=lambda z, y, divisor: plain(z, y, divisor=divisor), items=99.0)


@pytest.mark.parametrize("label", [320, 321, -1, -101])
def test_labels_out_of_the_vocabulary_are_told(label):
    logits, labels = tokens((2, 20, 320))
    labels[7] = label
    with pytest.raises(IndexError, match=f"Target {label} is out of bounds."):
        onepass.cross_entropy(logits, labels)


# ------------------------------------------------------------------------ transformers --


def shifted(labels):
    """Each token foretells the next one, and the last nothing."""
    return F.pad(labels, (0, 1), value=-100)[..., 1:].contiguous()


@pytest.mark.parametrize("items", [None, 57, torch.tensor(57), torch.tensor(57.0)], ids=repr)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("labels_type", [torch.int64, torch.int32], ids=str)
def test_causal_language_models(items, dtype, labels_type, device):
    """The flattened logits of all tokens beside shifted labels; num_items_in_batch is a number or a tensor."""
    logits = torch.randn(3, 17, 60, device=device).to(dtype).requires_grad_()
    labels = torch.randint(60, (3, 17), device=device)
    labels[0, :5] = -100
    flat = shifted(labels).view(-1)
    divisor = items.to(device) if isinstance(items, torch.Tensor) else items
    value = onepass.cross_entropy(logits.view(-1, 60), flat.to(labels_type), divisor=divisor, dtype=torch.float32)
    value.backward()
    wanted, _, gradient = formula(logits.view(-1, 60), flat, items=None if items is None else float(items))
    assert value.dtype == torch.float32
    assert_near(value, wanted, torch.float32, "value")
    assert_near(logits.grad.view(-1, 60), gradient, dtype, "gradient")
    assert not logits.grad[:, -1].any() and not logits.grad[0, :4].any()


@pytest.mark.parametrize("items", [None, 57, torch.tensor(57)], ids=repr)
def test_their_own_code_with_the_patch(items, device):
    """A sum over so many items, of logits in float32, as their loss has it."""
    logits = torch.randn(3, 17, 60, device=device)
    labels = torch.randint(60, (3, 17), device=device)

    def loss():
        reduction = "mean" if items is None else "sum"
        value = torch.nn.functional.cross_entropy(logits.float().view(-1, 60), shifted(labels).view(-1),
                                                  ignore_index=-100, reduction=reduction)
        return value if items is None else value / (items.to(device) if torch.is_tensor(items) else items)

    with onepass.patch_torch():
        value = loss()
    wanted, *_ = formula(logits.view(-1, 60), shifted(labels).view(-1), items=None if items is None else float(items))
    assert_near(value, wanted, torch.float32, "value")


def test_accumulated_steps_are_one_batch(device):
    """Micro-batches of other lengths, each divided by the items of all: the gradients of one batch."""
    weight = torch.randn(8, 60, device=device, dtype=torch.float64)
    inputs, labels = torch.randn(4, 11, 8, device=device, dtype=torch.float64), torch.randint(60, (4, 11), device=device)
    for sample, length in enumerate((11, 3, 7, 1)):
        labels[sample, length:] = -100
    items = (labels != -100).sum()
    whole, parts = weight.clone().requires_grad_(), weight.clone().requires_grad_()
    onepass.cross_entropy((inputs @ whole).view(-1, 60), labels.view(-1)).backward()
    for sample in range(4):
        onepass.cross_entropy(inputs[sample] @ parts, labels[sample], divisor=items).backward()
    torch.testing.assert_close(parts.grad, whole.grad, rtol=1e-12, atol=1e-14)
