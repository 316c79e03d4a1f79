# cross_entropy and nll_loss beside PyTorch's own: the same results, types, shapes, warnings and errors, edge by edge;
# and where they differ on purpose, how.
import warnings

import pytest

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")

import onepass
import onepass.nn
import torch.nn.functional as F

from agreement import Outcome, assert_near_pytorch, assert_same_outcome
from operands import FLOATS
from row_cases import labels_of, logits_of, probabilities_of

BOTH = [(onepass.cross_entropy, F.cross_entropy), (onepass.nll_loss, F.nll_loss)]
NAN, INF = float("nan"), float("inf")


def outcomes(input, target, *arguments, functions=BOTH[0], **given):
    """Ours and PyTorch's."""
    return [Outcome(function, input, target, *arguments, **given) for function in functions]


def gradients(input, target, *arguments, functions=BOTH[0], **given):
    """Value and gradient of both."""
    for function in functions:
        leaf = input.detach().clone().requires_grad_()
        value = function(leaf, target, *arguments, **given)
        value.backward(torch.ones_like(value))
        yield value.detach(), leaf.grad


# ---------------------------------------------------------------------- results --


@pytest.mark.parametrize("functions", BOTH, ids=["cross_entropy", "nll_loss"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shape", [(5,), (4, 5), (3, 5, 2), (3, 5, 2, 4), (2, 5, 2, 2, 2)], ids=str)
def test_results_are_pytorchs(shape, reduction, functions, device):
    input = torch.log_softmax(logits_of(shape, torch.float64, device), min(1, len(shape) - 1))
    target, weight = labels_of(shape, device=device, ignore_index=3), torch.rand(5, dtype=torch.float64, device=device)
    for own in (None, weight):
        for given in ({}, {"label_smoothing": 0.2}) if functions is BOTH[0] else ({},):
            results = gradients(input, target, own, ignore_index=3, reduction=reduction, functions=functions, **given)
            for mine, peer in zip(*results):
                assert_near_pytorch(mine, peer, tolerance=1e-12)


@pytest.mark.parametrize("types", [(a, b, c) for a in FLOATS for b in FLOATS for c in (None, torch.float32)], ids=str)
def test_types_of_probabilities_promote(types):
    input, target, weight = types
    tensors = logits_of((3, 4), input), probabilities_of((3, 4), target), None if weight is None else torch.rand(4)
    mine, peer = outcomes(*tensors)
    assert mine.result.dtype == peer.result.dtype
    assert_near_pytorch(mine.result.double(), F.cross_entropy(tensors[0].double(), tensors[1].double(),
                                                              None if weight is None else tensors[2].double()),
                        tolerance=1e-2)


def test_gradients_for_probabilities_and_weights():
    tensors = [logits_of((3, 4), torch.float64), probabilities_of((3, 4), torch.float64),
               torch.rand(4, dtype=torch.float64)]
    results = []
    for function in BOTH[0]:
        leaves = [x.clone().requires_grad_() for x in tensors]
        function(*leaves, label_smoothing=0.1).backward()
        results.append([leaf.grad for leaf in leaves])
    for mine, peer in zip(*results):
        torch.testing.assert_close(mine, peer)


# ------------------------------------------------------------------------ edges --


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("given", [{}, {"label_smoothing": 0.1}, {"weight": torch.ones(4)}], ids=str)
def test_all_rows_ignored(reduction, given, device):
    """A mean of nothing is NaN, with a gradient of 0."""
    given = {key: value.to(device) if key == "weight" else value for key, value in given.items()}
    input, target = logits_of((3, 4), device=device), torch.full((3,), -100, device=device)
    results = gradients(input, target, reduction=reduction, **given)
    for mine, peer in zip(*results):
        assert_near_pytorch(mine, peer)
    (value, gradient), _ = gradients(input, target, reduction=reduction, **given)
    assert value.isnan() if reduction == "mean" else not value.any()
    assert not gradient.any()


@pytest.mark.parametrize("shape, rows", [((0, 4), (0,)), ((0, 4, 3), (0, 3)), ((2, 4, 0), (2, 0))], ids=str)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_no_rows(shape, rows, reduction, device):
    for target in (torch.zeros(rows, dtype=torch.int64, device=device), torch.zeros(shape, device=device)):
        for mine, peer in zip(*gradients(torch.zeros(shape, device=device), target, reduction=reduction)):
            assert_near_pytorch(mine, peer)


def test_one_class_is_nothing(device):
    for smoothing in (0, 0.2):
        (value, gradient), _ = gradients(logits_of((3, 1), device=device), torch.zeros(3, dtype=torch.int64,
                                                                                      device=device),
                                         label_smoothing=smoothing)
        assert value == 0 and not gradient.any()


def test_no_classes_have_no_log_probability():
    assert onepass.log_prob(torch.zeros(2, 0), torch.full((2,), -100)).tolist() == [0, 0]


def test_no_classes():
    for target in (torch.full((3,), -100), torch.zeros(3, 0)):
        mine, peer = outcomes(torch.zeros(3, 0), target)
        assert_same_outcome(mine, peer)


@pytest.mark.parametrize("weight", [[0.0] * 3, [-1.0, -2.0, -0.5], [1.0, 0.0, 2.0]], ids=str)
def test_weights_of_any_sign(weight, device):
    input, target = logits_of((4, 3), device=device), torch.tensor([0, 1, 2, 1], device=device)
    for mine, peer in zip(*gradients(input, target, torch.tensor(weight, device=device))):
        assert_near_pytorch(mine, peer)


@pytest.mark.parametrize("row", [[INF, 0, 0], [0, -INF, 0], [-INF, 0, 1], [-INF, -INF, -INF], [0, INF, 0], [NAN, 0, 0],
                                 [-INF, 3, -INF]], ids=str)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_infinities(row, smoothing, device):
    """Values are PyTorch's; so are gradients, where the loss is finite or the label alone is impossible."""
    input, target = torch.tensor([row], device=device), torch.zeros(1, dtype=torch.int64, device=device)
    (value, gradient), (theirs, their_gradient) = gradients(input, target, label_smoothing=smoothing)
    assert_near_pytorch(value, theirs)
    if theirs.isfinite() or theirs.isnan() or smoothing == 0:
        assert_near_pytorch(gradient, their_gradient)


def test_negative_smoothing_is_none():
    input, target = logits_of((3, 4)), labels_of((3, 4))
    assert_same_outcome(*outcomes(input, target, label_smoothing=-0.5))
    assert onepass.cross_entropy(input, target, label_smoothing=-0.5) == onepass.cross_entropy(input, target)


@pytest.mark.parametrize("index", [-100, -1, 0, 3, 255, 300])
def test_any_index_can_be_ignored(index):
    input, target = logits_of((5, 4)), labels_of((5, 4), ignore_index=index)
    assert_same_outcome(*outcomes(input, target, ignore_index=index))


# -------------------------------------------------------------------- refusals --


@pytest.mark.parametrize("functions", BOTH, ids=["cross_entropy", "nll_loss"])
@pytest.mark.parametrize("label", [4, -1, 5, 1 << 40])
@pytest.mark.parametrize("shape", [(3, 4), (3, 4, 2), (2, 4, 2, 2)], ids=str)
def test_labels_out_of_range(shape, label, functions):
    target = labels_of(shape)
    target.view(-1)[1] = label
    mine, peer = outcomes(logits_of(shape), target, functions=functions)
    assert_same_outcome(mine, peer)
    assert str(mine.error) == f"Target {label} is out of bounds."


@pytest.mark.parametrize("label", [4, -1, -101])
def test_labels_out_of_range_where_pytorch_computes(label):
    input, target = logits_of((3, 4)), torch.tensor([0, label, -100])
    weight = torch.ones(3, requires_grad=True)
    for function in (lambda: onepass.cross_entropy(input, target, row_weight=weight),
                     lambda: onepass.nll_loss(input, target, row_weight=weight),
                     lambda: torch.vmap(onepass.cross_entropy)(input[None], target[None]),
                     lambda: torch.vmap(onepass.log_prob)(input[None], target[None])):
        with pytest.raises((IndexError, RuntimeError), match="out of bounds"):
            function()


def test_labels_out_of_range_write_nothing():
    input = logits_of((2, 4)).requires_grad_()
    with pytest.raises(IndexError):
        onepass.cross_entropy(input, torch.tensor([0, 9]))
    assert input.grad is None


@pytest.mark.gpu
def test_labels_out_of_range_on_a_gpu_are_nan():
    """The row's value and gradient; the context lives."""
    input = logits_of((3, 4), device="cuda").requires_grad_()
    value = onepass.cross_entropy(input, torch.tensor([0, 9, 1], device="cuda"), reduction="none")
    value.sum().backward()
    assert value.isnan().tolist() == [False, True, False]
    assert input.grad.isnan().all(1).tolist() == [False, True, False] and input.grad[0].isfinite().all()


REFUSED = {
    "0-d input": (torch.zeros(()), torch.zeros((), dtype=torch.int64)),
    "another batch": (torch.zeros(4, 3), torch.zeros(3, dtype=torch.int64)),
    "a column": (torch.zeros(4, 3), torch.zeros(4, 1, dtype=torch.int64)),
    "integers as probabilities": (torch.zeros(3), torch.zeros(3, dtype=torch.int64)),
    "k = 1": (torch.zeros(2, 3, 4), torch.zeros(2, 5, dtype=torch.int64)),
    "k = 2": (torch.zeros(2, 3, 4, 4), torch.zeros(2, 4, 5, dtype=torch.int64)),
    "k = 3": (torch.zeros(2, 3, 4, 4, 2), torch.zeros(2, 4, 5, 2, dtype=torch.int64)),
    "too few dimensions": (torch.zeros(2, 3, 4), torch.zeros(2, dtype=torch.int64)),
    "int16": (torch.zeros(2, 3), torch.zeros(2, dtype=torch.int16)),
    "bool": (torch.zeros(2, 3), torch.zeros(2, dtype=torch.bool)),
    "floats as labels": (torch.zeros(2, 3), torch.zeros(2)),
    "integers as logits": (torch.zeros(2, 3, dtype=torch.int64), torch.zeros(2, dtype=torch.int64)),
    "complex logits": (torch.zeros(2, 3, dtype=torch.complex64), torch.zeros(2, dtype=torch.int64)),
    "(C) and (1)": (torch.zeros(3), torch.zeros(1, dtype=torch.int64)),
}


@pytest.mark.parametrize("functions", BOTH, ids=["cross_entropy", "nll_loss"])
@pytest.mark.parametrize("name", REFUSED)
def test_operands_that_pytorch_refuses(name, functions):
    input, target = REFUSED[name]
    for leaf in (input, input.clone().requires_grad_()) if input.is_floating_point() else (input,):
        assert_same_outcome(*outcomes(leaf, target, functions=functions))


@pytest.mark.parametrize("given", [
    {"weight": torch.ones(5)}, {"weight": torch.ones(2, 2)}, {"weight": torch.ones(4, dtype=torch.float64)},
    {"weight": torch.ones(4, requires_grad=True)}, {"ignore_index": None}, {"ignore_index": 2.0}, {"reduction": None},
    {"reduction": "average"}, {"label_smoothing": 1.5}, {"label_smoothing": "0.1"}, {"weight": 3},
    {"reduction": "elementwise_mean"}, {"reduction": []}, {"reduction": {}}], ids=str)
def test_arguments_that_pytorch_refuses(given):
    input, target = logits_of((3, 4)), labels_of((3, 4))
    if isinstance(given.get("weight"), int):  # whose message is ours
        with pytest.raises(TypeError):
            onepass.cross_entropy(input, target, **given)
        return
    assert_same_outcome(*outcomes(input.requires_grad_(), target, **given))


def test_an_index_beside_probabilities():
    assert_same_outcome(*outcomes(logits_of((3, 4)), probabilities_of((3, 4)), ignore_index=1))
    assert_same_outcome(*outcomes(logits_of((3, 4)), probabilities_of((3, 4)), ignore_index=-7))


@pytest.mark.parametrize("given", [{"size_average": False}, {"reduce": False}, {"size_average": True, "reduce": True}],
                         ids=str)
@pytest.mark.parametrize("functions", BOTH, ids=["cross_entropy", "nll_loss"])
def test_old_names_of_reductions(given, functions):
    mine, peer = outcomes(logits_of((3, 4)), labels_of((3, 4)), functions=functions, **given)
    assert_same_outcome(mine, peer)
    assert len(mine.warnings) == 1


def test_tensors_and_arrays_do_not_mix():
    with pytest.raises(TypeError, match="target is ndarray"):
        onepass.cross_entropy(torch.zeros(2, 3), torch.zeros(2, dtype=torch.int64).numpy())


def test_what_is_ours_alone_is_checked():
    input, target = logits_of((3, 4)), labels_of((3, 4))
    for given, error, says in (
            ({"z_loss": -1}, ValueError, "z_loss of cross_entropy is -1; expected at least 0"),
            ({"softcap": -2.0}, ValueError, "softcap of cross_entropy is -2"),
            ({"temperature": 0}, ValueError, "temperature of cross_entropy is 0"),
            ({"temperature": "hot"}, TypeError, "temperature of cross_entropy is str"),
            ({"mask": torch.ones(3)}, TypeError, "mask is of torch.float32"),
            ({"mask": torch.ones(4, dtype=torch.bool)}, RuntimeError, "mask of size (4,) does not broadcast"),
            ({"row_weight": torch.ones(3, 4)}, RuntimeError, "row_weight of size (3, 4) does not broadcast"),
            ({"row_weight": torch.ones(3, dtype=torch.int64)}, TypeError, "row_weight is of torch.int64")):
        with pytest.raises(error) as raised:
            onepass.cross_entropy(input, target, **given)
        assert says in str(raised.value)


def test_an_ignored_index_is_never_rounded():
    """A double does not have every whole number beyond 2^53, and a label of 2^53 is not 2^53 + 1. PyTorch's own function
    computes what no other of ours takes."""
    input, beyond = logits_of((3, 4)), 2**53 + 1
    target = torch.tensor([0, 1, beyond])
    wanted = onepass.cross_entropy(input[:2], target[:2])
    for index in (2**53, -2**53):
        target[2] = index
        for side in (torch.Tensor.clone, torch.Tensor.numpy):
            assert onepass.cross_entropy(side(input), side(target), ignore_index=index) == wanted
    target[2] = beyond
    assert torch.equal(onepass.cross_entropy(input, target, ignore_index=beyond), wanted)
    target[2] = 2**53
    with pytest.raises(IndexError):
        onepass.cross_entropy(input, target, ignore_index=beyond)
    for index in (beyond, -beyond, 2**70):
        for refused in (lambda: onepass.cross_entropy(input.numpy(), target.numpy(), ignore_index=index),
                        lambda: onepass.value_and_grad("cross_entropy", input, target, ignore_index=index),
                        lambda: onepass.value_and_grad("nll", input.numpy(), target.numpy(), ignore_index=index),
                        lambda: onepass.poly_loss(input, target, ignore_index=index),
                        lambda: onepass.linear_log_prob(input, torch.ones(5, 4), target, ignore_index=index),
                        lambda: onepass.Accumulator("cross_entropy", 3, ignore_index=index)):
            with pytest.raises(ValueError, match=f"is {index}; expected a whole number from -2.53 to 2.53"):
                refused()


def test_refusals_of_log_prob_name_its_arguments():
    input, target = logits_of((3, 4)), labels_of((3, 4))
    spread = (input.clone().requires_grad_() * 1)[:, :1].expand(3, 4)
    for operands, given, error, says in (
            ((input, target[:2]), {}, ValueError, "expected a label for each row of the last dimension"),
            ((input, target.float()), {}, TypeError, "labels are of torch.float32"),
            ((input.long(), target), {}, TypeError, "logits are of torch.int64"),
            ((input, target.numpy()), {}, TypeError, "labels is ndarray; expected a tensor"),
            ((None, target), {}, TypeError, "logits is NoneType; expected a tensor"),
            (([1.0], [0]), {}, TypeError, "logits and labels are list and list"),
            ((input, target + 9), {}, IndexError, "Label "),
            ((input, target), {"ignore_index": 2.5}, TypeError, "ignore_index is 2.5; expected an int"),
            ((input, target), {"ignore_index": 2**60}, ValueError, "expected one from -2**53 to 2**53"),
            ((input, target), {"softcap": -1}, ValueError, "softcap of log_prob is -1"),
            ((input, target), {"softcap": float("inf")}, ValueError,
             "softcap of log_prob is inf; expected at least 0 and at most 1e+30"),
            ((spread, target), {"inplace": True}, RuntimeError, "the logits have elements that share their memory")):
        with pytest.raises(error) as raised:
            onepass.log_prob(*operands, **given)
        assert says in str(raised.value)
    for index in (torch.tensor(1), numpy.int64(1)):
        assert torch.equal(onepass.log_prob(input, target, ignore_index=index),
                           onepass.log_prob(input, target, ignore_index=1))


@pytest.mark.parametrize("reduction", [[], {}, None, 3], ids=repr)
def test_reductions_that_are_no_strings(reduction):
    input, target = logits_of((3, 4)), labels_of((3, 4))
    for function, second in ((onepass.poly_loss, target), (onepass.mse_loss, input),
                             (onepass.log_cosh_loss, input), (onepass.sigmoid_focal_loss, input)):
        for operands in ((input, second), (input.numpy(), second.numpy())):
            with pytest.raises(ValueError, match="reduction"):
                function(*operands, reduction=reduction)


@pytest.mark.parametrize("ours", [{"z_loss": 0.5}, {"softcap": 1.0}, {"divisor": 7}, {"return_lse": True}], ids=str)
def test_what_is_ours_alone_is_not_dropped(ours):
    """Where PyTorch takes what we do not, it knows nothing of our arguments."""
    input, target = logits_of((3, 4)), labels_of((3, 4))
    for numbers in ({"ignore_index": torch.tensor(1)}, {"ignore_index": numpy.int64(1)},
                    {"label_smoothing": numpy.float32(0.125)}, {"label_smoothing": torch.tensor(0.125)}):
        plain = {name: number.item() for name, number in numbers.items()}
        torch.testing.assert_close(onepass.cross_entropy(input, target, **numbers, **ours),
                                   onepass.cross_entropy(input, target, **plain, **ours), rtol=0, atol=0)
    for operands, given in (((input[0], target[:1]), {}), ((input[:, :0], target * 0 - 100), {}),
                            ((input, target), {"ignore_index": 2**60}),
                            ((input, target), {"label_smoothing": float("nan")})):
        peer = Outcome(F.cross_entropy, *operands, **given).error  # PyTorch 2.2 refuses a label with a dimension itself
        with pytest.raises(ValueError if peer is None else type(peer)):
            onepass.cross_entropy(*operands, **given, **ours)


# ----------------------------------------------------------- where we differ on purpose --


def test_ignored_rows_have_no_gradient_whatever_stands_in_them(device):
    for bad in (NAN, INF):
        input = logits_of((2, 4), device=device)
        input[1, 2] = bad
        (value, gradient), (theirs, their_gradient) = gradients(input, torch.tensor([1, -100], device=device))
        assert_near_pytorch(value, theirs)
        assert not gradient[1].any() and their_gradient[1].isnan().any()


def test_a_class_without_probability_may_be_impossible(device):
    input = torch.tensor([[0.5, -INF, 1.0]], device=device)
    (value, gradient), (theirs, _) = gradients(input, torch.tensor([[0.25, 0.0, 0.75]], device=device))
    assert value.isfinite() and gradient.isfinite().all() and theirs.isnan()


def test_batchmean_is_one_more_reduction():
    input, target = logits_of((3, 4, 5)), labels_of((3, 4, 5))
    torch.testing.assert_close(onepass.cross_entropy(input, target, reduction="batchmean"),
                               F.cross_entropy(input, target, reduction="sum") / 3)


@pytest.mark.parametrize("wrong, message", [
    (dict(weight=torch.ones(5).double()), "expected scalar type Float but found Double"),
    (dict(weight=torch.ones(4)), "weight tensor should be defined either for all 5 classes"),
    (dict(label_smoothing=2.0), "label_smoothing must be between 0.0 and 1.0"),
    (dict(target=torch.tensor([0, 1, 2])), "Expected input batch_size .4. to match target batch_size .3."),
], ids=["type", "size", "smoothing", "labels"])
def test_beside_batchmean_what_is_wrong_is_named(wrong, message):
    """PyTorch, which is asked then, does not have it, and would speak of that."""
    call = dict(input=torch.randn(4, 5), target=torch.tensor([0, 1, 2, 3]), reduction="batchmean") | wrong
    with pytest.raises((RuntimeError, ValueError), match=message):
        onepass.cross_entropy(**call)


# ------------------------------------------------------------------------------ autocast --


@pytest.mark.parametrize("functions", BOTH, ids=["cross_entropy", "nll_loss"])
def test_autocast_gives_f32(functions, device):
    input, target = logits_of((3, 4), torch.bfloat16, device), labels_of((3, 4), device=device)
    weight = torch.rand(4, device=device)
    with torch.autocast(device, dtype=torch.bfloat16):
        results = list(gradients(input, target, weight, functions=functions))
    for mine, peer in zip(*results):
        assert mine.dtype == peer.dtype
        torch.testing.assert_close(mine, peer, rtol=2e-2, atol=1e-3)
    assert results[0][0].dtype is torch.float32 and results[0][1].dtype is torch.bfloat16


# ------------------------------------------------------------------------------- modules --


@pytest.mark.parametrize("name", ["CrossEntropyLoss", "NLLLoss"])
def test_modules_are_pytorchs(name):
    ours, theirs = getattr(onepass.nn, name), getattr(torch.nn, name)
    weight = torch.rand(4)
    made = [module(weight, ignore_index=1, reduction="sum") for module in (ours, theirs)]
    assert list(made[0].state_dict()) == list(made[1].state_dict()) == ["weight"]
    assert repr(made[0]) == repr(made[1])
    made[1].load_state_dict(made[0].state_dict())
    input, target = logits_of((5, 4)), labels_of((5, 4))
    torch.testing.assert_close(made[0](input, target), made[1](input, target))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert ours(size_average=False).reduction == theirs(size_average=False).reduction == "sum"
    assert made[0].double()(input.double(), target).dtype is torch.float64


def test_a_module_with_what_is_ours_alone():
    module = onepass.nn.CrossEntropyLoss(z_loss=0.1, softcap=3.0, temperature=2.0, dtype=torch.float32,
                                         return_z_loss=True)
    input, target, mask = logits_of((5, 4), torch.bfloat16), labels_of((5, 4)), torch.tensor([True] * 4 + [False])
    found = module(input, target, mask=mask, divisor=7)
    wanted = onepass.cross_entropy(input, target, z_loss=0.1, softcap=3.0, temperature=2.0, dtype=torch.float32,
                                   return_z_loss=True, mask=mask, divisor=7)
    assert all(torch.equal(a, b) for a, b in zip(found, wanted)) and len(found) == 2


# ------------------------------------------------------------------- how others call it --


def test_hugging_faces_way(device):
    """transformers' ForCausalLMLoss: labels shifted and padded, logits in f32, the sum over num_items_in_batch."""
    logits = logits_of((2, 6, 50), torch.bfloat16, device)
    labels = torch.randint(0, 50, (2, 6), device=device)
    labels[0, 3] = -100
    shifted = F.pad(labels, (0, 1), value=-100)[..., 1:].contiguous().view(-1)
    items = (shifted != -100).sum() + 5  # of other batches, too
    flat = logits.view(-1, 50)
    theirs = F.cross_entropy(flat.float(), shifted, ignore_index=-100, reduction="sum") / items
    leaf, peer = flat.clone().requires_grad_(), flat.clone().float().requires_grad_()
    value = onepass.cross_entropy(leaf, shifted, divisor=items, dtype=torch.float32)
    torch.testing.assert_close(value, theirs)
    value.backward()
    (F.cross_entropy(peer, shifted, ignore_index=-100, reduction="sum") / items).backward()
    torch.testing.assert_close(leaf.grad.float(), peer.grad, rtol=1e-2, atol=1e-6)
    torch.testing.assert_close(onepass.cross_entropy(flat.float(), shifted, reduction="sum") / items, theirs)


def test_ligers_way(device):
    """Rows of a matrix, int32 or int64 labels, z-loss by lse_square_scale, softcap, accuracy; the logits stay."""
    logits, labels = logits_of((8, 40), device=device), labels_of((8, 40), torch.int32, device, ignore_index=-100)
    labels[0] = 3
    before, leaf = logits.clone(), logits.clone().requires_grad_()
    loss, z_loss, accuracy = onepass.cross_entropy(leaf, labels, z_loss=1e-2, softcap=20.0, label_smoothing=0.1,
                                                   return_z_loss=True, return_accuracy=True)
    capped, kept = 20 * torch.tanh(logits / 20), labels != -100
    lse = torch.logsumexp(capped, 1)[kept]
    torch.testing.assert_close(z_loss, 1e-2 * (lse**2).mean())
    torch.testing.assert_close(loss.detach(), F.cross_entropy(capped, labels.long(), label_smoothing=0.1) + z_loss)
    torch.testing.assert_close(accuracy, (logits.argmax(1) == labels)[kept].float().mean())
    loss.backward()
    assert torch.equal(leaf.detach(), before)


def test_the_primitive_of_dpo_and_grpo(device):
    logits, labels = logits_of((2, 5, 30), device=device), torch.randint(0, 30, (2, 5), device=device)
    labels[1, 3:] = -100
    wanted = torch.log_softmax(logits / 0.9, -1).gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    found = onepass.log_prob(logits, labels, temperature=0.9)
    torch.testing.assert_close(found, wanted * (labels != -100))
