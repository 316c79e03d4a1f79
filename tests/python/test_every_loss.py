# Every loss of the library, by tables: values and gradients against the oracle and beside PyTorch's own, types, shapes,
# weights, parameters, special numbers, NumPy. What is the same for all losses is tested for a few in the other files.
import inspect
import math

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

import onepass
import onepass.nn
import oracle
from agreement import (
    MEANS_OF_ALL,
    TYPE_NAMES,
    ask_oracle,
    assert_gradients,
    assert_near_pytorch,
    assert_same_bits,
    assert_value,
    exact,
    strides,
)
from operands import FLOATS, dyadic, mask_of, operands_of
from reference import (
    ALL,
    FUNCTIONS,
    OTHER_PARAMETERS,
    OURS,
    PARAMETER_NAMES,
    PYTORCHS,
    REDUCTIONS,
    THREE,
    gradients,
    options,
    ours,
    pytorchs,
    theirs,
)

pytestmark = pytest.mark.filterwarnings("ignore:Using a target size", "ignore:reduction. 'mean' divides")

#: How far PyTorch's own functions may be off in these losses, whose terms they add up in other ways.
NEAR = 1e-11
ONE_BY_ONE = pytest.mark.parametrize("loss", ALL)


def test_every_loss_is_its_formula(device):
    """The catalogue's formula in PyTorch's operations, for losses of which the tables here know nothing, too."""
    from onepass._formula import translate

    for info in onepass.losses():
        defaults = [parameter["default"] for parameter in info["parameters"]]
        shares = [torch.rand(4, 33, dtype=torch.float64, device=device) * 0.8 + 0.1 for _ in info["operands"]]
        p, t, v = [*shares, None][:3]
        p.requires_grad_()
        expected = translate(info["value"], [parameter["name"] for parameter in info["parameters"]])(p, t, v, *defaults)
        (slope,) = torch.autograd.grad(expected.sum(), p)
        value, gradient = onepass.value_and_grad(info["name"], p.detach(), t, v, reduction="sum")
        torch.testing.assert_close(value, expected.sum().detach(), rtol=1e-12, atol=1e-12, msg=info["name"])
        torch.testing.assert_close(gradient, slope, rtol=1e-11, atol=1e-11, msg=info["name"])


def test_the_tables_are_the_catalogues():
    known = [loss for loss in onepass.losses() if loss["name"] in ALL]
    assert len(known) == len(ALL) and set(ALL) == set(FUNCTIONS)
    for loss in known:
        names = tuple(parameter["name"] for parameter in loss["parameters"])
        assert names == PARAMETER_NAMES.get(loss["name"], ())
        assert tuple(parameter["default"] for parameter in loss["parameters"]) == oracle.LOSSES[loss["name"]].defaults
        assert (len(loss["operands"]) == 3) == (loss["name"] in THREE)


# ------------------------------------------------------------------ numbers --


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@ONE_BY_ONE
def test_values_and_gradients(loss, reduction, dtype, device):
    """The oracle's, for default parameters and others; PyTorch's, where that computes in the same type."""
    for parameter in {None, OTHER_PARAMETERS.get(loss)}:
        p, t, v = operands_of(loss, (5, 43), dtype, device)
        upstream = 3.0 if parameter is None else 1.0
        answer = ask_oracle(loss, p, t, reduction, parameter, upstream=upstream, third=v)
        shape = (5, 43) if reduction == "none" else ()
        given = {"reduction": reduction, "parameter": parameter, "third": v}
        got = gradients(ours, loss, p, t, torch.full(shape, upstream, dtype=dtype, device=device), **given)
        assert got[0].dtype == dtype and got[0].shape == shape and got[0].device == p.device
        assert_value(exact(got[0]), answer)
        assert_same_bits(ours(loss, p, t, **given), got[0], "without a graph")
        assert_gradients(got[1:], answer)
        if loss in ("soft_margin", "bce_with_logits_pos_weight"):  # PyTorch has no gradient for the second or the third
            wanted = (True, False, False) if loss == "soft_margin" else (True, True, False)
        else:
            wanted = (True, True, True)
        if dtype == torch.float64:
            upstream = torch.full(shape, upstream, dtype=dtype, device=device)
            peers = gradients(theirs, loss, p, t, upstream, wanted, **given)
            for index, (mine, peer) in enumerate(zip(got, peers)):
                # PyTorch's slope of the full Poisson loss for a target of 0 is NaN
                if peer is not None and not (index == 2 and loss.endswith("_full")):
                    assert_near_pytorch(mine, peer, loss, NEAR)


