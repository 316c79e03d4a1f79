"""Losses over rows of PyTorch's tensors. What is plain goes to the C library, with its gradient in the same pass if one
will be needed and the upstream gradient is likely to be 1; anything else falls back to PyTorch."""

import torch
from torch.nn import _reduction

from . import _catalog, _contract, _native, _rows_entropy, _rows_fallback, _rows_operators, _torch, _upstream_habit
from ._catalog import ROW_CATALOG, plain_number
from ._contract import ALL_CODES, MEAN, NONE, NOTHING_OVER_ROWS, code_of, row_code
from ._row_request import (DIVIDED_BY, FLOATS, FOR_INPUT, FOR_TARGET, LABELS, LSE, MOST_IGNORED, NUMBERS, PREDICTED,
                           STATE, WITH_PROBABILITIES, Request, Tensors, are_plain, casts, check_row_tensors, class_axis, classes_of,
                           is_known, is_quicker_apart, keeps_state, named, parameters_of, rows_shape)
from ._rows_autograd import attach_gradients, saved, told
from ._torch_checks import TYPES, are_numbers, check_no_gradient, is_differentiated, no_tensor
from ._torch_state import is_any_autocast, is_compiling, is_in_single, is_plain_here

assert _torch  # which has told the extension of PyTorch

Tensor = torch.Tensor
_torch_rows, _is_grad_enabled = _native.torch_rows, torch.is_grad_enabled
_LEAF = "torch::autograd::AccumulateGrad"  #: the node of a leaf
_IN_SINGLE = -1


# ----------------------------------------------------------------- the functions --


def cross_entropy(input, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing, given):
    if given is None and size_average is None and reduce is None and not is_compiling() and \
            type(label_smoothing) in (float, int) and 0 <= label_smoothing <= 1:
        parameters = ignore_index, label_smoothing, 0.0, 0.0, 1.0
        value = compute_plain("cross_entropy", parameters, input, target, weight, reduction)
        if value is not None:
            return value
    whole = weight, size_average, ignore_index, reduce, reduction, label_smoothing
    return loss("cross_entropy", input, target, whole, given)


def nll_loss(input, target, weight, size_average, ignore_index, reduce, reduction, given):
    if given is None and size_average is None and reduce is None and not is_compiling():
        value = compute_plain("nll", (ignore_index,), input, target, weight, reduction)
        if value is not None:
            return value
    whole = weight, size_average, ignore_index, reduce, reduction
    return loss("nll_loss", input, target, whole, given)


def compute_plain(name, parameters, input, target, weight, reduction):
    """What most calls are, with as few questions as it can be told by; None if that is not for us, or not in order."""
    code, ignore_index = code_of(reduction), parameters[0]
    if code is None or type(ignore_index) is not int or not -MOST_IGNORED <= ignore_index <= MOST_IGNORED or \
            not (type(input) in TYPES and type(target) in TYPES and target.dtype in LABELS and is_plain_here()):
        return None
    if weight is not None and (type(weight) not in TYPES or weight.requires_grad or weight.dtype != input.dtype):
        return None
    if input.requires_grad and _is_grad_enabled() and input.dim():
        request = Request(name, code, parameters, 0, None, None)
        computed = compute_with_gradient(request, Tensors(input, target, weight), 0, FOR_INPUT, False)
        return None if computed is None else computed[0]
    dtype = _IN_SINGLE if is_any_autocast() and is_in_single(input.device.type) else 0
    return _torch_rows(name, code, parameters, 0, input, target, weight, None, None, None, dtype, 0)


