# What the ranks do in test_distributed.py: cases that must come out bit-identical to one call over the whole, and
# faults that must be an error on every rank. Apart, so that a server imports it once and all ranks are forks of that.
import os
import random
import traceback
import warnings
import zlib

import torch
import torch.distributed as dist

import onepass.distributed  # here, so that the server imports what it needs
from onepass import _native
from slices import EVERY, IGNORED, LENGTH, PAIRWISE, ROWS, TILE, operands_of, same_bits, slice_of, spans_of

WORLD = 8
SIZES = (1, 2, 3, 4, 8)
ON_DEVICE = (4,)  # the same cases, by what serves GPUs
SIZES_OF_EACH = 2  # of a loss without anything special, each time others: see is_asked
FAULTS_ON_DEVICE = ("sizes", "another_loss", "another_parameter", "another_type", "another_narrow_type",
                    "class_weights_on_one_rank", "class_weights_of_another_type", "other_classes", "other_vectors",
                    "gap", "overlap", "another_total", "two_divisors", "weight_of_a_sum_on_one_rank",
                    "mask_on_one_rank", "averaged_on_one_rank")
TOTAL = 3 * TILE + 77
CASES, FAULTS = {}, {}


def numbers_of(name, given):
    known = next(loss for loss in (*onepass.losses(), *onepass.row_losses(), *onepass.vector_losses())
                 if loss["name"] == name)["parameters"]
    return tuple(float(given.get(one["name"], one["default"])) for one in known)


def is_asked(name, size):
    """Whether a case runs on so many ranks: all do, but of each loss by itself some numbers of ranks are enough."""
    if name not in EVERY:
        return True
    return (SIZES.index(size) - EVERY.index(name)) % len(SIZES) < SIZES_OF_EACH


# ------------------------------------------------------------------- one call over all --


def gradients_of(name, operands, weight, mask, code, divisor, upstream, **parameters):
    """By the extension's one call for each family, over the whole."""
    numbers = numbers_of(name, parameters)
    if name in PAIRWISE:
        asked = tuple(True if one is not None else None for one in operands)
        found = _native.torch_gradient(name, code, numbers, *operands[:2], upstream, asked, operands[2], weight, mask,
                                       divisor)
    elif name in ROWS:
        asked = True, True if operands[1].is_floating_point() else None
        found = _native.torch_rows_gradient(name, code, numbers, 0, *operands, weight, mask, divisor, upstream, None,
                                            asked)
    else:
        asked = True, True, True if name == "triplet_margin" else None
        found = _native.torch_rows_gradient(name, code, numbers, -1, *operands, weight, mask, divisor, upstream, None,
                                            asked)
    return found


def value_of(name, operands, weight, mask, reduction, divisor, **parameters):
    if divisor is not None:
        whole = onepass.Accumulator(name, TOTAL, reduction=reduction, divisor=divisor, **parameters)
        whole.add(*operands, first=0, weight=weight, mask=mask)
        return whole.finish(operands[0].dtype)
    return onepass.value_and_grad(name, *operands, reduction=reduction, weight=weight, mask=mask, **parameters)[0]


# -------------------------------------------------------------------------------- cases --


