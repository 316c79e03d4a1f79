"""The loss of a batch that is spread over the ranks of torch.distributed, with bits that do not depend on how many
there are: ranks tell each other the nodes of one tree of sums, and add nothing up on the way."""

import itertools
import math
import struct

import torch
import torch.distributed as dist

from . import _device_parts, _native, _vocabulary
from ._catalog import checked_divisor
from ._contract import MEAN, SUM
from ._device_parts import Span
from ._exchange import exchange, or_tell, rank_and_size
from ._row_request import NUMBERS
from ._shares import share_of
from ._torch_checks import check_no_gradient
from .accumulator import Accumulator, checked_first, checked_total

__all__ = ["loss", "vocab_parallel_cross_entropy"]

_COUNTS, _WEIGHTS, _PARTS, _PLACES = range(4)  # what ranks tell each other: the first three in this order
_TOLD_APART = 3  # marks, the first, that ranks must have alike in any case
_MARKS = (("has no weight", "has a weight"), ("has no mask", "has a mask"),
          ("has no averaged=True", "has averaged=True"),
          ("needs no gradients", "needs gradients, since an operand requires them"))
_TWO, _THREE = struct.Struct("<qq"), struct.Struct("<qqq")


@torch.compiler.disable
def loss(name, input, target, third=None, *, first=None, total=None, reduction="mean", weight=None, mask=None,
         divisor=None, dim=None, averaged=False, group=None, **parameters):
    """The loss of the whole batch, of which each rank of the group has a share: the same on all ranks, and
    bit-identical to one call over the whole. Its gradient for this rank's operands is that of the whole batch's loss,
    and bit-identical to that part of one call's.

        loss = onepass.distributed.loss("cross_entropy", logits, labels)

    name: one of onepass.losses(), onepass.row_losses() or onepass.vector_losses(), or that of a function, with its
        parameters by name
    input, target, third: this rank's share: elements, or rows, that follow each other in the whole. third is the third
        operand of a loss that has one; of a loss over rows, and of multi_margin, the weights of the classes
    first, total: the share's first element or row in the whole, and the whole's number of them; without them shares
        follow each other in the order of the ranks, which costs one more exchange on the CPU
    reduction: 'mean' or 'sum'
    weight, mask: of the share's elements or rows, on all ranks or on none. A mean is over what one call would divide
        by: all elements, those that the mask and ignore_index leave, or the sum of the weights, of all ranks
    divisor: what a mean is divided by instead: a number, or a tensor of one element, the same on all ranks. Of operands
        on a GPU it may be there as well: nobody looks at it then, and it must be positive
    dim: the dimension of the classes, or the first of a vector, as onepass.Accumulator.add has it
    averaged: True where something divides gradients by the number of ranks afterwards, as DistributedDataParallel and
        FSDP do: gradients are then multiplied by that number. The loss is not
    group: of torch.distributed; all ranks if not given

    All ranks of the group call it alike, with operands on the CPU or on their GPUs. What is wrong on one rank, and
    shares that overlap or leave a gap, are an error on all. On GPUs the ranks tell each other where their shares lie at
    first, by the CPU if the group has a backend for it ("cpu:gloo,cuda:nccl"); then the host waits for nothing.
    """
    rank, ranks = rank_and_size(group)
    with or_tell(group):
        first, total = checked_places(first, total)
        share = share_of(name, (input, target, third), weight, mask, dim, reduction, parameters)
        divisor = checked(divisor, share)
        if stays_on_device(share):
            places = -1 if first is None else first, -1 if total is None else total, share.count
            by = "a tensor" if isinstance(divisor, torch.Tensor) else divisor
            told = _THREE.pack(*places) + share.signature(by).encode() + (b", averaged" if averaged else b"")
        else:
            by = unknown_divisor(share) if divisor is None else divisor
            counts = share.count, int(share.taking_part()) if by is TAKING_PART else 0
    factor = ranks if averaged else 1
    if stays_on_device(share):
        spans, total = spans_of(exchange(group, _PLACES, told))
        question = group, share, spans, total, divisor, factor
        return _DeviceLoss.apply(question, *share.operands, share.weight, share.mask)
    if first is None or by is TAKING_PART:
        numbers = [_TWO.unpack(told) for told in exchange(group, _COUNTS, _TWO.pack(*counts))]
        if first is None:
            first, total = sum(count for count, _ in numbers[:rank]), sum(count for count, _ in numbers)
        by = float(sum(taking_part for _, taking_part in numbers)) if by is TAKING_PART else by
    if by is ALL:
        by = float(total)
    if by is WEIGHTS:
        with or_tell(group):
            counted = bytes(share.counted(first, total))
        by = finished(merged(exchange(group, _WEIGHTS, counted)), None)
    question = group, share, first, total, by, factor
    return _Loss.apply(question, *share.operands, share.weight, share.mask)


