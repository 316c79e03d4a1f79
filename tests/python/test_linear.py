# Losses of a linear layer's outputs against the formula in float64, with all logits: every type, reduction and option;
# how often backward may be asked; and that the chunks leave no trace in the loss.
import math

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")

import onepass

from agreement import assert_same_bits

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
#: How far a result may be off, relative to the largest of its kind: what a product of this type loses.
NEAR = {torch.float16: 3e-3, torch.bfloat16: 2.5e-2, torch.float32: 3e-6, torch.float64: 1e-13}
REDUCTIONS = ["mean", "sum", "none"]
CLASSES = [7, 1500]  # rows whose state is kept or not


def formula(input, weight, target, bias=None, *, class_weight=None, reduction="mean", ignore_index=-100, smoothing=0.0,
            z_loss=0.0, softcap=None, temperature=1.0, num_items=None):
    """The cross-entropy of all logits, a number for each class written out."""
    z = input @ weight.T + (0 if bias is None else bias)
    z = (softcap * torch.tanh(z / softcap) if softcap else z) / temperature
    lse = (z - z.max(-1, keepdim=True).values.detach()).exp().sum(-1).log() + z.max(-1).values.detach()
    weights = torch.ones_like(z[..., :1].expand(z.shape)) if class_weight is None else class_weight.expand(z.shape)
    if target.shape == z.shape:
        counts, share = torch.ones_like(lse), target * (1 - smoothing) + smoothing / z.shape[-1]
        each, of_row = (weights * share * (lse[..., None] - z)).sum(-1), torch.ones_like(lse)
    else:
        counts = (target != ignore_index).to(z)
        label = torch.where(target != ignore_index, target, 0).long()[..., None]
        of_row = weights.gather(-1, label)[..., 0]
        each = (1 - smoothing) * of_row * (lse - z.gather(-1, label)[..., 0]) + \
            smoothing / z.shape[-1] * (weights * (lse[..., None] - z)).sum(-1)
    each = torch.where(counts != 0, each + z_loss * lse**2, 0)
    if reduction == "none":
        return each
    return each.sum() / (1 if reduction == "sum" else num_items or (counts * of_row).sum())


def layer(rows, classes, dtype=torch.float32, device="cpu", bias=True, features=24):
    """Leaves: hidden states, weight, bias."""
    made = [torch.randn(*rows, features), torch.randn(classes, features) / 2, torch.randn(classes) if bias else None]
    return [x if x is None else x.to(dtype).to(device).requires_grad_() for x in made]


def labels_of(rows, classes, device="cpu", dtype=torch.int64, ignore_index=-100):
    labels = torch.randint(classes, rows)
    return torch.where(torch.rand(rows) < 0.3, ignore_index, labels).to(dtype).to(device)


def exact(leaves):
    return [None if x is None else x.detach().double().cpu().requires_grad_() for x in leaves]


def gradients(value, leaves, upstream):
    return torch.autograd.grad(value, [x for x in leaves if x is not None], upstream, retain_graph=True)


def assert_near(got, wanted, dtype, what):
    assert got.shape == wanted.shape, what
    got, wanted = got.detach().double().cpu(), wanted.detach()
    assert torch.equal(got.isfinite(), wanted.isfinite()), what
    off, size = (got - wanted).nan_to_num().abs().max().item(), wanted.nan_to_num().abs().max().item()
    assert off <= NEAR[dtype] * size, f"{what}: off by {off} of {size}"


def check(function, leaves, wanted, upstream=None, chunked=True):
    """Value and gradients, the latter asked for twice."""
    value = function(*leaves)
    assert value.requires_grad and (not chunked or "LinearRowLoss" in value.grad_fn.name() or value.dim() > 1)
    upstream = torch.ones_like(value) if upstream is None else upstream.to(value)
    peers = exact(leaves)
    peer = wanted(*peers)
    dtype = leaves[0].dtype
    assert_near(value, peer, dtype, "value")
    expected = gradients(peer, peers, upstream.double().cpu())
    for turn in ("first", "second"):
        for name, own, other, leaf in zip(("input", "weight", "bias"), gradients(value, leaves, upstream), expected,
                                          leaves):
            assert own.dtype == leaf.dtype and own.device == leaf.device
            assert_near(own, other, dtype, f"{turn} gradient for {name}")
    return value.detach()


