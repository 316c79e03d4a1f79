# Random calls of vector losses: shapes, strides, types, weights, masks, parameters and upstream gradients, against the
# formulas in float64; NumPy's way in against PyTorch's. Derandomized, so that a run can be repeated.
import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")
hypothesis = pytest.importorskip("hypothesis")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from operands import FLOATS
from vector_cases import CASES, check, is_vector

bounded = settings(max_examples=80, deadline=None, derandomize=True, database=None,
                   suppress_health_check=list(HealthCheck))
PARAMETERS = {
    "cosine_similarity": {"eps": [0.0, 1e-3, 1.0]},
    "pairwise_distance": {"p": [1, 2.0], "eps": [0.0, -0.5, 1e-6]},
    "cosine_embedding_loss": {"margin": [-0.5, 0.25]},
    "triplet_margin_loss": {"margin": [0.1, 5.0], "p": [1, 2], "eps": [0.0, 1e-3], "swap": [True, False]},
    "tversky_loss": {"alpha": [0.0, 0.3], "beta": [0.7, 1.5], "smooth": [0.5, 1.0], "eps": [1e-3]},
    "kl_div_with_logits": {"temperature": [0.5, 4.0]},
    "js_div_with_logits": {"beta": [0.1, 0.75], "temperature": [0.5, 4.0]},
    "tv_distance_with_logits": {"temperature": [0.5, 4.0]},
    "tversky_loss of probabilities": {"alpha": [0.0, 0.3], "beta": [0.7], "smooth": [0.5], "eps": [3.0]},
}


@st.composite
def calls(draw):
    name = draw(st.sampled_from([*CASES]))
    one = name.startswith(("cosine_embedding", "tversky"))
    rows = draw(st.lists(st.integers(1, 6), min_size=1 if one else 0, max_size=1 if one else 3))
    length = draw(st.sampled_from([1, 2, 5, 17, 127, 128, 129, 1023, 1025, 2100]))
    shape = (*rows, length)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    operands = []
    for kind in CASES[name].operands:
        if kind == "s":
            operands.append(torch.from_numpy(rng.choice([1, -1, 1, -1, 0], rows)))
            continue
        numbers = rng.standard_normal(shape) * draw(st.sampled_from([0.5, 3.0])) if kind == "v" else rng.random(shape)
        tensor = torch.from_numpy(numbers).to(draw(st.sampled_from(FLOATS)))
        if draw(st.booleans()) and tensor.dim() > 1:
            tensor = tensor.transpose(0, -1).contiguous().transpose(0, -1)
        operands.append(tensor)
    words = {key: draw(st.sampled_from(values)) for key, values in PARAMETERS[name].items() if draw(st.booleans())}
    tensors = {}
    if draw(st.booleans()):
        tensors["weight"] = torch.from_numpy(np.asarray(rng.integers(1, 9, rows) / 8)).float()
    if draw(st.booleans()):
        mask = np.asarray(rng.random(rows) < 0.7)
        mask.reshape(-1)[0] = True
        tensors["mask"] = torch.from_numpy(mask)
    if CASES[name].reduces:
        tensors["reduction"] = draw(st.sampled_from(["mean", "sum", "none", "batchmean"]))
    return name, operands, words, tensors


@bounded
@given(calls())
def test_against_the_formulas(call):
    name, operands, words, tensors = call
    check(name, operands, words=words, **tensors)
    value = CASES[name].ours(*operands, **words, **tensors)
    check(name, operands, upstream=torch.full_like(value, 1.5), words=words, **tensors)


@bounded
@given(calls())
def test_arrays_are_tensors(call):
    name, operands, words, tensors = call
    operands = [x.float() if x.dtype is torch.bfloat16 and is_vector(x, operands[0]) else x for x in operands]
    arrays = {key: x.numpy() if isinstance(x, torch.Tensor) else x for key, x in tensors.items()}
    value = CASES[name].ours(*(x.numpy() for x in operands), **words, **arrays)
    np.testing.assert_array_equal(value, CASES[name].ours(*operands, **words, **tensors).numpy())
