# torch.compile of losses over rows: one graph, the bits of eager, PyTorch's errors; and what our operators declare.
#
# Most use the backend aot_eager, and each compiled function holds several calls; see test_compile.py.
import shutil

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")

import onepass
import onepass.nn

from agreement import assert_same_bits, strides
from compiling import dynamo, fresh_compiler, needs_operators
from operands import dyadic
from row_cases import labels_of, logits_of, probabilities_of

pytestmark = needs_operators


def many(x, y, q, weight, row_weight, items):
    """Values of one graph; each has a gradient for x."""
    both = onepass.cross_entropy(x, y, z_loss=0.1, return_lse=True, return_z_loss=True, return_accuracy=True)
    return [
        onepass.cross_entropy(x, y),
        onepass.cross_entropy(x, y.int(), weight, label_smoothing=0.1),
        onepass.cross_entropy(x, y, row_weight=row_weight, mask=row_weight > 0.5, reduction="sum"),
        onepass.cross_entropy(x, y, divisor=items, dtype=torch.float32),
        onepass.cross_entropy(x, y, divisor=17, softcap=9.0, temperature=1.5, reduction="mean"),
        onepass.cross_entropy(x, y, reduction="none"),
        onepass.cross_entropy(x, q, weight, label_smoothing=0.1),
        onepass.cross_entropy(x, q, reduction="batchmean"),
        onepass.nll_loss(x, y, weight),
        onepass.log_prob(x, y, temperature=0.8),
        onepass.nn.CrossEntropyLoss(weight)(x, y),
        *both,
    ]


def arguments_of(shape, dtype, device):
    return (logits_of(shape, dtype, device), labels_of(shape, device=device, ignore_index=-100),
            probabilities_of(shape, dtype, device), dyadic((shape[1],), dtype, device),
            dyadic(shape[:1], dtype, device), torch.tensor(23, device=device))


@pytest.mark.parametrize("dtype, shape", [(torch.float32, (6, 7)), (torch.bfloat16, (4, 1100))], ids=str)
def test_the_bits_of_eager(dtype, shape, device):
    arguments = arguments_of(shape, dtype, device)
    found = []
    for function in (torch.compile(many, fullgraph=True, backend="aot_eager"), many):
        leaf, probabilities = (arguments[k].clone().requires_grad_() for k in (0, 2))
        values = function(leaf, arguments[1], probabilities, *arguments[3:])
        sum(value.float().sum() for value in values[:-3]).backward()
        found.append((values, (leaf.grad, probabilities.grad)))
    for got, wanted in zip(*(values for values, _ in found)):
        assert_same_bits(got, wanted)
        assert strides(got) == strides(wanted) and got.requires_grad == wanted.requires_grad
    for one, other in zip(*(gradients for _, gradients in found)):  # which autograd adds up in its own order
        torch.testing.assert_close(one, other, rtol=3e-2 if dtype is torch.bfloat16 else 1e-5, atol=1e-2 if dtype is
                                   torch.bfloat16 else 1e-6)


def test_gradients_have_the_bits_of_eager(device):
    for shape, given in (((4, 1100), {}), ((2, 5, 3), {"reduction": "none", "label_smoothing": 0.1})):
        input, target = logits_of(shape, device=device), labels_of(shape, device=device)
        function = lambda x, y: onepass.cross_entropy(x, y, **given).sum() * 0.3
        found = []
        for way in (torch.compile(function, fullgraph=True, backend="aot_eager"), function):
            leaf = input.clone().requires_grad_()
            way(leaf, target).backward()
            found.append(leaf.grad)
        assert_same_bits(*found)
        dynamo.reset()


def test_sizes_that_change():
    compiled = torch.compile(lambda x, y: onepass.cross_entropy(x, y, label_smoothing=0.1), fullgraph=True,
                             backend="aot_eager", dynamic=True)
    for rows, classes in ((3, 5), (8, 5), (8, 9), (4, 1500)):
        input, target = logits_of((rows, classes)).requires_grad_(), labels_of((rows, classes))
        assert_same_bits(compiled(input, target), onepass.cross_entropy(input, target, label_smoothing=0.1))


