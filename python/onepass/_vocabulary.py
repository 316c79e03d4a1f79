"""Cross-entropy of logits whose classes are shared out over the ranks of torch.distributed.

Each rank adds up its tiles of 1024 classes, all ranks are told the sums of all tiles, and each joins them, so that the
bits are those of one call over all classes. Of a tile that a boundary tears, whoever has most of it is sent the rest.
"""

import contextlib
import ctypes
import operator
import sys
import zlib
from collections import namedtuple

import torch
import torch.distributed as dist

from . import _native
from ._catalog import ROW_CATALOG, is_number, plain_number
from ._class_cuts import TILE, owned_tiles, pieces_of, spans_of, torn_tiles, whole_tiles
from ._contract import ALL_CODES, NONE, code_of
from ._exchange import exchange, or_explain, or_tell, rank_and_size
from ._row_request import FLOATS, LABELS, STATE_SIZE, class_axis, numbers_of, rows_shape
from ._rows import checked_divisor, checked_type
from ._torch_checks import check_no_gradient, check_no_transform, check_own
from ._torch_state import is_in_single

_COUNTS = 16  # what ranks tell each other, apart from what _distributed.py has

#: What is the same in every call: the loss's name, the reduction, the parameters and the axis, as the extension has
#: them, the ranks' classes, this rank and the numbers of a tile.
Question = namedtuple("Question", "name code parameters axis spans rank sums")


