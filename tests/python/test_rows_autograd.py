# The way back of losses over rows: the same bits by every route, whatever comes from upstream; nothing of the caller's
# is overwritten unless it may be; derivatives of every kind.
import gc
import weakref
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")

import onepass
import torch.nn.functional as F
from onepass import _row_request, _upstream_habit
from torch.autograd import forward_ad

from agreement import assert_same_bits
from operands import FLOATS, dyadic
from row_cases import labels_of, logits_of, probabilities_of

SHAPES = [(6, 5), (6, 1500)]  # without the rows' state and with it


@pytest.fixture(autouse=True)
def no_habits(monkeypatch):
    monkeypatch.setattr(_upstream_habit, "_seen", {})


def gradient(input, target, upstream=1.0, **given):
    leaf = input.detach().clone().requires_grad_()
    (onepass.cross_entropy(leaf, target, **given) * upstream).sum().backward()
    return leaf.grad


# --------------------------------------------------------------- the routes of a gradient --


@pytest.mark.parametrize("kind", ["labels", "probabilities"])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_route_has_the_same_bits(monkeypatch, shape, dtype, kind, device):
    """With the value, for the upstream gradient that comes or for another, or in backward of the rows' state."""
    input = logits_of(shape, dtype, device)
    target = labels_of(shape, device=device, ignore_index=-100) if kind == "labels" else \
        probabilities_of(shape, dtype, device)
    weight = dyadic((shape[1],), dtype, device)
    for upstream in (1.0, 0.3, 65536.0):
        for given in ({}, {"weight": weight, "label_smoothing": 0.1}, {"reduction": "sum", "z_loss": 0.01}):
            found = []
            for expected in (1.0, upstream, 0.3, None):
                monkeypatch.setattr(_upstream_habit, "expected", lambda kind: expected)
                found.append(gradient(input, target, upstream, **given))
                assert_same_bits(found[0], found[-1], f"{upstream} {expected} {given}")
        if kind == "labels":  # what goes to rows of a sum goes to the rows themselves
            assert_same_bits(gradient(input, target, upstream, reduction="none"),
                             gradient(input, target, upstream, reduction="sum"))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_backward_twice(shape, reduction, device):
    """Each for its own upstream gradient, in any order."""
    input, target = logits_of(shape, torch.bfloat16, device), labels_of(shape, device=device)
    for upstreams in ((1.0, 3.0), (3.0, 1.0), (1.0, 1.0), (0.5, 3.0)):
        leaf = input.clone().requires_grad_()
        value = onepass.cross_entropy(leaf, target, reduction=reduction)
        for upstream in upstreams:
            (own,) = torch.autograd.grad(value, leaf, torch.full_like(value, upstream), retain_graph=True)
            assert_same_bits(own, gradient(input, target, upstream, reduction=reduction))


def test_two_gradients_do_not_share_memory(device):
    leaf, target = logits_of((6, 5), device=device).requires_grad_(), labels_of((6, 5), device=device)
    value = onepass.cross_entropy(leaf, target)
    one, other = (torch.autograd.grad(value, leaf, retain_graph=True)[0] for _ in range(2))
    wanted = other.clone()
    one.zero_()
    assert torch.equal(other, wanted)


def test_infinite_upstream_leaves_ignored_rows_alone(device):
    """As GradScaler's can be: 0 times infinity is for rows that take part."""
    input, target = logits_of((3, 4), device=device), torch.tensor([1, -100, 2], device=device)
    leaf = input.requires_grad_()
    (found,) = torch.autograd.grad(onepass.cross_entropy(leaf, target), leaf, torch.tensor(float("inf"), device=device))
    assert not found[1].any() and not found[0].isfinite().any()


def test_logits_that_were_changed_are_an_error(device):
    input = logits_of((6, 5), device=device).requires_grad_()
    logits = input * 1
    value = onepass.cross_entropy(logits, labels_of((6, 5), device=device), reduction="none")
    logits.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        value.sum().backward()


def test_what_was_kept_goes_with_the_graph():
    """The gradient is the caller's alone, and the logits are nobody's after backward."""
    leaf, target = logits_of((64, 40)).requires_grad_(), labels_of((64, 40))
    value = onepass.cross_entropy(leaf * 1, target)
    saved = weakref.ref(value.grad_fn)
    value.backward()
    leaf.grad.zero_()
    del value
    gc.collect()
    assert saved() is None


