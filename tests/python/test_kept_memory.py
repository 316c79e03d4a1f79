# Large gradients on the CPU: their memory serves the next one, and belongs to nobody else meanwhile.
import contextlib
import copy
import ctypes
import io
import mmap
import os
import pickle
import re
import resource
import subprocess
import sys
import threading

import pytest

torch = pytest.importorskip("torch")

import onepass

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is kept on Linux alone")

ROWS, CLASSES = 10240, 1024  # 40 MiB of floats


def mapping_at(address):
    """What the kernel tells of the memory that stands there, by the names of /proc/self/smaps; None: nothing does."""
    found = None
    with open("/proc/self/smaps") as maps:
        for line in maps:
            span = re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line)
            if span and found:
                break
            if span and int(span[1], 16) <= address < int(span[2], 16):
                found = {"bytes": int(span[2], 16) - int(span[1], 16)}
            elif found and not span:
                name, value = line.split(":", 1)
                found[name] = value.split()
    return found


inputs = threading.local()  # one of each size, since the system takes long to hand out its memory


def input_of(factor, rows):
    if rows not in vars(inputs):
        vars(inputs)[rows] = torch.empty(rows, CLASSES)
    return vars(inputs)[rows].fill_(factor)


def gradient_of(factor, rows=ROWS):
    """The gradient of the sum of (factor - 0)^2 over rows x CLASSES elements, which is 2 * factor each."""
    input = input_of(factor, rows).detach().requires_grad_()
    onepass.mse_loss(input, torch.zeros(()).expand(rows, CLASSES), reduction="sum").backward()
    return input.grad


def is_pytorchs(tensor):
    """PyTorch resizes no other memory, not even to the size that it has."""
    storage = tensor.untyped_storage()
    try:
        storage.resize_(storage.nbytes())
    except RuntimeError:
        return False
    return True


def is_right(gradient, factor):
    return bool((gradient == 2 * factor).all())


def fill(rows):
    """Fills the places where memory is kept with gradients of so many rows; the addresses of those that are kept."""
    addresses = {gradient.data_ptr() for gradient in [gradient_of(1, rows) for _ in range(5)]}
    return {address for address in addresses if mapping_at(address)}


def test_the_next_gradient_has_the_memory_of_the_last():
    first = gradient_of(1)
    address = first.data_ptr()
    assert is_right(first, 1)
    first.fill_(float("nan"))
    del first
    for factor in range(2, 6):
        gradient = gradient_of(factor)
        assert gradient.data_ptr() == address and is_right(gradient, factor)
        del gradient


def test_views_hold_it():
    gradient = gradient_of(3)
    row, array = gradient[5], gradient.numpy()
    del gradient
    others = [gradient_of(factor) for factor in (4, 5, 6, 7, 8)]
    assert (row == 6).all() and (array == 6).all()
    assert all(is_right(other, factor) for other, factor in zip(others, (4, 5, 6, 7, 8)))
    spans = sorted([other.data_ptr() for other in others] + [row.data_ptr() - 5 * row.nbytes])
    assert all(after - before >= 4 * ROWS * CLASSES for before, after in zip(spans, spans[1:]))


@pytest.mark.parametrize(
    "rows, serves", [(2 * ROWS, True), (2 * ROWS + 1, True), (2 * ROWS + 20, False), (ROWS, True), (ROWS - 20, False)]
)
def test_memory_of_another_size_serves_if_little_is_wasted(rows, serves):
    kept = fill(2 * ROWS)
    assert len(kept) == 4
    gradient = gradient_of(2, rows)
    assert (gradient.data_ptr() in kept) == serves and is_right(gradient, 2)


def test_at_most_four_are_kept_and_the_system_may_take_them():
    several = [gradient_of(factor) for factor in range(7)]
    addresses = [gradient.data_ptr() for gradient in several]
    assert len(set(addresses)) == 7
    assert all(is_right(gradient, factor) for factor, gradient in enumerate(several))
    while several:
        several.pop(0)
    there = [mapping_at(address + ROWS * CLASSES) for address in addresses]
    assert [mapping is not None for mapping in there] == [False] * 3 + [True] * 4
    for mapping in there[3:]:
        if "LazyFree" in mapping:
            assert int(mapping["LazyFree"][0]) * 1024 >= 4 * ROWS * CLASSES // 2


def test_what_the_system_takes_comes_back():
    gradient = gradient_of(1)
    address, size = gradient.data_ptr(), gradient.nbytes
    del gradient
    page = mmap.PAGESIZE
    first, end = -(-address // page) * page, (address + size) // page * page
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(end - first), mmap.MADV_DONTNEED) == 0
    gradient = gradient_of(2)
    assert gradient.data_ptr() == address and is_right(gradient, 2)


@pytest.mark.parametrize("rows, is_small", [(64, True), (8191, True), (8192, False)])
def test_gradients_of_less_than_32_mib_are_pytorchs(rows, is_small):
    gradient = gradient_of(1, rows)
    assert is_pytorchs(gradient) == is_small and is_right(gradient, 1)


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize(
    "shape, dtype",
    [
        (((1 << 61) + (1 << 20),), torch.float64),
        (((1 << 62) - 1,), torch.float32),
        (((1 << 63) - 1,), torch.float16),
        ((1 << 31, (1 << 31) + 1), torch.float32),
        ((1 << 60,), torch.float32),
    ],
)
def test_what_no_memory_has_room_for_is_refused(shape, dtype):
    input = torch.zeros(1, dtype=dtype).expand(shape)
    with pytest.raises(RuntimeError, match="overflow|can't allocate|not enough memory"):
        onepass.mse_loss(input, torch.zeros(1, dtype=dtype), reduction="none")


