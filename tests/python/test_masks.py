# Masks: elements that do not take part are not looked at, in no loss and on no way: NaN there does not show, gradients
# there are exactly +0, and a mean is over those that take part.
import math

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

import onepass
import onepass.nn
from agreement import (
    MEANS_OF_ALL,
    TYPE_NAMES,
    ask_oracle,
    assert_gradients,
    assert_near_pytorch,
    assert_same_bits,
    assert_value,
    exact,
)
from operands import FLOATS, dyadic, leaves, mask_of, operands_of
from reference import ALL, OTHER_PARAMETERS, REDUCTIONS, THREE, gradients, ours, theirs

pytestmark = pytest.mark.filterwarnings("ignore:Using a target size", "ignore:reduction. 'mean' divides")


def spoiled(operands, mask):
    """The operands with NaN wherever the mask says no; variances are refused below 0, but NaN is not."""
    shape = torch.broadcast_shapes(*(x.shape for x in operands if x is not None))
    out = ~(mask != 0).expand(shape)
    return [None if x is None else x.expand(shape).masked_fill(out, math.nan) for x in operands]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("loss", ALL)
def test_what_a_mask_leaves_out_does_not_count(loss, dtype, reduction, device):
    """Nor is it looked at. The numbers are the oracle's, with a weight and without."""
    shape, parameter = (5, 43), OTHER_PARAMETERS.get(loss)
    mask = mask_of(shape, device, torch.bool if dtype in (torch.float16, torch.float32) else torch.uint8)
    clean = operands_of(loss, shape, dtype, device)
    p, t, v = spoiled(clean, mask)
    weight = dyadic(shape, dtype, device)
    spoiled_weight = weight.masked_fill(mask == 0, math.nan)
    for w, w_given in ((None, None), (weight, spoiled_weight)):
        answer = ask_oracle(loss, *clean[:2], reduction, parameter, w, 2.0, clean[2], mask)
        given = {"reduction": reduction, "parameter": parameter, "third": v, "weight": w_given, "mask": mask}
        value = ours(loss, p, t, **given)
        assert value.dtype == dtype and TYPE_NAMES[dtype] == answer.result_type
        assert_value(exact(value), answer)
        for factor in (2.0, -math.inf):
            got = gradients(ours, loss, p, t, torch.full_like(value, factor), **given)
            assert_same_bits(got[0], value)
            for gradient in got[1:]:
                left = gradient[mask == 0]
                assert (left == 0).all() and not left.signbit().any()
            if factor == 2:
                assert_gradients(got[1:], answer)


@pytest.mark.usefixtures("borrowing")
def test_a_mask_of_all_and_none(device):
    p, t = torch.randn(4, 9, device=device), torch.randn(4, 9, device=device)
    everything, nothing = (torch.full((4, 9), x, device=device) for x in (True, False))
    for reduction in REDUCTIONS:
        assert_same_bits(ours("mse", p, t, reduction, mask=everything), ours("mse", p, t, reduction))
    value, gradient, _ = gradients(ours, "mse", p, t, mask=nothing)
    assert value.isnan() and (gradient == 0).all() and not gradient.signbit().any()
    assert onepass.mse_loss(p, t, reduction="sum", mask=nothing) == 0
    for loss in ("mse", "huber"):  # of which one divides by the weights, the other by the number
        value, gradient, _ = gradients(ours, loss, p, t, mask=nothing, weight=torch.ones_like(p))
        assert value.isnan() and (gradient == 0).all()


@pytest.mark.usefixtures("borrowing")
@pytest.mark.parametrize("shape", [(9,), (4, 1), (1, 9), (), (1,)], ids=str)
@pytest.mark.parametrize("loss", ["mse", "huber", "bce_with_logits_pos_weight", "log_cosh"])
def test_masks_broadcast(loss, shape, device):
    p, t, v = operands_of(loss, (4, 9), torch.float64, device)
    mask = torch.ones(shape, dtype=torch.bool, device=device)
    if mask.numel() > 1:
        mask.view(-1)[::2] = False
    for weight in (None, dyadic((4, 9), torch.float64, device)):
        for reduction in REDUCTIONS:
            given = {"reduction": reduction, "third": v, "weight": weight}
            for mine, peer in zip(
                gradients(ours, loss, p, t, mask=mask, **given),
                gradients(ours, loss, p, t, mask=mask.expand(4, 9).clone(), **given),
            ):
                assert_near_pytorch(mine, peer, tolerance=1e-15)


