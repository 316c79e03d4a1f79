# Processes for tests of torch.distributed.
import multiprocessing
import os
import sys

import pytest

LIMIT = 120  # seconds, after which something hangs


def started(target, count, address, preload="ranks"):
    """Processes that are forks of one that has imported PyTorch once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([preload])
    results = context.Queue()
    workers = [context.Process(target=target, args=(rank, os.fspath(address), results), daemon=True)
               for rank in range(count)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # which is all that the server has to find modules by
        for worker in workers:
            worker.start()
    return workers, results
