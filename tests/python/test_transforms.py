# Double backward, forward-mode AD, vmap and torch.func: PyTorch's own answers.

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")

from agreement import assert_near_pytorch
from operands import leaves, pair
from reference import LOSSES, REDUCTIONS, ours, theirs

pytestmark = [pytest.mark.usefixtures("borrowing"), pytest.mark.filterwarnings("ignore:Using a target size")]


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("loss", LOSSES)
def test_create_graph(loss, reduction, device):
    p, t = pair(dtype=torch.float64, device=device)
    results = []
    for function in (ours, theirs):
        a, b = leaves(p, t)
        first = torch.autograd.grad(function(loss, a, b, reduction), (a, b), create_graph=True)
        second = torch.autograd.grad(
            sum((gradient**2).sum() for gradient in first), (a, b), allow_unused=True, materialize_grads=True
        )
        results.append((*(gradient.detach() for gradient in first), *second))
    for mine, peer in zip(*results):
        assert_near_pytorch(mine, peer, tolerance=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_gradient_penalty(loss):
    """A penalty on the gradient, trained through: both derivatives meet in one backward."""
    p, t = pair((8, 3), torch.float64)
    results = []
    for function in (ours, theirs):
        (weight,) = leaves(torch.ones(3, dtype=torch.float64) / 3)
        (a,) = leaves(p)
        value = function(loss, a * weight, t)
        (slope,) = torch.autograd.grad(value, a, create_graph=True)
        (value + slope.square().sum()).backward()
        results.append(weight.grad)
    assert_near_pytorch(*results, tolerance=1e-12)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("loss", LOSSES)
def test_dual_numbers(loss, reduction):
    from torch.autograd import forward_ad

    p, t = pair(dtype=torch.float64)
    direction = torch.randn(3, 5, dtype=torch.float64)
    tangents = []
    for function in (ours, theirs):
        with forward_ad.dual_level():
            value = function(loss, forward_ad.make_dual(p, direction), t, reduction)
            primal, tangent = forward_ad.unpack_dual(value)
            assert tangent is not None, "the tangent was lost"
            tangents.append((primal, tangent))
    for mine, peer in zip(*tangents):
        assert_near_pytorch(mine, peer, tolerance=1e-13)


TRANSFORMS = {
    "vmap": lambda f, p, t: torch.func.vmap(f)(p, t),
    "vmap over one": lambda f, p, t: torch.func.vmap(f, in_dims=(0, None))(p, t[0]),
    "vmap of vmap": lambda f, p, t: torch.func.vmap(torch.func.vmap(f))(p, t),
    "grad": lambda f, p, t: torch.func.grad(f)(p, t),
    "grad of both": lambda f, p, t: torch.stack(torch.func.grad(f, argnums=(0, 1))(p, t)),
    "grad_and_value": lambda f, p, t: torch.func.grad_and_value(f)(p, t)[0],
    "grad of grad": lambda f, p, t: torch.func.grad(lambda a: torch.func.grad(f)(a, t).square().sum())(p),
    "vmap of grad": lambda f, p, t: torch.func.vmap(torch.func.grad(f))(p, t),
    "jvp": lambda f, p, t: torch.stack(torch.func.jvp(f, (p, t), (t, p))),
    "vjp": lambda f, p, t: torch.func.vjp(f, p, t)[1](torch.tensor(3.0, dtype=torch.float64))[0],
    "jacrev": lambda f, p, t: torch.func.jacrev(f)(p, t),
    "jacfwd": lambda f, p, t: torch.func.jacfwd(f)(p, t),
    "hessian": lambda f, p, t: torch.func.hessian(f)(p, t),
    "functionalize": lambda f, p, t: torch.func.functionalize(f)(p, t),
    "autograd.functional.hessian": lambda f, p, t: torch.autograd.functional.hessian(lambda a: f(a, t), p),
    "autograd.functional.jvp": lambda f, p, t: torch.autograd.functional.jvp(lambda a: f(a, t), p, t)[1],
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("loss", LOSSES)
def test_transforms(loss, transform):
    p, t = torch.randn(4, 3, dtype=torch.float64), torch.randn(4, 3, dtype=torch.float64)
    mine, peer = (TRANSFORMS[transform](lambda a, b: function(loss, a, b), p, t) for function in (ours, theirs))
    assert_near_pytorch(mine, peer, transform, tolerance=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_batched_gradients(loss):
    """is_grads_batched runs backward under vmap, once the graph was made outside of it."""
    p, t = pair((5,), torch.float64)
    results = []
    for function in (ours, theirs):
        (a,) = leaves(p)
        value = function(loss, a, t, "none")
        results.append(torch.autograd.grad(value, a, torch.eye(5, dtype=torch.float64), is_grads_batched=True)[0])
    assert_near_pytorch(*results)


@pytest.mark.parametrize("loss", LOSSES)
def test_batched_gradients_of_a_mean(loss):
    p, t = pair((5,), torch.float64)
    results = []
    for function in (ours, theirs):
        (a,) = leaves(p)
        factors = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
        results.append(torch.autograd.grad(function(loss, a, t), a, factors, is_grads_batched=True)[0])
    assert_near_pytorch(*results)
