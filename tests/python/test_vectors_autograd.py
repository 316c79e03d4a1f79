# The way back of vector losses: the same bits by every route, whatever comes from upstream; derivatives of every kind;
# who overrides a call; and what a GPU must have: the CPU's bits, nobody who waits, graphs.
import gc
import threading
import weakref

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")

import onepass
import torch.nn.functional as F
from onepass import _rows, _upstream_habit
from torch.autograd import forward_ad

from agreement import assert_same_bits
from operands import FLOATS, dyadic
from vector_cases import CASES, is_vector, operands_of

REDUCING = [name for name, case in CASES.items() if case.reduces]


@pytest.fixture(autouse=True)
def no_habits(monkeypatch):
    monkeypatch.setattr(_upstream_habit, "_seen", {})


def leaves_of(operands):
    return [x.detach().clone().requires_grad_() if x.is_floating_point() and is_vector(x, operands[0]) else x
            for x in operands]


def gradients(name, operands, upstream=1.0, **given):
    leaves = leaves_of(operands)
    (CASES[name].ours(*leaves, **given) * upstream).sum().backward()
    return [x.grad for x in leaves if x.grad is not None]


def assert_all_same(found, wanted, what=""):
    assert len(found) == len(wanted) > 1
    for one, other in zip(found, wanted):
        assert_same_bits(one, other, what)


# --------------------------------------------------------------- the routes of a gradient --


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", REDUCING)
def test_every_route_has_the_same_bits(monkeypatch, name, dtype, device):
    """With the value, or in backward; for an upstream gradient of 1, and for others; all operands' or one's."""
    operands = operands_of(name, (6, 1100), dtype, device)
    for upstream in (1.0, 0.3, 65536.0):
        for given in ({}, {"weight": dyadic((6,), dtype, device)}, {"reduction": "sum"}):
            found = []
            for expected in (1.0, None):
                monkeypatch.setattr(_upstream_habit, "expected", lambda kind: expected)
                found.append(gradients(name, operands, upstream, **given))
            assert_all_same(*found, f"{upstream} {given}")
        assert_all_same(gradients(name, operands, upstream, reduction="none"),
                        gradients(name, operands, upstream, reduction="sum"))
    wanted = gradients(name, operands)
    for k in range(len(wanted)):
        alone = [x.clone().requires_grad_(k == own) for own, x in enumerate(operands[:len(wanted)])]
        CASES[name].ours(*alone, *operands[len(wanted):]).backward()
        assert_same_bits(alone[k].grad, wanted[k])


@pytest.mark.parametrize("name", CASES)
def test_backward_twice(name, device):
    """Each for its own upstream gradient, in any order; and neither has the other's memory."""
    operands = operands_of(name, (6, 40), torch.bfloat16, device)
    for upstreams in ((1.0, 3.0), (3.0, 1.0), (1.0, 1.0)):
        leaves = leaves_of(operands)
        value, seen = CASES[name].ours(*leaves), []
        for upstream in upstreams:
            (own,) = torch.autograd.grad(value, leaves[0], torch.full_like(value, upstream), retain_graph=True)
            assert_same_bits(own, gradients(name, operands, upstream)[0])
            seen.append(own.data_ptr())
        assert seen[0] != seen[1] or own.numel() == 0


@pytest.mark.parametrize("name", REDUCING)
def test_infinite_upstream_leaves_hidden_rows_alone(name, device):
    operands = operands_of(name, (3, 4), device=device)
    leaves = leaves_of(operands)
    value = CASES[name].ours(*leaves, mask=torch.tensor([True, False, True], device=device))
    (found,) = torch.autograd.grad(value, leaves[0], torch.tensor(float("inf"), device=device))
    assert not found[1].any()


def test_operands_that_were_changed_are_an_error(device):
    for name in CASES:
        operands = operands_of(name, device=device)
        leaf = operands[0].clone().requires_grad_()
        own = leaf * 1
        value = CASES[name].ours(own, *operands[1:], **({"reduction": "none"} if CASES[name].reduces else {}))
        own.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            value.sum().backward()


