#!/usr/bin/env python3
"""What it costs to share out the classes of cross-entropy: two ranks that are simulated in one process, one after the
other on one device, compared with onepass.cross_entropy of all classes. What ranks send each other goes from hand to
hand, so that this is what they compute.

    PYTHONPATH=build/python python3 bench/vocabulary.py --device cuda --json FILE
"""

import argparse
import json

import torch

import onepass
from onepass._simulated_ranks import shares_of, told_to_all, value_and_gradients
from onepass.bench.clock import Clock, Contender, GpuClock
from onepass.bench.machine import facts

WORKS = {"cuda": ((8192, 128256, "bfloat16"), (32768, 32768, "float32")), "cpu": ((512, 128256, "bfloat16"),)}


TYPES = {"bfloat16": "bf16", "float32": "f32"}
ONE_CALL = "one call"


def cuts_of(classes):
    """Words and the first share's classes: at a tile's end, and in the middle of the row, which is within a tile."""
    tile, within = classes // 2 // 1024 * 1024, classes // 2 if classes // 2 % 1024 else classes // 2 - 8
    return {f"cut at a tile ({tile})": tile, f"cut within one ({within})": within}


def contenders_of(logits, labels, mode):
    upstream = torch.ones((), dtype=logits.dtype, device=logits.device)
    leaf = logits.detach().requires_grad_()

    def whole():
        if mode == "forward":
            return onepass.cross_entropy(logits, labels)
        leaf.grad = None
        value = onepass.cross_entropy(leaf, labels)
        value.backward()
        return value.detach()

    def shared(first):
        shares = shares_of([logits[:, :first], logits[:, first:]], labels)
        if mode == "forward":
            return shares[0].value(*told_to_all(shares), None, logits.dtype)[0]
        return value_and_gradients(shares, upstream)[0]

    yield Contender(ONE_CALL, lambda: [whole])
    for words, first in cuts_of(logits.shape[1]).items():
        yield Contender(words, lambda first=first: [lambda: shared(first)])


def measure(device, quick):
    rows = []
    for count, classes, dtype in WORKS[device]:
        count = max(1, count // 64) if quick else count
        logits = torch.randn(count, classes, device=device).mul_(2).to(getattr(torch, dtype))
        labels = torch.randint(classes, (count,), device=device)
        for mode in ("forward", "step"):
            clock = GpuClock(torch) if device == "cuda" else Clock(0.1 if quick else 3.0)
            contenders = list(contenders_of(logits, labels, mode))
            clock.measure(contenders)
            for one in contenders:
                if one.missing:
                    raise SystemExit(f"{one.name}: {one.missing}")
                if one.value != contenders[0].value:
                    raise SystemExit(f"{one.name} is {one.value}, {contenders[0].name} {contenders[0].value}")
            rows.append({"device": device, "section": "vocabulary", "loss": "cross_entropy", "mode": mode,
                         "type": TYPES[dtype], "elements": count * classes, "variant": f"{count} x {classes}",
                         "unit": "s", "found": {one.name: one.seconds() for one in contenders}})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=tuple(WORKS))
    parser.add_argument("--json", metavar="FILE", help="keep what was found, with hardware and versions")
    parser.add_argument("--quick", action="store_true", help="few rows, to see that it runs")
    options = parser.parse_args()
    rows = measure(options.device, options.quick)
    print(f"{'work':28}{'mode':9}{'how':28}{'ms':>10}{'of one call':>13}")
    for row in rows:
        for how, seconds in row["found"].items():
            print(f"{row['variant'] + ' ' + row['type']:28}{row['mode']:9}{how:28}{seconds * 1e3:10.3f}"
                  f"{seconds / row['found'][ONE_CALL]:13.3f}")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(dict(facts([options.device], torch, "bench/vocabulary.py"), results=rows), file, indent=1)


if __name__ == "__main__":
    main()