# ------------------------------------------------------------ linear_cross_entropy --


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("rows", [(), (50,), (4, 13)], ids=str)
@pytest.mark.parametrize("classes", CLASSES)
def test_value_and_gradients(classes, rows, dtype, reduction, device):
    for bias in (False, True):
        leaves, target = layer(rows, classes, dtype, device, bias), labels_of(rows, classes, device)
        if rows == ():
            target.clamp_(min=0)
        upstream = torch.randn(rows if reduction == "none" else ())
        function = lambda x, w, b: onepass.linear_cross_entropy(x, w, target, linear_bias=b, reduction=reduction,
                                                                chunk_rows=20)
        check(function, leaves, lambda *own: formula(own[0], own[1], target.cpu(), own[2], reduction=reduction),
              upstream)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted, smoothing, z_loss, softcap, temperature",
                         [(True, 0, 0, None, 1), (False, 0.1, 0, None, 1), (True, 0.2, 0, None, 1),
                          (False, 0, 1e-2, None, 1), (False, 0, 0, 5.0, 1), (False, 0, 0, None, 0.7),
                          (True, 0.1, 1e-2, 8.0, 1.5)])
@pytest.mark.parametrize("kind", ["labels", "probabilities"])
@pytest.mark.parametrize("classes", CLASSES)
def test_options(classes, kind, weighted, smoothing, z_loss, softcap, temperature, reduction, device):
    rows = (31,)
    leaves = layer(rows, classes, torch.float64, device)
    weight = torch.rand(classes, dtype=torch.float64, device=device) if weighted else None
    if kind == "labels":
        target, ignored = labels_of(rows, classes, device, ignore_index=2), {"ignore_index": 2}
    else:
        target, ignored = torch.softmax(torch.randn(*rows, classes, dtype=torch.float64), -1).to(device), {}
    given = dict(z_loss=z_loss, softcap=softcap, temperature=temperature, reduction=reduction)
    function = lambda x, w, b: onepass.linear_cross_entropy(
        x, w, target, linear_bias=b, weight=weight, label_smoothing=smoothing, chunk_rows=8, **given, **ignored)
    wanted = lambda x, w, b: formula(x, w, target.cpu(), b, class_weight=None if weight is None else weight.cpu(),
                                     smoothing=smoothing, **given, **ignored)
    check(function, leaves, wanted, torch.randn(rows if reduction == "none" else (), dtype=torch.float64))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8], ids=str)
def test_types_of_labels(dtype, device):
    leaves, target = layer((30,), 200, device=device), labels_of((30,), 200, device, dtype, ignore_index=255)
    check(lambda x, w, b: onepass.linear_cross_entropy(x, w, target, linear_bias=b, ignore_index=255), leaves,
          lambda x, w, b: formula(x, w, target.cpu(), b, ignore_index=255))


def test_labels_that_wrap(device):
    """A uint8 would take 156 for -100."""
    leaves, target = layer((30,), 200, device=device), torch.full((30,), 156, dtype=torch.uint8, device=device)
    check(lambda x, w, b: onepass.linear_cross_entropy(x, w, target, linear_bias=b), leaves,
          lambda x, w, b: formula(x, w, target.long().cpu(), b))


@pytest.mark.parametrize("make", [lambda device: 77, lambda device: 77.0,
                                  lambda device: torch.tensor(77, device=device),
                                  lambda device: torch.tensor([77.0], device=device), lambda device: torch.tensor(77)],
                         ids=["int", "float", "int64 tensor", "float32 tensor", "CPU's tensor"])
def test_num_items(make, device):
    leaves, target = layer((30,), 9, device=device), labels_of((30,), 9, device)
    check(lambda x, w, b: onepass.linear_cross_entropy(x, w, target, linear_bias=b, num_items=make(device)), leaves,
          lambda x, w, b: formula(x, w, target.cpu(), b, num_items=77))


def test_a_loss_of_another_type(device):
    leaves, target = layer((30,), 9, torch.bfloat16, device), labels_of((30,), 9, device)
    value = check(lambda x, w, b: onepass.linear_cross_entropy(x, w, target, linear_bias=b, dtype=torch.float32),
                  leaves, lambda x, w, b: formula(x, w, target.cpu(), b))
    assert value.dtype == torch.float32


def test_a_class_for_each_position(device):
    """PyTorch's K-dimensional loss, which has no chunks."""
    x, w, b = (torch.randn(shape, device=device) for shape in ((5, 6), (4, 3, 2, 6), (4, 3, 2)))
    target = torch.randint(4, (5, 3, 2), device=device)
    logits = torch.einsum("nh,cijh->ncij", x.double(), w.double()) + b.double()
    wanted = -torch.log_softmax(logits, 1).gather(1, target[:, None]).mean()
    torch.testing.assert_close(onepass.linear_cross_entropy(x, w, target, linear_bias=b).double(), wanted)