# ------------------------------------------------------------------------------ habits --


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_a_scaled_loss_is_remembered(monkeypatch, dtype, device):
    """After a step with another upstream gradient the gradient is left to backward, unless it is 1; after two of them
    it is computed for that one."""
    input, target = logits_of((64, 1200), dtype, device), labels_of((64, 1200), device=device)
    asked = []
    from onepass import _rows

    native = _rows._torch_rows
    monkeypatch.setattr(_rows, "_torch_rows", lambda *arguments: (
        asked.append((arguments[12:] or (1.0,))[0] if arguments[11] & 1 else None), native(*arguments))[1])
    for upstream in (1.0, 0.25, 0.25, 0.25, 1.0, 1.0, float("nan"), float("nan"), 1.0):
        gradient(input, target, upstream)
        if device == "cuda":
            torch.cuda.synchronize()  # for the test alone
    assert asked == [1.0 if dtype is torch.float32 else None, 1.0, None, 0.25, 0.25, 1.0, 1.0, None, None]
    gradient(input, target, 1.0, reduction="sum")  # which is another place in a program
    assert asked[-1] == (1.0 if dtype is torch.float32 else None)


def test_an_old_habit_is_looked_at_now_and_then(monkeypatch):
    """So that most backward passes do without, and another habit is found out soon all the same. A 1 that is seen at
    once is what is expected anyway."""
    input, target, looks = logits_of((64, 1200)), labels_of((64, 1200)), []
    gradient(input, target, 1.0)
    assert not _upstream_habit._seen
    for upstream in [0.5] * 20 + [0.3] * 4:
        gradient(input, target, upstream)
        seen, = _upstream_habit._seen.values()
        looks.append(seen.last._version)
    assert seen.last.item() == pytest.approx(0.3)
    assert [after - before for before, after in zip([0] + looks, looks)] == [1] * 8 + [0, 0, 0, 1] * 4


def test_long_rows_leave_their_state(monkeypatch):
    """So that backward reads each logit once; it would cost short ones more than it spares."""
    from onepass import _rows

    native, asked = _rows._torch_rows, []
    monkeypatch.setattr(_rows, "_torch_rows", lambda *arguments: (asked.append(arguments[-1]), native(*arguments))[1])
    for classes in (10, 1024, 1025):
        gradient(logits_of((3, classes)), labels_of((3, classes)), reduction="none")
    onepass.cross_entropy(logits_of((3, 1025)), labels_of((3, 1025)))
    assert [bool(outputs & _rows.STATE) for outputs in asked] == [False, False, True, False]


def test_what_a_gpu_computes_at_once():
    """Rows that its registers have room for, or of bfloat16 some multiprocessors' memory; longer ones are read again in
    any case."""
    def is_apart(classes, dtype, name="cross_entropy", **given):
        input = SimpleNamespace(is_cuda=True, dtype=dtype, element_size=lambda: dtype.itemsize)
        request = _row_request.Request(name, None, _row_request.parameters_of(name, **given), 2, None, None)
        return _row_request.is_quicker_apart(request, input, classes)

    assert [is_apart(classes, torch.float64) for classes in (8192, 8196)] == [False, True]
    assert [is_apart(classes, torch.bfloat16) for classes in (32776, 65532, 131072, 131080)] == [False, True, False, True]
    for dtype in (torch.bfloat16, torch.float32):
        assert [is_apart(classes, dtype) for classes in (32768, 32766, 32772)] == [False, True, True]
        assert is_apart(8196, dtype, label_smoothing=0.1) and not is_apart(8192, dtype, label_smoothing=0.1)
        assert is_apart(8196, dtype, _row_request.WITH_PROBABILITIES)


def test_small_losses_and_many_kinds_are_not_remembered(monkeypatch):
    gradient(logits_of((6, 5)), labels_of((6, 5)), 0.3)
    assert not _upstream_habit._seen
    monkeypatch.setattr(_upstream_habit, "_MOST", 1)
    for classes in (1200, 1201):
        gradient(logits_of((64, classes)), labels_of((64, classes)), 0.3)
    assert len(_upstream_habit._seen) == 1