@ONE_BY_ONE
def test_the_formula_is_the_loss(loss):
    """What the catalogue tells people and programs, translated, computes what the library computes."""
    from onepass import _formula

    (info,) = (info for info in onepass.losses() if info["name"] == loss)
    names = [parameter["name"] for parameter in info["parameters"]]
    for parameters in (oracle.LOSSES[loss].defaults, np.atleast_1d(OTHER_PARAMETERS.get(loss, ())).tolist()):
        p, t, v = operands_of(loss, (200,), torch.float64)
        answer = ask_oracle(loss, p, t, "none", tuple(parameters) or None, third=v)
        for key, wanted in (("value", answer.value), ("slope", answer.gradients[0])):
            got = _formula.translate(info[key], names)(p, t, v, *parameters)
            torch.testing.assert_close(got.expand(200), torch.from_numpy(np.asarray(wanted)), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("types", [(torch.float16, torch.float32), (torch.float64, torch.float32)], ids=str)
@ONE_BY_ONE
def test_mixed_types(loss, types, device):
    """The result is of the promoted type, each gradient of its operand's."""
    dtypes = (*types, types[0])
    p, t, v = operands_of(loss, (5, 7), device=device, dtypes=dtypes)
    for reduction in REDUCTIONS:
        answer = ask_oracle(loss, p, t, reduction, third=v)
        got = gradients(ours, loss, p, t, reduction=reduction, third=v)
        assert TYPE_NAMES[got[0].dtype] == answer.result_type
        assert_value(exact(got[0]), answer)
        assert_gradients(got[1:], answer)


PAIRS = [(one, other) for one in FLOATS for other in FLOATS if one is not other]


@pytest.mark.parametrize("types", PAIRS, ids=str)
@pytest.mark.parametrize("loss", [loss for loss in ALL if not loss.startswith(("bce", "focal"))])  # of one size
def test_a_number_beside_tensors_of_another_type(loss, types, device):
    """Whatever type the result is of, PyTorch's, it is computed as if the number were expanded."""
    for zero in (0, 1):
        if loss == "soft_margin" and zero == 0 or loss in ("hinge_embedding", "margin_ranking"):
            continue  # PyTorch wants the input's size; it has the input's type, and rounds; all are of as many dimensions
        for reduction in REDUCTIONS:
            operands = operands_of(loss, (3, 5), device=device, dtypes=(*types, types[0]))
            operands[zero] = operands[zero][1, 2].clone()
            if loss == "gaussian_nll" and zero == 0:  # whose variance has the input's size
                operands[2] = operands[2][1, 2].clone()
            p, t, v = operands
            expanded = [None if x is None else x.expand(3, 5) for x in operands]
            got = gradients(ours, loss, p, t, reduction=reduction, third=v)
            wanted = gradients(ours, loss, *expanded[:2], reduction=reduction, third=expanded[2])
            last_digit = torch.finfo(got[0].dtype).eps  # may be another where the result is of a narrower type
            torch.testing.assert_close(got[0], wanted[0].to(got[0].dtype), rtol=last_digit, atol=0, equal_nan=True)
            for mine, peer, operand in zip(got[1:], wanted[1:], operands):
                assert_same_bits(mine, peer.sum_to_size(operand.shape))
            if loss in PYTORCHS and loss != "huber":  # whose type is the input's in PyTorch
                assert got[0].dtype == theirs(loss, p, t, reduction, third=v).dtype


@pytest.mark.parametrize("loss", ["poisson_nll_full", "kl_div", "kl_div_log_target"])
def test_a_number_beside_tensors_that_pytorch_computes(loss):
    """Under a transform, and with a batch that is the input's alone: in as many digits, and of the same type."""
    for types in ((torch.float64, torch.float16), (torch.float32, torch.float64)):
        p, t, _ = operands_of(loss, (3, 5), dtypes=(*types, None))
        number = t[1, 2]
        wanted = ours(loss, p, number, "none")
        got = torch.func.vmap(lambda row: ours(loss, row, number, "none"))(p)
        assert_near_pytorch(got, wanted)
        if loss.startswith("kl_div"):
            wide = theirs(loss, p[:1].double().expand(3, 5), t.double(), "sum")
            got = onepass.kl_div(p[:1], t, reduction="batchmean", log_target=loss != "kl_div")
            assert_near_pytorch(got, wide.to(got.dtype))


@ONE_BY_ONE
def test_autocast(loss, device):
    """In float32, with the bits of wider operands; gradients in the operands' types."""
    if loss == "bce" and device == "cuda":
        return  # PyTorch refuses it there
    p, t, v = operands_of(loss, (5, 43), torch.bfloat16, device)
    weight = dyadic((5, 43), torch.bfloat16, device)
    wide = [None if x is None else x.float() for x in (p, t, v)]
    for reduction in REDUCTIONS:
        for w in (None, weight):
            with torch.autocast(device, dtype=torch.bfloat16):
                value, *found = gradients(ours, loss, p, t, reduction=reduction, third=v, weight=w)
            assert_same_bits(value, ours(loss, *wide[:2], reduction, third=wide[2], weight=w))
            assert all(gradient.dtype == torch.bfloat16 for gradient in found)


@ONE_BY_ONE
def test_autocast_of_what_pytorch_computes(loss, device):
    """Weights that learn, transforms and parameters that are tensors: float32 as well."""
    if loss == "bce" and device == "cuda":
        return  # PyTorch refuses it there
    p, t, v = operands_of(loss, (5, 7), torch.bfloat16, device)
    weight = dyadic((5, 7), torch.bfloat16, device).requires_grad_()
    of = lambda p, t, v=None: ours(loss, p, t, "none", third=v)
    operands = (p, t) if v is None else (p, t, v)
    with torch.autocast(device, dtype=torch.bfloat16):
        assert ours(loss, p, t, "mean", third=v, weight=weight).dtype is torch.float32
        if loss != "gaussian_nll":  # which looks at its variances
            assert torch.vmap(of)(*operands).dtype is torch.float32
            gradient, value = torch.func.grad_and_value(lambda p: of(p, *operands[1:]).sum())(p)
            assert value.dtype is torch.float32 and gradient.dtype is torch.bfloat16


SPECIALS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, math.inf, -math.inf, math.nan, 1e-40, 1e30, -1e30, 88.0, -104.0]