def test_a_layer_of_no_features(device):
    """All logits are the bias, or 0."""
    x, w = (torch.zeros(shape, device=device, requires_grad=True) for shape in ((2, 3, 0), (4, 0)))
    target, bias = torch.tensor([[0, 3, 1], [2, 2, 0]], device=device), torch.tensor([0.0, 1.0, 2.0, 3.0], device=device)
    logs = torch.log_softmax(bias, 0)[target]
    torch.testing.assert_close(onepass.linear_log_prob(x, w, target), torch.full((2, 3), -math.log(4), device=device))
    torch.testing.assert_close(onepass.linear_log_prob(x, w, target, linear_bias=bias), logs)
    value = onepass.linear_cross_entropy(x, w, target, linear_bias=bias)
    torch.testing.assert_close(value, -logs.mean())
    assert [one.shape for one in torch.autograd.grad(value, (x, w))] == [x.shape, w.shape]


@pytest.mark.skipif(not hasattr(torch.nn.functional, "linear_cross_entropy"), reason="PyTorch has it from 2.13 on")
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_it_is_pytorchs(reduction, device):
    leaves, target = layer((30,), 40, device=device), labels_of((30,), 40, device)
    x, w, b = leaves
    given = dict(linear_bias=b, reduction=reduction, label_smoothing=0.1, weight=torch.rand(40, device=device))
    mine = onepass.linear_cross_entropy(x, w, target, **given)
    peer = torch.nn.functional.linear_cross_entropy(x, w, target, **given)
    torch.testing.assert_close(mine, peer)
    for one, other in zip(gradients(mine.sum(), leaves, None), gradients(peer.sum(), leaves, None)):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_the_signature_is_pytorchs():
    import inspect

    theirs = getattr(torch.nn.functional, "linear_cross_entropy", None)
    if theirs is None:
        pytest.skip("PyTorch has linear_cross_entropy from 2.13 on")
    wanted = {name: (one.kind, one.default) for name, one in inspect.signature(theirs).parameters.items()}
    got = {name: (one.kind, one.default) for name, one in
           inspect.signature(onepass.linear_cross_entropy).parameters.items()}
    assert {name: got[name] for name in wanted} == wanted and list(got)[:len(wanted)] == list(wanted)


# ---------------------------------------------------------------------- the chunks --


def whole(*shape, device):
    """Small whole numbers, of which every product is exact in f32: logits do not depend on who multiplies."""
    return torch.randint(-3, 4, shape).float().to(device)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_chunks_leave_no_trace(reduction, device):
    """The loss is bit-identical to that of all logits, and gradients do not depend on chunks but by their sums."""
    rows, classes = 2100, 1100
    x, w, target = whole(rows, 4, device=device), whole(classes, 4, device=device), labels_of((rows,), classes, device)
    given = dict(reduction=reduction, dtype=torch.float64)  # which shows more bits than were summed
    wanted = onepass.cross_entropy(x @ w.T, target, **given)
    if reduction == "none":  # which are summed in f32, and so handed on
        wanted = wanted.float().double()
    leaf = x.clone().requires_grad_()
    for chunk in (1, 300, 1024, 2099, rows, 5000, None):
        value = onepass.linear_cross_entropy(leaf, w, target, chunk_rows=chunk, **given)
        assert_same_bits(value.detach(), wanted)
        assert_same_bits(onepass.linear_cross_entropy(x, w, target, chunk_rows=chunk, **given), wanted)


def test_a_16_bit_weight_has_its_gradient_summed_in_f32(device):
    """512 chunks that each add the same: 8 bits would stand still after a few."""
    rows = 512
    x = torch.full((rows, 8), 1.0, dtype=torch.bfloat16, device=device)
    w = torch.zeros(4, 8, dtype=torch.bfloat16, device=device, requires_grad=True)
    target = torch.zeros(rows, dtype=torch.int64, device=device)
    (found,) = torch.autograd.grad(onepass.linear_cross_entropy(x, w, target, reduction="sum", chunk_rows=1), w)
    wanted = torch.full((4, 8), 0.25 * rows, device=device)
    wanted[0] = -0.75 * rows
    assert torch.equal(found.float(), wanted)