def compare(rank, size, group, name, operands, weight=None, mask=None, reduction="mean", divisor=None, upstream=1.0,
            averaged=False, in_order=False, total=TOTAL, **parameters):
    """This rank's share of a random cut, value and gradients, beside one call over the whole."""
    first, last = spans_of(total, size)[rank]
    tensors = [*operands, weight, mask]
    own = slice_of(tensors, total, first, last)
    *leaves, own_weight, own_mask = [one.clone().requires_grad_() if one is not None and one.is_floating_point() and
                                     k < 3 and one.shape[:1] == (last - first,) else one for k, one in enumerate(own)]
    place = {} if in_order else {"first": first, "total": total}
    value = onepass.distributed.loss(name, *leaves, weight=own_weight, mask=own_mask, reduction=reduction,
                                     divisor=divisor, averaged=averaged, group=group, **place, **parameters)
    expected = value_of(name, operands, weight, mask, reduction, divisor, **parameters)
    assert same_bits(value, expected), f"value {value} for {expected}"
    (value * upstream).backward()
    code = 1 if reduction == "sum" else 0
    if weight is not None and divisor is None and code == 0 and name in ("huber", "bce", "bce_with_logits"):
        code = 4  # the extension's mean over the elements, whatever they weigh
    factor = size if averaged else 1
    whole = gradients_of(name, operands, weight, mask, code, None if divisor is None else float(divisor),
                         torch.tensor(upstream, dtype=value.dtype, device=value.device) * factor, **parameters)
    for leaf, expected in zip(leaves, whole):
        if expected is not None:
            assert same_bits(leaf.grad, expected[first:last]), "a gradient"


def case(function):
    CASES[function.__name__.removeprefix("case_")] = function


for _name in EVERY:
    CASES[_name] = lambda rank, size, group, name=_name: compare(
        rank, size, group, name, operands_of(name, TOTAL), in_order=size % 2 == 1)

for _name in ("mse", "huber", "bce", "cross_entropy", "cross_entropy_with_probabilities", "triplet_margin"):
    for _kind in ("weight", "mask", "both"):
        def weighted(rank, size, group, name=_name, kind=_kind):
            operands = operands_of(name, TOTAL)
            compare(rank, size, group, name, operands, torch.rand(TOTAL) if kind != "mask" else None,
                    torch.rand(TOTAL) < 0.6 if kind != "weight" else None, in_order=size % 2 == 0)
        CASES[f"{_name}, {_kind}"] = weighted


@case
def case_class_weights(*where):
    input, target, _ = operands_of("cross_entropy", TOTAL)
    compare(*where, "cross_entropy", (input, target, torch.rand(LENGTH)), torch.rand(TOTAL), label_smoothing=0.1)


@case
def case_a_sum(*where):
    compare(*where, "smooth_l1", operands_of("smooth_l1", TOTAL), torch.rand(TOTAL), reduction="sum", beta=0.3)


@case
def case_a_divisor(*where):
    compare(*where, "cross_entropy", operands_of("cross_entropy", TOTAL), divisor=1234.5)
    compare(*where, "mse", operands_of("mse", TOTAL), divisor=77.0)
    compare(*where, "mse", operands_of("mse", TOTAL, torch.float64), divisor=torch.tensor(77))
    compare(*where, "cross_entropy", operands_of("cross_entropy", TOTAL), divisor=torch.tensor([1234.5]))


@case
def case_upstream(*where):
    for name in ("mse", "cross_entropy", "triplet_margin"):
        compare(*where, name, operands_of(name, TOTAL), upstream=0.3, averaged=name == "mse")


@case
def case_types(*where):
    for name in ("mse", "cross_entropy", "cosine_similarity"):
        for dtype in (torch.float64, torch.bfloat16, torch.float16):
            compare(*where, name, operands_of(name, TOTAL, dtype), upstream=1.0 if dtype == torch.bfloat16 else 0.5)


@case
def case_labels_that_wrap(*where):
    """A uint8 would take 156 for -100, an int32 3 for 2^32 + 3."""
    input, target = torch.randn(TOTAL, 200), torch.randint(150, 160, (TOTAL,), dtype=torch.uint8)
    compare(*where, "cross_entropy", (input, target, None))
    compare(*where, "cross_entropy", (input[:, :5], target.int() % 5, None), ignore_index=2**32 + 3)


@case
def case_long_rows(*where):
    """Whose state is kept for the way back."""
    input, target = torch.randn(300, 1500), torch.randint(0, 1500, (300,))
    compare(*where, "cross_entropy", (input, target, None), total=300, averaged=True)


