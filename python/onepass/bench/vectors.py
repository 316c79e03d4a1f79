"""Losses of vectors: triplets, cosines and distances of embeddings, margins of classes, and regions of images."""

import dataclasses
import functools

import onepass


@dataclasses.dataclass
class Work:
    """Vectors of a shape, and the goals on a GPU: a mode's, by peer."""

    loss: str
    shape: tuple
    type: str = "f32"
    variant: str = ""
    goals: dict = dataclasses.field(default_factory=dict)

    def words(self):
        return " ".join(filter(None, (" x ".join(map(str, self.shape)), self.variant)))


GPU = [
    Work("triplet_margin_loss", (32768, 8192), goals={"forward": {"limit": 0.93}, "step": {"torch.compile": 0.6}}),
    Work("triplet_margin_loss", (32768, 8192), "bf16"),
    Work("triplet_margin_loss", (262144, 128)),
    Work("cosine_embedding_loss", (262144, 1024), goals={"forward": {"torch.compile": 1.0},
                                                         "step": {"torch.compile": 0.6}}),
    Work("cosine_embedding_loss", (262144, 768), "bf16"),
    Work("multi_margin_loss", (131072, 1000)),
    Work("multi_margin_loss", (131072, 1000), variant="p 2"),
    Work("multi_margin_loss", (32768, 8192), variant="class weights"),
    Work("dice_loss", (64, 2048, 2048), variant="per sample", goals={"forward": {"torch.compile": 1.0},
                                                                     "step": {"torch.compile": 0.75}}),
    Work("dice_loss", (64, 2048, 2048), variant="per batch", goals={"forward": {"torch.compile": 1.0},
                                                                    "step": {"torch.compile": 0.95}}),
]
CPU = [Work(loss, shape, type, variant, {"forward": {"torch.compile": 0.5}, "step": {"torch.compile": 0.5}})
       for loss, shape, type, variant in (("triplet_margin_loss", (2048, 4096), "f32", ""),
                                          ("triplet_margin_loss", (65536, 128), "f32", ""),
                                          ("cosine_embedding_loss", (16384, 1024), "f32", ""),
                                          ("cosine_embedding_loss", (16384, 768), "bf16", ""),
                                          ("multi_margin_loss", (16384, 1000), "f32", ""),
                                          ("multi_margin_loss", (16384, 1000), "f32", "p 2"),
                                          ("dice_loss", (16, 1024, 1024), "f32", "per sample"))]


def works(on_gpu, quick):
    """Those to measure; small ones to see that they run."""
    chosen = GPU if on_gpu else CPU
    return [dataclasses.replace(work, shape=(max(1, work.shape[0] // 256), *(extent // 4 for extent in work.shape[1:])))
            for work in chosen] if quick else chosen


def operands_of(torch, device, work, type):
    """Vectors of random numbers, and what else the loss takes."""
    generator = torch.Generator(device=device).manual_seed(20)
    draw = lambda *shape: torch.empty(shape, device=device, dtype=type).normal_(generator=generator)
    if work.loss == "dice_loss":
        return [draw(*work.shape), (draw(*work.shape) > 0).to(type)]
    if work.loss == "multi_margin_loss":
        rows, classes = work.shape
        weight = [draw(classes).abs()] if work.variant == "class weights" else []
        return [draw(rows, classes), torch.randint(classes, (rows,), device=device, generator=generator), *weight]
    vectors = [draw(*work.shape) for _ in range(3 if work.loss == "triplet_margin_loss" else 2)]
    signs = [(draw(work.shape[0]) > 0).to(type) * 2 - 1] if work.loss == "cosine_embedding_loss" else []
    return vectors + signs


def dice_by_hand(torch, dims):
    """As segmentation packages write it."""
    def loss(logits, target):
        found = torch.sigmoid(logits)
        both, all = (found * target).sum(dims), (found + target).sum(dims)
        return (1 - 2 * both / all.clamp_min(1e-7)).mean()

    return loss


def margin(function, work):
    p = 2 if work.variant == "p 2" else 1
    return lambda scores, labels, weight=None: function(scores, labels, p=p, weight=weight)


def ours(work):
    if work.loss == "dice_loss":
        return functools.partial(onepass.dice_loss, per=work.variant.split()[1])
    return margin(onepass.multi_margin_loss, work) if work.loss == "multi_margin_loss" else getattr(onepass, work.loss)


def theirs(torch, work):
    if work.loss == "dice_loss":
        return dice_by_hand(torch, (1, 2) if work.variant == "per sample" else (0, 1, 2))
    function = getattr(torch.nn.functional, work.loss)
    return margin(function, work) if work.loss == "multi_margin_loss" else function
