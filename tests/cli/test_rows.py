# Losses over rows: class indices and probabilities from files, in every layout, held to the oracle; and that slices,
# layouts and byte orders leave no trace in the bits.
import numpy as np
import oracle
import pytest

from expected import ROW_LOSSES, booleans, eighths, exact, numbers, type_of
from folder import DTYPES, QUICK, bits

LABELLED = [loss for loss in ROW_LOSSES if loss != "cross_entropy_with_probabilities"]
PROBABILITIES = "cross_entropy_with_probabilities"
TILE = 1024
#: units in the last place that values, and gradients of their own magnitude, may be off, beyond their last rounding
ULP = 4
PRECISION = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23, "f64": 2.0**-52}
SMALLEST = {"f16": 2.0**-24, "bf16": 2.0**-133, "f32": 2.0**-149, "f64": 2.0**-1074}


def labels(seed, shape, classes, ignored=None, dtype=np.int64):
    """Class indices, of which some are those of rows that take no part."""
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, classes, shape)
    if ignored is not None:
        drawn = np.where(rng.random(shape) < 0.2, ignored, drawn)
    return np.asarray(drawn).astype(dtype)


def probabilities(seed, shape, type_name="f32"):
    drawn = np.random.default_rng(seed).random(shape)
    return (drawn / drawn.sum(-1, keepdims=True)).astype(DTYPES[type_name])


def draw_target(loss, seed, z, ignored=-100, axis=1):
    if loss == PROBABILITIES:
        return probabilities(seed, z.shape, type_of(z))
    rows = z.shape[:axis] + z.shape[axis + 1 :]
    return labels(seed, rows, z.shape[axis], ignored)


def right(loss, z, target, reduction="mean", **how):
    for name in ("class_weight", "weight"):
        if how.get(name) is not None:
            how[name] = exact(how[name])
    target = exact(target) if loss == PROBABILITIES else target
    return oracle.answer_rows(loss, exact(z), target, reduction=reduction, **how)


def near(got, wanted, size, type_name, compute="f32"):
    """Within the bound of docs/numerics.md: units of the compute type, and the last rounding."""
    got, wanted = exact(got), np.asarray(wanted, np.float64)
    bound = ULP * PRECISION[compute] * np.maximum(np.abs(wanted), size)
    bound += (PRECISION[type_name] / 2 + 2.0**-60) * np.abs(wanted) + SMALLEST[type_name]
    bad = ~((np.abs(got - wanted) <= bound) | (got == wanted) | (np.isnan(got) & np.isnan(wanted)))
    assert not bad.any(), f"{bad.sum()} of {bad.size}: {got[bad][:4]} for {wanted[bad][:4]}"


# -------------------------------------------------------------------- values --


@pytest.mark.parametrize("type_name", DTYPES)
@pytest.mark.parametrize("loss", ROW_LOSSES)
def test_value_and_all_outputs(folder, loss, type_name):
    z = numbers(1, (300, 11), type_name)
    target = draw_target(loss, 2, z)
    folder.save("z.npy", z), folder.save("t.npy", target)
    outputs = ["--grad", "g.npy", "--none", "n.npy", "--predicted", "p.npy"]
    outputs += [] if loss == "nll" else ["--lse", "l.npy"]
    outputs += ["--grad-target", "h.npy"] if loss == PROBABILITIES else []
    printed = folder.answer(loss, "z.npy", "t.npy", *outputs)
    answer, compute = right(loss, z, target), "f64" if type_name == "f64" else "f32"
    size = answer.row_value_sizes.sum() / answer.divided_by
    near(float(printed), answer.value, size, type_name, compute)
    written = folder.load("n.npy")
    assert written.dtype == DTYPES[type_name] and written.shape == (300,)
    near(written, answer.row_values, answer.row_value_sizes, type_name, compute)
    gradient = folder.load("g.npy")
    assert gradient.dtype == DTYPES[type_name] and gradient.shape == z.shape
    near(gradient, answer.gradients[0], answer.gradient_sizes, "f32" if type_name == "f64" else type_name, compute)
    predicted = folder.load("p.npy")
    assert predicted.dtype == np.int64
    np.testing.assert_array_equal(predicted, answer.predicted)
    if loss == PROBABILITIES:
        near(folder.load("h.npy"), answer.gradients[1], 0, "f32" if type_name == "f64" else type_name, compute)
    if loss != "nll":
        lse = folder.load("l.npy")
        assert lse.dtype == DTYPES[compute]
        near(lse, answer.log_sum_exp, 0, compute, compute)


