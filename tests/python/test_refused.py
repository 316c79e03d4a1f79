# What the losses over rows, of vectors and of linear layers refuse, for tensors and arrays alike, and in which words:
# which argument it is, what came and what was expected.
import re

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

import onepass
from agreement import Outcome, assert_same_outcome
from reference import pytorchs

Z, LABELS = torch.randn(4, 3, generator=torch.Generator().manual_seed(3)), torch.tensor([0, 2, 1, 1])
OTHER, WEIGHT = Z.flip(0), Z[:2].clone()
HUGE = 10**400
TWO = torch.tensor([1.0, 1.0])


def as_arrays(operands):
    return [operand.numpy() for operand in operands]


def refuses(error, words, call, *operands, of_arrays=True, **given):
    """The same words for tensors and for arrays."""
    for own in (operands, as_arrays(operands)) if of_arrays else (operands,):
        with pytest.raises(error, match=re.escape(words)):
            call(*own, **given)


@pytest.mark.parametrize("number", [1 + 0j, 2j, np.complex64(1), torch.tensor(1 + 0j)], ids=repr)
@pytest.mark.parametrize("name, call", [("temperature", onepass.cross_entropy), ("z_loss", onepass.cross_entropy),
                                        ("softcap", onepass.cross_entropy), ("temperature", onepass.log_prob),
                                        ("epsilon", onepass.poly_loss)])
def test_complex_numbers(call, name, number):
    refuses(TypeError, f"{name} of {call.__name__} is complex; expected a real number", call, Z, LABELS, **{name: number})


@pytest.mark.parametrize("number, words", [(-0.5, "is -0.5"), (float("nan"), "is nan")])
def test_alphas_of_classes(number, words):
    alpha = torch.tensor([1.0, number, 2.0])
    for operands, own in (((Z, LABELS), alpha), (as_arrays((Z, LABELS)), alpha.numpy())):
        with pytest.raises(ValueError, match=re.escape(f"alpha of softmax_focal_loss {words}; expected at least 0")):
            onepass.softmax_focal_loss(*operands, alpha=own)


def test_options_that_are_none():
    refuses(TypeError, "options is int; expected PyTorch's LinearCrossEntropyOptions", onepass.linear_cross_entropy,
            OTHER, WEIGHT, LABELS % 2, of_arrays=False, options=3)


@pytest.mark.parametrize("call", [onepass.nll_loss, onepass.log_prob, onepass.poly_loss, onepass.softmax_focal_loss])
def test_an_index_that_merely_equals_a_whole_number(call):
    words = "expected an int" if call is not onepass.nll_loss else "int"  # which PyTorch answers for
    refuses(TypeError, words, call, Z, LABELS, ignore_index=2.0)
    for index in (2, np.int64(2)):
        assert torch.equal(torch.as_tensor(call(*as_arrays((Z, LABELS)), ignore_index=index)),
                           call(Z, LABELS, ignore_index=2))
    with pytest.raises(TypeError, match="ignore_index is 2.0; expected an int"):
        onepass.cross_entropy(*as_arrays((Z, LABELS)), ignore_index=2.0)


@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("call", [onepass.cross_entropy, onepass.nll_loss])
def test_the_label_of_one_row_may_have_a_dimension(call, reduction):
    """Of arrays; of tensors where PyTorch's own may, which in version 2.2 it may not."""
    found = call(Z[0].numpy(), LABELS[1:2].numpy(), reduction=reduction)
    assert np.shape(found) == () and found == call(Z[0], LABELS[1], reduction=reduction).item()
    peer = Outcome(getattr(torch.nn.functional, call.__name__), Z[0], LABELS[1:2], reduction=reduction)
    mine = Outcome(call, Z[0], LABELS[1:2], reduction=reduction)
    assert_same_outcome(mine, peer)
    assert peer.error is not None or mine.result.shape == () and mine.result == found


