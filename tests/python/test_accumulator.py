# Accumulators: one call over the whole == slices in any order == accumulators merged in any grouping, through pickle,
# bytes and other processes.
import concurrent.futures
import math
import multiprocessing
import pickle
import random

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

import onepass
from parts_of_arrays import arrays_of, part_of
from slices import EVERY, IGNORED, LENGTH, PAIRWISE, ROWS, TILE, operands_of, same_bits, slice_of, spans_of

TOTAL = 5 * TILE + 77


def carried(accumulator):
    """As other processes would get it."""
    way = random.randrange(3)
    if way == 0:
        return pickle.loads(pickle.dumps(accumulator))
    return onepass.Accumulator.from_bytes(bytes(accumulator)) if way == 1 else accumulator


def merged(parts):
    """All of them, in any order and grouping."""
    parts = list(parts)
    while len(parts) > 1:
        one, other = (parts.pop(random.randrange(len(parts))) for _ in range(2))
        if random.random() < 0.5:
            parts.append(carried(one) + other)
        else:
            one.merge(carried(other))
            parts.append(one)
    return carried(parts[0])


def add(accumulator, tensors, total, first, last, gradient=None, **more):
    input, target, third, weight, mask = slice_of(tensors, total, first, last)
    accumulator.add(input, target, third, first=first, weight=weight, mask=mask,
                    gradient=None if gradient is None else gradient[first:last], **more)


def in_slices(begin, tensors, total, parts=4, slices=7, gradient=None):
    """An accumulator of the whole, made of some that saw a few slices each."""
    accumulators = [begin() for _ in range(parts)]
    spans = spans_of(total, slices)
    random.shuffle(spans)
    for first, last in spans:
        add(random.choice(accumulators), tensors, total, first, last, gradient)
    return merged(accumulators)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["f32", "f64"])
@pytest.mark.parametrize("name", EVERY)
def test_slices_are_one_call(name, dtype):
    operands = operands_of(name, TOTAL, dtype)
    value, gradient = onepass.value_and_grad(name, *operands, reduction="sum")
    written = torch.full_like(operands[0], 7)
    whole = in_slices(lambda: onepass.Accumulator(name, TOTAL, reduction="sum"), (*operands, None, None), TOTAL,
                      gradient=written)
    assert same_bits(whole.finish(dtype), value)
    assert same_bits(written, gradient)


@pytest.mark.parametrize("name", ["mse", *ROWS, "triplet_margin"])
@pytest.mark.parametrize("kind", ["plain", "weight", "mask", "both"])
def test_means(name, kind):
    operands = operands_of(name, TOTAL)
    weight = torch.rand(TOTAL) if kind in ("weight", "both") else None
    mask = torch.rand(TOTAL) < 0.6 if kind in ("mask", "both") else None
    expected, _ = onepass.value_and_grad(name, *operands, weight=weight, mask=mask)
    whole = in_slices(lambda: onepass.Accumulator(name, TOTAL), (*operands, weight, mask), TOTAL)
    assert same_bits(whole.finish(torch.float32), expected)
    assert math.isclose(whole.finish(), float(expected), rel_tol=1e-6)


def test_a_gradient_of_a_mean_is_over_the_whole():
    p, t, _ = operands_of("mse", TOTAL)
    value, expected = onepass.value_and_grad("mse", p, t)
    gradient = torch.empty_like(p)
    whole = in_slices(lambda: onepass.Accumulator("mse", TOTAL), (p, t, None, None, None), TOTAL, gradient=gradient)
    assert same_bits(gradient, expected) and same_bits(whole.finish(torch.float32), value)


def test_a_token_mean_with_gradients_needs_the_count():
    input, target, _ = operands_of("cross_entropy", TOTAL)
    counts = int((target != IGNORED).sum())
    value, expected = onepass.value_and_grad("cross_entropy", input, target)
    gradient = torch.empty_like(input)
    whole = in_slices(lambda: onepass.Accumulator("cross_entropy", TOTAL, divisor=counts),
                      (input, target, None, None, None), TOTAL, gradient=gradient)
    assert same_bits(gradient, expected) and same_bits(whole.finish(torch.float32), value)
    for same in (torch.tensor(counts), torch.tensor([counts]), torch.tensor(float(counts))):
        assert bytes(onepass.Accumulator("mse", TOTAL, divisor=same)) == \
            bytes(onepass.Accumulator("mse", TOTAL, divisor=counts))
    with pytest.raises(ValueError, match="divisor"):
        onepass.Accumulator("cross_entropy", TOTAL).add(input, target, first=0, gradient=gradient)


