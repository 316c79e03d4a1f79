# Other processes: DataLoader workers by fork and by spawn, after the parent has used its threads; forks while another
# thread computes the first loss; and distributed data parallel training over gloo.
import gc
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")

import onepass
import torch.distributed
import torch.multiprocessing
from rank_processes import started

COUNT = 200_003  # enough for threads, and no round number
WORLD = 2  # ranks


def numbers(index):
    generator = torch.Generator().manual_seed(index)
    return torch.randn(COUNT, generator=generator), torch.randn(COUNT, generator=generator)


class Losses(torch.utils.data.Dataset):
    """Each item is a loss and a number out of its gradient, computed in the worker."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        p, t = numbers(index)
        p.requires_grad_()
        value = onepass.mse_loss(p, t)
        value.backward()
        return torch.stack([value.detach(), p.grad[index], onepass.hinge_loss(p.detach(), t)])


def test_dataloader_workers():
    """In a process of its own: PyTorch's backward does not survive a fork once it has used a GPU."""
    ways = [way for way in ("fork", "spawn") if way in torch.multiprocessing.get_all_start_methods()]
    done = subprocess.run([sys.executable, __file__, *ways], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def compare_workers(ways):
    onepass.mse_loss(*numbers(0))  # our threads have run before the fork; PyTorch's own for backward must not have
    there = {}
    for way in ways:
        loader = torch.utils.data.DataLoader(
            Losses(), batch_size=None, num_workers=1 if way == "spawn" else 2, multiprocessing_context=way, timeout=100
        )
        there[way] = list(loader)
    here = [Losses()[index] for index in range(4)]
    for way, items in there.items():
        assert len(items) == 4
        for one, other in zip(here, items):
            assert torch.equal(one, other), way


# A fork while another thread is at the import that the process's first call makes.
FIRST_CALL = """
import importlib.abc, os, signal, sys, threading, time
{imports}
begun = threading.Event()

class Slow(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "onepass.{module}":
            begun.set()
            time.sleep(0.5)  # the module's lock is held

sys.meta_path.insert(0, Slow())
{setup}
thread = threading.Thread(target=lambda: {call})
thread.start()
assert begun.wait(60)
child = os.fork()
if child == 0:
    signal.alarm(30)
    {call}
    os._exit(0)
thread.join()
assert os.waitpid(child, 0)[1] == 0, "the child hung"
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("imports, module, setup, call", [
    ("import torch, onepass", "_torch", "x = torch.ones(4)", "onepass.mse_loss(x, x)"),
    ("import onepass, torch", "_rows", "x = torch.ones(4, 4)", "onepass.cross_entropy(x, x)"),
    ("import onepass.functional, torch, onepass", "nn", "x = torch.ones(4)", "onepass.nn.MSELoss()(x, x)"),
    ("import onepass, numpy", "_numpy_rows", "x = numpy.ones((4, 4))", "onepass.cross_entropy(x, x)"),
], ids=["_torch", "_rows", "nn", "_numpy_rows"])
def test_fork_while_the_first_loss_is_computed(imports, module, setup, call):
    program = FIRST_CALL.format(imports=imports, module=module, setup=setup, call=call)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def train(rank, address, queue):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{address}", rank=rank, world_size=WORLD)
    try:
        queue.put((rank, trained_weights(rank)))
        # Had the model the last reference to the group, PyTorch would wait for the group's thread with Python's lock in
        # hand, which that thread may want: one run of 240 hung.
        gc.collect()
    finally:
        torch.distributed.destroy_process_group()


def trained_weights(rank):
    torch.manual_seed(1)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1).double())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    data, labels = torch.randn(32, 8, dtype=torch.float64), torch.randn(32, 1, dtype=torch.float64)
    for _ in range(5):
        optimizer.zero_grad()
        onepass.smooth_l1_loss(model(data[rank::WORLD]), labels[rank::WORLD]).backward()
        optimizer.step()
    return model.module.weight.detach().numpy().copy()


def train_alone():
    torch.manual_seed(1)
    model = torch.nn.Linear(8, 1).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    data, labels = torch.randn(32, 8, dtype=torch.float64), torch.randn(32, 1, dtype=torch.float64)
    for _ in range(5):
        optimizer.zero_grad()
        torch.nn.functional.smooth_l1_loss(model(data), labels).backward()
        optimizer.step()
    return model.weight.detach()


@pytest.mark.skipif(
    not torch.distributed.is_available() or not torch.distributed.is_gloo_available(), reason="this PyTorch has no gloo"
)
def test_distributed_data_parallel(tmp_path):
    """Two processes with half of the batch each train as one does with PyTorch's own loss."""
    workers, queue = started(train, WORLD, tmp_path / "rendezvous")
    for worker in workers:
        worker.join(100)
    assert [worker.exitcode for worker in workers] == [0, 0]
    weights = dict(queue.get() for _ in workers)
    assert (weights[0] == weights[1]).all()
    torch.testing.assert_close(torch.from_numpy(weights[0]), train_alone(), rtol=1e-10, atol=1e-12)


if __name__ == "__main__":
    compare_workers(sys.argv[1:])