@case
def case_another_default_device(*where):
    """As of torch.set_default_device: what is made on the way is made where the operands are."""
    elements, rows = operands_of("mse", TOTAL), (torch.randn(300, 1500), torch.randint(0, 1500, (300,)), None)
    weight, mask = torch.rand(TOTAL) - 0.9, torch.zeros(TOTAL, dtype=torch.bool)
    with torch.device("meta"):
        compare(*where, "mse", elements, weight)
        compare(*where, "mse", elements, mask=mask)
        compare(*where, "cross_entropy", rows, total=300, averaged=True)


@case
def case_none_takes_part(*where):
    input, target, _ = operands_of("cross_entropy", TOTAL)
    compare(*where, "cross_entropy", (input, torch.full_like(target, IGNORED), None))
    mask = torch.zeros(TOTAL, dtype=torch.bool)
    compare(*where, "mse", operands_of("mse", TOTAL), mask=mask)
    compare(*where, "huber", operands_of("huber", TOTAL), torch.rand(TOTAL), mask)


@case
def case_weights_of_no_sum(*where):
    weight = torch.rand(TOTAL) - 0.9
    compare(*where, "mse", operands_of("mse", TOTAL), weight)


@case
def case_nothing(*where):
    compare(*where, "mse", operands_of("mse", 0), total=0)


@case
def case_no_gradient(rank, size, group):
    input, target, _ = operands_of("cross_entropy", TOTAL)
    first, last = spans_of(TOTAL, size)[rank]
    weight = torch.rand(TOTAL)
    value = onepass.distributed.loss("cross_entropy", input[first:last], target[first:last], weight=weight[first:last],
                                     group=group)
    assert not value.requires_grad
    assert same_bits(value, onepass.cross_entropy(input, target, row_weight=weight))


@case
def case_broadcast(rank, size, group):
    """An operand that all share has the gradient of its own share of the batch."""
    input, target = torch.rand(size * 700, 3), torch.rand(3)
    own, shared = input[rank * 700:(rank + 1) * 700], target.clone().requires_grad_()
    value = onepass.distributed.loss("l1", own, shared, group=group)
    value.backward()
    assert same_bits(value, onepass.value_and_grad("l1", input, target.expand(input.shape))[0])
    part = onepass.value_and_grad("l1", own, target.expand(own.shape))[1]
    torch.testing.assert_close(shared.grad, -part.sum(0) / size, rtol=1e-5, atol=1e-6)


@case
def case_modes(rank, size, group):
    """Backward twice, and no second derivative."""
    input, target, _ = operands_of("mse", 100 * size)
    own = input[rank * 100:(rank + 1) * 100].clone().requires_grad_()
    value = onepass.distributed.loss("mse", own, target[rank * 100:(rank + 1) * 100], group=group)
    try:
        torch.autograd.grad(value, own, create_graph=True)
        raise AssertionError("expected an error, since a penalty on this gradient would be lost")
    except RuntimeError as error:
        assert "no second derivatives" in str(error)
    once, = torch.autograd.grad(value, own, retain_graph=True)
    twice, = torch.autograd.grad(value, own)
    assert same_bits(once, twice)


def trained(model, wrapped, data, labels, rank, size, group):
    """One step's gradients."""
    first, last = spans_of(len(data), size)[rank]
    value = onepass.distributed.loss("cross_entropy", wrapped(data[first:last]), labels[first:last], averaged=True,
                                     group=group)
    value.backward()
    return value


def reference(model, data, labels):
    value = torch.nn.functional.cross_entropy(model(data), labels)
    value.backward()
    return value


@case
def case_ddp(rank, size, group):
    """The gradients of the whole batch's token mean, though shares and their tokens differ in number."""
    data, labels = torch.randn(700, 8, dtype=torch.float64), torch.randint(0, 5, (700,))
    labels[:100] = IGNORED
    model = torch.nn.Linear(8, 5).double()
    alone = torch.nn.Linear(8, 5).double()
    alone.load_state_dict(model.state_dict())
    wrapped = torch.nn.parallel.DistributedDataParallel(model, process_group=group)
    value = trained(model, wrapped, data, labels, rank, size, group)
    torch.testing.assert_close(value, reference(alone, data, labels))
    torch.testing.assert_close(model.weight.grad, alone.weight.grad)


