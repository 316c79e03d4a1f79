"""The works over all losses of the library, each with data that suit it: its mean, and its mean with a gradient.

Beside the memory's limit for its bytes and beside torch.compile of what a user of PyTorch writes, which also is the
reference in double precision. Weights and masks have one work each, beside the same by hand.
"""

import dataclasses
import re
from typing import Callable, Optional

import torch

from torch_words import DATA, WORDS, masked_bce_with_logits, masked_mse, weighted_mse

from . import peers, timing
from .bench import Beside, compare
from .large import size_of
from .onepass_c import Call
from .report import AT_LEAST, AT_MOST, RATE

ROUNDS = 11  # of turns: there are many works
PIECE = 1024  # rows that the reference looks at together
SAMPLE = 256  # rows at the beginning, in the middle and at the end whose gradient is checked
TOLERANCE = 2e-6  # of a gradient, relative to the largest there is

TRANSCENDENTAL = re.compile(r"\b(exp|log|log1p|sqrt|tanh|sigmoid|softplus|pow)\(")


def forward_bar(loss):
    """Of the plain read's rate: what needs a series or a root an element has less time to spare for the memory."""
    return 0.90 if TRANSCENDENTAL.search(loss.value) else 0.95


# -------------------------------------------------------------------- the work --


@dataclasses.dataclass
class Work:
    """A loss over its operands. `sums` returns what a user of PyTorch computes, as a sum and what it is divided by."""

    name: str
    loss: str
    operands: list
    sums: Callable
    parameters: tuple = ()
    weight: Optional[torch.Tensor] = None
    mask: Optional[torch.Tensor] = None

    def tensors(self):
        """All that PyTorch's function takes."""
        return self.operands + [tensor for tensor in (self.weight, self.mask) if tensor is not None]

    def ours(self, outputs):
        """What our call takes beyond prediction and target."""
        third = self.operands[2] if len(self.operands) == 3 else None
        return dict(outputs, third=third, weight=self.weight, mask=self.mask, parameters=self.parameters)

    def in_double(self, first, count):
        """Some rows of all tensors; a mask stays what it is."""
        return [tensor[first:first + count] if tensor.dtype == torch.bool else tensor[first:first + count].double()
                for tensor in self.tensors()]

    def reference(self):
        """The mean in double precision, and what the sum was divided by."""
        totals = [self.sums(*self.in_double(first, PIECE)) for first in range(0, self.operands[0].shape[0], PIECE)]
        total, divisor = (float(sum(column)) for column in zip(*totals))
        return total / divisor, divisor


def sums_of(mean):
    """The sums of a function that returns a mean."""
    return lambda p, *others: (mean(p, *others) * p.numel(), p.numel())


def mean_of(sums):
    def mean(*tensors):
        total, divisor = sums(*tensors)
        return total / divisor

    return mean


def operand(bench, index, kind):
    """Data of a kind, made of one of the bench's arrays of numbers in [-2, 2)."""
    source = (bench.p, bench.t)[index % 2]
    return DATA[kind](source.flip(0) if index > 1 else source)


def operands(bench, words):
    return [operand(bench, index, kind) for index, kind in enumerate(words.data)]


def gradient_of(bench):
    return bench.g


# ------------------------------------------------------------------ the section --


def measure_family(bench):
    side = bench.side
    bench.report.begin("family", f"every loss, mean, f32, {side} x {side}, with data that suit it")
    for loss in bench.library.losses():
        if not bench.losses or loss.name in bench.losses:
            loss_works(bench, loss)
            timing.free_memory()
    for name, loss, *rest in WEIGHTED:
        if not bench.losses or loss in bench.losses:
            weighted_work(bench, name, loss, *rest)
            timing.free_memory()


def loss_works(bench, loss):
    if loss.name not in WORDS:
        print(f"  {loss.name}: not measured, since bench/torch_words.py has no words of PyTorch's for it")
        return
    words = WORDS[loss.name]
    work = Work(loss.name, loss.name, operands(bench, words), sums_of(words.function), words.parameters)
    reference = work.reference()
    forward_work(bench, work, words.function, forward_bar(loss), reference)
    gradient_work(bench, work, words.function, 0.6 if len(work.operands) == 2 else None, reference)