class Share:
    """This rank's classes, and what becomes of them in three steps: the sums of its tiles, the value of those of all
    ranks, and the gradient of its own."""

    def __init__(self, question, input, target, weight):
        self.question, self.input, self.target, self.weight = question, input, target, weight
        self.dim = class_axis(input, question.axis)
        self.rows = target.numel()
        self.span, self.all_classes = question.spans[question.rank], question.spans[-1].last

    def run(self, first, input, **tensors):
        order = ("divisor", "upstream", "value", "gradient", "log_sum_exp", "row_state", "tile_sums", "label_logit")
        _native.torch_shard(*self.question[:4], first, self.all_classes, input, self.target, self.weight,
                            *(tensors.get(name) for name in order))

    def new(self, *shape):
        return torch.empty(shape, dtype=torch.float64, device=self.input.device)

    def classes(self, tensor, classes):
        """Some of this rank's, of a tensor that has them all."""
        return tensor.narrow(self.dim, classes.first - self.span.first, classes.last - classes.first)

    # ---------------------------------------------------------------- sums of tiles --

    def sent(self):
        """(to whom, logits): parts of torn tiles that another rank adds up."""
        return [(torn.owner, side_by_side([self.classes(self.input, part)], self.dim))
                for torn in torn_tiles(self.question.spans) for rank, part in torn.parts
                if rank == self.question.rank and rank != torn.owner]

    def received(self):
        """(from whom, room for logits): the same, of the tiles that this rank adds up."""
        shape = list(self.input.shape)
        found = []
        for torn in torn_tiles(self.question.spans):
            if torn.owner == self.question.rank:
                for rank, part in torn.parts:
                    if rank != torn.owner:
                        shape[self.dim] = part.last - part.first
                        found.append((rank, self.input.new_empty(shape)))
        return found

    def added_up(self):
        """(first, end) of the tiles that this rank adds up, in their order: whole ones together, torn ones each."""
        torn = [(one.tile, one.tile + 1) for one in torn_tiles(self.question.spans) if one.owner == self.question.rank]
        begin, end = whole_tiles(self.question.spans, self.question.rank)
        return sorted([(begin, end), *torn] if begin < end else torn)

    def tile_sums(self, received, into, label_logits):
        """Of the tiles that this rank adds up, in their order, into (rows, sums, tiles), and the labels' logits among
        them: a row of label_logits for each of added_up()."""
        received = iter(part for _, part in received)
        torn = {one.tile: one for one in torn_tiles(self.question.spans)}
        tiles = self.added_up()
        for (first, last), label_logit in zip(tiles, label_logits):
            if first in torn:
                logits = side_by_side([self.classes(self.input, part) if rank == self.question.rank else next(received)
                                       for rank, part in torn[first].parts], self.dim)
            else:
                logits = self.whole(first, last)
            place = first - tiles[0][0]
            self.run(first * TILE, logits, tile_sums=into[:, :, place:place + last - first], label_logit=label_logit)

    def whole(self, begin, end):
        first = begin * TILE - self.span.first
        return self.input.narrow(self.dim, first, min(end * TILE, self.all_classes) - begin * TILE)

    # ------------------------------------------------------------- value and gradient --

    def value(self, tile_sums, label_logit, divisor, dtype):
        """With the rows' state, which the gradient is made of."""
        shape = rows_shape(self.input, self.question.axis) if self.question.code == NONE else ()
        value, state = self.input.new_empty(shape, dtype=dtype), self.new(self.rows, STATE_SIZE)
        self.run(0, self.input.narrow(self.dim, 0, 0), divisor=divisor, value=value, row_state=state,
                 tile_sums=tile_sums, label_logit=label_logit)
        return value, state

    def torn_sums(self, tile_sums):
        """What the gradient needs of tiles that this rank has a part of: their largest logits are among it."""
        return {piece: tile_sums[:, :, piece.first // TILE:piece.first // TILE + 1].clone()
                for piece in pieces_of(self.span, self.all_classes) if self.is_torn(piece)}

    def is_torn(self, piece):
        return piece.first % TILE != 0 or (piece.last % TILE != 0 and piece.last != self.all_classes)

    def gradient(self, state, label_logit, torn_sums, divisor, upstream):
        found = torch.empty_like(self.input)
        for piece in pieces_of(self.span, self.all_classes):
            self.run(piece.first, self.classes(self.input, piece), divisor=divisor, upstream=upstream,
                     gradient=self.classes(found, piece), row_state=state, label_logit=label_logit,
                     tile_sums=torn_sums.get(piece))
        return found


def side_by_side(parts, dim):
    """A contiguous copy of them, 16 bytes at a time where all lie so, which a GPU copies sooner than one by one."""
    count = 16 // parts[0].element_size()
    if all(is_in_steps(part, dim, count) for part in parts):
        return torch.cat([part.view(torch.complex128) for part in parts], dim).view(parts[0].dtype)
    return torch.cat(parts, dim).contiguous()


def is_in_steps(part, dim, count):
    """Whether its numbers along its last dimension, which is dim, are so many at a time, at multiples of 16 bytes."""
    return dim == part.dim() - 1 and part.stride(dim) == 1 and part.data_ptr() % 16 == 0 and \
        all(number % count == 0 for number in (part.shape[dim], part.storage_offset(), *part.stride()[:dim]))


# --------------------------------------------------------------------- over ranks --


def send_parts(group, share):
    """Those of torn tiles to whoever adds them up. All ranks know whether there are any."""
    received = share.received()
    if not torn_tiles(share.question.spans):
        return received
    peer = dist.get_process_group_ranks(group or dist.group.WORLD)
    to = [dist.P2POp(dist.isend, part, peer[rank], group) for rank, part in share.sent()]
    by = [dist.P2POp(dist.irecv, room, peer[rank], group) for rank, room in received]
    with or_explain():
        for work in dist.batch_isend_irecv(to + by) if to or by else ():
            work.wait()
    return received


def told_to_all(group, share):
    """The sums of all tiles and the labels' logits, by one all_gather: as many numbers from each rank as the one has that
    has most."""
    received = send_parts(group, share)
    counts, sums, rows = owned_tiles(share.question.spans), share.question.sums, share.rows
    message = share.new(rows, 1 + sums * max(counts))
    numbers = message[:, 1:].view(rows, sums, max(counts))
    own = counts[share.question.rank]
    numbers[:, :, own:] = 0
    logits = share.new(len(share.added_up()), rows)
    share.tile_sums(received, numbers[:, :, :own], logits)
    message[:, 0] = logits.amax(0) if own else -torch.inf
    if len(counts) == 1:
        return numbers, message[:, 0].contiguous()
    places = share.new(len(counts), *message.shape)
    with or_explain():
        dist.all_gather(list(places.unbind(0)), message, group=group)
    found = [place[:, 1:].view(numbers.shape)[:, :, :count] for place, count in zip(places, counts)]
    return torch.cat(found, 2), places[:, :, 0].amax(0)


class _VocabularyLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, group, question, divisor, dtype, input, target, weight):
        share = Share(question, input, target, weight)
        sums, logits = told_to_all(group, share)
        value, state = share.value(sums, logits, divisor, dtype)
        ctx.save_for_backward(input, target, weight)
        ctx.question = question, divisor
        if ctx.needs_input_grad[4]:
            ctx.kept = state, logits, share.torn_sums(sums)
        return value

    @staticmethod
    def backward(ctx, upstream):
        if torch.is_grad_enabled():
            raise RuntimeError("create_graph is set, but a loss over ranks has no second derivatives; expected "
                               "backward without it")
        question, divisor = ctx.question
        return *(None,) * 4, Share(question, *ctx.saved_tensors).gradient(*ctx.kept, divisor, upstream), None, None


