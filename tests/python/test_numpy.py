# NumPy arrays: any strides, f16, f32 and f64; NumPy values come back; PyTorch stays away.
import subprocess
import sys
import warnings

import pytest

np = pytest.importorskip("numpy")

import onepass

import oracle

FUNCTIONS = {"mse": onepass.mse_loss, "smooth_l1": onepass.smooth_l1_loss, "hinge": onepass.hinge_loss}
WEIGHTED = ["mse", "hinge"]
TYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
REDUCTIONS = ["mean", "sum", "none"]


def pair(shape=(13, 81), types=("f32", "f32")):
    rng = np.random.default_rng(1)
    return [np.asarray(rng.standard_normal(shape)).astype(TYPES[name]) for name in types]


def check(loss, p, t, types, reduction, got, **given):
    """A result against the oracle, to the bit."""
    answer = oracle.answer(loss, [p, t], types, reduction, **given)
    np.testing.assert_array_equal(np.asarray(got, np.float64), answer.value)


# ---------------------------------------------------------------- imports --


def run(program):
    subprocess.run([sys.executable, "-c", program], check=True)


def test_import_brings_neither_torch_nor_numpy():
    run(
        "import sys, onepass; assert 'torch' not in sys.modules and 'numpy' not in sys.modules; onepass.__version__; "
        "onepass.losses(); onepass.machine(); assert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    )


def test_numpy_arrays_do_not_bring_torch():
    run(
        "import sys, onepass, numpy as np; a = np.ones(5, 'f4'); onepass.mse_loss(a, a, weight=a); "
        "onepass.smooth_l1_loss(a, a); onepass.hinge_loss(a, a); onepass.value_and_grad('mse', a, a); "
        "onepass.gaussian_nll_loss(a, a, a, mask=a > 0); onepass.log_cosh_loss(a, a); "
        "assert 'torch' not in sys.modules"
    )


def test_it_works_whichever_is_imported_first():
    pytest.importorskip("torch")
    run(
        "import onepass, numpy as np; onepass.mse_loss(np.ones(3), np.ones(3)); import torch; "
        "x = torch.ones(3, requires_grad=True); onepass.mse_loss(x, torch.zeros(3)).backward(); assert x.grad is not None"
    )


def test_a_failed_import_of_torch_does_not_matter():
    run(
        "import sys; sys.modules['torch'] = None; import onepass, numpy as np; "
        "assert onepass.mse_loss(np.ones(3), np.zeros(3)) == 1.0"
    )


# ---------------------------------------------------------------- results --


@pytest.mark.parametrize("types", [(a, b) for a in TYPES for b in TYPES], ids=str)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("loss", FUNCTIONS)
def test_values_and_types(loss, reduction, types):
    p, t = pair(types=types)
    got = FUNCTIONS[loss](p, t, reduction=reduction)
    wanted = np.result_type(p.dtype, t.dtype)
    assert got.dtype == wanted
    if reduction == "none":
        assert type(got) is np.ndarray and got.shape == p.shape and got.flags.writeable
    else:
        assert type(got) is wanted.type and got.shape == ()
    check(loss, p, t, types, reduction, got)


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0), (2, 3, 4, 5), (1025,)], ids=str)
@pytest.mark.parametrize("loss", FUNCTIONS)
def test_shapes(loss, shape):
    p, t = pair(shape)
    each = FUNCTIONS[loss](p, t, reduction="none")
    assert each.shape == shape
    assert FUNCTIONS[loss](p, t, reduction="sum").shape == ()
    mean = FUNCTIONS[loss](p, t)
    assert np.isnan(mean) if 0 in shape else np.isfinite(mean)


def by_fields(array):
    record = np.zeros(array.shape, dtype=[("before", "i1"), ("pad", "V3"), ("number", array.dtype)])
    record["number"] = array
    return record["number"]


