# Losses of vectors from files, in every layout, held to the oracle; and that slices, layouts, byte orders and
# broadcasting leave no trace in the bits.
import numpy as np
import oracle
import pytest

from expected import INFO, VECTOR_LOSSES, booleans, eighths, exact, file_names, gradient_options, numbers
from folder import DTYPES, QUICK, bits

TILE = 1024
#: parameters besides the defaults
OTHERS = {
    "cosine_similarity": [{"eps": 0.5}],
    "cosine_embedding": [{"margin": 0.25}],
    "pairwise_distance": [{"p": 1}, {"eps": 0.125}],
    "triplet_margin": [{"margin": 0.5, "p": 1}, {"swap": 1}, {"eps": 0.25, "p": 1, "swap": 1}],
    "multi_margin": [{"p": 2}, {"margin": 0.25}, {"p": 2, "margin": -0.5}],
    "tversky": [{"alpha": 0.25, "beta": 0.75, "smooth": 1}, {"eps": 100}],
    "tversky_with_logits": [{"alpha": 1, "beta": 1, "smooth": 0.5}],
    "kl_div_with_logits": [{"temperature": 2}],
    "js_div_with_logits": [{"beta": 0.25, "temperature": 0.5}],
    "tv_distance_with_logits": [{"temperature": 4}],
}
CASES = [(loss, given) for loss in VECTOR_LOSSES for given in ({}, *OTHERS.get(loss, []))]


def vectors_of(loss):
    """How many operands are vectors."""
    return len(file_names(loss)) - (INFO[loss]["target"] != "vectors")


def draw(loss, seed, shape, rows, type_name="f32"):
    """Operands that the loss makes sense for."""
    arrays = [numbers(10 * seed + k, shape, type_name) for k in range(vectors_of(loss))]
    if loss == "tversky":
        arrays[0] = np.random.default_rng(seed).random(shape).astype(DTYPES[type_name])
    if loss.startswith("tversky"):
        arrays[1] = booleans(seed, shape).astype(DTYPES[type_name])
    if loss == "cosine_embedding":
        arrays.append(np.random.default_rng(seed).choice([1, -1, 0], rows, p=[0.45, 0.45, 0.1]))
    if loss == "multi_margin":
        arrays.append(np.random.default_rng(seed).integers(0, shape[-1], rows))
    if loss == "multilabel_margin":
        rng = np.random.default_rng(seed)
        arrays.append(np.where(rng.random(shape) < 0.3, -1, rng.integers(0, shape[-1], shape)))
    return arrays


def save(folder, arrays, prefix="x"):
    return [folder.save(f"{prefix}{k}.npy", array) for k, array in enumerate(arrays)]


def words(given):
    return [word for name, value in given.items() for word in (f"--{name}", repr(value))]


def right(loss, arrays, **how):
    wide = any(array.dtype == np.float64 for array in arrays[:vectors_of(loss)])
    return oracle.answer_vectors(loss, [exact(array) for array in arrays], in_float=not wide, **how)


def within(got, bounds, type_name):
    """Each number is one of those that lie between the oracle's two, once these are rounded."""
    least, most = (oracle.round_to(type_name, bound) for bound in bounds)
    got = exact(got)
    assert got.shape == least.shape
    bad = ~((least <= got) & (got <= most))
    assert not bad.any(), f"{bad.sum()} of {bad.size}: {got[bad][:4]} for {least[bad][:4]} to {most[bad][:4]}"


def outputs_of(folder, loss, files, *more):
    """The number and the bits of every output."""
    options, gradients = gradient_options(loss)
    number = folder.hex(loss, *files, *options, "--none", "n.npy", *more)
    return number, [bits(folder.load(name)) for name in (*gradients, "n.npy")]


def assert_same(got, wanted):
    assert got[0] == wanted[0]
    for one, other in zip(got[1], wanted[1], strict=True):
        np.testing.assert_array_equal(one.reshape(-1), other.reshape(-1))


# --------------------------------------------------------------------- values --


