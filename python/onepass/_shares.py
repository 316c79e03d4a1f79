"""A rank's share of the operands, a class for each family of losses: what it counts, what type its value has, and its
gradients once it is known what a mean is divided by."""

import math

import torch

from . import _native, _rows, _vectors, accumulator
from ._autograd import SCALE, gradient_time
from ._catalog import CATALOG, ROW_CATALOG, VECTOR_CATALOG, as_number, default_of, is_number, needed_operands
from ._catalog import vector_count
from ._contract import MEAN, NAMES, NONE, Given, RowGiven, check_axis, contract_of
from ._result import IN_SINGLE, result_flags, result_type
from ._row_request import (NUMBERS, STATE, STATE_SIZE, Request, Tensors, casts, check_row_tensors, class_axis,
                           classes_of, has_labels, keeps_state, rows_shape)
from ._row_request import result_type as row_type
from ._torch_checks import (check_kinds, check_no_gradient, check_no_transform, check_own, check_weight, checked_shape,
                            checked_variance)
from ._torch_state import is_in_single
from ._vector_request import Tensors as VectorTensors
from ._vector_request import class_weight_of
from ._vector_request import result_type as vector_type
from ._vector_request import rows_shape as vector_rows_shape
from .functional import known_loss, values_of


def share_of(name, operands, weight, mask, dim, reduction, parameters):
    """The share, with every check that can be made of it alone."""
    input, target, third = operands
    for called, one in (("input", input), ("target", target), ("weight", weight), ("mask", mask)):
        if one is not None or called in ("input", "target"):
            check_own(called, one)
    check_no_transform(input, target, weight)
    loss, known = known_loss(name, third, parameters)
    if loss == "cross_entropy" and target.shape == input.shape and target.is_floating_point():
        loss, known = known_loss("cross_entropy_with_probabilities", third, parameters)
    given = values_of(known, parameters)
    for one, value in zip(known["parameters"], given):
        check_no_gradient(one["name"], value, "onepass.distributed.loss")
    numbers = tuple([as_number(loss, one, default_of(one) if value is None else value)
                     for one, value in zip(known["parameters"], given)])
    if not len(needed_operands(known)) <= 2 + (third is not None) <= len(known["operands"]):
        count = 2 + (third is not None)
        raise TypeError(f"{loss} has the operands {', '.join(known['operands'])}; {count} were given")
    if third is not None and not (loss == "gaussian_nll" and is_number(third)):
        check_own(known["operands"][2], third)
    if reduction not in ("mean", "sum"):
        raise ValueError(f"reduction is {reduction!r}; expected 'mean' or 'sum'")
    for called, one in (("weight", weight), ("mask", mask)):
        if one is not None and one.requires_grad and torch.is_grad_enabled():
            raise ValueError(f"{called} requires a gradient, which a loss over ranks does not have; expected "
                             f"{called}.detach()")
    if "class_weight" in known["operands"] and third is not None and third.requires_grad and torch.is_grad_enabled():
        raise ValueError("the classes' weights require a gradient, which a loss over ranks does not have; expected "
                         "weights that were detached")
    family = Elements if loss in CATALOG else Rows if loss in ROW_CATALOG else Vectors
    code = 0 if reduction == "mean" else 1
    return family(loss, operands, weight, mask, accumulator.axis_of(loss, dim), code, numbers)


def plain(found):
    """What the extension has computed; it does not of tensors that are none of PyTorch's own, or lie oddly."""
    if found is None:
        raise TypeError("an operand is no plain tensor; expected dense tensors of PyTorch's own")
    return found