@case
def case_fsdp(rank, size, group):
    try:
        from torch.distributed.device_mesh import DeviceMesh
        from torch.distributed.fsdp import fully_shard
    except ImportError:
        return  # of a PyTorch before 2.6
    data, labels = torch.randn(700, 8, dtype=torch.float64), torch.randint(0, 5, (700,))
    model = torch.nn.Linear(8, 5).double()
    alone = torch.nn.Linear(8, 5).double()
    alone.load_state_dict(model.state_dict())
    fully_shard(model, mesh=DeviceMesh.from_group(group, "cpu"))
    value = trained(model, model, data, labels, rank, size, group)
    torch.testing.assert_close(value, reference(alone, data, labels))
    torch.testing.assert_close(model.weight.grad.full_tensor(), alone.weight.grad)


# ------------------------------------------------------------------------------- faults --


def fault(words):
    """What goes wrong on the last rank, and what the others say of it; of that rank itself an error is enough."""
    return lambda function: FAULTS.setdefault(function.__name__.removeprefix("fault_"), (words, function))


def mse(rank, group, count=500, **more):
    torch.manual_seed(rank)
    input = torch.rand(count)
    return onepass.distributed.loss("mse", input.requires_grad_(more.pop("needs", True)), torch.rand(count),
                                    group=group, **more)


@fault(r"could not compute its part of the loss: ValueError: operands of sizes \(500,\), \(3,\)")
def fault_sizes(rank, group, is_odd):
    onepass.distributed.loss("mse", torch.rand(500), torch.rand(3 if is_odd else 500), group=group)


@fault("IndexError: Target 7 is out of bounds")
def fault_label(rank, group, is_odd):
    onepass.distributed.loss("cross_entropy", torch.rand(9, 5), torch.full((9,), 7 if is_odd else 3), group=group)


@fault("the loss is (mse|l1)")
def fault_another_loss(rank, group, is_odd):
    onepass.distributed.loss("l1" if is_odd else "mse", torch.rand(9), torch.rand(9), group=group)


@fault("beta")
def fault_another_parameter(rank, group, is_odd):
    onepass.distributed.loss("smooth_l1", torch.rand(9), torch.rand(9), group=group, beta=0.25 + is_odd)


@fault("reduction|another step")
def fault_another_reduction(rank, group, is_odd):
    mse(rank, group, reduction="sum" if is_odd else "mean")


@fault("computed in (float|double)")
def fault_another_type(rank, group, is_odd):
    dtype = torch.float64 if is_odd else torch.float32
    onepass.distributed.loss("mse", torch.rand(9, dtype=dtype), torch.rand(9, dtype=dtype), group=group)


@fault("a value of torch.(bfloat16|float32)")
def fault_another_narrow_type(rank, group, is_odd):
    """Which is computed alike, but would be rounded otherwise."""
    dtype = torch.bfloat16 if is_odd else torch.float32
    onepass.distributed.loss("mse", torch.rand(9, dtype=dtype), torch.rand(9, dtype=dtype), group=group)


@fault("class weights")
def fault_class_weights_on_one_rank(rank, group, is_odd):
    onepass.distributed.loss("cross_entropy", torch.rand(9, 5), torch.zeros(9).long(),
                             torch.rand(5) if is_odd else None, group=group)


@fault("other class weights than the slices before")
def fault_other_class_weights(rank, group, is_odd):
    weights = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0 + is_odd])
    onepass.distributed.loss("cross_entropy", torch.rand(9, 5), torch.zeros(9).long(), weights, group=group)


