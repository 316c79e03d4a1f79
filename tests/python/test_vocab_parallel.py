# Cross-entropy of logits whose columns are shared out over ranks: value and gradient on 1, 2, 3, 4 and 8 ranks, cut
# anywhere, are bit-identical to one call over all columns; what is wrong is a sentence on every rank.
import collections
import random
import re

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist

import onepass
from onepass._class_cuts import TILE, owned_tiles, pieces_of, spans_of, torn_tiles, whole_tiles
from onepass._simulated_ranks import shares_of, value_and_gradients
from rank_processes import LIMIT, started
from slices import same_bits

if not dist.is_available() or not dist.is_gloo_available():
    pytest.skip("this PyTorch has no gloo", allow_module_level=True)

from class_ranks import CASES, FAULTS, OF_DTENSORS, SIZES, WORLD, cuts_of, work


def test_all_cases(tmp_path):
    """In one test, so that the processes are started once, however tests are spread over others."""
    workers, results = started(work, WORLD, tmp_path / "rendezvous", "class_ranks")
    found, left = collections.defaultdict(dict), WORLD
    while left:
        one = results.get(timeout=LIMIT)
        left -= one is None
        if one is not None:
            found[one[:2]][one[2]] = one[3]
    for worker in workers:
        worker.join(LIMIT)
    assert sorted(found) == sorted([*((name, size) for name in CASES for size in SIZES),
                                    *((name, 4) for name in FAULTS), ("without_the_last", WORLD - 1),
                                    *((function.__name__, WORLD) for function in OF_DTENSORS)])
    wrong = []
    messages = {name: words for name, (words, _) in FAULTS.items()} | {"without_the_last": "one of them may have ended"}
    for (name, size), errors in found.items():
        assert sorted(errors) == list(range(size)), f"{name} on {size} ranks"
        for rank, error in errors.items():
            if name in messages:
                if error is None or not re.search(messages[name], error[1]):
                    wrong.append(f"{name}: rank {rank}: {'a number' if error is None else error[2]}")
            elif error is not None:
                wrong.append(f"{name}: rank {rank} of {size}: {error[2]}")
    assert not wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong[:5])


@pytest.mark.skipif(not OF_DTENSORS, reason="before PyTorch 2.5 DTensor is private, and no operand of ours")
def test_dtensors_are_among_all_cases():
    assert [function.__name__ for function in OF_DTENSORS] == ["of_dtensors", "of_uneven_dtensors"]


@pytest.mark.parametrize("seed", range(200))
def test_who_adds_up_what(seed):
    """Every tile is added up once, by a rank that has most of it, and no more than half of a tile of two travels."""
    random.seed(seed)
    classes, ranks = random.choice((1, 700, 1024, 5000, 40000)), random.randint(1, 9)
    spans = spans_of(tuple(cuts_of(classes, ranks)))
    owned = [set(range(*whole_tiles(spans, rank))) for rank in range(ranks)]
    for torn in torn_tiles(spans):
        sizes = {rank: part.last - part.first for rank, part in torn.parts}
        assert len(sizes) > 1 and sum(sizes.values()) == min(TILE, classes - torn.tile * TILE)
        assert sizes[torn.owner] == max(sizes.values())
        owned[torn.owner].add(torn.tile)
    assert [len(one) for one in owned] == list(owned_tiles(spans))
    assert [tile for one in owned for tile in sorted(one)] == list(range(-(-classes // TILE)))
    for span in spans:
        pieces = pieces_of(span, classes)
        assert sum(piece.last - piece.first for piece in pieces) == span.last - span.first
        assert all(piece.first % TILE == 0 or piece.first // TILE == (piece.last - 1) // TILE for piece in pieces)


def check_simulated(device, classes, counts, dtype, **given):
    torch.manual_seed(classes)
    logits = torch.randn(33, classes).mul_(4).to(dtype).to(device).requires_grad_()
    labels = torch.randint(classes, (33,), device=device)
    labels[5] = -100
    expected = onepass.cross_entropy(logits, labels, **given)
    upstream = torch.tensor(0.7, dtype=dtype, device=device)
    expected.backward(upstream)
    shares = shares_of(logits.detach().split(counts, 1), labels, **given)
    value, gradients = value_and_gradients(shares, upstream)
    assert same_bits(value, expected) and same_bits(torch.cat(gradients, 1), logits.grad)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=["f32", "bf16", "f64"])
@pytest.mark.parametrize("given", [{}, {"label_smoothing": 0.1}, {"softcap": 20.0, "z_loss": 1e-3}],
                         ids=["plain", "smooth", "capped"])
def test_simulated_ranks(device, dtype, given):
    for classes, counts in ((5000, (5000,)), (5000, (2048, 2952)), (5000, (1500, 3500)), (5000, (1501, 1, 2, 3496)),
                            (9000, (4100, 0, 4900)), (700, (300, 200, 200))):
        check_simulated(device, classes, counts, dtype, **given)


def test_what_is_sent_of_images():
    """Contiguous, whatever the input's memory format is, so that it is the receiver's."""
    logits = torch.randn(2, 3000, 3, 5).contiguous(memory_format=torch.channels_last)
    labels = torch.randint(3000, (2, 3, 5))
    for counts in ((1400, 1600), (700, 700, 1600)):
        shares = shares_of(logits.split(counts, 1), labels)
        sent = [part for share in shares for _, part in share.sent()]
        assert sent and all(part.is_contiguous() for part in sent)
        value, _ = value_and_gradients(shares, torch.ones(()))
        assert same_bits(value, onepass.cross_entropy(logits, labels))