def loss(function, input, target, whole, given):
    """One of PyTorch's functions; `whole` are its further arguments, `given` those that only ours has, if any are."""
    has_own = given is not None
    given = given or NOTHING_OVER_ROWS
    check_kinds(input, target, whole[0], given)
    if not has_own and not are_plain((input, target, whole[0])):
        return _rows_fallback.answer(function, input, target, *whole)
    weight, size_average, ignore_index, reduce, reduction, *more = whole
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    smoothing = more[0] if more else 0.0
    if has_own and not is_compiling():
        check_no_gradient("label_smoothing", smoothing, function)
        ignore_index, smoothing = plain_number(ignore_index), plain_number(smoothing)
    name = name_of(function, input, target)
    if not (is_known(reduction) and is_well_formed(name, input, target, weight, given, ignore_index, smoothing)):
        answer = _rows_fallback.answer(function, input, target, weight, None, ignore_index, None, reduction, *more)
        if has_own:
            check_order(name, Tensors(input, target, weight), 0)
            raise ValueError(f"ignore_index is {ignore_index} and label_smoothing is {smoothing}; PyTorch takes these, "
                             "but not beside what it does not have")
        return answer
    parameters = dict(ignore_index=ignore_index, label_smoothing=max(smoothing, 0), z_loss=given.z_loss,
                      softcap=given.softcap, temperature=given.temperature)
    request, tensors = checked_request(name, input, target, weight, parameters, reduction, given)
    value, *extras = dispatch(request, tensors, asked_outputs(request, given), given.inplace)
    return value if not given.returns else (value, *returned(request, tensors, given, *extras))


def log_prob(logits, labels, temperature, softcap, ignore_index, return_entropy, dtype, inplace):
    inplace = _contract.checked_flag("inplace", inplace)
    return_entropy = _contract.checked_flag("return_entropy", return_entropy)
    given = _contract.RowGiven(softcap=softcap, temperature=temperature, dtype=dtype, inplace=inplace)
    check_kinds(logits, labels, None, given, ("logits", "labels"))
    if logits.dim() == 0 or labels.shape != logits.shape[:-1]:
        raise ValueError(f"labels of size {tuple(labels.shape)} beside logits of size {tuple(logits.shape)}; expected "
                         "a label for each row of the last dimension")
    ignore_index = ignore_index if is_compiling() else plain_number(ignore_index)
    check_log_prob_types(logits, labels, ignore_index)
    parameters = parameters_of("log_prob", ignore_index=ignore_index, softcap=softcap, temperature=temperature)
    request = Request("log_prob", NONE, parameters, -1, checked_type(dtype), None)
    value, *_ = dispatch(request, Tensors(logits, labels), 0, inplace)
    if not return_entropy:
        return value
    given = named(request)
    entropy = _rows_entropy.entropy(logits, labels.long() == ignore_index, given["softcap"], given["temperature"])
    return value, entropy.to(value.dtype)


def generated(name, input, target, weight, parameters, reduction, given):
    """A loss that PyTorch does not have, made of the catalogue."""
    check_kinds(input, target, weight, given)
    if not is_known(reduction):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    check_order(name, Tensors(input, target, weight), 0)
    if given.counts_rows and weight.is_cpu and not is_compiling() and are_plain((weight,)) and is_plain_here():
        _catalog.check_alpha(weight.detach().amin().item())
    request, tensors = checked_request(name, input, target, weight, by_name(name, parameters), reduction, given)
    value, *_ = dispatch(request, tensors, 0, False)
    return value


def by_name(name, parameters):
    return dict(zip([known["name"] for known in ROW_CATALOG[name]["parameters"]], parameters))


def value_and_grad(name, input, target, parameters, reduction, given):
    """Both from one pass; by PyTorch where the operands are not plain."""
    row_given = _contract.RowGiven(row_weight=given.weight, mask=given.mask)
    check_kinds(input, target, given.third, row_given)
    axis = -1 if name == "log_prob" else 0
    tensors = Tensors(input, target, given.third, given.weight, given.mask)
    check_order(name, tensors, axis)
    check_row_tensors(given.weight, given.mask, rows_shape(input, axis), "row_weight")
    request = Request(name, ALL_CODES[reduction], parameters_of(name, **by_name(name, parameters)), axis, None, None)
    tensors = Tensors(*(None if x is None else x.detach() for x in tensors))
    computed = None
    if are_plain(tensors) and is_plain_here() and are_numbers(request.parameters):
        computed = run(request, tensors, FOR_INPUT)
    if computed is not None:
        return computed[:2]
    with torch.enable_grad():
        leaf = tensors.input.requires_grad_()
        value = _rows_fallback.loss(request, tensors._replace(input=leaf))
        gradient, = torch.autograd.grad(value, (leaf,))
    return value.detach(), gradient