def odd_rate(k, p, t):
    """PyTorch's 1 - t/rate cancels where t is near the rate; and -inf is no rate."""
    return (((p - t).abs() < 1e-6) | (p == -math.inf)) & (k == 1)


#: Where ours differ from PyTorch's functions on purpose, of a result (0: the value, 1 and 2: the slopes) at (p, t).
ODD = {
    "soft_margin": lambda k, p, t: -p * t > 700,  # PyTorch's exponential overflows, and its slope is NaN then
    "l1": lambda k, p, t: (p - t).isnan() & (k > 0),  # PyTorch's slope of a NaN is 0
    "bce_with_logits": lambda k, p, t: (p < -1e29) & (k == 0),  # PyTorch's terms cancel, or are inf - inf
    "bce_with_logits_pos_weight": lambda k, p, t: p.isinf() & (k != 1),
    "poisson_nll_full": lambda k, p, t: ((t <= 0) | t.isinf()) & (k == 2),  # PyTorch's is NaN, by log(t) * 0
    "kl_div_log_target": lambda k, p, t: (t == 1e30) & (p >= t) & (k == 2),  # PyTorch's is NaN, by inf - inf or inf * 0
    "poisson_nll_rate": odd_rate,
    "poisson_nll_rate_full": lambda k, p, t: odd_rate(k, p, t) | ((t <= 0) | t.isinf()) & (k == 2),
}


def assert_as_pytorch(got, wanted, loss, p, t):
    odd = ODD.get(loss, lambda k, p, t: torch.zeros_like(p, dtype=torch.bool))
    for index, (mine, peer) in enumerate(zip(got, wanted)):
        if peer is not None:
            keep = ~odd(index, p, t)
            torch.testing.assert_close(
                mine[keep], peer[keep], rtol=1e-12, atol=1e-30, equal_nan=True, msg=lambda m: f"result {index}: {m}"
            )


