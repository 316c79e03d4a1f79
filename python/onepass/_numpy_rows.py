"""Losses over rows of NumPy's arrays: any strides, float16, float32 and float64, labels of int64, int32 and uint8."""

import numpy

from . import _contract, _native
from ._catalog import ROW_CATALOG, as_number, check_alpha, check_range, check_whole, checked_divisor, is_number
from ._catalog import plain_number
from ._contract import ALL_CODES, MEAN, NOTHING_OVER_ROWS, row_code
from ._row_cuts import cuts
from ._numpy import FLOATS, LABELS, aligned, check_floats, check_mask, check_reach, check_type

AT_ONCE = 2**17  # elements of which an entropy has temporaries at a time
_WITH_PROBABILITIES = "cross_entropy_with_probabilities"


# ----------------------------------------------------------------- the functions --


def cross_entropy(input, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing, given):
    given = given or NOTHING_OVER_ROWS
    check_inplace(given.inplace)
    name = _WITH_PROBABILITIES if input.shape == target.shape else "cross_entropy"
    target = target if name == _WITH_PROBABILITIES else of_one_row(input, target)
    if name == _WITH_PROBABILITIES and is_number(ignore_index) and ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    smoothing = plain_number(label_smoothing)
    smoothing = max(smoothing, 0) if is_number(smoothing) else smoothing
    parameters = parameters_of(name, ignore_index=ignore_index, label_smoothing=smoothing, z_loss=given.z_loss,
                               softcap=given.softcap, temperature=given.temperature)
    return loss(name, input, target, weight, reduction_of(size_average, reduce, reduction), parameters, given)


def nll_loss(input, target, weight, size_average, ignore_index, reduce, reduction, given):
    parameters, given = parameters_of("nll", ignore_index=ignore_index), given or NOTHING_OVER_ROWS
    reduction = reduction_of(size_average, reduce, reduction)
    return loss("nll", input, of_one_row(input, target), weight, reduction, parameters, given)


def log_prob(logits, labels, temperature, softcap, ignore_index, return_entropy, dtype, inplace):
    check_inplace(inplace)
    parameters = parameters_of("log_prob", ignore_index=ignore_index, softcap=softcap, temperature=temperature)
    given = _contract.RowGiven(dtype=dtype)
    value = loss("log_prob", logits, labels, None, "none", parameters, given, axis=-1)
    return (value, entropy(logits, labels, softcap, temperature, ignore_index).astype(value.dtype)) \
        if return_entropy else value


def generated(name, input, target, weight, parameters, reduction, given):
    """A loss that PyTorch does not have, made of the catalogue."""
    parameters = parameters_of(name, **dict(zip(names_of(name), parameters)))
    if given.counts_rows and isinstance(weight, numpy.ndarray) and weight.dtype.kind == "f" and weight.size > 0:
        check_alpha(float(weight.min()))
    return loss(name, input, target, weight, reduction_of(None, None, reduction), parameters, given)


def loss(name, input, target, weight, reduction, parameters, given, axis=0):
    if name == _WITH_PROBABILITIES and "accuracy" in given.returns:
        raise ValueError("return_accuracy is set, but target has class probabilities; expected class indices")
    arrays, rows = checked(name, input, target, weight, given, axis)
    dtype = result_type(name, arrays) if given.dtype is None else checked_type(given.dtype)
    value = numpy.empty(rows if reduction == "none" else (), dtype)
    wide = numpy.result_type(numpy.float32, *(array.dtype for array in arrays[:4]
                                              if array is not None and array.dtype.kind == "f"))
    lse = numpy.empty(rows, wide) if "lse" in given.returns or "z_loss" in given.returns else None
    predicted = numpy.empty(rows, numpy.int64) if "accuracy" in given.returns else None
    run(name, arrays, parameters, row_code(reduction, given), axis, given.divisor, value, None, lse, predicted)
    value = value if reduction == "none" else value[()]
    return value if not given.returns else (value, *returned(name, arrays, parameters, reduction, axis, given, lse,
                                                             predicted))


