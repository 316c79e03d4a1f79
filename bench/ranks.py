#!/usr/bin/env python3
"""What onepass.distributed.loss costs beyond the computation: ranks of gloo on this machine exchange their parts of a
mean and merge them, compared with PyTorch's own all_gather of as many bytes and its all_reduce of one number.

    PYTHONPATH=build/python python3 bench/ranks.py --ranks 4 --steps 200

bench/states.c has what merging costs with more ranks than a machine has cores.
"""

import argparse
import multiprocessing
import os
import statistics
import tempfile
import time

import onepass

TILE = 1024
LIMIT = 100  # seconds, after which something hangs
#: Of a share's part: the type, where shares begin within a tile, and whether it is that of a weighted mean.
CASES = {"f32, on tiles": ("float32", 0, False), "f32": ("float32", 512, False),
         "f64, weighted": ("float64", 512, True)}
COUNT = 8 * TILE


def time_exchanges(rank, ranks, address, steps, results):
    import torch
    import torch.distributed as dist

    from onepass._exchange import exchange
    from onepass.distributed import merged

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{address}", rank=rank, world_size=ranks)
    for name, (dtype, off, is_weighted) in CASES.items():
        cuts = [0, *(COUNT * k + off for k in range(1, ranks)), COUNT * ranks]
        share = [torch.rand(cuts[rank + 1] - cuts[rank], dtype=getattr(torch, dtype)) for _ in range(3)]
        part = onepass.Accumulator("mse", cuts[-1])
        part.add(share[0], share[1], first=cuts[rank], weight=share[2] if is_weighted else None)
        told, number = bytes(part), torch.ones((), dtype=torch.float64)
        own = torch.zeros(max(map(len, exchange(None, 2, told))), dtype=torch.uint8)
        places = list(torch.empty(ranks, len(own), dtype=torch.uint8).unbind(0))
        contenders = {"exchange": lambda: exchange(None, 2, told), "all_gather": lambda: dist.all_gather(places, own),
                      "all_reduce": lambda: dist.all_reduce(number)}
        times = {what: [] for what in (*contenders, "merge")}
        for _ in range(steps):  # in turns, so that all meet the same load
            for what, step in contenders.items():
                dist.barrier()
                begin = time.perf_counter()
                found = step()
                end = time.perf_counter()
                times[what].append(end - begin)
                if what == "exchange":
                    merged(found).finish()
                    times["merge"].append(time.perf_counter() - end)
        if rank == 0:
            results.put((name, len(told), times))
    dist.destroy_process_group()


def exchanged(ranks, steps):
    """For each case: bytes of a rank's part, and the first rank's seconds of every step: for the exchange, to merge,
    and of PyTorch's own all_gather of as many bytes and all_reduce of one number, whose bits depend on the ranks."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        at = os.path.join(folder, "at")
        workers = [context.Process(target=time_exchanges, args=(rank, ranks, at, steps, results), daemon=True)
                   for rank in range(ranks)]
        for worker in workers:
            worker.start()
        found = [results.get(timeout=LIMIT) for _ in CASES]
        for worker in workers:
            worker.join()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--ranks", type=int, default=4, help="on this machine (default: 4)")
    parser.add_argument("--steps", type=int, default=200, help="of each case (default: 200)")
    given = parser.parse_args()
    print(f"{given.ranks} ranks of gloo on {os.cpu_count()} cores, milliseconds a step, medians of {given.steps}\n")
    columns = "exchange", "merge", "all_gather", "all_reduce"
    print("| part of a mean | bytes a rank |", " | ".join(columns), "|\n|" + "---|" * (2 + len(columns)))
    for name, size, times in exchanged(given.ranks, given.steps):
        milliseconds = [f"{1e3 * statistics.median(times[what]):.2f}" for what in columns]
        print(f"| {name} | {size:,} |", " | ".join(milliseconds), "|")


if __name__ == "__main__":
    main()
