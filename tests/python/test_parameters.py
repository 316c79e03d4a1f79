# The parameters of the losses: any real number will do, whoever's it is, and what is refused is refused in the same
# words whatever kind of number it is.
import re
from decimal import Decimal
from fractions import Fraction

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

import onepass

from agreement import assert_same_bits
from operands import operands_of
from reference import FUNCTIONS, OTHER_PARAMETERS, PARAMETER_NAMES, PYTORCHS, ours, values_of

#: Numbers of every kind that are known on the host.
KINDS = {
    "float": float,
    "float32": np.float32,
    "array": np.array,
    "fraction": Fraction,
    "decimal": Decimal,
    "tensor": torch.tensor,
    "tensor64": lambda number: torch.tensor(number, dtype=torch.float64),
    "parameter": lambda number: torch.nn.Parameter(torch.tensor(number)),
}
KIND = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)

#: What a loss does not take, and what is said: the parameter, the function that was called, the number, the range.
REFUSED = [
    ("quantile", {"tau": 3.0}, "tau of quantile_loss is 3; expected above 0 and below 1"),
    ("quantile", {"tau": float("nan")}, "tau of quantile_loss is nan; expected above 0 and below 1"),
    ("quantile", {"tau": 1 + 2**-20}, "tau of quantile_loss is 1.0000009536743164; expected above 0 and below 1"),
    ("charbonnier", {"eps": -1.0}, "eps of charbonnier_loss is -1; expected at least 0"),
    ("epsilon_insensitive", {"eps": -0.5}, "eps of epsilon_insensitive_loss is -0.5; expected at least 0"),
    ("mape", {"eps": 0.0}, "eps of mape_loss is 0; expected above 0"),
    ("focal", {"alpha": 3.0}, "alpha of sigmoid_focal_loss is 3; expected at most 1"),
    ("focal", {"alpha": 3.0, "gamma": 1.5}, "alpha of sigmoid_focal_loss is 3; expected at most 1"),
    ("focal", {"gamma": -1.0}, "gamma of sigmoid_focal_loss is -1; expected at least 0 and at most 1e+30"),
]


def both_sides(loss):
    """The operands as tensors and as arrays."""
    tensors = operands_of(loss)
    return tensors, [None if tensor is None else tensor.numpy() for tensor in tensors]


def given_as(kind, given):
    """In numbers of a kind; there is no fraction that is NaN."""
    return {name: number if kind is Fraction and number != number else kind(number) for name, number in given.items()}


@KIND
@pytest.mark.parametrize("loss, given, words", REFUSED, ids=str)
def test_out_of_range_in_the_same_words(loss, given, words, kind):
    given = given_as(kind, given)
    for p, t, _ in both_sides(loss):
        with pytest.raises(ValueError) as refused:
            ours(loss, p, t, **given)
        assert str(refused.value) == words
        with pytest.raises(ValueError) as refused:
            onepass.value_and_grad(FUNCTIONS[loss][0], p, t, **given)
        assert str(refused.value) == words


@KIND
@pytest.mark.parametrize("loss, given, words", REFUSED, ids=str)
def test_a_module_refuses_it_when_it_is_made(loss, given, words, kind):
    module = "SigmoidFocalLoss" if loss == "focal" else onepass.nn.module_name(loss)
    with pytest.raises(ValueError, match=re.escape(words)):
        getattr(onepass.nn, module)(**given_as(kind, given))


@pytest.mark.parametrize("kind", [KINDS[name] for name in KINDS if name != "parameter"])
@pytest.mark.parametrize("loss, name", [(loss, name) for loss in PYTORCHS for name in PARAMETER_NAMES.get(loss, ())
                                        if name != "full"], ids=str)
def test_pytorchs_answer_does_not_depend_on_the_kind(loss, name, kind):
    """Of its own functions it says what is wrong, or takes what the library would not. (What requires a gradient is no
    parameter to it.)"""

    def answer(number):
        try:
            return repr(ours(loss, p, t, third=v, **{name: number}).item())
        except (ValueError, RuntimeError) as error:
            return str(error)

    p, t, v = operands_of(loss)
    for number in (-1.0, 0.0):
        assert answer(kind(number)) == answer(number)


