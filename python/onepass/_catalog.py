"""The library's catalogue: its losses, the functions that compute them, and the parameters that they take."""

import decimal
import numbers
import sys

from . import _native

CATALOG = {loss["name"]: loss for loss in _native.losses()}
ROW_CATALOG = {loss["name"]: loss for loss in _native.row_losses()}
VECTOR_CATALOG = {loss["name"]: loss for loss in _native.vector_losses()}

#: Of each function that is written out in functional.py: the library's losses, and when it computes which; None for
#: what is but a faster way.
WRITTEN = {
    "mse_loss": {"mse": ""},
    "l1_loss": {"l1": ""},
    "smooth_l1_loss": {"smooth_l1": ""},
    "huber_loss": {"huber": ""},
    "hinge_loss": {"hinge": ""},
    "soft_margin_loss": {"soft_margin": ""},
    "hinge_embedding_loss": {"hinge_embedding": ""},
    "margin_ranking_loss": {"margin_ranking": ""},
    "binary_cross_entropy": {"bce": ""},
    "binary_cross_entropy_with_logits": {"bce_with_logits": "", "bce_with_logits_pos_weight": "with pos_weight"},
    "sigmoid_focal_loss": {"focal": "", "focal_squared": None},
    "poisson_nll_loss": {"poisson_nll": "", "poisson_nll_full": "with full=True",
                         "poisson_nll_rate": "with log_input=False",
                         "poisson_nll_rate_full": "with log_input=False, full=True"},
    "gaussian_nll_loss": {"gaussian_nll": ""},
    "kl_div": {"kl_div": "", "kl_div_log_target": "with log_target=True"},
}

#: The same of losses over rows.
ROWS_WRITTEN = {
    "cross_entropy": {"cross_entropy": "", "cross_entropy_with_probabilities": "where target has the shape of input"},
    "nll_loss": {"nll": ""},
    "log_prob": {"log_prob": ""},
    "softmax_focal_loss": {"softmax_focal": ""},
}


def generated_name(name):
    """Of a loss's function, as PyTorch calls its own: nll_loss, but cross_entropy."""
    return name if name.endswith("cross_entropy") else f"{name}_loss"


#: The losses over rows whose functions and modules are generated, and all functions of such losses.
ROWS_GENERATED = [name for name in ROW_CATALOG if not any(name in losses for losses in ROWS_WRITTEN.values())]
ROWS = {**ROWS_WRITTEN, **{generated_name(name): {name: ""} for name in ROWS_GENERATED}}

#: The losses whose functions and modules are generated: all others.
GENERATED = [name for name in CATALOG if not any(name in losses for losses in WRITTEN.values())]

#: The functions of vector losses, each of one or two of the library's.
VECTORS = {
    "cosine_similarity": ["cosine_similarity"],
    "cosine_embedding_loss": ["cosine_embedding"],
    "pairwise_distance": ["pairwise_distance"],
    "triplet_margin_loss": ["triplet_margin"],
    "multi_margin_loss": ["multi_margin"],
    "multilabel_margin_loss": ["multilabel_margin"],
    "tversky_loss": ["tversky", "tversky_with_logits"],
    "kl_div_with_logits": ["kl_div_with_logits"],
    "js_div_with_logits": ["js_div_with_logits"],
    "tv_distance_with_logits": ["tv_distance_with_logits"],
}

#: Those with a number for each vector: a sign, or the index of one of its elements; or with a list of such indices.
WITH_NUMBERS = {"cosine_embedding", "multi_margin", "multilabel_margin"}
WITH_LABELS = {"multi_margin", "multilabel_margin"}
WITH_LISTS = {"multilabel_margin"}


def needed_operands(known):
    """Those of a loss that cannot be left out."""
    return [name for name in known["operands"] if name != "class_weight"]


def vector_count(name):
    """How many operands of a vector loss are vectors."""
    return len(needed_operands(VECTOR_CATALOG[name])) - (name in WITH_NUMBERS)


_LARGEST = sys.float_info.max
_FUNCTIONS = {name: function for function, losses in (WRITTEN | ROWS | VECTORS).items() for name in losses}


def function_of(name):
    """The function that computes a loss, which is what its callers know."""
    return _FUNCTIONS.get(name) or generated_name(name)