@pytest.mark.parametrize("loss", ["mse", "log_cosh", "margin_ranking"])
def test_a_mask_beside_broadcast_operands(loss, device):
    p, t, v = operands_of(loss, (4, 9), torch.float64, device)
    t = t[:1]
    mask = mask_of((4, 9), device)
    for reduction in REDUCTIONS:
        got = gradients(ours, loss, p, t, reduction=reduction, third=v, mask=mask)
        peers = gradients(theirs, loss, p, t, reduction=reduction, third=v, mask=mask)
        for mine, peer in zip(got, peers):
            assert_near_pytorch(mine, peer, tolerance=1e-12)


@pytest.mark.parametrize("loss", ALL)
def test_derivatives_under_a_mask(loss):
    """By finite differences, once and twice, by forward mode and by vmap: what PyTorch computes has NaN beneath the
    mask, too."""
    mask = torch.tensor([[True, False, True], [False, True, True]])
    p, t, v = spoiled(operands_of(loss, (2, 3), torch.float64), mask)
    where = [x.clone().masked_fill(~mask, 0.75) for x in (p, t, v) if x is not None]
    weight = torch.rand(2, 3, dtype=torch.float64) + 0.5

    def function(a):
        third = (*where, None)[2]
        return ours(loss, torch.where(mask, a, math.nan), where[1], third=third, mask=mask, weight=weight)

    first = leaves(where[0])
    assert torch.autograd.gradcheck(function, first, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(function, first)
    alone = torch.func.grad(lambda a: ours(loss, a, t, third=v, mask=mask))(p)
    _, wanted, *_ = gradients(ours, loss, p, t, third=v, mask=mask)
    assert_near_pytorch(alone, wanted, tolerance=1e-12)
    row = lambda a: ours(loss, a, t[:1], third=None if v is None else v[:1], mask=mask[:1])
    assert_near_pytorch(torch.func.vmap(row)(p[:1].expand(4, 1, 3))[0], row(p[:1]), tolerance=1e-12)


@pytest.mark.parametrize("loss", ALL)
def test_numpy_and_value_and_grad(loss):
    mask = mask_of((5, 43))
    for dtype in (torch.float32, torch.float16):
        p, t, v = spoiled(operands_of(loss, (5, 43), dtype), mask)
        weight = (torch.rand(5, 43) + 0.5).to(dtype)
        arrays = as_arrays(p, t, v)
        for w in (None, weight):
            w_array = None if w is None else w.numpy()
            for mask_array in (mask.numpy(), mask.numpy().astype(np.uint8) * 3):
                for reduction in REDUCTIONS:
                    got = ours(loss, *arrays[:2], reduction, None, w_array, arrays[2], mask_array)
                    wanted = ours(loss, p, t, reduction, None, w, v, mask)
                    assert_same_bits(torch.from_numpy(np.asarray(got)), wanted)
            for reduction in ("mean", "sum"):
                value, gradient = onepass.value_and_grad(loss, p, t, v, reduction=reduction, weight=w, mask=mask)
                whole, wanted, *_ = gradients(ours, loss, p, t, reduction=reduction, third=v, weight=w, mask=mask)
                assert_same_bits(value, whole)
                assert_same_bits(gradient, wanted)
                array = onepass.value_and_grad(loss, *arrays, reduction=reduction, weight=w_array, mask=mask.numpy())
                assert_same_bits(torch.from_numpy(array[1]), wanted)


def as_arrays(*tensors):
    return [None if x is None else x.numpy() for x in tensors]


@pytest.mark.usefixtures("borrowing")
def test_a_negative_variance_that_takes_no_part():
    """Is not looked at, like all else there; one that takes part is refused, and no NaN hides it."""
    p, t, v = operands_of("gaussian_nll", (3, 4), torch.float64)
    mask = torch.ones(3, 4, dtype=torch.bool)
    mask[1, 2] = False
    wanted = ours("gaussian_nll", p, t, third=v, mask=mask).item()
    v[1, 2] = -1.0
    refused = pytest.raises(ValueError, match="var has negative entry/entries")
    for own in (mask, mask.to(torch.uint8) * 2):
        for side in (lambda *x: x, as_arrays):
            assert ours("gaussian_nll", *side(p, t), third=side(v)[0], mask=side(own)[0]) == wanted
            assert onepass.value_and_grad("gaussian_nll", *side(p, t, v), mask=side(own)[0])[0] == wanted
    # One less dimension than the input, and a mask of rows.
    rows, row_mask = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64), torch.tensor([[True], [False], [True]])
    for side in (lambda *x: x, as_arrays):
        ours("gaussian_nll", *side(p, t), third=side(rows)[0], mask=side(row_mask)[0])
        with refused:
            ours("gaussian_nll", *side(p, t), third=side(rows)[0], mask=side(mask)[0])
        with refused:
            ours("gaussian_nll", *side(p, t), third=-1.0, mask=side(mask)[0])
    for place in ((0, 0), (1, 2)):
        v[place] = math.nan
        v[2, 3] = -1e-300
        for own in (None, mask, torch.ones(4, dtype=torch.bool)):
            for side in (lambda *x: x, as_arrays):
                with refused:
                    ours("gaussian_nll", *side(p, t), third=side(v)[0], mask=side(own)[0])
                with refused:
                    onepass.value_and_grad("gaussian_nll", *side(p, t, v), mask=side(own)[0])
    v[2, 3] = 1.0
    assert ours("gaussian_nll", p, t, third=v).isnan()


