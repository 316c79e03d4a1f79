# What the ranks do in test_vocab_parallel.py, as ranks.py has it for test_distributed.py.
import os
import random

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

try:
    from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
except ImportError:  # before PyTorch 2.5 they were private
    DTensor = None

import onepass.distributed
from ranks import attempt
from slices import same_bits

WORLD = 8
SIZES = (1, 2, 3, 4, 8)
CASES, FAULTS = {}, {}
vocab_parallel = onepass.distributed.vocab_parallel_cross_entropy


def cuts_of(classes, ranks):
    """How many classes each rank has: any, none included."""
    edges = sorted(random.choices(range(classes + 1), k=ranks - 1))
    return [end - begin for begin, end in zip([0, *edges], [*edges, classes])]


def operands_of(classes, dtype=torch.float32, shape=(7,), ignored=0.2):
    logits = torch.randn(shape[0], classes, *shape[1:]).mul_(3).to(dtype)
    labels = torch.randint(classes, shape)
    labels[torch.rand(shape) < ignored] = -100
    return logits, labels


def compare(rank, size, group, counts, logits, labels, tell=False, upstream=None, **given):
    """With one call over all classes, on this rank."""
    whole = logits.clone().requires_grad_()
    own = logits.split(counts, 1)[rank].clone().requires_grad_()
    expected = onepass.cross_entropy(whole, labels, **given)
    upstream = torch.rand_like(expected) if upstream is None else upstream
    expected.backward(upstream)
    found = vocab_parallel(own, labels, group=group, classes=counts if tell else None, **given)
    assert same_bits(found, expected), f"{counts}: {found} is not {expected}"
    found.backward(upstream)
    assert same_bits(own.grad, whole.grad.split(counts, 1)[rank]), f"{counts}: gradients"


def case(function):
    CASES[function.__name__] = function
    return function


@case
def any_cuts(rank, size, group):
    for classes in (1, 5, 1000, 1024, 2000, 5000, 9300):
        compare(rank, size, group, cuts_of(classes, size), *operands_of(classes))


@case
def cuts_at_tiles(rank, size, group):
    counts = [1024 * random.randint(0, 2) for _ in range(size - 1)] + [700]
    compare(rank, size, group, counts, *operands_of(sum(counts)), tell=True)


@case
def sixteen_bits(rank, size, group):
    for dtype in (torch.bfloat16, torch.float16):
        compare(rank, size, group, cuts_of(3000, size), *operands_of(3000, dtype), dtype=torch.float32)
        compare(rank, size, group, cuts_of(3000, size), *operands_of(3000, dtype))


@case
def in_double(rank, size, group):
    compare(rank, size, group, cuts_of(4000, size), *operands_of(4000, torch.float64), label_smoothing=0.1)


@case
def reductions(rank, size, group):
    for reduction in ("sum", "none", "mean", "batchmean"):
        compare(rank, size, group, cuts_of(3000, size), *operands_of(3000), reduction=reduction)


@case
def parameters(rank, size, group):
    weight = torch.rand(3000)
    for given in ({"label_smoothing": 0.1}, {"z_loss": 1e-3}, {"softcap": 30.0}, {"temperature": 0.7},
                  {"weight": weight}, {"weight": weight, "label_smoothing": 0.2, "z_loss": 1e-4, "softcap": 20.0},
                  {"ignore_index": 3}, {"divisor": 11.0}, {"label_smoothing": -0.1}):
        logits, labels = operands_of(3000, ignored=0)
        labels[0] = 3
        compare(rank, size, group, cuts_of(3000, size), logits, labels, **given)


@case
def images(rank, size, group):
    compare(rank, size, group, cuts_of(2100, size), *operands_of(2100, shape=(2, 3, 4)))


@case
def edges(rank, size, group):
    logits, labels = operands_of(2500)
    logits[0, 100] = float("nan")
    logits[1] = float("-inf")
    logits[2, 1500] = float("inf")
    logits[3, 1024:2048] = float("-inf")
    logits[4] += 1e8
    compare(rank, size, group, cuts_of(2500, size), logits, labels, reduction="none")
    compare(rank, size, group, cuts_of(2500, size), logits[3:5], torch.full((2,), -100))
    compare(rank, size, group, cuts_of(2500, size), logits[:0], labels[:0])