def test_a_divisor_that_is_a_size_is_one_graph_for_all_sizes():
    """As a number it was an error of the compiler's, or a graph for each size, of which there may be few."""
    def step(x, y):
        return (onepass.cross_entropy(x, y, divisor=y.numel()) + onepass.multi_margin_loss(x, y, divisor=x.shape[0]) +
                onepass.causal_lm_loss(x, y, x.shape[1], num_items_in_batch=2 * y.numel()) +
                onepass.linear_cross_entropy(x, x.detach(), y, num_items=y.numel()))

    dynamo.reset()
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager", dynamic=True)
    for rows in range(2, 14):
        input, target = logits_of((rows, 20)), labels_of((rows, 20)) % rows
        found = []
        for way in (compiled, step):
            leaf = input.clone().requires_grad_()
            value = way(leaf, target)
            value.backward()
            found.append((value.detach(), leaf.grad))
        for one, other in zip(*found):
            torch.testing.assert_close(one, other)


def test_autocast_and_patch(device):
    input, target = logits_of((6, 7), torch.bfloat16, device), labels_of((6, 7), device=device)

    def function(x, y):
        with torch.autocast(device, dtype=torch.bfloat16):
            return onepass.cross_entropy(x, y)

    assert_same_bits(torch.compile(function, fullgraph=True, backend="aot_eager")(input, target),
                     onepass.cross_entropy(input, target, dtype=torch.float32))
    with onepass.patch_torch():
        patched = torch.compile(lambda x, y: torch.nn.functional.cross_entropy(x, y), fullgraph=True,
                                backend="aot_eager")
        assert_same_bits(patched(input, target), onepass.cross_entropy(input, target))


def test_labels_out_of_range():
    compiled = torch.compile(onepass.cross_entropy, fullgraph=True, backend="aot_eager")
    with pytest.raises(IndexError, match="Target 9 is out of bounds."):
        compiled(logits_of((2, 4)), torch.tensor([0, 9]))


@pytest.mark.skipif(shutil.which("c++") is None and shutil.which("g++") is None, reason="inductor needs a C++ compiler")
def test_inductor(device):
    input, target = logits_of((6, 1100), device=device), labels_of((6, 1100), device=device)
    compiled = torch.compile(lambda x, y: onepass.cross_entropy(x * 2, y) * 0.5, fullgraph=True)
    found = []
    for way in (compiled, lambda x, y: onepass.cross_entropy(x * 2, y) * 0.5):
        leaf = input.clone().requires_grad_()
        value = way(leaf, target)
        value.backward()
        found.append((value.detach(), leaf.grad))
    for one, other in zip(*found):
        assert_same_bits(one, other)


@pytest.mark.parametrize("name", ["cross_entropy", "cross_entropy_with_probabilities", "nll"])
def test_the_operators_are_as_they_say(name):
    # The package registers them when they are first needed.
    onepass.cross_entropy(torch.ones(1, 2), torch.zeros(1, dtype=torch.int64))
    shape = (4, 1100)
    input = logits_of(shape).requires_grad_()
    target = labels_of(shape) if name != "cross_entropy_with_probabilities" else probabilities_of(shape)
    parameters = {"cross_entropy": [-100.0, 0.1, 0, 0, 1], "nll": [-100.0]}.get(name, [0.1, 0, 0, 1])
    from onepass._row_request import DIVIDED_BY, LSE, PREDICTED, STATE

    outputs = STATE | LSE | PREDICTED | DIVIDED_BY if name == "cross_entropy" else 0
    arguments = (input, target, None, None, None, None, name, 0, parameters, 0, 0.0, 3, outputs)
    torch.library.opcheck(torch.ops.onepass.rows.default, arguments,
                          test_utils=("test_schema", "test_autograd_registration", "test_faketensor"))
    state = torch.ops.onepass.rows(*arguments)[1].detach()
    torch.library.opcheck(torch.ops.onepass.rows_gradient.default,
                          (input.detach(), *arguments[1:6], torch.tensor(2.0), state, *arguments[6:11], 0),
                          test_utils=("test_schema", "test_faketensor"))


def test_an_exported_program_does_not_need_us():
    class Model(torch.nn.Module):
        def forward(self, input, target):
            return onepass.cross_entropy(input, target, z_loss=0.5), onepass.log_prob(input, target)

    operands = torch.randn(4, 5), torch.tensor([0, 4, -100, 1])
    program = torch.export.export(Model(), operands, strict=False)
    assert not [node for node in program.graph.nodes if "onepass" in str(node.target)]
    for one, other in zip(program.module()(*operands), Model()(*operands)):
        torch.testing.assert_close(one, other)


def test_numbers_of_a_module_that_are_symbols():
    module, input, target = onepass.nn.SoftmaxFocalLoss(alpha=0.5), logits_of((6, 5)), labels_of((6, 5))
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager", dynamic=True)
    assert_same_bits(compiled(input, target), module(input, target))
