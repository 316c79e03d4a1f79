"""The library through ctypes: its catalogue, and values and slopes at given points."""

import ctypes
import math
from collections import namedtuple
from ctypes import POINTER, c_char_p, c_double, c_float, c_int32, c_int64, c_size_t, c_void_p

Parameter = namedtuple("Parameter", "name meaning default_value minimum maximum minimum_excluded maximum_excluded")
Error = namedtuple("Error", "ulp of")
Loss = namedtuple("Loss", "name meaning value slope operands parameters rounded errors")

NONE = 2  # ONEPASS_NONE
NUMBER_A_VECTOR, CLASS_A_VECTOR, CLASSES_A_VECTOR = 4, 5, 6  # which have no slope, nor have class weights
TYPES = {"f32": (c_float, 3), "f64": (c_double, 4), "i64": (c_int64, 6)}  # and ONEPASS_F32, ONEPASS_F64, ONEPASS_I64


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
                ("operand", POINTER(c_char_p)), ("accuracy", POINTER(AccuracyInfo)), ("over_rows", c_int32),
                ("has_log_sum_exp", c_int32)]


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
        inputs = [Array(dtype, [len(numbers)], numbers) for numbers in operands]
        value, *gradients = [Array(dtype, [len(operands[0])]) for _ in range(1 + len(operands))]
        self._run(loss, parameters, inputs, value, gradients)
        return [list(array.numbers) for array in (value, *gradients)]

    def evaluate_rows(self, loss, parameters, rows):
        """Lists of the values of a loss of vectors and of the slopes in the first element of the first of them. A row
        has for each operand a tuple of elements, or one whole number, or a list of them."""
        inputs = []
        for numbers in zip(*rows):
            if isinstance(numbers[0], int):
                inputs.append(Array("i64", [len(rows)], numbers))
            else:
                dtype = "i64" if isinstance(numbers[0], list) else "f64"
                inputs.append(Array(dtype, [len(rows), len(numbers[0])], [x for one in numbers for x in one]))
        value, gradient = Array("f64", [len(rows)]), Array("f64", inputs[0].extents)
        self._run(loss, parameters, inputs, value, [gradient])
        return [list(value.numbers), list(gradient.numbers)[::inputs[0].extents[1]]]

    def _run(self, loss, parameters, inputs, value, gradients):
        call = Call(size=ctypes.sizeof(Call), loss=loss.name.encode(), reduction=NONE, threads=1)
        call.parameter_count = len(parameters)
        call.parameter[:len(parameters)] = parameters
        for k, array in enumerate(inputs):
            call.operand[k] = ctypes.pointer(array.tensor)
        for k, array in enumerate(gradients):
            call.gradient[k] = ctypes.pointer(array.tensor)
        call.value = ctypes.pointer(value.tensor)
        if self._library.onepass_run(ctypes.byref(call)) != 0:
            raise ValueError(f"{loss.name}: {self._library.onepass_message().decode()}")


class Array:
    """Dense numbers, and the tensor that says where they are."""

    def __init__(self, dtype, extents, numbers=()):
        number, code = TYPES[dtype]
        self.extents = extents
        self.numbers = (number * math.prod(extents))(*numbers)
        self._shape = (c_int64 * len(extents))(*extents)
        self.tensor = Tensor(ctypes.cast(self.numbers, c_void_p), code, len(extents), self._shape, None)


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
    slopes = 1 if info.over_rows in (CLASS_A_VECTOR, CLASSES_A_VECTOR) else info.operand_count - (info.over_rows == NUMBER_A_VECTOR)
    errors = [Error(known.ulp, known.of.decode() if known.of else None) for known in accuracy.error[:1 + slopes]]
    return Loss(*words, operands, parameters, rounded, errors)