@pytest.mark.parametrize("leaf", range(3))
def test_only_what_is_needed_has_a_gradient(leaf, device):
    leaves, target = layer((30,), 40, device=device), labels_of((30,), 40, device)
    all_of_them = gradients(onepass.linear_cross_entropy(*leaves[:2], target, linear_bias=leaves[2]), leaves, None)
    own = [x.detach().requires_grad_(k == leaf) for k, x in enumerate(leaves)]
    onepass.linear_cross_entropy(*own[:2], target, linear_bias=own[2]).backward()
    for k, x in enumerate(own):
        assert (x.grad is None) == (k != leaf)
    assert_same_bits(own[leaf].grad, all_of_them[leaf])


def allocated(function):
    """The largest number of bytes that a function holds at a time, and the most it takes at once."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        result = function()
    sizes = [event.nbytes() for event in profiler.profiler.kineto_results.events() if event.name() == "[memory]"]
    assert sizes, "the profiler saw no memory"
    held = peak = 0
    for size in sizes:
        held += size
        peak = max(peak, held)
    return result, peak, max(sizes)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("loss", ["linear_cross_entropy", "linear_log_prob"])
def test_no_more_than_a_chunk_of_logits_is_held(loss, reduction):
    if loss == "linear_log_prob" and reduction != "none":
        pytest.skip("linear_log_prob has no reduction")
    rows, classes, features, chunk = 4000, 79 * 64, 8, 100
    x, w, _ = layer((rows,), classes, features=features)
    target = labels_of((rows,), classes)
    given = {"reduction": reduction} if loss == "linear_cross_entropy" else {}

    def step():
        value = getattr(onepass, loss)(x, w, target, chunk_rows=chunk, **given)
        return torch.autograd.grad(value.sum(), (x, w))

    step()
    _, peak, largest = allocated(step)
    logits, own = 4 * chunk * classes, 4 * (rows * features + classes * features) + 8 * 6 * rows
    assert largest <= 1.01 * logits
    assert peak <= 1.2 * logits + 2 * own
    with torch.no_grad():
        _, peak, _ = allocated(lambda: getattr(onepass, loss)(x, w, target, chunk_rows=chunk, **given))
    assert peak <= 1.2 * logits + 8 * 6 * rows
    _, eager, _ = allocated(lambda: torch.autograd.grad(onepass.cross_entropy(x @ w.T, target), (x, w)))
    assert eager > 30 * logits  # which the measure would have seen


def test_chunks_of_a_language_model_are_a_gibibyte_on_a_gpu():
    from onepass._linear_chunks import chunk_rows

    weight = torch.empty(128256, 4096, dtype=torch.bfloat16, device="meta")

    class OnGpu:
        shape, device = weight.shape, torch.device("cuda")
        numel = weight.numel

    rows = chunk_rows(16384, OnGpu, 2)
    assert rows == 4096 and rows * 128256 * 2 < 1.02 * 2**30
    assert chunk_rows(100, OnGpu, 2) == 100
    for count in (5000, 16384, 16385, 100000):
        assert 1024 <= chunk_rows(count, OnGpu, 2) <= 4186


# -------------------------------------------------------------------- ignored rows --


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("classes", CLASSES)
def test_ignored_rows_are_left_out_of_the_products(classes, reduction, device):
    """Whatever stands in them: a product would make NaN of it."""
    leaves, target = layer((60,), classes, device=device), labels_of((60,), classes, device)
    with torch.no_grad():
        leaves[0][target == -100] = torch.nan
    number = int((target == -100).sum())
    value = onepass.linear_cross_entropy(leaves[0], leaves[1], target, linear_bias=leaves[2], reduction=reduction,
                                         num_ignored=number, chunk_rows=20)
    found = gradients(value.sum(), leaves, None)
    kept = target != -100
    few = [leaves[0].detach()[kept].requires_grad_(), *leaves[1:]]
    wanted = onepass.linear_cross_entropy(few[0], few[1], target[kept], linear_bias=few[2], reduction=reduction,
                                          chunk_rows=20)
    expected = gradients(wanted.sum(), few, None)
    assert_same_bits(value[kept] if reduction == "none" else value, wanted)
    assert not found[0][~kept].any() and (reduction != "none" or not value[~kept].any())
    assert_same_bits(found[0][kept], expected[0])
    for one, other in zip(found[1:], expected[1:]):
        assert_same_bits(one, other)


def test_how_many_are_ignored_is_checked_on_the_cpu():
    x, w, _ = layer((6,), 5)
    target = torch.tensor([0, 1, -100, 2, -100, 4])
    onepass.linear_cross_entropy(x, w, target, num_ignored=2)
    with pytest.raises(ValueError, match="num_ignored is 3; of the 6 labels 2 are ignore_index"):
        onepass.linear_cross_entropy(x, w, target, num_ignored=3)
    for wrong in (-1, 2.0, True):
        with pytest.raises(ValueError, match="num_ignored is"):
            onepass.linear_cross_entropy(x, w, target, num_ignored=wrong)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_all_rows_ignored(reduction, device):
    leaves, target = layer((6,), 5, device=device), torch.full((6,), -100, device=device)
    value = onepass.linear_cross_entropy(*leaves[:2], target, linear_bias=leaves[2], reduction=reduction)
    assert value.isnan() if reduction == "mean" else not value.any()
    for gradient in gradients(value.sum(), leaves, None):
        assert not gradient.any()


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_no_rows(reduction, device):
    leaves = layer((0,), 5, device=device)
    target = torch.empty(0, dtype=torch.int64, device=device)
    value = onepass.linear_cross_entropy(*leaves[:2], target, linear_bias=leaves[2], reduction=reduction)
    assert value.isnan() if reduction == "mean" else not value.any()
    for gradient, leaf in zip(gradients(value.sum(), leaves, None), leaves):
        assert gradient.shape == leaf.shape and not gradient.any()


def test_a_label_that_is_no_class():
    x, w, _ = layer((6,), 5)
    for reduction in REDUCTIONS:
        with pytest.raises(IndexError, match="Target 5 is out of bounds"):
            onepass.linear_cross_entropy(x, w, torch.tensor([0, 1, 2, 3, 4, 5]), reduction=reduction)


# ------------------------------------------------------------------ around a call --


@pytest.mark.parametrize("factor", [1.0, 0.25, 3.0])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
def test_a_scaled_loss(dtype, factor, device):
    leaves, target = layer((40,), 1500, dtype, device), labels_of((40,), 1500, device)
    check(lambda x, w, b: onepass.linear_cross_entropy(x, w, target, linear_bias=b), leaves,
          lambda x, w, b: formula(x, w, target.cpu(), b), torch.tensor(factor))


@pytest.mark.parametrize("is_compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_an_upstream_gradient_that_is_no_number_has_no_say_in_ignored_rows(reduction, is_compiled, device):
    def loss(x, w, b):
        return onepass.linear_cross_entropy(x, w, target, linear_bias=b, reduction=reduction)

    target = labels_of((40,), 9, device)
    loss = torch.compile(loss, fullgraph=True, backend="aot_eager") if is_compiled else loss
    for factor in (torch.inf, torch.nan):
        leaves = layer((40,), 9, device=device)
        value = loss(*leaves)
        found, *_ = gradients(value, leaves, torch.full_like(value, factor))
        assert not found[target == -100].any() and not found[target != -100].isfinite().any()


def test_the_gradients_that_waited_are_given_away(device):
    """PyTorch puts them into .grad without a copy, and nothing holds them any longer."""
    leaves, target = layer((40,), 30, device=device), labels_of((40,), 30, device)
    value = onepass.linear_cross_entropy(*leaves[:2], target, linear_bias=leaves[2])
    waiting = value.grad_fn.kept[1].data_ptr()
    value.backward()
    assert leaves[1].grad.data_ptr() == waiting and not hasattr(value.grad_fn, "kept")


def test_an_operand_changed_in_place_is_pytorchs_error(device):
    leaves, target = layer((40,), 30, device=device), labels_of((40,), 30, device)
    value = onepass.linear_cross_entropy(*leaves[:2], target, linear_bias=leaves[2])
    with torch.no_grad():
        leaves[1].mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        value.backward()


def test_second_derivatives(device):
    leaves, target = layer((5,), 6, torch.float64, device, features=3), torch.tensor([0, 5, -100, 2, 2], device=device)
    for reduction in REDUCTIONS:
        function = lambda x, w, b: onepass.linear_cross_entropy(x, w, target, linear_bias=b, reduction=reduction,
                                                                label_smoothing=0.1)
        torch.autograd.gradcheck(function, leaves)
        torch.autograd.gradgradcheck(function, leaves)


def test_transforms(device):
    (x, w, b), target = layer((5,), 6, torch.float64, device, features=3), torch.tensor([0, 5, 1, 2, 2], device=device)
    function = lambda x, w: onepass.linear_cross_entropy(x, w, target, linear_bias=b.detach())
    wanted = torch.autograd.grad(function(x, w), (x, w))
    found = torch.func.grad(function, (0, 1))(x.detach(), w.detach())
    for one, other in zip(found, wanted):
        torch.testing.assert_close(one, other)
    many = torch.func.vmap(function, (0, None))(x.detach().expand(3, 5, 3), w.detach())
    torch.testing.assert_close(many, function(x, w).detach().expand(3))
    _, slope = torch.func.jvp(lambda x: function(x, w.detach()), (x.detach(),), (torch.ones_like(x),))
    torch.testing.assert_close(slope, wanted[0].sum())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_autocast(dtype, device):
    """The products are of 16 bits, the loss and the gradients of f32 leaves are of f32, and the weight's is summed in
    it."""
    leaves, target = layer((40,), 1500, device=device), labels_of((40,), 1500, device)
    with torch.autocast(device, dtype=dtype):
        value = onepass.linear_cross_entropy(*leaves[:2], target, linear_bias=leaves[2], chunk_rows=16)
    assert value.dtype == torch.float32
    halves = [x.detach().to(dtype).requires_grad_() for x in leaves]
    peer = onepass.linear_cross_entropy(*halves[:2], target, linear_bias=halves[2], chunk_rows=16, dtype=torch.float32)
    assert_same_bits(value.detach(), peer.detach())
    for _ in range(2):  # of which the second computes them anew
        found, wanted = gradients(value, leaves, None), gradients(peer, halves, None)
        for one, other in zip(found, wanted):
            assert one.dtype == torch.float32 and torch.equal(one.to(dtype), other)
        assert_same_bits(found[0], wanted[0].float())
        assert found[1].to(dtype).ne(found[1]).any()


def test_f16_gradients_do_not_underflow_before_they_are_scaled(device):
    """Classes that are no label: of a mean over many rows their logits have gradients that f16 does not hold, until
    GradScaler's factor."""
    x = torch.rand(6000, 24).half().to(device)
    w = (torch.randn(1500, 24) / 100).half().to(device).requires_grad_()
    target = torch.randint(10, (6000,), device=device)
    value = onepass.linear_cross_entropy(x, w, target, dtype=torch.float32)
    (found,) = torch.autograd.grad(value, w, torch.tensor(2.0**14, device=device))
    peer = w.detach().double().cpu().requires_grad_()
    (wanted,) = torch.autograd.grad(formula(x.double().cpu(), peer, target.cpu()), peer)
    assert_near(found[10:], 2.0**14 * wanted[10:], torch.float16, "gradient for the weight of other classes")


