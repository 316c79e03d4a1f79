#!/usr/bin/env python3
"""Random losses over rows, vectors and distributions, computed on a GPU and on the CPU: every bit must be the same.

    python3 tests/fuzz_gpu.py --seconds 60            # a seed of the clock's, which is printed
    python3 tests/fuzz_gpu.py --seed 7 --case 1234    # a single case again, with what it is made of

The package must be found (PYTHONPATH). Shapes lie around the edges of the kernels: numbers of classes next to powers of
two, rows that begin at any address, images, gaps, transposed and expanded tensors. A difference is printed with the
command that shows it again, and the exit status is then 1. Without a GPU, or with `--device cpu`, both sides are the
CPU with another number of threads, which tests this script more than the library; `--break` alters a bit of a result
now and then, and must be noticed.
"""
import argparse
import sys
import time

import torch

import onepass
from fuzz_gpu_cases import FAMILIES, Case
from onepass import _margins, _rows, _rows_fallback, _upstream_habit, _vectors_fallback
from onepass._simulated_ranks import shares_of, value_and_gradients

BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class ByPyTorch(Exception):
    """The package has PyTorch compute this: nobody promises the bits."""


def never(*arguments, **given):
    raise ByPyTorch


def leave_out_pytorch():
    """What falls back to PyTorch is no case."""
    for module in (_rows_fallback, _vectors_fallback):
        for name in ("loss", "answer", "gradients", "reduced_rows"):
            if hasattr(module, name):
                setattr(module, name, never)
    for name in _vectors_fallback.FUNCTIONS:
        _vectors_fallback.FUNCTIONS[name] = never
    _margins._multi_margin = never


def decide_for_the_package(case):
    instead(_upstream_habit, "expected", lambda kind: case.expected)
    instead(_upstream_habit, "remember", lambda kind, upstream: None)
    instead(_rows, "is_quicker_apart", lambda request, input, classes: case.apart)
    instead(_rows, "keeps_state", lambda request, classes: request.name != "nll" and case.state)


def instead(module, name, function):
    """The module's function is another one, if there is one to be replaced."""
    getattr(module, name)
    setattr(module, name, function)


def upstream_of(case, value):
    """As large as the value: one number, or other ones for each row."""
    if case.upstream is None:
        numbers = torch.arange(value.numel(), dtype=torch.float64) % 7 - 3.5 if value.dim() else torch.ones(1)
        return numbers.reshape(value.shape).to(value.dtype).to(value.device)
    return torch.full_like(value, case.upstream)


def in_shares(case, tensors, device):
    """Ranks that share the classes: on the device; on the CPU one call over all."""
    counts = case.options["counts"]
    options = {key: value for key, value in case.options.items() if key != "counts"}
    input, target, weight = tensors["input"], tensors["target"], tensors.get("weight")
    if device == "expected":
        leaf = input.requires_grad_()
        value = onepass.cross_entropy(leaf, target, weight, **options)
        value.backward(upstream_of(case, value))
        return {"value": value.detach(), "gradient of input": leaf.grad}
    shares = shares_of(input.split(counts, 1), target, weight, **options)
    shape = () if options["reduction"] != "none" else target.shape
    upstream = upstream_of(case, torch.empty(shape, dtype=input.dtype, device=input.device))
    value, gradients = value_and_gradients(shares, upstream)
    return {"value": value, "gradient of input": torch.cat(gradients, 1)}


def compute(case, device, expected):
    """What comes out, by name, on the CPU; or the exception."""
    tensors = {name: operand.on(device) for name, operand in case.operands.items()}
    try:
        if case.call is None:
            found = in_shares(case, tensors, "expected" if expected else device)
        else:
            found = compute_call(case, tensors)
        return {name: tensor.cpu() for name, tensor in found.items()}
    except ByPyTorch:
        raise
    except Exception as problem:  # whatever it is, the case is to be shown
        return problem


def compute_call(case, tensors):
    given, memory = dict(case.options), None
    if case.inplace:
        memory, tensors["input"] = to_be_overwritten(case.operands["input"], tensors["input"])
        given["inplace"] = True
    elif case.backward:
        for name in case.with_gradient:
            tensors[name] = tensors[name].detach().requires_grad_()
    found = case.call(**tensors, **given)
    if case.backward:
        value = found["value"]
        if case.inplace:
            value.backward(upstream_of(case, value))
            found["memory of the gradient"] = memory
        else:
            gradients = torch.autograd.grad(value, [tensors[name] for name in case.with_gradient],
                                            upstream_of(case, value))
            found.update((f"gradient of {name}", one) for name, one in zip(case.with_gradient, gradients))
    return {name: tensor.detach() for name, tensor in found.items()}


