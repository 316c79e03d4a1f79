# torch.compile of vector losses: one graph, the bits of eager, PyTorch's errors; and what our operators declare.
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
from vector_cases import operands_of

assert fresh_compiler  # which every test here uses
pytestmark = needs_operators


def many(a, b, c, target, weight, items):
    """Values of one graph; each has a gradient for a."""
    return [
        onepass.cosine_similarity(a, b),
        onepass.cosine_similarity(a[:, None], b, -1, weight=weight),
        onepass.cosine_similarity(a, b, 0),
        onepass.pairwise_distance(a, b, keepdim=True),
        onepass.pairwise_distance(a, b, p=1, mask=weight > 0.5),
        onepass.pairwise_distance(a, b, p=3.0),
        onepass.cosine_embedding_loss(a, b, target, 0.1),
        onepass.cosine_embedding_loss(a, b, target.float(), weight=weight, reduction="none"),
        onepass.triplet_margin_loss(a, b, c),
        onepass.triplet_margin_loss(a, b, c, swap=True, p=1, divisor=items),
        onepass.triplet_margin_loss(a, b[:1], c, divisor=17, weight=weight),
        onepass.triplet_margin_with_distance_loss(a, b, c, reduction="sum"),
        onepass.nn.TripletMarginLoss(reduction="none")(a, b, c),
        onepass.nn.CosineSimilarity()(a, b),
        onepass.kl_div_with_logits(a, b, 2.0, reverse=True),
        onepass.kl_div_with_logits(a, b, dim=0, reduction="none"),
        onepass.js_div_with_logits(a, b[:1], 0.25, weight=weight),
        onepass.js_div_with_logits(a, b, 1),
        onepass.tv_distance_with_logits(a, b, mask=weight > 0.5),
    ]


@pytest.mark.parametrize("dtype, shape", [(torch.float32, (6, 7)), (torch.bfloat16, (4, 1100))], ids=str)
def test_the_bits_of_eager(dtype, shape, device):
    vectors = operands_of("triplet_margin_loss", shape, dtype, device)
    rest = (torch.randint(0, 2, shape[:1], device=device) * 2 - 1, dyadic(shape[:1], dtype, device),
            torch.tensor(23, device=device))
    found = []
    for function in (torch.compile(many, fullgraph=True, backend="aot_eager"), many):
        leaves = [x.clone().requires_grad_() for x in vectors]
        values = function(*leaves, *rest)
        sum(value.float().sum() for value in values).backward()
        found.append((values, [x.grad for x in leaves]))
    for got, wanted in zip(found[0][0], found[1][0]):
        assert_same_bits(got, wanted)
        assert strides(got) == strides(wanted) and got.requires_grad
    for one, other in zip(found[0][1], found[1][1]):  # which autograd adds up in its own order
        torch.testing.assert_close(one, other, rtol=5e-2 if dtype is torch.bfloat16 else 1e-5,
                                   atol=5e-2 if dtype is torch.bfloat16 else 1e-5)


def test_gradients_have_the_bits_of_eager(device):
    operands = operands_of("triplet_margin_loss", (6, 70), device=device)
    for function in (lambda a, b, c: onepass.triplet_margin_loss(a, b, c, swap=True) * 0.3,
                     lambda a, b, c: (onepass.cosine_similarity(a, b, -1) * c[:, 0]).sum() + c.sum()):
        found = []
        for way in (torch.compile(function, fullgraph=True, backend="aot_eager"), function):
            leaves = [x.clone().requires_grad_() for x in operands]
            way(*leaves).backward()
            found.append([x.grad for x in leaves])
        for one, other in zip(*found):
            assert_same_bits(one, other)
        dynamo.reset()


def test_sizes_that_change():
    compiled = torch.compile(lambda a, b, c: onepass.triplet_margin_loss(a, b, c, margin=0.5), fullgraph=True,
                             backend="aot_eager", dynamic=True)
    for shape in ((3, 5), (8, 5), (8, 9), (4, 1500)):
        operands = operands_of("triplet_margin_loss", shape)
        assert_same_bits(compiled(*operands), onepass.triplet_margin_loss(*operands, margin=0.5))


