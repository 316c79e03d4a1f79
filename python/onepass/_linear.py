"""Losses of a linear layer's outputs, for PyTorch's tensors: what is asked of the operands, and who computes. What is
plain goes chunk by chunk; anything else is composed of the layer and the loss over rows of its outputs."""

import math

import torch
import torch.nn.functional as F

from . import _linear_operators, _rows
from ._catalog import is_number, plain_number
from ._contract import CODES, RowGiven
from ._linear_autograd import LinearRowLoss, answer, autocast_type, compose, multiplied
from ._linear_chunks import OTHERS, PLAIN, SAME_LABEL, Operands, Question
from ._row_request import (FLOATS, LABELS, WITH_PROBABILITIES, Request, are_plain, named, numbers_of,
                           parameters_of)
from ._torch_checks import check_memory, check_no_gradient
from ._torch_state import is_compiling, is_in_single, is_plain_here


# ----------------------------------------------------------------- the functions --


def linear_cross_entropy(input, linear_weight, target, linear_bias, weight, reduction, ignore_index, label_smoothing,
                         options, z_loss, softcap, temperature, num_items, num_ignored, dtype, chunk_rows):
    check_kinds(input=input, linear_weight=linear_weight, target=target, linear_bias=linear_bias, weight=weight)
    check_layer(input, linear_weight, linear_bias)
    check_reduction(reduction)
    check_options(options)
    label_smoothing = checked_smoothing(label_smoothing)
    if label_smoothing > 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    if target.shape == logits_shape(input, linear_weight) and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    ignored = -100 if ignore_index is None else ignore_index
    if linear_weight.dim() > 2:
        return of_positions(input, linear_weight, target, linear_bias, weight, reduction, ignored, label_smoothing,
                            RowGiven(z_loss=z_loss, softcap=softcap, temperature=temperature, divisor=num_items,
                                     dtype=dtype))
    has_labels = target.shape == input.shape[:-1]
    if not has_labels and target.shape != logits_shape(input, linear_weight):
        raise ValueError(unlike(input, target))
    check_target(target, has_labels)
    name = "cross_entropy" if has_labels else WITH_PROBABILITIES
    parameters = layer_parameters("linear_cross_entropy", name, ignore_index=ignored, z_loss=z_loss, softcap=softcap,
                                  label_smoothing=max(label_smoothing, 0), temperature=temperature)
    check_no_gradient("num_items", num_items, "linear_cross_entropy")
    chunk = checked_chunk(chunk_rows, getattr(options, "batch_chunk_size", None))
    request, divisor = request_of(name, reduction, parameters, num_items, dtype, input)
    operands = Operands(flat(input, 1), linear_weight, linear_bias, flat(target, 0 if has_labels else 1), weight,
                        divisor)
    return dispatch(Question(request, chunk, checked_ignored(num_ignored), PLAIN), operands, input.shape[:-1])


def linear_log_prob(input, linear_weight, target, linear_bias, temperature, softcap, ignore_index, num_ignored, dtype,
                    chunk_rows):
    check_kinds(input=input, linear_weight=linear_weight, target=target, linear_bias=linear_bias)
    check_layer(input, linear_weight, linear_bias)
    check_target(target, True)
    if linear_weight.dim() > 2 or target.shape != input.shape[:-1]:
        raise ValueError(unlike(input, target))
    parameters = layer_parameters("linear_log_prob", "log_prob", ignore_index=ignore_index, softcap=softcap,
                                  temperature=temperature)
    request, _ = request_of("log_prob", "none", parameters, None, dtype, input)
    operands = Operands(flat(input, 1), linear_weight, linear_bias, flat(target, 0), None, None)
    question = Question(request, checked_chunk(chunk_rows), checked_ignored(num_ignored), PLAIN)
    return dispatch(question, operands, input.shape[:-1])


def nt_xent_loss(input1, input2, temperature, reduction, normalize, dtype, chunk_rows):
    check_kinds(input1=input1, input2=input2)
    check_reduction(reduction)
    if input1.dim() != 2 or input1.shape != input2.shape:
        raise ValueError(f"input1 has size {tuple(input1.shape)}, input2 {tuple(input2.shape)}; expected the same two "
                         "dimensions, of samples and features")
    rows = torch.cat((input1, input2))
    count = len(input1)
    partner = torch.arange(2 * count, device=rows.device).roll(count)
    parameters = parameters_of("cross_entropy", "nt_xent_loss", temperature=temperature)
    value = contrasted("cross_entropy", OTHERS, rows, partner, parameters, reduction, normalize, dtype, chunk_rows)
    return value.reshape(2, count) if reduction == "none" else value


