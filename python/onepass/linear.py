"""Losses of a linear layer's outputs that never hold all of them, for language models and embeddings; and the loss that
models of transformers ask for. They are of PyTorch's tensors alone: the products are PyTorch's own."""

import inspect

from . import functional
from .functional import _enabled, _overridden, _override

__all__ = ["causal_lm_loss", "linear_cross_entropy", "linear_log_prob", "nt_xent_loss", "supcon_loss"]


def linear_cross_entropy(input, linear_weight, target, *, linear_bias=None, weight=None, reduction="mean",
                         ignore_index=None, label_smoothing=0.0, options=None, z_loss=0.0, softcap=None,
                         temperature=1.0, num_items=None, num_ignored=None, dtype=None, chunk_rows=None):
    """The cross-entropy of a linear layer's outputs, as torch.nn.functional.linear_cross_entropy has it from PyTorch
    2.13 on, with gradients for input, linear_weight and linear_bias. The logits are computed a chunk of rows at a time,
    and the gradient in the chunk's own memory, so that they are never all held.

        z = input @ linear_weight.T + linear_bias
        loss = cross_entropy(z, target)

    input: the hidden states, (..., H), a PyTorch tensor
    linear_weight: the layer's weight, (C, H) for C classes; (C, d1, ..., H) for PyTorch's K-dimensional loss, which is
        computed of all logits
    target: class indices (int64, int32 or uint8), (...); or a probability for each class, (..., C)
    linear_bias: the layer's bias, (C)
    weight: a weight for each class; beside class indices a mean is over the weights of the rows' classes
    reduction: 'mean', 'sum' or 'none'; 'mean' if not given
    ignore_index: rows with this class index take no part; -100 if not given
    label_smoothing: the share of the target that all classes have alike; 0.0 if not given
    options: PyTorch's LinearCrossEntropyOptions, of which batch_chunk_size is heeded as chunk_rows
    z_loss: adds z_loss*lse^2 to each row's loss; 0.0 if not given
    softcap: logits z become softcap*tanh(z/softcap); None: they stay as they are
    temperature: what the logits are divided by; 1.0 if not given
    num_items: what a mean is divided by instead: a number, or a tensor of one element on the device
    num_ignored: how many labels are ignore_index, if the caller knows: those rows are then left out of a GPU's
        products, too; on the CPU they always are
    dtype: the type of the loss, whatever that of the input
    chunk_rows: how many rows to multiply at a time, if that is to be chosen
    """
    if _overridden(input, linear_weight, target, linear_bias, weight, num_items) and _enabled():
        return _override(linear_cross_entropy, input, linear_weight, target, linear_bias, weight, reduction,
                         ignore_index, label_smoothing, options, z_loss, softcap, temperature, num_items, num_ignored,
                         dtype, chunk_rows)
    return _side(input).linear_cross_entropy(input, linear_weight, target, linear_bias, weight, reduction, ignore_index,
                                             label_smoothing, options, z_loss, softcap, temperature, num_items,
                                             num_ignored, dtype, chunk_rows)


def linear_log_prob(input, linear_weight, target, *, linear_bias=None, temperature=1.0, softcap=None, ignore_index=-100,
                    num_ignored=None, dtype=None, chunk_rows=None):
    """The logarithm of the probability that a linear layer's outputs give to each label, with gradients for input,
    linear_weight and linear_bias: what DPO, GRPO and their kin begin with. The logits are computed a chunk of rows at a
    time, once more in backward, and never all held.

        z = (input @ linear_weight.T + linear_bias) / temperature
        log_prob = z[target] - log(sum(exp(z)))

    input: the hidden states, (..., H), a PyTorch tensor
    linear_weight: the layer's weight, (C, H) for C classes
    target: class indices (int64, int32 or uint8), (...)
    linear_bias: the layer's bias, (C)
    temperature: what the logits are divided by; 1.0 if not given
    softcap: logits z become softcap*tanh(z/softcap); None: they stay as they are
    ignore_index: rows with this class index take no part, and are 0; -100 if not given
    num_ignored: how many labels are ignore_index, if the caller knows: those rows are then left out of a GPU's
        products, too; on the CPU they always are
    dtype: the type of the result, whatever that of the input
    chunk_rows: how many rows to multiply at a time, if that is to be chosen
    """
    if _overridden(input, linear_weight, target, linear_bias) and _enabled():
        return _override(linear_log_prob, input, linear_weight, target, linear_bias, temperature, softcap, ignore_index,
                         num_ignored, dtype, chunk_rows)
    return _side(input).linear_log_prob(input, linear_weight, target, linear_bias, temperature, softcap, ignore_index,
                                        num_ignored, dtype, chunk_rows)


def nt_xent_loss(input1, input2, *, temperature=0.5, reduction="mean", normalize=True, dtype=None, chunk_rows=None):
    """SimCLR's loss of two views of the same samples: how well each of the 2N rows tells its partner from all others,
    by their cosines. The cosines are computed a chunk of rows at a time and never all held.

        z = normalize(cat(input1, input2))
        loss = log(sum(exp(z @ z.T / temperature), others)) - z @ z.T[partner] / temperature

    input1: one view, (N, features), a PyTorch tensor
    input2: the other, of the same size
    temperature: what the cosines are divided by; 0.5 if not given
    reduction: 'mean', 'sum', or 'none', of size (2, N); 'mean' if not given
    normalize: whether rows are divided by their norm first; True if not given
    dtype: the type of the loss, whatever that of the input
    chunk_rows: how many rows to compare at a time, if that is to be chosen
    """
    if _overridden(input1, input2) and _enabled():
        return _override(nt_xent_loss, input1, input2, temperature, reduction, normalize, dtype, chunk_rows)
    return _side(input1).nt_xent_loss(input1, input2, temperature, reduction, normalize, dtype, chunk_rows)


