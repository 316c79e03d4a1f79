"""
10: training.

A network of two layers learns a surface from noisy samples, some of which are far off, which is what smooth_l1 is for. It
is trained twice from the same start: the loss falls, and both runs end with the same bits.
"""
import os
import zlib

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # NVIDIA's condition for layers with the same bits

import torch

import onepass

STEPS, BATCH = 400, 256
device = "cuda" if torch.cuda.is_available() and onepass.machine()["gpu_count"] else "cpu"


def surface(points):
    return torch.sin(3 * points[:, :1]) * torch.cos(2 * points[:, 1:])


def samples():
    points = torch.rand(4096, 2) * 2 - 1
    heights = surface(points) + 0.02 * torch.randn(4096, 1)
    heights[::50] += 5  # outliers
    return points.to(device), heights.to(device)


def train(report):
    torch.manual_seed(94)
    points, heights = samples()
    model = torch.nn.Sequential(torch.nn.Linear(2, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1)).to(device)
    criterion = onepass.nn.SmoothL1Loss(beta=0.1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for step in range(STEPS):
        chosen = torch.randint(len(points), (BATCH,)).to(device)
        loss = criterion(model(points[chosen]), heights[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())  # stays on the device, and is 4 bytes; nobody waits for it
        if report and (step + 1) % 80 == 0:
            print(f"{step + 1:5}  {torch.stack(losses[-80:]).mean().item():.6f}")
    return model, torch.stack(losses)


def bits(model, losses):
    """A number that changes if a bit of the losses or of the trained parameters does."""
    tensors = [losses, *model.parameters()]
    return zlib.crc32(b"".join(tensor.detach().cpu().numpy().tobytes() for tensor in tensors))


torch.use_deterministic_algorithms(True)
torch.set_num_threads(1)  # on a busy machine PyTorch's own functions may share their work out otherwise the second time
print(f"on the {device.upper()}\n\n steps  mean loss")
first = train(report=True)
second = train(report=False)

with torch.no_grad():
    fresh = torch.rand(1000, 2, device=device) * 2 - 1
    error = (first[0](fresh) - surface(fresh)).abs().mean().item()
print(f"\nmean distance from the true surface   {error:.3f}")
print(f"first run                             {bits(*first):08x}")
print(f"second run                            {bits(*second):08x}")
assert first[1][-50:].mean() < 0.35 * first[1][:10].mean(), "the loss does not fall"
assert error < 0.05, "nothing was learnt"
assert bits(*first) == bits(*second), "two runs differ"
