# torch.compile of a linear layer's losses: one graph, the numbers of eager, no tensor of all logits.
import os

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")

import onepass

from agreement import assert_same_bits
from compiling import fresh_compiler, needs_operators
from test_linear import allocated, assert_near, labels_of, layer

pytestmark = needs_operators


def many(x, w, b, y, labels, items):
    """Values of one graph; each has gradients for x and w."""
    return [
        onepass.linear_cross_entropy(x, w, y, chunk_rows=16),
        onepass.linear_cross_entropy(x, w, y, linear_bias=b, label_smoothing=0.1, num_items=items),
        onepass.linear_cross_entropy(x, w, y, linear_bias=b, reduction="sum", num_ignored=None, softcap=20.0),
        onepass.linear_cross_entropy(x, w, y, linear_bias=b, reduction="none", dtype=torch.float32),
        onepass.linear_cross_entropy(x, w, y, num_items=17, z_loss=1e-3),
        onepass.linear_log_prob(x.reshape(5, 8, -1), w, y.reshape(5, 8), temperature=0.9),
        onepass.nt_xent_loss(x[:20], x[20:], chunk_rows=16) + 0 * w.sum(),
        onepass.supcon_loss(x, labels) + 0 * w.sum(),
    ]


HALVES = [torch.bfloat16] if os.environ.get("ONEPASS_TEST_QUICK") == "1" else [torch.bfloat16, torch.float16]


@pytest.mark.parametrize("dtype", [torch.float32, *HALVES], ids=str)
def test_the_numbers_of_eager(dtype, device):
    leaves = layer((40,), 1500, dtype, device)
    arguments = (*leaves, labels_of((40,), 1500, device), torch.arange(40, device=device) // 3,
                 torch.tensor(23, device=device))
    compiled = torch.compile(many, fullgraph=True, backend="aot_eager")
    for place, (mine, peer) in enumerate(zip(compiled(*arguments), many(*arguments))):
        assert_same_bits(mine.detach(), peer.detach(), f"value {place}")
        upstream = torch.rand_like(peer) + 0.5
        for one, other in zip(*(torch.autograd.grad(value, leaves[:2], upstream, retain_graph=True)
                                for value in (mine, peer))):
            assert_near(one, other.double().cpu(), dtype, f"gradient of value {place}")


def test_autocast(device):
    leaves, target = layer((40,), 1500, device=device), labels_of((40,), 1500, device)

    def step(x, w, b):
        with torch.autocast(device, dtype=torch.bfloat16):
            return onepass.linear_cross_entropy(x, w, target, linear_bias=b, chunk_rows=16)

    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    assert_same_bits(compiled(*leaves).detach(), step(*leaves).detach())
    for one, other in zip(*(torch.autograd.grad(function(*leaves), leaves) for function in (compiled, step))):
        assert_same_bits(one, other)


def test_no_gradient_is_computed_that_nobody_needs(device):
    x, w, b = (leaf.detach() for leaf in layer((40,), 30, device=device))
    target = labels_of((40,), 30, device)
    compiled = torch.compile(onepass.linear_cross_entropy, fullgraph=True, backend="aot_eager")
    assert_same_bits(compiled(x, w, target, linear_bias=b), onepass.linear_cross_entropy(x, w, target, linear_bias=b))


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_no_more_than_a_chunk_of_logits_is_held(reduction):
    rows, classes, features, chunk = 4000, 79 * 64, 8, 100
    x, w, _ = layer((rows,), classes, features=features)
    target = labels_of((rows,), classes)
    function = torch.compile(lambda x, w: onepass.linear_cross_entropy(x, w, target, reduction=reduction,
                                                                       chunk_rows=chunk).sum(),
                             fullgraph=True, backend="aot_eager")
    step = lambda: torch.autograd.grad(function(x, w), (x, w))
    step()
    _, peak, largest = allocated(step)
    logits, own = 4 * chunk * classes, 4 * (rows * features + classes * features) + 8 * 6 * rows
    assert largest <= 1.01 * logits and peak <= 1.2 * logits + 4 * own


def test_what_the_operators_declare(device):
    # The package registers them when they are first needed.
    onepass.linear_cross_entropy(torch.ones(1, 2), torch.ones(3, 2), torch.zeros(1, dtype=torch.int64))
    leaves, target = layer((12,), 9, torch.float64, device, features=3), labels_of((12,), 9, device)
    arguments = (*leaves, target, None, None, "cross_entropy", 0, [-100.0, 0.0, 0.0, 0.0, 1.0], 4, 0.0, 5, -1, "plain",
                 0, [True] * 3)
    torch.library.opcheck(torch.ops.onepass.linear_rows.default, arguments)
    one = torch.ones((), dtype=torch.float64, device=device)
    given = (*(leaf.detach() for leaf in leaves), target, None, None, one, *arguments[6:])
    torch.library.opcheck(torch.ops.onepass.linear_rows_gradient.default, given)


def test_a_batch_of_another_size(device):
    """One graph for all sizes."""
    w = torch.randn(30, 6, device=device, requires_grad=True)
    compiled = torch.compile(onepass.linear_cross_entropy, fullgraph=True, backend="aot_eager", dynamic=True)
    for rows in (7, 11, 40):
        x, target = torch.randn(rows, 6, device=device), torch.randint(30, (rows,), device=device)
        assert_same_bits(compiled(x, w, target).detach(), onepass.linear_cross_entropy(x, w, target).detach())