#: The type of a value, of those of its inputs; class weights, pos_weight and numbers as weights have no say in it, as
#: in PyTorch, whose cross-entropy is of the logits' type.
TYPES_OF_VALUES = [
    ("cross_entropy", {"z": "f16", "--class-weight": "f32"}, "f16"),
    ("cross_entropy", {"z": "bf16", "--weight": "f32"}, "f32"),
    ("cross_entropy", {"z": "f16", "--weight of one": "f64"}, "f16"),
    ("poly", {"z": "f16", "--class-weight": "f64"}, "f16"),
    (PROBABILITIES, {"z": "f16", "t": "f32"}, "f32"),
    (PROBABILITIES, {"z": "f16", "t": "f16", "--class-weight": "f64"}, "f64"),
    ("multi_margin", {"z": "f16", "--class-weight": "f64"}, "f16"),
    ("mse", {"z": "f16", "t": "bf16"}, "f32"),
    ("mse", {"z": "f16", "t": "f16", "--weight": "f64"}, "f64"),
    ("bce_with_logits", {"z": "f16", "t": "f16", "--weight": "f64"}, "f16"),
    ("bce_with_logits_pos_weight", {"z": "f16", "t": "f16", "third": "f64"}, "f16"),
    ("gaussian_nll", {"z": "f16", "t": "f16", "third": "f64"}, "f64"),
]


@pytest.mark.parametrize("loss, types, wanted", TYPES_OF_VALUES, ids=str)
def test_types_of_values(folder, loss, types, wanted):
    rows, classes = 7, 5
    shapes = {"z": (rows, classes), "t": (rows, classes), "third": (rows, classes), "--class-weight": classes,
              "--weight of one": (), "--weight": (rows, classes) if "t" in types else rows}
    command = [loss]
    for name, type_name in types.items():
        folder.save(f"{name}.npy", eighths(11, shapes[name], type_name))
        command += ([name.split()[0]] if name.startswith("--") else []) + [f"{name}.npy"]
        if name == "z" and "t" not in types:
            folder.save("y.npy", labels(12, rows, classes))
            command.append("y.npy")
    assert folder.json(*command)["type"] == wanted


def test_few_long_rows_at_a_time(folder):
    """16 a slice, with gradients: the same bits as of one call, in the order of one tile."""
    onepass = pytest.importorskip("onepass")
    z = np.tile(numbers(13, 4096), (40, 128)) * np.arange(1, 41, dtype=np.float32)[:, None] / 8
    target = labels(14, 40, z.shape[1], ignored=-100)
    folder.save("z.npy", z), folder.save("y.npy", target)
    value, gradient = onepass.value_and_grad("cross_entropy", z, target)
    reply = folder.json("cross_entropy", "z.npy", "y.npy", "--grad", "g.npy")
    assert int(reply["bits"], 16) == int(bits(value))
    np.testing.assert_array_equal(bits(folder.load("g.npy")), bits(gradient))


@pytest.mark.parametrize("reduction", ["mean", "sum", "batchmean"])
@pytest.mark.parametrize("loss", ROW_LOSSES)
def test_weights_and_masks(folder, loss, reduction):
    z = numbers(3, (40, 5, 6))
    target = draw_target(loss, 4, z)
    w, weight, mask = eighths(5, 5), eighths(6, (40, 6)), booleans(7, (40, 6))
    for name, array in {"z": z, "t": target, "c": w, "w": weight, "m": mask}.items():
        folder.save(f"{name}.npy", array)
    extra = ["--class-weight", "c.npy", "--weight", "w.npy", "--mask", "m.npy", "--reduction", reduction]
    answer = right(loss, z, target, reduction, class_weight=w, weight=weight, mask=mask)
    size = answer.row_value_sizes.sum() / (answer.divided_by if reduction == "mean" else 40 if reduction == "batchmean" else 1)
    near(float(folder.answer(loss, "z.npy", "t.npy", *extra, "--grad", "g.npy")), answer.value, size, "f32")
    near(folder.load("g.npy"), answer.gradients[0], answer.gradient_sizes, "f32")


