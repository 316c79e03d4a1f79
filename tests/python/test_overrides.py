# PyTorch's override protocol: whoever overrides functions (subclasses, function modes, fx) sees one call of the public
# function with the arguments that were given, and under patch_torch PyTorch's own function.
import contextlib
import inspect
import os
import pickle

import pytest
from rank_processes import LIMIT, started

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")

import onepass
import torch.nn.functional as F
from compiling import HAS_OPERATORS, assert_as_eager
from torch.overrides import TorchFunctionMode

OVER_ROWS = [*onepass._catalog.ROWS]
LOSSES = [name for name in onepass.functional.__all__ if name not in ("value_and_grad", "log_prob")]
PATCHED = [name for name in LOSSES if hasattr(F, name)]
ORIGINAL = {name: getattr(F, name) for name in PATCHED}

pytestmark = pytest.mark.filterwarnings("ignore:reduction. 'mean' divides", "ignore:Using a target size")


def operands_of(name):
    """Tensors for the arguments that have no default."""
    if name in OVER_ROWS:
        return [torch.rand(3, 4), torch.tensor([0, 3, 1])]
    count = sum(one.default is one.empty for one in inspect.signature(getattr(onepass, name)).parameters.values())
    return [torch.rand(3, 4) * 0.9 + 0.05 for _ in range(count)]