def supcon_loss(input, labels, temperature, reduction, normalize, dtype, chunk_rows):
    check_kinds(input=input, labels=labels)
    check_reduction(reduction)
    if input.dim() != 2 or labels.shape != input.shape[:1]:
        raise ValueError(f"input has size {tuple(input.shape)}, labels {tuple(labels.shape)}; expected rows of "
                         "features, and a label for each")
    if labels.is_floating_point() or torch.is_complex(labels) or labels.dtype == torch.bool:
        raise TypeError(f"labels are of {labels.dtype}; expected integers")
    parameters = parameters_of(WITH_PROBABILITIES, "supcon_loss", temperature=temperature)
    return contrasted(WITH_PROBABILITIES, SAME_LABEL, input, labels, parameters, reduction, normalize, dtype,
                      chunk_rows)


def contrasted(name, kind, rows, target, parameters, reduction, normalize, dtype, chunk_rows):
    """Each row against all others, among which the weight's rows are its own."""
    rows = normalized(rows) if normalize else rows
    request, _ = request_of(name, reduction, parameters, None, dtype, rows)
    question = Question(request, checked_chunk(chunk_rows), None, kind)
    return dispatch(question, Operands(rows, rows, None, target, None, None), rows.shape[:1])


def normalized(rows):
    """Rows of length 1. Each is first multiplied by a power of two that brings its largest number near 1: squares of
    large and of tiny ones are none that their type has, and the factor cancels out of the value and its slopes."""
    if 0 in rows.shape or not rows.is_floating_point():
        return F.normalize(rows, dim=-1)
    with torch.no_grad():
        wide = torch.promote_types(rows.dtype, torch.float32)
        tiny = torch.finfo(rows.dtype).tiny
        most = -round(math.log2(tiny))  # whose power of two and inverse are both there
        _, exponent = rows.abs().amax(-1, keepdim=True).to(wide).frexp()
        scale = torch.exp2(-exponent.clamp(-most, most).to(wide)).to(rows.dtype)
    return F.normalize(rows * scale, dim=-1, eps=max(tiny, 1e-12))  # of zeros zeros, in float16 too


def of_positions(input, linear_weight, target, bias, weight, reduction, ignored, smoothing, given):
    """PyTorch's K-dimensional loss, whose weight has a row for each class and position: of all logits."""
    classes, *positions, features = linear_weight.shape
    if input.dim() != 2:
        raise RuntimeError(f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires "
                           f"batched input, (N, {features}), got input with shape {tuple(input.shape)}")
    logits = F.linear(input, linear_weight.reshape(-1, features), None if bias is None else bias.reshape(-1))
    logits = logits.reshape(len(input), classes, *positions)
    return _rows.cross_entropy(logits, target, weight, None, ignored, None, reduction, smoothing, given)


# -------------------------------------------------------------------- the checks --


def check_kinds(**named):
    for called, operand in named.items():
        if operand is None and called in ("linear_bias", "weight"):
            continue
        if not hasattr(type(operand), "__torch_function__"):
            raise TypeError(f"{called} is {type(operand).__name__}; expected a PyTorch tensor")
        check_memory(called, operand)


def check_target(target, has_labels):
    if has_labels and target.dtype not in LABELS:
        raise RuntimeError(f"expected target dtype to be Long, Int or Byte, but got {target.dtype}")
    if not has_labels and not target.is_floating_point():
        raise RuntimeError(f"Expected floating point type for target with class probabilities, got {target.dtype}")


def check_layer(input, weight, bias):
    """PyTorch's complaints about a layer and its input."""
    if input.dim() < 1:
        raise RuntimeError(f"expected input with dimensionality at least 1, got {input.dim()}")
    if weight.dim() < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {weight.dim()}")
    if input.shape[-1] != weight.shape[-1]:
        raise RuntimeError("expected equal input and linear_weight last dimensions (in_features), got "
                           f"{input.shape[-1]} and {weight.shape[-1]}, respectively")
    if bias is not None and bias.shape != weight.shape[:-1]:
        raise RuntimeError(f"expected linear_bias shape {tuple(weight.shape[:-1])}, got {tuple(bias.shape)}")


def layer_parameters(function, name, **given):
    """As numbers, but for a temperature, by which the layer's operands are divided: one of logits that are not capped.
    """
    if given["softcap"] is None:
        return numbers_of(name, function, but="temperature", **given)
    check_no_gradient("temperature", given["temperature"], function, "no softcap beside it, or ")
    return numbers_of(name, function, **given)


def checked_smoothing(number):
    check_no_gradient("label_smoothing", number, "linear_cross_entropy")
    if isinstance(number, (float, int, torch.SymFloat, torch.SymInt)):  # at which a tracer must not look closer
        return number
    number = plain_number(number)
    if not is_number(number):
        raise TypeError(f"label_smoothing of linear_cross_entropy is {type(number).__name__}; expected a real number")
    return number


def check_options(options):
    if options is not None and not hasattr(options, "batch_chunk_size"):
        raise TypeError(f"options is {type(options).__name__}; expected PyTorch's LinearCrossEntropyOptions")


