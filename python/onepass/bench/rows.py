"""Losses over rows: cross-entropy of logits, of the shapes of language models, classifiers and images; and its kin."""

import dataclasses
import functools

import onepass

#: What a step scales its loss by, as gradient accumulation and GradScaler do.
SCALE = 0.3


@dataclasses.dataclass
class Work:
    """Logits of a shape, with the classes in dimension 1, and the goals on a GPU: a mode's, by peer."""

    shape: tuple
    type: str = "f32"
    variant: str = ""
    goals: dict = dataclasses.field(default_factory=dict)
    loss: str = "cross_entropy"

    def words(self):
        return " ".join(filter(None, (" x ".join(map(str, self.shape)), self.variant)))

    def options(self):
        return {"label_smoothing": 0.1} if self.variant == "label smoothing" else {}


GPU = [
    Work((32768, 4096), goals={"forward": {"torch.compile": 0.45, "limit": 0.82},
                               "step": {"torch.compile": 0.33, "limit": 0.85}, "scaled": {"torch.compile": 0.5}}),
    Work((8192, 128256), "bf16", goals={"forward": {"torch.compile": 0.55},
                                        "step": {"torch.compile": 0.57, "liger": 0.75, "limit": 0.62},
                                        "scaled": {"torch.compile": 0.9}}),
    Work((8192, 32000), "bf16", goals={"forward": {"torch.compile": 0.55}, "step": {"torch.compile": 0.5}}),
    Work((8192, 50257), "bf16"),  # no multiple of four
    Work((131072, 1000), goals={"forward": {"torch.compile": 0.75}, "step": {"torch.compile": 0.45}}),
    Work((4194304, 10), goals={"forward": {"torch.compile": 0.75}, "step": {"torch.compile": 0.4}}),
    Work((1048576, 100)),  # between what a thread has in its registers and what a warp is made for
    Work((8, 21, 1024, 1024), goals={"forward": {"torch eager": 0.35, "torch.compile": 0.35},
                                     "step": {"torch eager": 0.3, "torch.compile": 0.3}}),
    Work((4, 150, 512, 512)),
    Work((32768, 4096), variant="label smoothing", goals={"forward": {"torch.compile": 0.6},
                                                          "step": {"torch.compile": 0.5}}),
    Work((32768, 4096), variant="probabilities", goals={"forward": {"limit": 0.9}, "step": {"torch.compile": 0.5}}),
    Work((32768, 4096), loss="softmax_focal_loss"),
    Work((32768, 4096), loss="generalized_cross_entropy"),
]
CPU = [Work(shape, type, variant, {"forward": {"torch.compile": 0.4}, "step": {"torch.compile": 0.35}})
       for shape, type, variant in (((4096, 4096), "f32", ""), ((1024, 32000), "f32", ""), ((512, 128256), "bf16", ""),
                                    ((1048576, 10), "f32", ""), ((131072, 100), "f32", ""),
                                    ((2, 21, 512, 1024), "f32", ""),
                                    ((4096, 4096), "f32", "label smoothing"),
                                    ((4096, 4096), "f32", "probabilities"))]
CPU += [Work((4096, 4096), goals={"forward": {"torch.compile": 0.5}, "step": {"torch.compile": 0.5}}, loss=loss)
        for loss in ("softmax_focal_loss", "generalized_cross_entropy")]


def works(on_gpu, quick):
    """Those to measure; small ones to see that they run."""
    chosen = GPU if on_gpu else CPU
    return [dataclasses.replace(work, shape=small_shape(work.shape)) for work in chosen] if quick else chosen


def small_shape(shape):
    rows, classes, *others = shape
    return (max(1, rows // 256), classes, *(extent // 16 for extent in others))


def operands_of(torch, device, work, type):
    """Logits as a network has them, and labels; a twentieth of them ignored."""
    generator = torch.Generator(device=device).manual_seed(20)
    logits = torch.empty(work.shape, device=device, dtype=type).normal_(0, 2, generator=generator)
    if work.variant == "probabilities":
        target = torch.empty(work.shape, device=device, dtype=type).uniform_(generator=generator)
        return [logits, target.div_(target.sum(1, keepdim=True))]
    rows = work.shape[:1] + work.shape[2:]
    labels = torch.randint(work.shape[1], rows, device=device, generator=generator)
    return [logits, labels.masked_fill_(torch.rand(rows, device=device, generator=generator) < 0.05, -100)]


def is_for_liger(work, mode):
    """Whose rows are those of a matrix, and whose gradient takes the logits' place, so that it is scaled there."""
    return len(work.shape) == 2 and work.variant != "probabilities" and mode != "scaled" and \
        work.loss == "cross_entropy"


def ours(work):
    return functools.partial(getattr(onepass, work.loss), **work.options())


def theirs(torch, work):
    """Of losses that PyTorch lacks what people write."""
    cross_entropy = torch.nn.functional.cross_entropy

    def softmax_focal_loss(logits, labels):
        each, takes_part = cross_entropy(logits, labels, reduction="none"), labels != -100
        return ((1 - torch.exp(-each)) ** 2 * each).sum() / takes_part.sum()

    def generalized_cross_entropy(logits, labels):
        each, takes_part = cross_entropy(logits, labels, reduction="none"), labels != -100
        return ((1 - torch.exp(-0.7 * each)) / 0.7).sum() / takes_part.sum()

    if work.loss == "cross_entropy":
        return functools.partial(cross_entropy, **work.options())
    return {"softmax_focal_loss": softmax_focal_loss, "generalized_cross_entropy": generalized_cross_entropy}[work.loss]


def scaled(function):
    """A loss whose gradient is scaled while its value is not: what is timed is backward()."""
    return lambda *tensors: function(*tensors) * SCALE


def peak_memory(torch, function, tensors):
    """Bytes that a training step has allocated at its peak beyond its inputs and the gradient that it is for."""
    leaf = tensors[0].detach().requires_grad_()
    for _ in range(2):  # compiled first, and learnt from
        leaf.grad = None
        function(leaf, *tensors[1:]).backward()
    leaf.grad = None
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    function(leaf, *tensors[1:]).backward()
    torch.cuda.synchronize()
    return max(0, torch.cuda.max_memory_allocated() - before - tensors[0].nbytes)
