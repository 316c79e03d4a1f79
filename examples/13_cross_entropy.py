"""
13: cross-entropy in PyTorch.

The loss of a language model: bf16 logits, labels of which some are ignored, the mean over all tokens of several batches.
Then the log-probability of each label, which preference losses begin with, and what confident rows keep.
"""
import torch
import torch.nn.functional as F

import onepass

device = "cuda" if torch.cuda.is_available() and onepass.machine()["gpu_count"] else "cpu"
torch.manual_seed(94)
logits = (torch.randn(64, 5000, device=device) * 2).bfloat16().requires_grad_()
labels = torch.randint(5000, (64,), device=device)
labels[::8] = -100

# Before: F.cross_entropy(logits.float(), labels, reduction="sum") / tokens. The logits are read once and copied nowhere.
tokens = (labels != -100).sum() * 4  # a tensor: of four batches, say; nobody waits for it
loss = onepass.cross_entropy(logits, labels, divisor=tokens, dtype=torch.float32)
loss.backward()
peer = F.cross_entropy(logits.float(), labels, reduction="sum") / tokens
print(f"on the {device.upper()}")
print(f"onepass.cross_entropy  {loss.item():.6f}")
print(f"F.cross_entropy        {peer.item():.6f}")
torch.testing.assert_close(loss, peer)
assert logits.grad.dtype == torch.bfloat16

# The gradient of a scaled loss has the bits that it would have had in one pass.
scaled = torch.autograd.grad(onepass.cross_entropy(logits, labels) * 0.25, logits)[0]
assert torch.equal(scaled, torch.autograd.grad(onepass.cross_entropy(logits, labels), logits)[0] * 0.25)

# What training looks at beside the loss, from the same pass.
loss, z_loss, accuracy = onepass.cross_entropy(logits, labels, z_loss=1e-4, return_z_loss=True, return_accuracy=True)
print(f"z-loss, accuracy       {z_loss.item():.6f}, {accuracy.item():.3f}")

# DPO, GRPO and their kin: the log-probability of each label, with its gradient.
each = onepass.log_prob(logits.view(8, 8, 5000), labels.view(8, 8), temperature=0.9, dtype=torch.float32)
print(f"log_prob               {each.sum().item():.3f} over {each.numel()} labels")

# A confident row: the logarithm of a number that is nearly 1.
sure = torch.zeros(1, 1000, device=device)
sure[0, 7] = 20
label = torch.tensor([7], device=device)
exact = F.cross_entropy(sure.double(), label).item()
print(f"a confident row        {onepass.cross_entropy(sure, label).item():.6g} "
      f"(PyTorch: {F.cross_entropy(sure, label).item():.6g}, exactly {exact:.6g})")
assert abs(onepass.cross_entropy(sure, label).item() / exact - 1) < 1e-6
