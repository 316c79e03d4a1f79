"""The functions that users call. Tensors decide who computes: PyTorch's go one way, NumPy's arrays the other.

Those that PyTorch has stand here with its signatures. The others are made out of the library's catalogue, at the end.
"""

import sys

from ._catalog import (CATALOG, GENERATED, ROW_CATALOG, ROWS, ROWS_GENERATED, VECTOR_CATALOG, WRITTEN, default_of,
                       generated_name, losses_of, needed_operands)
from ._contract import Given, RowGiven, checked_dim, checked_flag
from ._documentation import documentation_of
from ._generated import FUNCTION, ROW_FUNCTION, made

# ------------------------------------------------------- what PyTorch has, too --


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None, *, mask=None,
             broadcast_weight=False):
    """The squared error, as torch.nn.functional.mse_loss has it."""
    if _overridden(input, target, weight, mask) and _enabled():
        return _override(mse_loss, input, target, size_average, reduce, reduction, weight, mask, broadcast_weight)
    plain = weight is None and mask is None and size_average is None and reduce is None
    given = None if plain else Given(None, weight, mask, broadcast_weight, size_average, reduce)
    return _side(input, target).loss("mse", input, target, (), reduction, given)


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None, *, mask=None,
            broadcast_weight=False):
    """The absolute error, as torch.nn.functional.l1_loss has it."""
    if _overridden(input, target, weight, mask) and _enabled():
        return _override(l1_loss, input, target, size_average, reduce, reduction, weight, mask, broadcast_weight)
    plain = weight is None and mask is None and size_average is None and reduce is None
    given = None if plain else Given(None, weight, mask, broadcast_weight, size_average, reduce)
    return _side(input, target).loss("l1", input, target, (), reduction, given)


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0, *, weight=None,
                   mask=None):
    """The squared error near the target and the absolute error beyond, as torch.nn.functional.smooth_l1_loss has it; a
    beta of 0 is the absolute error."""
    if _overridden(input, target, weight, mask) and _enabled():
        return _override(smooth_l1_loss, input, target, size_average, reduce, reduction, beta, weight, mask)
    plain = weight is None and mask is None and size_average is None and reduce is None
    given = None if plain else Given(None, weight, mask, True, size_average, reduce)
    return _side(input, target).loss("smooth_l1", input, target, (beta,), reduction, given)


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None, *, mask=None, broadcast_weight=False):
    """The squared error near the target and the absolute error beyond, as torch.nn.functional.huber_loss has it."""
    if _overridden(input, target, weight, mask) and _enabled():
        return _override(huber_loss, input, target, reduction, delta, weight, mask, broadcast_weight)
    plain = weight is None and mask is None
    given = None if plain else Given(None, weight, mask, broadcast_weight)
    return _side(input, target).loss("huber", input, target, (delta,), reduction, given)


def hinge_loss(input, target, margin=1.0, reduction="mean", weight=None, *, mask=None):
    """How far the product of prediction and target falls short of a margin, for targets of -1 and 1:
    torch.clamp(margin - input * target, min=0), reduced."""
    if _overridden(input, target, weight, mask) and _enabled():
        return _override(hinge_loss, input, target, margin, reduction, weight, mask)
    plain = weight is None and mask is None
    given = None if plain else Given(None, weight, mask, True)
    return _side(input, target).loss("hinge", input, target, (margin,), reduction, given)


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean", *, weight=None, mask=None):
    """The logistic loss for targets of -1 and 1, as torch.nn.functional.soft_margin_loss has it."""
    if _overridden(input, target, weight, mask) and _enabled():
        return _override(soft_margin_loss, input, target, size_average, reduce, reduction, weight, mask)
    plain = weight is None and mask is None and size_average is None and reduce is None
    given = None if plain else Given(None, weight, mask, True, size_average, reduce)
    return _side(input, target).loss("soft_margin", input, target, (), reduction, given)


def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean", *, weight=None,
                         mask=None):
    """A distance where the target is 1, and how far it falls short of a margin where it is -1, as
    torch.nn.functional.hinge_embedding_loss has it."""
    if _overridden(input, target, weight, mask) and _enabled():
        return _override(hinge_embedding_loss, input, target, margin, size_average, reduce, reduction, weight, mask)
    plain = weight is None and mask is None and size_average is None and reduce is None and reduction != "none"
    given = None if plain else Given(None, weight, mask, True, size_average, reduce)
    return _side(input, target).loss("hinge_embedding", input, target, (margin,), reduction, given)