def value_and_grad(name, input, target, parameters, reduction, given):
    axis = -1 if name == "log_prob" else 0
    parameters = parameters_of(name, **dict(zip(names_of(name), parameters)))
    row_given = _contract.RowGiven(row_weight=given.weight, mask=given.mask)
    arrays, _ = checked(name, input, target, given.third, row_given, axis)
    value, gradient = numpy.empty((), result_type(name, arrays)), numpy.empty(input.shape, input.dtype)
    run(name, arrays, parameters, ALL_CODES[reduction], axis, None, value, gradient, None, None)
    return value[()], gradient


def run(name, arrays, parameters, code, axis, divisor, value, gradient, lse, predicted):
    _native.numpy_run(name, code, parameters, axis, *arrays, value, gradient, lse, predicted,
                      divisor_number(divisor, code))


# -------------------------------------------------------------------- the checks --


def parameters_of(name, **given):
    """In the catalogue's order, checked; what the loss does not have is left out, and None is the default."""
    found = []
    for known in ROW_CATALOG[name]["parameters"]:
        value = plain_number(given.get(known["name"]))
        if known["name"] == "ignore_index":
            check_whole(value)
        value = known["default"] if value is None else as_number(name, known, value)
        check_range(name, known, value)
        found.append(value)
    return tuple(found)


def names_of(name):
    return [known["name"] for known in ROW_CATALOG[name]["parameters"]]


def reduction_of(size_average, reduce, reduction):
    if size_average is not None or reduce is not None:
        reduction = "none" if reduce is False else "sum" if size_average is False else "mean"
        _contract.warn(f"size_average and reduce args will be deprecated, please use reduction={reduction!r} instead.")
    if _contract.code_of(reduction, ALL_CODES) is None:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def divisor_number(divisor, code):
    """For the library, to which 0 is none."""
    if divisor is None:
        return 0.0
    if code != MEAN:
        raise ValueError("divisor is set, but reduction is not 'mean', which it takes the place of the number of rows "
                         "in")
    return checked_divisor(divisor)


def check_inplace(inplace):
    if inplace:
        raise ValueError("inplace is set, but arrays have no backward pass that could write over them; expected "
                         "inplace=False")


def checked_type(dtype):
    try:
        found = numpy.dtype(dtype)
    except TypeError:
        found = None
    if found is None or found not in FLOATS or not found.isnative:
        order = "" if found is None or found.isnative else " of this machine"
        raise TypeError(f"dtype is {dtype!r}; expected numpy.float32 or another floating point type{order}")
    return found


def class_axis(input, axis):
    return input.ndim - 1 if axis < 0 else min(1, input.ndim - 1)


def checked(name, input, target, weight, given, axis):
    """The arrays (input, target, weight, row_weight, mask) as the library wants them, and the rows' shape; or an error
    that names what is wrong."""
    first, second = ("logits", "labels") if name == "log_prob" else ("input", "target")
    check_floats(input, first)
    if input.ndim == 0:
        raise ValueError(f"{first} has no dimensions; expected at least one, that of the classes")
    axis = class_axis(input, axis)
    rows = input.shape[:axis] + input.shape[axis + 1:]
    if name == _WITH_PROBABILITIES:
        check_floats(target, "target")
        if target.shape != input.shape:
            raise ValueError(f"target of shape {target.shape} beside input of shape {input.shape}; expected the same")
    else:
        check_labels(target, rows, second)
    if weight is not None:
        check_floats(weight, "weight")
        if weight.shape != (input.shape[axis],):
            raise ValueError(f"weight of shape {weight.shape}; expected {(input.shape[axis],)}, one for each class")
    if given.row_weight is not None:
        check_floats(given.row_weight, "row_weight")
        check_reach("row_weight", given.row_weight, rows)
    if given.mask is not None:
        check_mask(given.mask, rows)
    return [aligned(array) for array in (input, target, weight, given.row_weight, given.mask)], rows


