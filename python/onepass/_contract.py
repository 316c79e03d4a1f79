"""PyTorch's contract: its reductions, messages and rules, for tensors and arrays alike."""

import operator
import sys
import warnings
from collections import namedtuple

# The reductions, and the library's numbers for them. Only kl_div and the losses that PyTorch lacks have a batchmean.
CODES = {"mean": 0, "sum": 1, "none": 2}
MEAN, SUM, NONE, BATCHMEAN = 0, 1, 2, 3
ALL_CODES = {**CODES, "batchmean": BATCHMEAN}
MEAN_OF_ALL = 4  # the extension's own: a mean over the elements that take part, whatever their weights
NAMES = {MEAN: "mean", SUM: "sum", NONE: "none", BATCHMEAN: "batchmean", MEAN_OF_ALL: "mean"}

SIZES_DIFFER = ("Using a target size ({}) that is different to the input size ({}). This will likely lead to incorrect "
                "results due to broadcasting. Please ensure they have the same size.")
WEIGHT_DIFFERS = "Weights and input must have the same size."
VARIANCE_NEGATIVE = "var has negative entry/entries"
MEAN_OF_KL_DIV = ("reduction: 'mean' divides the total loss by both the batch size and the support size."
                  "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
                  "'mean' will be changed to behave the same as 'batchmean' in the next major release.")

# What a call may have beside two operands, parameters and a reduction.
Given = namedtuple("Given", "third weight mask broadcast_weight size_average reduce",
                   defaults=(None, None, None, False, None, None))
NOTHING = Given()

# What a loss over rows may have that PyTorch's function has not.
# counts_rows: whether a mean is over the rows' number, whatever their classes and they themselves weigh.
RowGiven = namedtuple("RowGiven", "z_loss softcap temperature row_weight mask divisor dtype inplace returns counts_rows",
                      defaults=(0.0, None, 1.0, None, None, None, None, False, (), False))
NOTHING_OVER_ROWS = RowGiven()


_NUMPY_BOOLS = ("numpy", "bool_"), ("numpy", "bool")  # before NumPy 2, and since


def checked_flag(called, flag):
    """True or False; PyTorch's functions take nothing else, so that "no" is not yes. NumPy has bools of its own."""
    if not isinstance(flag, bool) and (type(flag).__module__, type(flag).__name__) not in _NUMPY_BOOLS:
        raise TypeError(f"{called} is {flag!r}; expected True or False")
    return bool(flag)


def row_code(reduction, given):
    """The extension's number of a reduction over rows."""
    of_rows = given.counts_rows and reduction == "mean" and given.divisor is None
    return MEAN_OF_ALL if of_rows else ALL_CODES[reduction]


# ----------------------------------------------------------------- the losses --

# Operands of different sizes are broadcast with a warning or quietly, or the target's must be broadcast to the input's,
# or they must be equal (with one text or the other), or have as many dimensions.
WARN, QUIET, TO_INPUT, EQUAL, EQUAL_LOGITS, DIMENSIONS = range(6)

#: sizes: one of those above.
#: mean_of_all: a weighted mean is over the elements rather than over their weights.
#: free_weight: a weight may broadcast; else, as PyTorch's function has a weight that may not, it has the input's size
#: unless the caller says otherwise.
#: has_batchmean, strict_reductions: whether there is a batchmean; whether the mean's old name is unknown.
#: two_decide: third operand and weight have no say in the result's type.
#: layout: the operand whose strides a result without a reduction has.
Contract = namedtuple("Contract",
                      "sizes mean_of_all free_weight has_batchmean strict_reductions two_decide layout",
                      defaults=(WARN, False, True, False, False, False, 0))

CONTRACTS = {
    "mse": Contract(free_weight=False),
    "l1": Contract(free_weight=False),
    "huber": Contract(free_weight=False, mean_of_all=True),
    "smooth_l1": Contract(),
    "soft_margin": Contract(sizes=TO_INPUT),
    "hinge_embedding": Contract(sizes=QUIET, layout=1),
    "margin_ranking": Contract(sizes=DIMENSIONS, layout=2),
    "bce": Contract(sizes=EQUAL, mean_of_all=True, two_decide=True),
    "bce_with_logits": Contract(sizes=EQUAL_LOGITS, mean_of_all=True, two_decide=True, layout=1),
    "bce_with_logits_pos_weight": Contract(sizes=EQUAL_LOGITS, mean_of_all=True, two_decide=True, layout=1),
    "focal": Contract(sizes=EQUAL_LOGITS, strict_reductions=True),
    "focal_squared": Contract(sizes=EQUAL_LOGITS, strict_reductions=True),
    "poisson_nll": Contract(sizes=QUIET, strict_reductions=True),
    "poisson_nll_full": Contract(sizes=QUIET, strict_reductions=True),
    "poisson_nll_rate": Contract(sizes=QUIET, strict_reductions=True),
    "poisson_nll_rate_full": Contract(sizes=QUIET, strict_reductions=True),
    "gaussian_nll": Contract(sizes=QUIET, strict_reductions=True, layout=2),
    "kl_div": Contract(sizes=QUIET, has_batchmean=True, layout=1),
    "kl_div_log_target": Contract(sizes=QUIET, has_batchmean=True, layout=1),
}
_OTHER = Contract(has_batchmean=True)