def supcon_loss(input, labels, *, temperature=0.1, reduction="mean", normalize=True, dtype=None, chunk_rows=None):
    """The supervised contrastive loss: how well each row tells those of its label from all others, by their cosines, on
    average over those of its label. A row whose label nobody shares has the loss 0, and no part in a mean. The cosines
    are computed a chunk of rows at a time and never all held.

        z = normalize(input)
        loss = log(sum(exp(z @ z.T / temperature), others)) - mean(z @ z.T / temperature, same_label)

    input: the embeddings, (N, features), a PyTorch tensor
    labels: integers, (N)
    temperature: what the cosines are divided by; 0.1 if not given
    reduction: 'mean', 'sum' or 'none'; 'mean' if not given
    normalize: whether rows are divided by their norm first; True if not given
    dtype: the type of the loss, whatever that of the input
    chunk_rows: how many rows to compare at a time, if that is to be chosen
    """
    if _overridden(input, labels) and _enabled():
        return _override(supcon_loss, input, labels, temperature, reduction, normalize, dtype, chunk_rows)
    return _side(input).supcon_loss(input, labels, temperature, reduction, normalize, dtype, chunk_rows)


def causal_lm_loss(logits, labels, vocab_size, num_items_in_batch=None, ignore_index=-100, shift_labels=None, **kwargs):
    """The loss of a causal language model, in f32, as transformers' ForCausalLMLoss has it, without its f32 copy of the
    logits: `model.loss_function = onepass.causal_lm_loss`.

        loss = cross_entropy(logits[:-1], labels[1:])

    logits: (..., T, vocab_size), a PyTorch tensor
    labels: class indices, (..., T); each is what the logits before it should have foretold
    vocab_size: how many classes there are
    num_items_in_batch: what the sum is divided by, a number or a tensor; None for the number of labels that count
    ignore_index: labels that do not count; -100 if not given
    shift_labels: labels that stand where their logits do, in the place of labels
    kwargs: z_loss, softcap and label_smoothing of cross_entropy; what else a model gives is not looked at
    """
    if _overridden(logits, labels, num_items_in_batch, shift_labels) and _enabled():
        return _override(causal_lm_loss, logits, labels, vocab_size, num_items_in_batch, ignore_index, shift_labels,
                         **kwargs)
    _check_causal(logits, labels, vocab_size, shift_labels)
    if shift_labels is None:
        labels = labels if labels.is_floating_point() else labels.long()  # a narrow type would wrap ignore_index
        shift_labels = labels.new_full(labels.shape, ignore_index)
        shift_labels[..., :-1] = labels[..., 1:]
    shift_labels = shift_labels.reshape(-1).to(logits.device)
    logits = logits.reshape(-1, vocab_size)
    given = {**_known(kwargs), "ignore_index": ignore_index, "dtype": _single(logits)}
    if _is_none_at_all(num_items_in_batch):  # a quotient that is no number, as theirs is
        return functional.cross_entropy(logits, shift_labels, reduction="sum", **given) / 0
    try:
        return functional.cross_entropy(logits, shift_labels, divisor=num_items_in_batch, **given)
    except (TypeError, ValueError) as error:
        raise type(error)(str(error).replace("divisor", "num_items_in_batch", 1)) from None


def _check_causal(logits, labels, vocab_size, shift_labels):
    called, given = ("labels", labels) if shift_labels is None else ("shift_labels", shift_labels)
    for name, operand in (("logits", logits), (called, given)):
        if not functional.speaks_torch(operand):
            raise TypeError(f"{name} is {type(operand).__name__}; expected a PyTorch tensor")
    if logits.dim() == 0 or logits.shape[-1] != vocab_size:
        raise ValueError(f"vocab_size is {vocab_size!r} beside logits of size {tuple(logits.shape)}; expected the size of "
                         "their last dimension")


def _is_none_at_all(items):
    """Whether it is 0, as far as nobody has to wait to know, or to compile two graphs."""
    if isinstance(items, (type(None), float, int)) or not functional.speaks_torch(items):
        return items == 0
    from ._torch_state import is_compiling

    return not is_compiling() and items.is_cpu and items.numel() == 1 and items.item() == 0


def _single(logits):
    import torch

    return torch.promote_types(logits.dtype, torch.float32)


def _known(given):
    return {name: given[name] for name in ("label_smoothing", "z_loss", "softcap") if given.get(name) is not None}


# -------------------------------------------------------------------- who computes --

_linear = None  # the module that computes, once there were tensors


def _side(input):
    global _linear
    if _linear is not None:
        return _linear
    if not functional.speaks_torch(input):
        raise TypeError(f"input is {type(input).__name__}; expected a PyTorch tensor")
    from . import _linear

    return _linear


for _name in __all__:
    globals()[_name].__doc__ = inspect.cleandoc(globals()[_name].__doc__)
