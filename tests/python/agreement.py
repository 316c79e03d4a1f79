# How two answers are compared: bit for bit, within a stated number of steps of the type,
# or as two outcomes (both a result, or both the same error).
import warnings

import numpy as np
import torch

import oracle

TYPE_NAMES = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64"}
DTYPES = {name: dtype for dtype, name in TYPE_NAMES.items()}

#: How far PyTorch's own functions may lie from ours, relatively: they round each term (16-bit
#: types) or add up in another order; a few steps of the type.
PYTORCH_TOLERANCE = {torch.float16: 6e-3, torch.bfloat16: 5e-2, torch.float32: 3e-6, torch.float64: 1e-14}


def exact(tensor):
    """A tensor's numbers as a float64 array; every float type fits."""
    return tensor.detach().cpu().to(torch.float64).numpy()


def bits(tensor):
    """A tensor's bits as integers, and its NaNs all alike only if they are."""
    integers = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return tensor.detach().cpu().contiguous().view(integers[tensor.element_size()])


def assert_same_bits(one, other, what="results"):
    assert one.dtype == other.dtype and one.shape == other.shape, (
        f"{what}: {one.dtype} {tuple(one.shape)} against {other.dtype} {tuple(other.shape)}"
    )
    differ = (bits(one) != bits(other)).sum().item()
    assert differ == 0, f"{what}: {differ} of {one.numel()} elements differ, {one.flatten()[:4]} {other.flatten()[:4]}"


def assert_array_bits(got, expected, what="results"):
    """Float64 arrays of equal numbers, signed zeros and NaN included."""
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape, f"{what}: {got.shape} against {expected.shape}"
    same = (got == expected) & (np.signbit(got) == np.signbit(expected)) | (np.isnan(got) & np.isnan(expected))
    assert same.all(), f"{what}: {(~same).sum()} of {same.size} differ, {got[~same][:4]} for {expected[~same][:4]}"


def assert_value(got, answer):
    """A loss (as a float64 array or number) is the oracle's, to the bit."""
    assert_array_bits(got, answer.value, "value")


def assert_gradients(got, answer):
    """Gradients (tensors or None) are the oracle's, to the bit."""
    for gradient, expected in zip(got, answer.gradients):
        if gradient is not None:
            assert_array_bits(exact(gradient), expected, "gradient")


#: A weighted mean of these is over the elements, as PyTorch has it; of the others over the weights.
MEANS_OF_ALL = ["huber", "bce", "bce_with_logits", "bce_with_logits_pos_weight"]
#: The weight of these counts as it came where the input was broadcast.
COUNTS_ONCE = ["mse", "l1"]


def ask_oracle(
    loss,
    p,
    t,
    reduction="mean",
    parameter=None,
    weight=None,
    upstream=1.0,
    third=None,
    mask=None,
    broadcast_weight=False,
):
    """The oracle's answer for tensors, with PyTorch's contract: its divisors and types."""
    operands = [x for x in (p, t, third) if x is not None]
    types = [TYPE_NAMES[x.dtype] for x in operands]
    divisor = None
    if reduction == "mean" and weight is not None:
        shape = torch.broadcast_shapes(*(x.shape for x in operands))
        if loss in MEANS_OF_ALL:
            divisor = float(torch.Size(shape).numel() if mask is None else (mask != 0).expand(shape).sum())
        elif loss in COUNTS_ONCE and mask is None and not broadcast_weight:
            divisor = float(weight.double().sum())
    return oracle.answer(
        loss,
        [exact(x) for x in operands],
        types,
        reduction,
        () if parameter is None else np.atleast_1d(parameter).tolist(),
        None if weight is None else exact(weight),
        None if weight is None else TYPE_NAMES[weight.dtype],
        exact(upstream) if isinstance(upstream, torch.Tensor) else upstream,
        None if mask is None else mask.cpu().numpy(),
        divisor,
        oracle.promoted(*types[:2]) if loss.startswith("bce") else None,
    )


def assert_near_pytorch(ours, theirs, what="results", tolerance=None):
    """Same type, device, shape; numbers within PyTorch's own rounding."""
    assert type(ours) is type(theirs), f"{what}: {type(ours)} against {type(theirs)}"
    assert ours.dtype == theirs.dtype, f"{what}: {ours.dtype} against {theirs.dtype}"
    assert ours.device == theirs.device and ours.shape == theirs.shape and ours.layout == theirs.layout, what
    tolerance = tolerance or PYTORCH_TOLERANCE.get(theirs.dtype, 1e-6)
    torch.testing.assert_close(
        ours, theirs, rtol=tolerance, atol=tolerance * 0.1, equal_nan=True, msg=lambda m: f"{what}: {m}"
    )


def strides(tensor):
    """The strides that mean something: of dimensions with more than one element, of tensors with any."""
    return [stride for size, stride in zip(tensor.shape, tensor.stride()) if size > 1 and tensor.numel() > 0]


class Outcome:
    """What a call did: a result or an error, and its warnings."""

    def __init__(self, function, *arguments, **options):
        self.result = self.error = None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                self.result = function(*arguments, **options)
            except Exception as error:
                self.error = error
        self.warnings = [(warning.category, str(warning.message)) for warning in caught]
        self.files = [warning.filename for warning in caught]

    def __repr__(self):
        return f"{type(self.error).__name__}: {self.error}" if self.error else f"result {self.result}"


def assert_same_outcome(ours, theirs, same_text=True):
    """Both raise the same type of error (with the same text), or both give nearly the same tensor; same warnings."""
    assert (ours.error is None) == (theirs.error is None), f"{ours!r}, but PyTorch: {theirs!r}"
    assert ours.warnings == theirs.warnings
    if theirs.error is None:
        assert_near_pytorch(ours.result, theirs.result)
        return
    assert type(ours.error) is type(theirs.error), f"{ours!r}, but PyTorch: {theirs!r}"
    if same_text:
        assert str(ours.error) == str(theirs.error)