class Share:
    """What the families have in common. operands, weight and mask are tensors of one device; differentiable are the
    places of operands that can have a gradient. Each family has, beside what is here, the rules that operands are
    checked by, the type of the value, the share's gradients, and its terms, in the compute type and in their order,
    with what the way back can use of the rows."""

    def __init__(self, loss, operands, weight, mask, axis, code, parameters):
        self.loss, self.weight, self.mask, self.axis = loss, weight, mask, axis
        self.code, self.parameters = code, parameters
        self.operands = self.checked(operands)
        self.needed = [torch.is_grad_enabled() and one is not None and one.requires_grad and k in self.differentiable
                       for k, one in enumerate(self.operands)]
        plain = [one for one in (*self.operands, weight, mask) if one is not None]
        if len({one.device for one in plain}) > 1:
            raise ValueError(f"operands are on {', '.join(sorted({str(one.device) for one in plain}))}; expected one "
                             "device")

    def signature(self, divisor):
        """What all ranks must have alike, in words."""
        parameters = ", ".join(f"{value:.17g}" for value in self.parameters)
        has = [called for called, one in (("weight", self.weight), ("mask", self.mask)) if one is not None]
        words = [NAMES[self.code], *([] if divisor is None else [f"divisor {divisor}"]), *has,
                 *(["gradients"] if any(self.needed) else [])]
        return f"{self.loss}({parameters}){self.width()} in {self.compute_type()}, {', '.join(words)}, {self.kind()}"

    def width(self):
        """How many classes a row has, or elements a vector, in words."""
        return ""

    def kind(self):
        """What all ranks must have alike that their accumulators do not know, in words. These have a fingerprint of the
        classes' weights, on the CPU; nobody waits for a GPU to tell more than their type."""
        has = ""
        if "class_weight" in accumulator.known_by(self.loss)["operands"]:
            has = " without class weights" if self.operands[2] is None else \
                f" with class weights of {self.operands[2].dtype}"
        return f"a value of {self.value_type()}{has}"

    @property
    def count(self):
        """Elements or rows."""
        return math.prod(self.shape)

    @property
    def counts_elements(self):
        """Whether a mean is divided by a number of elements or rows, and by no weights."""
        return self.weight is None

    @property
    def all_take_part(self):
        """Whether nothing leaves an element or a row out."""
        return self.mask is None

    def taking_part(self):
        """How many elements or rows a mask, or something else, leaves: a tensor."""
        return torch.count_nonzero(self.mask.expand(self.shape))

    def compute_type(self):
        wide = [one for one in (*self.operands, self.weight) if one is not None and one.dtype == torch.float64]
        return torch.float64 if wide else torch.float32

    def counted(self, first, total):
        """An accumulator of what this share's elements count for in a weighted mean: the losses of predictions that are
        off by 1."""
        found = accumulator.Accumulator("mse", total, reduction="sum")
        one, zero = (self.everywhere(number, self.shape) for number in (1, 0))
        found.add(one, zero, first=first, weight=self.weight, mask=self.mask)
        return found

    def counted_terms(self):
        """What they count for in a weighted mean: see counted()."""
        one, zero = (self.everywhere(number, self.shape) for number in (1, 0))
        return plain(_native.torch_loss("mse", NONE, (), one, zero, 0, 0, True, None, self.weight,
                                        self.mask)).reshape(-1)

    def everywhere(self, number, shape):
        return torch.full((), number, dtype=self.compute_type(), device=self.operands[0].device).expand(shape)

    def added(self, first, total, divisor, weight, gradients, state):
        """An accumulator of this share's part."""
        names = [known["name"] for known in accumulator.known_by(self.loss)["parameters"]]
        part = accumulator.Accumulator(self.loss, total, reduction=NAMES[self.code], divisor=divisor,
                                       **dict(zip(names, self.parameters)))
        if self.count > 0:
            part.add_slice(self.operands, first, weight, self.mask, self.axis, gradients or (None,) * 3, state)
        return part

    def empty_gradients(self):
        return [torch.empty_like(one) if need else None for one, need in zip(self.operands, self.needed)]

    def empty_state(self):
        """For a gradient that is computed later, where something saves a second look at the operands."""
        return None


