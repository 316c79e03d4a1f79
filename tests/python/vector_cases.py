# Vector losses: operands to compute with, what they should come to, and how a result is compared with that. The rows'
# losses are PyTorch's in float64, or for those that it lacks the formula, written out.
import math
from typing import Callable, NamedTuple

import numpy as np
import onepass
import torch
import torch.nn.functional as F

from agreement import exact

#: How far a result may be off, relative to what was added up: half a step of the type for its rounding and a little for
#: a sum over rows, since all sums over vectors are in double; of float64 what PyTorch's own sums are off.
STEPS = {torch.float16: 0.55 * 2**-10, torch.bfloat16: 0.51 * 2**-7, torch.float32: 4 * 2**-24,
         torch.float64: 32 * 2**-53}
#: What is lost below the smallest normal number.
SMALLEST = {torch.float16: 2**-24, torch.bfloat16: 2**-126, torch.float32: 2**-126, torch.float64: 2**-1022}


def tversky(input, target, alpha=0.5, beta=0.5, smooth=0.0, eps=1e-7, from_logits=True):
    """Of rows in the last dimension."""
    o = 1 / (1 + torch.exp(-input)) if from_logits else input
    both, alone, missed = (o * target).sum(-1), (o * (1 - target)).sum(-1), ((1 - o) * target).sum(-1)
    return 1 - (both + smooth) / (both + alpha * alone + beta * missed + smooth).clamp(min=eps)


def softmaxes(input, target, temperature):
    """Both distributions, and their logarithms; a row without classes has none."""
    logs = [torch.log_softmax(x / temperature, -1) for x in (input, target)]
    nothing = 0 if input.shape[-1] else math.nan
    return *(log.exp() for log in logs), *logs, nothing


def kl_div(input, target, temperature=1.0):
    _, _, log_p, log_q, nothing = softmaxes(input, target, temperature)
    return F.kl_div(log_p, log_q, reduction="none", log_target=True).sum(-1) + nothing


def js_div(input, target, beta=0.5, temperature=1.0):
    """As TRL writes it."""
    _, _, log_p, log_q, nothing = softmaxes(input, target, temperature)
    mixture = torch.logsumexp(torch.stack([log_p + math.log(1 - beta), log_q + math.log(beta)]), 0)
    of_target, of_input = (F.kl_div(mixture, x, reduction="none", log_target=True).sum(-1) for x in (log_q, log_p))
    return beta * of_target + (1 - beta) * of_input + nothing


def tv_distance(input, target, temperature=1.0):
    p, q, _, _, nothing = softmaxes(input, target, temperature)
    return (p - q).abs().sum(-1) / 2 + nothing


class Case(NamedTuple):
    """A function of ours, the rows' losses that it should have, and whether it reduces them."""

    ours: Callable
    rows: Callable
    operands: str  #: of each whether it is a vector, a sign or a share (from 0 to 1)
    others: dict  #: parameters that are not the defaults
    reduces: bool = True
    library: str = ""  #: what value_and_grad knows it as


CASES = {
    "cosine_similarity": Case(
        lambda a, b, **given: onepass.cosine_similarity(a, b, -1, **given),
        lambda a, b, **given: F.cosine_similarity(a, b, -1, **given), "vv", {"eps": 0.5}, False, "cosine_similarity"),
    "pairwise_distance": Case(onepass.pairwise_distance, F.pairwise_distance, "vv", {"p": 1.0, "eps": -0.25}, False,
                              "pairwise_distance"),
    "cosine_embedding_loss": Case(
        onepass.cosine_embedding_loss, lambda a, b, t, **given: F.cosine_embedding_loss(a, b, t, reduction="none",
                                                                                        **given),
        "vvs", {"margin": -0.3}, True, "cosine_embedding"),
    "triplet_margin_loss": Case(
        onepass.triplet_margin_loss, lambda a, b, c, **given: F.triplet_margin_loss(a, b, c, reduction="none", **given),
        "vvv", {"margin": 2.5, "p": 1, "eps": 1e-3, "swap": True}, True, "triplet_margin"),
    "tversky_loss": Case(
        lambda a, b, **given: onepass.tversky_loss(a, b, per="sample", **given), tversky, "vp",
        {"alpha": 0.25, "beta": 1.5, "smooth": 0.125, "eps": 2.0}, True, "tversky_with_logits"),
    "tversky_loss of probabilities": Case(
        lambda a, b, **given: onepass.tversky_loss(a, b, per="sample", from_logits=False, **given),
        lambda a, b, **given: tversky(a, b, from_logits=False, **given), "pp", {"alpha": 2.0, "smooth": 1.0}, True,
        "tversky"),
    "kl_div_with_logits": Case(onepass.kl_div_with_logits, kl_div, "vv", {"temperature": 2.5}, True,
                               "kl_div_with_logits"),
    "js_div_with_logits": Case(onepass.js_div_with_logits, js_div, "vv", {"beta": 0.25, "temperature": 0.75}, True,
                               "js_div_with_logits"),
    "tv_distance_with_logits": Case(onepass.tv_distance_with_logits, tv_distance, "vv", {"temperature": 1.5}, True,
                                    "tv_distance_with_logits"),
}