def test_class_weights_and_another_dimension():
    input, target = torch.randn(40, LENGTH, 30), torch.randint(0, LENGTH, (40, 30))
    classes = torch.rand(LENGTH)
    expected = onepass.cross_entropy(input, target, classes, ignore_index=2)
    whole = onepass.Accumulator("cross_entropy", 1200, ignore_index=2)
    whole.add(input[35:], target[35:], classes, first=35 * 30)
    whole.add(input[:35].movedim(1, 2), target[:35], classes, first=0, dim=-1)
    assert same_bits(whole.finish(torch.float32), expected)


def test_the_formula():
    """By itself, and not by another call."""
    p, t, _ = operands_of("mse", TOTAL, torch.float64)
    whole = in_slices(lambda: onepass.Accumulator("mse_loss", TOTAL), (p, t, None, None, None), TOTAL)
    exact = math.fsum(x * x for x in (p - t).tolist()) / TOTAL
    assert abs(whole.finish() - exact) <= 4 * math.ulp(exact)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_arrays(dtype):
    p, t = (np.random.rand(TOTAL).astype(dtype) for _ in range(2))
    weight = np.random.rand(TOTAL).astype(dtype)
    whole = onepass.Accumulator("smooth_l1", TOTAL, beta=0.25)
    gradient = np.empty_like(p)
    for first, last in reversed(spans_of(TOTAL, 5)):
        whole.add(p[first:last], t[first:last], first=first)
    assert whole.finish(dtype).tobytes() == onepass.smooth_l1_loss(p, t, beta=0.25).tobytes()
    assert isinstance(whole.finish(dtype), np.floating) and isinstance(whole.finish(), float)
    half = onepass.Accumulator("smooth_l1", TOTAL, beta=0.25, reduction="sum")
    half.add(p[::-1], t[::-1], first=0, weight=weight, gradient=gradient)
    value, expected = onepass.value_and_grad("smooth_l1", p[::-1], t[::-1], beta=0.25, reduction="sum", weight=weight)
    assert half.finish(dtype).tobytes() == value.tobytes() and gradient.tobytes() == expected.tobytes()


def test_narrow_types_round_once():
    p, t = torch.rand(TOTAL).half(), torch.rand(TOTAL).half()
    whole = onepass.Accumulator("mse", TOTAL)
    whole.add(p, t, first=0)
    for dtype in (torch.float16, torch.bfloat16):
        assert same_bits(whole.finish(dtype), onepass.mse_loss(p.to(torch.float16), t).to(dtype)
                         if dtype is torch.float16 else torch.tensor(whole.finish(), dtype=torch.float64).to(dtype))


def test_unusual_tensors():
    p, t = torch.rand(TOTAL, requires_grad=True), torch.rand(TOTAL)
    whole = onepass.Accumulator("mse", TOTAL)
    whole.add(p, torch._neg_view(-t), first=0)
    assert same_bits(whole.finish(torch.float32), onepass.mse_loss(p, t))
    unaligned = torch.frombuffer(bytearray(4 * TOTAL + 1), dtype=torch.uint8)[1:].view(torch.uint8)
    array = np.frombuffer(unaligned.numpy().data, dtype=np.float32)
    zero = onepass.Accumulator("mse", TOTAL)
    zero.add(array, array, first=0)
    assert zero.finish() == 0


def test_numbers_without_dimensions():
    """Whose memory is that of a copy."""
    for one in (np.float32(3), np.array(3, "f4"), torch.tensor(3.0)):
        whole = onepass.Accumulator("mse", 1)
        whole.add(one, np.float32(1), first=0)
        assert whole.finish() == 4


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["f32", "f64"])
@pytest.mark.parametrize("name", EVERY)
def test_slices_of_a_gpu_are_one_call_on_the_cpu(name, dtype):
    operands = operands_of(name, TOTAL, dtype)
    value, gradient = onepass.value_and_grad(name, *operands, reduction="sum")
    there = [None if one is None else one.cuda() for one in operands]
    written = torch.full_like(there[0], 7)
    whole = in_slices(lambda: onepass.Accumulator(name, TOTAL, reduction="sum"), (*there, None, None), TOTAL,
                      gradient=written)
    assert same_bits(whole.finish(dtype), value)
    assert same_bits(written.cpu(), gradient)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["mse", *ROWS, "triplet_margin"])
