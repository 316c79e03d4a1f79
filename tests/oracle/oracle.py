"""The oracle for tests in Python: what a loss and its gradients must be, to the bit.

Numbers come in as arrays of any float type that hold values of narrower types exactly, and each operand's type comes
beside them as a name, since NumPy has no bfloat16. Arrays are broadcast here; everything else is the library's, which
the build makes of this folder and which ONEPASS_ORACLE names if it is not in build/.
"""

import ctypes
import math
import os
from collections import namedtuple

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
TYPES = {"f16": 1, "bf16": 2, "f32": 3, "f64": 4}  # as include/onepass.h numbers them, and the reductions
REDUCTIONS = {"mean": 0, "sum": 1, "none": 2, "batchmean": 3}
DOMAINS = ("any", "positive", "probability", "sign")
OPERANDS = 3

DOUBLES = ctypes.POINTER(ctypes.c_double)

# ------------------------------------------------------------------ the library --


class LossStruct(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("operand_count", ctypes.c_int), ("parameter_count", ctypes.c_int),
                ("domain", ctypes.c_int * OPERANDS), ("default_value", DOUBLES), ("formulas", ctypes.c_void_p * 2)]


class Question(ctypes.Structure):
    _fields_ = [("loss", ctypes.c_char_p), ("parameter", DOUBLES), ("parameter_count", ctypes.c_int32),
                ("reduction", ctypes.c_int32), ("in_float", ctypes.c_int32), ("count", ctypes.c_int64),
                ("divisor", ctypes.c_double), ("operand", DOUBLES * OPERANDS), ("weight", DOUBLES),
                ("mask", ctypes.POINTER(ctypes.c_ubyte)), ("upstream", DOUBLES), ("value", DOUBLES),
                ("gradient", DOUBLES * OPERANDS)]


class Rows(ctypes.Structure):
    _fields_ = [("loss", ctypes.c_char_p), ("parameter", DOUBLES), ("parameter_count", ctypes.c_int32),
                ("reduction", ctypes.c_int32), ("over_elements", ctypes.c_int32), ("rows", ctypes.c_int64),
                ("classes", ctypes.c_int64), ("divisor", ctypes.c_double), ("input", DOUBLES),
                ("label", ctypes.POINTER(ctypes.c_int64)), ("probability", DOUBLES), ("class_weight", DOUBLES),
                ("weight", DOUBLES), ("mask", ctypes.POINTER(ctypes.c_ubyte)), ("upstream", DOUBLES),
                ("value", DOUBLES), ("row_value", DOUBLES), ("row_value_size", DOUBLES), ("gradient", DOUBLES * 2),
                ("gradient_size", DOUBLES), ("log_sum_exp", DOUBLES), ("predicted", ctypes.POINTER(ctypes.c_int64)),
                ("divided_by", DOUBLES)]


class Range(ctypes.Structure):
    _fields_ = [("least", ctypes.c_double), ("most", ctypes.c_double)]


RANGES = ctypes.POINTER(Range)


class Vectors(ctypes.Structure):
    _fields_ = [("loss", ctypes.c_char_p), ("parameter", DOUBLES), ("parameter_count", ctypes.c_int32),
                ("reduction", ctypes.c_int32), ("over_elements", ctypes.c_int32), ("in_float", ctypes.c_int32),
                ("rows", ctypes.c_int64), ("elements", ctypes.c_int64), ("divisor", ctypes.c_double),
                ("operand", DOUBLES * OPERANDS), ("weight", DOUBLES), ("mask", ctypes.POINTER(ctypes.c_ubyte)),
                ("upstream", DOUBLES), ("value", RANGES), ("gradient", RANGES * OPERANDS), ("exact_value", DOUBLES),
                ("exact_slope", DOUBLES * OPERANDS), ("at_kink", ctypes.POINTER(ctypes.c_ubyte)),
                ("divided_by", DOUBLES)]


