# What every test of the tool shares: the tool, whose path is in ONEPASS_TOOL, and a folder to work in.
#
#   ONEPASS_TOOL=build/cli/onepass python -m pytest -n auto tests/cli
#
# With ONEPASS_TEST_QUICK=1 the large files are smaller, and of tests with 100 cases and more one of six runs.
import os
import sys
import tempfile

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, os.pardir, "oracle"))

pytest.register_assert_rewrite("folder", "expected")

# What hypothesis keeps for itself stays out of the source tree.
os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", os.path.join(tempfile.gettempdir(), "onepass-hypothesis"))


def pytest_configure(config):
    tool = os.environ.get("ONEPASS_TOOL", "")
    if not tool:
        raise pytest.UsageError("ONEPASS_TOOL is not set: it says which tool to test, such as build/cli/onepass")
    if not os.access(tool, os.X_OK):
        raise pytest.UsageError(f"ONEPASS_TOOL is {tool}, which is not a program that can be run here")
    os.environ["ONEPASS_TOOL"] = os.path.abspath(tool)


def pytest_report_header(config):
    import ml_dtypes
    import numpy
    import safetensors

    return [
        f"tool: {os.environ['ONEPASS_TOOL']}",
        f"files by numpy {numpy.__version__}, ml_dtypes {ml_dtypes.__version__}, safetensors {safetensors.__version__}",
    ]


def pytest_collection_modifyitems(config, items):
    import thinning

    thinning.leave_out(config, items, 100)


@pytest.fixture
def folder(tmp_path):
    from folder import Folder

    return Folder(tmp_path)