def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean", *,
                        weight=None, mask=None):
    """How far two inputs fall short of a margin between them, as torch.nn.functional.margin_ranking_loss has it."""
    if _overridden(input1, input2, target, weight, mask) and _enabled():
        return _override(margin_ranking_loss, input1, input2, target, margin, size_average, reduce, reduction, weight,
                         mask)
    given = Given(target, weight, mask, True, size_average, reduce)
    return _side(input1, input2).loss("margin_ranking", input1, input2, (margin,), reduction, given)


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean", *, mask=None):
    """The cross-entropy of a probability with a target from 0 to 1, as torch.nn.functional.binary_cross_entropy has
    it."""
    if _overridden(input, target, weight, mask) and _enabled():
        return _override(binary_cross_entropy, input, target, weight, size_average, reduce, reduction, mask)
    given = Given(None, weight, mask, True, size_average, reduce)
    return _side(input, target).loss("bce", input, target, (), reduction, given)


def binary_cross_entropy_with_logits(input, target, weight=None, size_average=None, reduce=None, reduction="mean",
                                     pos_weight=None, *, mask=None):
    """The binary cross-entropy of sigmoid(input), for logits of any size, as
    torch.nn.functional.binary_cross_entropy_with_logits has it."""
    if _overridden(input, target, weight, pos_weight, mask) and _enabled():
        return _override(binary_cross_entropy_with_logits, input, target, weight, size_average, reduce, reduction,
                         pos_weight, mask)
    plain = weight is None and mask is None and size_average is None and reduce is None and reduction != "none"
    if plain and pos_weight is None:
        return _side(input, target).loss("bce_with_logits", input, target, (), reduction)
    given = Given(pos_weight, weight, mask, True, size_average, reduce)
    name = "bce_with_logits" if pos_weight is None else "bce_with_logits_pos_weight"
    return _side(input, target).loss(name, input, target, (), reduction, given)


def sigmoid_focal_loss(inputs, targets, alpha=0.25, gamma=2, reduction="none", *, weight=None, mask=None):
    """The binary cross-entropy of sigmoid(inputs), less where the prediction is right already, as
    torchvision.ops.sigmoid_focal_loss has it."""
    if _overridden(inputs, targets, weight, mask) and _enabled():
        return _override(sigmoid_focal_loss, inputs, targets, alpha, gamma, reduction, weight, mask)
    squared = isinstance(gamma, (float, int)) and gamma == 2  # a loss of its own: bit-identical and faster
    name, parameters = ("focal_squared", (alpha,)) if squared else ("focal", (alpha, gamma))
    given = None if weight is None and mask is None else Given(None, weight, mask, True)
    return _side(inputs, targets).loss(name, inputs, targets, parameters, reduction, given)


def poisson_nll_loss(input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None,
                     reduction="mean", *, weight=None, mask=None):
    """The negative log-likelihood of a count, as torch.nn.functional.poisson_nll_loss has it; with full, Stirling's
    term for targets beyond 1 is added."""
    if _overridden(input, target, weight, mask) and _enabled():
        return _override(poisson_nll_loss, input, target, log_input, full, size_average, eps, reduce, reduction, weight,
                         mask)
    name = _poisson_nll_name(log_input, full)
    parameters = () if log_input else (eps,)
    plain = weight is None and mask is None and size_average is None and reduce is None
    given = None if plain else Given(None, weight, mask, True, size_average, reduce)
    return _side(input, target).loss(name, input, target, parameters, reduction, given)


def _poisson_nll_name(log_input=True, full=False):
    name = "poisson_nll" if checked_flag("log_input", log_input) else "poisson_nll_rate"
    return name + ("_full" if checked_flag("full", full) else "")


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean", *, weight=None, mask=None):
    """The negative log-likelihood of a number, given mean and variance, as torch.nn.functional.gaussian_nll_loss has
    it. A variance has the size of input, or one that PyTorch takes."""
    if _overridden(input, target, var, weight, mask) and _enabled():
        return _override(gaussian_nll_loss, input, target, var, full, eps, reduction, weight, mask)
    given = Given(var, weight, mask, True)
    parameters = 1.0 if full else 0.0, eps
    return _side(input, target).loss("gaussian_nll", input, target, parameters, reduction, given)


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False, *, weight=None,
           mask=None):
    """The divergence of a probability from a prediction of its logarithm, as torch.nn.functional.kl_div has it."""
    if _overridden(input, target, weight, mask) and _enabled():
        return _override(kl_div, input, target, size_average, reduce, reduction, log_target, weight, mask)
    given = Given(None, weight, mask, True, size_average, reduce)
    is_divided = reduction == "batchmean" and (size_average is not None or reduce is not None)
    reduction = "mean" if is_divided else reduction
    value = _side(input, target).loss(_kl_div_name(log_target), input, target, (), reduction, given)
    return _divided(value, input.shape[0] or 1) if is_divided else value  # which PyTorch does whatever those two say


