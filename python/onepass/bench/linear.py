"""A linear layer and the cross-entropy of its outputs: a training step with gradients for hidden states and weight, of
the shapes of language models."""

import dataclasses

import onepass

from .clock import Absent, Contender
from .machine import installed

PRODUCTS, CHUNKED = "three products", "torch chunked"


@dataclasses.dataclass
class Work:
    tokens: int
    features: int
    classes: int
    type: str
    goals: dict = dataclasses.field(default_factory=dict)

    def words(self):
        return f"{self.tokens} x {self.features} x {self.classes}"


GPU = [Work(16384, 4096, 128256, "bf16", {PRODUCTS: 1.25, CHUNKED: 1.0, "liger": 1.0}),
       Work(8192, 4096, 32000, "bf16", {CHUNKED: 1.0, "liger": 1.0})]
CPU = [Work(1024, 512, 32000, "f32", {"torch eager": 1.0})]


def works(on_gpu, quick):
    """Those to measure; small ones to see that they run."""
    chosen = GPU if on_gpu else CPU
    return [Work(64, 32, 2000, work.type) for work in chosen[:1]] if quick else chosen


class Step:
    """One work's operands, and whoever computes a step of it."""

    def __init__(self, torch, device, work, dtype):
        generator = torch.Generator(device=device).manual_seed(20)
        made = lambda *shape: torch.empty(shape, device=device, dtype=dtype).normal_(0, 1, generator=generator)
        self.torch, self.work = torch, work
        self.hidden = made(work.tokens, work.features).requires_grad_()
        self.weight = made(work.classes, work.features).mul_(work.features**-0.5).requires_grad_()
        labels = torch.randint(work.classes, (work.tokens,), device=device, generator=generator)
        ignored = torch.rand(work.tokens, device=device, generator=generator) < 0.05
        self.labels = labels.masked_fill_(ignored, -100)

    def tensors(self):
        return [self.hidden.detach(), self.weight.detach(), self.labels]

    def run(self, loss):
        """The loss; the gradients are left in .grad."""
        self.hidden.grad = self.weight.grad = None
        value = loss(self.hidden, self.weight, self.labels)
        value.backward()
        return value.detach()

    def products(self):
        """What no implementation can do without: logits, and their gradient times weight and hidden states; all rows
        at once."""
        torch, hidden, weight = self.torch, self.hidden.detach(), self.weight.detach()
        logits = hidden.new_empty((len(hidden), len(weight)))
        for_hidden, for_weight = torch.empty_like(hidden), torch.empty_like(weight)

        def run():
            torch.mm(hidden, weight.t(), out=logits)
            torch.mm(logits, weight, out=for_hidden)
            torch.mm(logits.t(), hidden, out=for_weight)

        return run


def eager(torch):
    function = torch.nn.functional
    return lambda hidden, weight, labels: function.cross_entropy(function.linear(hidden, weight), labels)


def chunked(torch):
    function = getattr(torch.nn.functional, "linear_cross_entropy", None)
    if function is None:
        raise Absent("PyTorch has it from 2.13 on")
    options = torch.nn.LinearCrossEntropyOptions()
    return lambda hidden, weight, labels: function(hidden, weight, labels, options=options)


def liger(torch):
    found = installed("liger_kernel.transformers.functional")
    if not found:
        raise Absent("liger-kernel is not installed")
    if not torch.cuda.is_available():
        raise Absent("liger-kernel needs a GPU")
    return lambda hidden, weight, labels: found.liger_fused_linear_cross_entropy(hidden, weight, labels)


def compiled(torch):
    return torch.compile(eager(torch), dynamic=False, fullgraph=True)


LOSSES = {"onepass": lambda torch: onepass.linear_cross_entropy, "torch eager": eager, "torch.compile": compiled,
          CHUNKED: chunked, "liger": liger}


def contenders(step, peers):
    """Functions of a case, ours first."""
    def maker(name):
        def make():
            made = step()
            if name == PRODUCTS:
                return [made.products()]
            loss = LOSSES[name](made.torch)
            return [lambda: made.run(loss)]

        return lambda case: Contender(name, make)

    chosen = [name for name in LOSSES if name in ("onepass", CHUNKED) or name in peers]
    return tuple(maker(name) for name in (chosen[0], PRODUCTS, *chosen[1:]))


def peaks(step, peers):
    """Bytes that a step has allocated at its peak beyond its inputs and gradients."""
    torch, found = step.torch, {}
    for name in LOSSES:
        if name not in ("onepass", CHUNKED) and name not in peers:
            continue
        try:
            loss = LOSSES[name](torch)
        except Absent:
            continue
        step.run(loss)
        step.hidden.grad = step.weight.grad = None
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        step.run(loss)
        torch.cuda.synchronize()
        found[name] = max(0, torch.cuda.max_memory_allocated() - before - step.hidden.nbytes - step.weight.nbytes)
    return found
