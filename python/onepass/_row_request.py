"""One computation of a loss over rows, as the extension, the operators and the fallback are told it alike."""

from collections import namedtuple

import torch

from ._catalog import ROW_CATALOG
from ._contract import ALL_CODES, code_of
from ._torch_checks import TYPES, check_reach, row_number, row_parameter
from ._torch_state import is_in_single

#: name: of the row catalogue. code: the reduction. parameters: in the catalogue's order. axis: of the classes, as
#: onepass_call has it. dtype: the value's, or None for PyTorch's choice. divisor: a number, or None.
Request = namedtuple("Request", "name code parameters axis dtype divisor")

#: The tensors of one, each but the first two may be None.
Tensors = namedtuple("Tensors", "input target weight row_weight mask divisor", defaults=(None,) * 4)

LABELS = (torch.int64, torch.int32, torch.uint8)
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
MASKS = (torch.bool, torch.uint8)
NUMBERS = {dtype: number for number, dtype in enumerate(FLOATS, 1)}  # the library's for them
MOST_IGNORED = 2**53  # whole numbers up to which a double has every one

# What may come with a value, as python/native/rows.c has it: first the operands' gradients.
FOR_INPUT, FOR_TARGET, FOR_THIRD, STATE, LSE, PREDICTED, DIVIDED_BY = 1, 2, 4, 8, 16, 32, 64
STATE_SIZE = 5  # doubles a row
LONGEST_AT_ONCE = 8192  # classes up to which a GPU keeps a row in its registers, ...
LONGEST_OF_LABELS = 32768  # ... or with labels that are not smoothed, but for float64, ...
LONGEST_OF_CLUSTERS = 131072  # ... or, of bfloat16, several of its multiprocessors together
LONG_ROWS = 1024  # classes up to which a row is summed again sooner than its state is written and read

WITH_PROBABILITIES = "cross_entropy_with_probabilities"
_NUMBERS_ALWAYS = ("ignore_index", "label_smoothing")  # PyTorch has no derivatives for them
_NARROW_ON_CPU = ("cosine_similarity", "pairwise_distance")  # which PyTorch's autocast on the CPU leaves in 16 bits


def parameters_of(name, function=None, **given):
    """In the catalogue's order, checked, as Python's numbers where they can be had, else as tensors; what the loss does
    not have is left out, and None is the default. `function` is who was called, if not the loss's own."""
    return all_parameters(name, function, given, _NUMBERS_ALWAYS)


def numbers_of(name, function, but=None, **given):
    """The same for whoever has no derivatives for parameters, but for one of them: as Python's numbers."""
    return all_parameters(name, function, given, [known["name"] for known in ROW_CATALOG[name]["parameters"]
                                                  if known["name"] != but])


def all_parameters(name, function, given, numbers):
    """`numbers` are the names of those that are no tensors in any case."""
    found = []
    for known in ROW_CATALOG[name]["parameters"]:
        value = given.get(known["name"])
        if value is None:
            value = known["default"]
        else:
            value = (row_number if known["name"] in numbers else row_parameter)(name, known, value, function)
        found.append(value)
    return tuple(found)


def named(request):
    """The parameters by their names."""
    return dict(zip([known["name"] for known in ROW_CATALOG[request.name]["parameters"]], request.parameters))


def class_axis(input, axis):
    """Counted from 0."""
    return axis % input.dim() if axis < 0 else axis - 1 if axis else min(1, input.dim() - 1)


def rows_shape(input, axis):
    axis = class_axis(input, axis)
    return input.shape[:axis] + input.shape[axis + 1:]


def classes_of(input, axis):
    return input.shape[class_axis(input, axis)]


def keeps_state(request, classes):
    """Whether backward needs the rows' state to read each logit once."""
    return classes > LONG_ROWS and request.name != "nll"


def is_quicker_apart(request, input, classes):
    """Whether a GPU is done sooner if backward computes the gradient from the rows' state: it reads longer rows twice in
    any case. Capped ones have no kernel for that."""
    if classes <= LONGEST_AT_ONCE or not input.is_cuda:
        return False
    parameters = named(request)
    in_cluster = input.dtype == torch.bfloat16 and classes % 8 == 0
    longest = LONGEST_OF_CLUSTERS if in_cluster else LONGEST_OF_LABELS
    kept = input.element_size() <= 4 and classes <= longest and classes % 4 == 0 and has_labels(request) and \
        not parameters.get("label_smoothing")
    return not kept and not parameters.get("softcap")


def has_labels(request):
    return request.name != WITH_PROBABILITIES


def result_type(request, tensors, in_single):
    """The value's type, as the extension has it."""
    if request.dtype is not None:
        return request.dtype
    input, target, weight, row_weight, *_ = tensors
    deciding = [] if has_labels(request) else [x for x in (target, weight) if x is not None]
    if row_weight is not None and row_weight.dim() > 0:
        deciding.append(row_weight)
    dtype = input.dtype
    for tensor in deciding:
        dtype = torch.promote_types(dtype, tensor.dtype)
    return torch.float32 if in_single and dtype in (torch.float16, torch.bfloat16) else dtype


def check_row_tensors(weight, mask, rows, called="weight"):
    """That weights and a mask of rows can be these; `called` is what the function calls the weights."""
    if weight is not None:
        if weight.dtype not in FLOATS:
            raise TypeError(f"{called} is of {weight.dtype}; expected a floating point type")
        check_reach(called, weight, rows)
    if mask is not None:
        if mask.dtype not in MASKS:
            raise TypeError(f"mask is of {mask.dtype}; expected torch.bool or torch.uint8")
        check_reach("mask", mask, rows)


def is_known(reduction):
    return code_of(reduction, ALL_CODES) is not None


def casts(name, device_type):
    """Whether autocast makes float32 of it, as of PyTorch's function."""
    return is_in_single(device_type) and not (device_type == "cpu" and name in _NARROW_ON_CPU)


def are_plain(tensors):
    return all(tensor is None or type(tensor) in TYPES for tensor in tensors)
