# The contract of those functions of torch.nn.functional that the losses beside mse and smooth_l1 stand in for: ours
# beside PyTorch's own in signatures, sizes, types, reductions, deprecated arguments, parameters, warnings and errors.
import inspect

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")

import onepass
import onepass.nn
import torch.nn.functional as F
from agreement import Outcome, assert_near_pytorch, assert_same_outcome
from operands import operands_of
from reference import pytorchs

NAMES = [
    "l1_loss",
    "huber_loss",
    "soft_margin_loss",
    "hinge_embedding_loss",
    "margin_ranking_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "poisson_nll_loss",
    "gaussian_nll_loss",
    "kl_div",
]
LOSS_OF = {
    "l1_loss": "l1",
    "huber_loss": "huber",
    "soft_margin_loss": "soft_margin",
    "hinge_embedding_loss": "hinge_embedding",
    "margin_ranking_loss": "margin_ranking",
    "binary_cross_entropy": "bce",
    "binary_cross_entropy_with_logits": "bce_with_logits",
    "poisson_nll_loss": "poisson_nll",
    "gaussian_nll_loss": "gaussian_nll",
    "kl_div": "kl_div",
}
MODULES = [
    "L1Loss",
    "HuberLoss",
    "SoftMarginLoss",
    "HingeEmbeddingLoss",
    "MarginRankingLoss",
    "BCELoss",
    "BCEWithLogitsLoss",
    "PoissonNLLLoss",
    "GaussianNLLLoss",
    "KLDivLoss",
]
EVERY = pytest.mark.parametrize("name", NAMES)


def operands(name, shape=(3, 5), dtype=torch.float32, device="cpu"):
    return [x for x in operands_of(LOSS_OF[name], shape, dtype, device) if x is not None]


def outcomes(name, *arguments, same_text=True, **given):
    """Ours and PyTorch's of one call, which must be the same."""
    mine, peer = (Outcome(function, *arguments, **given) for function in (getattr(onepass, name), pytorchs(name)))
    assert_same_outcome(mine, peer, same_text)
    return mine


@EVERY
def test_signature(name):
    """PyTorch's, and behind it what is ours, by keyword alone. Old versions lack some weights."""
    mine, theirs = (inspect.signature(getattr(space, name)).parameters for space in (onepass, F))
    ours_by_position = {key: value.default for key, value in mine.items() if value.kind is not value.KEYWORD_ONLY}
    wanted = {key: value.default for key, value in theirs.items()}
    if name in ("l1_loss", "huber_loss"):
        wanted.setdefault("weight", None)
    assert list(ours_by_position.items()) == list(wanted.items())
    assert "mask" in mine and "weight" in mine


@EVERY
def test_by_position_and_by_name(name):
    tensors = operands(name)
    named = dict(zip(inspect.signature(getattr(F, name)).parameters, tensors))
    outcomes(name, *tensors, reduction="sum")
    mine, peer = (getattr(space, name)(**named, reduction="sum") for space in (onepass, F))
    assert_near_pytorch(mine, peer, tolerance=1e-5)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum", "bad", "elementwise_mean", "batchmean", "", 1])
@EVERY
def test_reductions(name, reduction):
    if reduction == 1 and name in ("poisson_nll_loss", "gaussian_nll_loss"):
        return  # PyTorch stumbles over adding text to it
    outcomes(name, *operands(name), reduction=reduction)


@pytest.mark.parametrize("size_average, reduce", [(False, None), (None, False), (True, True), (False, False)])
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("huber_loss", "gaussian_nll_loss")])
def test_deprecated_arguments(name, size_average, reduce):
    for more in ({}, {"reduction": "sum"}, {"reduction": "bad"}):
        outcomes(name, *operands(name), size_average=size_average, reduce=reduce, **more)


SHAPES = [
    ((4, 3), (3,)),
    ((3,), (4, 3)),
    ((4, 1), (1, 3)),
    ((4, 3), ()),
    ((4, 3), (4,)),
    ((2, 3), (2, 2)),
    ((0, 3), (2, 3)),
]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@EVERY
def test_sizes_that_differ(name, shapes):
    """Broadcast, warned of or refused, as PyTorch does it."""
    first, second = torch.rand(shapes[0]), torch.ones(shapes[1])
    third = [torch.ones_like(first)] if len(operands(name)) == 3 else []
    for reduction in ("mean", "none", "bad"):
        outcomes(name, first, second, *third, reduction=reduction)