@fault("other class weights than the slices before")
def fault_other_class_weights_of_a_sum(rank, group, is_odd):
    weights = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0 + is_odd])
    input = torch.rand(9, 5, requires_grad=True)
    onepass.distributed.loss("multi_margin", input, torch.zeros(9).long(), weights, group=group, reduction="sum")


@fault("class weights of torch.(bfloat16|float32)")
def fault_class_weights_of_another_type(rank, group, is_odd):
    weights = torch.ones(5, dtype=torch.bfloat16 if is_odd else torch.float32)
    onepass.distributed.loss("multi_margin", torch.rand(9, 5), torch.zeros(9).long(), weights, group=group)


@fault("(4|5) classes")
def fault_other_classes(rank, group, is_odd):
    onepass.distributed.loss("cross_entropy", torch.rand(9, 5 - is_odd), torch.zeros(9).long(), group=group)


@fault("vectors of (4|5) elements")
def fault_other_vectors(rank, group, is_odd):
    x1, x2 = torch.rand(2, 9, 5 - is_odd)
    onepass.distributed.loss("cosine_similarity", x1, x2, group=group)


@fault("Dimension out of range")
def fault_dimension(rank, group, is_odd):
    onepass.distributed.loss("cross_entropy", torch.rand(9, 5), torch.zeros(9).long(), group=group,
                             dim=2 if is_odd else 1)


@fault("another step")
def fault_gradient_on_one_rank(rank, group, is_odd):
    input = torch.rand(9, 5, requires_grad=is_odd)
    onepass.distributed.loss("cross_entropy", input, torch.zeros(9).long(), group=group, first=9 * rank, total=36)


@fault("rank 3 needs gradients, since an operand requires them, and rank 0 needs no gradients; expected the same")
def fault_gradient_of_a_mean_of_all_on_one_rank(rank, group, is_odd):
    mse(rank, group, needs=is_odd, first=500 * rank, total=2000)


@fault("rank 3 has a weight, and rank 0 has no weight; expected the same on all ranks")
def fault_weight_on_one_rank(rank, group, is_odd):
    mse(rank, group, needs=False, weight=torch.ones(500) if is_odd else None)


@fault("rank 3 has a weight, and rank 0 has no weight; expected the same on all ranks")
def fault_weight_of_a_sum_on_one_rank(rank, group, is_odd):
    mse(rank, group, weight=torch.ones(500) if is_odd else None, reduction="sum")


@fault("rank 3 has a mask, and rank 0 has no mask; expected the same on all ranks")
def fault_mask_on_one_rank(rank, group, is_odd):
    mse(rank, group, mask=torch.ones(500, dtype=torch.bool) if is_odd else None)


@fault("rank 3 has averaged=True, and rank 0 has no averaged=True; expected the same on all ranks")
def fault_averaged_on_one_rank(rank, group, is_odd):
    mse(rank, group, averaged=is_odd)


@fault("another step")
def fault_places_on_one_rank(rank, group, is_odd):
    mse(rank, group, **({"first": 1500, "total": 2000} if is_odd else {}))


@fault("first is given alone")
def fault_first_alone(rank, group, is_odd):
    mse(rank, group, **({"first": 1500} if is_odd else {}))


@fault("first is 0.5; expected the index")
def fault_half_an_element(rank, group, is_odd):
    mse(rank, group, first=0.5 if is_odd else 500 * rank, total=2000)


@fault("TypeError: target is NoneType; expected a tensor")
def fault_no_labels(rank, group, is_odd):
    onepass.distributed.loss("cross_entropy", torch.rand(9, 5), None if is_odd else torch.zeros(9).long(), group=group)


@fault("TypeError: class_weight is list; expected a tensor")
def fault_a_list_of_class_weights(rank, group, is_odd):
    weights = torch.ones(2)
    onepass.distributed.loss("cross_entropy", torch.rand(9, 2), torch.zeros(9).long(),
                             [1.0, 1.0] if is_odd else weights, group=group)