@pytest.mark.parametrize("loss", [loss for loss in PYTORCHS if loss not in THREE and loss != "bce"])
def test_special_numbers(loss, device):
    """Every special number against every other: NaN, infinities and zeros where PyTorch has them, also in slopes."""
    numbers = torch.tensor(SPECIALS, dtype=torch.float64, device=device)
    p, t = (grid.flatten() for grid in torch.meshgrid(numbers, numbers, indexing="ij"))
    got = gradients(ours, loss, p, t, reduction="none")
    wanted = gradients(theirs, loss, p, t, reduction="none", wanted=(True, loss != "soft_margin", False))
    assert_as_pytorch(got, wanted, loss, p, t)


@pytest.mark.parametrize("loss", THREE)
def test_special_numbers_of_three_operands(loss, device):
    numbers, finite = SPECIALS[:-4], [0.0, 1.0, -1.0, 0.5, 3.0]
    if loss != "bce_with_logits_pos_weight":  # an infinite one, or such a target, is NaN with ours
        finite += [math.inf, math.nan]
    grids = [torch.tensor(drawn, dtype=torch.float64, device=device) for drawn in (numbers, finite, finite)]
    p, t, v = (grid.flatten() for grid in torch.meshgrid(*grids, indexing="ij"))
    v = v.abs() if loss == "gaussian_nll" else v
    got = gradients(ours, loss, p, t, reduction="none", third=v)
    want = (True, True, loss != "bce_with_logits_pos_weight")
    assert_as_pytorch(got, gradients(theirs, loss, p, t, reduction="none", third=v, wanted=want), loss, p, t)


def test_special_numbers_of_bce(device):
    """At 0 and 1 the logarithms are held at -100; outside there is no answer."""
    numbers = torch.tensor([0.0, 1.0, 0.5, 1e-30, 1 - 2.0**-53], dtype=torch.float64, device=device)
    p, t = (grid.flatten() for grid in torch.meshgrid(numbers, numbers, indexing="ij"))
    got, wanted = (gradients(function, "bce", p, t, reduction="none") for function in (ours, theirs))
    for mine, peer in zip(got, wanted):
        torch.testing.assert_close(mine, peer, rtol=1e-8, atol=1e-30, equal_nan=True)
    outside = torch.tensor([-0.5, 1.5, math.nan], dtype=torch.float64, device=device)
    assert ours("bce", outside, torch.full_like(outside, 0.5), "none").isnan().all()


@ONE_BY_ONE
def test_large_arrays_and_threads(loss):
    """Enough for threads, and the same bits with any number of them."""
    p, t, v = operands_of(loss, (517, 1031))
    before = torch.get_num_threads()
    try:
        results = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            results.append(gradients(ours, loss, p, t, third=v))
    finally:
        torch.set_num_threads(before)
    for one, other in zip(*results):
        assert_same_bits(one, other)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@ONE_BY_ONE
def test_cuda_has_the_cpus_bits(loss, reduction, dtype):
    for shape in ((), (129,), (67, 131), (517, 1031)):
        p, t, v = operands_of(loss, shape, dtype)
        weight, mask = dyadic(shape, dtype), mask_of(shape)
        for w, m in ((None, None), (weight, None), (None, mask), (weight, mask)):
            if w is not None and m is not None and reduction == "mean" and loss in MEANS_OF_ALL:
                continue  # PyTorch divides there
            given = {"reduction": reduction, "third": v, "weight": w, "mask": m}
            there = {key: x.cuda() if isinstance(x, torch.Tensor) else x for key, x in given.items()}
            here = gradients(ours, loss, p, t, **given)
            for one, other in zip(here, gradients(ours, loss, p.cuda(), t.cuda(), **there)):
                assert_same_bits(one, other)


# ---------------------------------------------------------- shapes and layouts --

BROADCASTS = [((4, 3), (3,), (4, 1)), ((4, 1), (1, 3), (1, 3)), ((3,), (4, 3), (3,))]


