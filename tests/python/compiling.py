"""What the tests of torch.compile share: a compiler that remembers nothing, and whether it can have our operators."""

import pytest

torch = pytest.importorskip("torch")
dynamo = pytest.importorskip("torch._dynamo")

from agreement import assert_near_pytorch, assert_same_bits

#: Before, operators of ours could not be differentiated, and a compiled function gets PyTorch's own losses.
HAS_OPERATORS = hasattr(torch.library, "register_autograd")

needs_operators = pytest.mark.skipif(
    not HAS_OPERATORS, reason="operators of this PyTorch cannot be differentiated, so PyTorch's own are asked")


def assert_as_eager(got, wanted):
    """A compiled function's result beside eager's: the same bits where our operators computed both."""
    (assert_same_bits if HAS_OPERATORS else assert_near_pytorch)(got, wanted)


@pytest.fixture(autouse=True)
def fresh_compiler():
    dynamo.reset()
    yield
    dynamo.reset()