def of_one_row(input, target):
    """PyTorch takes the label of a single row with a dimension, too."""
    return target.reshape(()) if input.ndim == 1 and target.shape == (1,) else target


def check_labels(target, rows, called):
    check_type(target, called, LABELS, "int64, int32 or uint8")
    if target.shape != rows:
        raise ValueError(f"{called} of shape {target.shape}; expected {rows}, a class index for each row")


def result_type(name, arrays):
    input, target, weight, row_weight, _ = arrays
    deciding = [input] if name != _WITH_PROBABILITIES else [input, target, *([] if weight is None else [weight])]
    if row_weight is not None and row_weight.ndim > 0:
        deciding.append(row_weight)
    return numpy.result_type(*(array.dtype for array in deciding))


# ------------------------------------------------------------- what else comes back --


def returned(name, arrays, parameters, reduction, axis, given, lse, predicted):
    for wanted in given.returns:
        if wanted == "lse":
            yield lse
        elif wanted == "z_loss":
            yield z_loss_of(name, arrays, parameters, reduction, axis, given, lse)
        else:
            takes_part = predicted >= 0
            right = (predicted == arrays[1]) & takes_part
            with numpy.errstate(invalid="ignore"):
                yield right.astype(numpy.float32) if reduction == "none" else numpy.float32(right.sum()) / \
                    numpy.float32(takes_part.sum())


def z_loss_of(name, arrays, parameters, reduction, axis, given, lse):
    """The loss less what it would be without z_loss has lost its digits: so it is computed of the log-sum-exp."""
    each = dict(zip(names_of(name), parameters))["z_loss"] * lse * lse
    row_weight = arrays[3]
    if row_weight is not None:
        each = numpy.where(lse == 0, 0, each * row_weight)
    if reduction == "none":
        return each
    total = each.sum(dtype=numpy.float64)
    if reduction == "sum":
        return lse.dtype.type(total)
    with numpy.errstate(divide="ignore", invalid="ignore"):
        return lse.dtype.type(total / divisor_of(name, arrays, parameters, reduction, given, lse.shape))


def divisor_of(name, arrays, parameters, reduction, given, rows):
    """What a mean was divided by."""
    _, target, weight, row_weight, mask = arrays
    if reduction == "batchmean":
        return numpy.float64(rows[0] if rows else 1)
    if given.divisor is not None:
        return numpy.float64(checked_divisor(given.divisor))
    takes_part = numpy.ones(rows, bool) if mask is None else numpy.broadcast_to(mask != 0, rows)
    counted = numpy.ones(rows)
    if name != _WITH_PROBABILITIES:
        takes_part = takes_part & (target != int(parameters[0]))
        if weight is not None:
            counted = weight.astype(numpy.float64)[numpy.where(takes_part, target, 0)]
    if row_weight is not None:
        counted = counted * row_weight
    return numpy.where(takes_part, counted, 0).sum(dtype=numpy.float64)


def entropy(logits, labels, softcap, temperature, ignore_index):
    """Of the softmax over the last dimension; 0 of rows that are ignored. Some rows at a time, so that temporaries are
    small."""
    found = numpy.zeros(logits.shape[:-1])
    for rows in cuts(logits.shape, AT_ONCE):
        found[rows] = entropy_of(logits[rows], softcap, temperature)
    return numpy.where(labels == ignore_index, 0, found)


def entropy_of(logits, softcap, temperature):
    z = logits.astype(numpy.float64, order="C")  # in which a row is added up alike beside any others
    z = (softcap * numpy.tanh(z / softcap) if softcap else z) / temperature
    with numpy.errstate(invalid="ignore"):
        z -= z.max(-1, keepdims=True)
        e = numpy.exp(z)
        s = e.sum(-1)
        return numpy.log(s) - numpy.where(e == 0, 0, e * z).sum(-1) / s