@pytest.mark.parametrize("type_name", DTYPES)
@pytest.mark.parametrize("loss, given", CASES, ids=str)
def test_values_and_gradients(folder, loss, given, type_name):
    arrays = draw(loss, 1, (300, 11), (300,), type_name)
    options, gradients = gradient_options(loss)
    printed = folder.answer(loss, *save(folder, arrays), *words(given), *options, "--none", "n.npy")
    answer = right(loss, arrays, **given)
    within(oracle.round_to(type_name, float(printed)), answer.value, type_name)
    for name, bounds in zip(gradients, answer.gradients, strict=True):
        gradient = folder.load(name)
        assert gradient.dtype == DTYPES[type_name]
        within(gradient, bounds, type_name)
    values = folder.load("n.npy")
    assert values.dtype == DTYPES[type_name]
    within(values, right(loss, arrays, reduction="none", **given).value, type_name)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none", "batchmean"])
@pytest.mark.parametrize("loss", VECTOR_LOSSES)
def test_weights_and_masks(folder, loss, reduction):
    arrays = draw(loss, 2, (8, 5, 12), (8, 5))
    weight, mask = eighths(3, (8, 5)), booleans(4, (8, 5))
    folder.save("w.npy", weight), folder.save("m.npy", mask)
    options, gradients = gradient_options(loss)
    how = ["--reduction", reduction, "--weight", "w.npy", "--mask", "m.npy", "--none", "n.npy"]
    done = folder.run(loss, *save(folder, arrays), *how, *options)
    assert done.status == 0 and done.err == ""
    answer = right(loss, arrays, reduction=reduction, weight=exact(weight), mask=mask)
    within(folder.load("n.npy") if reduction == "none" else np.float32(done.out), answer.value, "f32")
    for name, bounds in zip(gradients, answer.gradients, strict=True):
        within(folder.load(name), bounds, "f32")


