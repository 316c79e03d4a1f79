"""A loss whose operands arrive in pieces: from files, from processes, from machines."""

import operator
import sys
import threading

from . import _native
from ._catalog import CATALOG, ROW_CATALOG, VECTOR_CATALOG, as_number, checked_divisor, default_of
from ._catalog import in_digits, needed_operands, plain_number
from ._contract import MEAN, NAMES, check_axis, checked_dim, contract_of
from ._forking import imported
from .functional import known_loss, speaks_torch, values_of

__all__ = ["Accumulator"]

_CODES = {"mean": 0, "sum": 1}


class Accumulator:
    """A loss whose operands arrive in pieces. The result is bit-identical to that of one call over the whole, whatever
    the pieces, the order in which they come, and the number of accumulators that see some of them and are merged.

        whole = onepass.Accumulator("smooth_l1", total=10_000, beta=0.5)
        whole.add(prediction[:3_000], target[:3_000], first=0)
        whole.add(prediction[3_000:], target[3_000:], first=3_000)
        loss = whole.finish()

    name: one of onepass.losses(), onepass.row_losses() or onepass.vector_losses(), or that of a function ('mse_loss'),
        with its parameters by name
    total: elements of the whole; of a loss over rows its rows, of vectors their number
    reduction: 'mean' or 'sum'
    divisor: what a mean is divided by; else that is the number of elements or, where slices have weights or masks, the
        sum of the weights or the number of elements that take part. A number, or an array or a tensor of one element,
        whose number is waited for if a GPU has it

    It is picklable and small, a few kilobytes whatever it has seen, so that processes can hand it on as any object; and
    bytes(accumulator) is the same for other languages. One accumulator may be used by several threads.
    """

    __slots__ = ("_held", "_lock", "__weakref__")

    def __init__(self, name, total, *, reduction="mean", divisor=None, **parameters):
        loss, known = known_loss(name, None, parameters)
        values = values_of(known, parameters)
        code = _CODES.get(reduction) if isinstance(reduction, str) else None
        if code is None:
            raise ValueError(f"reduction is {reduction!r}; expected 'mean' or 'sum' (the mean over a batch is a mean "
                             "with the batch's size as the divisor)")
        if divisor is not None and code != MEAN:
            raise ValueError("divisor is set, but reduction is 'sum'; expected 'mean', which it takes the place of the "
                             "number of elements in")
        numbers = tuple([as_number(loss, one, default_of(one) if value is None else value)
                         for one, value in zip(known["parameters"], values)])
        total = checked_total(total)
        self._held = _native.accumulator_begin(loss, code, numbers,
                                               0.0 if divisor is None else checked_divisor(divisor), total)
        self._lock = threading.Lock()

    def add(self, input, target, third=None, *, first, weight=None, mask=None, dim=None, gradient=None):
        """Adds a slice: the whole's elements from `first` on, in row-major order. Operands are tensors of PyTorch's or
        arrays of NumPy's, all of a slice on one device. A slice on a GPU is computed on the current stream, and nobody
        waits for it before merge, finish, bytes or pickle ask what it comes to.

        third: the third operand of a loss that has one; of a loss over rows, and of multi_margin, the weights of the
            classes, if there are any
        first: the slice's first element; of a loss over rows its first row
        weight, mask: of the slice's elements or rows. Where a mean is divided by what they come to, all slices have a
            weight or none has, and the same holds for masks
        dim: of a loss over rows the dimension of the classes: 1, or the only one, if not given; of vectors the first
            dimension of a vector: the last, if not given
        gradient: a tensor or an array of the slice's shape, in which the gradient for input is put. That of a mean is
            divided by the whole's number of elements; where weights, masks or class indices have a say in what it is
            divided by, the accumulator has to know that number beforehand, as its divisor
        """
        axis = axis_of(self._description()[0], dim)
        if dim is not None:
            check_axis(max(getattr(one, "ndim", 0) for one in (input, target, third)), axis)  # vectors broadcast
        _check_writable(gradient)
        self.add_slice((input, target, third), first, weight, mask, axis, (gradient, None, None), None)

    def add_slice(self, operands, first, weight, mask, axis, gradients, row_state):
        """The same for the package itself: with an axis as onepass_call has it, a place for the gradient of each
        operand, and for the rows' state."""
        first = checked_first(first)
        loss, code, _, divisor, _, _ = self._description()
        if weight is not None and code == MEAN and not divisor and loss in CATALOG and contract_of(loss).mean_of_all:
            raise ValueError(f"the slice has weights, and a weighted mean of {loss} is over the number of elements; "
                             "expected that number as the accumulator's divisor")
        known, count = known_by(loss), 2 + (operands[2] is not None)
        if not len(needed_operands(known)) <= count <= len(known["operands"]):
            raise TypeError(f"{loss} has the operands {', '.join(known['operands'])}; {count} were given")
        given = [_plain(one) for one in (*operands, weight, mask)]
        with self._lock:
            _native.accumulator_add(self._held, axis, first, *given, *gradients, row_state)

    def merge(self, other):
        """Adds all that another accumulator has seen, which stays as it is. Both are of the same loss, parameters,
        reduction, divisor and total."""
        if not isinstance(other, Accumulator):
            raise TypeError(f"other is {type(other).__name__}; expected an onepass.Accumulator")
        if other is self:
            raise ValueError("an accumulator was merged with itself; expected another, which has seen other elements")
        one, two = sorted((self, other), key=id)  # so that two threads cannot wait for each other
        with one._lock, two._lock:
            _native.accumulator_merge(self._held, other._held)

    def finish(self, dtype=None):
        """The loss, once every element was added; may be asked for again.

        dtype: of NumPy or PyTorch, for a number of the one or a tensor of the other that is bit-identical to what one
            call would give, rounded once to that type; without one it is a float of Python's, not yet rounded
        """
        out = None if dtype is None else _place(dtype)
        with self._lock:
            value = _native.accumulator_finish(self._held, out)
        return value if dtype is None or speaks_torch(value) else value[()]

    @property
    def total(self):
        """Elements or rows of the whole."""
        return self._description()[4]

    @property
    def added(self):
        """Elements or rows that were added so far."""
        return self._description()[5]

    def _description(self):
        with self._lock:  # another thread may be adding, which does not hold the interpreter's lock
            return _native.accumulator_describe(self._held)

    def __bytes__(self):
        with self._lock:
            return _native.accumulator_export(self._held)

    @classmethod
    def from_bytes(cls, data):
        """What bytes(accumulator) gave, here, by another process, another machine, or the library in C."""
        if isinstance(data, (int, str)):  # of which bytes() would make zeros, or nothing
            raise TypeError(f"data is {type(data).__name__}; expected the bytes of an accumulator")
        made = cls.__new__(cls)
        made._held, made._lock = _native.accumulator_import(bytes(data)), threading.Lock()
        return made

    def __reduce__(self):
        return Accumulator.from_bytes, (bytes(self),)

    def __add__(self, other):
        if not isinstance(other, Accumulator):
            return NotImplemented
        both = self._empty()
        both.merge(self)
        both.merge(other)
        return both

    def __radd__(self, other):
        """For sum(accumulators), which begins with 0."""
        if other != 0:
            return NotImplemented
        copy = self._empty()
        copy.merge(self)
        return copy

    def _empty(self):
        """One that began as this did."""
        made = Accumulator.__new__(Accumulator)
        made._held, made._lock = _native.accumulator_begin(*self._description()[:5]), threading.Lock()
        return made

    def __repr__(self):
        loss, code, values, divisor, total, added = self._description()
        numbers = [f"{one['name']}={in_digits(value)}" for one, value in zip(known_by(loss)["parameters"], values)
                   if value != one["default"]]
        words = [repr(loss), f"total={total}", f"reduction={NAMES[code]!r}",
                 *([f"divisor={in_digits(divisor)}"] if divisor else []), *numbers]
        what = "elements" if loss in CATALOG else "rows"
        return f"<onepass.Accumulator({', '.join(words)}): {added} of {total} {what} added>"