@pytest.mark.parametrize("shapes", BROADCASTS, ids=str)
@ONE_BY_ONE
def test_broadcast_operands(loss, shapes, device):
    """Quietly or with a warning as PyTorch has it; gradients come back in the operands' own shapes."""
    p, t, v = (None if x is None else x for x in operands_of(loss, (4, 3), torch.float64, device))
    if loss.startswith(("bce", "focal")) or (loss == "soft_margin" and shapes[0] != (4, 3)):
        return  # which PyTorch refuses
    own = list(shapes)
    if loss == "margin_ranking":
        own = [(1,) * (2 - len(shape)) + shape for shape in shapes]
    if loss == "gaussian_nll":
        own[2] = own[0]
    p, t, v = (None if x is None else x[tuple(slice(0, n) for n in ((1,) * (2 - len(s)) + s))].reshape(s).clone()
               for x, s in zip((p, t, v), own))  # fmt: skip
    for reduction in REDUCTIONS:
        got = gradients(ours, loss, p, t, reduction=reduction, third=v)
        want = (True, loss != "soft_margin", True)
        wanted = gradients(theirs, loss, p, t, reduction=reduction, third=v, wanted=want)
        for index, (mine, peer) in enumerate(zip(got, wanted)):
            if peer is not None and not (index == 2 and loss.endswith("_full")):
                assert_near_pytorch(mine, peer, f"{loss} {reduction}", 1e-12)


@ONE_BY_ONE
def test_layouts(loss, device):
    """Strides of results and gradients as PyTorch has them; the bits are those of dense operands."""
    p, t, v = operands_of(loss, (6, 4), torch.float64, device)
    turned = [None if x is None else x.t().contiguous().t() for x in (p, t, v)]
    wanted = [gradients(ours, loss, p, t, reduction=reduction, third=v) for reduction in REDUCTIONS]
    for mixture in ((1, 1, 1), (1, 0, 0), (0, 1, 1)):
        a, b, c = (turned[k] if use else (p, t, v)[k] for k, use in enumerate(mixture))
        for reduction, dense in zip(REDUCTIONS, wanted):
            got = gradients(ours, loss, a, b, reduction=reduction, third=c)
            for mine, bits in zip(got, dense):
                assert_same_bits(mine.contiguous(), bits)
            if loss in PYTORCHS and loss != "bce":
                assert strides(got[0]) == strides(theirs(loss, a, b, reduction, third=c)), f"{mixture} {reduction}"


@ONE_BY_ONE
def test_empty_and_without_dimensions(loss, device):
    for shape in ((0, 3), ()):
        p, t, v = operands_of(loss, shape, torch.float64, device)
        for reduction in REDUCTIONS:
            value, *found = gradients(ours, loss, p, t, reduction=reduction, third=v)
            assert_near_pytorch(value, theirs(loss, p, t, reduction, third=v), loss, 1e-12)
            assert [gradient.shape for gradient in found] == [shape] * len(found)


# ------------------------------------------------------------------- weights --


def weights(shape, dtype, device):
    yield dyadic(shape, dtype, device), False
    yield dyadic(shape[1:], dtype, device), True
    yield dyadic((shape[0], 1), torch.float64, device), True
    yield dyadic((), dtype, device), True


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@ONE_BY_ONE
def test_weights(loss, dtype, device):
    """Of the loss's size and of any that broadcasts to it, in the loss's mean."""
    p, t, v = operands_of(loss, (6, 9), dtype, device)
    strict = "broadcast_weight" in inspect.signature(OURS[loss]).parameters
    for weight, broadcast in weights((6, 9), dtype, device):
        more = {"broadcast_weight": True} if broadcast and strict else {}
        for reduction in REDUCTIONS:
            answer = ask_oracle(loss, p, t, reduction, None, weight, 2.0, v, broadcast_weight=broadcast)
            shape = (6, 9) if reduction == "none" else ()
            given = {"reduction": reduction, "weight": weight, "third": v, **more}
            value = ours(loss, p, t, **given)
            if weight.dim() > 0:  # one without dimensions has no say in the type
                assert TYPE_NAMES[value.dtype] == answer.result_type
                assert_value(exact(value), answer)
            got = gradients(ours, loss, p, t, torch.full(shape, 2.0, dtype=value.dtype, device=device), **given)
            assert_same_bits(got[0], value)
            assert_gradients(got[1:], answer)


