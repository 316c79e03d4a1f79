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


def assert_array_bits(got, wanted, what="results"):
    """Float64 arrays of equal numbers, signed zeros and NaN included."""
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.shape == wanted.shape, f"{what}: {got.shape} against {wanted.shape}"
    same = (got == wanted) & (np.signbit(got) == np.signbit(wanted)) | (np.isnan(got) & np.isnan(wanted))
    assert same.all(), f"{what}: {(~same).sum()} of {same.size} differ, {got[~same][:4]} for {wanted[~same][:4]}"


def assert_within(got, wanted, slack, type_name, what):
    """Numbers of a type within a slack of the wanted ones, which are not rounded yet; NaN and infinities alike."""
    got, wanted = np.asarray(got, np.float64), np.asarray(wanted, np.float64)
    assert got.shape == wanted.shape, f"{what}: {got.shape} against {wanted.shape}"
    low, high = (oracle.round_to(type_name, wanted + side) for side in (-slack, slack))
    with np.errstate(all="ignore"):
        near = ((low <= got) & (got <= high)) | (np.isnan(got) & np.isnan(wanted)) | ((got == wanted) & np.isinf(got))
    assert near.all(), (
        f"{what}: {(~near).sum()} of {near.size} are too far off, {got[~near][:4]} for {wanted[~near][:4]} "
        f"within {np.broadcast_to(slack, wanted.shape)[~near][:4]}"
    )


def assert_value(got, wanted):
    """A loss (as a float64 array or number) is the oracle's: every bit, or within the slack."""
    if wanted.slack is None:
        return assert_array_bits(got, wanted.value, "values")
    assert_within(got, wanted.value, wanted.slack, wanted.result_type, "value")


def assert_gradients(got, wanted, types):
    """Gradients (tensors or None) are the oracle's, each in its operand's type."""
    for gradient, formula, slack, dtype in zip(got, wanted.gradients, wanted.gradient_slacks, types):
        if gradient is None:
            continue
        if slack is None:
            assert_array_bits(exact(gradient), formula, "gradient")
        else:
            assert_within(exact(gradient), formula, slack, TYPE_NAMES[dtype], "gradient")


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
    """The oracle's answer for tensors."""
    return oracle.answer(
        loss,
        exact(p),
        exact(t),
        tuple(TYPE_NAMES[x.dtype] for x in (p, t, third) if x is not None),
        reduction,
        parameter,
        None if weight is None else exact(weight),
        None if weight is None else TYPE_NAMES[weight.dtype],
        exact(upstream) if isinstance(upstream, torch.Tensor) else upstream,
        None if third is None else exact(third),
        None if mask is None else mask.cpu().numpy(),
        broadcast_weight,
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
