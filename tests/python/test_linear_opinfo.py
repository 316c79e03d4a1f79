# PyTorch's own samples of linear_cross_entropy: OpInfo entries with their sample and error inputs, and the module
# tests' inputs, run against ours; see test_opinfo.py. In 16 bits the logits themselves are rounded, so that it is
# test_linear.py which tells how near is near.
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")

from test_opinfo import TOLERANCES, arguments_of, methods, modules, value_and_gradients

import onepass
import onepass.nn

from agreement import Outcome, assert_near_pytorch

if not hasattr(torch.nn.functional, "linear_cross_entropy"):
    pytest.skip("PyTorch has linear_cross_entropy from 2.13 on", allow_module_level=True)

INFOS = [info for info in methods.op_db if info.name == "nn.functional.linear_cross_entropy"]
(MODULE,) = (info for info in modules.module_db if info.module_cls is torch.nn.LinearCrossEntropyLoss)


def test_the_entries_are_there():
    assert INFOS


@pytest.mark.filterwarnings("ignore:linear_cross_entropy")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("info", INFOS, ids=lambda info: info.variant_test_name or "plain")
def test_samples(info, dtype, device):
    count = 0
    for sample in info.sample_inputs(device, dtype, requires_grad=True):
        arguments, given = arguments_of(sample)
        given.pop("options", None)  # of PyTorch's chunks, whose gradient is NaN where all rows are ignored
        both = (onepass.linear_cross_entropy, torch.nn.functional.linear_cross_entropy)
        results = (value_and_gradients(function, arguments, given) for function in both)
        for mine, peer in zip(*results):
            assert_near_pytorch(mine, peer, f"{given}", TOLERANCES[dtype])
        count += 1
    assert count >= 15


@pytest.mark.filterwarnings("ignore:linear_cross_entropy")
@pytest.mark.parametrize("info", INFOS, ids=lambda info: info.variant_test_name or "plain")
def test_error_inputs(info, device):
    if getattr(info, "error_inputs_func", None) is None:
        pytest.skip("this entry has no error inputs")
    for error in info.error_inputs(device):
        arguments, given = arguments_of(error.sample_input)
        mine, peer = (Outcome(function, *arguments, **given) for function in (onepass.linear_cross_entropy, info.op))
        if "dimensionality 1 or 2" in str(peer.error):
            continue  # (B, T, H), which we take
        assert type(mine.error) is type(peer.error), f"{mine.error!r} for {peer.error!r}"


@pytest.mark.filterwarnings("ignore:linear_cross_entropy")
def test_module_inputs(device):
    inputs = MODULE.module_inputs_func(MODULE, device=device, dtype=torch.float64, requires_grad=True, training=True)
    count = 0
    for sample in list(inputs)[::5]:
        made, called = sample.constructor_input, sample.forward_input
        given = {**made.kwargs, "options": None}
        peer, mine = (module(*made.args, **given) for module in (MODULE.module_cls, onepass.nn.LinearCrossEntropyLoss))
        mine.load_state_dict(peer.state_dict())
        results = []
        for module in (mine, peer):
            leaf = called.args[0].detach().clone().requires_grad_()
            value = module(leaf, *called.args[1:], **called.kwargs)
            results.append((value.detach(), *torch.autograd.grad(value.sum(), (leaf, *module.parameters()))))
        for one, other in zip(*results):
            assert_near_pytorch(one, other, tolerance=1e-11)
        count += 1
    assert count > 20