@pytest.mark.parametrize("classes", [1100, 1216])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_memory_that_was_used_before(dtype, classes, device):
    """Nothing is read before it was written, NaN above all."""
    leaves, target = layer((130,), classes, dtype, device), labels_of((130,), classes, device)
    for _ in range(20):
        used = [torch.full((size,), torch.nan, dtype=dtype, device=device)
                for size in (130 * 1100, 130 * 1152, 130 * 1216, 130 * 24, 1100 * 24, 1216 * 24)]
        del used
        value = onepass.linear_cross_entropy(*leaves[:2], target, linear_bias=leaves[2])
        assert all(found.isfinite().all() for found in (value, *gradients(value, leaves, None)))


def test_hidden_states_of_any_strides(device):
    rows, target = torch.randn(6, 24, 8, device=device), labels_of((8, 24), 30, device)
    w = torch.randn(6, 30, device=device).t()
    x = rows.permute(2, 1, 0)
    torch.testing.assert_close(onepass.linear_cross_entropy(x, w, target),
                               onepass.linear_cross_entropy(x.contiguous(), w.contiguous(), target))


def test_checkpointing(device):
    from torch.utils.checkpoint import checkpoint

    leaves, target = layer((40,), 30, device=device), labels_of((40,), 30, device)
    function = lambda x, w, b: onepass.linear_cross_entropy(x * 2, w, target, linear_bias=b)
    wanted = gradients(function(*leaves), leaves, None)
    for one, other in zip(gradients(checkpoint(function, *leaves, use_reentrant=False), leaves, None), wanted):
        assert_same_bits(one, other)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
