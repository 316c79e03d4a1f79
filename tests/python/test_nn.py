# The modules: PyTorch's arguments, repr, attributes and results, and weights in forward.
import copy
import inspect
import pickle

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")

import onepass
import onepass.nn

from agreement import Outcome, assert_near_pytorch, assert_same_bits, assert_same_outcome
from reference import REDUCTIONS, ours, theirs

PAIRS = {"MSELoss": torch.nn.MSELoss, "SmoothL1Loss": torch.nn.SmoothL1Loss}
NAMES = {"MSELoss": "mse", "SmoothL1Loss": "smooth_l1", "HingeLoss": "hinge"}


@pytest.mark.parametrize("name", NAMES)
def test_they_are_modules(name):
    module = getattr(onepass.nn, name)()
    assert isinstance(module, torch.nn.Module)
    assert repr(module) == ("HingeLoss(margin=1.0, reduction='mean')" if name == "HingeLoss" else f"{name}()")
    assert module.reduction == "mean"
    assert list(module.parameters()) == [] and module.state_dict() == {}


@pytest.mark.parametrize("name", PAIRS)
def test_arguments_are_pytorchs(name):
    wanted = {key: value.default for key, value in inspect.signature(PAIRS[name]).parameters.items()}
    got = {key: value.default for key, value in inspect.signature(getattr(onepass.nn, name)).parameters.items()}
    assert got == wanted


@pytest.mark.parametrize(
    "given", [{}, {"reduction": "sum"}, {"reduction": "none"}, {"size_average": False}, {"reduce": False}], ids=str
)
@pytest.mark.parametrize("name", PAIRS)
def test_results_and_warnings_are_pytorchs(name, given):
    p, t = torch.randn(4, 5, requires_grad=True), torch.randn(4, 5)
    mine, peer = Outcome(getattr(onepass.nn, name), **given), Outcome(PAIRS[name], **given)
    assert mine.warnings == peer.warnings
    assert mine.result.reduction == peer.result.reduction
    assert repr(mine.result) == repr(peer.result)
    assert_same_outcome(Outcome(mine.result, p, t), Outcome(peer.result, p, t))
    assert_near_pytorch(*(torch.autograd.grad(module(p, t).sum(), p)[0] for module in (mine.result, peer.result)))


@pytest.mark.parametrize("name", PAIRS)
def test_unequal_shapes_and_bad_reductions(name):
    p, t = torch.randn(4, 5), torch.randn(5)
    assert_same_outcome(Outcome(getattr(onepass.nn, name)(), p, t), Outcome(PAIRS[name](), p, t))
    assert_same_outcome(
        Outcome(getattr(onepass.nn, name)(reduction="bad"), p, p), Outcome(PAIRS[name](reduction="bad"), p, p)
    )


@pytest.mark.parametrize("beta", [0.0, 0.5, 3])
def test_beta(beta):
    p, t = torch.randn(4, 5), torch.randn(4, 5)
    module = onepass.nn.SmoothL1Loss(beta=beta)
    assert module.beta == beta
    assert_near_pytorch(module(p, t), torch.nn.SmoothL1Loss(beta=beta)(p, t))


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_hinge(reduction):
    p, t = torch.randn(4, 5), torch.randn(4, 5)
    module = onepass.nn.HingeLoss(margin=0.5, reduction=reduction)
    assert module.margin == 0.5 and module.reduction == reduction
    assert_near_pytorch(module(p, t), theirs("hinge", p, t, reduction, 0.5))
    assert_near_pytorch(onepass.nn.HingeLoss(2.0, reduction)(p, t), theirs("hinge", p, t, reduction, 2.0))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", ["MSELoss", "HingeLoss"])
def test_weight_in_forward(name, reduction):
    p, t, weight = torch.randn(4, 5), torch.randn(4, 5), torch.rand(4, 5)
    module = getattr(onepass.nn, name)(reduction=reduction)
    for got in (module(p, t, weight), module(p, t, weight=weight), module(input=p, target=t, weight=weight)):
        assert_same_bits(got, ours(NAMES[name], p, t, reduction, weight=weight))
    assert_near_pytorch(module(p, t, weight), theirs(NAMES[name], p, t, reduction, weight=weight))
    if name == "HingeLoss":
        assert_same_bits(module(p, t, weight[0]), module(p, t, weight[0].expand(4, 5).clone()))
        return
    with pytest.raises(ValueError, match="Weights and input must have the same size."):
        module(p, t, weight[0])