def known_by(loss):
    """What the catalogue has of a loss, by the library's name."""
    return CATALOG.get(loss) or ROW_CATALOG.get(loss) or VECTOR_CATALOG[loss]


def axis_of(loss, dim):
    """As onepass_call has it."""
    if dim is None:
        return -1 if loss == "log_prob" else 0
    dim = checked_dim(dim)
    if loss in CATALOG:
        raise ValueError(f"dim is set, but {loss} is a loss over elements; expected None")
    if abs(dim) > 1000:  # far beyond what a tensor has, and within what the extension takes
        raise IndexError(f"dim is {dim}; expected a dimension of the input")
    return dim + 1 if dim >= 0 else dim


def checked_total(total):
    return checked_index("total", total, "the number of elements of the whole")


def checked_first(first):
    return checked_index("first", first, "the index of the slice's first element in the whole")


def checked_index(name, value, expected):
    """A whole number that the extension takes."""
    try:
        number = operator.index(plain_number(value))
    except TypeError:
        raise TypeError(f"{name} is {value!r}; expected {expected}") from None
    if not 0 <= number < 2**63:
        raise ValueError(f"{name} is {number}; expected {expected}, from 0 to 2^63 - 1")
    return number


def _plain(operand):
    """As the extension can borrow it."""
    if operand is None:
        return None
    if speaks_torch(operand):
        from . import _torch  # which tells the extension of PyTorch

        return _torch.borrowable(operand)
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(operand, (numpy.ndarray, numpy.generic)):
        return operand
    if isinstance(operand, numpy.ma.MaskedArray):
        raise TypeError("an operand is a masked array; expected a plain one, and the elements that take part as mask")
    operand = numpy.asarray(operand)  # a number without dimensions would lend the memory of a copy that is gone
    return operand if operand.flags.aligned else operand.copy()


def _check_writable(gradient):
    """The extension writes where it is told to."""
    if speaks_torch(gradient):
        if gradient.is_neg():
            raise ValueError("gradient is a view of negated numbers; expected a tensor with memory of its own")
        return
    interface = getattr(gradient, "__array_interface__", None)
    if interface and (interface["data"][1] or not hasattr(gradient, "__setitem__")):  # of which a number has none
        raise ValueError("gradient is read-only; expected an array that can be written to")


def _place(dtype):
    """For one number."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(dtype, torch.dtype):
        from . import _torch

        found = _torch.torch.empty((), dtype=dtype, device="cpu")  # whatever the default is
        is_float = found.is_floating_point() and found.element_size() > 1
    else:
        numpy = imported("numpy")
        found = numpy.empty((), dtype)
        is_float = found.dtype.kind == "f" and found.dtype.itemsize <= 8
    if not is_float:
        raise TypeError(f"dtype is {dtype}; expected None, or a floating point type of 16, 32 or 64 bits")
    return found
