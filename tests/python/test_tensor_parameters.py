# Parameters of losses over rows and of vectors that are tensors: where a gradient, a tangent or a batch flows through
# one, it is that of the formula, or the function refuses it and says what to do. It is never lost without a word.
import os

import pytest

torch = pytest.importorskip("torch")

import onepass
from torch.nn.functional import log_softmax, normalize, one_hot

LABELS = torch.tensor([0, 2, -100, 1, 4])
TAKES_PART = LABELS != -100


def logits_of(seed=7, rows=5):
    return torch.randn(rows, 5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def softened(z, temperature=1.0, softcap=None):
    return (z if softcap is None else softcap * torch.tanh(z / softcap)) / temperature


def log_chances(z):
    """Of the labels that count."""
    return log_softmax(z[TAKES_PART], -1).gather(-1, LABELS[TAKES_PART, None]).squeeze(-1)


# ------------------------------------------------------- the formulas, in operations of PyTorch --


def cross_entropy(z, temperature=1.0, softcap=None, z_loss=0.0, divisor=None):
    z = softened(z, temperature, softcap)
    each = -log_chances(z) + z_loss * torch.logsumexp(z[TAKES_PART], -1) ** 2
    return each.mean() if divisor is None else each.sum() / divisor


def log_prob(z, temperature=1.0, softcap=None):
    return log_chances(softened(z, temperature, softcap)).sum()


def entropy(z, temperature=1.0, softcap=None):
    logs = log_softmax(softened(z, temperature, softcap)[TAKES_PART], -1)
    return -(logs.exp() * logs).sum()


def poly(z, epsilon=1.0, temperature=1.0):
    logs = log_chances(softened(z, temperature))
    return (-logs + epsilon * (1 - logs.exp())).mean()


def focal(z, gamma=2.0, alpha=1.0):
    logs = log_chances(z)
    return (-alpha * (1 - logs.exp()) ** gamma * logs).mean()


def generalized(z, q=0.7):
    return ((1 - log_chances(z).exp() ** q) / q).mean()


def kl_div(z, t, temperature=1.0):
    logs, other = log_softmax(z / temperature, -1), log_softmax(t / temperature, -1)
    return (other.exp() * (other - logs)).sum(-1).mean()


def js_div(z, t, beta=0.5, temperature=1.0):
    p, q = (torch.softmax(x / temperature, -1) for x in (z, t))
    m = (1 - beta) * p + beta * q
    return ((1 - beta) * p * (p / m).log() + beta * q * (q / m).log()).sum(-1).mean()


def tv_distance(z, t, temperature=1.0):
    p, q = (torch.softmax(x / temperature, -1) for x in (z, t))
    return (p - q).abs().sum(-1).mean() / 2


def tversky(z, alpha=0.5, beta=0.5, smooth=0.0):
    o, t = torch.sigmoid(z), OVERLAP
    both = (o * t).sum()
    return 1 - (both + smooth) / (both + alpha * (o * (1 - t)).sum() + beta * ((1 - o) * t).sum() + smooth)


def contrast(z, same, temperature):
    """`same` says which others are a row's own."""
    z = normalize(z, dim=-1)
    cosines = (z @ z.T / temperature).masked_fill(torch.eye(len(z), dtype=torch.bool), -torch.inf)
    logs = log_softmax(cosines, -1).masked_fill(~same, 0)
    return -(logs.sum(-1) / same.sum(-1)).mean()


OVERLAP = (logits_of(9) > 0).double()
OTHERS = logits_of(8)
WEIGHT = logits_of(10)
BIAS = logits_of(11)[0]
PAIRS = one_hot((torch.arange(10) + 5) % 10).bool()
SAME = (torch.arange(6)[:, None] % 2 == torch.arange(6) % 2) & ~torch.eye(6, dtype=torch.bool)

#: The function, the formula, both of the logits and one parameter; the parameter's name and number.
CASES = {
    "cross_entropy temperature": (lambda z, **x: onepass.cross_entropy(z, LABELS, **x), cross_entropy, "temperature", 0.7),
    "cross_entropy temperature of 1": (lambda z, **x: onepass.cross_entropy(z, LABELS, **x), cross_entropy,
                                       "temperature", 1.0),
    "cross_entropy softcap": (lambda z, **x: onepass.cross_entropy(z, LABELS, **x), cross_entropy, "softcap", 1.5),
    "cross_entropy z_loss": (lambda z, **x: onepass.cross_entropy(z, LABELS, **x), cross_entropy, "z_loss", 0.25),
    "cross_entropy z_loss of 0": (lambda z, **x: onepass.cross_entropy(z, LABELS, **x), cross_entropy, "z_loss", 0.0),
    "cross_entropy divisor": (lambda z, **x: onepass.cross_entropy(z, LABELS, **x), cross_entropy, "divisor", 3.0),
    "log_prob temperature": (lambda z, **x: onepass.log_prob(z, LABELS, **x).sum(), log_prob, "temperature", 0.7),
    "log_prob softcap": (lambda z, **x: onepass.log_prob(z, LABELS, **x).sum(), log_prob, "softcap", 1.5),
    "entropy temperature": (lambda z, **x: onepass.log_prob(z, LABELS, return_entropy=True, **x)[1].sum(), entropy,
                            "temperature", 0.7),
    "entropy softcap": (lambda z, **x: onepass.log_prob(z, LABELS, return_entropy=True, **x)[1].sum(), entropy,
                        "softcap", 1.5),
    "poly_loss epsilon": (lambda z, **x: onepass.poly_loss(z, LABELS, **x), poly, "epsilon", 0.5),
    "poly_loss temperature": (lambda z, **x: onepass.poly_loss(z, LABELS, epsilon=1.0, **x), poly, "temperature", 0.7),
    "softmax_focal_loss gamma": (lambda z, **x: onepass.softmax_focal_loss(z, LABELS, **x), focal, "gamma", 1.5),
    "softmax_focal_loss alpha": (lambda z, **x: onepass.softmax_focal_loss(z, LABELS, **x), focal, "alpha", 0.3),
    "generalized_cross_entropy q": (lambda z, **x: onepass.generalized_cross_entropy(z, LABELS, **x), generalized, "q",
                                    0.4),
    "generalized_cross_entropy small q": (lambda z, **x: onepass.generalized_cross_entropy(z, LABELS, **x), generalized,
                                          "q", 0.01),
    "kl_div_with_logits temperature": (lambda z, **x: onepass.kl_div_with_logits(z, OTHERS, **x),
                                       lambda z, **x: kl_div(z, OTHERS, **x), "temperature", 0.7),
    "kl_div_with_logits divisor": (lambda z, **x: onepass.kl_div_with_logits(z, OTHERS, **x),
                                   lambda z, divisor: 5 * kl_div(z, OTHERS) / divisor, "divisor", 3.0),
    "js_div_with_logits beta": (lambda z, **x: onepass.js_div_with_logits(z, OTHERS, **x),
                                lambda z, **x: js_div(z, OTHERS, **x), "beta", 0.3),
    "js_div_with_logits temperature": (lambda z, **x: onepass.js_div_with_logits(z, OTHERS, **x),
                                       lambda z, **x: js_div(z, OTHERS, **x), "temperature", 0.7),
    "tv_distance_with_logits temperature": (lambda z, **x: onepass.tv_distance_with_logits(z, OTHERS, **x),
                                            lambda z, **x: tv_distance(z, OTHERS, **x), "temperature", 0.7),
    "tversky_loss alpha": (lambda z, **x: onepass.tversky_loss(z, OVERLAP, **x), tversky, "alpha", 0.3),
    "tversky_loss beta": (lambda z, **x: onepass.tversky_loss(z, OVERLAP, **x), tversky, "beta", 0.3),
    "dice_loss smooth": (lambda z, **x: onepass.dice_loss(z, OVERLAP, **x), tversky, "smooth", 1.5),
    "jaccard_loss smooth": (lambda z, **x: onepass.jaccard_loss(z, OVERLAP, **x),
                            lambda z, smooth: tversky(z, 1.0, 1.0, smooth), "smooth", 1.5),
    "linear_cross_entropy temperature": (
        lambda z, **x: onepass.linear_cross_entropy(z, WEIGHT, LABELS, linear_bias=BIAS, **x),
        lambda z, **x: cross_entropy(z @ WEIGHT.T + BIAS, **x), "temperature", 0.7),
    "linear_log_prob temperature": (lambda z, **x: onepass.linear_log_prob(z, WEIGHT, LABELS, **x).sum(),
                                    lambda z, **x: log_prob(z @ WEIGHT.T, **x), "temperature", 0.7),
    "nt_xent_loss temperature": (lambda z, **x: onepass.nt_xent_loss(z, OTHERS, **x),
                                 lambda z, temperature: contrast(torch.cat((z, OTHERS)), PAIRS, temperature),
                                 "temperature", 0.7),
    "supcon_loss temperature": (lambda z, **x: onepass.supcon_loss(torch.cat((z, OTHERS[:1])), torch.arange(6) % 2, **x),
                                lambda z, temperature: contrast(torch.cat((z, OTHERS[:1])), SAME, temperature),
                                "temperature", 0.7),
}
CASE = pytest.mark.parametrize("ours, formula, name, number", CASES.values(), ids=CASES)


def both(of, z, name, number):
    """The value and its gradients for the logits and the parameter."""
    z, parameter = z.clone().requires_grad_(), torch.tensor(number, dtype=torch.float64, requires_grad=True)
    value = of(z, **{name: parameter})
    return value, *torch.autograd.grad(value, (z, parameter))


@CASE
def test_a_gradient_flows_to_it(ours, formula, name, number):
    z = logits_of()
    torch.testing.assert_close(both(ours, z, name, number), both(formula, z, name, number))
    parameter = torch.tensor(number, dtype=torch.float64, requires_grad=True)  # which alone requires one
    assert torch.autograd.grad(ours(z, **{name: parameter}), parameter)[0] != 0


@CASE
def test_transforms_of_it(ours, formula, name, number):
    z, number = logits_of(), torch.tensor(number, dtype=torch.float64)
    of, wanted = (lambda parameter: ours(z, **{name: parameter})), (lambda parameter: formula(z, **{name: parameter}))
    torch.testing.assert_close(torch.func.grad(of)(number), torch.func.grad(wanted)(number))
    ones = torch.ones_like(number)
    torch.testing.assert_close(torch.func.jvp(of, (number,), (ones,)), torch.func.jvp(wanted, (number,), (ones,)))
    several = number + torch.tensor([0.0, 0.125], dtype=torch.float64)
    torch.testing.assert_close(torch.func.vmap(of)(several), torch.stack([wanted(one) for one in several]))


@CASE
def test_without_a_gradient_it_is_the_number(ours, formula, name, number):
    """Bit-identical to it."""
    z, parameter = logits_of(), torch.tensor(number, dtype=torch.float64)
    assert torch.equal(ours(z, **{name: parameter}), ours(z, **{name: number}))
    with torch.no_grad():
        assert torch.equal(ours(z, **{name: parameter.requires_grad_()}), ours(z, **{name: number}))


COMPILED = ["cross_entropy temperature", "cross_entropy divisor", "softmax_focal_loss gamma",
            "kl_div_with_logits temperature", "tversky_loss alpha", "nt_xent_loss temperature",
            "linear_cross_entropy temperature"]


@pytest.mark.parametrize("case", COMPILED[::3] if os.environ.get("ONEPASS_TEST_QUICK") == "1" else COMPILED)
def test_compiled_functions_have_its_gradient(case):
    ours, formula, name, number = CASES[case]
    compiled = torch.compile(lambda z, parameter: ours(z, **{name: parameter}), backend="aot_eager", fullgraph=True)
    z = logits_of()
    torch.testing.assert_close(both(lambda z, **x: compiled(z, x[name]), z, name, number),
                               both(formula, z, name, number))


def test_the_slope_of_q_at_0():
    z = logits_of()
    q = torch.tensor(0.0, dtype=torch.float64, requires_grad=True)
    value = onepass.generalized_cross_entropy(z, LABELS, q=q)
    logs = log_chances(z)
    torch.testing.assert_close(value, -logs.mean())
    torch.testing.assert_close(*torch.autograd.grad(value, q), -(logs ** 2).mean() / 2)


def test_a_softcap_of_0_is_none():
    z = logits_of()
    softcap = torch.tensor(0.0, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(onepass.cross_entropy(z, LABELS, softcap=softcap), cross_entropy(z))


# ------------------------------------------------------------------------ what is refused --

_NEEDS = "requires a gradient, which {0} does not have for it; expected "
REFUSED = {
    "cross_entropy": (lambda x: onepass.cross_entropy(OTHERS, LABELS, label_smoothing=x, temperature=2.0),
                      "label_smoothing of cross_entropy " + _NEEDS.format("cross_entropy")),
    "smoothing": (lambda x: onepass.linear_cross_entropy(OTHERS, WEIGHT, LABELS, label_smoothing=x),
                  "label_smoothing of linear_cross_entropy " + _NEEDS.format("linear_cross_entropy")),
    "z_loss": (lambda x: onepass.linear_cross_entropy(OTHERS, WEIGHT, LABELS, z_loss=x),
               "z_loss of linear_cross_entropy " + _NEEDS.format("linear_cross_entropy")),
    "num_items": (lambda x: onepass.linear_cross_entropy(OTHERS, WEIGHT, LABELS, num_items=x),
                  "num_items of linear_cross_entropy " + _NEEDS.format("linear_cross_entropy")),
    "softcap": (lambda x: onepass.linear_log_prob(OTHERS, WEIGHT, LABELS, softcap=x),
                "softcap of linear_log_prob " + _NEEDS.format("linear_log_prob")),
    "softcap beside it": (lambda x: onepass.linear_log_prob(OTHERS, WEIGHT, LABELS, softcap=2.0, temperature=x),
                          "temperature of linear_log_prob " + _NEEDS.format("linear_log_prob") + "no softcap beside it"),
}
REFUSES = pytest.mark.parametrize("call, words", REFUSED.values(), ids=REFUSED)


@REFUSES
def test_who_has_no_gradient_for_it_says_so(call, words):
    number = torch.tensor(0.5)
    call(number)
    with pytest.raises(TypeError, match=words):
        call(number.requires_grad_())


@REFUSES
def test_and_so_under_transforms(call, words):
    words = words.partition(" requires")[0]
    with pytest.raises(TypeError, match=words):
        torch.func.grad(lambda x: call(x).sum())(torch.tensor(0.5))
    with pytest.raises(TypeError, match=words):
        torch.func.jvp(call, (torch.tensor(0.5),), (torch.tensor(1.0),))
    with pytest.raises(TypeError, match=words):
        torch.func.vmap(call)(torch.tensor([0.5, 0.6]))
    constant = torch.tensor(0.5)  # in the same place it is a number
    torch.func.grad(lambda x: (x * call(constant)).sum())(torch.tensor(1.0))


@pytest.mark.parametrize("case", [case for case in CASES if case != "softmax_focal_loss alpha"])  # one for each class
def test_with_dimensions_it_is_refused(case):
    ours, _, name, number = CASES[case]
    with pytest.raises(TypeError, match="divisor is tensor|of size .2,.; expected a real number, or a tensor without"):
        ours(logits_of(), **{name: torch.tensor([number, number])})


@pytest.fixture
def one_rank():
    dist = pytest.importorskip("torch.distributed")
    pytest.importorskip("onepass.distributed")
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield onepass.distributed
    dist.destroy_process_group()


def test_a_loss_over_ranks_refuses_it(one_rank):
    number, z = torch.tensor(0.5), logits_of()
    for name, called in (("cross_entropy", "temperature"), ("kl_div_with_logits", "temperature"), ("quantile", "tau")):
        target = LABELS if name == "cross_entropy" else OTHERS
        one_rank.loss(name, z, target, **{called: number})
        with pytest.raises(TypeError, match=f"{called} of onepass.distributed.loss requires a gradient"):
            one_rank.loss(name, z, target, **{called: number.clone().requires_grad_()})
    for called in ("temperature", "softcap", "z_loss", "label_smoothing", "divisor"):
        one_rank.vocab_parallel_cross_entropy(z, LABELS, **{called: number})
        with pytest.raises(TypeError, match=f"{called} of vocab_parallel_cross_entropy requires a gradient"):
            one_rank.vocab_parallel_cross_entropy(z, LABELS, **{called: number.clone().requires_grad_()})


def test_modules_train_it():
    z, temperature = logits_of(), torch.nn.Parameter(torch.tensor(0.7, dtype=torch.float64))
    for make, operands, wanted in ((onepass.nn.CrossEntropyLoss, (z, LABELS), cross_entropy(z, temperature)),
                                   (onepass.nn.KLDivWithLogitsLoss, (z, OTHERS), kl_div(z, OTHERS, temperature)),
                                   (onepass.nn.NTXentLoss, (z, OTHERS),
                                    contrast(torch.cat((z, OTHERS)), PAIRS, temperature))):
        module = make(temperature=temperature)
        assert list(module.parameters()) == [temperature]
        torch.testing.assert_close(torch.autograd.grad(module(*operands), temperature),
                                   torch.autograd.grad(wanted, temperature))