def forward_work(bench, work, function, bar, reference):
    tensors = work.tensors()
    limit = bench.limit("plain read", lambda limits: limits.reading(*tensors))
    besides = [Beside(limit, RATE, bench.bar(AT_LEAST, bar)),
               Beside(peers.compiled_call(function, *tensors), bar=bench.bar(AT_MOST, 1))]
    ours = bench.ours(work.loss, *work.operands[:2], size_of(*tensors), **work.ours({"value": bench.value}))
    compare(bench, f"{work.name}: forward", tensors[0].numel(), ours, besides, reference[0], ROUNDS)


def gradient_work(bench, work, function, bar, reference):
    """The limit reads all arrays of numbers; a mask's bytes count for ours, and the rates are compared."""
    name, tensors, gradient = f"{work.name}: value and gradient", work.tensors(), gradient_of(bench)
    limit = bench.limit("plain read and write", lambda limits: limits.writing(
        gradient, *(tensor for tensor in tensors if tensor.dtype == gradient.dtype)))
    besides = [Beside(limit, RATE),
               Beside(peers.compiled_training(function, *tensors), bar=bench.bar(AT_MOST, bar) if bar else None)]
    given = work.ours({"value": bench.value, "gradient": gradient})
    ours = bench.ours(work.loss, *work.operands[:2], size_of(*tensors, gradient), **given)
    compare(bench, name, gradient.numel(), ours, besides, reference[0], ROUNDS)
    call = Call(bench.library, work.loss, *work.operands[:2], **given)
    check_gradient(bench, name, work, call, gradient, reference[1])


# ------------------------------------------------------------- weights and masks --


# What it is called, its loss, the same by hand, and whether it has weights, or a mask that leaves half.
WEIGHTED = [("mse, dense weight", "mse", weighted_mse, True, False),
            ("mse, dense mask", "mse", masked_mse, False, True),
            ("bce_with_logits, weight and mask", "bce_with_logits", masked_bce_with_logits, True, True)]


def weighted_work(bench, name, loss, sums, has_weight, has_mask):
    work = Work(name, loss, operands(bench, WORDS[loss]), sums)
    work.weight = operand(bench, 2, "positive") if has_weight else None
    work.mask = operand(bench, 3, "any") > 0 if has_mask else None
    gradient_work(bench, work, mean_of(sums), 1, work.reference())


# -------------------------------------------------------------------- gradients --


def check_gradient(bench, name, work, call, gradient, divisor):
    """That all of it is written, after the buffer was poisoned, and that some rows have what autograd has in double."""
    gradient.fill_(float("nan"))
    try:
        call.run()
        torch.cuda.synchronize()
    except RuntimeError as error:
        bench.report.fail(name, timing.reason_of(error))
        return
    rows = gradient.shape[0]
    unwritten = sum(int(gradient[first:first + PIECE].isnan().sum()) for first in range(0, rows, PIECE))
    if unwritten:
        bench.report.fail(name, f"{unwritten} elements of the gradient are not a number")
        return
    for first in (0, (rows - SAMPLE) // 2, rows - SAMPLE):
        share = share_of_mistakes(work, gradient[first:first + SAMPLE], first, divisor)
        if share > 1e-6:
            bench.report.fail(name, f"{100 * share:.4g} % of the gradient from row {first} on is wrong")
    timing.free_memory()


def share_of_mistakes(work, found, first, divisor):
    """A few elements may be off: at a kink, float and double can stand on two sides."""
    prediction, *others = work.in_double(first, SAMPLE)
    prediction.requires_grad_()
    total, _ = work.sums(prediction, *others)
    expected, = torch.autograd.grad(total, prediction)
    error = (found.double() * divisor - expected).abs()
    return float((~(error <= TOLERANCE * float(expected.abs().max()))).double().mean())
