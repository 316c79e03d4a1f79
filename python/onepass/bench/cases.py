"""The one list of cases: what is measured, on which operands, compared with whom, and the goals.

A goal is about the time as a share of a peer's, at most, or about the share of the limit's rate, at least. Sections:

  memory         what a call takes of a GPU's memory beyond inputs and gradient
  sizes          the usual losses over the number of elements, compared with everybody
  weights        means over weights and masks over the number of elements
  losses         every loss with data that suit it; weights and masks
  types          16-bit types
  rows           cross-entropy and its kin over rows of logits, and with a gradient that is scaled
  vectors        losses of vectors and of regions
  distributions  distances of two rows of logits, as distillation has them
  linear         a linear layer and the cross-entropy of its outputs, compared with the products alone
  shapes         broadcast targets, padded, transposed and unaligned operands
  plain          the library in C compared with plain C loops (CPU)
  host           what a call costs the host
  accuracy       how far off a sum of many terms is
"""

import dataclasses
import math
import re
from typing import Callable, Optional

from .._catalog import CATALOG
from . import distributions, linear, rows, vectors
from .contenders import NAMES

SECTIONS = ("memory", "sizes", "weights", "losses", "types", "rows", "vectors", "distributions", "linear", "shapes",
            "plain", "host", "accuracy")  # memory comes first
USUAL = ("mse", "smooth_l1", "hinge")
MOST_SETS = 8  # of operands that the calls of a graph go through

FRAMEWORKS = ("torch eager", "torch.compile")
EVERYBODY = ("numpy", *FRAMEWORKS, "jax")


@dataclasses.dataclass
class Operands:
    """Sets of tensors for calls that follow each other: all of one shape."""

    sets: list
    weight: object = None
    mask: object = None
    room: object = None  # for a gradient

    def gradient(self):
        """The same memory for whoever writes one."""
        if self.room is None:
            self.room = self.sets[0][0].new_empty(self.sets[0][0].shape)
        return self.room

    def all_sets(self):
        """With weight and mask after the operands."""
        more = [x for x in (self.weight, self.mask) if x is not None]
        return [[*tensors, *more] for tensors in self.sets]

    def bytes(self, mode):
        """That must move: each operand read once, the gradient written once."""
        tensors = self.all_sets()[0]
        moved = sum(size_of(x) for x in tensors)
        return float(moved + (size_of(tensors[0]) if mode != "forward" else 0))


def size_of(array):
    """In bytes."""
    return array.nbytes if hasattr(array, "nbytes") else array.numel() * array.element_size()


@dataclasses.dataclass
class Case:
    """`operands` makes them when it is the case's turn. `others` are contenders that are not by name: functions of the
    case. A `figure` is what a case has that is not a time: a function that returns it for each, in `unit`."""

    section: str
    loss: str
    mode: str
    elements: int
    operands: Optional[Callable[[], Operands]] = None
    type: str = "f32"
    variant: str = ""
    peers: tuple = ()
    with_limit: bool = True
    by_hand: str = ""  # the function of torch_reference that has weights or masks
    others: tuple = ()
    goals: dict = dataclasses.field(default_factory=dict)
    seconds: float = 1.0
    unit: str = "s"
    figure: Optional[Callable[[], dict]] = None
    on_host: bool = False
    ours: Optional[Callable] = None  # the functions, where the loss's name does not tell them
    theirs: Optional[Callable] = None

    def words(self):
        return " ".join(filter(None, (self.loss, self.mode, self.type, count_text(self.elements), self.variant)))


def count_text(count):
    """2^20, or the digits."""
    power = count.bit_length() - 1
    return f"2^{power}" if count == 1 << power else str(count)