def _divided(value, count):
    """Of the value's type, to which NumPy 2 would round the count, and which NumPy 1 would make a double of."""
    return value / count if speaks_torch(value) else (value.astype("f8") / count).astype(value.dtype)


def _kl_div_name(log_target=False):
    return "kl_div_log_target" if checked_flag("log_target", log_target) else "kl_div"


# --------------------------------------------------------------- losses over rows --


_NUMBERS = float, int  # which a parameter may be compared with; of others nobody knows what comes of it


def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean",
                  label_smoothing=0.0, *, z_loss=0.0, softcap=None, temperature=1.0, row_weight=None, mask=None,
                  divisor=None, dtype=None, inplace=False, return_lse=False, return_z_loss=False,
                  return_accuracy=False):
    """The cross-entropy of rows of logits with class indices, or with a probability for each class where target has the
    shape of input, as torch.nn.functional.cross_entropy has it. The classes are dimension 1, or the only one.

    With return_lse, return_z_loss or return_accuracy it is a tuple of the loss and these, in this order; nothing flows
    back from them."""
    if _overridden(input, target, weight, row_weight, mask, divisor) and _enabled():
        return _override(cross_entropy, input, target, weight, size_average, ignore_index, reduce, reduction,
                         label_smoothing, z_loss, softcap, temperature, row_weight, mask, divisor, dtype, inplace,
                         return_lse, return_z_loss, return_accuracy)
    plain = row_weight is None and mask is None and divisor is None and dtype is None and softcap is None and \
        inplace is return_lse is return_z_loss is return_accuracy is False and type(z_loss) in _NUMBERS and \
        type(temperature) in _NUMBERS and z_loss == 0 and temperature == 1
    given = None if plain else RowGiven(z_loss, softcap, temperature, row_weight, mask, divisor, dtype,
                                        checked_flag("inplace", inplace),
                                        _returns(return_lse, return_z_loss, return_accuracy))
    return _row_side(input, target).cross_entropy(input, target, weight, size_average, ignore_index, reduce, reduction,
                                                  label_smoothing, given)


def _returns(lse, z_loss, accuracy):
    wanted = ("lse", lse), ("z_loss", z_loss), ("accuracy", accuracy)
    return tuple([name for name, flag in wanted if checked_flag(f"return_{name}", flag)])


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", *,
             row_weight=None, mask=None, divisor=None, dtype=None):
    """Minus the log-probability of class indices, as torch.nn.functional.nll_loss has it. The classes are dimension 1,
    or the only one."""
    if _overridden(input, target, weight, row_weight, mask, divisor) and _enabled():
        return _override(nll_loss, input, target, weight, size_average, ignore_index, reduce, reduction, row_weight,
                         mask, divisor, dtype)
    plain = row_weight is None and mask is None and divisor is None and dtype is None
    given = None if plain else RowGiven(row_weight=row_weight, mask=mask, divisor=divisor, dtype=dtype)
    return _row_side(input, target).nll_loss(input, target, weight, size_average, ignore_index, reduce, reduction,
                                             given)


def log_prob(logits, labels, temperature=1.0, softcap=None, ignore_index=-100, return_entropy=False, *, dtype=None,
             inplace=False):
    """The logarithm of the probability that each row of logits, over the last dimension, gives to its label; with
    return_entropy a tuple of it and the rows' entropy. Both have gradients for the logits, and are 0 where the label
    is ignore_index."""
    if _overridden(logits, labels) and _enabled():
        return _override(log_prob, logits, labels, temperature, softcap, ignore_index, return_entropy, dtype, inplace)
    side = _row_side(logits, labels, "logits and labels")
    return side.log_prob(logits, labels, temperature, softcap, ignore_index, return_entropy, dtype, inplace)