class Watching(TorchFunctionMode):
    """Keeps the calls that it sees."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, function, types, arguments=(), given=None):
        self.seen.append((function, arguments, given or {}))
        return function(*arguments, **(given or {}))


class Answering(torch.Tensor):
    """Knows some functions, by the objects that they are, and no others."""

    handlers = {}

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), given=None):
        handler = cls.handlers.get(function)
        return NotImplemented if handler is None else handler(*arguments, **(given or {}))


def answering(monkeypatch, function):
    calls = []
    monkeypatch.setattr(Answering, "handlers", {function: lambda *arguments, **given: calls.append((arguments, given))})
    return calls


def calls_in(function, count):
    """What fx records of a function of so many operands."""
    two, three = lambda p, t: function(p, t), lambda p, t, v: function(p, t, v)
    graph = torch.fx.symbolic_trace(three if count == 3 else two).graph
    return [node for node in graph.nodes if node.op == "call_function"]


@pytest.mark.parametrize("name", LOSSES)
def test_a_mode_sees_one_call(name):
    function, operands = getattr(onepass, name), operands_of(name)
    mask = torch.ones(3 if name in OVER_ROWS else (3, 4), dtype=torch.bool)
    wanted = function(*operands)
    with Watching() as mode:
        plain, masked = function(*operands), function(*operands, reduction="sum", mask=mask)
    (first, arguments, given), (second, _, more) = mode.seen
    assert first is second is function
    assert len(arguments) == len(operands) and all(a is b for a, b in zip(arguments, operands)) and given == {}
    assert more["reduction"] == "sum" and more["mask"] is mask and len(more) == 2
    assert torch.equal(plain, wanted) and masked.shape == ()


@pytest.mark.parametrize("name", LOSSES)
def test_a_subclass_sees_one_call(monkeypatch, name):
    function, operands = getattr(onepass, name), operands_of(name)
    calls = answering(monkeypatch, function)
    tensor = torch.ones(3, 4).as_subclass(Answering)
    for k in range(len(operands)):
        function(*operands[:k], tensor, *operands[k + 1:])
        assert calls.pop()[0][k] is tensor
    for called in ("weight", "mask"):
        function(*operands, **{called: tensor})
        assert calls.pop()[1][called] is tensor
    assert calls == []


def test_log_prob(monkeypatch):
    logits, labels = operands_of("log_prob")
    with Watching() as mode:
        onepass.log_prob(logits, labels, return_entropy=True)
    (function, arguments, given), = mode.seen
    assert function is onepass.log_prob and given == {"return_entropy": True} and arguments[1] is labels
    calls = answering(monkeypatch, onepass.log_prob)
    onepass.log_prob(logits.as_subclass(Answering), labels)
    (node,) = calls_in(lambda p, t: onepass.log_prob(p, t, 2.0), 2)
    assert len(calls) == 1 and node.target is onepass.log_prob and node.kwargs == {"temperature": 2.0}


def test_causal_lm_loss(monkeypatch):
    logits, labels = operands_of("cross_entropy")
    wanted = onepass.causal_lm_loss(logits, labels, 4, z_loss=0.5)
    with Watching() as mode:
        found = onepass.causal_lm_loss(logits, labels, 4, z_loss=0.5)
    (function, arguments, given), = mode.seen
    assert function is onepass.causal_lm_loss and arguments[1] is labels and given == {"z_loss": 0.5}
    assert torch.equal(found, wanted)
    calls = answering(monkeypatch, onepass.causal_lm_loss)
    tensor = labels.as_subclass(Answering)
    onepass.causal_lm_loss(logits, None, 4, shift_labels=tensor)
    onepass.causal_lm_loss(logits, labels, 4, tensor)
    assert [given for _, given in calls] == [{"shift_labels": tensor}, {"num_items_in_batch": tensor}]
    (node,) = calls_in(lambda p, t: onepass.causal_lm_loss(p, t, 4, ignore_index=-1), 2)
    assert node.target is onepass.causal_lm_loss and node.kwargs == {"ignore_index": -1}


@pytest.mark.parametrize("called", ["row_weight", "divisor"])
def test_other_tensors_of_cross_entropy_are_operands(monkeypatch, called):
    calls = answering(monkeypatch, onepass.cross_entropy)
    tensor = torch.ones(()).as_subclass(Answering)
    onepass.cross_entropy(*operands_of("cross_entropy"), **{called: tensor})
    assert calls[0][1][called] is tensor


def test_pos_weight_is_an_operand(monkeypatch):
    calls = answering(monkeypatch, onepass.binary_cross_entropy_with_logits)
    tensor = torch.ones(4).as_subclass(Answering)
    onepass.binary_cross_entropy_with_logits(torch.rand(3, 4), torch.rand(3, 4), pos_weight=tensor)
    assert calls[0][1]["pos_weight"] is tensor


def test_value_and_grad(monkeypatch):
    p, t = torch.rand(3, 4), torch.rand(3, 4)
    with Watching() as mode:
        value, gradient = onepass.value_and_grad("smooth_l1", p, t, beta=0.5)
    (function, arguments, given), = mode.seen
    assert function is onepass.value_and_grad and arguments[0] == "smooth_l1" and given == {"beta": 0.5}
    assert gradient.shape == p.shape
    calls = answering(monkeypatch, onepass.value_and_grad)
    onepass.value_and_grad("mse", p, t.as_subclass(Answering))
    assert len(calls) == 1


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_as_the_root_of_a_graph(name):
    function, operands = getattr(onepass, name), operands_of(name)
    traced = torch.fx.symbolic_trace(function)
    assert [node.target for node in traced.graph.nodes if node.op == "call_function"] == [function]
    assert torch.equal(traced(*operands), function(*operands))


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_inside_a_graph(name):
    function = getattr(onepass, name)
    (node,) = calls_in(lambda *operands: function(*operands, reduction="sum"), len(operands_of(name)))
    assert node.target is function and node.kwargs == {"reduction": "sum"}


def test_a_graph_can_be_pickled():
    traced = torch.fx.symbolic_trace(onepass.log_cosh_loss)
    p, t = torch.rand(3, 4), torch.rand(3, 4)
    assert torch.equal(pickle.loads(pickle.dumps(traced))(p, t), onepass.log_cosh_loss(p, t))


def test_modules_are_one_call():
    p, t = torch.rand(3, 4), torch.rand(3, 4)
    with Watching() as mode:
        onepass.nn.QuantileLoss(tau=0.25)(p, t)
    (function, _, given), = mode.seen
    assert function is onepass.quantile_loss and given["tau"] == 0.25


class Plain(torch.Tensor):
    pass


def compile_and_compare(_, chosen, results):
    function = lambda p, t: onepass.mse_loss(p, t, reduction="sum")
    compiled = torch.compile(function, fullgraph=True, backend="eager")
    # PyTorch 2.2 breaks the graph at every operation of a subclass, at its own too
    of_subclass = compiled if HAS_OPERATORS else torch.compile(function, backend="eager")
    p, t = torch.rand(3, 4), torch.rand(3, 4)
    with torch.device("cpu") if chosen == "device" else contextlib.nullcontext():
        assert_as_eager(compiled(p, t), onepass.mse_loss(p, t, reduction="sum"))
        found = of_subclass(p.as_subclass(Plain), t)
    assert type(found) is Plain
    torch.testing.assert_close(found.as_subclass(torch.Tensor), F.mse_loss(p, t, reduction="sum"))
    results.put("compared")


@pytest.mark.parametrize("chosen", ["device"] if os.environ.get("ONEPASS_TEST_QUICK") == "1" else ["nothing", "device"])
def test_compiled(chosen):
    """Of a subclass, whose own answer calls the function again; and where a device was chosen, which is a mode. In a
    process of its own, since torch.compile remembers what it found in torch.nn.functional at first."""
    (process,), results = started(compile_and_compare, 1, chosen)
    process.join(LIMIT)
    assert process.exitcode == 0, "standard error says why"
    assert results.get(timeout=LIMIT) == "compared"


# --------------------------------------------------------------- patch_torch --


@pytest.mark.parametrize("name", PATCHED)
def test_patched_functions_are_pytorchs_to_a_subclass(monkeypatch, name):
    operands = operands_of(name)
    calls = answering(monkeypatch, ORIGINAL[name])
    operands[1] = operands[1].as_subclass(Answering)
    with onepass.patch_torch():
        getattr(F, name)(*operands)
        getattr(F, name)(*operands, reduction="sum")
    (arguments, given), (_, more) = calls
    assert arguments[1] is operands[1] and given.get("reduction", "mean") == "mean" and more["reduction"] == "sum"


@pytest.mark.parametrize("name", PATCHED)
def test_patched_functions_are_pytorchs_to_a_mode(name):
    operands = operands_of(name)
    with onepass.patch_torch(), Watching() as mode:
        getattr(F, name)(*operands)
    assert mode.seen[0][0] is ORIGINAL[name]


@pytest.mark.parametrize("name", PATCHED)
def test_patched_functions_are_pytorchs_to_whoever_is_asked_next(name):
    """A mode that passes the call on, and PyTorch's function that was taken before the patch: both pass overrides on by
    themselves, under the name that stands in torch.nn.functional."""
    operands = operands_of(name)
    with onepass.patch_torch(), Watching() as outer, Watching() as inner:
        getattr(F, name)(*operands)
    assert inner.seen[0][0] is ORIGINAL[name] and outer.seen[0][0] is ORIGINAL[name]
    with onepass.patch_torch(), Watching() as mode:
        ORIGINAL[name](*operands)
    assert mode.seen[0][0] is ORIGINAL[name]
    asked = []

    class Asked(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, arguments=(), given=None):
            asked.append(function)
            return torch.zeros(())

    with onepass.patch_torch(), torch.device("cpu"):
        getattr(F, name)(operands[0].as_subclass(Asked), *operands[1:])
    assert asked[0] is ORIGINAL[name]


@pytest.mark.parametrize("name", PATCHED)
def test_patched_functions_are_pytorchs_in_a_graph(name):
    with onepass.patch_torch():
        (node,) = calls_in(lambda *operands: getattr(F, name)(*operands), len(operands_of(name)))
    assert node.target is ORIGINAL[name]


def test_onepass_keeps_its_own_name_under_the_patch():
    p, t = torch.rand(3, 4), torch.rand(3, 4)
    with onepass.patch_torch(), Watching() as mode:
        onepass.mse_loss(p, t)
    assert [function for function, *_ in mode.seen] == [onepass.mse_loss]


def test_a_default_device_leaves_the_patch_in_force():
    """To choose a device is a mode, too, but one that overrides nothing here."""
    p = torch.full((1000,), 0.5, dtype=torch.float16)
    p[0] = 300.0  # whose square is infinite in float16, and so is PyTorch's mean
    with onepass.patch_torch(), torch.device("cpu"):
        assert F.mse_loss(p, torch.zeros_like(p)).isfinite()
