"""The entropy of rows of logits, beside their log-probabilities: -sum(p * log(p)) of the softmax p, with its gradient.

The engines do not compute it. Here some rows at a time are exponentiated by PyTorch's elementwise operations, and added
up by the library, as the cross-entropy of a row with its own exponentials: no temporary has the size of the logits, and
what a row comes to does not depend on which rows are taken together.
"""

import torch

from . import _native, _rows_fallback
from ._contract import NONE
from ._fallback import differentiated
from ._row_cuts import cuts
from ._row_request import LSE, NUMBERS, WITH_PROBABILITIES, are_plain, parameters_of
from ._torch_checks import are_numbers
from ._torch_state import is_batch, is_compiling, is_plain_here

#: Elements that are taken at a time: on a CPU they stay in its cache, and a GPU has enough to do for a launch.
AT_ONCE = {"cpu": 2**18, "cuda": 2**24}

_QUESTION = WITH_PROBABILITIES, NONE, parameters_of(WITH_PROBABILITIES), -1  # as torch_rows is asked


def entropy(logits, ignored, softcap, temperature):
    """Of the softmax over the last dimension; 0 of rows that are ignored, without a gradient for them."""
    if is_compiling() or not (are_plain((logits,)) and is_plain_here() and are_numbers((softcap, temperature))) or \
            logits.device.type not in AT_ONCE or logits.shape[-1] == 0:
        return _rows_fallback.entropy(logits, ignored, softcap, temperature)
    return Entropy.apply(logits, ignored, softcap, temperature)


class Entropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, ignored, softcap, temperature):
        found = logits.new_empty(logits.shape[:-1], dtype=torch.promote_types(logits.dtype, torch.float32))
        sums = torch.empty_like(found)  # see entropy_of
        for piece in pieces(logits):
            found[piece], sums[piece] = entropy_of(logits[piece], ~ignored[piece], softcap, temperature)
        ctx.save_for_backward(logits, ignored, found, sums)
        ctx.given = softcap, temperature
        return found

    @staticmethod
    def backward(ctx, upstream):
        logits, ignored, found, sums = ctx.saved_tensors
        if torch.is_grad_enabled() or is_batch(upstream):  # in operations that can be differentiated, and taken together
            found = differentiated(lambda own: _rows_fallback.entropy(own, ignored, *ctx.given), (logits,), upstream,
                                   (True,), create_graph=torch.is_grad_enabled())
            return *found, None, None, None
        gradient = torch.empty_like(logits)
        for piece in pieces(logits):
            slopes = slopes_of(logits[piece], found[piece], sums[piece], *ctx.given)
            slopes *= upstream[piece].unsqueeze(-1)
            gradient[piece] = slopes.masked_fill_(ignored[piece].unsqueeze(-1), 0)
        return gradient, None, None, None


def pieces(logits):
    return cuts(logits.shape, AT_ONCE[logits.device.type])


def entropy_of(logits, mask, softcap, temperature):
    """Of each row, and the logarithm of its sum of exponentials above its largest logit."""
    above = above_largest(logits, softcap, temperature)
    above = above.reshape(-1, above.shape[-1])
    value, *_, sums, _, _ = _native.torch_rows(*_QUESTION, above, above.exp(), None, None, mask.reshape(-1), None,
                                               NUMBERS[above.dtype], LSE)
    return (value * torch.exp(-sums)).view(mask.shape), sums.view(mask.shape)


def above_largest(logits, softcap, temperature):
    """What the softmax is of, less the row's largest: at most 0."""
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    capped = _rows_fallback.capped(logits, {"softcap": softcap, "temperature": temperature})
    return capped - capped.amax(-1, keepdim=True)


def slopes_of(logits, entropy, sums, softcap, temperature):
    """-p * (log(p) + entropy), and 0 where p is; through the cap and the temperature."""
    logs = above_largest(logits, softcap, temperature).sub_(sums.unsqueeze(-1))
    chances = logs.exp()
    slopes = logs.add_(entropy.unsqueeze(-1)).mul_(chances).neg_().masked_fill_(chances == 0, 0)
    if softcap:
        tangent = torch.tanh(logits.to(slopes.dtype) / softcap)
        slopes *= 1 - tangent * tangent
    return slopes.div_(temperature) if temperature != 1 else slopes
