# The contract of shapes and strides: broadcasting with a warning, errors, and PyTorch's strides for results.
import warnings

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")

import onepass
import torch.nn.functional as F

from agreement import (
    Outcome,
    ask_oracle,
    assert_near_pytorch,
    assert_same_outcome,
    assert_value,
    exact,
    strides,
)
from operands import pair
from reference import LOSSES, OURS, REDUCTIONS, both, gradients, ours, theirs

pytestmark = pytest.mark.usefixtures("borrowing")

PYTORCH_LOSSES = {"mse": F.mse_loss, "smooth_l1": F.smooth_l1_loss}


BROADCASTS = [
    ((4, 3), (3,)),
    ((4, 3), (4, 1)),
    ((3,), (4, 3)),
    ((4, 1), (1, 3)),
    ((4, 3), ()),
    ((), (4, 3)),
    ((5,), (5, 1)),
    ((2, 1, 3), (4, 1)),
]


@pytest.mark.parametrize("shapes", BROADCASTS, ids=str)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("loss", PYTORCH_LOSSES)
def test_unequal_shapes_warn_and_broadcast(loss, reduction, shapes, device):
    p, t = (torch.randn(shape, device=device) for shape in shapes)
    got = Outcome(OURS[loss], p, t, reduction=reduction)
    assert_same_outcome(got, Outcome(PYTORCH_LOSSES[loss], p, t, reduction=reduction))
    assert strides(got.result) == strides(PYTORCH_LOSSES[loss](p, t, reduction=reduction))
    assert got.warnings[0][0] is UserWarning and "that is different to the input size" in got.warnings[0][1]


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("shapes", BROADCASTS, ids=str)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("loss", LOSSES)
def test_gradient_of_a_broadcast_operand_has_its_own_shape(loss, reduction, shapes, device):
    p, t = (torch.randn(shape, device=device, dtype=torch.float64) for shape in shapes)
    for mine, peer in zip(
        gradients(ours, loss, p, t, reduction=reduction), gradients(theirs, loss, p, t, reduction=reduction)
    ):
        assert_near_pytorch(mine, peer)


def call_from_here(function, p, t, **given):
    return function(p, t, **given)


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("loss", PYTORCH_LOSSES)
def test_the_warning_names_the_callers_line(loss, gradient):
    p, t = torch.randn(4, 3, requires_grad=gradient), torch.randn(3)
    got = Outcome(call_from_here, OURS[loss], p, t)
    assert got.files == [__file__]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call_from_here(OURS[loss], p, t)
    assert caught[0].lineno == call_from_here.__code__.co_firstlineno + 1


@pytest.mark.parametrize("loss", PYTORCH_LOSSES)
def test_equal_shapes_do_not_warn(loss):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for shape in ((), (3,), (0, 2)):
            OURS[loss](*pair(shape))


@pytest.mark.parametrize("loss", PYTORCH_LOSSES)
def test_a_warning_made_an_error_is_raised(loss):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="Using a target size"):
            OURS[loss](torch.randn(4, 3), torch.randn(3))


@pytest.mark.parametrize("shapes", [((4, 3), (4,)), ((2, 3), (2, 2)), ((0, 3), (2, 3)), ((2, 3, 4), (3, 3))], ids=str)
@pytest.mark.parametrize("loss", PYTORCH_LOSSES)
def test_incompatible_shapes(loss, shapes):
    p, t = (torch.randn(shape) for shape in shapes)
    got = Outcome(OURS[loss], p, t)
    assert_same_outcome(got, Outcome(PYTORCH_LOSSES[loss], p, t))
    assert isinstance(got.error, RuntimeError)
    # The shapes are looked at before the reduction.
    assert_same_outcome(
        Outcome(OURS[loss], p, t, reduction="bad"), Outcome(PYTORCH_LOSSES[loss], p, t, reduction="bad")
    )


def test_incompatible_shapes_of_the_hinge():
    with pytest.raises(RuntimeError):
        onepass.hinge_loss(torch.randn(4, 3), torch.randn(4))


# --------------------------------------------------------------- strides --


def channels_last(*shape):
    return torch.randn(shape).to(memory_format=torch.channels_last)


LAYOUTS = {
    "channels_last": lambda: (channels_last(2, 3, 4, 5), channels_last(2, 3, 4, 5)),
    "channels_last and dense": lambda: (channels_last(2, 3, 4, 5), torch.randn(2, 3, 4, 5)),
    "dense and channels_last": lambda: (torch.randn(2, 3, 4, 5), channels_last(2, 3, 4, 5)),
    "channels_last_3d": lambda: tuple(
        torch.randn(2, 3, 2, 2, 2).to(memory_format=torch.channels_last_3d) for _ in "pt"
    ),
    "transposed": lambda: (torch.randn(5, 3).t(), torch.randn(5, 3).t()),
    "transposed and dense": lambda: (torch.randn(5, 3).t(), torch.randn(3, 5)),
    "permuted": lambda: (torch.randn(2, 3, 4).permute(2, 0, 1), torch.randn(2, 3, 4).permute(2, 0, 1)),
    "every other": lambda: (torch.randn(6, 10)[::2, ::2], torch.randn(3, 5)),
    "expanded": lambda: (torch.randn(1, 5).expand(3, 5), torch.randn(3, 1).expand(3, 5)),
    "offset": lambda: (torch.randn(16)[1:], torch.randn(17)[2:]),
    "overlapping": lambda: (torch.randn(12).as_strided((4, 5), (2, 1)), torch.randn(4, 5)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_strides(loss, layout, device):
    p, t = (tensor.to(device) for tensor in LAYOUTS[layout]())
    for reduction in REDUCTIONS:
        got, wanted = both(loss, p, t, reduction)
        assert_near_pytorch(got, wanted)
        assert strides(got) == strides(wanted), f"{layout} {reduction}"
        assert_value(exact(got), ask_oracle(loss, p, t, reduction))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_strides_of_gradients(loss, layout):
    p, t = LAYOUTS[layout]()
    for reduction in REDUCTIONS:
        results = []
        for function in (ours, theirs):
            a, b = (tensor.detach().requires_grad_() for tensor in (p, t))
            results.append(torch.autograd.grad(function(loss, a, b, reduction).sum(), (a, b)))
        for mine, peer in zip(*results):
            assert_near_pytorch(mine, peer, f"{layout} {reduction}")