@ONE_BY_ONE
def test_a_weight_that_does_not_broadcast_is_refused(loss):
    p, t, v = operands_of(loss)
    more = {"broadcast_weight": True} if "broadcast_weight" in inspect.signature(OURS[loss]).parameters else {}
    for shape in ((3,), (2, 3, 5), (1, 3, 5)):
        with pytest.raises(RuntimeError, match="broadcast"):
            ours(loss, p, t, weight=torch.ones(shape), third=v, **more)


@ONE_BY_ONE
def test_a_weight_may_require_a_gradient(loss):
    """Which PyTorch computes."""
    p, t, v = operands_of(loss, (3, 5), torch.float64)
    weight = (torch.rand(3, 5, dtype=torch.float64) + 0.5).requires_grad_()
    function = lambda w: ours(loss, p, t, "mean", None, w, v)
    assert torch.autograd.gradcheck(function, (weight,))
    assert_near_pytorch(function(weight).detach(), function(weight.detach()), loss, 1e-12)


# ----------------------------------------------------------- batchmean, numbers --


@pytest.mark.parametrize("loss", ["kl_div", "kl_div_log_target", "log_cosh", "hinge"])
def test_batchmean(loss, device):
    for shape in ((4, 5), (7,), ()):
        p, t, _ = operands_of(loss, shape, torch.float64, device)
        got = gradients(ours, loss, p, t, reduction="batchmean")
        answer = ask_oracle(loss, p, t, "batchmean")
        assert_value(exact(got[0]), answer)
        assert_gradients(got[1:], answer)
        weight = dyadic(shape, torch.float64, device)
        assert_value(
            exact(ours(loss, p, t, "batchmean", weight=weight)), ask_oracle(loss, p, t, "batchmean", weight=weight)
        )
    assert ours(loss, p.reshape(1)[:0], t.reshape(1)[:0], "batchmean").isnan()


def test_batchmean_of_kl_div_is_over_the_inputs_batch():
    p, t = -torch.rand(3, dtype=torch.float64), torch.rand(4, 3, dtype=torch.float64)
    for a, b in ((p, t), (t, p.exp()), (p[0], t)):
        wanted = torch.nn.functional.kl_div(a, b, reduction="batchmean")
        assert_near_pytorch(onepass.kl_div(a, b, reduction="batchmean"), wanted, tolerance=1e-12)


@pytest.mark.parametrize("loss", [loss for loss in PYTORCHS if not loss.startswith("kl_div")] + ["focal"])
def test_others_have_no_batchmean(loss):
    p, t, v = operands_of(loss)
    with pytest.raises(ValueError):
        ours(loss, p, t, "batchmean", third=v)


@pytest.mark.parametrize("var", [0.5, 2, 0.0])
def test_variance_as_a_number(var, device):
    p, t = torch.randn(3, 4, device=device), torch.randn(3, 4, device=device)
    for full in (False, True):
        got = onepass.gaussian_nll_loss(p, t, var, full=full)
        wanted = pytorchs("gaussian_nll_loss")(p, t, float(var), full=full)
        assert_near_pytorch(got, wanted, tolerance=1e-5)


def test_variance_with_a_dimension_less(device):
    p, t = torch.randn(3, 4, device=device, dtype=torch.float64), torch.randn(4, device=device, dtype=torch.float64)
    for shape in ((3,), (3, 1), (1, 4), (3, 4)):
        results = []
        for function in (onepass.gaussian_nll_loss, pytorchs("gaussian_nll_loss")):
            var = torch.linspace(0.1, 2, math.prod(shape), device=device, dtype=torch.float64).reshape(shape)
            var.requires_grad_()
            value = function(p, t, var)
            results.append((value.detach(), *torch.autograd.grad(value, var)))
        for mine, peer in zip(*results):
            assert_near_pytorch(mine, peer, tolerance=1e-12)


