"""What upstream gradient a gradient is computed for, if it is computed with its loss.

That is known in backward only, and on a GPU not even then without waiting. So backward leaves the upstream gradient
where the next forward of the same kind finds it, without waiting for it: whoever scales the loss, by gradient
accumulation or a GradScaler, does so step after step, so that it is enough to look now and then: a look takes 3 to 7
us on an H200. Either way the bits are the same; it is only a matter of one pass more or less over the gradient.
"""

import math

import torch

_MOST = 256  # kinds of calls to be remembered
_LEAST = 1 << 16  # elements of a loss over which a look at the upstream gradient is worth its microseconds
_ALL, _SOME = 8, 4  # so many backward passes of a kind are looked at, and then one of so many
_seen = {}  # what was seen of a kind of call


class Seen:
    """The last upstream gradient, a number on the host which a GPU may be writing, and the one before."""

    def __init__(self, upstream):
        self.last = torch.ones((), dtype=upstream.dtype, pin_memory=upstream.is_cuda)
        self.before, self.passes = 1.0, 0

    def look(self, upstream):
        self.passes += 1
        if self.passes <= _ALL or self.passes % _SOME == 0:
            self.before = self.last.item()
            self.last.copy_(upstream.detach(), non_blocking=True)


def kind_of(request, input, classes):
    """What calls have in common that are made in the same place of a program. None: too small to be remembered."""
    return None if input.numel() < _LEAST else (request.name, request.code, input.dtype, classes, input.device)


def expected(kind):
    """What the upstream gradient is likely to be: 1, or what it was twice. None: it is as well to wait for it. Of f16
    it is hardly ever 1, since GradScaler scales."""
    if kind is None:
        return 1.0
    seen = _seen.get(kind)
    if seen is None:
        return None if kind[2] is torch.float16 else 1.0
    last = seen.last.item()
    return last if last == 1 or (last != 0 and math.isfinite(last) and last == seen.before) else None


def remember(kind, upstream):
    """Leaves the upstream gradient for the next forward. Nobody waits, and a graph that is being captured, which would
    do so again at every replay, is left alone."""
    if kind is None or (upstream.is_cuda and torch.cuda.is_current_stream_capturing()):
        return
    if kind not in _seen:
        if len(_seen) >= _MOST:
            return
        _seen[kind] = Seen(upstream)
    _seen[kind].look(upstream)