def test_nobody_waits_for_a_gpu(dtype):
    leaves, target = layer((300,), 1500, dtype, "cuda"), labels_of((300,), 1500, "cuda")
    number = int((target == -100).sum())
    items = torch.tensor(200, device="cuda")

    def steps():
        for given in ({}, {"num_ignored": number}, {"num_items": items}, {"reduction": "none"}):
            value = onepass.linear_cross_entropy(*leaves[:2], target, linear_bias=leaves[2], chunk_rows=128, **given)
            value.sum().backward()
        onepass.linear_log_prob(*leaves[:2], target, linear_bias=leaves[2]).sum().backward()
        onepass.nt_xent_loss(leaves[0][:150], leaves[0][150:], chunk_rows=128).backward()
        onepass.supcon_loss(leaves[0], target, chunk_rows=128).backward()

    steps()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        steps()
    finally:
        torch.cuda.set_sync_debug_mode("default")


# ---------------------------------------------------------------------- log_prob --


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("classes", CLASSES)
def test_log_prob(classes, dtype, device):
    rows = (5, 11)
    leaves, target = layer(rows, classes, dtype, device), labels_of(rows, classes, device)
    given = dict(temperature=0.8, softcap=6.0)
    value = check(lambda x, w, b: onepass.linear_log_prob(x, w, target, linear_bias=b, chunk_rows=9, **given), leaves,
                  lambda x, w, b: -formula(x, w, target.cpu(), b, reduction="none", **given), torch.randn(rows))
    assert not value[target == -100].any() and value.shape == rows


