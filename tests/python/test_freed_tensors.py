# Tensors whose memory was given back, as FSDP and others do with storages: an error that names the operand, and never a
# crash, which is what PyTorch's own operations end in.

import pytest

torch = pytest.importorskip("torch")

import onepass

pytestmark = pytest.mark.usefixtures("borrowing")

ROWS, COLUMNS = 10, 4


def floats(freed=False):
    return given(torch.randn(ROWS, COLUMNS), freed)


def labels(freed=False):
    return given(torch.zeros(ROWS, dtype=torch.long), freed)


def given(tensor, freed):
    if freed:
        tensor.untyped_storage().resize_(0)
    return tensor


def add(*operands, **more):
    return onepass.Accumulator("mse", ROWS * COLUMNS).add(*operands, first=0, **more)


#: The operand that has no memory, what it needs, and the call.
CALLS = {
    "cross_entropy": ("input", 160, lambda: onepass.cross_entropy(floats(True), labels())),
    "labels": ("target", 80, lambda: onepass.cross_entropy(floats(), labels(True))),
    "class weights": ("weight", 16, lambda: onepass.cross_entropy(floats(), labels(), given(torch.ones(4), True))),
    "row weights": ("row_weight", 40, lambda: onepass.cross_entropy(floats(), labels(),
                                                                    row_weight=given(torch.ones(ROWS), True))),
    "mse_loss": ("input", 160, lambda: onepass.mse_loss(floats(True), floats())),
    "a target": ("target", 160, lambda: onepass.mse_loss(floats(), floats(True))),
    "with a gradient": ("target", 160, lambda: onepass.mse_loss(floats().requires_grad_(), floats(True))),
    "a mask": ("mask", 40, lambda: onepass.mse_loss(floats(), floats(),
                                                    mask=given(torch.ones(ROWS, COLUMNS).bool(), True))),
    "a weight": ("weight", 160, lambda: onepass.mse_loss(floats(), floats(), weight=floats(True))),
    "cosine_similarity": ("input2", 160, lambda: onepass.cosine_similarity(floats(), floats(True))),
    "multi_margin_loss": ("target", 80, lambda: onepass.multi_margin_loss(floats(), labels(True))),
    "a variance": ("var", 160, lambda: onepass.gaussian_nll_loss(floats(), floats(), floats(True))),
    "nt_xent_loss": ("input2", 160, lambda: onepass.nt_xent_loss(floats(), floats(True))),
    "supcon_loss": ("labels", 80, lambda: onepass.supcon_loss(floats(), labels(True))),
    "linear_cross_entropy": ("linear_weight", 160,
                             lambda: onepass.linear_cross_entropy(torch.ones(ROWS, 4), floats(True), labels())),
    "value_and_grad": ("input", 160, lambda: onepass.value_and_grad("mse", floats(True), floats())),
    "value_and_grad over rows": ("target", 80, lambda: onepass.value_and_grad("cross_entropy", floats(), labels(True))),
    "accumulator": ("target", 160, lambda: add(floats(), floats(True))),
    "an output": ("the gradient", 160, lambda: add(floats(), floats(), gradient=floats(True))),
}


@pytest.mark.parametrize("call", CALLS)
def test_memory_that_was_given_back(call):
    name, needed, function = CALLS[call]
    with pytest.raises(RuntimeError, match=f"^{name} has no memory: its storage has 0 bytes, and it needs {needed}$"):
        function()


def test_a_view_of_it():
    whole = floats()
    view = whole[3:, 1:]
    given(whole, True)
    assert view.data_ptr() != 0  # which is no address of anything
    with pytest.raises(RuntimeError, match="input has no memory: its storage has 0 bytes, and it needs 160"):
        onepass.mse_loss(view, floats()[3:, 1:])


def test_without_elements_none_is_needed():
    assert onepass.mse_loss(given(torch.empty(0, 4), True), torch.empty(0, 4), reduction="sum").item() == 0


def test_backward_after_it_was_given_back():
    input, target = floats().requires_grad_(), floats()
    loss = onepass.mse_loss(input, target, reduction="none").sum() * 3
    target.untyped_storage().resize_(0)
    with pytest.raises(RuntimeError, match="target has no memory"):
        loss.backward()