# -------------------------------------------------------------------- the checks --


def check_kinds(input, target, weight, given, names=("input", "target")):
    named = (*zip((input, target), names), (weight, "weight"), (given.row_weight, "row_weight"), (given.mask, "mask"))
    for operand, called in named:
        if operand is None and called not in names:
            continue  # before its type is asked for anything, which PyTorch 2.11 cannot trace
        if not hasattr(type(operand), "__torch_function__"):
            raise no_tensor(called, operand)


def check_log_prob_types(logits, labels, ignore_index):
    if logits.dtype not in FLOATS:
        raise TypeError(f"logits are of {logits.dtype}; expected a floating point type")
    if labels.dtype not in LABELS:
        raise TypeError(f"labels are of {labels.dtype}; expected torch.int64, torch.int32 or torch.uint8")
    if not isinstance(ignore_index, (int, torch.SymInt)):
        raise TypeError(f"ignore_index is {ignore_index!r}; expected an int")
    if not is_index(ignore_index):
        raise ValueError(f"ignore_index is {ignore_index}; expected one from -2**53 to 2**53")


def name_of(function, input, target):
    """PyTorch decides by the shapes alone what a target is."""
    if function == "nll_loss":
        return "nll"
    return WITH_PROBABILITIES if input.shape == target.shape else "cross_entropy"


def is_index(number):
    return isinstance(number, (int, torch.SymInt)) and -MOST_IGNORED <= number <= MOST_IGNORED


def is_well_formed(name, input, target, weight, given, ignore_index, smoothing):
    """Whether PyTorch would compute that, but for its types of labels; it says what is wrong with all others."""
    if not is_index(ignore_index) or not isinstance(smoothing, (float, int, torch.SymFloat)) or not smoothing <= 1:
        return False
    if not are_in_order(name, Tensors(input, target, weight), 0) or (name == WITH_PROBABILITIES and ignore_index >= 0):
        return False
    return weight is None or name == WITH_PROBABILITIES or is_weight_of_labels(input, weight, given)


def are_in_order(name, tensors, axis):
    """Whether shapes and types of input, target and class weights are those of a loss over rows."""
    input, target, weight, *_ = tensors
    if input.dtype not in FLOATS or input.dim() == 0:
        return False
    classes = input.shape[class_axis(input, axis)]
    types, shape = (FLOATS, input.shape) if name == WITH_PROBABILITIES else (LABELS, rows_shape(input, axis))
    return classes > 0 and target.dtype in types and target.shape == shape and \
        (weight is None or (weight.dtype in FLOATS and tuple(weight.shape) == (classes,)))


def check_order(name, tensors, axis):
    """The same with words of ours."""
    if not are_in_order(name, tensors, axis):
        input, target, *_ = tensors
        targets = "a probability for each class" if name == WITH_PROBABILITIES else \
            "a class index for each row: torch.int64, torch.int32 or torch.uint8"
        raise ValueError(f"input has size {tuple(input.shape)} and {input.dtype}, target size {tuple(target.shape)} and "
                         f"{target.dtype}; expected {targets}, and as many weights as classes if there are any")


def is_weight_of_labels(input, weight, given):
    """PyTorch gives it no gradient, and wants the input's type, unless autocast makes one of them."""
    if weight.requires_grad and _is_grad_enabled():
        return False
    casts = given.dtype is not None or is_in_single(input.device.type)
    return weight.dtype == input.dtype or (casts and weight.dtype != torch.float64)