@fault("TypeError: class_weight is float; expected a tensor")
def fault_a_number_for_class_weights(rank, group, is_odd):
    onepass.distributed.loss("cross_entropy", torch.rand(9, 2), torch.zeros(9).long(),
                             1.0 if is_odd else torch.ones(2), group=group)


@fault("target has no memory: its storage has 0 bytes, and it needs 72")
def fault_labels_without_memory(rank, group, is_odd):
    labels = torch.zeros(9).long()
    labels.untyped_storage().resize_(0 if is_odd else 72)
    onepass.distributed.loss("cross_entropy", torch.rand(9, 2, requires_grad=True), labels, group=group)


@fault("TypeError: input is a nested tensor; expected a tensor of PyTorch's own type")
def fault_a_nested_tensor(rank, group, is_odd):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of PyTorch's, that they are a prototype
        nested = torch.nested.nested_tensor([torch.ones(4), torch.ones(5)])
    onepass.distributed.loss("mse", nested if is_odd else torch.rand(9), torch.rand(9), group=group)


@fault("TypeError: input is Subclass; expected a tensor of PyTorch's own type")
def fault_a_subclass(rank, group, is_odd):
    class Subclass(torch.Tensor):
        pass
    input = torch.rand(9)
    onepass.distributed.loss("mse", input.as_subclass(Subclass) if is_odd else input, torch.rand(9), group=group)


@fault("TypeError: weight is float; expected a tensor")
def fault_a_number_as_weight(rank, group, is_odd):
    onepass.distributed.loss("mse", torch.rand(9), torch.rand(9), weight=0.5 if is_odd else torch.ones(9), group=group)


@fault(r"divisor is tensor\(\[3, 4\]\); expected a number or a tensor of one element")
def fault_two_divisors(rank, group, is_odd):
    mse(rank, group, divisor=torch.tensor([3, 4]) if is_odd else 3)


@fault("divisor of onepass.distributed.loss requires a gradient")
def fault_divisor_with_gradient(rank, group, is_odd):
    mse(rank, group, divisor=torch.tensor(3.0, requires_grad=is_odd))


@fault("expected a class index for each row: torch.int64, torch.int32 or torch.uint8")
def fault_narrow_labels(rank, group, is_odd):
    labels = torch.zeros(9, dtype=torch.int16 if is_odd else torch.int32)
    onepass.distributed.loss("cross_entropy", torch.rand(9, 5), labels, group=group)


@fault("no forward mode and no transforms of torch.func")
def fault_transform(rank, group, is_odd):
    def call(input):
        return onepass.distributed.loss("mse", input, torch.rand(9), group=group)
    torch.func.grad(call)(torch.rand(9)) if is_odd else call(torch.rand(9))


@fault("no forward mode and no transforms of torch.func")
def fault_forward_mode(rank, group, is_odd):
    with torch.autograd.forward_ad.dual_level():
        input = torch.autograd.forward_ad.make_dual(torch.rand(9), torch.ones(9)) if is_odd else torch.rand(9)
        onepass.distributed.loss("mse", input, torch.rand(9), group=group)


@fault("do not make up the whole")
def fault_gap_of_weights(rank, group, is_odd):
    mse(rank, group, weight=torch.ones(500), first=600 * rank, total=2400)


@fault("do not make up the whole")
def fault_gap(rank, group, is_odd):
    mse(rank, group, first=rank * 500 + is_odd, total=2001)


@fault("does not go with")
def fault_overlap(rank, group, is_odd):
    mse(rank, group, first=rank * 500 - is_odd, total=2000)


@fault("total")
def fault_another_total(rank, group, is_odd):
    mse(rank, group, first=rank * 500, total=2000 + is_odd)


@fault("in all")
def fault_beyond(rank, group, is_odd):
    mse(rank, group, first=rank * 500 + is_odd, total=2000)


# ------------------------------------------------------------------------------ the ranks --