@pytest.mark.parametrize(
    "loss, given",
    [
        ("cross_entropy", {"label_smoothing": 0.125, "z_loss": 0.25, "ignore_index": 3}),
        ("cross_entropy", {"softcap": 5.0}),
        ("cross_entropy", {"temperature": 0.5}),
        (PROBABILITIES, {"label_smoothing": 0.25, "z_loss": 0.125}),
        ("nll", {"ignore_index": 2}),
        ("log_prob", {"temperature": 4.0, "ignore_index": 0}),
        ("poly", {"epsilon": 0.75, "temperature": 2.0}),
        ("softmax_focal", {"gamma": 0.75, "ignore_index": 1}),
        ("softmax_focal", {"alpha": 0.25, "gamma": 3.0}),
        ("generalized_cross_entropy", {"q": 0.25, "softcap": 5.0}),
    ],
    ids=str,
)
def test_parameters(folder, loss, given):
    z = numbers(8, (64, 9))
    target = draw_target(loss, 9, z, given.get("ignore_index"))
    folder.save("z.npy", z), folder.save("t.npy", target)
    answer = right(loss, z, target, **given)
    size = answer.row_value_sizes.sum() / answer.divided_by * (1 + 2 * ("softcap" in given))
    for dash in "-_":
        words = [word for name, value in given.items() for word in (f"--{name.replace('_', dash)}", repr(value))]
        near(float(folder.answer(loss, "z.npy", "t.npy", *words)), answer.value, size, "f32")


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, ">i8", ">i4"])
def test_types_of_labels(folder, dtype):
    z, y = numbers(1, (50, 7)), labels(2, 50, 7, ignored=3)
    folder.save("z.npy", z), folder.save("y.npy", y.astype(dtype)), folder.save("wide.npy", y)
    options = ["--ignore-index", "3", "--grad", "g.npy"]
    assert folder.hex("cross_entropy", "z.npy", "y.npy", *options) == folder.hex("cross_entropy", "z.npy", "wide.npy", *options)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
def test_labels_of_safetensors(folder, dtype):
    z, y = numbers(1, (50, 7)), labels(2, 50, 7)
    folder.save("z.npy", z), folder.save("y.npy", y), folder.save_tensors("d.safetensors", y=y.astype(dtype), z=z)
    assert folder.hex("nll", "d.safetensors:z", "d.safetensors:y") == folder.hex("nll", "z.npy", "y.npy")


# -------------------------------------------------------------------- layouts --


def outputs_of(folder, loss, *arguments):
    """The number and every output's bits."""
    more = [] if loss == "nll" else ["--lse", "l.npy"]
    more += ["--grad-target", "h.npy"] if loss == PROBABILITIES else []
    number = folder.hex(loss, *arguments, "--grad", "g.npy", "--none", "n.npy", "--predicted", "p.npy", *more)
    names = ["g.npy", "n.npy", "p.npy", *more[1::2]]
    return number, [bits(folder.load(name)) for name in names]


@pytest.mark.parametrize("loss", ROW_LOSSES)
@pytest.mark.parametrize("axis, shape", [(0, (7, 33)), (1, (4, 7, 9)), (1, (33, 7)), (2, (4, 9, 7)), (0, (7,))])
def test_the_axis(folder, loss, axis, shape):
    """Wherever the classes are, the rows have the bits of a matrix of rows."""
    z = numbers(1, shape)
    target = draw_target(loss, 2, z, axis=axis)
    folder.save("z.npy", z), folder.save("t.npy", target)
    flat = np.moveaxis(z, axis, -1).reshape(-1, 7)
    target = np.moveaxis(target, axis, -1).reshape(-1, 7) if loss == PROBABILITIES else target.reshape(-1)
    folder.save("flat.npy", flat), folder.save("flat_t.npy", target)
    wanted, (gradient, *others) = outputs_of(folder, loss, "flat.npy", "flat_t.npy")
    for given in {axis, axis - z.ndim}:
        number, (moved, *rest) = outputs_of(folder, loss, "z.npy", "t.npy", "--axis", given)
        assert number == wanted
        np.testing.assert_array_equal(np.moveaxis(moved, axis, -1).reshape(-1, 7), gradient)
        for got, right_one in zip(rest[:2], others[:2]):
            np.testing.assert_array_equal(got.reshape(-1), right_one)
    if axis == min(1, z.ndim - 1):
        assert folder.hex(loss, "z.npy", "t.npy") == wanted


