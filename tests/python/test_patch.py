# onepass.patch_torch(): the functions inside torch.nn.functional, and so the modules of
# torch.nn, become ours and go back to what they were.
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")

import onepass
import torch.nn.functional as F

from agreement import Outcome, assert_near_pytorch, assert_same_bits, assert_same_outcome

NAMES = {
    "mse_loss": "MSELoss",
    "smooth_l1_loss": "SmoothL1Loss",
    "l1_loss": "L1Loss",
    "huber_loss": "HuberLoss",
    "soft_margin_loss": "SoftMarginLoss",
    "hinge_embedding_loss": "HingeEmbeddingLoss",
    "margin_ranking_loss": "MarginRankingLoss",
    "binary_cross_entropy": "BCELoss",
    "binary_cross_entropy_with_logits": "BCEWithLogitsLoss",
    "poisson_nll_loss": "PoissonNLLLoss",
    "gaussian_nll_loss": "GaussianNLLLoss",
    "kl_div": "KLDivLoss",
    "cross_entropy": "CrossEntropyLoss",
    "nll_loss": "NLLLoss",
    "cosine_embedding_loss": "CosineEmbeddingLoss",
    "cosine_similarity": "CosineSimilarity",
    "pairwise_distance": "PairwiseDistance",
    "triplet_margin_loss": "TripletMarginLoss",
    "multi_margin_loss": "MultiMarginLoss",
    "multilabel_margin_loss": "MultiLabelMarginLoss",
}
OF_VECTORS = [*NAMES][-6:]
ORIGINAL = {name: getattr(F, name) for name in NAMES}


def current():
    return {name: getattr(F, name) for name in ORIGINAL}


@pytest.fixture(autouse=True)
def nothing_left_behind():
    assert current() == ORIGINAL
    yield
    left = current()
    for name, function in ORIGINAL.items():
        setattr(F, name, function)
    assert left == ORIGINAL, "a patch was left behind"


def half_pair():
    """PyTorch's f16 mean of these is infinite, ours is not: so one can tell who computed it."""
    p = torch.full((1000,), 0.5, dtype=torch.float16)
    p[0] = 300.0
    return p, torch.zeros(1000, dtype=torch.float16)


def test_functions_and_modules():
    p, t = half_pair()
    assert F.mse_loss(p, t).isinf() and torch.nn.MSELoss()(p, t).isinf()
    patch = onepass.patch_torch()
    try:
        assert all(current()[name] is not ORIGINAL[name] for name in ORIGINAL)
        assert_same_bits(F.mse_loss(p, t), onepass.mse_loss(p, t))
        assert_same_bits(torch.nn.MSELoss()(p, t), onepass.mse_loss(p, t))
        assert_same_bits(F.smooth_l1_loss(p, t, beta=0.5), onepass.smooth_l1_loss(p, t, beta=0.5))
        assert_same_bits(torch.nn.SmoothL1Loss(beta=0.5)(p, t), onepass.smooth_l1_loss(p, t, beta=0.5))
        assert F.mse_loss(p, t).isfinite()
    finally:
        patch.undo()
    assert current() == ORIGINAL and F.mse_loss(p, t).isinf()


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")
@pytest.mark.parametrize("name", NAMES)
def test_every_function_and_its_module(name):
    count = 3 if name in ("margin_ranking_loss", "gaussian_nll_loss", "triplet_margin_loss") else 2
    operands = [torch.rand(3, 4) * 0.9 + 0.05 for _ in range(count)]
    over_rows = name in ("cross_entropy", "nll_loss")
    if over_rows or name == "multi_margin_loss":
        operands[1] = torch.tensor([0, 3, 2])
    if name == "multilabel_margin_loss":
        operands[1] = torch.tensor([[0, -1, 1, 2], [3, 1, -1, -1], [-1, 0, 0, 0]])
    if name == "cosine_embedding_loss":
        operands.append(torch.tensor([1, -1, 1]))
    wanted = ORIGINAL[name](*operands)
    with onepass.patch_torch():
        assert_same_bits(getattr(F, name)(*operands), getattr(onepass, name)(*operands))
        assert_same_bits(getattr(torch.nn, NAMES[name])()(*operands), getattr(onepass, name)(*operands))
        leaf = operands[0].clone().requires_grad_()
        value = getattr(F, name)(leaf, *operands[1:])
        assert type(value.grad_fn).__name__ == ("RowLossBackward" if over_rows else "VectorLossBackward"
                                                if name in OF_VECTORS else "LossBackward")
        double = torch.autograd.grad(value.sum(), leaf, create_graph=True)[0]  # by PyTorch's own, not by ours again
        assert double.shape == (3, 4)
    assert_near_pytorch(value.detach(), wanted, tolerance=1e-5)


@pytest.mark.parametrize("name", ["cosine_embedding_loss", "triplet_margin_loss"])
def test_a_batchmean_of_vectors_is_refused(name):
    operands = [torch.rand(3, 4), torch.rand(3, 4), torch.ones(3) if name[0] == "c" else torch.rand(3, 4)]
    wanted = Outcome(ORIGINAL[name], *operands, reduction="batchmean")
    assert wanted.error is not None
    with onepass.patch_torch():
        assert_same_outcome(Outcome(getattr(F, name), *operands, reduction="batchmean"), wanted)