# ------------------------------------------------------------------------ the call --


def check_tensors(input, target, weight):
    for name, tensor, types in (("input", input, FLOATS), ("target", target, LABELS), ("weight", weight, FLOATS)):
        if tensor is None and name == "weight":
            continue
        check_own(name, tensor)
        if tensor.dtype not in types:
            raise TypeError(f"{name} is of {tensor.dtype}; expected one of {', '.join(map(str, types))}")
        if not is_dense(tensor) or tensor.device != input.device:
            raise TypeError(f"{name} is a {type(tensor).__name__} of {tensor.layout} on {tensor.device}; expected "
                            "a dense tensor of PyTorch's own, whose numbers a CPU or a GPU has, where input is")
    check_no_transform(input, weight)
    if input.dim() == 0 or target.shape != rows_shape(input, 0):
        raise ValueError(f"input has size {tuple(input.shape)}, target size {tuple(target.shape)}; expected a class "
                         "index for each row, and the classes along dimension 1, or 0 of a single row")
    if weight is not None and weight.requires_grad and torch.is_grad_enabled():
        raise NotImplementedError("weight requires a gradient, which is not computed; expected weight.detach()")


def checked_smoothing(number):
    """For PyTorch, and for onepass.cross_entropy, below 0 is none."""
    check_no_gradient("label_smoothing", number, "vocab_parallel_cross_entropy")
    number = plain_number(number)
    return max(number, 0) if is_number(number) else number


def is_dense(tensor):
    return tensor.layout is torch.strided and not tensor.is_neg() and tensor.device.type in ("cpu", "cuda")


def check_labels(target, ignore_index, all_classes):
    """In PyTorch's words, and on all ranks alike, before any sends anything: a rank may have none of the classes. Nobody
    waits for a GPU to tell."""
    if target.is_cpu:
        target = target.long()  # narrow types would wrap what they are compared with
        wrong = target[((target < 0) | (target >= all_classes)) & (target != ignore_index)]
        if len(wrong):
            raise IndexError(f"Target {int(wrong[0])} is out of bounds.")


def checksum(tensor):
    return zlib.crc32(ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size()))  # without NumPy


def signature_of(input, target, weight, divisor, reduction, dtype, numbers):
    """What all ranks must have alike, one thing after the other in words. On the CPU labels are looked at: those of a
    rank's own rows would pass for all rows' else; and so are weights."""
    names = [known["name"] for known in ROW_CATALOG["cross_entropy"]["parameters"]]
    return [f"logits of {input.dtype}", f"labels{described(target)}", f"reduction {reduction}", f"divisor {divisor}",
            f"a value of {dtype}", "no class weights" if weight is None else f"class weights{described(weight)}",
            *(f"{name} {value:.17g}" for name, value in zip(names, numbers))]


def described(tensor):
    found = f" of {tensor.dtype} and size {tuple(tensor.shape)}"
    return f"{found} with checksum {checksum(tensor.contiguous()):08x}" if tensor.is_cpu else found


def check_classes(classes, input, ranks, rank):
    try:
        counts = tuple(operator.index(count) for count in classes)
    except TypeError:
        raise TypeError(f"classes is {classes!r}; expected how many classes each rank has, in their order") from None
    own = input.shape[class_axis(input, 0)]
    if len(counts) != ranks or min(counts) < 0 or counts[rank] != own:
        raise ValueError(f"classes is {list(counts)}, and rank {rank} of {ranks} has {own}; expected how many classes "
                         "each rank has, in their order")
    return counts