@pytest.mark.parametrize("loss", [loss for loss in MEANS_OF_ALL if loss != "bce"])
def test_a_weighted_mean_under_a_mask_does_not_overflow(loss, device):
    """Its sum is never rounded to the result's type: of a hundred times 1e37 it is 1e37."""
    many = torch.full((101,), 1e37, device=device)
    p, t = (torch.ones_like(many), torch.full_like(many, 3.0)) if loss == "huber" else (-many, torch.ones_like(many))
    weight = many / 1.5 if loss == "huber" else torch.ones_like(many)
    third = torch.ones_like(many) if loss in THREE else None
    mask = torch.arange(101, device=device) != 50
    assert ours(loss, p, t, third=third, weight=weight, mask=mask).item() == pytest.approx(1e37, rel=1e-6)
    value, _ = onepass.value_and_grad(loss, p, t, third, weight=weight, mask=mask)
    assert value.item() == pytest.approx(1e37, rel=1e-6)


@pytest.mark.parametrize("loss", [loss for loss in ALL if loss != "gaussian_nll"])  # whose variance is looked at first
def test_weight_and_mask_are_one_call(loss, device):
    """PyTorch's operations make the results, and compute nothing."""
    p, t, v = operands_of(loss, (5, 43), torch.float32, device)
    weight, mask = dyadic((5, 43), device=device), mask_of((5, 43), device)
    (p,) = leaves(p)
    ours(loss, p, t, third=v, weight=weight, mask=mask)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        ours(loss, p, t, third=v, weight=weight, mask=mask)
    seen = {event.name for event in profile.events() if event.name.startswith("aten::")}
    looks = {"aten::item", "aten::_local_scalar_dense"} if loss == "bce" else set()  # for a NaN
    assert seen <= {"aten::empty_like", "aten::empty", "aten::empty_strided"} | looks, seen