def logits_shape(input, weight):
    return (*input.shape[:-1], *weight.shape[:-1])


def unlike(input, target):
    if input.dim() == 2 and target.dim() == 1:
        return f"Expected input batch_size ({len(input)}) to match target batch_size ({len(target)})."
    return (f"target has size {tuple(target.shape)} beside an input of size {tuple(input.shape)}; expected a class "
            f"index for each row, {tuple(input.shape[:-1])}")


def check_reduction(reduction):
    if reduction not in CODES:
        raise ValueError(f"{reduction} is not a valid value for reduction")


def checked_ignored(number):
    if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 0):
        raise ValueError(f"num_ignored is {number!r}; expected how many labels are ignore_index, as an int")
    return number


def checked_chunk(*given):
    """The first that is there."""
    there = [rows for rows in given if rows is not None]
    rows = there[0] if there else None
    if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or rows < 1):
        raise ValueError(f"chunk_rows is {rows!r}; expected a number of rows, at least 1")
    return rows


def request_of(name, reduction, parameters, num_items, dtype, input):
    """The loss over rows, with the type of its value, and the divisor if that is a tensor."""
    if input.dtype not in FLOATS:
        raise NotImplementedError(f"input is of {input.dtype}; expected a floating point type")
    try:
        number, tensor = _rows.checked_divisor(num_items, reduction, input)
    except (TypeError, ValueError) as error:
        raise type(error)(str(error).replace("divisor", "num_items", 1)) from None
    dtype = _rows.checked_type(dtype)
    if dtype is None:
        is_cast = is_in_single(input.device.type) and input.dtype != torch.float64
        dtype = torch.float32 if is_cast else input.dtype
    return Request(name, CODES[reduction], parameters, 0, dtype, number), tensor


def flat(tensor, kept):
    """The leading dimensions as one; the last `kept` stay."""
    last = tensor.dim() - kept
    return tensor.reshape(math.prod(tensor.shape[:last]), *tensor.shape[last:])


# ------------------------------------------------------------------- who computes --


def dispatch(question, operands, shape):
    question, operands = divided(question, operands)
    if is_compiling():
        if _linear_operators.HAS_AUTOGRAD and not torch._C._are_functorch_transforms_active() and \
                are_ours(question, operands):
            return _linear_operators.loss(question, operands, shape)
    elif is_plain_here() and are_ours(question, operands):
        return compute(question, operands, shape)
    return compose(question, operands, shape)


def divided(question, operands):
    """A temperature that stayed a tensor divides what the logits are made of, so that chunks need not know of it."""
    temperature = named(question.request).get("temperature")
    if not isinstance(temperature, torch.Tensor):
        return question, operands
    request, *how = question
    name, code, parameters, *rest = request
    numbers = tuple([1.0 if known == "temperature" else value
                     for known, value in zip(list(named(request)), parameters)])
    input, weight, bias, *others = operands
    bias = None if bias is None else bias / temperature
    return Question(Request(name, code, numbers, *rest), *how), Operands(input / temperature, weight, bias, *others)


def are_ours(question, operands):
    """Whether the chunks can be multiplied and borrowed: plain tensors, of types that go together, in one place."""
    input, weight, bias, target, class_weight, divisor = operands
    if not are_plain(operands) or any(x is not None and (x.device != input.device or x.layout != torch.strided)
                                      for x in operands):
        return False
    if input.device.type not in ("cpu", "cuda") or 0 in (*input.shape, *weight.shape) or target.requires_grad:
        return False
    has_labels = question.request.name != WITH_PROBABILITIES or question.kind == SAME_LABEL
    if question.kind != SAME_LABEL and target.dtype not in (LABELS if has_labels else FLOATS):
        return False
    if class_weight is not None and (class_weight.requires_grad or class_weight.dtype not in FLOATS or
                                     class_weight.shape != weight.shape[:1]):
        return False
    types = {x.dtype for x in multiplied_types(operands)}
    if len(types) != 1 or not types <= set(FLOATS):
        return False
    is_wide = types == {torch.float64}
    widest = (x for x in (class_weight, None if has_labels else target) if x is not None)
    return is_wide or all(x.dtype != torch.float64 for x in widest)


def multiplied_types(operands):
    """Tensors without elements, of the types that the products have."""
    empty = Operands(*(None if x is None else x.detach()[:0] for x in operands[:3]), None, None, None)
    return [x for x in multiplied(empty, autocast_type(operands.input.device.type))[:3] if x is not None]


def compute(question, operands, shape):
    dtype = autocast_type(operands.input.device.type)
    if torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in operands[:3]):
        return LinearRowLoss.apply(question, shape, dtype, *operands)
    with torch.no_grad():
        value, *_ = answer(question, multiplied(operands, dtype), shape, (False,) * 3)
    return value