@pytest.mark.parametrize("type_name", ["f32", "f64"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_class_weights(folder, reduction, type_name):
    """They multiply rows, and have no say in what a mean is divided by, nor in its type."""
    arrays, weight, mask = draw("multi_margin", 5, (8, 5, 12), (8, 5)), eighths(6, (8, 5)), booleans(7, (8, 5))
    classes = (1 + np.arange(12) / 4).astype(DTYPES[type_name])
    folder.save("w.npy", weight), folder.save("m.npy", mask), folder.save("c.npy", classes)
    how = ["--reduction", reduction, "--weight", "w.npy", "--mask", "m.npy", "--none", "n.npy", "--grad", "g.npy"]
    done = folder.run("multi_margin", *save(folder, arrays), *how, "--class-weight", "c.npy")
    assert done.status == 0 and done.err == ""
    answer = oracle.answer_vectors("multi_margin", [exact(array) for array in (*arrays, classes)], reduction=reduction,
                                   in_float=type_name == "f32", weight=exact(weight), mask=mask)
    value = folder.load("n.npy") if reduction == "none" else np.asarray(float(done.out)).astype(np.float32)
    within(value, answer.value, "f32")
    within(folder.load("g.npy"), answer.gradients[0], "f32")


def test_wrong_class_weights(folder):
    files = save(folder, draw("multi_margin", 5, (8, 5), (8,)))
    folder.save("row.npy", np.ones(8, "f4")), folder.save("wide.npy", np.ones((8, 5), "f4"))
    folder.save("whole.npy", np.ones(5, "i8"))
    for name, shape in (("row.npy", "(8,)"), ("wide.npy", "(8, 5)")):
        folder.refuse("multi_margin", *files, "--class-weight", name, says=[name, shape, "of shape (5,)"])
    folder.refuse("multi_margin", *files, "--class-weight", "whole.npy", says=["whole.npy", "integers"])
    folder.refuse("multi_margin", *files, "--lse", "l.npy", says=["--lse", "multi_margin is none of them"])


def test_weights_are_broadcast_to_the_rows(folder):
    files = save(folder, draw("triplet_margin", 1, (8, 5, 12), (8, 5)))
    folder.save("row.npy", eighths(1, 5)), folder.save("all.npy", np.tile(eighths(1, 5), (8, 1)))
    wanted = outputs_of(folder, "triplet_margin", files, "--weight", "all.npy")
    assert_same(outputs_of(folder, "triplet_margin", files, "--weight", "row.npy"), wanted)
    folder.save("wide.npy", np.ones((8, 5, 12), "f4"))
    folder.refuse("triplet_margin", *files, "--weight", "wide.npy", says=["wide.npy", "(8, 5)"])


@pytest.mark.parametrize("dtype", ["i8", "i4", "f2", "f4", "f8", ">i4", ">f8"])
def test_types_of_targets(folder, dtype):
    """They are numbers of any type, and have no say in that of the value."""
    arrays = draw("cosine_embedding", 1, (50, 7), (50,))
    files = save(folder, arrays)
    wanted = outputs_of(folder, "cosine_embedding", files)
    folder.save("y.npy", arrays[2].astype(dtype))
    assert_same(outputs_of(folder, "cosine_embedding", [*files[:2], "y.npy"]), wanted)
    folder.save_tensors("y.safetensors", y=arrays[2].astype(dtype).astype(np.dtype(dtype).newbyteorder("=")))
    assert_same(outputs_of(folder, "cosine_embedding", [*files[:2], "y.safetensors:y"]), wanted)


def test_mixed_types(folder):
    """The value has the widest type, each gradient that of its operand."""
    arrays = [numbers(k, (9, 6), type_name) for k, type_name in enumerate(["f16", "f64", "f32"])]
    options, gradients = gradient_options("triplet_margin")
    reply = folder.json("triplet_margin", *save(folder, arrays), *options)
    assert reply["type"] == "f64"
    answer = right("triplet_margin", arrays)
    for name, bounds, array in zip(gradients, answer.gradients, arrays, strict=True):
        gradient = folder.load(name)
        assert gradient.dtype == array.dtype
        within(gradient, bounds, {"float16": "f16", "float64": "f64", "float32": "f32"}[array.dtype.name])


# -------------------------------------------------------------------- layouts --


@pytest.mark.parametrize("loss", VECTOR_LOSSES)
@pytest.mark.parametrize("shape, axis", [((4, 3, 5), 2), ((4, 3, 5), 1), ((4, 3, 5), 0), ((7,), 0), ((2, 3, 4, 5), 2)])
def test_the_axis(folder, loss, shape, axis):
    """All from the axis on is one vector, whatever its dimensions."""
    arrays = draw(loss, 1, shape, shape[:axis])
    files = save(folder, arrays)
    flat = [array.reshape(*shape[:axis], -1) if array.shape == shape else array for array in arrays]
    wanted = outputs_of(folder, loss, save(folder, flat, "flat"))
    assert wanted[1][-1].shape == shape[:axis]
    for given in {axis, axis - len(shape)}:
        got = outputs_of(folder, loss, files, "--axis", given)
        assert got[1][0].shape == shape
        assert_same(got, wanted)
    if axis == len(shape) - 1:
        assert_same(outputs_of(folder, loss, files), wanted)


@pytest.mark.parametrize("loss", [loss for loss in VECTOR_LOSSES if vectors_of(loss) > 1])
def test_broadcasting(folder, loss):
    """As of copies; gradients have the common shape."""
    arrays = draw(loss, 1, (6, 4, 9), (6, 4))
    arrays[0], arrays[1] = arrays[0][:, :1], arrays[1][:1]
    files = save(folder, arrays)
    whole = [np.ascontiguousarray(np.broadcast_to(array, (6, 4, 9))) for array in arrays[: vectors_of(loss)]]
    wanted = outputs_of(folder, loss, save(folder, [*whole, *arrays[vectors_of(loss) :]], "whole"))
    assert_same(outputs_of(folder, loss, files), wanted)


@pytest.mark.parametrize("loss", VECTOR_LOSSES)
def test_orders_of_bytes_and_dimensions(folder, loss):
    arrays = draw(loss, 1, (2 * TILE + 5, 6), (2 * TILE + 5,))
    wanted = outputs_of(folder, loss, save(folder, arrays))
    swapped = [array.astype(array.dtype.newbyteorder(">")) for array in arrays]
    assert_same(outputs_of(folder, loss, save(folder, swapped, "swapped")), wanted)
    assert_same(outputs_of(folder, loss, save(folder, [np.asfortranarray(array) for array in arrays], "f")), wanted)


def test_safetensors(folder):
    arrays = draw("triplet_margin", 1, (20, 8), (20,))
    wanted = outputs_of(folder, "triplet_margin", save(folder, arrays))
    folder.save_tensors("t.safetensors", **dict(zip("apn", arrays)))
    assert_same(outputs_of(folder, "triplet_margin", [f"t.safetensors:{name}" for name in "apn"]), wanted)


# --------------------------------------------------------------------- slices --


@pytest.mark.parametrize("loss, reduction", [("triplet_margin", "mean"), ("triplet_margin", "none"),
                                             ("cosine_embedding", "sum")])
def test_many_slices(folder, loss, reduction):
    """More rows than two slices have, which are 64 tiles, of operands that lie in order, and of one that is copied."""
    rows, elements = (20 if QUICK else 130) * TILE + 77, 40
    arrays = draw(loss, 1, (rows, elements), (rows,))
    weight, mask = eighths(4, rows), booleans(5, rows)
    folder.save("w.npy", weight), folder.save("m.npy", mask)
    options, gradients = gradient_options(loss)
    how = ["--weight", "w.npy", "--mask", "m.npy", "--reduction", reduction, *options, "--none", "n.npy"]
    answer = right(loss, arrays, reduction=reduction, weight=exact(weight), mask=mask)
    files = save(folder, arrays)
    folder.save("x1.npy", np.asfortranarray(arrays[1]))
    done = folder.run(loss, *files, *how)
    assert done.status == 0 and done.err == ""
    within(folder.load("n.npy") if reduction == "none" else np.float32(done.out), answer.value, "f32")
    for name, bounds in zip(gradients, answer.gradients, strict=True):
        within(folder.load(name), bounds, "f32")


@pytest.mark.parametrize("loss", VECTOR_LOSSES[::3] if QUICK else VECTOR_LOSSES)
def test_gradients_part_by_part(folder, loss):
    """The gradients of a slice of long vectors are computed for fewer rows at a time: they are those of files of fewer
    rows, and for a mean over a power of two they are divided by that."""
    rows, elements = 512, 9000
    arrays = draw(loss, 1, (rows, elements), (rows,))
    options, names = gradient_options(loss)

    def gradients(first, last, reduction):
        files = save(folder, [array[first:last] for array in arrays])
        done = folder.run(loss, *files, "--reduction", reduction, *options)
        assert done.status == 0 and done.err == ""
        return [folder.load(name) for name in names]

    halves = [np.concatenate(pair) for pair in zip(gradients(0, 256, "sum"), gradients(256, rows, "sum"))]
    reductions = (("sum", 1), ("none", 1), ("mean", rows))
    for reduction, divisor in reductions if not QUICK else reductions[VECTOR_LOSSES.index(loss) // 3 % 3:][:1]:
        for got, wanted in zip(gradients(0, rows, reduction), halves, strict=True):
            np.testing.assert_array_equal(got, wanted / np.float32(divisor))


# ---------------------------------------------------------------------- edges --


def test_no_rows(folder):
    files = save(folder, [np.zeros((0, 3), "f4")] * 3)
    assert folder.answer("triplet_margin", *files, "--grad", "g.npy") == "nan"
    assert folder.load("g.npy").shape == (0, 3)
    assert folder.answer("triplet_margin", *files, "--reduction", "sum") == "0"


def test_no_elements(folder):
    """A vector without elements has the length 0."""
    files = save(folder, [np.zeros((3, 0), "f4")] * 3)
    assert folder.answer("triplet_margin", *files, "--grad", "g.npy") == "1"
    assert folder.load("g.npy").shape == (3, 0)


def test_rows_that_are_no_distribution(folder):
    """Nothing at all, nothing that can be, a NaN or +inf."""
    loss = "kl_div_with_logits"
    for bad in ([], [-np.inf, -np.inf], [np.nan, 1], [np.inf, 1]):
        good = np.zeros((2, len(bad)), "f4")
        files = save(folder, [good, np.float32([[0] * len(bad), bad])])
        assert folder.answer(loss, *files, "--none", "n.npy") == "nan"
        assert np.isnan(folder.load("n.npy")).tolist() == [not bad, True]
    files = save(folder, [np.float32([0, -np.inf]), np.float32([0, 0])])
    assert folder.answer(loss, *files) == "inf"


def test_nothing_takes_part(folder):
    files = save(folder, [np.full((3, 4), np.nan, "f4")] * 2)
    folder.save("m.npy", np.zeros(3, bool))
    assert folder.answer("pairwise_distance", *files, "--mask", "m.npy", "--grad", "g.npy") == "nan"
    assert not folder.load("g.npy").any()


def test_one_vector(folder):
    """Which has no rows' dimensions: its value has none either."""
    files = save(folder, [np.float32([3, 0]), np.float32([0, 4])])
    assert folder.answer("pairwise_distance", *files, "--eps", "0", "--none", "n.npy") == "5"
    assert folder.load("n.npy").shape == ()


def test_json(folder):
    files = save(folder, draw("triplet_margin", 1, (5, 3, 4), (5, 3)))
    reply = folder.json("triplet_margin", *files, "--swap", "1", "--grad-negative", "g.npy", "--axis", "1")
    assert reply["shape"] == [5] and reply["elements"] == 5 and reply["length"] == 12 and "classes" not in reply
    assert reply["gradients"] == {"anchor": None, "positive": None, "negative": "g.npy"}
    assert reply["parameters"] == {"margin": 1, "p": 2, "eps": 1e-06, "swap": 1}
    files = save(folder, draw("cosine_embedding", 1, (5, 4), (5,)))
    assert folder.json("cosine_embedding", *files)["gradients"] == {"input1": None, "input2": None}


# ------------------------------------------------------------------- mistakes --


@pytest.fixture
def files(folder):
    for name in "apn":
        folder.save(f"{name}.npy", numbers(ord(name), (6, 5)))
    folder.save("y.npy", np.ones(6, "i8"))
    return folder


TRIPLET = ("triplet_margin", "a.npy", "p.npy", "n.npy")
EMBEDDING = ("cosine_embedding", "a.npy", "p.npy")


def test_numbers_of_files(files):
    files.refuse(*TRIPLET[:3], says=["2 files are given", "three, anchor, positive and negative", "ANCHOR POSITIVE NEGATIVE"])
    files.refuse("cosine_similarity", *TRIPLET[1:], says=["3 files are given", "two, input1 and input2"])
    files.refuse(*EMBEDDING, says=["2 files are given", "input1, input2 and target"])


@pytest.mark.parametrize(
    "options, says",
    [
        (["--p", "3"], ["p of triplet_margin is 3", "1 or 2"]),
        (["--p", "1.5"], ["p of triplet_margin is 1.5", "1 or 2"]),
        (["--swap", "0.5"], ["swap", "0 or 1"]),
        (["--swap", "yes"], ["--swap", "expected a number"]),
        (["--margin", "nan"], ["margin", "NaN"]),
        (["--axis", "2"], ["--axis is 2", "(6, 5)", "0 to 1"]),
        (["--axis", "-3"], ["--axis is -3", "-2 to -1"]),
        (["--axis", "x"], ["--axis"]),
        (["--class-weight", "y.npy"], ["--class-weight", "cross_entropy", "is none of them"]),
        (["--lse", "l.npy"], ["--lse", "is none of them"]),
        (["--predicted", "l.npy"], ["--predicted", "is none of them"]),
        (["--grad-target", "g.npy"], ["--grad-target", "anchor (--grad), positive (--grad-positive) and negative (--grad-negative)"]),
        (["--alpha", "1"], ["--alpha", "triplet_margin has no such parameter"]),
        (["--grad", "g.npy", "--grad-negative", "g.npy"], ["--grad", "--grad-negative"]),
        (["--reduction", "none"], ["--none FILE"]),
    ],
    ids=str,
)
def test_options(files, options, says):
    files.refuse(*TRIPLET, *options, says=says)


def test_the_axis_of_others(files):
    files.refuse("mse", "a.npy", "p.npy", "--axis", "1", says=["--axis", "and of vectors; mse is none of them"])


def test_shapes(files):
    files.save("wide.npy", numbers(1, (6, 4))), files.save("scalar.npy", np.float32(1))
    files.refuse("triplet_margin", "a.npy", "p.npy", "wide.npy", says=["wide.npy", "(6, 4)", "do not broadcast"])
    files.refuse("cosine_similarity", "scalar.npy", "scalar.npy", says=["scalar.npy", "at least one dimension"])
    files.save("column.npy", np.ones((6, 1), "i8"))
    for name in ("column.npy", "scalar.npy"):
        files.refuse(*EMBEDDING, name, says=[name, "a number for each vector, of shape (6,)"])
    pairs = "has gradients for input1 (--grad) and input2 (--grad-input2)"
    files.refuse(*EMBEDDING, "y.npy", "--grad-target", "g.npy", says=["--grad-target", f"cosine_embedding {pairs}"])
    files.refuse("cosine_similarity", "a.npy", "p.npy", "--grad-target", "g.npy", says=f"cosine_similarity {pairs}")


def test_targets_that_are_no_class(files):
    for label in (5, -1):
        files.save("t.npy", np.array([0, 4, label, 0, 9, 0]))
        files.refuse("multi_margin", "a.npy", "t.npy", says=[f"target {label} in row 2", "5 classes"])
    files.save("m.npy", np.array([1, 1, 0, 1, 0, 1], bool))
    assert files.run("multi_margin", "a.npy", "t.npy", "--mask", "m.npy").status == 0
    files.save("f.npy", np.ones(6, "f4"))
    files.refuse("multi_margin", "a.npy", "f.npy", says=["f.npy", "i8, i4 or u1 is expected of class indices"])
    files.refuse("multi_margin", "a.npy", "y.npy", "--grad-target", "g.npy", says=["--grad-target", "a gradient for input (--grad)"])


def test_lists_of_labels(files):
    """What stands behind the first -1 is looked at as well."""
    lists = np.full((6, 5), -1)
    files.save("t.npy", lists[:, :4])
    files.refuse("multilabel_margin", "a.npy", "t.npy", says=["t.npy", "(6, 4)", "of shape (6, 5)"])
    for label in (5, -2):
        lists[2, 3] = label
        files.save("t.npy", lists)
        files.refuse("multilabel_margin", "a.npy", "t.npy", says=[f"target {label} in row 2", "0 to 4", "-1"])
    files.save("m.npy", np.array([1, 1, 0, 1, 0, 1], bool))
    assert files.run("multilabel_margin", "a.npy", "t.npy", "--mask", "m.npy").status == 0
    files.save("f.npy", np.ones((6, 5), "f4"))
    files.refuse("multilabel_margin", "a.npy", "f.npy", says=["f.npy", "i8, i4 or u1 is expected of class indices"])


@pytest.mark.parametrize("dtype, word", [("?", "booleans"), ("i2", "integers of another size"), ("c8", "complex")])
def test_targets_of_another_type(files, dtype, word):
    files.save("t.npy", np.ones(6, dtype))
    files.refuse(*EMBEDDING, "t.npy", says=["t.npy", word, "i8, i4 or u1"])


def test_targets_of_another_type_in_safetensors(files):
    files.save_tensors("t.safetensors", t=np.ones(6, "i2"))
    files.refuse(*EMBEDDING, "t.safetensors", says=["t.safetensors", "I64, I32 or U8"])


def test_vectors_of_integers(files):
    files.save("i.npy", np.ones((6, 5), "i8"))
    files.refuse("cosine_similarity", "a.npy", "i.npy", says=["i.npy", "integers"])


# -------------------------------------------------------------- known results --


@pytest.mark.parametrize(
    "loss, arrays, options, value, gradients",
    [
        ("cosine_similarity", [[3, 4], [4, 3]], [], 0.96, [[0.0448, -0.0336], [-0.0336, 0.0448]]),
        ("cosine_embedding", [[3, 4], [-4, 3], -1], ["--margin", "-0.5"], 0.5, [[-0.16, 0.12], [0.12, 0.16]]),
        ("cosine_embedding", [[3, 4], [4, 3], 0], [], 0, [[0, 0], [0, 0]]),
        ("pairwise_distance", [[1, 5], [4, 1]], ["--eps", "0"], 5, [[-0.6, 0.8], [0.6, -0.8]]),
        ("pairwise_distance", [[1, 5], [4, 1]], ["--eps", "0", "--p", "1"], 7, [[-1, 1], [1, -1]]),
        ("pairwise_distance", [[1, 5], [1, 5]], ["--eps", "0"], 0, [[0, 0], [0, 0]]),
        ("triplet_margin", [[0, 0], [3, 4], [0, 2]], ["--eps", "0"], 4, [[-0.6, 0.2], [0.6, 0.8], [0, -1]]),
        ("triplet_margin", [[0, 0], [0, 1], [0, 3]], ["--eps", "0", "--swap", "1"], 0, [[0, -1], [0, 2], [0, -1]]),
        ("triplet_margin", [[0, 0], [0, 1], [0, 9]], ["--eps", "0"], 0, [[0, 0], [0, 0], [0, 0]]),
        ("multi_margin", [[1, 2, 2.5, 0], 1], [], 0.375, [[0, -0.25, 0.25, 0]]),
        ("multi_margin", [[1, 0, 3, 0.5], 0], ["--p", "2"], 2.3125, [[-1.75, 0, 1.5, 0.25]]),
        ("multi_margin", [[1, 4], 0], ["--margin", "-1"], 1, [[-0.5, 0.5]]),
        ("multi_margin", [[3, 4], 0], ["--class-weight", "x0.npy"], 3, [[-1.5, 1.5]]),
        ("multilabel_margin", [[1, 2, 0, 1.5], (1, 2, -1, 0)], [], 1.25, [[0.25, -0.25, -0.5, 0.5]]),
        ("multilabel_margin", [[1, 3], (0, 0)], [], 3, [[-1, 1]]),
        ("tversky", [[1, 0.5], [1, 0]], [], 0.2, [[-0.48, 0.32], [-0.48, -0.08]]),
        ("tversky_with_logits", [[0, 0], [1, 0]], ["--alpha", "1", "--beta", "1"], 2 / 3, [[-1 / 6, 1 / 18], [-2 / 9, -2 / 9]]),
        ("kl_div_with_logits", [[0, 0], [0, -np.inf]], [], np.log(2), [[-0.5, 0.5], [0, 0]]),
        ("kl_div_with_logits", [[0, 0], [np.log(9), 0]], ["--temperature", "2"], np.log(2) - 0.5623351446188083,
         [[-0.125, 0.125], [0.1875 * np.log(3) / 2, -0.1875 * np.log(3) / 2]]),
        ("js_div_with_logits", [[1, -np.inf], [-np.inf, 1]], ["--beta", "0.5"], np.log(2), [[0, 0], [0, 0]]),
        ("tv_distance_with_logits", [[0, 0], [np.log(3), 0]], [], 0.25, [[-0.25, 0.25], [0.1875, -0.1875]]),
    ],
    ids=str,
)
def test_known_results(folder, loss, arrays, options, value, gradients):
    """Worked out by hand."""
    files = save(folder, [np.array(array, "i8" if isinstance(array, (int, tuple)) else "f8") for array in arrays])
    more, names = gradient_options(loss)
    assert float(folder.answer(loss, *files, *options, *more)) == pytest.approx(value, rel=1e-10, abs=1e-10)
    for name, wanted in zip(names, gradients, strict=True):
        np.testing.assert_allclose(folder.load(name), wanted, rtol=1e-10, atol=1e-10)
