"""Distances of two distributions that are given as logits, such as those of a student and of its teacher."""

import inspect

from . import functional
from ._catalog import in_digits, is_number
from ._contract import checked_flag
from .functional import _enabled, _overridden, _override

__all__ = ["js_div_with_logits", "kl_div_with_logits", "tv_distance_with_logits"]

_ARGUMENTS = """
    input: logits, a PyTorch tensor or a NumPy array
    target: others, of the same kind; both broadcast, and both have gradients
{more}    temperature: what logits are divided by, from 1e-30 to 1e+30; 1.0 if not given. The loss is not multiplied by its
        square
{reverse}    reduction: 'mean' over the rows, 'sum', 'none' or 'batchmean', the sum over the first extent of the rows; 'mean'
        if not given
    dim: the dimension of the classes, all others being rows; -1 if not given
    weight: multiplies each row's loss; broadcasts to the rows; a mean is over the sum of the weights
    mask: which rows take part, of bool or uint8; broadcasts to the rows
    divisor: what a mean is divided by instead: a number, or a tensor of one element on the device
    """


def kl_div_with_logits(input, target, temperature=1.0, reverse=False, reduction="mean", dim=-1, *, weight=None,
                       mask=None, divisor=None):
    """The divergence of Kullback and Leibler of the target's distribution from the input's, both given as logits; with
    reverse that of the input's from the target's.

        softmax = lambda z: exp(z/temperature)/sum(exp(z/temperature))
        p = softmax(input)
        q = softmax(target)
        value = sum(p*log(p/q)) if reverse else sum(q*log(q/p))
    """
    if _overridden(input, target, weight, mask, divisor) and _enabled():
        return _override(kl_div_with_logits, input, target, temperature, reverse, reduction, dim, weight, mask, divisor)
    operands = (target, input) if checked_flag("reverse", reverse) else (input, target)
    return _side(input, target).loss("kl_div_with_logits", operands, (temperature,), reduction, dim, weight, mask,
                                     divisor)


def js_div_with_logits(input, target, beta=0.5, temperature=1.0, reduction="mean", dim=-1, *, weight=None, mask=None,
                       divisor=None):
    """The divergence of Jensen and Shannon of two distributions that are given as logits: of each from a mixture of
    them, which has beta of the target's.

    A beta of 0 is kl_div_with_logits, one of 1 that with reverse, as Liger and TRL define their generalised divergence;
    the formula itself comes to 0 there.

        softmax = lambda z: exp(z/temperature)/sum(exp(z/temperature))
        p = softmax(input)
        q = softmax(target)
        m = (1 - beta)*p + beta*q
        value = (1 - beta)*sum(p*log(p/m)) + beta*sum(q*log(q/m))
    """
    if _overridden(input, target, weight, mask, divisor) and _enabled():
        return _override(js_div_with_logits, input, target, beta, temperature, reduction, dim, weight, mask, divisor)
    side = _side(input, target)
    if is_number(beta) and not 0 <= beta <= 1:
        raise ValueError(f"beta of js_div_with_logits is {in_digits(beta)}; expected at least 0 and at most 1")
    if is_number(beta) and (beta == 0 or beta == 1):
        operands = (target, input) if beta else (input, target)
        return side.loss("kl_div_with_logits", operands, (temperature,), reduction, dim, weight, mask, divisor)
    return side.loss("js_div_with_logits", (input, target), (beta, temperature), reduction, dim, weight, mask, divisor)


def tv_distance_with_logits(input, target, temperature=1.0, reduction="mean", dim=-1, *, weight=None, mask=None,
                            divisor=None):
    """The total variation between two distributions that are given as logits: half of what their probabilities differ
    by.

        softmax = lambda z: exp(z/temperature)/sum(exp(z/temperature))
        p = softmax(input)
        q = softmax(target)
        value = sum(abs(p - q))/2
    """
    if _overridden(input, target, weight, mask, divisor) and _enabled():
        return _override(tv_distance_with_logits, input, target, temperature, reduction, dim, weight, mask, divisor)
    return _side(input, target).loss("tv_distance_with_logits", (input, target), (temperature,), reduction, dim, weight,
                                     mask, divisor)


# -------------------------------------------------------------------- who computes --

_distributions = None  # the module that computes for PyTorch's tensors, once there were some


def _side(input, target):
    """The module that computes for these operands."""
    global _distributions
    if _distributions is not None and isinstance(input, _distributions.Tensor):
        return _distributions
    if functional.is_for_torch(input, target):
        from . import _distributions

        return _distributions
    from . import _numpy_distributions

    return _numpy_distributions


_OF_BETA = "    beta: the target's share of the mixture, from 0 to 1; 0.5 if not given\n"
_OF_REVERSE = "    reverse: whether it is the input's divergence from the target; False if not given\n"

for _name in __all__:
    _text = globals()[_name].__doc__.rstrip() + "\n" + _ARGUMENTS.format(
        more=_OF_BETA if _name.startswith("js") else "", reverse=_OF_REVERSE if _name.startswith("kl") else "")
    globals()[_name].__doc__ = inspect.cleandoc(_text)