def softmax_focal_loss(input, target, weight=None, *, alpha=1.0, gamma=2.0, ignore_index=-100, softcap=None,
                       temperature=1.0, reduction="mean", row_weight=None, mask=None, divisor=None, dtype=None):
    """The cross-entropy of rows of logits with class indices, times the probability of the other classes to the power
    gamma, and times alpha. The classes are dimension 1, or the only one.

    alpha is a number, or has one for each class. Unlike those of weight, these count for nothing in a mean, which is
    over the number of rows, as Keras and most focal losses have it."""
    if _overridden(input, target, weight, row_weight, mask, divisor) and _enabled():
        return _override(softmax_focal_loss, input, target, weight, alpha, gamma, ignore_index, softcap, temperature,
                         reduction, row_weight, mask, divisor, dtype)
    of_classes = not isinstance(alpha, _NUMBERS) and hasattr(type(alpha), "shape") and len(alpha.shape) > 0
    if of_classes:
        if weight is not None:
            raise ValueError("alpha has a number for each class, as weight has; expected one of them")
        weight, alpha = alpha, 1.0
    given = RowGiven(row_weight=row_weight, mask=mask, divisor=divisor, dtype=dtype, counts_rows=of_classes)
    return _row_side(input, target).generated("softmax_focal", input, target, weight,
                                              (ignore_index, alpha, gamma, softcap, temperature), reduction, given)


# --------------------------------------------------------------- value_and_grad --


def value_and_grad(name, input, target, third=None, *, reduction="mean", weight=None, mask=None, broadcast_weight=False,
                   **parameters):
    """The loss and its gradient for input, both from one pass, without autograd.

    name is one of onepass.losses(), with its parameters by name, or that of a function ('mse_loss',
    'binary_cross_entropy_with_logits'), with that function's: 'poisson_nll_loss' has log_input and full, 'kl_div'
    log_target.
    third is the third operand of those losses that have one: a variance, say; of a loss over rows the weights of the
    classes, if there are any, while weight and mask are over the rows. reduction is 'mean', 'sum' or 'batchmean'. The
    gradient has the shape and the type of input. Weight and mask are those of the loss's function.
    Of a loss of vectors, such as 'triplet_margin', the operands are the vectors, and third the targets of
    'cosine_embedding', or the weights of the classes of 'multi_margin', if there are any. A vector is the last dimension, or all from dim=... on; weight and mask are over the vectors.

        loss, gradient = onepass.value_and_grad("smooth_l1", prediction, target, beta=0.5)
    """
    if _overridden(input, target, third, weight, mask) and _enabled():
        return _override(value_and_grad, name, input, target, third, reduction, weight, mask, broadcast_weight,
                         **parameters)
    loss, known = known_loss(name, third, parameters)
    if loss == "cross_entropy" and getattr(target, "shape", None) == getattr(input, "shape", None):
        loss, known = known_loss("cross_entropy_with_probabilities", third, parameters)
    over_rows, of_vectors = loss in ROW_CATALOG, loss in VECTOR_CATALOG
    dim = checked_dim(parameters.pop("dim", -1)) if of_vectors else None
    values = values_of(known, parameters)
    if not len(needed_operands(known)) <= 2 + (third is not None) <= len(known["operands"]):
        raise TypeError(f"{loss} has the operands {', '.join(known['operands'])}; {2 + (third is not None)} were given")
    if not isinstance(reduction, str) or reduction not in ("mean", "sum", "batchmean"):
        raise ValueError(f"reduction is {reduction!r}; value_and_grad needs 'mean', 'sum' or 'batchmean', since only a "
                         "number has one gradient")
    if of_vectors:
        operands = (input, target) if third is None else (input, target, third)
        axis = dim + 1 if dim >= 0 else dim
        return _vector_side(input, target).value_and_grad(loss, operands, values, axis, reduction, weight, mask)
    given = Given(third, weight, mask, broadcast_weight)
    side = (_row_side if over_rows else _side)(input, target)
    return side.value_and_grad(loss, input, target, values, reduction, given)


def known_loss(name, third, parameters):
    """The library's name of a loss, by that or by its function's, and what the catalogue has of it. Parameters that
    chose it are taken out."""
    loss = _library_name(name, third, parameters) if isinstance(name, str) else None
    known = CATALOG.get(loss) or ROW_CATALOG.get(loss) or VECTOR_CATALOG.get(loss)
    if known is None:
        names = map(repr, CATALOG | ROW_CATALOG | VECTOR_CATALOG)
        raise ValueError(f"there is no loss {name!r}; there are {', '.join(names)}")
    return loss, known


def values_of(known, parameters):
    """Parameters by name in the catalogue's order; those that are not given have their defaults."""
    standards = {parameter["name"]: default_of(parameter) for parameter in known["parameters"]}
    for given in parameters:
        if given not in standards:
            has = f"it has {', '.join(standards)}" if standards else "it has none"
            raise TypeError(f"{known['name']} has no parameter {given!r}; {has}")
    return tuple(parameters.get(key, standard) for key, standard in standards.items())


