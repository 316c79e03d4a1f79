# PyTorch's own samples: OpInfo entries with their sample and error inputs, and the module
# tests' inputs, run against ours. They ship inside PyTorch's wheel; a version that keeps
# them elsewhere skips this file and says so.
import sys
import types
import unittest

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")

try:
    import expecttest  # noqa: F401
except ImportError:  # PyTorch's test code takes no more from it than a base class and a flag
    sys.modules["expecttest"] = types.SimpleNamespace(TestCase=unittest.TestCase, ACCEPT=False)

import onepass
import onepass.nn

from agreement import DTYPES, Outcome, assert_near_pytorch, assert_same_outcome
from reference import OURS, by_float32, pytorch_has

methods = pytest.importorskip("torch.testing._internal.common_methods_invocations")
modules = pytest.importorskip("torch.testing._internal.common_modules")

NAMES = {
    f"nn.functional.{function}": (getattr(onepass, function), loss)
    for function, loss in {
        "mse_loss": "mse",
        "smooth_l1_loss": "smooth_l1",
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
    }.items()
}
INFOS = [info for info in methods.op_db if info.name in NAMES]
MODULES = {
    getattr(torch.nn, name): getattr(onepass.nn, name)
    for name in (
        "MSELoss",
        "SmoothL1Loss",
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
    )
}
#: How many of an entry's samples are taken: gaussian_nll_loss has hundreds.
MOST_SAMPLES, MOST_DERIVED = 12, 6
MODULE_INFOS = [info for info in modules.module_db if info.module_cls in MODULES]


def test_the_entries_are_there():
    assert {info.name for info in INFOS} == set(NAMES)


def test_the_entries_of_modules_are_there():
    found = {info.module_cls for info in MODULE_INFOS}
    if torch.__version__ < (2, 4):  # which has samples for few modules
        assert found >= {torch.nn.L1Loss, torch.nn.GaussianNLLLoss}
    else:
        assert found == set(MODULES)


def arguments_of(sample):
    return (sample.input, *sample.args), sample.kwargs


def samples_of(info, dtype, device="cpu", most=MOST_SAMPLES):
    """Samples, spread over all that there are."""
    samples = list(info.sample_inputs(device, dtype, requires_grad=True))
    return samples[:: max(1, len(samples) // most)]


def fresh(arguments):
    """The tensors anew; those that want a gradient as leaves."""
    copies = [
        a.detach().clone().requires_grad_(a.requires_grad) if isinstance(a, torch.Tensor) else a for a in arguments
    ]
    return copies, [a for a in copies if isinstance(a, torch.Tensor) and a.requires_grad]


def value_and_gradients(function, arguments, given):
    tensors, leaves = fresh(arguments)
    value = function(*tensors, **given)
    return (value.detach(), *torch.autograd.grad(value.sum(), leaves, allow_unused=True, materialize_grads=True))


def both_of(info, dtype, device):
    """Our function and PyTorch's, by way of float32 where that rounds each operation to 16 bits, or has no kernel."""
    ours, loss = NAMES[info.name]
    narrow = dtype in (torch.float16, torch.bfloat16)
    plain = loss in ("mse", "smooth_l1") and pytorch_has(loss, dtype, device, backward=True)
    return ours, by_float32(info.op) if narrow and not plain else info.op


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides", "ignore:Using a target size")
@pytest.mark.parametrize("dtype", list(DTYPES.values()), ids=str)
@pytest.mark.parametrize("info", INFOS, ids=lambda info: info.name)
def test_samples(info, dtype, device):
    count = 0
    for sample in samples_of(info, dtype, device):
        arguments, given = arguments_of(sample)
        count += 1
        results = (value_and_gradients(function, arguments, given) for function in both_of(info, dtype, device))
        for mine, peer in zip(*results):
            if not peer.isnan().any():  # PyTorch's slope of the Poisson loss for a target is, where the target is 0
                assert_near_pytorch(mine, peer, f"{info.name} {given}", TOLERANCES.get(dtype))
    assert count >= 6


#: Beyond rounding once: sums of terms of both signs.
TOLERANCES = {torch.float16: 1e-2, torch.bfloat16: 6e-2, torch.float32: 2e-5, torch.float64: 1e-11}


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides", "ignore:Using a target size")
@pytest.mark.parametrize("info", INFOS, ids=lambda info: info.name)
def test_derivatives_of_samples(info):
    function, loss = NAMES[info.name]
    for sample in samples_of(info, torch.float64, most=MOST_DERIVED):
        arguments, given = arguments_of(sample)
        tensors, _ = fresh(arguments)
        if loss == "hinge_embedding":  # the slope for a target is 0, which differences across 1 and -1 are not
            tensors[1].requires_grad_(False)
        called = lambda *tensors: function(*tensors, **given)
        assert torch.autograd.gradcheck(called, tensors, check_forward_ad=info.supports_forward_ad, fast_mode=True)
        assert torch.autograd.gradgradcheck(called, tensors, fast_mode=True)


ERROR_SOURCES = [
    info for info in methods.op_db if getattr(info, "error_inputs_func", None) is not None and info.name in NAMES
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("source", ERROR_SOURCES, ids=lambda info: info.name)
def test_error_inputs(source, device):
    """What PyTorch's function says to them, ours says, too."""
    count = 0
    for error in source.error_inputs(device):
        arguments, given = arguments_of(error.sample_input)
        mine, peer = (Outcome(function, *arguments, **given) for function in (NAMES[source.name][0], source.op))
        assert_same_outcome(mine, peer)
        count += 1
    assert count > 0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("loss", ["mse", "smooth_l1"])
@pytest.mark.parametrize(
    "source",
    [info for info in ERROR_SOURCES if info.name.endswith((".l1_loss", ".huber_loss", ".soft_margin_loss"))],
    ids=lambda info: info.name,
)
def test_error_inputs_of_kindred_losses(source, loss, device):
    """2.13 has none for these two; those of others do as well."""
    theirs = {"mse": torch.nn.functional.mse_loss, "smooth_l1": torch.nn.functional.smooth_l1_loss}[loss]
    for error in source.error_inputs(device):
        arguments, given = arguments_of(error.sample_input)
        if "delta" in given:  # the Huber loss's word for beta; mse has no such thing
            if loss == "mse":
                continue
            given = {**given, "beta": given["delta"]}
            del given["delta"]
        mine, peer = (Outcome(function, *arguments, **given) for function in (OURS[loss], theirs))
        assert_same_outcome(mine, peer)


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides", "ignore:Using a target size", "ignore:size_average")
@pytest.mark.parametrize("info", MODULE_INFOS, ids=lambda info: info.module_cls.__name__)
def test_module_inputs(info, device):
    dtype = torch.float64
    inputs = info.module_inputs_func(info, device=device, dtype=dtype, requires_grad=True, training=True)
    count = 0
    for sample in inputs:
        made, called = sample.constructor_input, sample.forward_input
        results = []
        for module in (MODULES[info.module_cls], info.module_cls):
            arguments = [
                a.detach().clone().requires_grad_() if isinstance(a, torch.Tensor) and a.is_floating_point() else a
                for a in called.args
            ]
            if module is torch.nn.SoftMarginLoss:
                arguments[1].requires_grad_(False)
            value = module(*made.args, **made.kwargs)(*arguments, **called.kwargs)
            results.append((value.detach(), *torch.autograd.grad(value.sum(), arguments[0])))
        for mine, peer in zip(*results):
            assert_near_pytorch(mine, peer, tolerance=1e-11)
        count += 1
    assert count > 0