@pytest.mark.parametrize("name", ["l1_loss", "huber_loss"])
def test_the_warning_of_sizes_names_the_callers_line(name):
    got = Outcome(lambda: getattr(onepass, name)(torch.rand(4, 3), torch.rand(3)))
    assert got.files == [__file__]


def test_the_warning_of_kl_divs_mean():
    p, t = operands("kl_div")
    got = Outcome(lambda: onepass.kl_div(p, t))
    assert got.files == [__file__] and "batchmean" in got.warnings[0][1]
    for given in ({"reduction": "batchmean"}, {"reduction": "sum"}):
        assert Outcome(onepass.kl_div, p, t, **given).warnings == []


@pytest.mark.parametrize(
    "types", [(torch.float32, torch.int64), (torch.int64, torch.int64), (torch.complex64, torch.complex64)], ids=str
)
@EVERY
def test_types_that_are_not_ours(name, types):
    tensors = [torch.ones(3, 4).to(dtype) for dtype in (*types, types[0])][: len(operands(name))]
    outcomes(name, *tensors, same_text=False)


@pytest.mark.parametrize("name", ["poisson_nll_loss", "kl_div", "hinge_embedding_loss"])
def test_a_number_beside_tensors_has_no_say_in_the_type(name):
    """Where PyTorch does not broadcast first."""
    first, second, *_ = operands(name)
    for arguments in ((first, second[0, 0].double()), (first[0, 0].double(), second)):
        outcomes(name, *arguments, reduction="sum")


@pytest.mark.parametrize(
    "name, given",
    [
        *(("huber_loss", {"delta": x}) for x in (0, -1.0, float("nan"), float("inf"), True, "a", None, 0.3)),
        *(("hinge_embedding_loss", {"margin": x}) for x in (0, -1.0, float("inf"), True, 2)),
        *(("margin_ranking_loss", {"margin": x}) for x in (0, -1.0, float("inf"), True, 2)),
        *(("poisson_nll_loss", {"eps": x, "log_input": False}) for x in (0, 0.5, True)),
        *(("poisson_nll_loss", {"log_input": a, "full": b}) for a in (False, True) for b in (False, True)),
        *(("gaussian_nll_loss", {"eps": x}) for x in (0, 0.5, -1.0)),
        *(("gaussian_nll_loss", {"full": x}) for x in (True, False, 1)),
        *(("kl_div", {"log_target": x, "reduction": "sum"}) for x in (True, False)),
    ],
    ids=str,
)
def test_parameters(name, given):
    outcomes(name, *operands(name), same_text=not isinstance(list(given.values())[0], (str, type(None))), **given)


@pytest.mark.parametrize("shape", [(3, 5), (5,), (3, 1), (), (1,), (3,), (2, 3, 5), (1, 3, 5)], ids=str)
@pytest.mark.parametrize("name", ["binary_cross_entropy", "binary_cross_entropy_with_logits", "l1_loss", "huber_loss"])
def test_weights(name, shape):
    for dtype in (torch.float32, torch.float64, torch.int64):
        if dtype == torch.float64 and not name.startswith("binary"):
            continue  # ours is then computed in double, and PyTorch's rounded to float before
        weight = (torch.rand(shape) * 4 + 1).to(dtype)
        for reduction in ("none", "mean", "sum"):
            outcomes(name, *operands(name), weight=weight, reduction=reduction, same_text=False)


@pytest.mark.parametrize("shape", [(3, 5), (5,), (3, 1), (), (3,), (2, 3, 5)], ids=str)
def test_pos_weight(shape):
    p, t = operands("binary_cross_entropy_with_logits")
    for dtype in (torch.float32, torch.float64, torch.int64):
        for weight in (None, torch.rand(3, 5)):
            pos_weight = (torch.rand(shape) * 4 + 1).to(dtype)
            outcomes("binary_cross_entropy_with_logits", p, t, weight=weight, pos_weight=pos_weight, same_text=False)


def test_bce_complains_on_the_cpu():
    """Of numbers outside of [0, 1], where a look at the result tells."""
    p, t = torch.rand(3, 5), torch.rand(3, 5)
    p[1, 2] = 1.5
    for reduction in ("mean", "sum"):
        outcomes("binary_cross_entropy", p, t, reduction=reduction)
        with pytest.raises(RuntimeError, match="between 0 and 1"):
            onepass.binary_cross_entropy(p.requires_grad_(), t, reduction=reduction)
    mask = torch.ones(3, 5, dtype=torch.bool)
    mask[1, 2] = False
    assert onepass.binary_cross_entropy(p, t, mask=mask).isfinite()
    assert onepass.binary_cross_entropy(p, t, mask=torch.zeros_like(mask)).isnan()


