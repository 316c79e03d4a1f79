"""A row loss of a linear layer's outputs, chunk by chunk: PyTorch multiplies a few rows of the input by the weight, the
library computes loss and gradient in that chunk of logits, and PyTorch multiplies the gradient on to the layer's
operands. No more than one chunk of logits is ever held."""

import contextlib
from collections import namedtuple

import torch

from . import _native
from ._contract import MEAN, NONE
from ._row_request import DIVIDED_BY, LONG_ROWS, NUMBERS, STATE, WITH_PROBABILITIES, named
from ._torch_state import is_any_autocast

_rows, _rows_gradient = _native.torch_rows, _native.torch_rows_gradient

#: What a computation is, beside its tensors. request: the row loss, of which dtype is that of the value. chunk: rows at
#: a time, or None. ignored: how many rows the caller says to be ignored, or None. kind: one of those below.
Question = namedtuple("Question", "request chunk ignored kind")

PLAIN = "plain"  # the classes are what the weight has rows for
OTHERS = "others"  # they are the input's own rows, all but the row itself
SAME_LABEL = "same label"  # so they are, and each row's target is whoever shares its label

#: Its tensors: input (N, H), weight (V, H), bias (V) or None, target (N) or (N, V), class weights (V) or None, and the
#: divisor of a mean: a tensor, or None.
Operands = namedtuple("Operands", "input weight bias target class_weight divisor")

#: What comes of it: every row's value, in the compute type and None if not asked for; the rows' state, or None; and the
#: gradients for input, weight and bias.
Computed = namedtuple("Computed", "each state gradients")

# A chunk's logits take no more than the weight would in f32, within these bounds: so much keeps the products busy, and
# the accumulator of the weight's gradient, which every chunk reads and writes, is small beside it.
_SMALLEST = 16 << 20
_LARGEST = {"cpu": 128 << 20, "cuda": 1 << 30}
_BLOCK = {"cpu": 8 << 20, "cuda": 64 << 20}  # bytes of a product, or of its operand, that are widened at a time
_GRAIN = 128  # rows that a GPU's products come in
_ALIGNED = 64  # classes; products of rows that begin anywhere are slow