def test_a_preference_loss_of_log_prob(device):
    """DPO of two answers, as one would write it."""
    leaves, target = layer((4, 11), 1500, torch.float64, device), labels_of((4, 11), 1500, device)

    def preference(each):
        chosen, rejected = each.sum(-1).chunk(2)
        return -torch.nn.functional.logsigmoid(0.1 * (chosen - rejected)).mean()

    check(lambda x, w, b: preference(onepass.linear_log_prob(x, w, target, linear_bias=b)), leaves,
          lambda x, w, b: preference(-formula(x, w, target.cpu(), b, reduction="none")), chunked=False)


# ------------------------------------------------------------------------- errors --


@pytest.mark.parametrize("make, error, words", [
    (lambda x, w, t: onepass.linear_cross_entropy(x[0, 0], w, t), RuntimeError, "expected input with dimensionality"),
    (lambda x, w, t: onepass.linear_cross_entropy(x, w[0], t), RuntimeError, "linear_weight with dimensionality"),
    (lambda x, w, t: onepass.linear_cross_entropy(x, w[:, 1:], t), RuntimeError, r"last dimensions \(in_features\)"),
    (lambda x, w, t: onepass.linear_cross_entropy(x, w, t, linear_bias=w[0]), RuntimeError, "linear_bias shape"),
    (lambda x, w, t: onepass.linear_cross_entropy(x, w, t[1:]), ValueError, r"batch_size \(6\) to match target"),
    (lambda x, w, t: onepass.linear_cross_entropy(x[None], w, t), ValueError, "expected a class index for each row"),
    (lambda x, w, t: onepass.linear_cross_entropy(x, w, t, reduction="best"), ValueError, "best is not a valid value"),
    (lambda x, w, t: onepass.linear_cross_entropy(x, w, t, label_smoothing=1.5), RuntimeError, "label_smoothing must"),
    (lambda x, w, t: onepass.linear_cross_entropy(x, w, x @ w.T, ignore_index=1), RuntimeError, "ignore_index cannot"),
    (lambda x, w, t: onepass.linear_cross_entropy(x, w, t, num_items=-3), ValueError, "num_items is -3"),
    (lambda x, w, t: onepass.linear_cross_entropy(x, w, t, num_items=3, reduction="sum"), ValueError,
     "num_items is set, but reduction is 'sum'"),
    (lambda x, w, t: onepass.linear_cross_entropy(x, w, t, chunk_rows=0), ValueError, "chunk_rows is 0"),
    (lambda x, w, t: onepass.linear_cross_entropy(x, w, t, temperature=0), ValueError, "temperature of"),
    (lambda x, w, t: onepass.linear_cross_entropy(x.numpy(), w, t), TypeError, "expected a PyTorch tensor"),
    (lambda x, w, t: onepass.linear_cross_entropy(x, w, t.float()), RuntimeError, "Long"),
    (lambda x, w, t: onepass.linear_cross_entropy(x, w.double(), t), RuntimeError, "dtype"),
    (lambda x, w, t: onepass.linear_cross_entropy(x.int(), w.int(), t), NotImplementedError, "is of torch.int32"),
    (lambda x, w, t: onepass.linear_log_prob(x.int(), w.int(), t), NotImplementedError, "is of torch.int32"),
    (lambda x, w, t: onepass.linear_log_prob(x, w, t[1:]), ValueError, "batch_size"),
])
def test_errors(make, error, words):
    with pytest.raises(error, match=words):
        make(torch.randn(6, 4), torch.randn(5, 4), torch.tensor([0, 1, 2, 3, 4, 0]))