@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss"])
def test_a_batchmean_is_refused_where_pytorch_has_none(name):
    """Ours has one, which who calls PyTorch's function cannot have meant."""
    operands = torch.rand(3, 4), torch.tensor([0, 3, 2])
    wanted = Outcome(ORIGINAL[name], *operands, reduction="batchmean")
    assert wanted.error is not None
    with onepass.patch_torch():
        assert_same_outcome(Outcome(getattr(F, name), *operands, reduction="batchmean"), wanted)
        assert_same_outcome(Outcome(getattr(F, name), *operands, None, None, -100, None, "batchmean"), wanted)
        assert_same_outcome(Outcome(getattr(torch.nn, NAMES[name])(reduction="batchmean"), *operands), wanted)
        assert F.kl_div(*[operands[0].log()] * 2, reduction="batchmean", log_target=True) == 0


def test_context_manager():
    p, t = half_pair()
    with onepass.patch_torch() as patch:
        assert F.mse_loss(p, t).isfinite()
        assert hasattr(patch, "undo")
    assert F.mse_loss(p, t).isinf()


def test_an_exception_inside_undoes_it_and_comes_out():
    with pytest.raises(ZeroDivisionError):
        with onepass.patch_torch():
            1 / 0
    assert current() == ORIGINAL


def test_warnings_point_at_the_caller():
    with onepass.patch_torch(), pytest.warns(UserWarning, match="different to the input size") as caught:
        F.mse_loss(torch.ones(2, 1), torch.ones(2))
    with onepass.patch_torch(), pytest.warns(UserWarning, match="'batchmean' divides") as more:
        F.kl_div(torch.ones(2), torch.ones(2))
    assert [warning.filename for warning in (*caught, *more)] == [__file__, __file__]


def test_undo_twice_is_once():
    patch = onepass.patch_torch()
    patch.undo()
    patch.undo()
    assert current() == ORIGINAL
    with onepass.patch_torch():
        patch.undo()
        assert current() != ORIGINAL, "an old patch undid a newer one"


def test_undo_inside_the_context():
    with onepass.patch_torch() as patch:
        patch.undo()
        assert current() == ORIGINAL
    assert current() == ORIGINAL


def test_nesting():
    p, t = half_pair()
    with onepass.patch_torch():
        with onepass.patch_torch():
            assert F.mse_loss(p, t).isfinite()
        assert F.mse_loss(p, t).isfinite(), "the inner one ended the outer one"
    assert F.mse_loss(p, t).isinf()


def test_undone_out_of_order():
    first, second = onepass.patch_torch(), onepass.patch_torch()
    first.undo()
    assert current() != ORIGINAL, "one patch is still on"
    second.undo()
    assert current() == ORIGINAL


def test_what_we_hand_over_to_pytorch_does_not_come_back():
    """Subclasses and transforms go to PyTorch's own function, which must not be the patched one."""
    p, t = torch.randn(3, 4, dtype=torch.float64), torch.randn(3, 4, dtype=torch.float64)
    wanted = F.mse_loss(p, t)
    complex_pair = p.to(torch.complex64), t.to(torch.complex64)
    refusal = Outcome(F.mse_loss, *complex_pair)  # a NotImplementedError, or in old versions a RuntimeError
    assert refusal.error is not None
    with onepass.patch_torch():
        assert_near_pytorch(torch.func.vmap(F.mse_loss)(p, t).mean(), wanted)
        assert_near_pytorch(torch.func.grad(F.mse_loss)(p, t), 2 * (p - t) / p.numel())
        assert F.mse_loss(p.to("meta"), t.to("meta")).device.type == "meta"
        tensor = p.as_subclass(type("Subclass", (torch.Tensor,), {}))
        assert_near_pytorch(F.mse_loss(tensor, t).as_subclass(torch.Tensor), wanted)
        assert_same_outcome(Outcome(F.mse_loss, *complex_pair), refusal)
        labels = torch.tensor([0, 3, 2])
        assert torch.func.vmap(F.cross_entropy)(p.unsqueeze(0), labels.unsqueeze(0)).shape == (1,)
        assert_near_pytorch(F.cross_entropy(tensor, labels).as_subclass(torch.Tensor),
                            ORIGINAL["cross_entropy"](p, labels))
        model = torch.nn.Linear(4, 4).double()
        torch.nn.MSELoss()(model(p), t).backward()
        assert model.weight.grad is not None


def test_training_with_it_is_training_without_it():
    def train():
        torch.manual_seed(5)
        model = torch.nn.Linear(6, 1).double()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        data, labels = torch.randn(64, 6, dtype=torch.float64), torch.randn(64, 1, dtype=torch.float64)
        for _ in range(20):
            optimizer.zero_grad()
            torch.nn.SmoothL1Loss()(model(data), labels).backward()
            optimizer.step()
        return model.weight.detach()

    plain = train()
    with onepass.patch_torch():
        patched = train()
    torch.testing.assert_close(patched, plain, rtol=1e-12, atol=1e-14)


def test_what_somebody_else_put_there_stays():
    original, other = F.mse_loss, lambda *operands: "other"
    patch = onepass.patch_torch()
    try:
        F.mse_loss = other
        patch.undo()
        assert F.mse_loss is other
        with onepass.patch_torch():
            assert F.mse_loss is not other
        assert F.mse_loss is other and F.l1_loss.__module__ == "torch.nn.functional"
    finally:
        F.mse_loss = original


def test_the_docstring_names_what_stays_pytorchs():
    both = {name for name, function in vars(F).items() if callable(function) and name in onepass.__all__}
    assert both >= set(NAMES)
    assert all(name in onepass.patch_torch.__doc__ for name in both - set(NAMES)), both - set(NAMES)