def chunk_rows(rows, weight, bytes_a_logit):
    """How many rows to take at a time, so that all chunks are of about the same size."""
    budget = min(max(weight.numel() * 4, _SMALLEST), _LARGEST[weight.device.type])
    most = max(budget // (weight.shape[0] * bytes_a_logit), 1)
    if rows <= most:
        return max(rows, 1)
    most = max(most // _GRAIN * _GRAIN, 1) if most >= _GRAIN else most
    chunks = -(-rows // most)
    return min(-(-(-(-rows // chunks)) // _GRAIN) * _GRAIN, most)


# --------------------------------------------------------------------- before the loop --


def takes_part(question, target):
    """The indices of rows that are not ignored, in their order; None if all rows are computed. Nobody waits for a GPU
    to count them."""
    if question.request.name == WITH_PROBABILITIES:
        return None
    is_out = is_ignored(question, target)
    if target.is_cpu:
        kept = (~is_out).nonzero().squeeze(1)
        if question.ignored is not None and question.ignored != len(target) - len(kept):
            raise ValueError(f"num_ignored is {question.ignored}; of the {len(target)} labels "
                             f"{len(target) - len(kept)} are ignore_index")
        return None if len(kept) == len(target) else kept
    if not question.ignored:
        return None
    return torch.argsort(is_out.to(torch.uint8), stable=True)[:len(target) - question.ignored]


def is_ignored(question, target):
    return target.long() == int(named(question.request)["ignore_index"])  # which a narrow type would wrap


def upstream_of_rows(question, target, upstream):
    """A number's upstream gradient as the rows have it: none where a row is ignored, be it infinite or NaN."""
    if question.request.name == WITH_PROBABILITIES:
        return upstream
    return torch.where(is_ignored(question, target), 0, upstream).unsqueeze(1)


def count(question, operands):
    """What a mean is divided by: a number or a tensor. On the CPU it is also looked whether every label is a class,
    before anything is computed."""
    request, target = question.request, operands.target
    given = request.divisor if operands.divisor is None else operands.divisor
    if question.kind == SAME_LABEL:
        return (positives(target) > 0).sum(dtype=torch.float64) if given is None else given
    if request.name == WITH_PROBABILITIES:
        return float(len(target)) if given is None else given
    if not target.is_cpu and (request.code != MEAN or given is not None):
        return given
    if request.code != MEAN:
        given = 1.0
    wide = torch.float32 if operands.class_weight is None else operands.class_weight.dtype
    ones = torch.full((1, 1), -1, dtype=wide, device=target.device).expand(len(target), operands.weight.shape[0])
    ignored = int(named(request)["ignore_index"])
    found = _rows("nll", MEAN, (ignored,), 0, ones, target, operands.class_weight, None, None, given,
                  NUMBERS[torch.float64], DIVIDED_BY)
    check(found)
    return found[-1]


def positives(labels):
    """How many others share each row's label. By sorting, which waits for nobody."""
    ordered = labels.sort().values
    return torch.searchsorted(ordered, labels, right=True) - torch.searchsorted(ordered, labels) - 1


# ------------------------------------------------------------------------- the loop --


def compute(question, operands, divisor, upstream=None, state=None, needed=(False,) * 3, with_value=True):
    """Computed. `needed` are the gradients that are wanted; `upstream` is a number's, or without a reduction the rows'.
    With the rows' state the value is not computed again."""
    input, weight, bias, target, *_ = operands
    with torch.no_grad(), without_autocast(input.device.type):
        kept = takes_part(question, target)
        rows = len(input) if kept is None else len(kept)
        chunk = question.chunk or chunk_rows(rows, weight, bytes_a_logit(question, input))
        chunks = Chunks(question, operands, divisor, min(chunk, rows), keeps_state(question, with_value))
        sums = Sums(operands, needed, kept is not None)
        each = input.new_zeros(len(input), dtype=chunks.wide) if with_value else None
        for first in range(0, rows, chunk):
            place = slice(first, first + chunk) if kept is None else kept[first:first + chunk]
            part = slice(first, first + chunk)
            value, own_state = chunks.forward(place, first, None if state is None else state[part])
            if value is not None and each is not None:
                each[place] = value
            if any(needed):
                sums.add(place, chunks.rows, chunks.backward(upstream, place, own_state))
        return Computed(each, chunks.states(), sums.gradients())


def keeps_state(question, with_value):
    """Whether the rows' state is for a backward that comes later: without a reduction."""
    return with_value and question.request.code == NONE


def bytes_a_logit(question, input):
    """With the probabilities that are made of labels: flags, a number, and its copy."""
    return input.element_size() + (9 if question.kind == SAME_LABEL else 0)


def without_autocast(device_type):
    return torch.autocast(device_type, enabled=False) if is_any_autocast() else contextlib.nullcontext()


class Chunks:
    """One chunk of logits at a time, in the same memory, and what a row loss makes of it."""

    def __init__(self, question, operands, divisor, chunk, collects):
        self.request, self.kind, self.operands, self.divisor = question.request, question.kind, operands, divisor
        classes = operands.weight.shape[0]
        padded = operands.input.new_empty((chunk, -(-classes // _ALIGNED) * _ALIGNED))
        padded[:, classes:].zero_()  # PyTorch 2.13's bf16 products on a CPU multiply what stands there by 0
        self.logits = padded[:, :classes]
        self.wide = torch.float64 if operands.input.dtype == torch.float64 else torch.float32
        self.is_long = classes > LONG_ROWS
        self.collected = [] if collects and self.is_long else None
        if self.kind == SAME_LABEL:
            self.positives = positives(operands.target).clamp(min=1)

    def forward(self, place, first, state):
        """The rows' values, in the compute type, and their state; with a state only the logits are computed."""
        input, weight, bias, _, class_weight, _ = self.operands
        self.rows = input[place]
        self.now = self.logits[:len(self.rows)]
        product(self.rows, weight, bias, self.now)
        if self.kind != PLAIN and len(weight) > 1:  # one row alone is told from nobody: its target is 0
            self.now.diagonal(first).fill_(-torch.inf)  # no row is compared with itself
        self.target = self.target_of(place, first)
        if state is not None:
            return None, state
        found = _rows(self.request.name, NONE, self.request.parameters, 0, self.now, self.target, class_weight, None,
                      None, None, NUMBERS[self.wide], STATE * self.is_long)
        check(found)
        value, state = (found[0], found[4]) if self.is_long else (found, None)
        if self.collected is not None:
            self.collected.append(state)
        return value, state

    def target_of(self, place, first):
        target = self.operands.target
        if self.kind != SAME_LABEL:
            return target[place]
        same = target[place, None] == target
        same.diagonal(first).fill_(False)
        return same.to(self.wide).div_(self.positives[place, None])

    def backward(self, upstream, place, state):
        """The gradient, in the logits' own memory."""
        request = self.request
        upstream = upstream[place] if request.code == NONE else upstream
        divisor = self.divisor if request.code == MEAN else None
        if divisor is not None and self.kind == SAME_LABEL:
            divisor = divisor.clamp(min=1)  # the slopes of a mean of nothing are 0, though itself is NaN
        check(_rows_gradient(*request[:3], 0, self.now, self.target, self.operands.class_weight, None, None, divisor,
                             upstream, state, (self.now, None)))
        return self.now

    def states(self):
        if not self.collected:
            return None
        return self.collected[0] if len(self.collected) == 1 else torch.cat(self.collected)


def check(found):
    if found is None:
        raise RuntimeError("a chunk of logits could not be borrowed; expected plain tensors, as the first ones were")


def product(rows, weight, bias, out):
    if bias is None:
        torch.mm(rows, weight.t(), out=out)
    else:
        torch.addmm(bias, rows, weight.t(), out=out)


def reduced(question, each, divisor, shape):
    """Every row's value, or their sum in the library's order, whatever the chunks were."""
    request = question.request
    if request.code == NONE:
        return each.to(request.dtype).reshape(shape)
    labels = torch.zeros(len(each), dtype=torch.uint8, device=each.device)
    return _rows("nll", request.code, (-100.0,), 0, each.neg().unsqueeze(1), labels, None, None, None,
                 divisor if request.code == MEAN else None, NUMBERS[request.dtype], 0)


# -------------------------------------------------------------------- the gradients --


class Sums:
    """The gradients for input, weight and bias, of which the last two add up over the chunks: in f32 where the operands
    have 16 bits, until somebody asks for them (finished)."""

    def __init__(self, operands, needed, in_part):
        input, weight, *_ = operands
        for_input, for_weight, for_bias = needed
        self.weight, self.is_empty = weight, True
        self.wide = torch.promote_types(weight.dtype, torch.float32)
        self.of_input = (torch.zeros_like if in_part else torch.empty_like)(
            input, memory_format=torch.contiguous_format) if for_input else None
        self.of_weight = weight.new_empty(weight.shape, dtype=self.wide) if for_weight else None
        self.of_bias = weight.new_zeros(weight.shape[0], dtype=self.wide) if for_bias else None

    def add(self, place, rows, gradient):
        if self.of_input is not None and isinstance(place, slice):
            torch.mm(gradient, self.weight, out=self.of_input[place])
        elif self.of_input is not None:
            self.of_input[place] = torch.mm(gradient, self.weight)
        if self.of_weight is not None:
            add_product(self.of_weight, gradient, rows, 0 if self.is_empty else 1)
            self.is_empty = False
        if self.of_bias is not None:
            self.of_bias += gradient.sum(0, dtype=self.wide)

    def gradients(self):
        if self.of_weight is not None and self.is_empty:  # of rows that are all ignored
            self.of_weight.zero_()
        return self.of_input, self.of_weight, self.of_bias


def add_product(sum, gradient, rows, beta):
    """sum = beta * sum + gradient' rows. With a beta of 0 nothing of the sum is read."""
    if sum.dtype == rows.dtype:
        torch.addmm(sum, gradient.t(), rows, beta=beta, out=sum)
    elif multiplies_into_single(rows.device, rows.dtype):
        torch.addmm(sum, gradient.t(), rows, out_dtype=torch.float32, beta=beta, out=sum)
    else:
        add_product_in_blocks(sum, gradient, rows, beta)


def add_product_in_blocks(sum, gradient, rows, beta):
    """For a PyTorch whose products of 16-bit numbers are rounded to 16 bits. A CPU multiplies in f32 instead, which
    takes a step with bf16 instructions twice its time; on a GPU that would be tenfold, so that it adds up rounded
    products."""
    wide_rows = rows.float() if rows.is_cpu else rows
    width = max(_BLOCK[rows.device.type] // (4 * (len(rows) if rows.is_cpu else rows.shape[1])), 1)
    for first in range(0, gradient.shape[1], width):
        columns, part = gradient[:, first:first + width].t(), sum[first:first + width]
        if rows.is_cpu:
            part.addmm_(columns.float(), wide_rows, beta=beta)
        elif beta:
            part += torch.mm(columns, rows)
        else:
            part.copy_(torch.mm(columns, rows))


_into_single = {}


def multiplies_into_single(device, dtype):
    """Whether PyTorch multiplies 16-bit numbers into an f32 sum here, as it does on GPUs from 2.9 on."""
    if device.type != "cuda":
        return False
    if (device, dtype) not in _into_single:
        sum, few = torch.zeros((16, 16), device=device), torch.zeros((16, 16), dtype=dtype, device=device)
        try:
            torch.addmm(sum, few, few, out_dtype=torch.float32, out=sum)
            _into_single[device, dtype] = True
        except (NotImplementedError, RuntimeError, TypeError):
            _into_single[device, dtype] = False
    return _into_single[device, dtype]


def finished(gradient, dtype, upstream=None):
    """A gradient in its operand's type, times an upstream gradient that was not known before, a number or one for each
    row: rounded once if it was an f32 sum. The memory of what is given may be written to."""
    if gradient is None:
        return None
    if upstream is None:
        return gradient.to(dtype)
    if gradient.is_cpu and upstream.dim() == 0:
        factor = upstream.item()
        return (gradient if factor == 1 else gradient.mul_(factor)).to(dtype)
    into = gradient if gradient.dtype == dtype else torch.empty_like(gradient, dtype=dtype)
    return torch.mul(gradient, with_dimensions(upstream, dtype, gradient.dim()), out=into)


def with_dimensions(upstream, dtype, count):
    """For a product with so many dimensions: without any it would be rounded to 16 bits first."""
    return upstream.to(torch.promote_types(dtype, torch.float32)).reshape(-1, *[1] * (count - 1))