@torch.compiler.disable
def vocab_parallel_cross_entropy(input, target, weight=None, *, ignore_index=-100, reduction="mean", label_smoothing=0.0,
                                 z_loss=0.0, softcap=None, temperature=1.0, divisor=None, dtype=None, classes=None,
                                 group=None):
    """Cross-entropy of logits whose classes are shared out over the ranks: each has all rows, and some of the columns.
    The loss is the same on all ranks, and bit-identical to onepass.cross_entropy of all columns, wherever they are cut;
    so is each rank's part of the gradient.

        logits = hidden @ weight_of_this_rank.T
        loss = onepass.distributed.vocab_parallel_cross_entropy(logits, labels)

    input: this rank's logits, (rows, classes), (rows, classes, ...) or (classes,); ranks have the classes in their
        order, any number each. Or a DTensor with Shard on the dimension of the classes, which gives a DTensor; target,
        weight and divisor may be DTensors too, then
    target: class indices counted over all ranks' classes, int64, int32 or uint8: all of them on every rank
    weight: of all classes, on every rank
    ignore_index, reduction, label_smoothing, z_loss, softcap, temperature, divisor, dtype: as in onepass.cross_entropy
    classes: how many each rank has, in their order; without it the ranks tell each other, by the CPU if the group has a
        backend for it, and what does not go together is an error on all of them. With it the host waits for nothing
    group: of torch.distributed; all ranks if not given

    Two doubles of each tile of 1024 classes travel, four with label_smoothing, and of a tile that a boundary tears the
    logits of whoever has less of it. Boundaries at multiples of 1024 cost nothing. The way back sends nothing.
    """
    parameters = {"ignore_index": ignore_index, "label_smoothing": label_smoothing, "z_loss": z_loss,
                  "softcap": softcap, "temperature": temperature}
    if _vocabulary.is_dtensor(input):
        if group is not None:
            raise ValueError("group is set, but input is a DTensor, which knows it; expected None")
        return _vocabulary.of_dtensor(input, target, weight, reduction, parameters, divisor, dtype, classes)
    return _vocabulary.cross_entropy(input, target, weight, reduction, parameters, divisor, dtype, classes, group)


# --------------------------------------------------------------- what it is over --

# What a mean is divided by, before that is known: the number of all elements, of those that take part, or the sum of
# their weights.
ALL, TAKING_PART, WEIGHTS = "all elements", "the elements that take part", "the weights"


def checked_places(first, total):
    if (first is None) != (total is None):
        raise ValueError(f"{'total' if first is None else 'first'} is given alone; expected both first and total, or "
                         "neither, for shares in the order of the ranks")
    return (None, None) if first is None else (checked_first(first), checked_total(total))


def checked(divisor, share):
    """A number, or a tensor where the terms stay, which the host does not look at."""
    if divisor is None:
        return None
    if share.code != MEAN:
        raise ValueError("divisor is set, but reduction is 'sum'; expected 'mean', which it takes the place of the "
                         "number of elements in")
    check_no_gradient("divisor", divisor, "onepass.distributed.loss")
    if stays_on_device(share) and isinstance(divisor, torch.Tensor) and divisor.numel() == 1 and \
            divisor.device == share.operands[0].device and not divisor.is_complex():
        return divisor.detach().reshape(()).double()
    return checked_divisor(divisor, " or a tensor of one element")


def unknown_divisor(share):
    """How it comes to be known what a mean is divided by; None where the parts know it once they are put together, and
    nothing needs it before."""
    has_gradients = any(share.needed)
    if share.code != MEAN or not (has_gradients or share.weight is not None and share.counts_elements):
        return None
    return WEIGHTS if not share.counts_elements else ALL if share.all_take_part else TAKING_PART