def losses_of(function):
    """What a function of the package computes: entries of the catalogue, and when it is which."""
    if function in ROWS:
        return [(ROW_CATALOG[name], when) for name, when in ROWS[function].items()]
    losses = WRITTEN.get(function, {function.removesuffix("_loss"): ""})
    return [(CATALOG[name], when) for name, when in losses.items() if when is not None]


# -------------------------------------------------------------- the parameters --


def check_alpha(least):
    """The least of the classes' alphas of softmax_focal_loss, as the number that alpha may be."""
    check_range("softmax_focal", next(one for one in ROW_CATALOG["softmax_focal"]["parameters"]
                                      if one["name"] == "alpha"), least)


def default_of(parameter):
    """An index is a whole number in Python, too."""
    return int(parameter["default"]) if parameter["name"] == "ignore_index" else parameter["default"]


def is_number(value):
    """Whether it is a real number: Python's, NumPy's, a fraction, a decimal."""
    return isinstance(value, (float, int)) or isinstance(value, (numbers.Real, decimal.Decimal))


def plain_number(value):
    """Python's number in the place of NumPy's, and of an array or a tensor without dimensions."""
    return value.item() if getattr(value, "shape", None) == () else value


def checked_divisor(value, otherwise=""):
    """A positive number, of which an array or a tensor of one element is one; `otherwise` is what else might have been
    given."""
    if not isinstance(value, (float, int)):
        count = value.numel() if hasattr(value, "numel") else getattr(value, "size", None)  # NumPy's numbers have 1
        value = value.item() if count == 1 else value
    if not is_number(value):
        raise TypeError(f"divisor is {value!r}; expected a number{otherwise}")
    if value != value or not 0 < value <= _LARGEST:
        raise ValueError(f"divisor is {value}; expected a positive number")
    return float(value)


def as_numbers(name, values):
    """The parameters of a loss as Python's numbers; an array without dimensions is one, too."""
    return tuple([as_number(name, known, value) for known, value in zip(CATALOG[name]["parameters"], values)])


def as_number(name, known, value, function=None):
    """For errors, `function` is who was called, if that is not the loss's own function."""
    if type(value) is float:
        return value
    value = plain_number(value)
    check_index(name, known, value)
    if not is_number(value):
        raise TypeError(f"{known['name']} of {function or function_of(name)} is {type(value).__name__}; expected a real "
                        "number")
    try:
        return float(value)
    except OverflowError:
        raise OverflowError(f"{known['name']} of {function or function_of(name)} is an integer beyond the largest "
                            "double; expected a number that a double can hold") from None


def check_whole(value):
    """That ignore_index is a whole number, and none that merely equals one."""
    if not isinstance(value, int):
        raise TypeError(f"ignore_index is {value!r}; expected an int")


def check_index(name, known, value):
    """Before it is a double, which does not have every larger one."""
    if known["name"] == "ignore_index" and isinstance(value, int) and abs(value) > known["maximum"]:
        raise ValueError(f"ignore_index of {function_of(name)} is {value}; expected a whole number from -2^53 to 2^53")


def check_parameters(name, values):
    """The library's complaint about a number that a loss does not take; what is no number is not for it to judge."""
    for value, known in zip(values, CATALOG[name]["parameters"]):
        if isinstance(value, (float, int)):
            check_range(name, known, value)


def check_range(name, known, value, function=None):
    low, high = known["minimum"], known["maximum"]
    if not (low <= value <= high) or (known["minimum_excluded"] and value == low) or \
            (known["maximum_excluded"] and value == high):
        expected = range_of(known)
        if value in (low, high) and abs(value) == float("inf"):
            expected = "a finite number" if expected == ANY_NUMBER else f"a finite number, {expected}"
        raise ValueError(f"{known['name']} of {function or function_of(name)} is {in_digits(value)}; expected "
                         f"{expected}")


def in_digits(number):
    """For a message: short where that is the same number, and else with all its digits. Rounded ones contradict each
    other: "1; expected below 1"."""
    text = f"{number:g}"
    return text if float(text) == number else str(number).removesuffix(".0")


ANY_NUMBER = "any number"


def range_of(parameter):
    """What a parameter may be, in words."""
    low = f"{'above' if parameter['minimum_excluded'] else 'at least'} {in_digits(parameter['minimum'])}"
    high = f"{'below' if parameter['maximum_excluded'] else 'at most'} {in_digits(parameter['maximum'])}"
    ends = [words for words, end in ((low, "minimum"), (high, "maximum")) if abs(parameter[end]) != float("inf")]
    return " and ".join(ends) or ANY_NUMBER