def checked_request(name, input, target, weight, parameters, reduction, given):
    """The call, once what PyTorch knows of it is in order."""
    parameters = parameters_of(name, **parameters)
    check_row_tensors(given.row_weight, given.mask, rows_shape(input, 0), "row_weight")
    number, tensor = checked_divisor(given.divisor, reduction, input)
    if name == WITH_PROBABILITIES and "accuracy" in given.returns:
        raise ValueError("return_accuracy is set, but target has class probabilities; expected class indices")
    return (Request(name, row_code(reduction, given), parameters, 0, checked_type(given.dtype), number),
            Tensors(input, target, weight, given.row_weight, given.mask, tensor))


def checked_type(dtype):
    if dtype is not None and dtype not in FLOATS:
        raise TypeError(f"dtype is {dtype!r}; expected torch.float32 or another floating point type")
    return dtype


def checked_divisor(divisor, reduction, input):
    """A number, or a tensor of one element that cannot be looked at: nobody waits for a GPU to tell a number. So is a
    size that a compiler leaves open, which as a number would be a graph for each."""
    if divisor is None:
        return None, None
    if reduction != "mean":
        raise ValueError(f"divisor is set, but reduction is {reduction!r}; expected 'mean', which it takes the place "
                         "of the number of rows in")
    if is_compiling() and isinstance(divisor, int) and is_open(divisor) and divisor > 0:
        return None, torch.full((), divisor, dtype=torch.float64, device=input.device)
    if not isinstance(divisor, torch.Tensor):
        return _catalog.checked_divisor(divisor, " or a tensor of one element"), None
    if divisor.numel() != 1 or torch.is_complex(divisor):
        raise TypeError(f"divisor is {divisor!r}; expected a number or a tensor of one element")
    if not is_differentiated(divisor):
        divisor = divisor.detach()
        if divisor.is_cpu and not is_compiling() and are_plain((divisor,)) and is_plain_here():
            return _catalog.checked_divisor(divisor.item()), None
    return None, divisor.reshape(()) if divisor.is_floating_point() else divisor.reshape(()).double()


def is_open(size):
    """Whether a compiler knows a size by its name alone. Older versions of PyTorch do not say, and that of 2.2 does not
    trace the question whether they do."""
    if not _rows_operators.HAS_AUTOGRAD:
        return False
    from torch.fx.experimental import symbolic_shapes  # which is there while it compiles, and slow to import before

    return hasattr(symbolic_shapes, "has_static_value") and not symbolic_shapes.has_static_value(size)


def is_view_of_leaf(input):
    """Whether the memory is that of a leaf that requires grad, which may be a view of another tensor itself."""
    node = input.grad_fn if input._is_view() else None
    while node is not None and node.name() != _LEAF:
        node = node.next_functions[0][0] if len(node.next_functions) == 1 else None  # a view is of one tensor
    return node is not None and \
        node.variable.untyped_storage().data_ptr() == input.untyped_storage().data_ptr()


def check_inplace(input):
    """What autograd says to a change in place, and that the memory is the input's own."""
    if not (_is_grad_enabled() and input.requires_grad):
        return False
    if input.is_leaf or is_view_of_leaf(input):
        what = "a leaf Variable" if input.is_leaf else "a view of a leaf Variable"
        raise RuntimeError(f"{what} that requires grad is being used in an in-place operation.")
    if any(stride == 0 and size > 1 for stride, size in zip(input.stride(), input.shape)):
        raise RuntimeError("inplace is set, but the logits have elements that share their memory; expected a tensor "
                           "that was not expanded, or inplace=False")
    return True


# ------------------------------------------------------------------- who computes --


def asked_outputs(request, given):
    outputs = 0
    if "lse" in given.returns or "z_loss" in given.returns:
        outputs |= LSE
    if "z_loss" in given.returns and request.code == MEAN:
        outputs |= DIVIDED_BY
    return outputs | PREDICTED if "accuracy" in given.returns else outputs