def tells_of_huge_pages():
    """Whether this system notes that somebody asked for them."""
    with mmap.mmap(-1, 1 << 22) as asked:
        try:
            asked.madvise(mmap.MADV_HUGEPAGE)
        except OSError:
            return False
        first = ctypes.c_char.from_buffer(asked)
        mapping = mapping_at(ctypes.addressof(first))
        del first
        return "hg" in mapping.get("VmFlags", [])


@pytest.mark.skipif(not tells_of_huge_pages(), reason="this system has no huge pages, or does not tell who asked for them")
def test_huge_pages_are_asked_for():
    gradient = gradient_of(1)
    assert "hg" in mapping_at(gradient.data_ptr())["VmFlags"]


LAYOUTS = {  # of 2^23 elements, 32 MiB of floats
    "dense": lambda: torch.randn(8192, 1024),
    "transposed": lambda: torch.randn(1024, 8192).t(),
    "channels last": lambda: torch.randn(32, 64, 64, 64).to(memory_format=torch.channels_last),
    "with gaps": lambda: torch.randn(8192, 2048)[:, ::2],
    "transposed with gaps": lambda: torch.randn(2048, 8192)[::2].t(),
    "shifted": lambda: torch.randn(16, 513, 1024)[:, 1:],
    "an extent of 1": lambda: torch.randn(1, 8192, 1, 1024),
}


def check_layout_and_type(input):
    input.requires_grad_()
    loss = onepass.mse_loss(input, torch.zeros_like(input), reduction="none")
    (gradient,) = torch.autograd.grad(loss, input, torch.ones_like(loss))
    like = torch.empty_like(input)
    for made in (loss.detach(), gradient):
        assert not is_pytorchs(made)
        assert made.shape == like.shape and made.stride() == like.stride() and made.dtype == input.dtype
    double = input.detach().double()
    assert torch.equal(gradient, (2 * double).to(input.dtype))
    torch.testing.assert_close(loss.detach(), (double * double).to(input.dtype), rtol=0, atol=0)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_are_those_of_empty_like(layout):
    check_layout_and_type(LAYOUTS[layout]())


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_types_are_those_of_empty_like(dtype):
    check_layout_and_type(torch.randn((32 << 20) // (1024 * dtype.itemsize), 1024, dtype=dtype).t())


def test_they_are_tensors_like_others():
    gradient = gradient_of(3)
    for made in (
        copy.deepcopy(gradient),
        pickle.loads(pickle.dumps(gradient)),
        gradient.clone(),
        gradient.contiguous(),
        torch.from_dlpack(gradient),
        gradient.double().float(),
        gradient.add_(0),
        gradient.detach_(),
    ):
        assert type(made) is torch.Tensor and is_right(made, 3)
    file = io.BytesIO()
    torch.save(gradient, file)
    file.seek(0)
    assert is_right(torch.load(file, weights_only=True), 3)
    assert not gradient.requires_grad and gradient.is_leaf and gradient._base is None and gradient._version <= 1
    gradient.share_memory_()
    assert gradient.is_shared() and is_right(gradient, 3)


def test_a_gradient_adds_up_in_place():
    input = torch.full((ROWS, CLASSES), 2.0, requires_grad=True)
    for turn in range(1, 4):
        onepass.mse_loss(input, torch.zeros(ROWS, CLASSES), reduction="sum").backward()
        assert is_right(input.grad, 2 * turn)


def test_inference_mode():
    with torch.inference_mode():
        value = onepass.mse_loss(torch.full((ROWS, CLASSES), 3.0), torch.zeros(ROWS, CLASSES), reduction="none")
        assert value.is_inference() and (value == 9).all()


def test_threads_share_what_is_kept():
    wrong = []

    def work(mine):
        held = []
        for turn in range(12):
            held.append((gradient_of(mine + turn), mine + turn))
            if len(held) == 3:
                wrong.extend(factor for gradient, factor in held if not is_right(gradient, factor))
                del held[turn % 3]
                held = held[:1]

    threads = [threading.Thread(target=work, args=(100 * number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@contextlib.contextmanager
def limited(name):
    """A limit that nobody reaches."""
    number = getattr(resource, name)
    before = resource.getrlimit(number)
    resource.setrlimit(number, (1 << 46, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(number, before)


@contextlib.contextmanager
def told_not_to():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ONEPASS_KEEP_MEMORY", "0")
        yield


@pytest.mark.parametrize("setting", ["RLIMIT_AS", "RLIMIT_DATA", "told not to"])
def test_nothing_is_kept_where_that_would_hurt(setting):
    """The memory is the system's again, and so is what was kept before: nothing stands at its address."""
    before = fill(ROWS)
    assert len(before) == 4
    with told_not_to() if setting == "told not to" else limited(setting):
        gradient = gradient_of(3, ROWS + 100)
        assert is_right(gradient, 3)
        address = gradient.data_ptr() + gradient.nbytes // 2
        assert mapping_at(address)
        del gradient
        assert not any(mapping_at(address) for address in {address} | before)
    assert len(fill(ROWS)) == 4


def test_a_process_and_its_fork_have_their_own():
    code = f"""
import os, sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
import torch
torch.set_num_threads(1)
import onepass
import test_kept_memory as here

def gradient_of(factor):  # not by autograd, with which some builds of PyTorch allow no fork
    input = here.input_of(factor, here.ROWS)
    return onepass.value_and_grad("mse", input, torch.zeros_like(input), reduction="sum")[1]

held, kept = gradient_of(5), gradient_of(6)
address = kept.data_ptr()
del kept
child = os.fork()
mine = gradient_of(7 if child else 8)
assert mine.data_ptr() == address
assert here.is_right(mine, 7 if child else 8) and here.is_right(held, 5)
if child:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert here.is_right(mine, 7) and here.is_right(held, 5)
else:
    del mine, held
    os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