@pytest.mark.parametrize("loss", ROW_LOSSES)
def test_orders_of_bytes_and_dimensions(folder, loss):
    z = numbers(1, (2 * TILE + 5, 6))
    target = draw_target(loss, 2, z)
    folder.save("z.npy", z), folder.save("t.npy", target)
    wanted = outputs_of(folder, loss, "z.npy", "t.npy")
    folder.save("swapped.npy", z.astype(">f4")), folder.save("fortran.npy", np.asfortranarray(z))
    folder.save("fortran_t.npy", np.asfortranarray(target))
    for files in (("swapped.npy", "t.npy"), ("fortran.npy", "fortran_t.npy")):
        number, arrays = outputs_of(folder, loss, *files)
        assert number == wanted[0]
        for got, right_one in zip(arrays, wanted[1]):
            np.testing.assert_array_equal(got, right_one)


def test_one_row_without_dimensions(folder):
    folder.save("z.npy", np.float32([1, 2, 3])), folder.save("y.npy", np.array(2)), folder.save("one.npy", np.array([2]))
    assert folder.answer("cross_entropy", "z.npy", "y.npy") == folder.answer("cross_entropy", "z.npy", "one.npy")
    assert float(folder.answer("cross_entropy", "z.npy", "y.npy")) == pytest.approx(0.4076059644443803, rel=1e-7)


# ---------------------------------------------------------------------- edges --


def test_nothing_takes_part(folder):
    """As PyTorch has it: NaN, with gradients of 0."""
    folder.save("z.npy", numbers(1, (5, 3))), folder.save("y.npy", np.full(5, -100))
    assert folder.answer("cross_entropy", "z.npy", "y.npy", "--grad", "g.npy") == "nan"
    assert not folder.load("g.npy").any()
    assert folder.answer("cross_entropy", "z.npy", "y.npy", "--reduction", "sum") == "0"


def test_no_rows(folder):
    folder.save("z.npy", np.zeros((0, 3), "f4")), folder.save("y.npy", np.zeros(0, "i8"))
    assert folder.answer("cross_entropy", "z.npy", "y.npy", "--grad", "g.npy") == "nan"
    assert folder.load("g.npy").shape == (0, 3)


def test_no_classes(folder):
    folder.save("z.npy", np.zeros((3, 0), "f4")), folder.save("y.npy", np.full(3, -100))
    assert folder.answer("cross_entropy", "z.npy", "y.npy") == "nan"
    folder.save("y.npy", np.zeros(3, "i8"))
    folder.refuse("cross_entropy", "z.npy", "y.npy", says=["y.npy", "target 0 in row 0"])


def test_json(folder):
    folder.save("z.npy", numbers(1, (5, 3))), folder.save("y.npy", labels(2, 5, 3))
    reply = folder.json("cross_entropy", "z.npy", "y.npy", "--lse", "l.npy", "--label-smoothing", "0.5")
    assert reply["shape"] == [5] and reply["elements"] == 5 and reply["classes"] == 3
    assert reply["lse"] == "l.npy" and reply["predicted"] is None and reply["gradients"] == {"input": None}
    assert reply["parameters"]["label_smoothing"] == 0.5 and reply["parameters"]["ignore_index"] == -100


# --------------------------------------------------------------------- slices --


