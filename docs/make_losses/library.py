"""The library through ctypes: its catalogue, and values and slopes at given points."""

import ctypes
from collections import namedtuple
from ctypes import POINTER, c_char_p, c_double, c_float, c_int32, c_int64, c_size_t, c_void_p

Parameter = namedtuple("Parameter", "name meaning default_value minimum maximum minimum_excluded maximum_excluded")
Error = namedtuple("Error", "ulp of")
Loss = namedtuple("Loss", "name meaning value slope operands parameters rounded errors")

NONE = 2  # ONEPASS_NONE
NUMBERS = 4, 5  # ONEPASS_NUMBER_A_VECTOR and _CLASS_A_VECTOR: of the last operand, which has no slope
TYPES = {"f32": (c_float, 3), "f64": (c_double, 4)}  # and ONEPASS_F32, ONEPASS_F64


class ParameterInfo(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("meaning", c_char_p), ("default_value", c_double), ("minimum", c_double),
                ("maximum", c_double), ("minimum_excluded", c_int32), ("maximum_excluded", c_int32)]


class ErrorInfo(ctypes.Structure):
    _fields_ = [("ulp", c_double), ("of", c_char_p)]


class AccuracyInfo(ctypes.Structure):
    _fields_ = [("rounded", c_char_p), ("error", ErrorInfo * 5)]


class LossInfo(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("meaning", c_char_p), ("value", c_char_p), ("slope", c_char_p),
                ("operand_count", c_int32), ("parameter_count", c_int32), ("parameter", POINTER(ParameterInfo)),
                ("operand", POINTER(c_char_p)), ("accuracy", POINTER(AccuracyInfo)), ("over_rows", c_int32)]


class Tensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("dtype", c_int32), ("ndim", c_int32), ("shape", POINTER(c_int64)),
                ("strides", POINTER(c_int64))]


class Call(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("loss", c_char_p), ("reduction", c_int32), ("parameter_count", c_int32),
                ("parameter", c_double * 8), ("operand", POINTER(Tensor) * 4), ("weight", POINTER(Tensor)),
                ("mask", POINTER(Tensor)), ("upstream", POINTER(Tensor)), ("value", POINTER(Tensor)),
                ("gradient", POINTER(Tensor) * 4), ("divisor", c_double), ("device", c_int32),
                ("device_index", c_int32), ("stream", c_void_p), ("threads", c_int32), ("flags", c_int32),
                ("workspace", c_void_p), ("workspace_size", c_size_t)]


class Library:
    def __init__(self, path):
        self._library = ctypes.CDLL(path)
        self._library.onepass_loss_at.restype = POINTER(LossInfo)
        self._library.onepass_row_loss_at.restype = POINTER(LossInfo)
        self._library.onepass_vector_loss_at.restype = POINTER(LossInfo)
        self._library.onepass_message.restype = c_char_p

    def losses(self):
        """The catalogue, in its order, of losses whose every element has a value."""
        return listed(self._library.onepass_loss_at)

    def row_losses(self):
        """That of losses over rows."""
        return listed(self._library.onepass_row_loss_at)

    def vector_losses(self):
        """That of losses of vectors."""
        return listed(self._library.onepass_vector_loss_at)

    def evaluate(self, loss, parameters, *operands, dtype="f64"):
        """Lists of the values and of the slopes in each operand, at the points that the operands are lists of."""
        count, (number, code) = len(operands[0]), TYPES[dtype]
        shape = (c_int64 * 1)(count)
        inputs = [(number * count)(*numbers) for numbers in operands]
        results = [(number * count)() for _ in range(1 + len(operands))]
        tensors = [Tensor(ctypes.cast(numbers, c_void_p), code, 1, shape, None) for numbers in inputs + results]
        call = Call(size=ctypes.sizeof(Call), loss=loss.name.encode(), reduction=NONE, threads=1)
        call.parameter_count = len(parameters)
        call.parameter[:len(parameters)] = parameters
        pointers = [ctypes.pointer(tensor) for tensor in tensors]
        for k in range(len(operands)):
            call.operand[k] = pointers[k]
            call.gradient[k] = pointers[len(operands) + 1 + k]
        call.value = pointers[len(operands)]
        if self._library.onepass_run(ctypes.byref(call)) != 0:
            raise ValueError(f"{loss.name}: {self._library.onepass_message().decode()}")
        return [list(numbers) for numbers in results]


def listed(at):
    found = []
    while info := at(c_int32(len(found))):
        found.append(loss_of(info.contents))
    return found


def loss_of(info):
    parameters = [Parameter(known.name.decode(), known.meaning.decode(), known.default_value, known.minimum, known.maximum,
                            known.minimum_excluded, known.maximum_excluded)
                  for known in info.parameter[:info.parameter_count]]
    operands = [name.decode() for name in info.operand[:info.operand_count]]
    words = [text.decode() for text in (info.name, info.meaning, info.value, info.slope)]
    accuracy = info.accuracy.contents
    rounded = [part for part in accuracy.rounded.decode().split("; ") if part]
    errors = [Error(known.ulp, known.of.decode() if known.of else None)
              for known in accuracy.error[:1 + info.operand_count - (info.over_rows in NUMBERS)]]
    return Loss(*words, operands, parameters, rounded, errors)
