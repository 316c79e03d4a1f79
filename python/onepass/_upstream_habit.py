"""When a gradient is worth computing with its loss: where the upstream gradient will be 1.

That is known in backward only, and on a GPU not even then without waiting. So backward leaves the upstream gradient
where the next forward of the same kind finds it, without waiting for it: whoever scales the loss, by gradient
accumulation or a GradScaler, does so step after step, so that it is enough to look now and then: a look takes 3 to 7
us on an H200. Either way the bits are the same; it is only a matter of one pass more or less over the gradient.
"""

import torch

_MOST = 256  # kinds of calls to be remembered
_LEAST = 1 << 16  # elements of a loss over which a look at the upstream gradient is worth its microseconds
_ALL, _SOME = 8, 4  # so many backward passes of a kind are looked at, and then one of so many
_seen = {}  # of a kind of call the upstream gradient, a number on the host which a GPU may be writing, and the passes


def kind_of(request, input, classes):
    """What calls have in common that are made in the same place of a program."""
    return request.name, request.code, input.dtype, classes, input.device


def expects_one(kind):
    """Whether the upstream gradient was 1 when it was seen. Of f16 it hardly ever is, since GradScaler scales."""
    seen = _seen.get(kind)
    return kind[2] is not torch.float16 if seen is None else seen[0].item() == 1


def remember(kind, upstream, elements):
    """Leaves the upstream gradient for the next forward. Nobody waits, and a graph that is being captured, which would
    do so again at every replay, is left alone."""
    if elements < _LEAST or (upstream.is_cuda and torch.cuda.is_current_stream_capturing()):
        return
    if kind not in _seen:
        if len(_seen) >= _MOST:
            return
        _seen[kind] = [torch.ones((), dtype=upstream.dtype, pin_memory=upstream.is_cuda), 0]
    seen = _seen[kind]
    seen[1] += 1
    if seen[1] <= _ALL or seen[1] % _SOME == 0:
        seen[0].copy_(upstream.detach(), non_blocking=True)