def load():
    path = os.environ.get("ONEPASS_ORACLE") or os.path.join(HERE, "../../build/tests/oracle/libonepass_oracle.so")
    if not os.path.exists(path):
        raise RuntimeError(f"the oracle is not at {os.path.abspath(path)}: build the target onepass_oracle_shared with "
                           "CMake, and set ONEPASS_ORACLE to its file if the build is not in build/")
    library = ctypes.CDLL(path)
    library.oracle_loss_at.restype = ctypes.POINTER(LossStruct)
    library.oracle_answer.argtypes = [ctypes.POINTER(Question)]
    library.oracle_answer_rows.argtypes = [ctypes.POINTER(Rows)]
    library.oracle_answer_rows.restype = ctypes.c_int64
    library.oracle_answer_vectors.argtypes = [ctypes.POINTER(Vectors)]
    library.oracle_answer_vectors.restype = None
    library.oracle_round.argtypes = [ctypes.c_int32, DOUBLES, ctypes.c_int64]
    return library


_LIBRARY = load()

# ------------------------------------------------------------------- the losses --

#: domains: of each operand, what numbers it is made for; defaults: of each parameter.
Loss = namedtuple("Loss", "name domains defaults")


def _losses():
    index = 0
    while found := _LIBRARY.oracle_loss_at(index):
        loss = found.contents
        yield Loss(loss.name.decode(), [DOMAINS[k] for k in loss.domain[:loss.operand_count]],
                   tuple(loss.default_value[:loss.parameter_count]))
        index += 1


LOSSES = {loss.name: loss for loss in _losses()}


def other_values(parameter):
    """Values besides the default that a parameter may have, by the limits that the catalogue gives it."""
    low, high = (-math.inf if parameter["minimum"] is None else parameter["minimum"],
                 math.inf if parameter["maximum"] is None else parameter["maximum"])
    return [value for value in (-1.5, 1.0, 0.25, 0.875, 0.0, 1.25, 3.75)
            if (low < value or low == value and not parameter["minimum_excluded"])
            and (value < high or value == high and not parameter["maximum_excluded"]) and value != parameter["default"]]


# -------------------------------------------------------------------- the types --


def round_to(type_name, numbers):
    """Numbers rounded once, ties to even, to a type; the results are float64 numbers again."""
    rounded = np.array(numbers, np.float64)
    _LIBRARY.oracle_round(TYPES[type_name], rounded.ctypes.data_as(DOUBLES), rounded.size)
    return rounded


def promoted(*type_names):
    """The result's type: the wider one; of f16 and bf16, which do not hold each other, f32."""
    names = set(type_names)
    for wide in ("f64", "f32"):
        if wide in names:
            return wide
    return names.pop() if len(names) == 1 else "f32"


# ------------------------------------------------------------------- the answer --

#: value and gradients, in the common shape, are rounded to their types; the numbers are float64's.
Answer = namedtuple("Answer", "value gradients result_type")


def answer(loss, operands, types, reduction="mean", parameters=(), weight=None, weight_type=None, upstream=1.0,
           mask=None, divisor=None, result_type=None):
    """What a loss, and its gradients times an upstream gradient, must be. A mean is divided by the sum of the weights,
    or by the divisor; a result_type of None is the promoted one."""
    all_types = [*types, *([] if weight is None else [weight_type])]
    result_type = result_type or promoted(*all_types)
    shape = np.broadcast_shapes(*(np.shape(operand) for operand in operands))
    if reduction == "batchmean":
        divisor = float(shape[0]) if shape else 1.0
    arrays = []  # which the question points to

    def numbers(array, of_shape=shape, kind=np.float64):
        if array is None:
            return None
        arrays.append(np.ascontiguousarray(np.broadcast_to(np.asarray(array, kind), of_shape)))
        return arrays[-1].ctypes.data_as(DOUBLES if kind is np.float64 else ctypes.POINTER(ctypes.c_ubyte))

    reduced = shape if reduction == "none" else ()
    value, gradients = np.empty(reduced), [np.empty(shape) for _ in operands]
    given = (ctypes.c_double * len(parameters))(*parameters)
    _LIBRARY.oracle_answer(Question(
        loss.encode(), given, len(parameters), REDUCTIONS[reduction], "f64" not in all_types, math.prod(shape),
        divisor or 0.0, (DOUBLES * OPERANDS)(*map(numbers, operands)), numbers(weight),
        numbers(None if mask is None else np.asarray(mask) != 0, kind=np.uint8), numbers(upstream, reduced),
        value.ctypes.data_as(DOUBLES), (DOUBLES * OPERANDS)(*(array.ctypes.data_as(DOUBLES) for array in gradients))))
    return Answer(round_to(result_type, value), [round_to(name, array) for name, array in zip(types, gradients)],
                  result_type)