# ------------------------------------------------------------ NumPy and both at once --


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
@ONE_BY_ONE
def test_numpy_has_the_bits_of_tensors(loss, dtype):
    tensors = operands_of(loss, (5, 43), torch.from_numpy(np.zeros(1, dtype)).dtype)
    p, t, v = (None if x is None else x.numpy() for x in tensors)
    weight = dyadic((5, 43), tensors[0].dtype)
    for w in (None, weight):
        for reduction in REDUCTIONS:
            got = ours(loss, p, t, reduction, None, None if w is None else w.numpy(), v)
            wanted = ours(loss, *tensors[:2], reduction, None, w, tensors[2])
            assert type(got) is (np.ndarray if reduction == "none" else dtype)
            assert_same_bits(torch.from_numpy(np.asarray(got)), wanted)


@pytest.mark.parametrize("reduction", ["mean", "sum", "batchmean"])
@ONE_BY_ONE
def test_value_and_grad(loss, reduction, device):
    """The bits of the function and of its backward, for tensors and for arrays."""
    for dtype in (torch.float32, torch.float16):
        p, t, v = operands_of(loss, (5, 43), dtype, device)
        parameters = OTHER_PARAMETERS.get(loss)
        values = parameters if isinstance(parameters, tuple) else (parameters,)
        named = {} if parameters is None else dict(zip(PARAMETER_NAMES[loss], values))
        for weight in (None, dyadic((5, 43), dtype, device)):
            value, gradient = onepass.value_and_grad(loss, p, t, v, reduction=reduction, weight=weight, **named)
            answer = ask_oracle(loss, p, t, reduction, parameters, weight, third=v)
            assert_value(exact(value), answer)
            assert_gradients([gradient], answer)
            arrays = [None if x is None else x.cpu().numpy() for x in (p, t, v, weight)]
            array = onepass.value_and_grad(loss, *arrays[:3], reduction=reduction, weight=arrays[3], **named)
            assert_same_bits(torch.from_numpy(np.asarray(array[0])), value.cpu())
            assert_same_bits(torch.from_numpy(array[1]), gradient.cpu())
            if reduction != "batchmean":
                leaf = p.clone().requires_grad_()
                whole = ours(loss, leaf, t, reduction, parameters, weight, v)
                assert_same_bits(whole.detach(), value)
                assert_same_bits(torch.autograd.grad(whole, leaf)[0], gradient)


def test_value_and_grad_wants_the_operands_that_the_loss_has():
    p = torch.rand(4)
    with pytest.raises(TypeError, match="has the operands prediction, target, variance; 2 were given"):
        onepass.value_and_grad("gaussian_nll", p, p)
    with pytest.raises(TypeError, match="3 were given"):
        onepass.value_and_grad("mse", p, p, p)


# ------------------------------------------------------- made out of the catalogue --

MADE = [loss for loss in ALL if loss not in PYTORCHS and loss != "hinge" and not loss.startswith("focal")]


@pytest.mark.parametrize("loss", MADE)
def test_functions_and_modules_of_the_catalogue(loss):
    """With signature, defaults and help, though nobody has written them."""
    (info,) = (info for info in onepass.losses() if info["name"] == loss)
    function = getattr(onepass, f"{loss}_loss")
    found = inspect.signature(function).parameters
    parameters = {parameter["name"]: parameter["default"] for parameter in info["parameters"]}
    assert list(found) == ["input", "target", *parameters, "reduction", "weight", "mask"]
    assert {name: found[name].default for name in parameters} == parameters
    assert all(found[name].kind is inspect.Parameter.KEYWORD_ONLY for name in list(found)[2:])
    assert info["meaning"][1:] in function.__doc__ and f"{loss}_loss" in onepass.__all__
    assert all(parameter["meaning"] in function.__doc__ for parameter in info["parameters"])
    assert function.__module__ == "onepass.functional" and function.__qualname__ == f"{loss}_loss"
    name = "".join(word.capitalize() for word in loss.split("_")) + "Loss"
    module = getattr(onepass.nn, name)(**parameters, reduction="sum")
    assert name in onepass.nn.__all__ and list(inspect.signature(getattr(onepass.nn, name)).parameters) == [
        *parameters,
        "reduction",
    ]
    p, t, _ = operands_of(loss)
    assert_same_bits(module(p, t), function(p, t, reduction="sum"))
    with pytest.raises(TypeError):
        function(p, t, 0.5)
    with pytest.raises(TypeError, match="nonsense"):
        function(p, t, nonsense=1)