# ------------------------------------------------------------------------------ in place --


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("upstream", [1.0, 0.3])
def test_inplace(shape, dtype, upstream, device):
    """The gradient has the logits' memory and the bits of any other."""
    input, target = logits_of(shape, dtype, device), labels_of(shape, device=device, ignore_index=-100)
    leaf = input.clone().requires_grad_()
    logits, arrived = leaf * 1, []
    logits.register_hook(lambda own: arrived.append((own.data_ptr(), own.clone())))
    kept = logits.detach().clone()
    value = onepass.cross_entropy(logits, target, inplace=True)
    assert torch.equal(logits.detach(), kept)  # until backward
    (value * upstream).backward()
    (address, own), = arrived
    assert address == logits.data_ptr()
    assert_same_bits(own, gradient(input, target, upstream))
    assert_same_bits(leaf.grad, own)


def test_inplace_of_a_view_and_of_rows(device):
    input, target = logits_of((2, 3, 1100), device=device), torch.randint(0, 1100, (2, 3), device=device)
    leaf = input.clone().requires_grad_()
    logits = leaf * 1
    onepass.cross_entropy(logits.view(-1, 1100), target.view(-1), reduction="none", inplace=True).sum().backward()
    assert_same_bits(leaf.grad.view(-1, 1100), gradient(input.view(-1, 1100), target.view(-1), reduction="none"))
    leaf = input.clone().requires_grad_()
    onepass.log_prob(leaf * 1, target, inplace=True).sum().backward()
    peer = input.clone().requires_grad_()
    onepass.log_prob(peer, target).sum().backward()
    assert_same_bits(leaf.grad, peer.grad)


def test_inplace_is_known_to_autograd(device):
    """A second backward, and a use of the logits elsewhere, are errors and no wrong numbers."""
    leaf, target = logits_of((6, 5), device=device).requires_grad_(), labels_of((6, 5), device=device)
    logits = leaf * 1
    other = (logits**2).sum()
    value = onepass.cross_entropy(logits, target, inplace=True)
    version = logits._version
    value.backward(retain_graph=True)
    assert logits._version > version
    for late in (value, other):
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            late.backward()
    softmax = torch.softmax(leaf, 1)  # which keeps its output
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        onepass.cross_entropy(softmax, target, inplace=True).backward()


def test_inplace_refuses_leaves_and_shared_memory(device):
    leaf, target = logits_of((6, 5), device=device).requires_grad_(), labels_of((6, 5), device=device)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        onepass.cross_entropy(leaf, target, inplace=True)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        onepass.cross_entropy(leaf[:, :4], target.clamp(max=3), inplace=True)
    for view in (leaf.detach().chunk(2)[0], leaf.detach()[:, :]):  # a leaf may be a view itself
        before, rows = view.requires_grad_().detach().clone(), len(view)
        for logits in (view, view.view(-1, 5), view[1:].view(-1, 5)):
            with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
                onepass.cross_entropy(logits, target[:len(logits)], inplace=True)
        onepass.cross_entropy((view * 1).view(-1, 5), target[:rows], inplace=True).backward()
        assert view.grad.any() and torch.equal(view.detach(), before)
    with pytest.raises(RuntimeError, match="share their memory"):
        onepass.cross_entropy((leaf * 1)[:1].expand(6, 5), target, inplace=True)
    with torch.no_grad():
        onepass.cross_entropy(leaf, target, inplace=True)
    kept = leaf.detach().clone()
    onepass.cross_entropy(leaf.detach(), target, inplace=True)
    assert torch.equal(leaf.detach(), kept)


# ------------------------------------------------------------------------ derivatives --