def attempt(function, *arguments):
    """Nothing, or what was raised."""
    try:
        function(*arguments)
    except Exception as error:
        return type(error).__name__, str(error), traceback.format_exc()
    return None


def work(rank, address, results):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{address}", rank=rank, world_size=WORLD)
    groups = {size: dist.new_group(list(range(size))) for size in SIZES}
    for size, group in groups.items():
        if rank >= size:
            continue
        for name, function in CASES.items():
            if not is_asked(name, size):
                continue
            seed = zlib.crc32(f"{name} {size}".encode())
            torch.manual_seed(seed)
            random.seed(seed)
            results.put((name, size, rank, attempt(function, rank, size, group)))
    if rank < 4:
        for name, (_, function) in FAULTS.items():
            results.put((name, 4, rank, attempt(function, rank, groups[4], rank == 3)))
    onepass.distributed.stays_on_device = lambda share: True  # as those of a GPU do, with the CPU in its place
    for size in ON_DEVICE:
        if rank >= size:
            continue
        for name, function in CASES.items():
            seed = zlib.crc32(f"{name} {size} on a device".encode())
            torch.manual_seed(seed)
            random.seed(seed)
            results.put((f"{name}, on a device", size, rank, attempt(function, rank, size, groups[size])))
    if rank < 4:
        for name in FAULTS_ON_DEVICE:
            results.put((f"{name}, on a device", 4, rank, attempt(FAULTS[name][1], rank, groups[4], rank == 3)))
    results.put(None)
    dist.destroy_process_group()


def compare_on_gpu(rank, size, name, has_weight, has_mask, dtype=torch.float32):
    """Of the CPU's accumulators nothing is used."""
    operands = [None if one is None else one.cuda() for one in operands_of(name, TOTAL, dtype)]
    weight, mask = torch.rand(TOTAL).cuda(), (torch.rand(TOTAL) < 0.6).cuda()
    compare(rank, size, None, name, operands, weight if has_weight else None, mask if has_mask else None, upstream=0.5)


def work_on_gpu(rank, address, results):
    """Two ranks that share a GPU, which gloo lets them."""
    dist.init_process_group("gloo", init_method=f"file://{address}", rank=rank, world_size=2)
    for name in ("mse", "huber", "cross_entropy", "triplet_margin"):
        for has_weight, has_mask in ((False, False), (True, False), (False, True), (True, True)):
            torch.manual_seed(5)
            random.seed(5)
            results.put((name, rank, attempt(compare_on_gpu, rank, 2, name, has_weight, has_mask)))
        results.put((name, rank, attempt(compare_on_gpu, rank, 2, name, False, False, torch.float64)))
    results.put(None)
    dist.destroy_process_group()


def step_on_gpu():
    input, target = torch.randn(3000, 7, device="cuda", requires_grad=True), torch.zeros(3000, device="cuda").long()
    onepass.distributed.loss("cross_entropy", input, target).backward()
    onepass.distributed.loss("mse", input, torch.zeros_like(input), weight=torch.ones_like(input)).backward()
    onepass.distributed.loss("mse", input, torch.zeros_like(input), divisor=torch.full((), 7, device="cuda")).backward()


def work_without_waiting(rank, address, results):
    """Once the places of the shares are known, nothing makes the host wait for the GPU."""
    dist.init_process_group("cpu:gloo,cuda:nccl", init_method=f"file://{address}", rank=rank, world_size=1)
    step_on_gpu()
    torch.cuda.set_sync_debug_mode("error")
    results.put((rank, attempt(step_on_gpu)))
    torch.cuda.set_sync_debug_mode("default")
    dist.destroy_process_group()


def work_till_one_dies(rank, address, results):
    """Rank 1 ends in the middle; the others must not wait for it."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{address}", rank=rank, world_size=3)
    mse(rank, None)
    if rank == 1:
        os._exit(7)
    results.put((rank, attempt(mse, rank, None)))