def to_be_overwritten(operand, input):
    """(memory, input): the input as autograd lets it be written to, and its memory, gaps and all where that is little.
    """
    if operand.far is not None:
        input = Through.apply(input, torch.zeros((), requires_grad=True))
        return input.detach(), input
    memory = input.as_strided((operand.memory.numel(),), (1,), 0).detach().requires_grad_().clone()
    return memory.detach(), memory.as_strided(operand.size, operand.stride, operand.offset)


class Through(torch.autograd.Function):
    """A tensor as the result of an operation, in its own memory."""

    @staticmethod
    def forward(ctx, tensor, other):
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx, gradient):
        return None, torch.zeros(())


def bits(tensor, name=None):
    """NaN has one face in the library; the accuracy is PyTorch's quotient, and 0 / 0 is the hardware's."""
    tensor = tensor.contiguous()
    if name == "accuracy":
        tensor = torch.where(tensor.isnan(), float("nan"), tensor)
    return tensor.view(BITS[tensor.element_size()]) if tensor.dtype is not torch.bool else tensor


def difference(expected, found):
    """A sentence, or None."""
    if isinstance(expected, Exception) or isinstance(found, Exception):  # no case may be refused
        return f"CPU: {expected!r:.300}; other: {found!r:.300}"
    for name, one in expected.items():
        other = found[name]
        if one.shape != other.shape or one.dtype != other.dtype:
            return f"{name}: {one.dtype} {tuple(one.shape)} on the CPU, {other.dtype} {tuple(other.shape)} on the other"
        differs = bits(one, name) != bits(other, name)
        if differs.any():
            place = tuple(differs.nonzero()[0].tolist())
            return f"{name}: {int(differs.sum())} of {one.numel()} differ; at {place} the CPU has " \
                f"{shown(one, place)}, the other {shown(other, place)}"
    return None


def shown(tensor, place):
    word = 2**(8 * tensor.element_size())
    return f"{tensor[place].item()!r} (0x{bits(tensor)[place].item() % word:x})"


def break_a_bit(found, number):
    """For --break: the last bit of one number of a result."""
    if not isinstance(found, Exception) and number % 10 == 0:
        tensor = found["value"]
        if tensor.numel():
            found["value"] = (bits(tensor) ^ 1).view(tensor.dtype)


class Fuzz:
    def __init__(self, options):
        self.options, self.device = options, options.device
        self.cases = self.differences = self.left_out = 0
        self.families = dict.fromkeys(FAMILIES, 0)

    def run(self, number):
        options = self.options
        case = Case(options.seed, number, self.device != "cpu" or options.far)
        if options.trace or options.case is not None:
            print(f"{number}: {case}", flush=True)
        decide_for_the_package(case)
        try:
            torch.set_num_threads(options.threads)
            expected = compute(case, "cpu", True)
            torch.set_num_threads(1 if self.device == "cpu" else options.threads)
            found = compute(case, self.device, False)
        except ByPyTorch:
            self.left_out += 1
            return
        if options.breaks:
            break_a_bit(found, number)
        self.cases += 1
        self.families[case.family] += 1
        sentence = difference(expected, found)
        if options.case is not None:
            print(f"  the CPU has {expected}\n  the other {found}")
        if sentence:
            self.differences += 1
            print(f"DIFFERENCE: {sentence}\n  {case}\n  again: python3 tests/fuzz_gpu.py --seed {options.seed} "
                  f"--case {number}", flush=True)
        for side in (expected, found):
            if isinstance(side, Exception) and "CUDA error" in str(side):
                raise SystemExit("CUDA is of no more use to this process: the case above, or one before it, is why")

    def summary(self, seconds):
        counts = ", ".join(f"{name} {count}" for name, count in self.families.items())
        print(f"{self.cases} cases in {seconds:.0f} s ({self.cases / seconds:.0f} a second) on {self.device}, "
              f"seed {self.options.seed}:\n{self.differences} differ, {self.left_out} were left to PyTorch\n{counts}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--case", type=int, help="this case of the seed alone")
    parser.add_argument("--first", type=int, default=0, help="begin with this case of the seed")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="of the CPU")
    parser.add_argument("--most", type=int, default=10, help="end after so many differences")
    parser.add_argument("--far", action="store_true",
                        help="strides beyond 32 bits on the CPU too (of gigabytes that are mostly not touched)")
    parser.add_argument("--trace", action="store_true", help="print each case before it runs")
    parser.add_argument("--break", dest="breaks", action="store_true", help="alter a bit now and then")
    options = parser.parse_args()
    leave_out_pytorch()
    torch.set_printoptions(threshold=40)
    fuzz, begin, number = Fuzz(options), time.monotonic(), options.first
    print(f"seed {options.seed}", flush=True)
    if options.case is not None:
        fuzz.run(options.case)
    else:
        while time.monotonic() - begin < options.seconds and fuzz.differences < options.most:
            fuzz.run(number)
            number += 1
    fuzz.summary(time.monotonic() - begin)
    return 1 if fuzz.differences else 0


if __name__ == "__main__":
    sys.exit(main())