@case
def one_row(rank, size, group):
    counts = cuts_of(1500, size)
    logits, label = torch.randn(1500), torch.tensor(700)
    found = vocab_parallel(logits.split(counts)[rank], label, group=group)
    assert same_bits(found, onepass.cross_entropy(logits, label))


@case
def labels_of_other_types(rank, size, group):
    logits, labels = operands_of(200, ignored=0)
    for dtype in (torch.int32, torch.uint8):
        compare(rank, size, group, cuts_of(200, size), logits, labels.to(dtype))
    logits, labels = operands_of(2000, ignored=0)
    labels = labels.clamp(max=255)
    labels[:2] = torch.tensor([255, 156])  # which a uint8 would take for -1 and -100
    compare(rank, size, group, cuts_of(2000, size), logits, labels.to(torch.uint8))


@case
def under_autocast(rank, size, group):
    counts = cuts_of(1500, size)
    logits, labels = operands_of(1500, torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        found = vocab_parallel(logits.split(counts, 1)[rank], labels, group=group)
        assert found.dtype == torch.float32 and same_bits(found, onepass.cross_entropy(logits, labels))


def of_dtensors(rank, mesh):
    for classes in (5, 3000):
        logits, labels = operands_of(classes)
        whole = logits.clone().requires_grad_()
        expected = onepass.cross_entropy(whole, labels, label_smoothing=0.1)
        (expected * 3).backward()
        sharded = distribute_tensor(logits, mesh, [Shard(1)]).requires_grad_()
        targets = labels if classes == 5 else distribute_tensor(labels, mesh, [Replicate()])
        found = vocab_parallel(sharded, targets, label_smoothing=0.1)
        assert isinstance(found, DTensor) and found.placements == (Replicate(),)
        assert same_bits(found.to_local(), expected)
        (found * 3).backward()
        assert isinstance(sharded.grad, DTensor) and same_bits(sharded.grad.full_tensor(), whole.grad)


def of_uneven_dtensors(rank, mesh):
    """With shards that torch.chunk would not give, though most of their sizes are what it would; and with a divisor that
    is a DTensor, too."""
    counts = [5, *[10] * (WORLD - 2), 15]
    logits, labels = operands_of(sum(counts))
    whole = logits.clone().requires_grad_()
    expected = onepass.cross_entropy(whole, labels, divisor=11)
    expected.backward()
    divisor = distribute_tensor(torch.tensor(11), mesh, [Replicate()])
    for classes in (None, counts):
        own = logits.split(counts, 1)[rank].clone().requires_grad_()
        sharded = DTensor.from_local(own, mesh, [Shard(1)], shape=logits.shape, stride=logits.stride())
        found = vocab_parallel(sharded, labels, divisor=divisor, classes=classes)
        assert same_bits(found.to_local(), expected)
        found.backward()
        assert same_bits(own.grad, whole.grad.split(counts, 1)[rank])


def without_the_last():
    """Which has ended; the others are told by no exchange before."""
    vocab_parallel(*operands_of(50), classes=[50] * WORLD)


# ----------------------------------------------------------------------------- faults --


def fault(words):
    def add(function):
        FAULTS[function.__name__] = words, function
        return function
    return add


@fault(r"rank 3 has labels of torch.int64 and size \(6,\) .* and rank 0 labels .* size \(7,\)")
def other_rows(rank, group):
    logits, labels = operands_of(50)
    vocab_parallel(logits[rank == 3:], labels[rank == 3:], group=group)


@fault("rank 3 has z_loss 0.001.*, and rank 0 z_loss 0; expected the same on all ranks")
def other_parameters(rank, group):
    vocab_parallel(*operands_of(50), group=group, z_loss=1e-3 * (rank == 3))


@fault("rank 3 has a value of torch.float64, and rank 0 a value of torch.float32; expected the same on all ranks")
def other_type_of_value(rank, group):
    vocab_parallel(*operands_of(50), group=group, dtype=torch.float64 if rank == 3 else None)


@fault("expected the same on all ranks")
def other_labels(rank, group):
    logits, labels = operands_of(50, ignored=0)
    vocab_parallel(logits, labels.roll(int(rank == 3)), group=group)


@fault("input is of torch.int64")
def other_types(rank, group):
    logits, labels = operands_of(50)
    vocab_parallel(logits.long() if rank == 3 else logits, labels, group=group)


@fault("expected a class index for each row")
def labels_without_rows(rank, group):
    logits, labels = operands_of(50)
    vocab_parallel(logits, labels[1:] if rank == 3 else labels, group=group)


@fault("is out of bounds")
def label_beyond(rank, group):
    vocab_parallel(operands_of(50)[0], torch.full((7,), 200), group=group)


@fault(r"weight has size \(50,\); expected \(200,\)")
def weights_of_own_classes(rank, group):
    vocab_parallel(*operands_of(50), torch.rand(50), group=group)


@fault("Target 156 is out of bounds")
def label_that_wraps(rank, group):
    """To what a uint8 makes of -100."""
    vocab_parallel(operands_of(25)[0], torch.full((7,), 156, dtype=torch.uint8), group=group)


@fault("expected the same on all ranks")
def other_number_of_weights(rank, group):
    vocab_parallel(*operands_of(50), torch.ones(200 - (rank == 2)), group=group)


@fault("expected the same on all ranks")
def other_weights(rank, group):
    vocab_parallel(*operands_of(50), torch.full((200,), 1.0 + (rank == 2)), group=group)


@fault("ignore_index is 1.5; expected an int")
def part_of_an_index(rank, group):
    vocab_parallel(*operands_of(50), ignore_index=1.5, group=group)


@fault("expected a dense tensor")
def sparse_weights(rank, group):
    vocab_parallel(*operands_of(50), torch.ones(200).to_sparse() if rank == 2 else torch.ones(200), group=group)


@fault("target has no memory: its storage has 0 bytes, and it needs 56")
def labels_without_memory(rank, group):
    logits, labels = operands_of(50)
    labels = labels.clone()
    labels.untyped_storage().resize_(0 if rank == 2 else 56)
    vocab_parallel(logits, labels, group=group)


@fault("expected a dense tensor")
def labels_elsewhere(rank, group):
    logits, labels = operands_of(50)
    vocab_parallel(logits, labels.to("meta"), group=group)


@fault(r"classes is \[50.0, 50.0, 50.0, 50.0\]; expected how many")
def counts_that_are_none(rank, group):
    vocab_parallel(*operands_of(50), classes=[50.0] * 4, group=group)


@fault("expected how many classes each rank has")
def counts_of_others(rank, group):
    vocab_parallel(*operands_of(50), classes=[1, 2, 3, 4], group=group)


@fault("label_smoothing")
def bad_parameter(rank, group):
    vocab_parallel(*operands_of(50), label_smoothing=1.5, group=group)


@fault("no rank has a class")
def no_class(rank, group):
    vocab_parallel(torch.empty(7, 0), torch.zeros(7).long(), group=group)


@fault("not a valid value for reduction")
def no_reduction(rank, group):
    vocab_parallel(*operands_of(50), reduction="median", group=group)


@fault("no second derivatives")
def second_derivative(rank, group):
    logits, labels = operands_of(50)
    logits.requires_grad_()
    torch.autograd.grad(vocab_parallel(logits, labels, group=group), logits, create_graph=True)


@fault("no forward mode and no transforms of torch.func")
def transformed(rank, group):
    logits, labels = operands_of(50)
    torch.func.grad(lambda z: vocab_parallel(z, labels, group=group))(logits)


# ------------------------------------------------------------------------------- work --

OF_DTENSORS = (of_dtensors, of_uneven_dtensors) if DTensor is not None else ()


def work(rank, address, results):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{address}", rank=rank, world_size=WORLD)
    groups = {size: dist.new_group(list(range(size))) for size in SIZES}
    for size, group in groups.items():
        for name, function in CASES.items():
            if rank < size:
                torch.manual_seed(size)
                random.seed(size)
                results.put((name, size, rank, attempt(function, rank, size, group)))
    for name, (_, function) in FAULTS.items():
        if rank < 4:
            torch.manual_seed(1)
            results.put((name, 4, rank, attempt(function, rank, groups[4])))
    torch.manual_seed(1)
    mesh = init_device_mesh("cpu", (WORLD,))
    for function in OF_DTENSORS:
        results.put((function.__name__, WORLD, rank, attempt(function, rank, mesh)))
    if rank == WORLD - 1:
        results.put(None)
        results.close()
        results.join_thread()
        os._exit(0)
    results.put(("without_the_last", WORLD - 1, rank, attempt(without_the_last)))
    results.put(None)
