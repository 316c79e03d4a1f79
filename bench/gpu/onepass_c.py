"""onepass.h for ctypes: as much of it as the benchmark calls.

A Call is built once and run many times, as a program in C would do it, so that the
figures are those of the library and not of Python.
"""

import ctypes
import dataclasses
import pathlib
import re
from ctypes import POINTER, c_char_p, c_double, c_int32, c_int64, c_size_t, c_void_p

import torch

# The enums of onepass.h.
DTYPES = {torch.float16: 1, torch.bfloat16: 2, torch.float32: 3, torch.float64: 4, torch.bool: 5, torch.uint8: 5}
REDUCTIONS = {"mean": 0, "sum": 1, "none": 2, "batchmean": 3}
CUDA = 1


def workspace_size():
    """ONEPASS_WORKSPACE_SIZE, from the header itself."""
    header = pathlib.Path(__file__).resolve().parents[2] / "include" / "onepass.h"
    found = re.search(r"#define ONEPASS_WORKSPACE_SIZE +(\d+)", header.read_text(encoding="utf-8"))
    return int(found.group(1))


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("dtype", c_int32),
        ("ndim", c_int32),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
    ]


class CallFields(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("loss", c_char_p),
        ("reduction", c_int32),
        ("parameter_count", c_int32),
        ("parameter", c_double * 8),
        ("operand", POINTER(Tensor) * 4),
        ("weight", POINTER(Tensor)),
        ("mask", POINTER(Tensor)),
        ("upstream", POINTER(Tensor)),
        ("value", POINTER(Tensor)),
        ("gradient", POINTER(Tensor) * 4),
        ("divisor", c_double),
        ("device", c_int32),
        ("device_index", c_int32),
        ("stream", c_void_p),
        ("threads", c_int32),
        ("flags", c_int32),
        ("workspace", c_void_p),
        ("workspace_size", c_size_t),
    ]


class ParameterInfo(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p),
        ("meaning", c_char_p),
        ("default_value", c_double),
        ("minimum", c_double),
        ("maximum", c_double),
        ("minimum_excluded", c_int32),
        ("maximum_excluded", c_int32),
    ]


class LossInfo(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p),
        ("meaning", c_char_p),
        ("value", c_char_p),
        ("slope", c_char_p),
        ("operand_count", c_int32),
        ("parameter_count", c_int32),
        ("parameter", POINTER(ParameterInfo)),
        ("operand", POINTER(c_char_p)),
    ]


@dataclasses.dataclass
class Loss:
    """A loss as the library describes it."""

    name: str
    value: str  # its formula
    operands: list
    parameters: dict  # their defaults, by name


class Failed(RuntimeError):
    """A call that did not return ONEPASS_OK; the text is the library's own sentence."""


class Library:
    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        self.c.onepass_run.argtypes = [POINTER(CallFields)]
        self.c.onepass_run.restype = ctypes.c_int
        self.c.onepass_prepare.argtypes = [c_int32, c_int32]
        self.c.onepass_prepare.restype = ctypes.c_int
        for name in ("onepass_message", "onepass_version_text"):
            getattr(self.c, name).argtypes = []
            getattr(self.c, name).restype = c_char_p
        self.c.onepass_loss_at.argtypes = [c_int32]
        self.c.onepass_loss_at.restype = POINTER(LossInfo)
        self.c.onepass_status_name.argtypes = [ctypes.c_int]
        self.c.onepass_status_name.restype = c_char_p

    def check(self, status):
        if status != 0:
            name = self.c.onepass_status_name(status).decode()
            raise Failed(f"{name}: {self.c.onepass_message().decode()}")

    def version(self):
        return self.c.onepass_version_text().decode()

    def losses(self):
        """All of them, in the library's order."""
        found = []
        while info := self.c.onepass_loss_at(len(found)):
            loss = info.contents
            parameters = [loss.parameter[i] for i in range(loss.parameter_count)]
            found.append(Loss(loss.name.decode(), loss.value.decode(),
                              [loss.operand[i].decode() for i in range(loss.operand_count)],
                              {parameter.name.decode(): parameter.default_value for parameter in parameters}))
        return found

    def prepare(self):
        self.check(self.c.onepass_prepare(CUDA, torch.cuda.current_device()))


def describe(tensor):
    """A onepass_tensor for a torch tensor, with room for its own shape and strides."""
    lengths = c_int64 * max(tensor.dim(), 1)
    return Tensor(tensor.data_ptr(), DTYPES[tensor.dtype], tensor.dim(), lengths(*tensor.shape),
                  lengths(*tensor.stride()))


class Call:
    """One computation on the current device. All tensors but the first two may be None; the gradient is that for the
    prediction, and parameters that are not given have their defaults.

    It goes to the stream that is current when it is built. A workspace of the caller's own is a tensor of zeros.
    """

    def __init__(self, library, loss, prediction, target, third=None, value=None, gradient=None, upstream=None,
                 weight=None, mask=None, reduction="mean", parameters=(), workspace=None):
        self.library = library
        self.kept = [workspace]  # the tensors and their descriptions
        fields = self.fields = CallFields()
        fields.size = ctypes.sizeof(CallFields)
        fields.loss = loss.encode()
        fields.reduction = REDUCTIONS[reduction]
        fields.parameter_count = len(parameters)
        fields.parameter[:len(parameters)] = parameters
        for index, tensor in enumerate((prediction, target, third)):
            if tensor is not None:
                fields.operand[index] = self.pointer_to(tensor)
        if gradient is not None:
            fields.gradient[0] = self.pointer_to(gradient)
        for name, tensor in (("value", value), ("upstream", upstream), ("weight", weight), ("mask", mask)):
            if tensor is not None:
                setattr(fields, name, self.pointer_to(tensor))
        fields.device = CUDA
        fields.device_index = torch.cuda.current_device()
        fields.stream = torch.cuda.current_stream().cuda_stream or None
        if workspace is not None:
            fields.workspace = workspace.data_ptr()
            fields.workspace_size = workspace.numel() * workspace.element_size()
        self.value = value
        self.pointer = ctypes.pointer(fields)
        self.function = library.c.onepass_run

    def pointer_to(self, tensor):
        description = describe(tensor)
        self.kept += [tensor, description]
        return ctypes.pointer(description)

    def run(self):
        """Enqueues the work; returns the tensor that will hold the value."""
        status = self.function(self.pointer)
        if status != 0:
            self.library.check(status)
        return self.value