@pytest.mark.parametrize("name", NAMES)
def test_they_copy_and_pickle(name):
    p, t = torch.randn(4, 5), torch.randn(4, 5)
    module = getattr(onepass.nn, name)(reduction="sum")
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert_same_bits(other(p, t), module(p, t))


@pytest.mark.parametrize("name", NAMES)
def test_inside_a_sequential_with_hooks(name):
    seen = []
    module = getattr(onepass.nn, name)()
    module.register_forward_hook(lambda _, arguments, result: seen.append(result))
    model = torch.nn.ModuleDict({"loss": module, "layer": torch.nn.Linear(5, 5)}).double()
    p = torch.randn(4, 5, dtype=torch.float64)
    model["loss"](model["layer"](p), p).backward()
    assert len(seen) == 1 and seen[0].dtype == torch.float64 and model["layer"].weight.grad is not None


# ------------------------------------------------------- modules that PyTorch lacks --

MADE = {info["name"]: info["parameters"] for info in onepass.losses() if info["name"] in onepass.functional.GENERATED}
OWN = {**MADE, "hinge": [{"name": "margin", "default": 1.0}],
       "focal": [{"name": "alpha", "default": 0.25}, {"name": "gamma", "default": 2}]}


def own_module(name):
    return onepass.nn.SigmoidFocalLoss if name == "focal" else getattr(onepass.nn, onepass.nn.module_name(name))


@pytest.mark.parametrize("name", OWN)
def test_parameters_by_position_and_by_name(name):
    values = [max(0.3 + 0.1 * k, parameter.get("minimum", 0)) for k, parameter in enumerate(OWN[name])]
    given = {parameter["name"]: value for parameter, value in zip(OWN[name], values)}
    by_position, by_name = own_module(name)(*values, "sum"), own_module(name)(**given, reduction="sum")
    assert by_position.reduction == by_name.reduction == "sum"
    for key, value in given.items():
        assert getattr(by_position, key) == getattr(by_name, key) == value
    p, t = torch.rand(3, 4), torch.rand(3, 4)
    function = onepass.sigmoid_focal_loss if name == "focal" else getattr(onepass, f"{name}_loss")
    assert_same_bits(by_position(p, t), function(p, t, **given, reduction="sum"))


@pytest.mark.parametrize("name", OWN)
def test_parameters_are_shown(name):
    module = own_module(name)
    values = {parameter["name"]: parameter["default"] for parameter in OWN[name]}
    reduction = "none" if name == "focal" else "mean"
    shown = ", ".join(f"{key}={value!r}" for key, value in {**values, "reduction": reduction}.items())
    assert repr(module()) == f"{module.__name__}({shown})"
    assert repr(copy.deepcopy(module())) == repr(pickle.loads(pickle.dumps(module()))) == repr(module())


def test_a_changed_parameter_is_shown():
    module = onepass.nn.QuantileLoss(0.3)
    module.tau = 0.75
    assert repr(module) == "QuantileLoss(tau=0.75, reduction='mean')"


@pytest.mark.parametrize("make, error, words", [
    (lambda: onepass.nn.QuantileLoss(3), ValueError, "tau of quantile_loss is 3; expected above 0 and below 1"),
    (lambda: onepass.nn.QuantileLoss(tau=float("nan")), ValueError, "tau of quantile_loss is nan"),
    (lambda: onepass.nn.CharbonnierLoss(-1.0), ValueError, "eps of charbonnier_loss is -1; expected at least 0"),
    (lambda: onepass.nn.MapeLoss(eps=0), ValueError, "eps of mape_loss is 0; expected above 0"),
    (lambda: onepass.nn.SigmoidFocalLoss(0.25, -1), ValueError, "gamma of sigmoid_focal_loss is -1; expected at least 0"),
    (lambda: onepass.nn.QuantileLoss("sum"), TypeError, "tau of quantile_loss is str; expected a real number"),
    (lambda: onepass.nn.HingeLoss(None), TypeError, "margin of hinge_loss is NoneType; expected a real number"),
    (lambda: onepass.nn.QuantileLoss(quantile=0.5), TypeError, "quantile"),
])
def test_parameters_are_checked_when_a_module_is_made(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_a_parameter_may_be_a_tensor():
    eps, p = torch.tensor(0.5, requires_grad=True), torch.rand(3, 4)
    onepass.nn.CharbonnierLoss(eps)(p, torch.rand(3, 4)).backward()
    assert eps.grad is not None