class Cases:
    """The cases for one device. `stage` is where they are measured: torch or None, numpy or None, device, plain loops."""

    def __init__(self, stage, options):
        self.stage, self.options = stage, options
        self.torch, self.on_gpu = stage.torch, stage.device == "cuda"
        self.side = {(True, False): 32768, (True, True): 4096, (False, False): 8192, (False, True): 1024}[
            self.on_gpu, options.quick]
        self.usual = [loss for loss in USUAL if loss in options.losses] or options.losses[:3]

    def of(self, section):
        if section in ("plain", "accuracy") and (self.on_gpu or not self.torch):
            return []
        if section == "memory" and not self.on_gpu or section != "sizes" and not self.torch:
            return []
        return list(getattr(self, section)())

    # ---------------------------------------------------------------------- the data --

    def uniform(self, index, count):
        """Numbers in [-2, 2): both branches of every loss are taken, and no sum is special. The first `count` of an
        array that all cases share."""
        arrays = self.stage.arrays
        if index not in arrays or len(arrays[index]) < count:
            if self.torch:
                generator = self.torch.Generator(device=self.stage.device).manual_seed(20 + index)
                array = self.torch.empty(count, device=self.stage.device).uniform_(-2, 2, generator=generator)
            else:  # in which every loss is at home
                array = self.stage.numpy.random.default_rng(20 + index).uniform(0.05, 0.95, count).astype("float32")
            arrays[index] = array
        return arrays[index][:count]

    def tensors(self, loss, count, type="f32", shape=None):
        """Data that suit a loss."""
        uniform = [self.uniform(index, count) for index in range(len(CATALOG[loss]["operands"]))]
        if not self.torch:
            return [array.astype(NAMES[type]) for array in uniform]
        tensors = self.stage.contenders.reference.operands_of(loss, uniform)
        tensors = [tensor.to(getattr(self.torch, NAMES[type])) for tensor in tensors]
        return [tensor.view(shape) for tensor in tensors] if shape else tensors

    def pieces(self, loss, count, type):
        """Neighbouring pieces, so that the calls of a graph find theirs in the cache no more often than a program's."""
        most = max(1, min(MOST_SETS, (1 << 26) // count)) if self.on_gpu else 1
        tensors = self.tensors(loss, count * most, type)
        return Operands([[x[i * count:(i + 1) * count] for x in tensors] for i in range(most)])

    # ------------------------------------------------------------------------- sizes --

    def sizes(self):
        """As many of the mean squared error alone as show where launches and caches end."""
        options = self.options
        largest = 1 << (30 if self.on_gpu else 26)
        few = options.sizes or ([1 << 10, 1 << 16] if options.quick else
                                [1 << power for power in range(10, 31, 4) if 1 << power <= largest])
        many = options.sizes or (few if options.quick or not self.on_gpu else sorted(
            {*few, *(1 << power for power in (11, 12, 13, 16, 20, 21, 23, 24, 28))}))
        some = options.sizes or (few if options.quick or not self.on_gpu else sorted(
            {*few, *(1 << power for power in (11, 12, 13, 20))}))  # of a step
        for loss in self.usual if not options.all_losses else options.losses:
            for type in options.types:
                for mode in options.modes:
                    for count in {("mse", "forward", "f32"): many, ("mse", "step", "f32"): some}.get(
                            (loss, mode, type), few):
                        yield self.size(loss, mode, type, count)
                if self.on_gpu and "step" in options.modes and max(few) == largest:
                    yield self.size(loss, "both", type, largest)

    def size(self, loss, mode, type, count):
        peers = (*EVERYBODY, "torch.compile(grad_and_value)") if mode == "both" else EVERYBODY
        empty = (self.stage.empty_kernel,) if self.on_gpu and mode == "forward" and count <= 1 << 24 else ()
        goals = {}
        if self.on_gpu and count >= 1 << 10:
            goals["torch.compile"] = 1.05 if count <= 1 << (24 if mode == "forward" else 12) else 1.0
        return Case("sizes", loss, mode, count, lambda: self.pieces(loss, count, type), type, peers=peers, others=empty,
                    goals=goals, seconds=0.4 if self.on_gpu else 1.0)

    # ----------------------------------------------------------------------- weights --

    def weights(self):
        """Means over weights and masks from few elements to many, where PyTorch has two sums to make."""
        powers = (10, 16) if self.options.quick else (10, 11, 12, 13, 14, 16, 18, 20, 22, 24, 26, 28)
        for variant, by_hand in (("weight", "weighted_mse"), ("mask", "masked_mse"),
                                 ("weight and mask", "weighted_and_masked_mse")):
            for mode in self.options.modes:
                for count in self.options.sizes or [1 << power for power in powers]:
                    if "mse" in self.options.losses and count <= self.side * self.side:
                        yield Case("weights", "mse", mode, count, lambda variant=variant, count=count: self.weighted(
                            "mse", variant, (count,)), variant=variant, peers=("torch.compile",), by_hand=by_hand,
                            goals={"torch.compile": 1.0}, seconds=0.2)

    # ------------------------------------------------------------------------ losses --

    def losses(self):
        side = self.side if self.on_gpu else self.side // 2
        shape, count = (side, side), side * side
        peers = ("torch.compile",) if self.on_gpu else FRAMEWORKS
        for loss in self.options.losses:
            for mode in ("forward", "step"):
                yield Case("losses", loss, mode, count,
                           lambda loss=loss: Operands([self.tensors(loss, count, shape=shape)]), peers=peers, goals=self.loss_goals(loss, mode), seconds=0.3 if self.on_gpu else 0.6)
        for loss, variant, by_hand in (("mse", "weight", "weighted_mse"), ("mse", "mask", "masked_mse"),
                                       ("bce_with_logits", "weight and mask", "masked_bce_with_logits")):
            if loss in self.options.losses:
                yield Case("losses", loss, "step", count, lambda loss=loss, variant=variant: self.weighted(
                    loss, variant, shape), variant=variant, peers=peers, by_hand=by_hand, goals={"torch.compile": 1.0})

    def loss_goals(self, loss, mode):
        """What needs a series or a root an element has less time to spare for the memory. Eager PyTorch writes the terms
        of a mean before it adds them up."""
        if not self.on_gpu:
            return {"torch.compile": 1.0, "torch eager": 0.333}
        if mode == "forward":
            costly = re.search(r"\b(exp|log|log1p|expm1|sqrt|tanh|sigmoid|softplus|pow)\(", CATALOG[loss]["value"])
            return {"limit": 0.90 if costly else 0.95, "torch.compile": 1.0}
        return {"torch.compile": 0.6} if len(CATALOG[loss]["operands"]) == 2 else {}

    def weighted(self, loss, variant, shape):
        count = math.prod(shape)
        operands = Operands([self.tensors(loss, count, shape=shape)])
        if "weight" in variant:
            operands.weight = (0.5 * self.uniform(2, count) + 1.5).view(shape)
        if "mask" in variant:
            operands.mask = (self.uniform(2, count) > 0).view(shape)
        return operands

    # ------------------------------------------------------------------------- types --

    def types(self):
        """On the CPU compared with the bytes a second of f32."""
        count = self.side * self.side
        for loss in self.usual:
            for type in ("f16", "bf16"):
                for mode in ("forward", "both") if self.on_gpu else ("forward",):
                    wide = () if self.on_gpu else (
                        lambda case, loss=loss: self.stage.contenders.ours(
                            case, Operands([self.tensors(loss, count)]), "onepass, f32"),)
                    goals = {"limit": 0.93, "torch.compile": 1.0} if mode == "forward" and self.on_gpu else {}
                    yield Case("types", loss, mode, count, lambda loss=loss, type=type: Operands(
                        [self.tensors(loss, count, type)]), type, peers=("torch.compile",) if mode == "forward" else (),
                        others=wide, goals=goals, seconds=0.3)

    # -------------------------------------------------------------------------- rows --

    def works(self, module):
        """Those of a section that are of a wanted type."""
        return [work for work in module.works(self.on_gpu, self.options.quick)
                if self.options.all_types or work.type in self.options.types]

    def rows(self):
        """On a GPU also what a step has allocated at its peak."""
        for work in self.works(rows):
            type = getattr(self.torch, NAMES[work.type])
            operands = lambda work=work, type=type: rows.operands_of(self.torch, self.stage.device, work, type)
            ours, theirs = rows.ours(work), rows.theirs(self.torch, work)
            for mode in (*self.options.modes, *(["scaled"] if "step" in self.options.modes else [])):
                found = [rows.scaled(ours), rows.scaled(theirs)] if mode == "scaled" else [ours, theirs]
                yield Case("rows", work.loss, mode, math.prod(work.shape),
                           lambda operands=operands: Operands([operands()]), work.type, work.words(),
                           peers=(*FRAMEWORKS, "liger") if rows.is_for_liger(work, mode) else FRAMEWORKS,
                           goals=work.goals.get(mode, {}), ours=found[0],
                           theirs=found[1], seconds=0.4 if self.on_gpu else 2.0)
            if self.on_gpu:
                yield Case("rows", work.loss, "step", math.prod(work.shape), type=work.type,
                           variant=f"{work.words()}, memory", unit="B",
                           figure=lambda ours=ours, theirs=theirs, operands=operands: self.stage.peaks(
                               ours, theirs, operands()))

    # ----------------------------------------------------------------------- vectors --

    def vectors(self):
        return self.of_vectors("vectors", vectors)

    def distributions(self):
        return self.of_vectors("distributions", distributions)

    def of_vectors(self, section, module):
        """With the gradient for the first operand."""
        for work in self.works(module):
            type = getattr(self.torch, NAMES[work.type])
            for mode in self.options.modes:
                yield Case(section, work.loss, mode, math.prod(work.shape),
                           lambda work=work, type=type: Operands(
                               [module.operands_of(self.torch, self.stage.device, work, type)]),
                           work.type, work.words(), peers=FRAMEWORKS, goals=work.goals.get(mode, {}),
                           ours=module.ours(work), theirs=module.theirs(self.torch, work),
                           seconds=0.4 if self.on_gpu else 2.0)

    # ------------------------------------------------------------------------ linear --

    def linear(self):
        """A step; on a GPU also what it has allocated at its peak."""
        for work in linear.works(self.on_gpu, self.options.quick) if "step" in self.options.modes else ():
            count, type = work.tokens * work.classes, getattr(self.torch, NAMES[work.type])
            step = lambda work=work, type=type: linear.Step(self.torch, self.stage.device, work, type)
            yield Case("linear", "linear_cross_entropy", "step", count,
                       lambda step=step: Operands([step().tensors()]), work.type, work.words(),
                       others=linear.contenders(step, self.options.peers), with_limit=False, goals=work.goals,
                       seconds=4.0 if self.on_gpu else 2.0)
            if self.on_gpu:
                yield Case("linear", "linear_cross_entropy", "step", count, type=work.type,
                           variant=f"{work.words()}, memory", unit="B",
                           figure=lambda step=step: linear.peaks(step(), self.options.peers))

    # ------------------------------------------------------------------------ shapes --

    def layouts(self):
        """By name: the number of elements, the operands as they lie in two long arrays, and whether a gradient is
        measured too."""
        side, half = self.side, self.side // 2
        whole, quarter = side * side, half * half
        planes, edge = max(side // 512, 1), side // 16
        plane = edge * edge
        strided = lambda array, shape, strides, first=0: array[first:].as_strided(shape, strides)
        rows = lambda array, columns, pitch, first=0: strided(array, (side, columns), (pitch, 1), first)
        dense = lambda array: rows(array, side, side)
        small = lambda array: strided(array, (half, half), (half, 1))
        yield "padded rows", whole, lambda p, t: (rows(p, side, side + 32), rows(t, side, side + 32)), True
        yield "a number per row", whole, lambda p, t: (dense(p), t[:side].view(side, 1)), True
        yield "a shared row", whole, lambda p, t: (dense(p), t[:side]), True
        yield "rows padded by 1", whole, lambda p, t: (rows(p, side, side + 1), rows(t, side, side + 1)), False
        yield "one element fewer a row", side * (side - 1), lambda p, t: tuple(
            rows(x, side - 1, side) for x in (p, t)), False
        yield "both from element 1 on", whole, lambda p, t: (rows(p, side, side, 1), rows(t, side, side, 1)), False
        yield "target transposed", quarter, lambda p, t: (small(p), small(t).t()), False
        yield "both transposed", quarter, lambda p, t: (small(p).t(), small(t).t()), False
        yield "every second element", quarter, lambda p, t: tuple(
            strided(x, (half, half), (side, 2)) for x in (p, t)), False
        yield "4-D, inner dimension 3", 3 * planes * plane, lambda p, t: (
            strided(p, (planes, edge, edge, 3), (3 * plane, edge, 1, plane)),
            strided(t, (planes, edge, edge, 3), (3 * plane, 3 * edge, 3, 1))), False
        yield "bf16 prediction, f32 target", whole, lambda p, t: (dense(p).bfloat16(), dense(t)), False
        yield "f64", whole // 2, lambda p, t: tuple(dense(x)[:half].double() for x in (p, t)), False

    def shapes(self):
        """Compared with the bytes a second of dense f32; on the CPU also with plain nested loops; on a GPU the loss of
        labels, which are a row or a column as often as not, also with PyTorch."""
        for name, count, lay, has_gradient in self.layouts():
            for loss in self.usual:
                for mode in ("forward", "both", "step") if has_gradient else ("forward",):
                    yield self.shape(name, count, loss, mode, lay)

    def shape(self, name, count, loss, mode, lay):
        room, side = self.side * (self.side + 32), self.side

        def operands():
            return Operands([list(lay(*self.tensors(loss, room)))])

        def dense(case):
            flat = [x[:side * side].view(side, side) for x in self.tensors(loss, room)]
            return self.stage.contenders.ours(case, Operands([flat]), "onepass, dense")

        broadcast = name in ("a number per row", "a shared row")
        others = [dense]
        if not self.on_gpu and not broadcast and mode == "forward" and "f64" not in name and "bf16" not in name:
            others.append(lambda case: self.stage.plain_contender("plain loop", "nested", case))
        return Case("shapes", loss, mode, count, operands, variant=name, others=tuple(others), seconds=0.2,
                    peers=FRAMEWORKS if broadcast and self.on_gpu and loss == "hinge" else (),
                    with_limit=broadcast, goals={"limit": 0.95} if broadcast and self.on_gpu else {})

    # ------------------------------------------------------------------------- plain --

    def plain(self):
        """Each job by the library in C and by the plain loops, as a user would compile them, and with the flags of one
        who looks at the machine code."""
        stage, count, alone = self.stage, self.side * self.side, "plain loop, gradient alone"
        jobs = [("backward", count, None, {}), ("forward", 1000, 1, {})]
        for threads in (None, 1):
            jobs += [("forward", count, threads, {"plain loop": 1 / (0.9 if threads else 0.95)}),
                     ("both", count, threads, {alone: 1 / 0.9})]
            for size in (1 << 16, 1 << 20):  # which a cache may hold
                jobs += [("forward", size, threads, {"plain loop": 1 / 0.8}), ("both", size, threads, {alone: 1 / 0.8})]
        for mode, size, threads, goals in jobs:
            for loss in self.usual:
                yield Case("plain", loss, mode, size, lambda loss=loss, size=size: Operands([self.tensors(loss, size)]),
                           variant="one thread" if goals and threads else "", goals=goals,
                           others=tuple(stage.plain_contenders(mode, threads)), seconds=1.0 if size == count else 0.4,
                           with_limit=size == count and threads is None)

    # -------------------------------------------------------- host, memory, accuracy --

    def host(self):
        """The smallest of works, so that nothing but the call is left; and what PyTorch takes for any Function that is
        not in its own C++."""
        for mode, goal in (("forward", 0.6), ("step", 0.95)):
            others = (self.stage.empty_function,) if mode == "step" else ()
            yield Case("host", "mse", mode, 640, lambda: Operands([self.tensors("mse", 640)]), peers=("torch eager",),
                       others=others, with_limit=False, goals={"torch eager": goal}, on_host=True)

    def memory(self):
        count = self.side * self.side
        yield Case("memory", "mse", "forward", 1 << 20, variant="all calls", unit="B",
                   figure=lambda: {"onepass": self.stage.library_memory(self.usual)})
        yield Case("memory", "mse", "step", count, unit="B",
                   figure=lambda: self.stage.peak_memory(self.tensors("mse", count)))

    def accuracy(self):
        for loss in self.usual:
            yield Case("accuracy", loss, "forward", 10**6 if self.options.quick else 10**8, variant="sum", unit="ulp",
                       figure=lambda loss=loss: self.stage.sum_errors(
                           loss, self.tensors(loss, 10**6 if self.options.quick else 10**8)))