@pytest.mark.parametrize("kind", ["weight", "mask", "both"])
def test_means_of_slices_of_a_gpu(name, kind):
    operands = operands_of(name, TOTAL)
    weight = torch.rand(TOTAL) if kind in ("weight", "both") else None
    mask = torch.rand(TOTAL) < 0.6 if kind in ("mask", "both") else None
    expected, _ = onepass.value_and_grad(name, *operands, weight=weight, mask=mask)
    there = [None if one is None else one.cuda() for one in (*operands, weight, mask)]
    whole = in_slices(lambda: onepass.Accumulator(name, TOTAL), there, TOTAL)
    assert same_bits(whole.finish(torch.float32), expected)


@pytest.mark.gpu
def test_slices_of_a_gpu_are_not_waited_for():
    p, t = torch.rand(2, TOTAL)
    there, stream = (p.cuda(), t.cuda()), torch.cuda.Stream()
    torch.cuda.synchronize()
    for waits in (False, True):  # the first time loads the kernels
        whole = onepass.Accumulator("mse", TOTAL)
        with torch.cuda.stream(stream):
            torch.cuda._sleep(waits * 200_000_000)  # cycles: a tenth of a second
            whole.add(*(one[:1500] for one in there), first=0)
            whole.add(*(one[1500:] for one in there), first=1500)
            assert whole.added == TOTAL and not (waits and stream.query())
        assert same_bits(whole.finish(torch.float32), onepass.mse_loss(p, t)) and stream.query()


@pytest.mark.gpu
def test_a_slice_is_on_one_device():
    p, t = torch.rand(2, TILE)
    with pytest.raises(ValueError, match="target is on another device than input"):
        onepass.Accumulator("mse", TILE).add(p.cuda(), t, first=0)
    with pytest.raises(ValueError, match="target is on another device than input"):
        onepass.Accumulator("mse", TILE).add(p.cuda(), t.numpy(), first=0)


def test_nothing():
    empty = onepass.Accumulator("mse", 0)
    assert math.isnan(empty.finish()) and onepass.Accumulator("mse", 0, reduction="sum").finish() == 0
    assert math.isnan(carried(empty).finish())


# ----------------------------------------------------------------- other processes --


def test_processes():
    """Spawned ones, which give accumulators as any object."""
    spans = {name: spans_of(TOTAL, 4) for name in ("huber", "cross_entropy", "cosine_embedding")}
    with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        parts = {name: [pool.submit(part_of, name, TOTAL, 5, *span) for span in own] for name, own in spans.items()}
        for name, own in parts.items():
            expected, _ = onepass.value_and_grad(name, *arrays_of(name, TOTAL, 5))
            assert sum(part.result() for part in own).finish(np.float32).tobytes() == expected.tobytes()


def test_threads():
    p, t, _ = operands_of("mse", TOTAL)
    whole = onepass.Accumulator("mse", TOTAL)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda span: add(whole, (p, t, None, None, None), TOTAL, *span), spans_of(TOTAL, 40)))
    assert same_bits(whole.finish(torch.float32), onepass.mse_loss(p, t))


def test_who_asks_waits_for_who_adds():
    """Adding changes what is looked at, and other threads of Python's run meanwhile."""
    whole = begun()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        with whole._lock:
            asked = pool.submit(repr, whole)
            with pytest.raises(concurrent.futures.TimeoutError):
                asked.result(0.05)
        assert "0 of" in asked.result()


# ------------------------------------------------------------------------ refusals --


def begun(**more):
    return onepass.Accumulator("mse", TOTAL, **more)


class Subclass(np.ndarray):
    pass


class Sub(torch.Tensor):
    pass


def read_only(tensor):
    array = np.zeros_like(tensor.numpy())
    array.flags.writeable = False
    return array