@pytest.mark.parametrize("name", ["z_loss", "temperature", "softcap"])
def test_two_numbers_for_one(name):
    refuses(TypeError, f"{name} of cross_entropy is a tensor of size (2,); expected a real number, or a tensor without "
            "dimensions", onepass.cross_entropy, Z, LABELS, of_arrays=False, **{name: TWO})
    refuses(TypeError, f"{name} of cross_entropy is ndarray; expected a real number", onepass.cross_entropy, Z, LABELS,
            **{name: TWO.numpy()})


@pytest.mark.parametrize("call, name, target", [(onepass.cross_entropy, "z_loss", LABELS),
                                                (onepass.kl_div_with_logits, "temperature", OTHER)])
def test_an_integer_beyond_every_float(call, name, target):
    refuses(OverflowError, f"{name} of {call.__name__} is an integer beyond the largest double; expected a number that a "
            "double can hold", call, Z, target, **{name: HUGE})


@pytest.mark.parametrize("dim", ["x", None, 1.0], ids=repr)
def test_a_dimension_that_is_none(dim):
    refuses(TypeError, f"dim is {dim!r}; expected an int", onepass.kl_div_with_logits, Z, OTHER, dim=dim)
    refuses(TypeError, f"dim is {dim!r}; expected an int", onepass.value_and_grad, "kl_div_with_logits",
            Z, OTHER, of_arrays=False, dim=dim)


def test_who_was_called_is_named():
    refuses(ValueError, "temperature of nt_xent_loss is 0; expected at least 1e-30", onepass.nt_xent_loss, Z, OTHER,
            of_arrays=False, temperature=0)
    refuses(ValueError, "temperature of supcon_loss is 0; expected at least 1e-30", onepass.supcon_loss, Z, LABELS,
            of_arrays=False, temperature=0)
    refuses(ValueError, "z_loss of linear_cross_entropy is -1; expected at least 0", onepass.linear_cross_entropy,
            Z, Z, LABELS, of_arrays=False, z_loss=-1)
    for call in (onepass.dice_loss, onepass.jaccard_loss):
        refuses(ValueError, f"smooth of {call.__name__} is -1; expected at least 0", call, Z, (Z > 0).float(), smooth=-1)


def test_labels_that_are_no_integers():
    refuses(TypeError, "labels are of torch.bool; expected integers", onepass.supcon_loss, Z, LABELS > 0,
            of_arrays=False)


def test_causal_lm_loss():
    call = onepass.causal_lm_loss
    for labels in (None, LABELS.numpy()):
        with pytest.raises(TypeError, match=f"labels is {type(labels).__name__}; expected a PyTorch tensor"):
            call(Z, labels, 3)
        with pytest.raises(TypeError, match="shift_labels is list; expected a PyTorch tensor"):
            call(Z, labels, 3, shift_labels=[1])
    with pytest.raises(TypeError, match="logits is ndarray; expected a PyTorch tensor"):
        call(Z.numpy(), LABELS, 3)
    with pytest.raises(ValueError, match=re.escape("vocab_size is 8 beside logits of size (4, 3); expected the size of "
                                                   "their last dimension")):
        call(Z, LABELS, 8)


@pytest.mark.parametrize("name", ["binary_cross_entropy", "binary_cross_entropy_with_logits"])
def test_a_complex_weight(name):
    with pytest.raises(RuntimeError, match="result type Complex"):
        getattr(onepass, name)(torch.full((2, 3), 0.5), torch.ones(2, 3), weight=torch.tensor(1 + 5j))


def test_truths_that_are_subtracted():
    with pytest.raises(RuntimeError, match="Subtraction.*bool"):
        onepass.l1_loss(torch.tensor([True, False]), torch.ones(2))