def operands_of(name, shape=(6, 5), dtype=torch.float32, device="cpu", signs=torch.int64):
    """Vectors in the last dimension."""
    drawn = []
    for kind in CASES[name].operands:
        if kind == "s":
            drawn.append((torch.randint(0, 2, shape[:-1]) * 2 - 1).to(signs).to(device))
        else:
            numbers = torch.randn(shape) if kind == "v" else torch.rand(shape)
            drawn.append(numbers.to(dtype).to(device))
    return drawn


def is_vector(operand, first):
    return operand.dim() == first.dim()


def reduced(each, reduction, weight=None, mask=None, divisor=None):
    """Rows' losses as onepass reduces them; only those that the mask leaves are looked at."""
    count = each.shape[0] if each.dim() else 1
    mask = None if mask is None else (mask != 0).expand(each.shape)
    weight = None if weight is None else weight.double().expand(each.shape)
    terms = each if weight is None else each * weight
    if reduction == "none":
        return terms if mask is None else torch.where(mask, terms, 0)
    if mask is not None:
        terms, weight = terms[mask], None if weight is None else weight[mask]
    if reduction in ("sum", "batchmean"):
        return terms.sum() / (1 if reduction == "sum" else count)
    return terms.sum() / (divisor or (terms.numel() if weight is None else weight.sum()))


class Expected(NamedTuple):
    value: np.ndarray
    gradients: list
    size: np.ndarray  #: of the value: what was added up in it
    sizes: list  #: the same of each element of each gradient, at most


def size_of_rows(name, vectors, given):
    """What a row's loss is a difference of: cosines and indices are of numbers up to 1."""
    if name.endswith("_with_logits"):
        return size_of_divergence(name, *vectors, **given)
    if name != "triplet_margin_loss":
        return torch.ones(vectors[0].shape[:-1], dtype=torch.float64)
    anchor, positive, negative = vectors
    return given.get("margin", 1) + (anchor - positive).norm(given.get("p", 2), -1) + \
        (anchor - negative).norm(given.get("p", 2), -1)


def size_of_slopes(name, vectors, k, row_gradient, given):
    """What an element of a gradient is a difference of: parts of unit vectors, for a cosine over the norm."""
    per_row = row_gradient.abs().unsqueeze(-1)
    if name.startswith("cosine"):
        per_row = per_row * 2 / vectors[k].norm(2, -1, keepdim=True)
    elif name.startswith("tversky"):
        per_row = per_row * size_of_indexs_slope(name, *vectors, k, **given)
    elif name.endswith("_with_logits"):
        per_row = per_row * size_of_divergences_slope(name, *vectors, k, **given)
    else:
        per_row = 2 * per_row
    return per_row.expand(vectors[k].shape).numpy()


def size_of_indexs_slope(name, input, target, k, alpha=0.5, beta=0.5, smooth=0.0, eps=1e-7):
    """The quotient's two parts. A sigmoid is computed in the compute type, and has a step's error of its own."""
    o = torch.sigmoid(input) if name == "tversky_loss" else input
    both, alone, missed = (o * target).sum(-1), (o * (1 - target)).sum(-1), ((1 - o) * target).sum(-1)
    whole = (both + alpha * alone + beta * missed + smooth).clamp(min=eps)
    index, whole = ((both + smooth) / whole).unsqueeze(-1), whole.unsqueeze(-1)
    own, weight = (target, alpha) if k == 0 else (o, beta)
    size = (index * (abs(1 - alpha - beta) * own + weight) + own) / whole
    return size * o * (1 - o) * 2 if k == 0 and name == "tversky_loss" else size