def _library_name(name, third, parameters):
    """The library's name of a function's loss. What chooses among several losses is no parameter of theirs."""
    if name == "binary_cross_entropy_with_logits":
        return "bce_with_logits" if third is None else "bce_with_logits_pos_weight"
    choose, flags = _CHOICES.get(name, (None, ()))
    if choose is None:
        return _OTHER_NAMES.get(name) or name.removesuffix("_loss")
    return choose(**{flag: parameters.pop(flag) for flag in flags if flag in parameters})


def _tversky_name(from_logits=True):
    return "tversky_with_logits" if from_logits else "tversky"


_CHOICES = {"poisson_nll_loss": (_poisson_nll_name, ("log_input", "full")), "kl_div": (_kl_div_name, ("log_target",)),
            "tversky_loss": (_tversky_name, ("from_logits",))}
_OTHER_NAMES = {"binary_cross_entropy": "bce", "sigmoid_focal_loss": "focal"}


# ----------------------------------------------------- what the catalogue offers --


def function_of(loss):
    """A function for a loss of the catalogue."""
    function = made(FUNCTION, loss, globals())
    function.__doc__ = documentation_of(function.__doc__, [(loss, "")], function)
    return function


globals().update({f"{name}_loss": function_of(CATALOG[name]) for name in GENERATED})
globals().update({generated_name(name): made(ROW_FUNCTION, ROW_CATALOG[name], globals()) for name in ROWS_GENERATED})

for _name in (*WRITTEN, *ROWS):
    globals()[_name].__doc__ = documentation_of(globals()[_name].__doc__, losses_of(_name), globals()[_name])

__all__ = [*WRITTEN, *ROWS, "value_and_grad", *(f"{name}_loss" for name in GENERATED)]

# ------------------------------------------------------------- who overrides a call --


def _overridden(*operands):
    """Whether a subclass of Tensor, a tracer or a function mode wants the call. PyTorch's own question, once PyTorch is
    there; it is asked first, since a tracer's arguments cannot be looked at."""
    global _overridden
    if "torch.overrides" not in sys.modules:
        return False
    _overridden = sys.modules["torch.overrides"].has_torch_function_variadic
    return _overridden(*operands)


def _enabled():
    """What PyTorch's question has in it but torch.compile leaves out: within a subclass's own answer it is no longer
    asked."""
    import torch

    return torch._C._is_torch_function_enabled() or torch._C._len_torch_function_stack() > 0


def _override(function, *values, **more):
    """The call, handed to whoever wants it as PyTorch hands on its own; arguments that have their default are left
    out."""
    from torch.overrides import handle_torch_function

    code, defaults = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
    required = code.co_argcount - len(defaults)
    standards = dict(zip(names[required:], defaults)) | (function.__kwdefaults__ or {})
    given = {name: value for name, value in zip(names[required:], values[required:]) if value is not standards[name]}
    asked = [value for value in values if not isinstance(value, (type(None), str, int, float))]  # as PyTorch's own ask
    return handle_torch_function(function, asked, *values[:required], **given, **more)


# -------------------------------------------------------------------- who computes --

_torch = None  # the module that computes for PyTorch's tensors, once there were some


def _side(input, target, called="input and target"):
    """The module that computes for these operands."""
    global _torch
    if _torch is not None and isinstance(input, _torch.Tensor):
        return _torch
    if is_for_torch(input, target, called):
        from . import _torch

        return _torch
    from . import _numpy

    return _numpy


def is_for_torch(input, target, called="input and target"):
    """Whether these operands are PyTorch's, and not NumPy's."""
    if "torch" in sys.modules and (speaks_torch(input) or speaks_torch(target)):
        return True
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(input, numpy.ndarray) and isinstance(target, numpy.ndarray):
        return False
    names = " and ".join(type(operand).__name__ for operand in (input, target))
    is_number = numpy is not None and (isinstance(input, numpy.generic) or isinstance(target, numpy.generic))
    hint = ", which numpy.asarray makes of NumPy's numbers" if is_number else ""
    raise TypeError(f"{called} are {names}; expected two PyTorch tensors or two NumPy arrays{hint}")


_rows = None  # the same for losses over rows


def _row_side(input, target, called="input and target"):
    """The module that computes losses over rows of these operands."""
    global _rows
    if _rows is not None and isinstance(input, _rows.Tensor):
        return _rows
    if is_for_torch(input, target, called):
        from . import _rows

        return _rows
    from . import _numpy_rows

    return _numpy_rows


def _vector_side(input, target):
    """The module that computes vector losses of these operands."""
    if is_for_torch(input, target):
        from . import _vectors

        return _vectors
    from . import _numpy_vectors

    return _numpy_vectors


def speaks_torch(operand):
    """A tensor, or whatever stands for one, as tracers have it."""
    return hasattr(type(operand), "__torch_function__")
