# What is one rule for every loss: which weights broadcast, what numbers a parameter may be, and what value_and_grad
# calls a loss. Each test goes over all of them.
import inspect

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

import onepass
import onepass.nn
import torch.nn.functional as F
from agreement import assert_same_bits
from onepass._catalog import ROWS
from operands import operands_of
from reference import ALL, FUNCTIONS, OTHER_PARAMETERS, OURS, PARAMETER_NAMES, gradients, ours, pytorchs

pytestmark = pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")

ONE_BY_ONE = pytest.mark.parametrize("loss", ALL)


def refuses_other_sizes(loss):
    """PyTorch's function has a weight of its own, and no other size than the input's will do."""
    name = FUNCTIONS[loss][0]
    if not hasattr(F, name) or "weight" not in inspect.signature(pytorchs(name)).parameters:
        return False
    p, t, _ = operands_of(loss)
    try:
        pytorchs(name)(p, t, weight=torch.ones(5))
    except ValueError:
        return True
    return False


@ONE_BY_ONE
def test_a_weight_broadcasts_unless_pytorch_refuses_it(loss):
    """Then broadcast_weight allows it; no other function has that argument."""
    p, t, v = operands_of(loss)
    weight = torch.rand(5) + 0.5
    wanted = ours(loss, p, t, third=v, weight=weight.expand(3, 5).clone())
    strict = refuses_other_sizes(loss)
    assert strict == ("broadcast_weight" in inspect.signature(OURS[loss]).parameters)
    more = {"broadcast_weight": True} if strict else {}
    assert_same_bits(ours(loss, p, t, third=v, weight=weight, **more), wanted)
    assert_same_bits(onepass.value_and_grad(loss, p, t, v, weight=weight, **more)[0], wanted)
    arrays = [None if x is None else x.numpy() for x in (p, t, v)]
    got = ours(loss, *arrays[:2], third=arrays[2], weight=weight.numpy(), **more)
    assert_same_bits(torch.from_numpy(np.asarray(got)), wanted)
    if strict:
        with pytest.raises(ValueError, match="Weights and input must have the same size."):
            ours(loss, p, t, third=v, weight=weight)


@pytest.fixture
def nothing_for_pytorch(monkeypatch):
    """Whatever would fall back to PyTorch fails."""
    from onepass import _fallback

    def refuse(*arguments, **given):
        raise AssertionError("left for PyTorch")

    for name in ("loss", "answer", "gradients"):
        monkeypatch.setattr(_fallback, name, refuse)


@pytest.mark.usefixtures("nothing_for_pytorch")
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16, np.longdouble, np.int64, np.bool_, int, bool])
@pytest.mark.parametrize("loss", PARAMETER_NAMES)
def test_any_number_is_a_parameter(loss, kind):
    """Of Python's or NumPy's: with the bits of the float that it is, and by the library."""
    is_float = issubclass(kind, np.floating)
    if loss == "quantile" and not is_float:
        return  # which are between 0 and 1
    given = tuple(kind(number if is_float else 1) for number in np.atleast_1d(OTHER_PARAMETERS[loss]))
    numbers = tuple(map(float, given))
    p, t, v = operands_of(loss)
    wanted = gradients(ours, loss, p, t, third=v, parameter=numbers)
    for mine, peer in zip(gradients(ours, loss, p, t, third=v, parameter=given), wanted):
        assert_same_bits(mine, peer)
    value, gradient = onepass.value_and_grad(loss, p, t, v, **dict(zip(PARAMETER_NAMES[loss], given)))
    assert_same_bits(value, wanted[0])
    assert_same_bits(gradient, wanted[1])
    arrays = [None if x is None else x.numpy() for x in (p, t, v)]
    got = ours(loss, *arrays[:2], third=arrays[2], parameter=given)
    assert_same_bits(torch.from_numpy(np.asarray(got)), wanted[0])


@pytest.mark.usefixtures("nothing_for_pytorch")
def test_any_number_is_a_variance():
    p, t, _ = operands_of("gaussian_nll")
    wanted = onepass.gaussian_nll_loss(p, t, 2.0)
    for kind in (int, np.float64, np.float32, np.int64):
        assert_same_bits(onepass.gaussian_nll_loss(p, t, kind(2)), wanted)
        got = onepass.gaussian_nll_loss(p.numpy(), t.numpy(), kind(2))
        assert_same_bits(torch.from_numpy(np.asarray(got)), wanted)
        assert_same_bits(onepass.value_and_grad("gaussian_nll", p, t, kind(2))[0], wanted)
        with pytest.raises(ValueError, match="var has negative entry/entries"):
            onepass.gaussian_nll_loss(p, t, kind(-2))


@pytest.mark.parametrize("loss", PARAMETER_NAMES)
def test_a_number_of_numpys_is_refused_like_pythons(loss):
    """Where the library takes no such number, what is said does not depend on whose number it is."""
    p, t, v = operands_of(loss)
    names = PARAMETER_NAMES[loss]
    for index, name in enumerate(names):
        known = next(info for info in onepass.losses() if info["name"] == loss)["parameters"][index]
        for end, step in (("minimum", -1.0), ("maximum", 1.0)):
            if loss == "focal_squared" or abs(known[end]) == float("inf"):
                continue
            said, beyond = [], float(np.float32(known[end] + step * max(1, abs(known[end]))))  # the same of all kinds
            for kind in (float, np.float64, np.float32):
                try:
                    said.append(str(ours(loss, p, t, third=v, **{name: kind(beyond)})))
                except (ValueError, RuntimeError) as error:
                    said.append(str(error))
            assert len(set(said)) == 1, said


@ONE_BY_ONE
def test_value_and_grad_knows_every_functions_name(loss):
    """With that function's arguments; the catalogue's name is as good."""
    p, t, v = operands_of(loss)
    function, fixed = FUNCTIONS[loss]
    parameter = OTHER_PARAMETERS.get(loss, ())
    parameters = dict(zip(PARAMETER_NAMES.get(loss, ()), parameter if isinstance(parameter, tuple) else (parameter,)))
    if loss == "focal_squared":
        parameters["gamma"] = 2.0
    value, gradient = onepass.value_and_grad(function, p, t, v, **fixed, **parameters)
    parameters.pop("gamma" if loss == "focal_squared" else "", None)
    same, slope = onepass.value_and_grad(loss, p, t, v, **parameters)
    assert_same_bits(value, same)
    assert_same_bits(gradient, slope)
    arrays = [None if x is None else x.numpy() for x in (p, t, v)]
    assert_same_bits(torch.from_numpy(onepass.value_and_grad(function, *arrays, **fixed, **parameters)[1]), gradient)


def test_every_function_of_two_operands_has_a_name():
    others = {"Accumulator", "distributed", "losses", "row_losses", "vector_losses", "machine", "nn", "patch_torch",
              "value_and_grad"}
    others |= {*ROWS, "linear", *onepass.linear.__all__, *onepass.margins.__all__, *onepass.regions.__all__,
               *onepass.vectors.__all__, *onepass.distributions.__all__}
    assert {function for function, _ in FUNCTIONS.values()} == set(onepass.__all__) - others