def told_counts(group, count, signature):
    """How many classes each rank has, of ranks that compute the same."""
    told = [one.decode().split("\0") for one in exchange(group, _COUNTS, "\0".join([str(count), *signature]).encode())]
    for rank, (_, *has) in enumerate(told):
        for own, first in zip(has, told[0][1:]):
            if own != first:
                raise RuntimeError(f"rank {rank} has {own}, and rank 0 {first}; expected the same on all ranks")
    return tuple(int(count) for count, *_ in told)


def cross_entropy(input, target, weight, reduction, parameters, divisor, dtype, classes, group):
    rank, ranks = rank_and_size(group)
    with or_tell(group) if classes is None else contextlib.nullcontext():
        check_tensors(input, target, weight)
        if code_of(reduction, ALL_CODES) is None:
            raise ValueError(f"{reduction} is not a valid value for reduction")
        parameters = parameters | {"label_smoothing": checked_smoothing(parameters["label_smoothing"])}
        numbers = numbers_of("cross_entropy", "vocab_parallel_cross_entropy", **parameters)
        check_no_gradient("divisor", divisor, "vocab_parallel_cross_entropy")
        ignored = int(numbers[0])
        number, tensor = checked_divisor(divisor, reduction, input)
        if reduction == "batchmean":
            reduction, number = "mean", float(target.shape[0]) if target.dim() else 1.0
            number = number or None  # a mean of no rows
        dtype = checked_type(dtype) or (torch.float32 if is_in_single(input.device.type) else input.dtype)
        if classes is None:
            by = number if tensor is None else "a tensor"
            signature = signature_of(input, target, weight, by, reduction, dtype, numbers)
        else:
            counts = check_classes(classes, input, ranks, rank)
    counts = told_counts(group, input.shape[class_axis(input, 0)], signature) if classes is None else counts
    spans = spans_of(counts)
    if spans[-1].last == 0:
        raise ValueError("no rank has a class; expected at least one")
    check_labels(target, ignored, spans[-1].last)
    if weight is not None and tuple(weight.shape) != (spans[-1].last,):
        raise ValueError(f"weight has size {tuple(weight.shape)}; expected ({spans[-1].last},): a number for each class "
                         "of all ranks, on every rank")
    sums = 4 if parameters["label_smoothing"] else 2
    question = Question("cross_entropy", code_of(reduction), numbers, 0, spans, rank, sums)
    by = tensor if tensor is not None else None if number is None else float(number)
    return _VocabularyLoss.apply(group, question, by, dtype, input, target, weight)


# ------------------------------------------------------------------------- DTensor --


def is_dtensor(tensor):
    """Whether it is one of torch.distributed.tensor, which nobody has if that was never imported."""
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(tensor, getattr(module, "DTensor", ()))


def sharded_dimension(input):
    """That of the mesh which the classes are shared out over."""
    dim, found = class_axis(input, 0), [i for i, placement in enumerate(input.placements) if placement.is_shard()]
    others = [placement for i, placement in enumerate(input.placements) if i not in found]
    if len(found) != 1 or input.placements[found[0]].dim % input.dim() != dim or \
            not all(placement.is_replicate() for placement in others):
        raise ValueError(f"input has placements {input.placements}; expected Shard({dim}), of the classes, in one "
                         "dimension of the mesh and Replicate() in all others")
    return found[0]


def unsharded(tensor):
    return tensor.full_tensor() if tensor is not None and is_dtensor(tensor) else tensor


def of_dtensor(input, target, weight, reduction, parameters, divisor, dtype, classes):
    """The same of DTensors: the loss is one too, replicated over the mesh. What a rank has need not be what torch.chunk
    would give it, and the others cannot know."""
    from torch.distributed.tensor import DTensor, Replicate
    mesh, over = input.device_mesh, sharded_dimension(input)
    value = cross_entropy(input.to_local(), unsharded(target), unsharded(weight), reduction, parameters,
                          unsharded(divisor), dtype, classes, mesh.get_group(over))
    return DTensor.from_local(value, mesh, [Replicate()] * mesh.ndim, run_check=False)
