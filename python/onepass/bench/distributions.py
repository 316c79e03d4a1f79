"""Distances of two rows of logits: a student's and its teacher's, of the shapes of classifiers and language models."""

import dataclasses
import functools

import onepass

from .vectors import Work

HALF = {"forward": {"torch.compile": 0.5}, "step": {"torch.compile": 0.5}}

GPU = [
    Work("kl_div_with_logits", (32768, 4096), goals=HALF),
    Work("kl_div_with_logits", (8192, 128256), "bf16"),
    Work("kl_div_with_logits", (131072, 1000)),
    Work("js_div_with_logits", (32768, 4096)),
    Work("tv_distance_with_logits", (32768, 4096)),
]
CPU = [Work(loss, shape, type, goals=HALF)
       for loss, shape, type in (("kl_div_with_logits", (2048, 4096), "f32"),
                                 ("kl_div_with_logits", (256, 32000), "bf16"),
                                 ("js_div_with_logits", (2048, 4096), "f32"),
                                 ("tv_distance_with_logits", (2048, 4096), "f32"))]
TEMPERATURE = 2.0


def works(on_gpu, quick):
    """Those to measure; small ones to see that they run."""
    chosen = GPU if on_gpu else CPU
    return [dataclasses.replace(work, shape=(work.shape[0] // 256, work.shape[1])) for work in chosen] if quick else \
        chosen


def operands_of(torch, device, work, type):
    """Logits as networks have them: the student's are somewhat like the teacher's."""
    generator = torch.Generator(device=device).manual_seed(20)
    draw = lambda: torch.empty(work.shape, device=device, dtype=type).normal_(0, 2, generator=generator)
    teacher = draw()
    return [draw().add_(teacher), teacher]


def ours(work):
    return functools.partial(getattr(onepass, work.loss), temperature=TEMPERATURE)


def theirs(torch, work):
    """As it is usually written, in float32; the divergence of Jensen and Shannon as TRL writes it."""
    F, half = torch.nn.functional, 0.5
    log_softmax = lambda logits: F.log_softmax(logits / TEMPERATURE, -1, dtype=torch.float32)

    def kl(input, target):
        return F.kl_div(log_softmax(input), log_softmax(target), reduction="batchmean", log_target=True)

    def js(input, target):
        log_p, log_q = log_softmax(input), log_softmax(target)
        share = torch.tensor(half, dtype=log_p.dtype, device=log_p.device)
        mixture = torch.logsumexp(torch.stack([log_p + share.log(), log_q + share.log()]), 0)
        return half * F.kl_div(mixture, log_q, reduction="batchmean", log_target=True) + \
            half * F.kl_div(mixture, log_p, reduction="batchmean", log_target=True)

    def tv(input, target):
        p, q = (torch.softmax(logits / TEMPERATURE, -1, dtype=torch.float32) for logits in (input, target))
        return (p - q).abs().sum(-1).mean() / 2

    return {"kl_div_with_logits": kl, "js_div_with_logits": js, "tv_distance_with_logits": tv}[work.loss]