# ------------------------------------------------------------- losses over rows --

#: Their parameters, in the catalogue's order, with the defaults.
ROW_LOSSES = {
    "cross_entropy": {"ignore_index": -100, "label_smoothing": 0, "z_loss": 0, "softcap": 0, "temperature": 1},
    "cross_entropy_with_probabilities": {"label_smoothing": 0, "z_loss": 0, "softcap": 0, "temperature": 1},
    "nll": {"ignore_index": -100},
    "log_prob": {"ignore_index": -100, "softcap": 0, "temperature": 1},
    "poly": {"ignore_index": -100, "epsilon": 2, "softcap": 0, "temperature": 1},
    "softmax_focal": {"ignore_index": -100, "alpha": 1, "gamma": 2, "softcap": 0, "temperature": 1},
    "generalized_cross_entropy": {"ignore_index": -100, "q": 0.7, "softcap": 0, "temperature": 1},
}

#: Float64's numbers, not rounded to another type. Of each row the value, the sum of its terms' magnitudes, the logarithm
#: of the sum of exponentials and the predicted class; gradients for the input and, where the target has probabilities,
#: for these; the sums of the magnitudes of the first one's terms; and what a mean was divided by.
RowsAnswer = namedtuple("RowsAnswer", "value row_values row_value_sizes gradients gradient_sizes log_sum_exp predicted "
                        "divided_by")


def answer_rows(loss, input, target, axis=None, reduction="mean", class_weight=None, weight=None, mask=None,
                divisor=None, over_elements=False, upstream=1.0, **parameters):
    """What a loss over rows must be near, to about 100 bits; axis None is PyTorch's. The target has class indices, or
    probabilities if the loss is named so. Raises PyTorch's IndexError."""
    known = ROW_LOSSES[loss]
    assert set(parameters) <= set(known), f"{loss} has the parameters {', '.join(known)}"
    axis = (0 if np.ndim(input) == 1 else 1) if axis is None else axis
    by_row = np.moveaxis(np.asarray(input, np.float64), axis, -1)
    shape, classes = by_row.shape[:-1], by_row.shape[-1]
    rows = math.prod(shape)
    if reduction == "batchmean":
        divisor = float(shape[0]) if shape else 1.0
    kept = []  # which the question points to

    def pointer(array, kind=np.float64):
        if array is None:
            return None
        kept.append(np.ascontiguousarray(array, kind))
        return kept[-1].ctypes.data_as(
            {np.float64: DOUBLES, np.int64: ctypes.POINTER(ctypes.c_int64)}.get(kind, ctypes.POINTER(ctypes.c_ubyte)))

    def of_rows(array, kind=np.float64):
        return None if array is None else pointer(np.broadcast_to(np.asarray(array, kind), shape), kind)

    def output(*of_shape, kind=np.float64):
        return np.empty(of_shape, kind)

    has_labels = loss != "cross_entropy_with_probabilities"
    given = [parameters.get(name, default) for name, default in known.items()]
    none = reduction == "none"
    value, row_values, sizes = output(*(shape if none else ())), output(*shape), output(*shape)
    gradients = [output(*by_row.shape) for _ in range(1 if has_labels else 2)]
    gradient_sizes, lse, divided_by = output(*by_row.shape), output(*shape), output()
    predicted = output(*shape, kind=np.int64)
    bad = _LIBRARY.oracle_answer_rows(Rows(
        loss.encode(), (ctypes.c_double * len(given))(*given), len(given), REDUCTIONS[reduction], over_elements, rows,
        classes, divisor or 0.0, pointer(by_row), of_rows(target, np.int64) if has_labels else None,
        None if has_labels else pointer(np.moveaxis(np.asarray(target, np.float64), axis, -1)), pointer(class_weight),
        of_rows(weight), of_rows(None if mask is None else np.asarray(mask) != 0, np.uint8),
        of_rows(upstream) if none else pointer(upstream), value.ctypes.data_as(DOUBLES),
        row_values.ctypes.data_as(DOUBLES), sizes.ctypes.data_as(DOUBLES),
        (DOUBLES * 2)(*(array.ctypes.data_as(DOUBLES) for array in gradients)), gradient_sizes.ctypes.data_as(DOUBLES),
        lse.ctypes.data_as(DOUBLES), predicted.ctypes.data_as(ctypes.POINTER(ctypes.c_int64)),
        divided_by.ctypes.data_as(DOUBLES)))
    if bad >= 0:
        raise IndexError(f"Target {np.asarray(target).reshape(-1)[bad]} is out of bounds.")
    back = [np.moveaxis(array, -1, axis) for array in (*gradients, gradient_sizes)]
    return RowsAnswer(value, row_values, sizes, back[:-1], back[-1], lse, predicted, divided_by)