def dispatch(request, tensors, outputs, inplace):
    """(value, log-sum-exp, prediction, divisor), by us or by PyTorch; None for what is not asked for."""
    if is_compiling() and are_plain(tensors):  # torch.export shows fake tensors, unless it is strict
        return _rows_operators.loss(request, tensors, outputs)
    found = None
    if are_plain(tensors) and is_plain_here() and are_numbers(request.parameters):
        found = compute(request, tensors, outputs, inplace)
    if found is None:
        found = _rows_fallback.loss(request, tensors), *_rows_fallback.extras(request, tensors, outputs)
    return found


def compute(request, tensors, outputs, inplace):
    """With its way back if one is needed; None if that is not for us."""
    input, target, weight, row_weight, _, divisor = tensors
    needed = 0
    if _is_grad_enabled():
        if (weight is not None and weight.requires_grad) or (row_weight is not None and row_weight.requires_grad) or \
                (divisor is not None and divisor.requires_grad):
            return None
        needed = FOR_INPUT * input.requires_grad | FOR_TARGET * target.requires_grad
    if needed:
        return compute_with_gradient(request, tensors, outputs, needed, inplace and check_inplace(input))
    computed = run(request, tensors, outputs)
    if computed is None:
        return None
    value, _, _, _, _, *extras = computed
    return value, *extras


def run(request, tensors, outputs, expected=1.0):
    """(value, gradients for the three operands, row state, log-sum-exp, prediction, divisor), or None. Gradients are
    for the upstream gradient that is expected."""
    computed = ask(request, tensors, outputs, expected)
    return computed if outputs or computed is None else (computed, *(None,) * 7)


def ask(request, tensors, outputs, expected=1.0):
    """The same, but the value alone if nothing else is asked for."""
    dtype = NUMBERS[request.dtype] if request.dtype is not None else 0
    if not dtype and is_any_autocast() and casts(request.name, tensors[0].device.type):
        dtype = _IN_SINGLE
    by = request.divisor if tensors.divisor is None else tensors.divisor
    return _torch_rows(*request[:4], *tensors[:5], by, dtype, outputs, *told(expected))


def compute_with_gradient(request, tensors, outputs, needed, inplace):
    """The gradient is computed with the value if that is quicker and the upstream gradient is likely to be what it was
    before; else backward computes it.
    Without a reduction each row has its own, and that of nll_loss costs a GPU nothing but its zeros."""
    input, kind, expected = tensors.input, None, None
    classes = classes_of(input, request.axis)
    if request.code != NONE and not inplace and (request.name != "nll" or input.is_cpu) and \
            not is_quicker_apart(request, input, classes):
        kind = _upstream_habit.kind_of(request, input, classes)
        expected = _upstream_habit.expected(kind)
        if expected is not None:
            outputs |= needed
    if keeps_state(request, classes):
        outputs |= STATE
    computed = run(request, tensors, outputs, expected)
    if computed is None:
        return None
    value, for_input, for_target, _, state, *extras = computed
    question = request, kind, inplace, expected
    return attach_gradients(question, (value, state, for_input, for_target, None), *saved(tensors)), *extras


def returned(request, tensors, given, lse, predicted, divided_by):
    """What Liger's users know: the log-sum-exp a row, the part of the loss that z_loss has, and how often the largest
    logit is the target's. Nothing flows back from them."""
    with torch.no_grad():
        for name in given.returns:
            if name == "lse":
                yield lse
            elif name == "z_loss":
                yield z_loss_of(request, tensors, lse, divided_by)
            else:
                yield accuracy_of(request, tensors, predicted)


def z_loss_of(request, tensors, lse, divided_by):
    each = named(request)["z_loss"] * lse * lse
    if tensors.row_weight is not None:
        each = torch.where(lse == 0, 0, each * tensors.row_weight)
    if request.code == MEAN:
        return (each.sum(dtype=torch.float64) / divided_by).to(lse.dtype)
    return _rows_fallback.reduced(each, request.code)


def accuracy_of(request, tensors, predicted):
    takes_part = predicted >= 0
    right = (predicted == tensors.target) & takes_part
    return right.float() if request.code == NONE else right.sum() / takes_part.sum()