def size_of_divergence(name, input, target, beta=0.5, temperature=1.0):
    """Exponentials, and their sum, have a step's error or two of their own, which the value has whatever its size."""
    p, q, log_p, log_q, _ = softmaxes(input, target, temperature)
    return 2 + ((p + q) * (log_p - log_q).abs()).sum(-1)


def size_of_divergences_slope(name, input, target, k, beta=0.5, temperature=1.0):
    """A difference of logarithms, or of probabilities."""
    p, q, log_p, log_q, _ = softmaxes(input, target, temperature)
    if name == "kl_div_with_logits" and k == 0:
        return 2 * (p + q) / temperature
    size = (p, q)[k] * (2 + (log_p - log_q).abs() + size_of_divergence(name, input, target, beta, temperature)[..., None])
    return size / temperature


def expected(name, operands, reduction="mean", weight=None, mask=None, divisor=None, upstream=None, **given):
    """In float64, of the operands' own numbers; of rows that the mask hides nothing."""
    first = operands[0]
    leaves = [x.detach().double().cpu().requires_grad_() if x.is_floating_point() and is_vector(x, first) else x.cpu()
              for x in operands]
    weight, mask = (None if x is None else x.cpu() for x in (weight, mask))
    used = leaves
    if mask is not None:
        rows = (mask != 0).expand(first.shape[:-1]).unsqueeze(-1)
        used = [torch.where(rows, x, torch.ones(())) if is_vector(x, first) else x for x in leaves]
    each = CASES[name].rows(*used, **given)
    value = reduced(each, reduction, weight, mask, divisor)
    upstream = torch.ones_like(value) if upstream is None else upstream.double().cpu()
    wanted = [x for x in leaves if is_vector(x, first)]
    *found, row_gradient = torch.autograd.grad(value, [*wanted, each], upstream)
    vectors = [x.detach() for x in used if is_vector(x, first)]
    size = reduced(size_of_rows(name, vectors, given), reduction, weight, mask, divisor)
    sizes = [size_of_slopes(name, vectors, k, row_gradient, given) for k in range(len(vectors))]
    return Expected(value.detach().numpy(), [gradient.numpy() for gradient in found], size.numpy(), sizes)


def assert_near(got, wanted, sizes, dtype, what):
    """Within a few steps of the type, relative to what was added up; NaN and infinity where they are expected."""
    got, wanted = exact(got), np.asarray(wanted)
    assert got.shape == wanted.shape, f"{what}: {got.shape} for {wanted.shape}"
    finite = np.isfinite(wanted)
    assert ((got == wanted) | (np.isnan(got) & np.isnan(wanted)) | finite).all(), f"{what}: {got} for {wanted}"
    sizes = np.broadcast_to(np.maximum(np.abs(wanted), sizes), wanted.shape)
    off = np.abs(got[finite] - wanted[finite]) - (STEPS[dtype] * sizes[finite] + SMALLEST[dtype])
    worst = off.argmax() if off.size else 0
    assert (off <= 0).all(), f"{what}: {got[finite][worst]} for {wanted[finite][worst]}, too far by {off[worst]}"


def check(name, operands, upstream=None, words=None, **given):
    """Value and gradients of a call, against what they should be."""
    words = words or {}
    leaves = [x.detach().clone(memory_format=torch.preserve_format).requires_grad_()
              if x.is_floating_point() and is_vector(x, operands[0]) else x for x in operands]
    value = CASES[name].ours(*leaves, **words, **given)
    wanted = expected(name, operands, upstream=upstream, **({} if CASES[name].reduces else {"reduction": "none"}),
                      **words, **given)
    assert_near(value, wanted.value, wanted.size, value.dtype, f"{name} {given}")
    value.backward(torch.ones_like(value) if upstream is None else upstream.to(value.dtype))
    vectors = [x for x in leaves if x.is_floating_point() and x.requires_grad]
    for leaf, gradient, sizes in zip(vectors, wanted.gradients, wanted.sizes):
        assert leaf.grad.dtype == leaf.dtype
        assert_near(leaf.grad, gradient, sizes, leaf.dtype, f"gradient of {name} {given}")
    return value.detach(), [leaf.grad for leaf in vectors]