@pytest.mark.parametrize("kind", [KINDS[name] for name in ("array", "fraction", "decimal", "tensor64")])
@pytest.mark.parametrize("loss", PARAMETER_NAMES)
def test_every_kind_of_number_is_that_number(loss, kind):
    """Bit-identical to the float that it is."""
    (p, t, v), (a, b, c) = both_sides(loss)
    numbers = values_of(OTHER_PARAMETERS[loss])
    names = PARAMETER_NAMES[loss]
    if "full" in names:
        numbers, names = numbers[1:], names[1:]
    plain, given = dict(zip(names, map(float, numbers))), dict(zip(names, map(kind, map(float, numbers))))
    assert_same_bits(ours(loss, p, t, third=v, **given), ours(loss, p, t, third=v, **plain))
    assert_same_bits(torch.as_tensor(ours(loss, a, b, third=c, **given)), ours(loss, p, t, third=v, **plain))
    if loss == "focal_squared":
        return
    for side in ((p, t, v), (a, b, c)):
        got = onepass.value_and_grad(FUNCTIONS[loss][0], *side, **FUNCTIONS[loss][1], **given)
        wanted = onepass.value_and_grad(FUNCTIONS[loss][0], *side, **FUNCTIONS[loss][1], **plain)
        assert [np.asarray(x).tobytes() for x in got] == [np.asarray(x).tobytes() for x in wanted]


@pytest.mark.parametrize("number", [1j, np.complex64(0.5), np.array(0.5j), torch.tensor(0.5 + 0j), "half", None,
                                    [0.5], np.array([0.5, 0.5])], ids=repr)
@pytest.mark.parametrize("loss", [loss for loss in PARAMETER_NAMES if loss != "focal_squared"])
def test_what_is_no_real_number_is_refused(loss, number):
    for p, t, v in both_sides(loss):
        name = PARAMETER_NAMES[loss][-1]
        with pytest.raises(TypeError, match=f"{name} of {FUNCTIONS[loss][0]} is .*; expected a real number"):
            ours(loss, p, t, third=v, **{name: number})


@pytest.mark.parametrize("number", [10**400, -10**400])
def test_an_integer_beyond_every_float_is_refused(number):
    for p, t, _ in both_sides("quantile"):
        with pytest.raises(OverflowError, match="tau of quantile_loss is an integer beyond the largest double"):
            onepass.quantile_loss(p, t, tau=number)
        with pytest.raises(OverflowError, match="margin of hinge_loss|too large"):
            onepass.hinge_loss(p, t, margin=number)


@pytest.mark.parametrize("value", ["no", None, 1, np.str_("no")])
def test_a_flag_is_a_bool(value):
    rows, labels, triplet = torch.rand(4, 5), torch.arange(4), torch.rand(3, 4, 5)
    calls = {"swap": [lambda **flag: onepass.triplet_margin_loss(*triplet, **flag),
                      lambda **flag: onepass.triplet_margin_loss(*triplet.numpy(), **flag)],
             "log_input": [lambda **flag: onepass.poisson_nll_loss(rows, rows, **flag)],
             "full": [lambda **flag: onepass.poisson_nll_loss(rows.numpy(), rows.numpy(), **flag)],
             "log_target": [lambda **flag: onepass.kl_div(rows, rows, reduction="sum", **flag)],
             "reverse": [lambda **flag: onepass.kl_div_with_logits(rows, rows, **flag)],
             "inplace": [lambda **flag: onepass.cross_entropy(rows, labels, **flag),
                         lambda **flag: onepass.log_prob(rows, labels, **flag)],
             "return_lse": [lambda **flag: onepass.cross_entropy(rows, labels, **flag)],
             "return_entropy": [lambda **flag: onepass.log_prob(rows, labels, **flag)]}
    for name, functions in calls.items():
        for function in functions:
            with pytest.raises(TypeError, match=re.escape(f"{name} is {value!r}; expected True or False")):
                function(**{name: value})
            function(**{name: np.bool_(False)})