def test_autocast_and_patch(device):
    a, b, c = operands_of("triplet_margin_loss", (6, 7), torch.bfloat16, device)

    def function(a, b, c):
        with torch.autocast(device, dtype=torch.bfloat16):
            return onepass.triplet_margin_loss(a, b, c), onepass.cosine_similarity(a, b)

    for one, other in zip(torch.compile(function, fullgraph=True, backend="aot_eager")(a, b, c), function(a, b, c)):
        assert_same_bits(one, other)
    with onepass.patch_torch():
        patched = torch.compile(lambda a, b, c: torch.nn.functional.triplet_margin_loss(a, b, c) +
                                torch.nn.functional.cosine_similarity(a, b).sum() +
                                torch.nn.functional.pairwise_distance(a, b).sum(), fullgraph=True, backend="aot_eager")
        wanted = onepass.triplet_margin_loss(a, b, c) + onepass.cosine_similarity(a, b).sum() + \
            onepass.pairwise_distance(a, b).sum()
        assert_same_bits(patched(a, b, c), wanted)


def test_errors():
    compiled = torch.compile(onepass.triplet_margin_loss, fullgraph=True, backend="aot_eager")
    with pytest.raises(Exception, match="margin must be greater than 0"):
        compiled(torch.ones(2, 3), torch.ones(2, 3), torch.ones(2, 3), margin=-1.0)


@pytest.mark.skipif(shutil.which("c++") is None and shutil.which("g++") is None, reason="inductor needs a C++ compiler")
def test_inductor(device):
    operands = operands_of("triplet_margin_loss", (6, 1100), device=device)
    function = lambda a, b, c: onepass.triplet_margin_loss(a * 2, b, c) * 0.5
    found = []
    for way in (torch.compile(function, fullgraph=True), function):
        leaves = [x.clone().requires_grad_() for x in operands]
        value = way(*leaves)
        value.backward()
        found.append([value.detach(), *(x.grad for x in leaves)])
    for one, other in zip(*found):
        assert_same_bits(one, other)


OPERATORS = {"cosine_similarity": ("cosine_similarity", [1e-8]), "cosine_embedding": ("cosine_embedding_loss", [0.0]),
             "triplet_margin": ("triplet_margin_loss", [1, 2, 1e-6, 0]),
             "tversky": ("tversky_loss", [0.5, 0.5, 0, 1e-7]), "js_div_with_logits": ("js_div_with_logits", [0.5, 2])}


@pytest.mark.parametrize("reduction", [0, 2])
@pytest.mark.parametrize("name", OPERATORS)
def test_the_operators_are_as_they_say(name, reduction):
    # The package registers them when they are first needed.
    onepass.cosine_similarity(torch.ones(1, 2), torch.ones(1, 2))
    called, parameters = OPERATORS[name]
    operands = [x.requires_grad_() if x.dim() > 1 else x for x in operands_of(called, (4, 11))]
    tensors = (*operands, None)[:3]
    question = name, reduction, [float(x) for x in parameters], -1, 0.0
    torch.library.opcheck(torch.ops.onepass.vectors.default, (*tensors, None, None, None, *question, 3),
                          test_utils=("test_schema", "test_autograd_registration", "test_faketensor"))
    detached = [None if x is None else x.detach() for x in tensors]
    upstream = torch.ones(4 if reduction == 2 else ())
    torch.library.opcheck(torch.ops.onepass.vectors_gradient.default,
                          (*detached, None, None, None, upstream, *question, 1),
                          test_utils=("test_schema", "test_faketensor"))


def test_an_exported_program_does_not_need_us():
    class Model(torch.nn.Module):
        def forward(self, a, b):
            return onepass.cosine_similarity(a, b), onepass.triplet_margin_loss(a, b, -a), \
                onepass.js_div_with_logits(a, b)

    operands = torch.randn(4, 5), torch.randn(4, 5)
    program = torch.export.export(Model(), operands, strict=False)
    assert not [node for node in program.graph.nodes if "onepass" in str(node.target)]
    for one, other in zip(program.module()(*operands), Model()(*operands)):
        torch.testing.assert_close(one, other)


NO_LABELS = torch.zeros(0, dtype=torch.int64)
OF_NOTHING = {
    "binary": lambda x: onepass.dice_loss(x, torch.zeros(0, 3)),
    "multilabel": lambda x: onepass.dice_loss(x, torch.zeros(0, 3), mode="multilabel"),
    "multiclass": lambda x: onepass.tversky_loss(x, NO_LABELS, mode="multiclass"),
    "nt_xent": lambda x: onepass.nt_xent_loss(x, x),
    "supcon": lambda x: onepass.supcon_loss(x, NO_LABELS),
}


@pytest.mark.parametrize("loss", OF_NOTHING.values(), ids=OF_NOTHING)
def test_a_batch_of_nothing_has_a_gradient(loss):
    x = torch.zeros(0, 3, requires_grad=True)
    value = torch.compile(loss, backend="aot_eager", fullgraph=True)(x)
    torch.testing.assert_close(value, loss(x), equal_nan=True)
    assert torch.autograd.grad(value, x)[0].shape == (0, 3)