@pytest.mark.gpu
@pytest.mark.parametrize("few", [0, 1 << 21])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("count", [1, 512, 1000, 1024, 2048, 3077, 7680, 8192, 65536, 300_001])
def test_a_gpu_has_the_gradients_of_the_cpu(count, dtype, few, monkeypatch):
    """Computed with the value or in backward, whichever the number of elements asks for, with an upstream gradient of 1
    or of another number, and for a second time."""
    monkeypatch.setattr(onepass._autograd, "FEW_ON_GPU", few)
    monkeypatch.setattr(onepass._autograd, "FEWER_ON_GPU", few)
    p, t, weight = torch.randn(count).to(dtype), torch.rand(count).to(dtype), torch.rand(count).to(dtype) + 0.5
    mask = torch.rand(count) > 0.3
    for name in ("mse_loss", "huber_loss", "binary_cross_entropy_with_logits"):  # which has a mean over all
        for given in ({}, {"weight": weight}, {"mask": mask}, {"weight": weight, "mask": mask}):
            found = []
            for device in ("cpu", "cuda"):
                leaf = p.detach().to(device, copy=True).requires_grad_()
                value = getattr(onepass, name)(leaf, t.to(device), **{k: x.to(device) for k, x in given.items()})
                upstreams = [torch.tensor(number, dtype=value.dtype, device=device) for number in (1, 0.3)]
                found.append([value.detach(), *(torch.autograd.grad(value, leaf, upstream, retain_graph=True)[0]
                                                for upstream in upstreams)])
            for mine, theirs_there in zip(*found):
                assert_same_bits(theirs_there.cpu(), mine)



@pytest.mark.parametrize("loss", ["mse", "huber", "gaussian_nll", "log_cosh"])
def test_refused_masks(loss):
    p, t, v = operands_of(loss, (3, 4))
    for mask, error in (
        (torch.ones(3, 4), TypeError),
        (torch.ones(3, 4, dtype=torch.int64), TypeError),
        (torch.ones(3, dtype=torch.bool), RuntimeError),
        (torch.ones(2, 3, 4, dtype=torch.bool), RuntimeError),
        (np.ones((3, 4), bool), TypeError),
        (True, TypeError),
    ):
        with pytest.raises(error, match="mask"):
            ours(loss, p, t, third=v, mask=mask)
        with pytest.raises(error, match="mask"):
            onepass.value_and_grad(loss, p, t, v, mask=mask)
    arrays = as_arrays(p, t, v)
    for mask, error in (
        (np.ones((3, 4), np.float32), TypeError),
        (np.ones(3, bool), ValueError),
        (torch.ones(3, 4, dtype=torch.bool), TypeError),
    ):
        with pytest.raises(error, match="mask"):
            ours(loss, *arrays[:2], third=arrays[2], mask=mask)


def test_modules_take_masks_and_weights():
    p, t = torch.rand(3, 4), torch.rand(3, 4)
    mask, weight = mask_of((3, 4)), torch.rand(3, 4)
    for name in ("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "HingeLoss", "SoftMarginLoss", "HingeEmbeddingLoss",
                 "PoissonNLLLoss", "LogCoshLoss"):  # fmt: skip
        module = getattr(onepass.nn, name)(reduction="sum")
        torch.testing.assert_close(module(p, t, weight, mask=mask), module(p[mask], t[mask], weight[mask]))
    for module in (onepass.nn.BCELoss(weight, reduction="sum"), onepass.nn.BCEWithLogitsLoss(weight, reduction="sum")):
        assert list(module.state_dict()) == ["weight"]
        apart = type(module)(weight[mask], reduction="sum")
        torch.testing.assert_close(module(p, t, mask=mask), apart(p[mask], t[mask]))
    for name, third in (("MarginRankingLoss", p.sign()), ("GaussianNLLLoss", weight)):
        module = getattr(onepass.nn, name)(reduction="sum")
        torch.testing.assert_close(module(p, t, third, mask=mask), module(p[mask], t[mask], third[mask]))


def test_odd_masks_are_handed_over():
    """On another device, of a subclass, strided in any way: right or refused."""
    p, t = torch.rand(4, 6), torch.rand(4, 6)
    mask = mask_of((6, 4)).t()
    wanted = theirs("mse", p, t, mask=mask)
    assert_near_pytorch(onepass.mse_loss(p, t, mask=mask), wanted)
    assert_near_pytorch(onepass.mse_loss(p, t, mask=mask_of((4, 12))[:, ::2].copy_(mask)), wanted)

    class Plain(torch.Tensor):
        pass

    assert_near_pytorch(onepass.mse_loss(p, t, mask=mask.as_subclass(Plain)).as_subclass(torch.Tensor), wanted)
    with pytest.raises((RuntimeError, NotImplementedError)):
        onepass.mse_loss(p, t, mask=mask.to("meta")).item()
