"""
09: PyTorch.

The change to a program that has a loss of PyTorch's: one import, and onepass in place of F; the rest stays as it is. Then
the same without touching the line, by patch_torch, and a loss with its gradient but without autograd.
"""
import torch
import torch.nn.functional as F

import onepass

device = "cuda" if torch.cuda.is_available() and onepass.machine()["gpu_count"] else "cpu"
torch.manual_seed(94)
prediction = torch.randn(512, 1024, device=device, requires_grad=True)
target = torch.randn(512, 1024, device=device)

# Before: loss = F.mse_loss(prediction, target).
loss = onepass.mse_loss(prediction, target)
loss.backward()
gradient, prediction.grad = prediction.grad, None

peer = F.mse_loss(prediction, target)
peer.backward()
print(f"on the {device.upper()}")
print(f"onepass.mse_loss   {loss.item():.8f}")
print(f"F.mse_loss         {peer.item():.8f}")
torch.testing.assert_close(loss, peer)
torch.testing.assert_close(gradient, prediction.grad)

# Code that is not yours to edit: PyTorch's functions and modules are onepass's for a while.
with onepass.patch_torch():
    patched = torch.nn.MSELoss()(prediction, target)
assert torch.equal(patched, loss) and F.mse_loss is not onepass.mse_loss
print("patch_torch        the same bits")

# Both from one pass, without a graph.
value, slope = onepass.value_and_grad("mse", prediction, target)
assert not value.requires_grad and torch.equal(value, loss) and torch.equal(slope, gradient)
print("value_and_grad     the same bits")

# Half precision: one term of 300**2 does not fit into float16, the mean of all does.
half = torch.full((1000,), 0.5, dtype=torch.float16, device=device)
half[0] = 300
ours, theirs = onepass.mse_loss(half, torch.zeros_like(half)), F.mse_loss(half, torch.zeros_like(half))
print(f"a mean in float16  {ours.item()} (PyTorch: {theirs.item()})")
assert ours.item() == 90.25

# Padding: a mask says what takes part, and what stands elsewhere does no harm, in the gradient neither.
padded, mask = target.clone(), torch.rand(512, 1024, device=device) < 0.9
padded[~mask] = float("nan")
prediction.grad = None
loss = onepass.l1_loss(prediction, padded, mask=mask)
loss.backward()
torch.testing.assert_close(loss, (prediction - target)[mask].abs().mean())
assert (prediction.grad[~mask] == 0).all()
print(f"l1_loss, masked    {loss.item():.8f}")

# Labels of -1 and 1.
labels = target.sign()
loss = onepass.hinge_loss(prediction, labels)
torch.testing.assert_close(loss, torch.clamp(1 - prediction * labels, min=0).mean())
print(f"hinge_loss         {loss.item():.8f}")
