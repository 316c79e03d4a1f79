# The derivatives of every loss in every way that PyTorch has: by finite differences, once and twice, forward mode,
# vmap and torch.func, tracers. First derivatives are ours; for the rest PyTorch is asked, by its own function or by
# the catalogue's formula.
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")

from agreement import assert_near_pytorch, assert_same_bits
from operands import leaves, operands_of, rates
from reference import ALL, OTHER_PARAMETERS, REDUCTIONS, THREE, gradients, ours

pytestmark = pytest.mark.filterwarnings(
    "ignore:Using a target size", "ignore:reduction. 'mean' divides", "ignore:.*torch.jit"
)


def smooth_operands(loss, shapes=((2, 3), (2, 3), (2, 3)), device="cpu"):
    """Where nothing is at a kink or an end, so that differences tell; a target that is a sign is not varied."""
    p, t, v = operands_of(loss, (2, 3), torch.float64, device)
    if loss.startswith("poisson") or "bce" in loss or loss.startswith("focal") or loss == "kl_div":
        t = (rates((2, 3)) / 4 + (1 if loss.endswith("full") else 0)).to(t)
    if loss == "gaussian_nll":
        v = v + OTHER_PARAMETERS[loss][1]  # beyond eps, below which the slope is that of a bound, as PyTorch has it
    cut = [x if x is None else x[tuple(slice(0, n) for n in shape)].clone() for x, shape in zip((p, t, v), shapes)]
    varied = (True, loss != "hinge_embedding", True)
    return [None if x is None else x.requires_grad_(vary) for x, vary in zip(cut, varied)]


def function_of(loss, reduction="mean", **given):
    def function(*operands):
        p, t, v = (*operands, None)[:3]
        return ours(loss, p, t, reduction, OTHER_PARAMETERS.get(loss), third=v, **given)

    return function


@pytest.mark.parametrize("loss", ALL)
def test_gradcheck_and_gradgradcheck(loss, device):
    for index, reduction in enumerate(REDUCTIONS):
        operands = [x for x in smooth_operands(loss, device=device) if x is not None]
        assert torch.autograd.gradcheck(function_of(loss, reduction), operands, check_forward_ad=index == 0)
        assert torch.autograd.gradgradcheck(function_of(loss, reduction), operands)


@pytest.mark.parametrize("loss", [loss for loss in ALL if not loss.startswith(("bce", "focal", "soft"))])
def test_gradcheck_of_broadcast_operands(loss):
    shapes = ((2, 1), (1, 3), (2, 1)) if loss == "gaussian_nll" else ((2, 1), (1, 3), (1, 1))
    operands = [x for x in smooth_operands(loss, shapes) if x is not None]
    assert torch.autograd.gradcheck(function_of(loss), operands)
    assert torch.autograd.gradgradcheck(function_of(loss), operands)


@pytest.mark.parametrize("loss", ALL)
def test_transforms(loss, device):
    """torch.func's transforms beside autograd's answers."""
    operands = [x.detach() for x in smooth_operands(loss, device=device) if x is not None]
    function = function_of(loss)
    which = tuple(range(len(operands)))
    if loss == "hinge_embedding":
        which = (0,)
    given = {"third": (*operands, None)[2], "parameter": OTHER_PARAMETERS.get(loss)}
    values, *found = gradients(ours, loss, *operands[:2], **given)
    for mine, peer in zip(torch.func.grad(function, which)(*operands), found):
        assert_near_pytorch(mine, peer, tolerance=1e-12)
    batched = torch.func.vmap(function_of(loss, "sum"))(*operands)
    for row, got in enumerate(batched):
        assert_near_pytorch(got, function_of(loss, "sum")(*(x[row] for x in operands)), tolerance=1e-12)
    tangents = tuple(torch.randn_like(x) if k in which else torch.zeros_like(x) for k, x in enumerate(operands))
    value, slope = torch.func.jvp(function, tuple(operands), tangents)
    assert_near_pytorch(value, values, tolerance=1e-12)
    wanted = sum((tangent * gradient).sum() for tangent, gradient in zip(tangents, found))
    assert_near_pytorch(slope, wanted, tolerance=1e-11)


@pytest.mark.parametrize("loss", ALL)
def test_create_graph_with_a_weight(loss):
    """A penalty on the gradient, by PyTorch, with the value and the first gradient near ours."""
    operands = [x for x in smooth_operands(loss) if x is not None]
    weight = torch.rand(2, 3, dtype=torch.float64) + 0.5
    value = function_of(loss, weight=weight)(*operands)
    (first,) = torch.autograd.grad(value, operands[:1], create_graph=True)
    (plain,) = torch.autograd.grad(function_of(loss, weight=weight)(*operands), operands[:1])
    assert_near_pytorch(first.detach(), plain, tolerance=1e-11)
    if first.requires_grad:
        (first**2).sum().backward()
        assert operands[0].grad is None or operands[0].grad.isfinite().all()


@pytest.mark.parametrize("loss", ALL)
def test_routes_have_the_same_bits(loss, device):
    """One gradient at a time or all, scaled later or computed anew, a second time."""
    for dtype in (torch.float32, torch.bfloat16):
        p, t, v = operands_of(loss, (5, 43), dtype, device)
        upstream = torch.tensor(3.0, dtype=dtype, device=device)
        together = gradients(ours, loss, p, t, upstream, third=v)
        for k in range(2 if v is None else 3):
            alone = gradients(ours, loss, p, t, upstream, wanted=tuple(k == other for other in range(3)), third=v)
            assert_same_bits(alone[1 + k], together[1 + k])
        operands = leaves(*(x for x in (p, t, v) if x is not None))
        value = ours(loss, *operands[:2], third=(*operands, None)[2])
        for _ in range(2):
            for got, wanted in zip(torch.autograd.grad(value, operands, upstream, retain_graph=True), together[1:]):
                assert_same_bits(got, wanted)


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("loss", ALL)
def test_tracers(loss):
    operands = [x for x in operands_of(loss, (7,)) if x is not None]
    others = [x for x in operands_of(loss, (7,)) if x is not None]
    function = function_of(loss)
    traced = torch.jit.trace(function, tuple(operands))
    torch.testing.assert_close(traced(*others), function(*others), equal_nan=True)

    class Two(torch.nn.Module):
        def forward(self, x, y):
            return function(x, y)

    class Three(torch.nn.Module):
        def forward(self, x, y, z):
            return function(x, y, z)

    recorded = torch.fx.symbolic_trace(Three() if loss in THREE else Two())
    torch.testing.assert_close(recorded(*others), function(*others), equal_nan=True)


@pytest.mark.parametrize("loss", ALL)
def test_meta_fake_and_subclasses(loss):
    from torch._subclasses.fake_tensor import FakeTensorMode

    p, t, v = operands_of(loss, (4, 5), torch.float64)
    wanted = ours(loss, p, t, third=v)

    class Plain(torch.Tensor):
        pass

    assert_near_pytorch(ours(loss, p.as_subclass(Plain), t, third=v).as_subclass(torch.Tensor), wanted, tolerance=1e-12)
    meta = [None if x is None else x.to("meta") for x in (p, t, v)]
    value = ours(loss, *meta[:2], third=meta[2])
    assert value.device.type == "meta" and value.shape == ()
    if loss != "gaussian_nll":  # PyTorch's own looks at the numbers
        with FakeTensorMode() as mode:
            fake = [None if x is None else mode.from_tensor(x) for x in (p, t, v)]
            assert ours(loss, *fake[:2], third=fake[2]).dtype == torch.float64