def merged(told, marks=()):
    """The ranks' accumulators, as one. Where they do not go together, what ranks have marked may say why: a mean's
    accumulator has begun with a divisor where gradients are needed, and a mask has a say in it."""
    whole = None
    for rank, data in enumerate(told):
        try:
            part = Accumulator.from_bytes(data)
            if whole is not None:
                whole.merge(part)
        except ValueError as error:
            check_marks(marks)
            raise RuntimeError(f"rank {rank}'s share does not go with those of the ranks before it: {error}") from None
        whole = part if whole is None else whole
    return whole


def marks_of(share, is_averaged):
    """As bits, in the order of _MARKS."""
    has = share.weight is not None, share.mask is not None, is_averaged, any(share.needed)
    return sum(one << bit for bit, one in enumerate(has))


def check_marks(marks, count=len(_MARKS)):
    for rank, mark in enumerate(marks):
        for bit, words in enumerate(_MARKS[:count]):
            own, first = mark >> bit & 1, marks[0] >> bit & 1
            if own != first:
                raise RuntimeError(f"rank {rank} {words[own]}, and rank 0 {words[first]}; expected the same on all "
                                   "ranks")


def check_kinds(kinds):
    """Of all ranks, once it is known that they compute the same."""
    for rank, kind in enumerate(kinds):
        if kind != kinds[0]:
            raise RuntimeError(f"rank {rank} computes {kind.decode()}, rank 0 {kinds[0].decode()}; expected the same on "
                               "all ranks")


# ------------------------------------------------------------------- there and back --


class _Loss(torch.autograd.Function):
    """The tensors are the share's three operands, of which the third may be None, weight and mask."""

    @staticmethod
    def forward(ctx, question, *tensors):
        group, share, first, total, divisor, factor = question
        is_usable = divisor is None or 0 < divisor < math.inf
        with or_tell(group):
            soon = any(share.needed) and is_usable and share.is_soon(factor == 1)
            kept = share.empty_gradients() if soon else None
            state = share.empty_state() if any(share.needed) and not soon else None
            weight = None if divisor == 0 and share.counts_elements else share.weight  # where none takes part
            part = bytes(share.added(first, total, divisor if is_usable else None, weight, kept, state))
            told = bytes([marks_of(share, factor != 1)]) + share.kind().encode() + b"\0" + part
        told = exchange(group, _PARTS, told)
        kinds, parts = zip(*(one[1:].split(b"\0", 1) for one in told))
        marks = [one[0] for one in told]
        whole = merged(parts, marks)
        check_marks(marks, _TOLD_APART)
        check_kinds(kinds)
        value = finished(whole, share.value_type())
        ctx.save_for_backward(*tensors)
        ctx.kept, ctx.state = kept, state
        ctx.question = share, divisor_for(share, divisor, is_usable), factor
        share.operands = None  # they are saved, so that hooks of saved tensors see all that is kept
        return value

    @staticmethod
    def backward(ctx, upstream):
        check_derivative()
        share, divisor, factor = ctx.question
        kept = ctx.__dict__.pop("kept", None)  # in one step, should two threads run backward at once
        upstream = upstream if factor == 1 else upstream * factor
        found = share.gradients(ctx.saved_tensors, divisor, upstream, kept, ctx.state)
        if found is None:
            raise RuntimeError("an operand is no plain tensor any more, or the upstream gradient is none; expected "
                               "what the loss was computed of, and one gradient of the loss")
        return None, *found, None, None


def check_derivative():
    """PyTorch's once_differentiable would give gradients that look constant, and a penalty on them would be lost."""
    if torch.is_grad_enabled():
        raise RuntimeError("create_graph is set, but a loss over ranks has no second derivatives; expected backward "
                           "without it")


def finished(whole, dtype):
    try:
        return whole.finish(dtype)
    except RuntimeError as error:
        raise RuntimeError(f"the ranks' shares do not make up the whole: {error}") from None


def divisor_for(share, divisor, is_usable):
    """What gradients are divided by, as the extension takes it: a number if it is one to divide by."""
    if divisor is None:
        return None
    return float(divisor) if is_usable else torch.tensor(divisor, dtype=torch.float64, device="cpu")


