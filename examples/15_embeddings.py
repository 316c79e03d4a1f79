"""
15: embeddings.

A network learns where to put images of ten glyphs so that those of one glyph lie together: first by triplets, each
sample nearer to one of its own kind than to one of another, then by the cosines of pairs. Before and after, every
unseen sample is given to the glyph whose mean embedding has the nearest direction.
"""
import time

import torch

import onepass

KINDS, PIXELS, STEPS, BATCH = 10, 64, 150, 256
torch.manual_seed(94)
device = "cuda" if torch.cuda.is_available() and onepass.machine()["gpu_count"] else "cpu"
glyphs = (torch.rand(KINDS, PIXELS) < 0.5).float()


def samples(kinds):
    """A glyph each, with noise, brighter or darker, and some pixels the other way round."""
    pixels = glyphs[kinds]
    turned = torch.where(torch.rand_like(pixels) < 0.25, 1 - pixels, pixels)
    return ((turned * 2 - 1) * torch.rand(len(kinds), 1) * 2 + torch.randn_like(pixels)).to(device)


def accuracy(model):
    with torch.no_grad():
        shown, unseen = torch.arange(KINDS).repeat(20), torch.arange(KINDS).repeat(100)
        means = model(samples(shown)).view(20, KINDS, -1).mean(0)
        cosines = onepass.cosine_similarity(model(samples(unseen))[:, None], means, dim=-1)  # 1000 x 10
        return (cosines.argmax(-1).cpu() == unseen).float().mean().item()


def by_triplets(model):
    own = torch.randint(KINDS, (BATCH,))
    other = (own + torch.randint(1, KINDS, (BATCH,))) % KINDS
    anchor, positive, negative = (model(samples(kinds)) for kinds in (own, own, other))
    return onepass.triplet_margin_loss(anchor, positive, negative, margin=1.0, swap=True)


def by_cosines(model):
    one, other = torch.randint(KINDS, (BATCH,)), torch.randint(KINDS, (BATCH,))
    other = torch.where(torch.rand(BATCH) < 0.5, one, other)
    same = torch.where(one == other, 1, -1).to(device)
    return onepass.cosine_embedding_loss(model(samples(one)), model(samples(other)), same, margin=0.2)


print(f"on the {device.upper()}")
for objective in (by_triplets, by_cosines):
    model = torch.nn.Sequential(torch.nn.Linear(PIXELS, 64), torch.nn.ReLU(), torch.nn.Linear(64, 16)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    before, start, losses = accuracy(model), time.perf_counter(), []
    for _ in range(STEPS):
        loss = objective(model)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    first, last = torch.stack(losses[:10]).mean().item(), torch.stack(losses[-10:]).mean().item()
    after = accuracy(model)
    print(f"{objective.__name__:12} loss {first:.3f} -> {last:.3f}, right {before:.0%} -> {after:.0%}, "
          f"{time.perf_counter() - start:.1f} s")
    assert last < first and after > before
