# What help() says: a signature with every argument explained, and formulas that are Python and compute the loss.
import inspect
import math
import random
import re

import pytest

np = pytest.importorskip("numpy")

import onepass

LOSSES = [name for name in onepass.functional.__all__ if name != "value_and_grad"]
OVER_ROWS = [*onepass._catalog.ROWS]
BETWEEN_0_AND_1 = {"binary_cross_entropy", "binary_cross_entropy_with_logits", "sigmoid_focal_loss", "poisson_nll_loss",
                   "gaussian_nll_loss", "kl_div", "msle_loss", "relative_entropy_loss", "gamma_deviance_loss",
                   "tweedie_deviance_loss"}
FORMULA = re.compile(r"^    (\w+ = .*)$", re.MULTILINE)


def formulas():
    """Every formula of every function of elements, with the arguments for which it holds."""
    for name in LOSSES:
        if name in OVER_ROWS:
            continue
        for line in FORMULA.findall(getattr(onepass, name).__doc__):
            if line.startswith("loss = "):
                words, _, when = line.partition("  # with ")
                yield pytest.param(name, words, when, id=f"{name} {when}".strip())


def arguments_of(function):
    return inspect.signature(function).parameters


def operands_of(function):
    return [name for name, argument in arguments_of(function).items() if argument.default is argument.empty]


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")
@pytest.mark.parametrize("name, formula, when", list(formulas()))
def test_formulas_are_python_and_compute_the_loss(name, formula, when):
    function = getattr(onepass, name)
    before = "\n".join(line for line in FORMULA.findall(function.__doc__) if not line.startswith("loss = "))
    given, operands = {}, operands_of(function)
    if when == "pos_weight":
        operands.append("pos_weight")
    else:
        exec(f"given = dict({when})", scope := {})
        given = scope["given"]
    numbers = {key: value.default for key, value in arguments_of(function).items() if value.default is not value.empty}
    for _ in range(50):
        ends = (0.05, 0.95) if name in BETWEEN_0_AND_1 else (-3, 3)
        values = {operand: random.uniform(*ends) for operand in operands}
        if name in ("hinge_embedding_loss", "margin_ranking_loss", "hinge_loss", "soft_margin_loss"):
            values[operands[-1]] = random.choice([-1.0, 1.0])
        elif name == "poisson_nll_loss":
            values["target"] = random.uniform(0, 4)
        scope = {**vars(math), "pow": pow, **numbers, **given, **values}
        exec(f"{before}\n{formula}", scope)
        arrays = {operand: np.array([value]) for operand, value in values.items()}
        found = function(**arrays, **given, reduction="none")
        assert math.isclose(found[0], scope["loss"], rel_tol=1e-9, abs_tol=1e-12)


@pytest.mark.parametrize("kind", ["labels", "probabilities"])
@pytest.mark.parametrize("name", OVER_ROWS)
def test_formulas_over_rows_are_numpys_and_compute_the_loss(name, kind):
    function, rng = getattr(onepass, name), np.random.default_rng(94)
    lines = FORMULA.findall(function.__doc__)
    found = [line for line in lines if line.startswith("loss = ") and ("#" in line) == (kind == "probabilities")]
    assert len(found) == (name == "cross_entropy" or kind == "labels")
    before = [line for line in lines if not line.startswith("loss = ")]
    given = {"z_loss": 0.25, "label_smoothing": 0.125} if name == "cross_entropy" else {}
    for formula in found:
        for _ in range(20):
            row, weight = rng.normal(size=7), rng.uniform(size=7) if name != "log_prob" else None
            target = rng.uniform(size=7) if kind == "probabilities" else np.asarray(rng.integers(7))
            scope = {**vars(np), "pow": pow,
                     **{key: one.default for key, one in arguments_of(function).items() if type(one.default) is float},
                     **given, "input": row, "logits": row, "target": target, "labels": target, "weight": weight}
            exec("\n".join([*before, formula]), scope)
            more = {} if weight is None else {"weight": weight, "reduction": "none"}
            assert math.isclose(function(row, target, **more, **given), scope["loss"], rel_tol=1e-9, abs_tol=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_every_argument_is_explained(name):
    function = getattr(onepass, name)
    explained = re.findall(r"^(\w+): \S", function.__doc__, re.MULTILINE)
    assert explained == list(arguments_of(function))
    assert not re.search(r"those of \w+_loss", function.__doc__)


def test_modules_have_formula_and_arguments():
    pytest.importorskip("torch")
    for name in onepass.nn.__all__:
        module = getattr(onepass.nn, name)
        function = getattr(onepass, re.search(r"onepass\.(\w+)", module.__doc__)[1])
        assert FORMULA.findall(module.__doc__) == FORMULA.findall(function.__doc__) != []
        assert re.findall(r"^(\w+): \S", module.__doc__, re.MULTILINE) == list(arguments_of(module))