@pytest.mark.parametrize("var", [-1.0, 1, 0.5, None, "a"])
def test_numbers_as_variances(var):
    p, t, _ = operands("gaussian_nll_loss")
    if var == 1:  # PyTorch wants a float
        assert onepass.gaussian_nll_loss(p, t, 1) == onepass.gaussian_nll_loss(p, t, 1.0)
    elif isinstance(var, float):
        outcomes("gaussian_nll_loss", p, t, var)
    else:
        with pytest.raises((TypeError, AttributeError)):
            onepass.gaussian_nll_loss(p, t, var)


@pytest.mark.parametrize("shape", [(3, 5), (3,), (3, 1), (1, 5), (5,), (), (1, 1), (3, 5, 1)], ids=str)
def test_sizes_of_variances(shape):
    p, t, _ = operands("gaussian_nll_loss")
    outcomes("gaussian_nll_loss", p, t, torch.ones(shape))
    outcomes("gaussian_nll_loss", p, t, -torch.ones(shape))
    outcomes("gaussian_nll_loss", p, t, torch.ones(shape), reduction="bad")


# ------------------------------------------------------------------- focal --


def test_focal_is_torchvisions():
    p, t = torch.randn(3, 5, dtype=torch.float64), torch.rand(3, 5, dtype=torch.float64)
    signature = {key: value.default for key, value in inspect.signature(onepass.sigmoid_focal_loss).parameters.items()}
    assert list(signature.items())[2:5] == [("alpha", 0.25), ("gamma", 2), ("reduction", "none")]
    assert list(signature)[:2] == ["inputs", "targets"]
    for alpha, gamma in ((0.25, 2), (0.75, 0), (-1, 1.5)):
        chance = torch.sigmoid(p)
        entropy = F.binary_cross_entropy_with_logits(p, t, reduction="none")
        wanted = entropy * (1 - (chance * t + (1 - chance) * (1 - t))) ** gamma
        wanted = (alpha * t + (1 - alpha) * (1 - t)) * wanted if alpha >= 0 else wanted
        assert_near_pytorch(onepass.sigmoid_focal_loss(p, t, alpha, gamma), wanted, tolerance=1e-12)
        assert_near_pytorch(onepass.sigmoid_focal_loss(p, t, alpha, gamma, "mean"), wanted.mean(), tolerance=1e-12)
    with pytest.raises(ValueError, match="Invalid Value for arg 'reduction': 'bad"):
        onepass.sigmoid_focal_loss(p, t, reduction="bad")
    with pytest.raises(ValueError, match="must be the same as input size"):
        onepass.sigmoid_focal_loss(p, t[0])


# ----------------------------------------------------------------- modules --


@pytest.mark.parametrize("name", MODULES)
def test_modules(name):
    mine, theirs = getattr(onepass.nn, name), getattr(torch.nn, name)
    wanted = {key: value.default for key, value in inspect.signature(theirs).parameters.items()}
    assert {key: value.default for key, value in inspect.signature(mine).parameters.items()} == wanted
    assert repr(mine()) == repr(theirs()) and mine().reduction == theirs().reduction
    tensors = operands(NAMES[MODULES.index(name)])
    for given in ({}, {"reduction": "sum"}, {"reduction": "none"}):
        outcome = [Outcome(module(**given), *tensors) for module in (mine, theirs)]
        assert_same_outcome(*outcome)
    with torch.device("meta"):
        assert mine()(*(x.to("meta") for x in tensors)).device.type == "meta"


def test_buffers_of_bce():
    weight = torch.rand(5)
    for name in ("BCELoss", "BCEWithLogitsLoss"):
        mine, theirs = (getattr(space, name)(weight=weight) for space in (onepass.nn, torch.nn))
        assert list(mine.state_dict()) == list(theirs.state_dict()) == ["weight"]
        mine.load_state_dict(theirs.state_dict())
        p, t = torch.rand(3, 5), torch.rand(3, 5)
        assert_near_pytorch(mine(p, t), theirs(p, t), tolerance=1e-5)
    mine, theirs = (space.BCEWithLogitsLoss(pos_weight=weight).double() for space in (onepass.nn, torch.nn))
    assert list(mine.state_dict()) == ["pos_weight"] and mine.pos_weight.dtype == torch.float64
    assert_near_pytorch(mine(p.double(), t.double()), theirs(p.double(), t.double()), tolerance=1e-12)