class Elements(Share):
    differentiable = 0, 1, 2

    def checked(self, operands):
        input, target, third = operands
        contract, given = contract_of(self.loss), Given(third, self.weight, self.mask, False)
        check_kinds(self.loss, input, target, given)
        if self.loss == "gaussian_nll":
            third = checked_variance(input, given)
        if self.weight is not None and not contract.free_weight:
            check_weight(input, given)
        self.shape = checked_shape(self.loss, contract, (input, target, third, self.weight, self.mask), False)
        given_operands = [one for one in (input, target, third) if one is not None]
        if self.shape is None:
            sizes = ", ".join(str(tuple(one.shape)) for one in given_operands)
            raise ValueError(f"operands of sizes {sizes} cannot be broadcast together")
        expanded = [one if one.shape == self.shape else one.expand(self.shape) for one in given_operands]
        return (*expanded, None)[:3]

    @property
    def counts_elements(self):
        return self.weight is None or contract_of(self.loss).mean_of_all

    def value_type(self):
        flags = result_flags(contract_of(self.loss), self.code)
        flags |= IN_SINGLE if is_in_single(self.operands[0].device.type) else 0
        return result_type((*self.operands, self.weight, self.mask), flags)

    def terms(self):
        """The result has the type that is computed in unless a number without dimensions makes that double."""
        input, target, third = self.operands
        if self.compute_type() is torch.float64:
            input = input.double()
        return plain(_native.torch_loss(self.loss, NONE, self.parameters, input, target, IN_SINGLE, 0, True, third,
                                        self.weight, self.mask)).reshape(-1), None

    def is_soon(self, upstream_is_one):
        """Whether gradients are computed with the value, for an upstream gradient of 1, and multiplied by another."""
        types = tuple(one.dtype for one in self.operands if one is not None)
        outputs = sum(need << k for k, need in enumerate(self.needed))
        return gradient_time(MEAN, types, self.weight, self.mask, outputs) is SCALE

    def gradients(self, tensors, divisor, upstream, kept, state):
        if kept is not None and _native.torch_scale(upstream, *kept):
            return kept
        input, target, third, weight, mask = tensors
        outputs = tuple(need or None for need in self.needed)
        found = _native.torch_gradient(self.loss, self.code, self.parameters, input, target, upstream, outputs, third,
                                       weight, mask, divisor)
        return None if found is None else (*found, None)[:3]


class OverRows(Share):
    """What losses over rows and of vectors have in common."""

    def request(self):
        return Request(self.loss, self.code, self.parameters, self.axis, None, None)

    def keeps_state(self):
        return False

    def terms(self):
        outputs = STATE if any(self.needed) and self.keeps_state() else 0
        found = plain(_native.torch_rows(self.loss, NONE, self.parameters, self.axis, *self.operands, self.weight,
                                         self.mask, None, NUMBERS[self.compute_type()], outputs))
        value, state = (found[0], found[4]) if outputs else (found, None)
        return value.reshape(-1), state

    def empty_state(self):
        return torch.empty(self.count, STATE_SIZE, dtype=torch.float64, device="cpu") if self.keeps_state() else None

    def gradients(self, tensors, divisor, upstream, kept, state):
        outputs = tuple(kept) if kept is not None else tuple(need or None for need in self.needed)
        return _native.torch_rows_gradient(self.loss, self.code, self.parameters, self.axis, *tensors, divisor,
                                           upstream, state, outputs)