def test_every_element_of_a_tensor_is_looked_at():
    p, t, _ = operands_of("quantile", (4, 3))
    tau = torch.tensor([0.1, 0.5, 0.9])
    assert_same_bits(onepass.quantile_loss(p, t, tau=tau, reduction="none")[:, 1],
                     onepass.quantile_loss(p[:, 1], t[:, 1], tau=0.5, reduction="none"))
    with pytest.raises(ValueError, match="tau of quantile_loss is 3; expected above 0 and below 1"):
        onepass.quantile_loss(p, t, tau=torch.tensor([0.1, 0.5, 3.0]))


def test_a_gradient_flows_to_a_tensor_that_asks_for_one():
    p, t, _ = operands_of("charbonnier")
    eps = torch.tensor(0.5, requires_grad=True)
    onepass.charbonnier_loss(p, t, eps=eps).backward()
    slope = (eps.detach() / ((p - t).square() + 0.25).sqrt()).mean()
    torch.testing.assert_close(eps.grad, slope)


def test_transforms_of_a_parameter_are_left_alone():
    """Its numbers cannot be looked at there."""
    p, t, _ = operands_of("quantile")
    taus = torch.tensor([0.25, 0.75])
    got = torch.func.vmap(lambda tau: onepass.quantile_loss(p, t, tau=tau))(taus)
    torch.testing.assert_close(got, torch.stack([onepass.quantile_loss(p, t, tau=float(tau)) for tau in taus]))


@pytest.mark.gpu
def test_nobody_waits_for_a_gpu_to_look_at_a_parameter():
    p, t, _ = operands_of("quantile", device="cuda")
    tau = torch.tensor(0.25, device="cuda")
    torch.cuda.set_sync_debug_mode("error")
    try:
        value = onepass.quantile_loss(p, t, tau=tau)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    torch.testing.assert_close(value, onepass.quantile_loss(p, t, tau=0.25))


def test_a_compiled_function_names_the_function_too():
    p, t, _ = operands_of("focal")
    compiled = torch.compile(lambda p, t, alpha: onepass.sigmoid_focal_loss(p, t, alpha=alpha, reduction="mean"),
                             backend="aot_eager")
    with pytest.raises(ValueError, match="alpha of sigmoid_focal_loss is 3; expected at most 1"):
        compiled(p, t, 3.0)


# ----------------------------------------------------------------- reductions --


@pytest.mark.parametrize("name", [*onepass.functional.GENERATED, "hinge"])
def test_a_module_knows_its_reductions_when_it_is_made(name):
    make = getattr(onepass.nn, onepass.nn.module_name(name))
    with pytest.raises(ValueError, match="bogus is not a valid value for reduction"):
        make(reduction="bogus")
    for reduction in ("mean", "sum", "none", "batchmean"):
        assert make(reduction=reduction).reduction == reduction


def test_so_does_the_focal_module():
    for reduction in ("bogus", "batchmean", "elementwise_mean"):
        with pytest.raises(ValueError, match=f"Invalid Value for arg 'reduction': '{reduction}"):
            onepass.nn.SigmoidFocalLoss(reduction=reduction)


# -------------------------------------------------------------- the variance --


@pytest.mark.parametrize("number", [-1, -1.0, np.float32(-1)], ids=repr)
def test_a_negative_variance_that_a_mask_leaves_out(number):
    """A number is a variance for every element, and refused if one of them takes part."""
    for p, t, _ in both_sides("gaussian_nll"):
        mask = p != p
        assert onepass.gaussian_nll_loss(p, t, number, mask=mask, reduction="sum") == 0
        assert onepass.value_and_grad("gaussian_nll", p, t, number, mask=mask, reduction="sum")[0] == 0
        mask[0, 0] = True
        for given in ({}, {"mask": mask}):
            with pytest.raises(ValueError, match="var has negative entry/entries"):
                onepass.gaussian_nll_loss(p, t, number, **given)
