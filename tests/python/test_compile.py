# torch.compile with the registered operators, opcheck over all of them, autocast,
# deterministic algorithms, and CUDA graphs of a whole training step.
#
# A compilation takes seconds, so most use the backend aot_eager (the same tracing, no
# code generation), and each compiled function holds several calls.
import os
import shutil

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")

import onepass

from agreement import ask_oracle, assert_near_pytorch, assert_same_bits, strides
from compiling import HAS_OPERATORS, assert_as_eager, dynamo, fresh_compiler
from operands import mask_of, operands_of
from reference import ALL, LOSSES, REDUCTIONS, WEIGHTED, gradients, ours, pytorch_has, theirs


def all_losses(p, t, weight):
    """One graph with every loss and reduction."""
    return [ours(loss, p, t, reduction, 0.5) for loss in LOSSES for reduction in REDUCTIONS] + [
        ours(loss, p, t, reduction, 0.5, weight) for loss in WEIGHTED for reduction in REDUCTIONS
    ]


def total_of_all(p, t, weight):
    return sum(value.sum() for value in all_losses(p, t, weight))


def operands(shape=(37, 41), device="cpu", dtype=torch.float32):
    return (
        torch.randn(shape, device=device).to(dtype),
        torch.randn(shape, device=device).to(dtype),
        torch.rand(shape, device=device).to(dtype),
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_forward_has_the_bits_of_eager(device, dtype):
    arguments = operands(device=device, dtype=dtype)
    compiled = torch.compile(all_losses, fullgraph=True, backend="aot_eager")
    for got, wanted in zip(compiled(*arguments), all_losses(*arguments)):
        assert_as_eager(got, wanted)
        assert strides(got) == strides(wanted)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_have_the_bits_of_eager(loss, dtype, device):
    if not HAS_OPERATORS and not pytorch_has(loss, dtype, device, backward=True):
        pytest.skip(f"compiled, this PyTorch's own {loss} is asked, which has no gradient of {dtype} on the {device}")
    p, t, weight = operands(device=device, dtype=dtype)
    weight = weight if loss in WEIGHTED else None

    def function(a, b):
        return ours(loss, a, b), ours(loss, a, b, "none", weight=weight)

    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    results = []
    for way in (compiled, function):
        a, b = (tensor.clone().requires_grad_() for tensor in (p, t))
        mean, each = way(a, b)
        # apart, because the sum of two gradients may be rounded in another order
        results.append(
            [
                mean,
                each,
                *torch.autograd.grad(mean * 3, (a, b), retain_graph=True),
                *torch.autograd.grad(each, (a, b), weight if weight is not None else p),
            ]
        )
    for got, wanted in zip(*results):
        assert_as_eager(got.detach(), wanted.detach())


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")
def test_every_loss_has_the_bits_of_eager(device):
    """Value and gradients, of two and three operands, with weights and masks; no graph break."""
    operands = [operands_of(loss, (6, 7), device=device) for loss in ALL]
    weight, mask = torch.rand(7, device=device), mask_of((6, 7), device)

    def with_leaves():
        fresh = [[None if x is None else x.clone().requires_grad_() for x in three] for three in operands]
        return fresh, [x for three in fresh for x in three if x is not None]

    more = {"broadcast_weight": True}

    def function(fresh, w, m):
        strict = [loss in ("mse", "l1", "huber") for loss in ALL]
        results = []
        for index, (loss, (p, t, v)) in enumerate(zip(ALL, fresh)):
            given = {"weight": w, "mask": m if index % 2 else None, **(more if strict[index] else {})}
            results.append(ours(loss, p, t, third=v, **given))
            reduction = "none" if index % 4 == 3 else "sum"
            # apart, because a compiled graph adds the zeros that come back from a result nobody differentiates
            apart = [None if x is None else x.detach() for x in (p, t, v)]
            results.append(ours(loss, *apart[:2], reduction, third=apart[2], mask=m if index % 3 else None))
        return results

    results = []
    for way in (torch.compile(function, fullgraph=True, backend="aot_eager"), function):
        fresh, leaves = with_leaves()
        values = way(fresh, weight, mask)
        # PyTorch's own hinge_embedding_loss, which is asked where there are no operators, does not know its target
        found = torch.autograd.grad([value.sum() for value in values[::2]], leaves, materialize_grads=not HAS_OPERATORS)
        results.append([*values, *found])
    for got, wanted in zip(*results):
        assert_as_eager(got.detach(), wanted.detach())


def test_other_functions_are_one_graph(device):
    """Of rows, vectors, regions and layers, with what they take; a divisor that is a tensor breaks the graph where
    there are no operators."""
    random = lambda *shape: torch.randn(shape, device=device)
    x, other, third, layer, bias = random(6, 5), random(6, 5), random(6, 5), random(4, 5), random(4)
    labels, classes = torch.arange(6, device=device) % 4, torch.arange(5, device=device) / 5
    mask, weight, signs = labels != 2, torch.arange(1, 7, device=device) / 4, 1 - labels % 2 * 2
    rows, vectors = {"mask": mask, "row_weight": weight}, {"mask": mask, "weight": weight}
    tokens = labels.view(1, 6)

    def function(x, other, third, layer):
        return [
            onepass.cross_entropy(x, labels),
            onepass.cross_entropy(x, labels, classes, label_smoothing=0.1, z_loss=0.1, softcap=3.0, temperature=2.0,
                                  **rows),
            *onepass.cross_entropy(x, labels, return_lse=True, return_z_loss=True, return_accuracy=True),
            onepass.cross_entropy(x, other.softmax(1), reduction="sum"),
            onepass.cross_entropy(x, labels, divisor=7, dtype=torch.float64),
            onepass.nll_loss(x, labels, classes, reduction="none"),
            onepass.softmax_focal_loss(x, labels, alpha=classes),
            onepass.poly_loss(x, labels, **rows),
            *onepass.log_prob(x, labels, return_entropy=True),
            onepass.kl_div_with_logits(x, other, temperature=2.0, **vectors),
            onepass.js_div_with_logits(x, other, dim=0, reduction="none"),
            onepass.dice_loss(x, mask[:, None].expand(6, 5).float()),
            onepass.tversky_loss(x.view(2, 3, 5), labels[:5].expand(2, 5) % 3, mode="multiclass"),
            onepass.cosine_embedding_loss(x, other, signs, **vectors),
            onepass.triplet_margin_loss(x, other, third, swap=True, **vectors),
            onepass.pairwise_distance(x, other),
            onepass.cosine_similarity(x, other),
            onepass.multi_margin_loss(x, labels, weight=classes, mask=mask),
            onepass.multilabel_margin_loss(x, labels[:, None].expand(6, 5)),
            onepass.multilabel_soft_margin_loss(x, other.sigmoid()),
            onepass.linear_cross_entropy(x, layer, labels, linear_bias=bias, z_loss=0.1, num_items=5, chunk_rows=4),
            onepass.linear_log_prob(x, layer, labels),
            onepass.nt_xent_loss(x, other),
            onepass.supcon_loss(x, labels),
            onepass.causal_lm_loss(x.view(1, 6, 5), tokens, 5),
            onepass.causal_lm_loss(x.view(1, 6, 5), tokens, 5, num_items_in_batch=4),
        ]

    def divided(x, other, third, layer):
        divisor = labels.sum()
        return [
            onepass.cross_entropy(x, labels, divisor=divisor),
            onepass.triplet_margin_loss(x, other, third, divisor=divisor),
            onepass.linear_cross_entropy(x, layer, labels, num_items=divisor),
        ]

    for calls, fullgraph in ((function, True), (divided, HAS_OPERATORS)):
        results = []
        for way in (torch.compile(calls, fullgraph=fullgraph, backend="aot_eager"), calls):
            leaves = [operand.clone().requires_grad_() for operand in (x, other, third, layer)]
            values = way(*leaves)
            total = sum(value.sum() for value in values if value.requires_grad)
            results.append([*values, *torch.autograd.grad(total, leaves)])
        for got, wanted in zip(*results, strict=True):
            assert_near_pytorch(got.detach(), wanted.detach(), tolerance=1e-5)


@pytest.mark.skipif(
    shutil.which("g++") is None and shutil.which("clang++") is None, reason="inductor needs a C++ compiler"
)
def test_inductor(device):
    """Generated code around our operators; one compilation with gradients, and one without, unless it is to be quick."""
    if device == "cuda":
        pytest.importorskip("triton", reason="inductor needs triton for CUDA tensors")
    p, t, weight = operands(device=device)

    def step(a, b, w):
        return ours("mse", a * 2, b, weight=w) + ours("smooth_l1", a, b * 3, "none").sum() + ours("hinge", a, b)

    compiled = torch.compile(step, fullgraph=True)
    if os.environ.get("ONEPASS_TEST_QUICK") != "1":
        with torch.no_grad():
            assert_near_pytorch(compiled(p, t, weight), step(p, t, weight))
    results = []
    for way in (compiled, step):
        a, b = (tensor.clone().requires_grad_() for tensor in (p, t))
        value = way(a, b, weight)
        results.append((value.detach(), *torch.autograd.grad(value, (a, b))))
    for got, wanted in zip(*results):
        assert_near_pytorch(got, wanted)


def count_compilations(function, **given):
    """A function compiled so that one can ask how often."""
    counter = dynamo.testing.CompileCounterWithBackend("aot_eager")
    return torch.compile(function, fullgraph=True, backend=counter, **given), counter


def test_dynamic_shapes(device):
    pytest.importorskip("torch._dynamo.testing")
    compiled, counter = count_compilations(total_of_all, dynamic=True)
    for shape in ((4, 6), (5, 7), (37, 41), (128, 9)):
        p, t, weight = operands(shape, device)
        a, b = p.clone().requires_grad_(), p.clone().requires_grad_()
        got, wanted = compiled(a, t, weight), total_of_all(b, t, weight)
        assert_near_pytorch(got.detach(), wanted.detach())
        got.backward()
        wanted.backward()
        assert_near_pytorch(a.grad, b.grad)
    assert counter.frame_count <= 2, "compiled anew for every shape"


def test_mark_dynamic(device):
    pytest.importorskip("torch._dynamo.testing")
    compiled, counter = count_compilations(lambda p, t: ours("mse", p, t) + ours("hinge", p, t))
    for rows in (4, 9, 37):
        p, t, _ = operands((rows, 8), device)
        for tensor in (p, t):
            dynamo.mark_dynamic(tensor, 0)
        assert_near_pytorch(compiled(p, t), ours("mse", p, t) + ours("hinge", p, t))
    assert counter.frame_count == 1


@pytest.mark.filterwarnings("ignore:Using a target size")
def test_broadcasting_and_strides_compiled(device):
    p = torch.randn(7, 5, device=device).t()
    t = torch.randn(7, device=device)

    def function(a, b):
        return ours("hinge", a, b, "none"), ours("mse", a, b.expand(5, 7), "none"), ours("mse", a, b)

    with torch.no_grad():
        for got, wanted in zip(torch.compile(function, fullgraph=True, backend="aot_eager")(p, t), function(p, t)):
            assert_as_eager(got, wanted)
            assert strides(got) == strides(wanted)
    a, b = p.clone().requires_grad_(), t.clone().requires_grad_()
    got = torch.autograd.grad(torch.compile(function, fullgraph=True, backend="aot_eager")(a, b)[2] * 2, (a, b))
    for mine, peer in zip(got, torch.autograd.grad(function(a, b)[2] * 2, (a, b))):
        assert_near_pytorch(mine, peer)


def test_modules_and_mixed_types_compiled(device):
    import onepass.nn

    model = torch.nn.Linear(8, 4, device=device).to(torch.bfloat16)
    losses = torch.nn.ModuleList([onepass.nn.MSELoss(), onepass.nn.SmoothL1Loss(beta=0.5), onepass.nn.HingeLoss()])
    data, labels = torch.randn(16, 8, device=device).to(torch.bfloat16), torch.randn(16, 4, device=device)

    def step(x, y):
        return sum(loss(model(x), y) for loss in losses)

    step(data, labels).backward()
    wanted = model.weight.grad.clone()
    model.zero_grad()
    value = torch.compile(step, fullgraph=True, backend="aot_eager")(data, labels)
    value.backward()
    assert value.dtype == torch.float32
    assert_near_pytorch(model.weight.grad, wanted)


def test_patched_pytorch_compiles():
    p, t, _ = operands()
    model = torch.nn.MSELoss()
    with onepass.patch_torch():
        got = torch.compile(lambda a, b: model(a, b), fullgraph=True, backend="aot_eager")(p, t)
    assert_near_pytorch(got, ours("mse", p, t))


# ------------------------------------------------------ registered operators --


def registered_operators():
    return sorted(
        {name.split(".")[0] for name in torch._C._dispatch_get_all_op_names() if name.startswith("onepass::")}
    )


def calls_of_registered_operators():
    """Every call of ours in the graphs of all losses: the operator, its arguments, and whether it is in a backward graph."""
    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd
    from torch.fx import Interpreter

    calls = []

    class Recorder(Interpreter):
        def call_function(self, target, arguments, given):
            if getattr(target, "namespace", None) == "onepass":
                calls.append((target, arguments, given, self.backward))
            return super().call_function(target, arguments, given)

    def compiler(backward):
        def compile_graph(graph, _):
            recorder = Recorder(graph)
            recorder.backward = backward
            return make_boxed_func(lambda *arguments: recorder.run(*arguments))

        return compile_graph

    def function(p, t, weight):
        mask = t > 0
        more = ours("gaussian_nll", p, t, third=weight, mask=mask) + ours("log_cosh", p, t, weight=weight[0], mask=mask)
        more = more + ours("bce_with_logits_pos_weight", p, t, "none", third=weight[0]).sum()
        return total_of_all(p, t, weight) + ours("mse", p, t.to(torch.float64)) + ours("hinge", p, t[0]) + more

    p, t, weight = operands((5, 6))
    backend = aot_autograd(fw_compiler=compiler(False), bw_compiler=compiler(True))
    compiled = torch.compile(function, fullgraph=True, backend=backend)
    with torch.no_grad():
        compiled(p, t, weight)
    dynamo.reset()
    leaves = [x.clone().requires_grad_() for x in (p, t)]
    torch.compile(function, fullgraph=True, backend=backend)(*leaves, weight).backward()
    return calls


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.skipif(hasattr(torch.library, "opcheck"), reason="the next test has this too")
def test_graphs_hold_our_operators_where_they_can_be_differentiated():
    assert bool(calls_of_registered_operators()) == HAS_OPERATORS


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.skipif(not hasattr(torch.library, "opcheck"), reason="torch.library.opcheck came with PyTorch 2.4")
def test_opcheck_of_every_operator():
    """Each operator as compiled losses call it; those of forward graphs with operands that want gradients, too."""
    calls, names = calls_of_registered_operators(), registered_operators()
    assert names, "no operator is registered in the namespace onepass"
    assert bool(calls) == HAS_OPERATORS
    seen, checked = set(), set()
    for operator, arguments, given, backward in calls:
        seen.add(operator.name().split(".")[0])
        plain = [x.detach().clone() if isinstance(x, torch.Tensor) else x for x in arguments]
        # what tensors there are, of what kinds, and the numbers; the loss's name and parameters make no difference here
        kind = [(x.dim(), x.dtype) if isinstance(x, torch.Tensor) else x
                for x in plain if not isinstance(x, (str, list))]
        if (operator, str(kind), str(given)) in checked:
            continue
        checked.add((operator, str(kind), str(given)))
        if not backward:
            for operand in [x for x in plain if isinstance(x, torch.Tensor)][:2]:
                operand.requires_grad_()
        torch.library.opcheck(operator, tuple(plain), given)
    # test_rows_compile.py, test_linear_compile.py and test_vectors_compile.py have these
    others = {name for name in names if name.startswith(("onepass::rows", "onepass::linear_rows", "onepass::vectors"))}
    assert seen == set(names) - others, "operators that no compiled loss calls"


# ------------------------------------------------------------------ autocast --


@pytest.mark.parametrize("inside", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("loss", ["mse", "smooth_l1"])
def test_autocast(loss, inside, device):
    """In float32, whatever comes; gradients in the inputs' types."""
    for types in (
        (torch.bfloat16,) * 2,
        (torch.float16,) * 2,
        (torch.bfloat16, torch.float32),
        (torch.float32,) * 2,
        (torch.float64, torch.float32),
    ):
        p, t = (torch.randn(6, 7, device=device).to(dtype) for dtype in types)
        with torch.autocast(device, dtype=inside):
            for reduction in REDUCTIONS:
                value, *got = gradients(ours, loss, p, t, reduction=reduction)
                peer = theirs(loss, p, t, reduction)
                assert_near_pytorch(value, peer)
                wide = [x.to(peer.dtype) for x in (p, t)]
                for gradient, formula, dtype in zip(got, ask_oracle(loss, *wide, reduction).gradients, types):
                    assert gradient.dtype == dtype
                    assert_same_bits(gradient.cpu(), torch.from_numpy(formula).to(peer.dtype).to(dtype))


def test_autocast_of_a_model(device):
    torch.manual_seed(3)
    model = torch.nn.Linear(8, 4, device=device)
    data, labels = torch.randn(16, 8, device=device), torch.randn(16, 4, device=device)
    with torch.autocast(device, dtype=torch.bfloat16):
        prediction = model(data)
        value = ours("mse", prediction, labels)
        peer = theirs("mse", prediction, labels)
    assert prediction.dtype == torch.bfloat16 and value.dtype == torch.float32
    assert_near_pytorch(value.detach(), peer.detach())
    got, wanted = (torch.autograd.grad(x * 1024, model.weight, retain_graph=True)[0] for x in (value, peer))
    assert_near_pytorch(got, wanted, tolerance=1e-2)


def test_autocast_compiled(device):
    p, t = torch.randn(6, 7, device=device).to(torch.bfloat16), torch.randn(6, 7, device=device)

    def function(a, b):
        with torch.autocast(device, dtype=torch.bfloat16):
            return ours("mse", a, b), ours("smooth_l1", a, a * 2)

    for got, wanted in zip(torch.compile(function, fullgraph=True, backend="aot_eager")(p, t), function(p, t)):
        assert got.dtype == wanted.dtype == torch.float32
        assert_as_eager(got, wanted)


# ---------------------------------------------------- deterministic algorithms --


@pytest.mark.parametrize("loss", LOSSES)
def test_deterministic_algorithms(loss, device):
    p, t, weight = operands(device=device)
    wanted = gradients(ours, loss, p, t)
    torch.use_deterministic_algorithms(True)
    try:
        for got, before in zip(gradients(ours, loss, p, t), wanted):
            assert_same_bits(got, before)
        for reduction in REDUCTIONS:
            gradients(ours, loss, p, t, reduction=reduction, weight=weight if loss in WEIGHTED else None)
    finally:
        torch.use_deterministic_algorithms(False)


# ------------------------------------------------------------------ CUDA graphs --


@pytest.mark.gpu
@pytest.mark.parametrize("loss", LOSSES)
def test_cuda_graph_of_a_training_step(loss):
    """Forward, backward and the optimizer's step captured once and replayed over other batches."""

    def build():
        torch.manual_seed(11)
        model = torch.nn.Linear(64, 32, device="cuda")
        return model, torch.optim.SGD(model.parameters(), lr=0.01)

    def step(model, optimizer, data, labels):
        optimizer.zero_grad(set_to_none=True)
        prediction = model(data)
        value = ours(loss, prediction, labels)
        value.backward()
        optimizer.step()
        return prediction.detach(), value.detach()

    batches = [(torch.randn(128, 64, device="cuda"), torch.randn(128, 32, device="cuda")) for _ in range(5)]
    eager = build()
    wanted = [step(*eager, *batch)[1].clone() for batch in batches]

    model, optimizer = build()
    start = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    data, labels = (tensor.clone() for tensor in batches[0])
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step(model, optimizer, data, labels)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        prediction, captured = step(model, optimizer, data, labels)
    model.load_state_dict(start)
    for batch, value in zip(batches, wanted):
        data.copy_(batch[0])
        labels.copy_(batch[1])
        graph.replay()
        assert_same_bits(captured, ours(loss, prediction, labels), "the loss inside the graph")
        assert_near_pytorch(captured, value)  # the layer's products may be added up in another order inside a graph


@pytest.mark.gpu
@pytest.mark.parametrize("loss", WEIGHTED)
def test_cuda_graph_with_weights_and_an_upstream_gradient(loss):
    p, t, weight = operands((300, 401), "cuda")
    a = p.clone().requires_grad_()

    def step():
        value = ours(loss, a, t, weight=weight)
        return value, torch.autograd.grad(value * 3, a)[0]

    wanted = [x.detach().clone() for x in step()]
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    for _ in range(3):
        graph.replay()
    for got, before in zip(captured, wanted):
        assert_same_bits(got.detach(), before)


@pytest.mark.gpu
def test_compiled_with_cuda_graphs():
    """torch.compile's own CUDA graphs (reduce-overhead)."""
    p, t, _ = operands((128, 64), "cuda")
    compiled = torch.compile(
        lambda a, b: ours("mse", a, b) + ours("smooth_l1", a, b), mode="reduce-overhead", fullgraph=True
    )
    for _ in range(4):
        a, b = p.clone().requires_grad_(), p.clone().requires_grad_()
        torch.compiler.cudagraph_mark_step_begin()
        compiled(a, t).backward()
        (ours("mse", b, t) + ours("smooth_l1", b, t)).backward()
        assert_near_pytorch(a.grad, b.grad)


@pytest.mark.parametrize("loss", ["poisson_nll_full", "kl_div", "soft_margin", "mse"])
@pytest.mark.filterwarnings("ignore:Using a target size", "ignore:reduction. 'mean' divides")
def test_a_number_of_another_type(loss, device):
    """The compiler is told the type that comes out."""
    for types in ((torch.float64, torch.float16), (torch.float32, torch.float64)):
        p, t, _ = operands_of(loss, (3, 5), device=device, dtypes=(*types, None))
        function = lambda a, b: [ours(loss, a, b, reduction) for reduction in REDUCTIONS]
        compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
        for got, wanted in zip(compiled(p, t[0, 0].clone()), function(p, t[0, 0].clone()), strict=True):
            assert_as_eager(got, wanted)
