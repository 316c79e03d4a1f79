# PyTorch's own samples of losses over rows, of vectors and of margins: OpInfo entries with their sample and error
# inputs, and the module tests' inputs, run against ours; see test_opinfo.py.
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")

from test_opinfo import TOLERANCES, arguments_of, fresh, methods, modules, value_and_gradients

import onepass
import onepass.nn

from agreement import DTYPES, Outcome, assert_near_pytorch, assert_same_outcome

FUNCTIONS = ["cross_entropy", "nll_loss", "cosine_embedding_loss", "cosine_similarity", "multi_margin_loss",
             "multilabel_margin_loss", "multilabel_soft_margin_loss", "pairwise_distance", "triplet_margin_loss",
             "triplet_margin_with_distance_loss"]
NAMES = {f"nn.functional.{name}": getattr(onepass, name) for name in FUNCTIONS}
INFOS = [info for info in methods.op_db if info.name in NAMES]
MODULES = {getattr(torch.nn, name): getattr(onepass.nn, name) for name in (
    "CrossEntropyLoss", "NLLLoss", "CosineEmbeddingLoss", "CosineSimilarity", "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss", "MultiMarginLoss", "PairwiseDistance", "TripletMarginLoss",
    "TripletMarginWithDistanceLoss")}
MODULE_INFOS = [info for info in modules.module_db if info.module_cls in MODULES]
#: Before 2.4 PyTorch has samples for few modules, and few of them.
HAS_FEW = torch.__version__ < (2, 4)
#: Of these PyTorch has many samples.
OVER_ROWS = {"nn.functional.cross_entropy", "nn.functional.nll_loss", torch.nn.CrossEntropyLoss, torch.nn.NLLLoss}
#: Of these PyTorch has no second derivatives either, nor derivatives by forward mode.
ONCE_DIFFERENTIABLE = {"nn.functional.multi_margin_loss", "nn.functional.multilabel_margin_loss"}


def test_the_entries_are_there():
    assert {info.name for info in INFOS} == set(NAMES)
    assert {torch.nn.CrossEntropyLoss, torch.nn.NLLLoss} <= {info.module_cls for info in MODULE_INFOS}
    assert len(MODULE_INFOS) >= (2 if HAS_FEW else 6)


def widened(value):
    is_narrow = isinstance(value, torch.Tensor) and value.dtype in (torch.float16, torch.bfloat16)
    return value.float() if is_narrow else value


def by_float32(function):
    """A function computed in float32 and rounded at the end: PyTorch's own rounds the log-probabilities to 16 bits."""
    return lambda *tensors, **given: function(*map(widened, tensors), **{
        key: widened(value) for key, value in given.items()}).to(tensors[0].dtype)


@pytest.mark.parametrize("dtype", list(DTYPES.values()), ids=str)
@pytest.mark.parametrize("info", INFOS, ids=lambda info: info.name)
def test_samples(info, dtype, device):
    count = 0
    for sample in info.sample_inputs(device, dtype, requires_grad=True):
        arguments, given = arguments_of(sample)
        # A caller's own distance is of the operands' type in either.
        peer = info.op if given.get("distance_function") else by_float32(info.op)
        both = (NAMES[info.name], peer)
        results = (value_and_gradients(function, arguments, given) for function in both)
        for mine, theirs in zip(*results):
            assert_near_pytorch(mine, theirs, f"{info.name} {given}", TOLERANCES[dtype])
        count += 1
    assert count >= (15 if info.name in OVER_ROWS else 4)


@pytest.mark.parametrize("info", INFOS, ids=lambda info: info.name)
def test_derivatives_of_samples(info):
    samples = list(info.sample_inputs("cpu", torch.float64, requires_grad=True))
    is_once = info.name in ONCE_DIFFERENTIABLE
    for sample in samples[::max(1, len(samples) // 8)]:
        arguments, given = arguments_of(sample)
        tensors, _ = fresh(arguments)
        called = lambda *tensors: NAMES[info.name](*tensors, **given)
        assert torch.autograd.gradcheck(called, tensors, check_forward_ad=not is_once, fast_mode=True)
        assert is_once or torch.autograd.gradgradcheck(called, tensors, fast_mode=True)


@pytest.mark.filterwarnings("ignore")
def test_error_inputs(device):
    sources = [info for info in INFOS if getattr(info, "error_inputs_func", None) is not None]
    assert len(sources) >= 2
    for source in sources:
        for error in source.error_inputs(device):
            arguments, given = arguments_of(error.sample_input)
            assert_same_outcome(*(Outcome(function, *arguments, **given) for function in (NAMES[source.name],
                                                                                          source.op)))


@pytest.mark.filterwarnings("ignore:size_average")
@pytest.mark.parametrize("info", MODULE_INFOS, ids=lambda info: info.module_cls.__name__)
def test_module_inputs(info, device):
    inputs = info.module_inputs_func(info, device=device, dtype=torch.float64, requires_grad=True, training=True)
    count = 0
    for sample in inputs:
        made, called = sample.constructor_input, sample.forward_input
        results = []
        for module in (MODULES[info.module_cls], info.module_cls):
            leaf = called.args[0].detach().clone().requires_grad_()
            value = module(*made.args, **made.kwargs)(leaf, *called.args[1:], **called.kwargs)
            results.append((value.detach(), *torch.autograd.grad(value.sum(), leaf)))
        for mine, peer in zip(*results):
            assert_near_pytorch(mine, peer, tolerance=1e-11)
        count += 1
    assert count >= (2 if info.module_cls not in OVER_ROWS else 7 if HAS_FEW else 20)