def test_what_was_kept_goes_with_the_graph():
    saved = {}
    for name in CASES:
        leaves = leaves_of(operands_of(name))
        value = CASES[name].ours(leaves[0] * 1, *leaves[1:])
        saved[name] = weakref.ref(value.grad_fn)
        value.sum().backward()
        del value
    gc.collect()
    assert [name for name, graph in saved.items() if graph() is not None] == []


def test_a_scaled_loss_is_remembered(monkeypatch, device):
    """After a step whose upstream gradient was not 1 the gradients are left to backward, and the other way round."""
    asked, native = [], _rows._torch_rows
    monkeypatch.setattr(_rows, "_torch_rows", lambda *arguments: (asked.append(arguments[-1]), native(*arguments))[1])
    operands = operands_of("triplet_margin_loss", (64, 1200), device=device)
    for upstream in (1.0, 0.3, 0.3, 1.0, 1.0):
        gradients("triplet_margin_loss", operands, upstream)
        if device == "cuda":
            torch.cuda.synchronize()  # for the test alone
    assert asked == [7, 7, 0, 0, 7]


def test_nothing_is_computed_for_nobody(monkeypatch):
    asked, native = [], _rows._torch_rows
    monkeypatch.setattr(_rows, "_torch_rows", lambda *arguments: (asked.append(arguments[-1]), native(*arguments))[1])
    a, b = torch.randn(3, 4, requires_grad=True), torch.randn(3, 4)
    onepass.triplet_margin_loss(a, b, b)
    onepass.triplet_margin_loss(b, b, a)
    onepass.cosine_embedding_loss(a, b, torch.ones(3))
    with torch.no_grad():
        assert not onepass.triplet_margin_loss(a, b, b).requires_grad
    assert asked == [1, 4, 1, 0]


def test_modes_and_threads():
    operands = operands_of("triplet_margin_loss", (64, 1200))
    wanted, found = gradients("triplet_margin_loss", operands, 0.5), []
    workers = [threading.Thread(target=lambda: found.append(gradients("triplet_margin_loss", operands, 0.5)))
               for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(found) == 4
    for own in found:
        assert_all_same(own, wanted)
    with torch.inference_mode():
        assert onepass.triplet_margin_loss(*operands).is_inference()


def test_checkpoints_and_saved_tensor_hooks():
    from torch.utils.checkpoint import checkpoint

    for name in CASES:
        operands = operands_of(name, dtype=torch.float64)
        leaves = leaves_of(operands)
        checkpoint(lambda *x: CASES[name].ours(*x).sum(), *leaves, use_reentrant=False).backward()
        assert_all_same([x.grad for x in leaves if x.grad is not None], gradients(name, operands))
        again = leaves_of(operands)
        with torch.autograd.graph.saved_tensors_hooks(lambda x: x.clone(), lambda x: x):
            value = CASES[name].ours(*again)
        value.sum().backward()
        assert_same_bits(again[0].grad, leaves[0].grad)


# ------------------------------------------------------------------------ derivatives --


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name):
    operands = operands_of(name, (3, 4), torch.float64)
    vectors = [x.requires_grad_() for x in operands if is_vector(x, operands[0])]
    rest = operands[len(vectors):]
    weight = torch.rand(3, dtype=torch.float64)
    for given in ({}, {"weight": weight, "mask": torch.tensor([True, False, True])}, CASES[name].others):
        function = lambda *x: CASES[name].ours(*x, *rest, **given)
        assert torch.autograd.gradcheck(function, vectors, check_forward_ad=True)
        assert torch.autograd.gradgradcheck(function, vectors)
    assert torch.autograd.gradcheck(lambda w: CASES[name].ours(*operands, weight=w), weight.requires_grad_())


@pytest.mark.parametrize("p", [1.5, 3.0, float("inf")])
def test_derivatives_of_other_norms(p):
    a, b, c = (torch.randn(3, 4, dtype=torch.float64, requires_grad=True) for _ in range(3))
    assert torch.autograd.gradcheck(lambda x, y: onepass.pairwise_distance(x, y, p=p, keepdim=True), (a, b),
                                    check_forward_ad=True)
    assert torch.autograd.gradcheck(lambda *x: onepass.triplet_margin_loss(*x, p=p, divisor=7.0), (a, b, c))