def test_incomplete():
    p, t, _ = operands_of("mse", TOTAL)
    part = begun()
    part.add(p[:TILE], t[:TILE], first=0)
    with pytest.raises(RuntimeError, match="added"):
        part.finish()
    assert (part.added, part.total) == (TILE, TOTAL)


@pytest.mark.parametrize("wrong, words", [
    (lambda p, t: begun(reduction="batchmean"), "divisor"),
    (lambda p, t: begun(reduction="none"), "'mean' or 'sum'"),
    (lambda p, t: begun(divisor=0), "positive"),
    (lambda p, t: begun(divisor=torch.tensor(0)), "positive"),
    (lambda p, t: begun(divisor=torch.ones(2)), "expected a number"),
    (lambda p, t: begun(reduction="sum", divisor=3), "divisor"),
    (lambda p, t: begun(beta=1), "no parameter 'beta'"),
    (lambda p, t: onepass.Accumulator("mze", 3), "no loss 'mze'"),
    (lambda p, t: onepass.Accumulator("smooth_l1", 3, beta=-1), "beta"),
    (lambda p, t: onepass.Accumulator("mse", -3), "-3"),
    (lambda p, t: onepass.Accumulator("mse", 2.5), "2.5"),
    (lambda p, t: onepass.Accumulator("mse", 2**63), "total is 9223372036854775808"),
    (lambda p, t: begun().add(p, t, first=TILE), "in all"),
    (lambda p, t: begun().add(p, t, first=0.0), "first is 0.0; expected the index"),
    (lambda p, t: begun().add(p, t, first=None), "first is None; expected the index"),
    (lambda p, t: begun().add(p, t, first=2**63), "first is 9223372036854775808; expected the index"),
    (lambda p, t: begun().finish(torch.int32), "dtype is torch.int32; expected None, or a floating point type"),
    (lambda p, t: begun().finish(np.longdouble), "expected None, or a floating point type"),
    (lambda p, t: begun().add(p, t.long(), first=0), "target"),
    (lambda p, t: begun().add(p, "t", first=0), "target"),
    (lambda p, t: begun().add(None, t, first=0), "input is None"),
    (lambda p, t: begun().add(p, t.to_sparse(), first=0), "target"),
    (lambda p, t: begun().add(p, t, first=0, mask=p), "mask"),
    (lambda p, t: begun().add(p, t, t, first=0), "3 were given"),
    (lambda p, t: onepass.Accumulator("gaussian_nll", TOTAL).add(p, t, first=0), "2 were given"),
    (lambda p, t: onepass.Accumulator("bce", TOTAL).add(p, t, first=0, weight=p), "divisor"),
    (lambda p, t: onepass.Accumulator("cross_entropy", TOTAL).add(p[:, None], t[:, None], first=0), "target"),
    (lambda p, t: begun().add(p.numpy(), t.numpy(), first=0, gradient=read_only(p)), "gradient is read-only"),
    (lambda p, t: begun().add(p, t, first=0, gradient=read_only(p).view(Subclass)), "gradient is read-only"),
    (lambda p, t: begun().add(p, t, first=0, gradient=np.float32(0)), "gradient is read-only"),
    (lambda p, t: begun().add(p, t, first=0, gradient=torch._neg_view(torch.empty_like(p))), "negated"),
    (lambda p, t: begun().add(p, t, first=0, dim="1"), "expected an int"),
    (lambda p, t: begun().add(p, t, first=0, dim=0), "dim is set, but mse is a loss over elements; expected None"),
    (lambda p, t: begun().merge(3), "Accumulator"),
    (lambda p, t: begun().merge(begun(reduction="sum")),
     "different wholes: the reduction is mean in one and sum in the other; expected the same loss"),
    (lambda p, t: begun().merge(begun(divisor=3)), "the divisor is .* in one and 3 in the other"),
    (lambda p, t: begun().merge(onepass.Accumulator("l1", TOTAL)), "different wholes"),
    (lambda p, t: begun().add(torch.ones(3, dtype=torch.int64), t[:3], first=0),
     r"input is a tensor of torch.int64, torch.strided, on cpu, of 1 dimensions; expected a dense one"),
    (lambda p, t: begun().add(torch.ones(3), torch.ones(3, device="meta"), first=0), "target is a tensor .* on meta"),
    (lambda p, t: begun().add(torch.ones((1,) * 17), torch.ones((1,) * 17), first=0), "of 17 dimensions; .* up to 16"),
    (lambda p, t: begun().add([1.0], [2.0], first=0), "input is of type <class 'list'>; expected a tensor"),
    (lambda p, t: begun().add(np.ma.masked_array(p, p > 0.5), t.numpy(), first=0), "a masked array; expected a plain"),
    (lambda p, t: begun().add(p.as_subclass(Sub), t, first=0), "of type Sub; expected a tensor of PyTorch's own type"),
    (lambda p, t: onepass.Accumulator("mse", np.array([3])), r"total is array\(\[3\]\); expected the number"),
    (lambda p, t: onepass.Accumulator.from_bytes(b"nothing of ours"), "bytes"),
    (lambda p, t: onepass.Accumulator.from_bytes(bytes(begun())[:-1]), "bytes"),
    (lambda p, t: onepass.Accumulator.from_bytes(3.5), "float"),
    (lambda p, t: onepass.Accumulator.from_bytes("3"), "data is str; expected the bytes of an accumulator"),
    (lambda p, t: onepass.Accumulator.from_bytes(2**60), "data is int; expected the bytes of an accumulator"),
])
def test_what_is_refused(wrong, words):
    p, t, _ = operands_of("mse", TOTAL)
    with pytest.raises((ValueError, TypeError), match=words):
        wrong(p, t)