# --------------------------------------------------------------------------- on GPUs --


def stays_on_device(share):
    """Whether terms are added up where they are, so that the host waits for nothing."""
    return share.operands[0].is_cuda


def spans_of(told):
    """Where the ranks' shares lie, and the total, of what all ranks tell; they compute the same, or all fail."""
    places = [_THREE.unpack_from(one) for one in told]
    signatures = [one[_THREE.size:].decode() for one in told]
    for rank, (place, signature) in enumerate(zip(places, signatures)):
        if signature != signatures[0] or (place[0] < 0, place[1]) != (places[0][0] < 0, places[0][1]):
            raise RuntimeError(f"rank {rank} computes {signature} of {place[1]}, rank 0 {signatures[0]} of "
                               f"{places[0][1]} (-1: in the order of the ranks); expected the same on all ranks")
    if places[0][0] >= 0:
        spans, total = [Span(first, first + count) for first, _, count in places], places[0][1]
    else:
        ends = list(itertools.accumulate(count for _, _, count in places))
        spans, total = [Span(end - count, end) for end, (_, _, count) in zip(ends, places)], ends[-1]
    _device_parts.check_spans(spans, total)
    return tuple(spans), total


class _DeviceLoss(torch.autograd.Function):
    """The same, of tensors whose numbers the host does not wait for. Gradients are computed by backward."""

    @staticmethod
    def forward(ctx, question, *tensors):
        group, share, spans, total, divisor, factor = question
        terms, state = share.terms()
        value = sum_over_ranks(group, terms, spans, total)
        divisor = device_divisor(group, share, spans, total, divisor) if share.code == MEAN else None
        value = rounded(value if divisor is None else quotient(value, divisor), share.value_type())
        ctx.save_for_backward(*tensors)
        ctx.question, ctx.state = (share, divisor, factor), state
        share.operands = None
        return value

    @staticmethod
    def backward(ctx, upstream):
        check_derivative()
        share, divisor, factor = ctx.question
        upstream = upstream if factor == 1 else upstream * factor
        return None, *share.gradients(ctx.saved_tensors, divisor, upstream, None, ctx.state), None, None


def sum_over_ranks(group, terms, spans, total):
    """One all_gather, of doubles."""
    rank, ranks = rank_and_size(group)
    message = _device_parts.message_of(terms, spans[rank], _device_parts.message_size(spans))
    if ranks > 1:
        places = message.new_empty(ranks, len(message))
        dist.all_gather(list(places.unbind(0)), message, group=group)
        message = places.view(-1)
    return _device_parts.sum_of(message, _device_parts.plan_of(spans, total, terms.device), terms.dtype)


def device_divisor(group, share, spans, total, divisor):
    """A number, or a tensor that the host does not look at."""
    if divisor is not None:
        return divisor
    if not share.counts_elements:
        return sum_over_ranks(group, share.counted_terms(), spans, total)
    if share.all_take_part:
        return float(total) if total else torch.zeros((), dtype=torch.float64, device=share.operands[0].device)
    count = share.taking_part()
    if rank_and_size(group)[1] > 1:
        dist.all_reduce(count, group=group)  # of whole numbers, whose sum has one result
    return count.double()


def quotient(value, divisor):
    """By a tensor in any case: with a number PyTorch multiplies by its reciprocal on a GPU, which may end in another
    digit."""
    return value / (divisor if isinstance(divisor, torch.Tensor) else torch.full_like(value, divisor))


def rounded(value, dtype):
    """From double, once, and of all NaNs to the one that the library has: that of 0/0 is another one on x86, and on a
    GPU. PyTorch rounds to 16 bits by way of float, the library does not: the loss of a row of one class is minus its
    log-probability."""
    if dtype not in (torch.float16, torch.bfloat16):
        value = value.to(dtype)
        return torch.where(value.isnan(), math.nan, value)
    label = torch.zeros(1, dtype=torch.int64, device=value.device)
    return _native.torch_rows("nll", SUM, (-100.0,), 0, -value.reshape(1, 1), label, None, None, None, None,
                              NUMBERS[dtype], 0)