TRANSFORMS = {
    "vmap": lambda f, a, b: torch.func.vmap(f)(a, b),
    "vmap over one": lambda f, a, b: torch.func.vmap(f, in_dims=(0, None))(a, b[0]),
    "grad": lambda f, a, b: torch.func.grad(lambda x: f(x, b).sum())(a),
    "vmap of grad": lambda f, a, b: torch.func.vmap(torch.func.grad(lambda x, y: f(x, y).sum()))(a, b),
    "jvp": lambda f, a, b: torch.stack(torch.func.jvp(lambda x, y: f(x, y).sum(), (a, b), (b, a))),
    "jacrev": lambda f, a, b: torch.func.jacrev(f)(a, b),
    "hessian": lambda f, a, b: torch.func.hessian(lambda x: f(x, b).sum())(a),
}
PAIRS = {
    "cosine_similarity": lambda package: lambda a, b: package.cosine_similarity(a, b, -1),
    "pairwise_distance": lambda package: package.pairwise_distance,
    "triplet_margin_loss": lambda package: lambda a, b: package.triplet_margin_loss(a, b, -b, reduction="none"),
    "cosine_embedding_loss": lambda package: lambda a, b: package.cosine_embedding_loss(
        a, b, -torch.ones(a.shape[:-1]), reduction="none"),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", PAIRS)
def test_transforms(name, transform):
    a, b = torch.randn(3, 2, 4, dtype=torch.float64), torch.randn(3, 2, 4, dtype=torch.float64)
    if "vmap" not in transform:
        a, b = a[0], b[0]
    mine, peer = (TRANSFORMS[transform](PAIRS[name](package), a, b) for package in (onepass, F))
    torch.testing.assert_close(mine, peer)


def test_dual_numbers():
    a, b = torch.randn(3, 4, dtype=torch.float64), torch.randn(3, 4, dtype=torch.float64)
    for make in PAIRS.values():
        found = []
        for package in (onepass, F):
            with forward_ad.dual_level():
                found.append(forward_ad.unpack_dual(make(package)(forward_ad.make_dual(a, b), b)).tangent)
        torch.testing.assert_close(*found)


def test_many_upstream_gradients_at_once():
    a, b = torch.randn(5, 4, requires_grad=True), torch.randn(5, 4)
    for value in (onepass.pairwise_distance(a, b), onepass.triplet_margin_loss(a, b, -b)):
        upstream = torch.rand((3, *value.shape))
        (found,) = torch.autograd.grad(value, a, upstream, is_grads_batched=True, retain_graph=True)
        wanted = [torch.autograd.grad(value, a, own, retain_graph=True)[0] for own in upstream]
        torch.testing.assert_close(found, torch.stack(wanted))


class Named(torch.Tensor):
    """A subclass that does nothing of its own."""


def test_subclasses_and_rare_tensors():
    for name in CASES:
        operands = operands_of(name)
        wanted = CASES[name].ours(*operands)
        found = CASES[name].ours(operands[0].as_subclass(Named), *operands[1:])
        assert type(found) is Named
        torch.testing.assert_close(found.as_subclass(torch.Tensor), wanted)
        negative = torch.complex(operands[0], -operands[0]).conj().imag  # a view whose numbers are to be negated
        torch.testing.assert_close(CASES[name].ours(negative, *operands[1:]), wanted)
        meta = CASES[name].ours(*(x.to("meta") for x in operands))
        assert meta.shape == wanted.shape and meta.is_meta


# ------------------------------------------------------------------- who overrides a call --


class Watching(torch.overrides.TorchFunctionMode):
    """Keeps the calls that it sees."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, function, types, arguments=(), given=None):
        self.seen.append((function, len(arguments), given or {}))
        return function(*arguments, **(given or {}))


CALLS = {
    "cosine_similarity": ((3, 4), (3, 4)), "pairwise_distance": ((3, 4), (3, 4)),
    "cosine_embedding_loss": ((3, 4), (3, 4), (3,)), "triplet_margin_loss": ((3, 4),) * 3,
    "triplet_margin_with_distance_loss": ((3, 4),) * 3, "multi_margin_loss": ((3, 4), (3,)),
    "multilabel_margin_loss": ((3, 4), (3, 4)), "multilabel_soft_margin_loss": ((3, 4), (3, 4)),
    "kl_div_with_logits": ((3, 4), (3, 4)), "js_div_with_logits": ((3, 4), (3, 4)),
    "tv_distance_with_logits": ((3, 4), (3, 4)), "dice_loss": ((3, 4), (3, 4)), "jaccard_loss": ((3, 4), (3, 4)), "tversky_loss": ((3, 4), (3, 4)),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_mode_sees_one_call(name):
    function = getattr(onepass, name)
    operands = [torch.ones(shape) for shape in CALLS[name]]
    if name.startswith("multi_margin") or name == "multilabel_margin_loss":
        operands[1] = operands[1].long()
    more = {} if name in ("cosine_similarity", "pairwise_distance") else {"reduction": "sum"}
    with Watching() as mode:
        value = function(*operands, **more)
    assert mode.seen == [(function, len(operands), more)]
    assert torch.equal(value, function(*operands, **more))
    graph = torch.fx.symbolic_trace(lambda x: function(x, *operands[1:])).graph
    assert function in [node.target for node in graph.nodes]


def test_all_functions_are_called_here():
    assert set(CALLS) == {*onepass.vectors.__all__, *onepass.margins.__all__, *onepass.regions.__all__,
                          *onepass.distributions.__all__}


# -------------------------------------------------------------------------------- a GPU --


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", [(6, 5), (7, 1500), (64, 1000), (3, 33000), (2, 5, 9, 7)], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_a_gpu_has_the_cpus_bits(name, shape, dtype):
    if name == "cosine_embedding_loss" and len(shape) > 2:
        return  # which has one dimension of rows
    here = operands_of(name, shape, dtype)
    there = [x.cuda() for x in here]
    for given in ({}, *([{"reduction": "none"}, {"reduction": "sum"}] if CASES[name].reduces else []),
                  CASES[name].others):
        assert_same_bits(CASES[name].ours(*there, **given).cpu(), CASES[name].ours(*here, **given))
        for upstream in (1.0, 0.3):
            assert_all_same([x.cpu() for x in gradients(name, there, upstream, **given)],
                            gradients(name, here, upstream, **given))


@pytest.mark.gpu
def test_nobody_waits():
    """PyTorch says so where the host waits for the device."""
    items = torch.tensor(40, device="cuda")
    drawn = {name: operands_of(name, (64, 1200), device="cuda") for name in CASES}
    mask = torch.rand(64, device="cuda") > 0.5

    def steps():
        for name, operands in drawn.items():
            for upstream in (1.0, 0.3):
                gradients(name, operands, upstream, mask=mask)
                if CASES[name].reduces:
                    gradients(name, operands, upstream, divisor=items)
        x, t = drawn["tversky_loss"]
        onepass.dice_loss(x, t, skip_absent=True)
        onepass.dice_loss(x, t, skip_absent=True, mask=mask, per="sample")
        onepass.dice_loss(x, mask.long(), mode="multiclass", ignore_index=0)
        onepass.multilabel_soft_margin_loss(x, t)

    steps()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        steps()
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.gpu
@pytest.mark.parametrize("name", CASES)
def test_cuda_graphs(name):
    leaves = leaves_of(operands_of(name, (64, 1200), device="cuda"))
    vectors = [x for x in leaves if x.is_floating_point() and x.requires_grad]
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            (CASES[name].ours(*leaves) * 0.5).sum().backward()
    torch.cuda.current_stream().wait_stream(side)
    for x in vectors:
        x.grad = None
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        value = CASES[name].ours(*leaves)
        (value * 0.5).sum().backward()
    others = operands_of(name, (64, 1200), device="cuda")
    with torch.no_grad():
        for x, other in zip(leaves, others):
            x.copy_(other)
        for x in vectors:
            x.grad.zero_()
    graph.replay()
    assert_same_bits(value, CASES[name].ours(*others))
    assert_all_same([x.grad for x in vectors], gradients(name, others, 0.5))