class Rows(OverRows):
    differentiable = 0, 1

    def checked(self, operands):
        input, target, weight = operands
        _rows.check_kinds(input, target, weight, RowGiven(row_weight=self.weight, mask=self.mask))
        if self.axis:
            check_axis(input.dim(), self.axis)
        _rows.check_order(self.loss, Tensors(input, target, weight), self.axis)
        self.shape = rows_shape(input, self.axis)
        check_row_tensors(self.weight, self.mask, self.shape, "row_weight")
        return operands

    def width(self):
        return f" of {self.operands[0].shape[class_axis(self.operands[0], self.axis)]} classes"

    @property
    def has_labels(self):
        return has_labels(self.request())

    @property
    def counts_elements(self):
        return self.weight is None and not (self.has_labels and self.operands[2] is not None)

    @property
    def all_take_part(self):
        return self.mask is None and not self.has_labels

    @property
    def ignore_index(self):
        names = [known["name"] for known in ROW_CATALOG[self.loss]["parameters"]]
        return int(self.parameters[names.index("ignore_index")])

    def taking_part(self):
        if not self.has_labels:
            return super().taking_part()
        found = self.operands[1].long() != self.ignore_index  # which a narrow type would wrap
        return torch.count_nonzero(found if self.mask is None else found & (self.mask != 0))

    def counted(self, first, total):
        """Where there are labels, these have weights: the loss of log-probabilities of -1 is what they count for."""
        if not self.has_labels:
            return super().counted(first, total)
        input, target, weight = self.operands
        found = accumulator.Accumulator("nll", total, reduction="sum", ignore_index=self.ignore_index)
        minus = self.everywhere(-1, input.shape)
        found.add_slice((minus, target, weight), first, self.weight, self.mask, self.axis, (None,) * 3, None)
        return found

    def counted_terms(self):
        if not self.has_labels:
            return super().counted_terms()
        input, target, weight = self.operands
        return plain(_native.torch_rows("nll", NONE, (float(self.ignore_index),), self.axis,
                                        self.everywhere(-1, input.shape), target, weight, self.weight, self.mask, None,
                                        NUMBERS[self.compute_type()], 0)).reshape(-1)

    def value_type(self):
        tensors = Tensors(*self.operands, self.weight, self.mask)
        return row_type(self.request(), tensors, is_in_single(self.operands[0].device.type))

    def is_soon(self, upstream_is_one):
        return upstream_is_one and self.operands[0].dtype is not torch.float16

    def keeps_state(self):
        return keeps_state(self.request(), classes_of(self.operands[0], self.axis))


class Vectors(OverRows):
    differentiable = 0, 1, 2

    def checked(self, operands):
        named = dict(zip(VECTOR_CATALOG[self.loss]["operands"], operands))
        _vectors.check_kinds(**named, weight=self.weight, mask=self.mask)
        vectors = self.vectors_of(operands)
        common = _vectors.shape_of(*vectors)
        if not common:
            raise ValueError(f"operands of sizes {', '.join(str(tuple(one.shape)) for one in vectors)} and types "
                             f"{', '.join(str(one.dtype) for one in vectors)}; expected floats that broadcast together")
        if self.axis:
            check_axis(len(common), self.axis)
        expanded = _vectors.expanded(common, *vectors)
        self.shape = vector_rows_shape(expanded[0], self.axis)
        _vectors.check_target(self.loss, operands, self.shape)
        expanded += [target.detach() for target in operands[len(vectors):] if target is not None]
        check_row_tensors(self.weight, self.mask, self.shape)
        return (*expanded, None)[:3]

    def width(self):
        return f" of vectors of {math.prod(self.operands[0].shape[len(self.shape):])} elements"

    def vectors_of(self, operands):
        return operands[:vector_count(self.loss)]

    def compute_type(self):
        deciding = *self.vectors_of(self.operands), class_weight_of(self.request(), VectorTensors(*self.operands))
        wide = [one for one in (*deciding, self.weight) if one is not None and one.dtype == torch.float64]
        return torch.float64 if wide else torch.float32

    def value_type(self):
        tensors = VectorTensors(*self.operands, self.weight, self.mask)
        return vector_type(self.request(), tensors, casts(self.loss, self.operands[0].device.type))

    def is_soon(self, upstream_is_one):
        return upstream_is_one and not any(one.dtype is torch.float16 for one, need in zip(self.operands, self.needed)
                                           if need)