def test_sparse_weights_and_masks():
    x, sparse = torch.rand(2, 3), torch.eye(2, 3).to_sparse()
    for name in ("mse_loss", "binary_cross_entropy_with_logits"):
        wanted = pytorchs(name)(x, x / 2, weight=sparse)
        torch.testing.assert_close(getattr(onepass, name)(x, x / 2, weight=sparse), wanted)
    for call in (lambda: onepass.mse_loss(x, x, mask=sparse.bool()),
                 lambda: onepass.cross_entropy(x, x.argmax(1), mask=torch.tensor([True, False]).to_sparse()),
                 lambda: onepass.smooth_l1_loss(x, x, weight=sparse)):
        with pytest.raises(TypeError, match="(weight|mask) is of torch.sparse_coo; expected a dense tensor"):
            call()


def test_numbers_of_numpys():
    with pytest.raises(TypeError, match="two NumPy arrays, which numpy.asarray makes of NumPy's numbers"):
        onepass.mse_loss(np.float32(1), np.float32(3))


@pytest.mark.parametrize("name", ["mse_loss", "soft_margin_loss", "hinge_embedding_loss", "binary_cross_entropy",
                                  "binary_cross_entropy_with_logits", "poisson_nll_loss", "kl_div", "hinge_loss",
                                  "quantile_loss"])
def test_no_target(name):
    with pytest.raises(TypeError, match="target is NoneType; expected a tensor"):
        getattr(onepass, name)(Z, None)


def test_no_third_operand():
    with pytest.raises(TypeError, match="var is NoneType; expected a tensor"):
        onepass.gaussian_nll_loss(Z, OTHER, None)
    with pytest.raises(TypeError, match="target is NoneType; expected a tensor"):
        onepass.margin_ranking_loss(Z, OTHER, None)
    assert onepass.gaussian_nll_loss(Z, OTHER, 2.0) == onepass.gaussian_nll_loss(Z, OTHER, torch.full_like(Z, 2))


@pytest.mark.filterwarnings("error")
def test_a_divisor_of_numpy():
    for number in (np.float32(3), np.float16(3), np.array(3.0, np.float32), np.array([3])):
        assert onepass.cross_entropy(Z, LABELS, divisor=number) == onepass.cross_entropy(Z, LABELS, divisor=3)


CALLS = {"elements": (onepass.mse_loss, (Z, OTHER)), "rows": (onepass.cross_entropy, (Z, LABELS)),
         "vectors": (onepass.pairwise_distance, (Z, OTHER))}


@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.parametrize("operand", [None, 1.0, [1.0], torch.nn.Identity(), np.ones((4, 3)), np.float32(1)],
                         ids=lambda operand: type(operand).__name__)
def test_what_is_no_tensor(kind, operand):
    """Tensors and arrays are spoken of where they are mixed, and not elsewhere."""
    call, operands = CALLS[kind]
    for k in range(2):
        with pytest.raises(TypeError, match=f"is {type(operand).__name__}; expected a tensor, as .* operand is one") as caught:
            call(*operands[:k], operand, *operands[k + 1:])
        assert ("do not mix" in str(caught.value)) is isinstance(operand, (np.ndarray, np.generic))


@pytest.mark.parametrize("call, k, dtype, expected", [
    (onepass.mse_loss, 0, "int64", "float16, float32 or float64"),
    (onepass.cross_entropy, 0, "int64", "float16, float32 or float64"),
    (onepass.nll_loss, 1, "float32", "int64, int32 or uint8"),
    (onepass.nll_loss, 1, "int16", "int64, int32 or uint8"),
    (onepass.multi_margin_loss, 1, "int16", "class indices: int64, int32 or uint8")])
def test_types_of_arrays(call, k, dtype, expected):
    """Byte orders are spoken of where they are another machine's, and not elsewhere."""
    operands = [Z.numpy(), (OTHER if call is onepass.mse_loss else LABELS).numpy()]
    name, own = ("input", "target")[k], np.dtype(dtype)
    other = own.newbyteorder()
    for given, words in ((own, f"{name} has dtype {own}; expected {expected}"),
                         (other, f"{name} has dtype {other} in another machine's byte order; expected {expected} of this machine")):
        operands[k] = operands[k].astype(given)
        with pytest.raises(TypeError, match=f"^{re.escape(words)}$"):
            call(*operands)