FUNCTIONS = {
    "cross_entropy": lambda x, y: onepass.cross_entropy(x, y, torch.linspace(0.5, 2, 4).double(), ignore_index=2,
                                                        label_smoothing=0.1),
    "everything": lambda x, y: onepass.cross_entropy(x, y, z_loss=0.1, softcap=3.0, temperature=1.5, divisor=7,
                                                     row_weight=torch.linspace(0.5, 1, 5).double(), reduction="mean"),
    "none": lambda x, y: onepass.cross_entropy(x, y, reduction="none"),
    "nll_loss": lambda x, y: onepass.nll_loss(x, y, reduction="sum"),
    "log_prob": lambda x, y: onepass.log_prob(x, y, temperature=0.7),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name):
    input, target = logits_of((5, 4), torch.float64).requires_grad_(), torch.tensor([0, 2, 1, 3, 2])
    function = lambda x: FUNCTIONS[name](x, target)
    assert torch.autograd.gradcheck(function, input, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(function, input)


def test_derivatives_for_probabilities():
    tensors = [logits_of((3, 4), torch.float64), probabilities_of((3, 4), torch.float64),
               torch.rand(4, dtype=torch.float64)]
    tensors = [x.requires_grad_() for x in tensors]
    function = lambda x, q, w: onepass.cross_entropy(x, q, w, label_smoothing=0.1, z_loss=0.1)
    assert torch.autograd.gradcheck(function, tensors)
    assert torch.autograd.gradcheck(lambda x, q: function(x, q, tensors[2].detach()), tensors[:2])
    assert torch.autograd.gradgradcheck(lambda x, q: function(x, q, tensors[2].detach()), tensors[:2])


def test_double_backward_of_narrow_types_and_ignored_rows():
    input, target = logits_of((3, 4), torch.bfloat16), torch.tensor([1, -100, 2])
    input[1, 0] = float("nan")
    leaf = input.requires_grad_()
    value = onepass.cross_entropy(leaf, target, dtype=torch.float32)
    (own,) = torch.autograd.grad(value, leaf, create_graph=True)
    (second,) = torch.autograd.grad(own.float().pow(2).sum(), leaf)
    assert own.dtype is torch.bfloat16 and not own[1].any() and second.isfinite().all() and second[0].any()


# ------------------------------------------------------------------------- transforms --


def test_transforms():
    input, target = logits_of((3, 5, 4), torch.float64), torch.randint(0, 4, (3, 5))
    ours, theirs = onepass.cross_entropy, F.cross_entropy
    for change in (lambda f: torch.vmap(f), lambda f: torch.vmap(torch.func.grad(f)),
                   lambda f: torch.vmap(torch.func.jacrev(f)), lambda f: torch.vmap(torch.func.hessian(f))):
        torch.testing.assert_close(change(ours)(input, target), change(theirs)(input, target))
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(input[0], torch.ones_like(input[0]) * 0.1)
        tangents = [forward_ad.unpack_dual(f(dual, target[0])).tangent for f in (ours, theirs)]
    torch.testing.assert_close(*tangents)


def test_transforms_of_all_that_is_ours():
    input, target = logits_of((3, 5, 4), torch.float64), torch.randint(0, 4, (3, 5))
    each = lambda x, y: onepass.cross_entropy(x, y, z_loss=0.1, softcap=2.0, temperature=1.5, reduction="none")
    found = torch.vmap(each)(input, target)
    torch.testing.assert_close(found, torch.stack([each(x, y) for x, y in zip(input, target)]))
    found = torch.vmap(lambda x, y: onepass.cross_entropy(x, y, return_lse=True, return_accuracy=True,
                                                          return_z_loss=True, z_loss=0.5))(input, target)
    wanted = [onepass.cross_entropy(x, y, return_lse=True, return_accuracy=True, return_z_loss=True, z_loss=0.5)
              for x, y in zip(input, target)]
    for own, peer in zip(found, zip(*wanted)):
        torch.testing.assert_close(own, torch.stack(peer), check_dtype=False)
    torch.testing.assert_close(torch.vmap(onepass.log_prob)(input, target), onepass.log_prob(input, target))


def test_class_weights_of_a_single_row_under_vmap():
    """Whose label has no dimensions."""
    input, target = logits_of((3, 4), torch.float64), torch.tensor([0, 3, 1])
    weight = torch.rand(4, dtype=torch.float64) + 0.5
    each = lambda x, y: onepass.cross_entropy(x, y, weight, z_loss=0.1)
    torch.testing.assert_close(torch.vmap(each)(input, target), torch.stack([each(*one) for one in zip(input, target)]))


def test_nothing_flows_from_what_is_told_beside_the_loss():
    input, target = logits_of((3, 5), torch.float64), labels_of((3, 5))
    for told in (1, 2):
        of_told = lambda x: onepass.cross_entropy(x, target, z_loss=0.1, return_lse=True, return_z_loss=True)[told].sum()
        assert not torch.func.jacrev(of_told)(input).any() and not torch.func.jacfwd(of_told)(input).any()


def test_many_upstream_gradients_at_once():
    input, target = logits_of((64, 1200)).requires_grad_(), labels_of((64, 1200))
    for reduction, shape in (("mean", (3,)), ("none", (3, 64))):
        value, upstream = onepass.cross_entropy(input, target, reduction=reduction), torch.rand(shape)
        (found,) = torch.autograd.grad(value, input, upstream, is_grads_batched=True, retain_graph=True)
        wanted = [torch.autograd.grad(value, input, own, retain_graph=True)[0] for own in upstream]
        torch.testing.assert_close(found, torch.stack(wanted))


def test_autocast_under_a_transform():
    input, target = logits_of((3, 5, 4), torch.bfloat16), torch.randint(0, 4, (3, 5))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.vmap(onepass.cross_entropy)(input, target).dtype is torch.float32


class Named(torch.Tensor):
    """A subclass that does nothing of its own."""


def test_subclasses_and_rare_tensors():
    input, target = logits_of((3, 4)), labels_of((3, 4))
    found = onepass.cross_entropy(input.as_subclass(Named), target)
    assert type(found) is Named
    torch.testing.assert_close(found.as_subclass(torch.Tensor), onepass.cross_entropy(input, target))
    found = onepass.cross_entropy(input.as_subclass(Named), target, z_loss=0.1)
    torch.testing.assert_close(found.as_subclass(torch.Tensor), onepass.cross_entropy(input, target, z_loss=0.1))
    negative = torch.complex(input, input).conj().imag  # a view whose numbers are to be negated
    torch.testing.assert_close(onepass.cross_entropy(negative, target), onepass.cross_entropy(-input, target))
    meta = onepass.cross_entropy(input.to("meta"), target.to("meta"), reduction="none")
    assert meta.shape == (3,) and meta.is_meta


def test_checkpoints():
    from torch.utils.checkpoint import checkpoint

    input, target = logits_of((6, 1500)).requires_grad_(), labels_of((6, 1500))
    checkpoint(lambda x: onepass.cross_entropy(x * 1, target), input, use_reentrant=False).backward()
    assert_same_bits(input.grad, gradient(input, target))


def test_threads():
    """Backward may run in another thread than forward, and on many graphs at once."""
    import threading

    input, target = logits_of((64, 1200)), labels_of((64, 1200))
    wanted, found = gradient(input, target, 0.5), []
    workers = [threading.Thread(target=lambda: found.append(gradient(input, target, 0.5))) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(found) == 4 and all(torch.equal(own, wanted) for own in found)


# -------------------------------------------------------------------------------- a GPU --


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", [(6, 5), (7, 1500), (64, 1000), (3, 20000), (3, 33000), (2, 5, 9, 7)], ids=str)
def test_a_gpu_has_the_cpus_bits(dtype, shape):
    for given in ({}, {"label_smoothing": 0.1}, {"z_loss": 0.1}, {"reduction": "none"}):
        input, target = logits_of(shape, dtype), labels_of(shape, ignore_index=-100)
        here = gradient(input, target, 0.3, **given)
        assert_same_bits(gradient(input.cuda(), target.cuda(), 0.3, **given).cpu(), here)
        assert_same_bits(onepass.cross_entropy(input.cuda(), target.cuda(), **given).cpu(),
                         onepass.cross_entropy(input, target, **given))


@pytest.mark.gpu
def test_nobody_waits():
    """PyTorch says so where the host waits for the device."""
    input, target = logits_of((64, 1200), device="cuda"), labels_of((64, 1200), device="cuda")
    items = torch.tensor(40, device="cuda")
    gradient(input, target, 0.3, divisor=items)
    torch.cuda.set_sync_debug_mode("error")
    try:
        for upstream in (1.0, 0.3):
            gradient(input, target, upstream, divisor=items)
        onepass.cross_entropy(input, target, return_lse=True, return_z_loss=True, return_accuracy=True)
        onepass.log_prob(input, target, return_entropy=True)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_cuda_graphs(shape):
    input, target = logits_of(shape, device="cuda").requires_grad_(), labels_of(shape, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            (onepass.cross_entropy(input, target) * 0.5).backward()
    torch.cuda.current_stream().wait_stream(side)
    input.grad = None
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        value = onepass.cross_entropy(input, target)
        (value * 0.5).backward()
    other = logits_of(shape, device="cuda")
    with torch.no_grad():
        input.copy_(other)
        input.grad.zero_()
    graph.replay()
    assert_same_bits(value, onepass.cross_entropy(other, target))
    assert_same_bits(input.grad, gradient(other, target, 0.5))
