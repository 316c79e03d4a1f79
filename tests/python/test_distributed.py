# Losses over the ranks of torch.distributed: value and gradients on 1, 2, 3, 4 and 8 ranks are bit-identical to one
# call over the whole; what is wrong on one rank is an error on all. Eight processes are started once and do all cases.
import collections
import re

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")

import torch.distributed as dist

import onepass
from onepass import _device_parts
from onepass.distributed import rounded
from rank_processes import LIMIT, started
from slices import same_bits, spans_of

if not dist.is_available() or not dist.is_gloo_available():
    pytest.skip("this PyTorch has no gloo", allow_module_level=True)

from ranks import (CASES, FAULTS, FAULTS_ON_DEVICE, ON_DEVICE, SIZES, WORLD, is_asked, mse, work, work_on_gpu,
                   work_till_one_dies, work_without_waiting)

def found_by_all(address):
    """What every rank found, by case and number of ranks."""
    workers, results = started(work, WORLD, address)
    found, left = collections.defaultdict(dict), WORLD
    while left:
        one = results.get(timeout=LIMIT)
        if one is None:
            left -= 1
        else:
            name, size, rank, error = one
            found[name, size][rank] = error
    for worker in workers:
        worker.join(LIMIT)
    return found


def test_all_cases(tmp_path):
    """In one test, so that the processes are started once, however tests are spread over others."""
    found = found_by_all(tmp_path / "rendezvous")
    asked = [*((name, size) for name in CASES for size in SIZES if is_asked(name, size)),
             *((name, 4) for name in FAULTS),
             *((f"{name}, on a device", size) for name in CASES for size in ON_DEVICE),
             *((f"{name}, on a device", 4) for name in FAULTS_ON_DEVICE)]
    assert sorted(found) == sorted(asked)
    wrong = []
    for (name, size), errors in found.items():
        assert sorted(errors) == list(range(size)), f"{name} on {size} ranks"
        for rank, error in errors.items():
            plain = name.removesuffix(", on a device")
            words = FAULTS[plain][0] if name in FAULTS else ""  # on a device in words of its own
            if plain in CASES and error is not None:
                wrong.append(f"{name}: rank {rank} of {size}: {error[2]}")
            elif plain in FAULTS and not is_as_expected(error, rank, words):
                wrong.append(f"{name}: rank {rank}: {'a number' if error is None else error[2]}")
    assert not wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong[:5])


def is_as_expected(error, rank, words):
    """An error on the rank that does something else, and on others one that says what."""
    return error is not None and (rank == 3 or (error[0] == "RuntimeError" and re.search(words, error[1]) is not None))


def test_a_rank_that_ends(tmp_path):
    workers, results = started(work_till_one_dies, 3, tmp_path / "rendezvous")
    others = dict(results.get(timeout=LIMIT) for _ in range(2))
    for worker in workers:
        worker.join(LIMIT)
    assert workers[1].exitcode == 7 and sorted(others) == [0, 2]
    for error in others.values():
        assert error[0] == "RuntimeError" and "one of them may have ended" in error[1], error


def test_no_place_is_before_the_first():
    """-1 is what ranks on GPUs tell each other of shares in their order."""
    for wrong, says in (((-1, 5), "first is -1"), ((0, -1), "total is -1"), ((0, 2**63), "total is 9223372036854775808")):
        with pytest.raises(ValueError, match=says):
            onepass.distributed.checked_places(*wrong)


@pytest.mark.parametrize("total", [0, 1, 1023, 1024, 1025, 9_000, 33_333])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["f32", "f64"])
def test_parts_on_a_device_are_the_librarys_order(total, dtype):
    p, t = torch.rand(2, total, dtype=dtype)
    whole = onepass.Accumulator("mse", total, reduction="sum")
    whole.add(p, t, first=0)
    terms = onepass.mse_loss(p, t, reduction="none")
    for ranks in (1, 2, 3, 8):
        spans = tuple(_device_parts.Span(*span) for span in spans_of(total, ranks))
        _device_parts.check_spans(spans, total)
        size = _device_parts.message_size(spans)
        messages = torch.cat([_device_parts.message_of(terms[span.first:span.last], span, size) for span in spans])
        plan = _device_parts.plan_of(spans, total, terms.device)
        assert _device_parts.sum_of(messages, plan, dtype).item() == whole.finish()


@pytest.mark.gpu
def test_ranks_on_a_gpu(tmp_path):
    _, results = started(work_on_gpu, 2, tmp_path / "rendezvous")
    left, wrong = 2, []
    while left:
        one = results.get(timeout=LIMIT)
        left -= one is None
        if one is not None and one[2] is not None:
            wrong.append(f"{one[0]}: rank {one[1]}: {one[2][2]}")
    assert not wrong, "\n".join(wrong[:3])


@pytest.mark.gpu
def test_nobody_waits_for_a_gpu(tmp_path):
    _, results = started(work_without_waiting, 1, tmp_path / "rendezvous")
    _, error = results.get(timeout=LIMIT)
    assert error is None, error[2]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_every_nan_is_the_librarys(dtype):
    """0/0 has another sign on x86, and other digits on a GPU."""
    expected = onepass.mse_loss(*torch.empty(2, 0, dtype=dtype))
    for nan in (torch.tensor(float("nan"), dtype=torch.float64), torch.tensor(-1).view(torch.float64)):
        for one in (nan, -nan):
            assert same_bits(rounded(one, dtype), expected)


def test_without_ranks():
    with pytest.raises(RuntimeError, match="init_process_group"):
        mse(0, None)
    assert "distributed" in dir(onepass)