# --------------------------------------------------------------- vector losses --

#: Their operands, of which the target of cosine_embedding and of multi_margin has a number a row and class_weight, which
#: may be left out, a number a class, and that of multilabel_margin the shape of the input; and parameters with defaults.
VECTOR_LOSSES = {
    "cosine_similarity": (["input1", "input2"], {"eps": 1e-8}),
    "cosine_embedding": (["input1", "input2", "target"], {"margin": 0}),
    "pairwise_distance": (["input1", "input2"], {"p": 2, "eps": 1e-6}),
    "triplet_margin": (["anchor", "positive", "negative"], {"margin": 1, "p": 2, "eps": 1e-6, "swap": 0}),
    "multi_margin": (["input", "target", "class_weight"], {"p": 1, "margin": 1}),
    "multilabel_margin": (["input", "target"], {}),
    "tversky": (["input", "target"], {"alpha": 0.5, "beta": 0.5, "smooth": 0, "eps": 1e-7}),
    "tversky_with_logits": (["input", "target"], {"alpha": 0.5, "beta": 0.5, "smooth": 0, "eps": 1e-7}),
    "kl_div_with_logits": (["input", "target"], {"temperature": 1}),
    "js_div_with_logits": (["input", "target"], {"beta": 0.5, "temperature": 1}),
    "tv_distance_with_logits": (["input", "target"], {"temperature": 1}),
}

#: The least and the most that the value and each vector's gradient, at the common shape, may be: pairs of float64's arrays.
VectorsAnswer = namedtuple("VectorsAnswer", "value gradients")


def answer_vectors(loss, operands, axis=-1, in_float=True, reduction="mean", weight=None, mask=None, **parameters):
    """What a loss of vectors, which are everything from the axis on, and its gradients must lie in."""
    names, known = VECTOR_LOSSES[loss]
    assert set(parameters) <= set(known), f"{loss} has the parameters {', '.join(known)}"
    count = _LIBRARY.oracle_vector_operands(loss.encode())
    shape = np.broadcast_shapes(*(np.shape(operand) for operand in operands[:count]))
    rows = shape[:axis]
    kept = []  # which the question points to

    def pointer(array, of_shape, kind=np.float64):
        if array is None:
            return None
        kept.append(np.ascontiguousarray(np.broadcast_to(np.asarray(array, kind), of_shape)))
        return kept[-1].ctypes.data_as(DOUBLES if kind is np.float64 else ctypes.POINTER(ctypes.c_ubyte))

    given = [parameters.get(name, default) for name, default in known.items()]
    value = np.empty((*(rows if reduction == "none" else ()), 2))
    gradients = [np.empty((*shape, 2)) for _ in range(count)]
    _LIBRARY.oracle_answer_vectors(Vectors(
        loss.encode(), (ctypes.c_double * len(given))(*given), len(given), REDUCTIONS[reduction], False, in_float,
        math.prod(rows), math.prod(shape[axis:]),
        0.0 if reduction != "batchmean" else float(rows[0]) if rows else 1.0,
        (DOUBLES * OPERANDS)(*(pointer(array, shape if k < count or loss == "multilabel_margin" else rows if k == count else np.shape(array))
                               for k, array in enumerate(operands))),
        pointer(weight, rows), pointer(None if mask is None else np.asarray(mask) != 0, rows, np.uint8), None,
        value.ctypes.data_as(RANGES), (RANGES * OPERANDS)(*(array.ctypes.data_as(RANGES) for array in gradients)), None,
        (DOUBLES * OPERANDS)(), None, None))
    return VectorsAnswer((value[..., 0], value[..., 1]), [(array[..., 0], array[..., 1]) for array in gradients])