@pytest.mark.parametrize("loss", THREE)
def test_what_would_be_made_of_three_operands(loss):
    """The catalogue has no such loss that PyTorch lacks yet; what is made of one is tried with those that it has."""
    (info,) = (info for info in onepass.losses() if info["name"] == loss)
    info = {**info, "operands": ["prediction", "target", "third"]}
    function = onepass.functional.function_of(info)
    assert list(inspect.signature(function).parameters)[:3] == ["input", "target", "third"]
    p, t, v = operands_of(loss, (3, 5), torch.float64)
    parameters = dict(zip(PARAMETER_NAMES.get(loss, ()), np.atleast_1d(OTHER_PARAMETERS.get(loss, ()))))
    parameters = {name: float(value) for name, value in parameters.items()}
    wanted = ours(loss, p, t, "sum", OTHER_PARAMETERS.get(loss), third=v)
    assert_same_bits(function(p, t, v, **parameters, reduction="sum"), wanted)
    assert "\nthird: " in function.__doc__


@pytest.mark.parametrize(
    "loss, parameter, words",
    [
        ("quantile", 1.0, "tau of quantile_loss is 1"),
        ("quantile", 0.0, "more than 0|above 0"),
        ("mape", 0.0, "eps of mape_loss is 0"),
        ("charbonnier", -1.0, "eps of charbonnier_loss is -1"),
        ("focal", (2.0, 2.0), "alpha of sigmoid_focal_loss is 2"),
        ("focal", (0.5, -1.0), "gamma of sigmoid_focal_loss is -1"),
    ],
)
def test_parameters_that_a_loss_does_not_take(loss, parameter, words):
    p, t, _ = operands_of(loss)
    for operands in ((p, t), (p.numpy(), t.numpy()), (p.to("meta"), t.to("meta"))):
        with pytest.raises(ValueError, match=words):
            ours(loss, *operands, parameter=parameter)


def test_parameters_that_are_tensors():
    """PyTorch computes those, and differentiates them."""
    p, t = torch.randn(3, 4, dtype=torch.float64), torch.randn(3, 4, dtype=torch.float64)
    tau = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    value = onepass.quantile_loss(p, t, tau=tau)
    assert_near_pytorch(value.detach(), onepass.quantile_loss(p, t, tau=0.3), tolerance=1e-12)
    assert torch.autograd.gradcheck(lambda x: onepass.quantile_loss(p, t, tau=x), (tau,))


@pytest.mark.parametrize(
    "formula, words",
    [
        ("p +", "not understood"),
        ("p ` t", "not understood"),
        ("(p", "not understood"),
        ("p t", "not understood"),
        ("p < t ? 1", "not understood"),
        ("q*p", "'q' is unknown"),
        ("cosh(p)", "no function 'cosh'"),
        ("choose(p, p, p)", "no function 'choose'"),
        ("* p", "not understood"),
    ],
)
def test_a_formula_that_is_none_is_an_error(formula, words):
    from onepass import _formula

    with pytest.raises(ValueError, match=words.replace("(", "\\(").replace(")", "\\)")):
        _formula.translate(formula, [])


def test_precedence_in_formulas():
    from onepass import _formula

    p, t = torch.tensor([1.0, -2.0]), torch.tensor([3.0, 5.0])
    for formula, wanted in (
        ("p - t - 1", p - t - 1),
        ("-p*t", -p * t),
        ("2*-p", -2 * p),
        ("8/4/2*p", p),
        ("p < 0 ? 1 : t > 4 ? 2 : 3", torch.tensor([3.0, 1.0])),
        ("(p < 0 ? p : t)*2", torch.tensor([6.0, -4.0])),
        ("min(max(p, 0), 0.5) + max(p, t) + min(-1, p) + pow(2, 3)", torch.tensor([0.5 + 3 - 1 + 8, 0 + 5 - 2 + 8])),
        ("1e-1*p + .5 + log(1) + sqrt(4) + softplus(0)*0*p", 0.1 * p + 2.5),
    ):
        torch.testing.assert_close(_formula.translate(formula, [])(p, t, None), wanted)
