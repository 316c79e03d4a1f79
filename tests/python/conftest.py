# What every test file shares: where the tests run (each device that is here, both
# ways of borrowing a tensor), seeds, and a header that says what is being tested.
#
# A machine without a GPU has no CUDA cases at all, rather than skipped ones; the
# header says so. With the package built in-tree:
#
#   PYTHONPATH=build/python python -m pytest tests/python
import importlib
import os
import random
import sys
import tempfile

import pytest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "oracle"))
pytest.register_assert_rewrite("agreement")

# What hypothesis keeps for itself stays out of the source tree.
os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", os.path.join(tempfile.gettempdir(), "onepass-hypothesis"))

try:
    import numpy
except ImportError:
    numpy = None
try:
    import torch
except ImportError:
    torch = None

import onepass

HAS_GPU = torch is not None and torch.cuda.is_available()


def exchange_switch():
    """The package's private switch between the two ways of borrowing tensors, or None."""
    try:
        native = importlib.import_module("onepass._native")
    except ImportError:
        return None
    return getattr(native, "use_exchange_api", None)


def borrowings():
    """The ways of borrowing that can be tested here: by data_ptr() always, by exchange where PyTorch has it."""
    if torch is None or exchange_switch() is None:
        return ["default"]
    names = ("__dlpack_c_exchange_api__", "__c_dlpack_exchange_api__")
    return ["exchange", "data_ptr"] if any(hasattr(torch.Tensor, name) for name in names) else ["data_ptr"]


def pytest_configure(config):
    config.addinivalue_line("markers", "gpu: needs an NVIDIA GPU; not collected where there is none")


def compared_by_float32():
    """What this PyTorch's own losses cannot do, so that the tests ask them for it in float32."""
    if torch is None or numpy is None:
        return []
    from operands import FLOATS
    from reference import LOSSES, pytorch_has

    missing = [
        f"{loss} of {str(dtype).split('.')[1]} on {device} ({'backward' if backward else 'forward'})"
        for loss in LOSSES
        for dtype in FLOATS
        for device in (["cpu", "cuda"] if HAS_GPU else ["cpu"])
        for backward in (False, True)
        if not pytorch_has(loss, dtype, device, backward)
    ]
    return [f"this PyTorch lacks, and is asked in float32 instead: {', '.join(missing)}"] if missing else []


def pytest_report_header(config):
    versions = [
        f"onepass {onepass.__version__}",
        f"torch {torch.__version__}" if torch else "no torch: its tests are skipped",
        f"numpy {numpy.__version__}" if numpy else "no numpy: its tests are skipped",
    ]
    return [
        ", ".join(versions) + f", from {os.path.dirname(onepass.__file__)}",
        f"GPU: {torch.cuda.get_device_name()}" if HAS_GPU else "GPU: none here, so no test runs on one",
        f"ways of borrowing tensors: {', '.join(borrowings())}",
        *compared_by_float32(),
    ]


def pytest_generate_tests(metafunc):
    if "device" in metafunc.fixturenames:
        metafunc.parametrize("device", ["cpu", "cuda"] if HAS_GPU else ["cpu"])
    if "borrowing" in metafunc.fixturenames:
        metafunc.parametrize("borrowing", borrowings(), indirect=True)


def pytest_collection_modifyitems(config, items):
    import thinning

    without_gpu = () if HAS_GPU else [item for item in items if item.get_closest_marker("gpu")]
    thinning.leave_out(config, items, 36, without_gpu)


@pytest.fixture
def borrowing(request):
    """One way of borrowing for the length of a test; the package's own choice afterwards."""
    switch = exchange_switch()
    if request.param == "default" or switch is None:
        yield request.param
        return
    importlib.import_module("onepass._torch")  # which sets the switch when it meets PyTorch
    before = switch(request.param == "exchange")
    yield request.param
    switch(before)


@pytest.fixture(autouse=True)
def seeds():
    random.seed(94)
    if numpy is not None:
        numpy.random.seed(94)
    if torch is not None:
        torch.manual_seed(94)