LAYOUTS = {
    "fortran": np.asfortranarray,
    "reversed": lambda x: np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
    "every other": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "transposed": lambda x: np.ascontiguousarray(x.T).T,
    "offset": lambda x: np.concatenate([[0], x.ravel()]).astype(x.dtype)[1:].reshape(x.shape),
    "rows of a matrix": lambda x: np.hstack([x, x])[:, : x.shape[1]],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("loss", FUNCTIONS)
def test_any_strides_have_the_same_bits(loss, dtype, layout):
    p, t = pair(types=(dtype, dtype))
    a = LAYOUTS[layout](p)
    assert np.array_equal(a, p)
    for reduction in REDUCTIONS:
        np.testing.assert_array_equal(
            FUNCTIONS[loss](a, t, reduction=reduction), FUNCTIONS[loss](p, t, reduction=reduction)
        )
    for got, wanted in zip(onepass.value_and_grad(loss, t, a), onepass.value_and_grad(loss, t, p)):
        np.testing.assert_array_equal(got, wanted)


def test_strides_that_are_no_multiple_of_an_element():
    """A field of a packed record: computed rightly or refused, never wrong."""
    p, t = pair((50,))
    packed = np.zeros(50, dtype=[("flag", "i1"), ("number", "f4")])
    packed["number"] = p
    for array in (packed["number"], by_fields(p)):
        try:
            got = onepass.mse_loss(array, t)
        except (TypeError, ValueError, RuntimeError):
            continue
        assert got == onepass.mse_loss(p, t)


def test_unaligned_memory():
    p, t = pair((50,))
    raw = np.zeros(50 * 4 + 1, np.uint8)
    unaligned = raw[1:].view(np.float32)
    unaligned[:] = p
    assert not unaligned.flags.aligned
    try:
        assert onepass.mse_loss(unaligned, t) == onepass.mse_loss(p, t)
    except (TypeError, ValueError, RuntimeError):
        pass  # refused is fine, wrong is not


@pytest.mark.parametrize("loss", FUNCTIONS)
def test_read_only_and_broadcast_views(loss):
    p, t = pair((5, 7))
    p.flags.writeable = False
    shared = np.broadcast_to(t[0], (5, 7))
    check(loss, p, shared, ("f32", "f32"), "mean", FUNCTIONS[loss](p, shared))
    value, gradient = onepass.value_and_grad(loss, p, shared)
    assert gradient.flags.writeable and gradient.shape == (5, 7)


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("loss", FUNCTIONS)
def test_broadcasting(loss):
    p, t = pair((5, 1))[0], pair((7,))[1]
    for reduction in REDUCTIONS:
        check(loss, p, t, ("f32", "f32"), reduction, FUNCTIONS[loss](p, t, reduction=reduction))
    gradient = onepass.value_and_grad(loss, p, t, reduction="sum")[1]
    wanted = oracle.answer(loss, [p, t], ("f32", "f32"), "sum").gradients[0].sum(axis=1, keepdims=True)
    assert gradient.shape == p.shape and gradient.dtype == p.dtype
    np.testing.assert_allclose(gradient, wanted, rtol=1e-5, atol=1e-6)


# --------------------------------------------------------- value_and_grad --


@pytest.mark.parametrize("types", [(a, b) for a in TYPES for b in TYPES], ids=str)
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("loss", FUNCTIONS)
def test_value_and_grad(loss, reduction, types):
    p, t = pair(types=types)
    for name in (loss, f"{loss}_loss"):
        value, gradient = onepass.value_and_grad(name, p, t, reduction=reduction)
        assert type(value) is np.result_type(p.dtype, t.dtype).type
        assert value == FUNCTIONS[loss](p, t, reduction=reduction)
        assert type(gradient) is np.ndarray and gradient.dtype == p.dtype and gradient.shape == p.shape
        wanted = oracle.answer(loss, [p, t], types, reduction).gradients[0]
        np.testing.assert_array_equal(gradient.astype(np.float64), wanted)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("loss", WEIGHTED)
def test_weight(loss, reduction):
    p, t = pair()
    weight = (np.random.default_rng(2).integers(1, 9, p.shape) / 8).astype(np.float32)
    got = FUNCTIONS[loss](p, t, reduction=reduction, weight=weight)
    check(loss, p, t, ("f32", "f32"), reduction, got, weight=weight, weight_type="f32")
    if reduction != "none":
        value, gradient = onepass.value_and_grad(loss, p, t, reduction=reduction, weight=weight)
        assert value == got
        wanted = oracle.answer(loss, [p, t], ("f32", "f32"), reduction, weight=weight, weight_type="f32").gradients[0]
        np.testing.assert_array_equal(gradient, wanted.astype(np.float32))


@pytest.mark.parametrize(
    "loss, given", [("smooth_l1", {"beta": 0.25}), ("smooth_l1", {"beta": 0}), ("hinge", {"margin": 0.25})], ids=str
)
def test_parameters(loss, given):
    p, t = pair()
    (parameter,) = given.values()
    for reduction in REDUCTIONS:
        check(
            loss,
            p,
            t,
            ("f32", "f32"),
            reduction,
            FUNCTIONS[loss](p, t, reduction=reduction, **given),
            parameters=[parameter],
        )
    gradient = onepass.value_and_grad(loss, p, t, **given)[1]
    wanted = oracle.answer(loss, [p, t], ("f32", "f32"), "mean", [parameter]).gradients[0]
    np.testing.assert_array_equal(gradient, wanted.astype(np.float32))


# ------------------------------------------- what the other losses have of their own --


def test_sizes_of_the_other_losses():
    p, t, w = np.float32([[0.25, 0.5], [0.75, 0.125]]), np.float32([1, 0]), np.float32([[1, 2], [3, 4]])
    with pytest.raises(ValueError, match="different to the input size"):
        onepass.binary_cross_entropy(p, t)
    with pytest.raises(ValueError, match="must be the same as input size"):
        onepass.binary_cross_entropy_with_logits(p, t)
    with pytest.raises(RuntimeError, match="should have same dimension"):
        onepass.margin_ranking_loss(p, p, t)
    with pytest.raises(ValueError, match="cannot be broadcast"):
        onepass.soft_margin_loss(t, p)
    with pytest.raises(ValueError, match="var is of incorrect size"):
        onepass.gaussian_nll_loss(p, p, np.ones((3, 2), np.float32))
    with pytest.raises(ValueError, match="var has negative entry/entries"):
        onepass.gaussian_nll_loss(p, p, -w)
    with pytest.raises(TypeError):
        onepass.gaussian_nll_loss(p, p, None)
    with pytest.raises(TypeError, match="target is a masked array; expected a plain one"):  # whose mask was lost
        onepass.mse_loss(p, np.ma.masked_array(p, p > 0))
    with pytest.raises(ValueError, match="bad is not valid"):
        onepass.gaussian_nll_loss(p, p, w, reduction="bad")
    with pytest.raises(ValueError, match="batchmean is not a valid value"):
        onepass.mse_loss(p, p, reduction="batchmean")
    assert onepass.gaussian_nll_loss(p, p, 1.0) == 0 and onepass.gaussian_nll_loss(p, p, t + 1).dtype == np.float32
    assert onepass.kl_div(-p, p, reduction="batchmean") == pytest.approx(onepass.kl_div(-p, p, reduction="sum") / 2)
    with pytest.warns(UserWarning, match="batchmean") as caught:
        onepass.kl_div(-p, p)
    assert caught[0].filename == __file__


def test_weighted_means():
    """Over the weights, or over the elements where PyTorch has it so; broadcast where it is allowed."""
    p, t = np.float64([[1, 2, 3], [4, 5, 6]]), np.zeros((2, 3))
    weight = np.float64([1, 0, 2])
    assert onepass.mse_loss(p, t, weight=weight, broadcast_weight=True) == (1 + 18 + 16 + 72) / 6
    assert onepass.huber_loss(p, t, weight=weight, broadcast_weight=True) == (0.5 + 5 + 3.5 + 11) / 6
    assert onepass.log_cosh_loss(p, t, weight=weight) == pytest.approx(
        (np.log(np.cosh(p)) * weight).sum() / 6, rel=1e-12
    )
    mask = np.array([[True], [False]])
    assert onepass.huber_loss(p, t, weight=weight, broadcast_weight=True, mask=mask) == (0.5 + 5) / 3
    assert np.isnan(onepass.huber_loss(p, t, weight=weight, broadcast_weight=True, mask=mask & False))
    once = onepass.mse_loss(p[0], p[:1] - 1, weight=weight)  # an input that is broadcast: its weights count once
    assert once == 1


# ----------------------------------------------------- warnings and errors --


@pytest.mark.parametrize("loss", ["mse", "smooth_l1"])
def test_unequal_shapes_warn(loss):
    p, t = pair((5, 7))[0], pair((7,))[1]
    with pytest.warns(UserWarning, match="different to the input size") as caught:
        FUNCTIONS[loss](p, t)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FUNCTIONS[loss](p, p)


@pytest.mark.parametrize("loss", ["mse", "smooth_l1"])
def test_deprecated_arguments(loss):
    p, t = pair()
    for given, reduction in (
        ({"size_average": False}, "sum"),
        ({"reduce": False}, "none"),
        ({"size_average": True}, "mean"),
    ):
        with pytest.warns(UserWarning, match=f"please use reduction='{reduction}' instead"):
            np.testing.assert_array_equal(FUNCTIONS[loss](p, t, **given), FUNCTIONS[loss](p, t, reduction=reduction))
    with pytest.warns(UserWarning, match="elementwise_mean"):
        assert FUNCTIONS[loss](p, t, reduction="elementwise_mean") == FUNCTIONS[loss](p, t)


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("loss", FUNCTIONS)
def test_errors(loss):
    p, t = pair((5, 7))
    function = FUNCTIONS[loss]
    with pytest.raises(ValueError, match="bad is not a valid value for reduction"):
        function(p, t, reduction="bad")
    with pytest.raises(ValueError):
        function(p, t[:, :3])
    for other in (1.0, [1.0], None, "text"):
        for arguments in ((p, other), (other, p)):
            with pytest.raises(TypeError):
                function(*arguments)
    for kind in (np.int32, np.int64, bool, np.complex64, object, "datetime64[s]", "U3"):
        with pytest.raises((TypeError, NotImplementedError)):
            function(np.zeros(3, np.int64).astype(kind), np.zeros(3, np.int64).astype(kind))
    with pytest.raises(ValueError):
        onepass.value_and_grad(loss, p, t, reduction="none")


@pytest.mark.parametrize("loss", FUNCTIONS)
def test_foreign_byte_order_is_refused(loss):
    p, t = pair((5, 7))
    foreign = p.astype(p.dtype.newbyteorder())
    for arguments in ((foreign, t), (p, foreign)):
        with pytest.raises(TypeError, match="(?i)byte"):
            FUNCTIONS[loss](*arguments)
        with pytest.raises(TypeError, match="(?i)byte"):
            onepass.value_and_grad(loss, *arguments)


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="long double is double here")
@pytest.mark.parametrize("loss", FUNCTIONS)
def test_long_double_is_refused(loss):
    with pytest.raises((TypeError, NotImplementedError)):
        FUNCTIONS[loss](np.zeros(3, np.longdouble), np.zeros(3, np.longdouble))


