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
from pytorch_words import OURS, by_float32, pytorch_has

methods = pytest.importorskip("torch.testing._internal.common_methods_invocations")
modules = pytest.importorskip("torch.testing._internal.common_modules")

NAMES = {"nn.functional.mse_loss": "mse", "nn.functional.smooth_l1_loss": "smooth_l1"}
INFOS = [info for info in methods.op_db if info.name in NAMES]
MODULES = {torch.nn.MSELoss: onepass.nn.MSELoss, torch.nn.SmoothL1Loss: onepass.nn.SmoothL1Loss}
MODULE_INFOS = [info for info in modules.module_db if info.module_cls in MODULES]


def test_the_entries_are_there():
    assert {info.name for info in INFOS} == set(NAMES)


@pytest.mark.skipif(
    not MODULE_INFOS and torch.__version__ < (2, 4), reason="this old PyTorch has no samples for these modules"
)
def test_the_entries_of_modules_are_there():
    assert {info.module_cls for info in MODULE_INFOS} == set(MODULES)


def arguments_of(sample):
    return (sample.input, *sample.args), sample.kwargs


@pytest.mark.parametrize("dtype", list(DTYPES.values()), ids=str)
@pytest.mark.parametrize("info", INFOS, ids=lambda info: info.name)
def test_samples(info, dtype, device):
    count = 0
    has = pytorch_has(NAMES[info.name], dtype, device, backward=True)
    for sample in info.sample_inputs(device, dtype, requires_grad=True):
        arguments, given = arguments_of(sample)
        count += 1
        results = []
        for function in (OURS[NAMES[info.name]], info.op if has else by_float32(info.op)):
            leaves = [argument.detach().clone().requires_grad_() for argument in arguments]
            value = function(*leaves, **given)
            results.append((value.detach(), *torch.autograd.grad(value.sum(), leaves)))
        for mine, peer in zip(*results):
            assert_near_pytorch(mine, peer, f"{info.name} {given}")
    assert count >= 6


@pytest.mark.parametrize("info", INFOS, ids=lambda info: info.name)
def test_derivatives_of_samples(info):
    for sample in info.sample_inputs("cpu", torch.float64, requires_grad=True):
        arguments, given = arguments_of(sample)
        leaves = [argument.detach().clone().requires_grad_() for argument in arguments]
        function = lambda *tensors: OURS[NAMES[info.name]](*tensors, **given)
        assert torch.autograd.gradcheck(function, leaves, check_forward_ad=info.supports_forward_ad)
        assert torch.autograd.gradgradcheck(function, leaves)


ERROR_SOURCES = [
    info
    for info in methods.op_db
    if getattr(info, "error_inputs_func", None) is not None
    and info.name in (*NAMES, "nn.functional.l1_loss", "nn.functional.huber_loss", "nn.functional.soft_margin_loss")
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("loss", NAMES.values())
@pytest.mark.parametrize("source", ERROR_SOURCES, ids=lambda info: info.name)
def test_error_inputs(source, loss, device):
    """Its own where an entry has them (2.13 has none for these two), and those of the kindred losses: what PyTorch's
    function of our name says to them, ours says, too."""
    theirs = {"mse": torch.nn.functional.mse_loss, "smooth_l1": torch.nn.functional.smooth_l1_loss}[loss]
    count = 0
    for error in source.error_inputs(device):
        arguments, given = arguments_of(error.sample_input)
        if "delta" in given:  # the Huber loss's word for beta; mse has no such thing
            given = {**given, "beta": given["delta"]}
            del given["delta"]
            if loss == "mse":
                continue
        mine, peer = (Outcome(function, *arguments, **given) for function in (OURS[loss], theirs))
        assert_same_outcome(mine, peer)
        count += 1
    assert count > 0 or loss == "mse"


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
            value = module(*made.args, **made.kwargs)(*arguments, **called.kwargs)
            results.append((value.detach(), *torch.autograd.grad(value.sum(), arguments[0])))
        for mine, peer in zip(*results):
            assert_near_pytorch(mine, peer, tolerance=1e-12)
        count += 1
    assert count > 0