def test_subclasses_answer_for_themselves():
    class Own(torch.Tensor):
        seen = []

        @classmethod
        def __torch_function__(cls, function, types, arguments=(), given=None):
            cls.seen.append(getattr(function, "__name__", None))
            return super().__torch_function__(function, types, arguments, given or {})

    x, w, t = torch.randn(6, 4).as_subclass(Own), torch.randn(5, 4), torch.tensor([0, 1, 2, 3, 4, 0])
    value = onepass.linear_cross_entropy(x, w, t)
    assert Own.seen[0] == "linear_cross_entropy"
    assert math.isclose(value.item(), onepass.linear_cross_entropy(x.as_subclass(torch.Tensor), w, t).item(),
                        rel_tol=1e-6)


# ------------------------------------------------------------------------ the module --


def test_the_module(device):
    import onepass.nn

    module = onepass.nn.LinearCrossEntropyLoss(6, 9, bias=True, ignore_index=3, label_smoothing=0.1, z_loss=1e-3,
                                               device=device, weight=torch.rand(9, device=device))
    x, target = torch.randn(2, 7, 6, device=device), torch.randint(9, (2, 7), device=device)
    value = module(x, target, num_items=5)
    assert_same_bits(value, onepass.linear_cross_entropy(
        x, module.linear.weight, target, linear_bias=module.linear.bias, ignore_index=3, label_smoothing=0.1,
        z_loss=1e-3, weight=module.weight, num_items=5))
    value.backward()
    assert {name for name, _ in module.named_parameters()} == {"linear.weight", "linear.bias"}
    assert all(parameter.grad is not None for parameter in module.parameters())
    many = onepass.nn.LinearCrossEntropyLoss(6, 4, out_features=(3, 2), device=device)
    assert many(x[0], torch.randint(4, (7, 3, 2), device=device)).isfinite()
    for wrong in (dict(weight=torch.ones(3)), dict(label_smoothing=2)):
        with pytest.raises(RuntimeError, match="expected"):
            onepass.nn.LinearCrossEntropyLoss(6, 9, **wrong)


@pytest.mark.skipif(not hasattr(torch.nn, "LinearCrossEntropyLoss"), reason="PyTorch has it from 2.13 on")
def test_the_module_is_pytorchs():
    import inspect

    import onepass.nn

    theirs, ours = (inspect.signature(one).parameters for one in (torch.nn.LinearCrossEntropyLoss,
                                                                  onepass.nn.LinearCrossEntropyLoss))
    assert {name: one.default for name, one in theirs.items()} == {name: ours[name].default for name in theirs}
    peer, mine = torch.nn.LinearCrossEntropyLoss(6, 9), onepass.nn.LinearCrossEntropyLoss(6, 9)
    mine.load_state_dict(peer.state_dict())
    assert repr(mine) == repr(peer)
    x, target = torch.randn(5, 6), torch.randint(9, (5,))
    torch.testing.assert_close(mine(x, target), peer(x, target))


@pytest.mark.parametrize("loss", [
    lambda x, y: onepass.linear_cross_entropy(x, x, y),
    lambda x, y: onepass.linear_cross_entropy(x, x, y, reduction="none"),
    lambda x, y: onepass.linear_log_prob(x, x, y),
    lambda x, y: onepass.nt_xent_loss(x, x.flip(0), reduction="none"),
    lambda x, y: onepass.supcon_loss(x, y),
    lambda x, y: onepass.log_prob(x, y, return_entropy=True)[1],
])
def test_many_upstream_gradients_at_once(loss):
    """is_grads_batched and jacobian(vectorize=True): backward is asked for several gradients together."""
    x = torch.randn(6, 6, dtype=torch.float64)
    wanted, got = (torch.autograd.functional.jacobian(lambda x: loss(x, torch.arange(6) // 2), x, vectorize=together)
                   for together in (False, True))
    torch.testing.assert_close(got, wanted)