def test_dimensions():
    input, target, _ = operands_of("cross_entropy", TILE)
    for dim in (2, -3, 2**32 - 1, 2**32 + 1, -2**32 - 1):  # of which some are 1 or -1 in 32 bits
        with pytest.raises(IndexError, match=rf"got {dim}\)|dim is {dim};"):
            onepass.Accumulator("cross_entropy", TILE).add(input, target, first=0, dim=dim)
    x1, x2 = torch.rand(5), torch.rand(3, 5)
    whole = onepass.Accumulator("cosine_similarity", 3)
    whole.add(x1, x2, first=0, dim=1)  # of the size that both have together
    assert same_bits(whole.finish(torch.float32), onepass.cosine_similarity(x1, x2, dim=1).mean().detach())


def test_twice():
    p, t, _ = operands_of("mse", TOTAL)
    whole = begun()
    whole.add(p, t, first=0)
    with pytest.raises(ValueError, match="already"):
        whole.add(p[:TILE], t[:TILE], first=0)
    with pytest.raises(ValueError, match="itself"):
        whole.merge(whole)
    with pytest.raises(ValueError, match="both"):
        whole.merge(pickle.loads(pickle.dumps(whole)))
    assert same_bits(whole.finish(torch.float32), onepass.mse_loss(p, t))


def test_damaged_bytes():
    """No number comes of a byte that was changed."""
    p, t, _ = operands_of("mse", TOTAL)
    whole = begun()
    whole.add(p, t, first=0)
    data = bytes(whole)
    for place in random.sample(range(len(data)), min(len(data), 200)):
        changed = bytearray(data)
        changed[place] ^= 1 << random.randrange(8)
        with pytest.raises((ValueError, NotImplementedError)):  # the latter of what may be another version
            onepass.Accumulator.from_bytes(changed)


def test_it_is_small():
    """One contiguous share, whatever its size."""
    for name, dtype, most in (("mse", torch.float32, 20_000), ("mse", torch.float64, 40_000)):
        operands = operands_of(name, TOTAL, dtype)
        part = onepass.Accumulator(name, 2 * TOTAL)
        weight = torch.ones(TOTAL, dtype=dtype) if dtype is torch.float64 else None
        part.add(*operands, first=TILE // 2 + 1, weight=weight)
        assert len(bytes(part)) < most


def test_what_it_says():
    text = repr(onepass.Accumulator("cross_entropy", 300, label_smoothing=0.25, divisor=7))
    assert text == ("<onepass.Accumulator('cross_entropy', total=300, reduction='mean', divisor=7, "
                    "label_smoothing=0.25): 0 of 300 rows added>")
    assert "ignore_index=9007199254740992)" in repr(onepass.Accumulator("nll", 3, ignore_index=2**53))
    assert set(PAIRWISE) | set(ROWS) <= set(EVERY)
