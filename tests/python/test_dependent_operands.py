# Operands of which one is computed from another, or is the same tensor: a gradient that will be differentiated again
# is composed by PyTorch, and adds up each path once, as the gradient that the library computes does.
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")

import onepass
import vector_cases
from reference import ALL, THREE, ours

LABELS = torch.tensor([0, 2, 1])


def element_loss(loss):
    return lambda x, y: ours(loss, x, y, third=x + y if loss in THREE else None)


#: Functions of two operands of one shape, (3, 4).
CASES = {
    **{loss: element_loss(loss) for loss in ALL},
    **{name: lambda x, y, case=case: case.ours(x, y, *([x * y] if case.operands == "vvv" else []),
                                               *([torch.tensor([1, -1, 1])] if case.operands == "vvs" else [])).sum()
       for name, case in vector_cases.CASES.items()},
    "cross_entropy": onepass.cross_entropy,  # with probabilities of classes
    "linear_cross_entropy": lambda x, y: onepass.linear_cross_entropy(x, y, LABELS, linear_bias=x[0, :3]),
    "linear_cross_entropy temperature": lambda x, y: onepass.linear_cross_entropy(x, y, LABELS, temperature=y[0, 0]),
    "linear_log_prob": lambda x, y: onepass.linear_log_prob(x, y, LABELS).sum(),
    "nt_xent_loss": onepass.nt_xent_loss,
    "supcon_loss": lambda x, y: onepass.supcon_loss(torch.cat((x, y)), LABELS.repeat(2)),
    "a weight": lambda x, y: onepass.mse_loss(x, y, weight=x + y),
    "a temperature": lambda x, y: onepass.kl_div_with_logits(x, y, temperature=x[0, 0] + y[0, 0]),
}

#: The two operands, of one.
PAIRS = {
    "the same": lambda x: (x, x),
    "the second of the first": lambda x: (x, x * 0.5 + 0.1),
    "the first of the second": lambda x: (x * 0.5 + 0.1, x),
}


def probabilities():
    """Numbers that every loss is for."""
    return (torch.rand(3, 4, generator=torch.Generator().manual_seed(5), dtype=torch.float64) * 0.6 + 0.2).requires_grad_()


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")
@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize("loss", CASES.values(), ids=CASES)
def test_a_gradient_to_be_differentiated_is_the_gradient(loss, pair):
    x = probabilities()
    (wanted,) = torch.autograd.grad(loss(*pair(x)), x)
    (got,) = torch.autograd.grad(loss(*pair(x)), x, create_graph=True)
    torch.testing.assert_close(got.detach(), wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["mse", "gaussian_nll", "triplet_margin_loss", "cross_entropy", "linear_cross_entropy",
                                  "nt_xent_loss"])
def test_second_derivatives_by_differences(name):
    pair = PAIRS["the second of the first"]
    assert torch.autograd.gradgradcheck(lambda x: CASES[name](*pair(x)), probabilities())