def by_formula(z, y, reduction, class_weight, weight, mask):
    """Cross-entropy in NumPy's float64, which is enough for numbers that are computed in float."""
    z, part = exact(z), mask & (y != -100)
    y, rows = np.where(part, y, 0), np.arange(len(y))
    lse = np.log(np.exp(z).sum(1))
    share = np.where(part, class_weight[y] * exact(weight), 0)
    values = share * (lse - z[rows, y])
    divisor = share.sum() if reduction == "mean" else 1
    gradient = np.exp(z - lse[:, None])
    sizes = gradient.copy()
    gradient[rows, y] -= 1
    sizes[rows, y] = 1
    scale = share[:, None] / divisor
    return values, values.sum() / divisor, gradient * scale, sizes * scale, np.where(part, lse, 0), np.where(
        part, z.argmax(1), -1)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_many_slices(folder, reduction):
    """More rows than a slice has, with everything that a row can have."""
    rows, classes = (20 if QUICK else 300) * TILE + 77, 40
    z, y = numbers(1, (rows, classes)), labels(2, rows, classes, ignored=-100)
    w, weight, mask = eighths(3, classes), eighths(4, rows), booleans(5, rows)
    for name, array in {"z": z, "y": y, "c": w, "w": weight, "m": mask}.items():
        folder.save(f"{name}.npy", array)
    options = ["--class-weight", "c.npy", "--weight", "w.npy", "--mask", "m.npy", "--reduction", reduction]
    outputs = ["--grad", "g.npy", "--lse", "l.npy", "--predicted", "p.npy", "--none", "n.npy"]
    result = folder.run("cross_entropy", "z.npy", "y.npy", *options, *outputs)
    assert result.status == 0 and result.err == ""
    values, value, gradient, sizes, lse, predicted = by_formula(z, y, reduction, w, weight, mask)
    if reduction != "none":
        near(float(result.out), value, 0, "f32")
    near(folder.load("g.npy"), gradient, sizes, "f32")
    near(folder.load("n.npy"), values, 0, "f32")
    near(folder.load("l.npy"), lse, 0, "f32")
    np.testing.assert_array_equal(folder.load("p.npy"), predicted)


@pytest.mark.parametrize("loss", ROW_LOSSES)
def test_slices_of_copies(folder, loss):
    """Columns that are copied together slice by slice have the bits of rows that lie in order."""
    rows, classes = (3 if QUICK else 70) * TILE + 1, 250
    z = numbers(1, (rows, classes))
    target = draw_target(loss, 2, z)
    folder.save("z.npy", z), folder.save("t.npy", target)
    folder.save("f.npy", np.asfortranarray(z)), folder.save("ft.npy", np.asfortranarray(target))
    assert folder.hex(loss, "f.npy", "ft.npy") == folder.hex(loss, "z.npy", "t.npy")