def contract_of(name):
    """The contract of a loss; those that PyTorch lacks have one for all."""
    return CONTRACTS.get(name, _OTHER)


# ------------------------------------------------------------------ the checks --


def code_of(reduction, codes=CODES):
    """The library's number of a reduction; None if it is none of these, whatever it is: a list, say."""
    return codes.get(reduction) if isinstance(reduction, str) else None


def warn(message):
    """Of the call of a public function, or of what patch_torch has put in its place: the warning points at the caller.
    """
    level, frame = 2, sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") in _OURS:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)


_OURS = {f"{__package__}.{name}" for name in ("_numpy", "_numpy_margins", "_numpy_rows", "_numpy_vectors",
                                              "_rows", "_torch", "functional", "margins", "patch", "vectors")}


def check_sizes(sizes, input, target, third):
    """PyTorch's complaints about sizes that broadcasting would not bring."""
    if sizes == EQUAL and target.shape != input.shape:
        raise ValueError(f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is "
                         "deprecated. Please ensure they have the same size.")
    if sizes == EQUAL_LOGITS and target.shape != input.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    if sizes == DIMENSIONS and not input.ndim == target.ndim == third.ndim:
        raise RuntimeError("margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
                           f"{input.shape}, input2: {target.shape}, target: {third.shape} ")


def checked_dim(dim):
    if type(dim) is int:
        return dim
    try:
        return operator.index(dim)
    except TypeError:
        raise TypeError(f"dim is {dim!r}; expected an int") from None


def check_axis(dimensions, axis):
    """That a vector's first dimension, as onepass_call has it, is one of so many."""
    if not -dimensions <= axis <= dimensions or axis == 0:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-dimensions}, {dimensions - 1}], but "
                         f"got {axis - 1 if axis > 0 else axis})")


def check_reduction(name, reduction):
    """PyTorch's complaint about one that the loss does not have. Some know three words only, and have words of their
    own for others; the rest still take an old name of the mean."""
    contract = contract_of(name)
    if code_of(reduction, ALL_CODES if contract.has_batchmean else CODES) is not None or \
            (not contract.strict_reductions and reduction == "elementwise_mean"):
        return
    if name.startswith("focal"):
        raise ValueError(f"Invalid Value for arg 'reduction': '{reduction} \n Supported reduction modes: 'none', "
                         "'mean', 'sum'")
    raise ValueError(f"{reduction} is not valid" if name == "gaussian_nll" else
                     f"{reduction} is not a valid value for reduction")


def fitted_variance(input, variance):
    """The variance of gaussian_nll_loss with a dimension more where it has one less than the input."""
    if variance.shape == input.shape:
        return variance
    if variance.shape == input.shape[:-1]:
        return variance[..., None]
    if variance.ndim == input.ndim and sum(own for other, own in zip(input.shape, variance.shape) if own != other) == 1:
        return variance
    raise ValueError("var is of incorrect size")


def common_shape(*shapes):
    """What the shapes broadcast to; None if they do not."""
    common = shapes[0]
    for shape in shapes[1:]:
        if common is not None and shape != common:
            common = shape_of_two(common, shape)
    return common


def shape_of_two(one, other):
    longer, shorter = (one, other) if len(one) >= len(other) else (other, one)
    missing = len(longer) - len(shorter)
    common = list(longer)
    for d in range(missing, len(longer)):
        extent = shorter[d - missing]
        if longer[d] == 1:
            common[d] = extent
        elif extent != 1 and extent != longer[d]:
            return None
    return tuple(common)


def broadcasts_to(shape, common):
    """Whether a shape broadcasts to the common one, without a say in it."""
    missing = len(common) - len(shape)
    if missing < 0:
        return False
    for d in range(len(shape)):
        if shape[d] != 1 and shape[d] != common[d + missing]:
            return False
    return True
