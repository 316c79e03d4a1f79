"""
14: training a language model without its logits.

A small transformer learns to continue this file, byte by byte, with the head of a large vocabulary: the logits are its
largest tensor by far. It is trained three times from the same start: with PyTorch's loss of all logits, with ours of
all logits, and with linear_cross_entropy, which holds a chunk of them at a time. The losses are the same to seven
digits; the memory is not.
"""
import pathlib
import time

import torch
import torch.nn.functional as F

import onepass

VOCABULARY, FEATURES, HEADS, BLOCKS = 8192, 48, 4, 2
BATCH, TOKENS, STEPS = 4, 64, 30
device = "cuda" if torch.cuda.is_available() and onepass.machine()["gpu_count"] else "cpu"


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.between = torch.nn.LayerNorm(FEATURES), torch.nn.LayerNorm(FEATURES)
        self.project, self.merge = torch.nn.Linear(FEATURES, 3 * FEATURES), torch.nn.Linear(FEATURES, FEATURES)
        self.think = torch.nn.Sequential(torch.nn.Linear(FEATURES, 4 * FEATURES), torch.nn.GELU(),
                                         torch.nn.Linear(4 * FEATURES, FEATURES))

    def forward(self, x):
        batch, tokens, _ = x.shape
        q, k, v = (part.view(batch, tokens, HEADS, -1).transpose(1, 2)
                   for part in self.project(self.before(x)).chunk(3, -1))
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.merge(seen.transpose(1, 2).reshape(batch, tokens, FEATURES))
        return x + self.think(self.between(x))


class Model(torch.nn.Module):
    """Returns hidden states; the loss has the head."""

    def __init__(self):
        super().__init__()
        self.tokens, self.places = torch.nn.Embedding(VOCABULARY, FEATURES), torch.nn.Embedding(TOKENS, FEATURES)
        self.blocks = torch.nn.Sequential(*(Block() for _ in range(BLOCKS)), torch.nn.LayerNorm(FEATURES))
        self.head = torch.nn.Linear(FEATURES, VOCABULARY, bias=False)

    def forward(self, tokens):
        return self.blocks(self.tokens(tokens) + self.places.weight)


def with_pytorch(model, hidden, labels):
    return F.cross_entropy(model.head(hidden).view(-1, VOCABULARY), labels.reshape(-1))


def with_onepass(model, hidden, labels):
    return onepass.cross_entropy(model.head(hidden).view(-1, VOCABULARY), labels.reshape(-1))


def without_logits(model, hidden, labels):
    return onepass.linear_cross_entropy(hidden, model.head.weight, labels, chunk_rows=64)  # else more, as it is small


def batches():
    text = torch.tensor(list(pathlib.Path(__file__).read_bytes()))
    for _ in range(STEPS):
        first = torch.randint(len(text) - TOKENS, (BATCH, 1))
        piece = text[first + torch.arange(TOKENS + 1)].to(device)
        yield piece[:, :-1], piece[:, 1:]


def train(loss):
    """The losses, and the seconds of a step."""
    torch.manual_seed(94)
    model, losses = Model().to(device), []
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    begin = time.perf_counter()
    for tokens, labels in batches():
        value = loss(model, model(tokens), labels)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        losses.append(value.detach())  # nobody waits for it
    losses = torch.stack(losses).double().cpu()
    return losses, (time.perf_counter() - begin) / STEPS


def peak(loss):
    """Bytes that loss and backward hold at their peak, beyond the model and the gradients that stay."""
    torch.manual_seed(94)
    model = Model().to(device)
    tokens, labels = next(batches())
    loss(model, model(tokens), labels).backward()
    model.zero_grad()
    hidden = model(tokens).detach().requires_grad_()
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        loss(model, hidden, labels).backward()
        most = torch.cuda.max_memory_allocated() - before
    else:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as watched:
            loss(model, hidden, labels).backward()
        held = most = 0
        for event in watched.profiler.kineto_results.events():
            if event.name() == "[memory]":
                held += event.nbytes()
                most = max(most, held)
    return most - 4 * (hidden.numel() + model.head.weight.numel())


ways = {"PyTorch, all logits": with_pytorch, "onepass, all logits": with_onepass,
        "onepass, without logits": without_logits}
found = {name: train(loss) for name, loss in ways.items()}
print(f"on the {device.upper()}: {BATCH * TOKENS} tokens a step, {VOCABULARY} classes\n")
print("step" + "".join(f"{name:>26}" for name in ways))
for step in (0, 9, 19, 29):
    print(f"{step + 1:4}" + "".join(f"{losses[step].item():26.6f}" for losses, _ in found.values()))
print("\n" + " " * 26 + "a step   at the peak")
for name, loss in ways.items():
    print(f"{name:24} {1e3 * found[name][1]:5.0f} ms {peak(loss) / 2**20:9.1f} MiB")

theirs = found["PyTorch, all logits"][0]
for name, (losses, _) in found.items():
    assert ((losses - theirs).abs() <= 1e-5 * theirs).all(), f"{name} leaves PyTorch's losses"
assert theirs[-1] < 0.5 * theirs[0], "nothing was learnt"