@pytest.mark.parametrize("loss", ROW_LOSSES[::3] if QUICK else ROW_LOSSES)
def test_gradients_part_by_part(folder, loss):
    """The gradients of a slice of many classes are computed for fewer rows at a time: they are those of files of fewer
    rows, and for a mean over a power of two they are divided by that."""
    rows, classes = 512, 9000
    z = numbers(1, (rows, classes))
    target = draw_target(loss, 2, z, ignored=None)
    names = ["g.npy", *(["h.npy"] if loss == PROBABILITIES else [])]
    outputs = ["--grad", "g.npy", *(["--grad-target", "h.npy"] if loss == PROBABILITIES else [])]

    def gradients(first, last, reduction):
        folder.save("z.npy", z[first:last]), folder.save("t.npy", target[first:last])
        result = folder.run(loss, "z.npy", "t.npy", "--reduction", reduction, *outputs)
        assert result.status == 0 and result.err == ""
        return [folder.load(name) for name in names]

    halves = [np.concatenate(pair) for pair in zip(gradients(0, 256, "sum"), gradients(256, rows, "sum"))]
    reductions = (("sum", 1), ("none", 1), ("mean", rows))
    for reduction, divisor in reductions if not QUICK else reductions[ROW_LOSSES.index(loss) // 3 % 3:][:1]:
        for got, wanted in zip(gradients(0, rows, reduction), halves):
            np.testing.assert_array_equal(got, wanted / np.float32(divisor))


# ------------------------------------------------------------------- mistakes --


@pytest.fixture
def files(folder):
    folder.save("z.npy", numbers(1, (3 * TILE, 5))), folder.save("y.npy", labels(2, 3 * TILE, 5))
    return folder


@pytest.mark.parametrize("more", [[], ["--grad", "g.npy"], ["--reduction", "none", "--none", "n.npy"]], ids=str)
def test_a_label_out_of_range(files, more):
    y = files.load("y.npy")
    y[2 * TILE + 3] = 5
    files.save("y.npy", y)
    files.refuse("cross_entropy", "z.npy", "y.npy", *more, says=["y.npy", "target 5 in row 2051", "0 to 4"])
    files.save("m.npy", np.arange(3 * TILE) != 2 * TILE + 3)
    assert files.run("cross_entropy", "z.npy", "y.npy", *more, "--mask", "m.npy").status == 0


@pytest.mark.parametrize("dtype, word", [("f4", "floating-point numbers"), ("i2", "integers of another size"), ("?", "booleans")])
def test_labels_of_another_type(files, dtype, word):
    files.save("t.npy", np.zeros(3 * TILE, dtype))
    files.refuse("cross_entropy", "z.npy", "t.npy", says=["t.npy", word, "class indices"])
    files.save_tensors("t.safetensors", t=np.zeros(3 * TILE, dtype))
    files.refuse("nll", "z.npy", "t.safetensors", says=["t.safetensors", "I64, I32 or U8"])


def test_probabilities_of_another_type(files):
    files.refuse(PROBABILITIES, "z.npy", "y.npy", says=["y.npy", "integers"])


def test_shapes(files):
    files.save("short.npy", np.zeros(7, "i8")), files.save("wide.npy", np.zeros((3 * TILE, 5), "i8"))
    files.save("scalar.npy", np.float32(1)), files.save("column.npy", np.zeros((3 * TILE, 1), "i8"))
    for name in ("short.npy", "wide.npy", "column.npy"):
        files.refuse("cross_entropy", "z.npy", name, says=[name, "(3072,)", "without axis 1"])
    files.refuse("cross_entropy", "scalar.npy", "y.npy", says=["scalar.npy", "at least one dimension"])
    files.refuse(PROBABILITIES, "z.npy", "scalar.npy", says=["scalar.npy", "(3072, 5)"])
    files.refuse("cross_entropy", "z.npy", "y.npy", "--class-weight", "scalar.npy", says=["scalar.npy", "(5,)"])
    files.save("w.npy", np.ones((3 * TILE, 5), "f4"))
    files.refuse("cross_entropy", "z.npy", "y.npy", "--weight", "w.npy", says=["w.npy", "(3072,)"])


@pytest.mark.parametrize("axis, words", [("2", "expected 0 to 1"), ("-3", "-2 to -1"), ("x", "--axis"), ("1.5", "--axis"), ("-0", "--axis")])
def test_axes(files, axis, words):
    files.refuse("cross_entropy", "z.npy", "y.npy", "--axis", axis, says=["axis", words])


def test_options_of_other_losses(files):
    files.refuse("nll", "z.npy", "y.npy", "--lse", "l.npy", says=["--lse", "no sum of exponentials"])
    files.refuse("mse", "z.npy", "z.npy", "--predicted", "p.npy", says=["--predicted", "losses over rows"])
    files.refuse("cross_entropy", "z.npy", "y.npy", "--grad-target", "g.npy", 
                 says="--grad-target: there is no such option; cross_entropy has a gradient for input (--grad)")
    files.refuse("mse", "z.npy", "z.npy", "--ignore-index", "3", says=["--ignore-index", "cross_entropy has"])
    files.refuse("cross_entropy", "z.npy", says=["1 file is given", "two, input and target"])
    files.refuse("cross_entropy", "z.npy", "y.npy", "--reduction", "none", says="--none FILE")
    files.refuse("cross_entropy", "z.npy", "y.npy", "--lse", "o.npy", "--predicted", "o.npy", says=["--lse", "--predicted"])


def test_parameters_that_the_library_refuses(files):
    files.refuse("cross_entropy", "z.npy", "y.npy", "--label-smoothing", "1.5", says=["label_smoothing", "at most 1"])


@pytest.mark.parametrize("value", ["9007199254740993", "-9007199254740993", "9" * 400, "0.5", "1e3", "nan", "x"])
def test_an_ignore_index_that_is_none(files, value):
    """A double would have 9007199254740993 rounded to the index before it."""
    shown = value if len(value) < 40 else f"{value[:40]}..."
    files.refuse("cross_entropy", "z.npy", "y.npy", "--ignore-index", value,
                 says=f'--ignore-index is "{shown}"; expected a whole number from -2^53 to 2^53')


def test_ignore_indices_that_a_double_holds(files):
    for index in (2**53, -(2**53)):
        files.save("t.npy", np.where(np.arange(3 * TILE) % 2, index, files.load("y.npy")))
        reply = files.json("cross_entropy", "z.npy", "t.npy", "--ignore-index", index)
        assert reply["parameters"]["ignore_index"] == index


def test_weights_without_a_sum(files):
    files.save("c.npy", np.zeros(5, "f4"))
    files.refuse("cross_entropy", "z.npy", "y.npy", "--class-weight", "c.npy", "--grad", "g.npy", says=["c.npy", "sum to 0"])
    assert files.answer("cross_entropy", "z.npy", "y.npy", "--class-weight", "c.npy") == "nan"


def test_a_name_that_others_use(folder):
    folder.refuse("CrossEntropyLoss", "z.npy", "y.npy", says='did you mean "cross_entropy"')
    folder.refuse("cross\x1b[31m\n", "z.npy", says="cross\\x1b[31m\\x0a")


# -------------------------------------------------------------- known results --


#: Worked out by hand: a loss, its options, its value and its slopes in the logits 0 and 0, the first one the label's.
KNOWN = [
    ("cross_entropy", [], np.log(2), [-0.5, 0.5]),
    ("cross_entropy", ["--z-loss", "1"], np.log(2) + np.log(2) ** 2, [np.log(2) - 0.5, np.log(2) + 0.5]),
    ("cross_entropy", ["--label-smoothing", "0.5"], np.log(2), [-0.25, 0.25]),
    ("log_prob", [], -np.log(2), [0.5, -0.5]),
    ("nll", [], 0, [-1, 0]),
    ("poly", [], np.log(2) + 1, [-1, 1]),
    ("poly", ["--epsilon", "0"], np.log(2), [-0.5, 0.5]),
    ("softmax_focal", [], np.log(2) / 4, [-(1 + 2 * np.log(2)) / 8, (1 + 2 * np.log(2)) / 8]),
    ("softmax_focal", ["--gamma", "0"], np.log(2), [-0.5, 0.5]),
    ("softmax_focal", ["--gamma", "1", "--alpha", "2"], np.log(2), [-(1 + np.log(2)) / 2, (1 + np.log(2)) / 2]),
    ("generalized_cross_entropy", ["--q", "0"], np.log(2), [-0.5, 0.5]),
    ("generalized_cross_entropy", ["--q", "1"], 0.5, [-0.25, 0.25]),
    ("generalized_cross_entropy", ["--q", "0.5"], 2 - np.sqrt(2), [-np.sqrt(0.125), np.sqrt(0.125)]),
]


def test_every_loss_has_a_known_result():
    missing = set(LABELLED) - {loss for loss, *_ in KNOWN}
    assert not missing, f"expected a line of each loss over rows in KNOWN of tests/cli/test_rows.py; missing: {missing}"


@pytest.mark.parametrize("loss, options, value, gradient", KNOWN, ids=str)
def test_two_equal_logits(folder, loss, options, value, gradient):
    """Both classes have the probability 1/2."""
    folder.save("z.npy", np.zeros((1, 2), "f8")), folder.save("y.npy", np.zeros(1, "i8"))
    assert float(folder.answer(loss, "z.npy", "y.npy", *options, "--grad", "g.npy")) == pytest.approx(value, rel=1e-15)
    np.testing.assert_allclose(folder.load("g.npy"), [gradient], rtol=1e-15)