@pytest.mark.parametrize("loss", WEIGHTED)
def test_weight_errors(loss):
    p, t = pair((5, 7))
    wanted = "Weights and input must have the same size." if loss == "mse" else "does not broadcast"
    with pytest.raises(ValueError, match=wanted):
        FUNCTIONS[loss](p, t, weight=np.ones(5, np.float32))
    for weight in (1.0, [1.0]):
        with pytest.raises((TypeError, AttributeError)):
            FUNCTIONS[loss](p, t, weight=weight)


def test_negative_beta_is_refused():
    for beta in (-1, float("nan")):
        with pytest.raises((RuntimeError, ValueError)):
            onepass.smooth_l1_loss(*pair(), beta=beta)


@pytest.mark.parametrize("loss", FUNCTIONS)
def test_a_tensor_beside_an_array_is_refused(loss):
    torch = pytest.importorskip("torch")
    p, t = pair((5, 7))
    for arguments in ((p, torch.from_numpy(t)), (torch.from_numpy(p), t)):
        with pytest.raises(TypeError, match="(?i)numpy|ndarray|array"):
            FUNCTIONS[loss](*arguments)
    if loss in WEIGHTED:
        with pytest.raises((TypeError, ValueError)):
            FUNCTIONS[loss](p, t, weight=torch.ones(5, 7))
        with pytest.raises((TypeError, ValueError)):
            FUNCTIONS[loss](torch.from_numpy(p), torch.from_numpy(t), weight=np.ones((5, 7), np.float32))


# ------------------------------------------------------------------- asking --


def test_losses_and_machine():
    names = [info["name"] if isinstance(info, dict) else info.name for info in onepass.losses()]
    assert set(FUNCTIONS) <= set(oracle.LOSSES) <= set(names)
    machine = onepass.machine()
    assert machine["threads"] >= 1 and machine["instruction_set"] in machine["instruction_sets"]
    assert isinstance(onepass.__version__, str) and onepass.__version__[0].isdigit()
