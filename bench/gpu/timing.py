"""How things are timed: every contender in turn, round after round, and the median of each.

Turns make all of them meet the same clocks and temperatures. Between two turns a pass
over other memory takes out of the cache what the last contender left there, dirty lines
above all, and gives the host time to be ahead: a launch that the device waits for would
count as the contender's time.

A contender that cannot run is kept as missing, with the reason: never left out silently.
"""

import dataclasses
import gc
import math
import statistics
import time
from typing import Any, Callable, Optional

import torch

DEVICE = "cuda"
SCRUB_BYTES = 256 << 20  # several times any GPU's cache
LEAD_CYCLES = 2_000_000  # about 1 ms in which the host gets ahead
WALL_SECONDS = 0.05  # of a wall-clock measurement, so that dispatch and waiting count for little


@dataclasses.dataclass
class Contender:
    """Something to be timed. `make` builds it (compiles, imports) and returns what runs it once.

    What runs it enqueues the work on the current stream and returns the loss, or None. A contender with a stream of
    its own has `wait`, which is given the last result; it is timed by the wall clock over several runs.
    """

    name: str
    make: Callable[[], Callable[[], Any]]
    bytes: float = 0
    loss_of: Callable[[Any], float] = float
    wait: Optional[Callable[[Any], None]] = None
    most_runs: int = 1000  # that may be in flight at once
    is_framework: bool = False  # PyTorch's or JAX's: may be left out of a quick look

    run: Optional[Callable[[], Any]] = None
    missing: str = ""
    loss: Optional[float] = None  # of the first run
    runs: int = 1  # of one wall-clock measurement
    seconds: list = dataclasses.field(default_factory=list)

    def times(self):
        return Times.of(self.seconds)


@dataclasses.dataclass
class Times:
    """Seconds: the median, and the range without the tenth at either end."""

    median: float
    low: float
    high: float
    count: int

    @staticmethod
    def of(seconds):
        ordered = sorted(seconds)
        tenth = len(ordered) // 10
        return Times(statistics.median(ordered), ordered[tenth], ordered[-1 - tenth], len(ordered))


class Absent(Exception):
    """Why a contender cannot be there, in words that need no more."""


def reason_of(error):
    """The beginning of an error's text, on one line."""
    if isinstance(error, Absent):
        return str(error)
    text = " ".join(str(error).split()) or "no message"
    return f"{type(error).__name__}: {text[:300]}"


def start(contender):
    """Builds a contender and runs it to warm it up. Says so if that fails or takes long."""
    begin = time.perf_counter()
    attempt(contender, warm_up)
    seconds = time.perf_counter() - begin
    if seconds > 2:
        print(f"  ({contender.name} took {seconds:.1f} s to get ready)", flush=True)


def warm_up(contender):
    contender.run = contender.make()
    result = contender.run()
    torch.cuda.synchronize()
    if result is not None:
        contender.loss = contender.loss_of(result)
    if contender.wait:
        choose_runs(contender)
    else:
        contender.run()
    torch.cuda.synchronize()


def choose_runs(contender):
    """As many runs of a wall-clock contender as make the measurement long enough, within what memory holds."""
    contender.wait(contender.run())
    seconds = wall_seconds(contender)
    contender.runs = max(1, min(contender.most_runs, math.ceil(WALL_SECONDS / max(seconds, 1e-6))))


def wall_seconds(contender):
    """Seconds a run, with nothing else on the device. Each result is dropped before the next run asks for memory."""
    torch.cuda.synchronize()
    result = None
    begin = time.perf_counter()
    for _ in range(contender.runs):
        result = None
        result = contender.run()
    contender.wait(result)
    return (time.perf_counter() - begin) / contender.runs


class Scrub:
    """Takes the cache from the last contender."""

    def __init__(self):
        self.memory = torch.zeros(SCRUB_BYTES // 4, device=DEVICE)
        self.sum = torch.zeros((), device=DEVICE)

    def __call__(self):
        torch.sum(self.memory, dim=0, out=self.sum)


def measure(contenders, rounds, scrub):
    """Fills in the seconds of each contender; those that fail at any time become missing."""
    for contender in contenders:
        start(contender)
    for _ in range(rounds):
        time_on_stream([c for c in contenders if c.run and not c.wait], scrub)
        for contender in contenders:
            if contender.run and contender.wait:
                seconds = attempt(contender, wall_seconds)
                contender.seconds += [seconds] if seconds else []
    for contender in contenders:
        contender.run = None  # and with it whatever it holds on the device
    free_memory()
    return contenders


def attempt(contender, action):
    """What the action returns for a contender; None if it fails, and the contender is missing from then on."""
    try:
        return action(contender)
    except Exception as error:  # whatever a peer throws, the others go on
        contender.missing = reason_of(error)
        contender.run = None
        print(f"  missing: {contender.name}: {contender.missing}", flush=True)
        return None


def take_turn(contender):
    """Enqueues a run between two events."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    contender.run()
    end.record()
    return begin, end


def time_on_stream(contenders, scrub):
    """One turn each, enqueued without waiting in between."""
    turns = []
    lead()  # or the first would be waited for
    for contender in contenders:
        scrub()
        turns.append((contender, attempt(contender, take_turn)))
    torch.cuda.synchronize()
    for contender, events in turns:
        if events:
            contender.seconds.append(1e-3 * events[0].elapsed_time(events[1]))


def lead():
    """Scrub's place where the cache should stay as it is: only lets the host get ahead."""
    torch.cuda._sleep(LEAD_CYCLES)


def free_memory():
    """Gives the frameworks' temporaries back to the device. Young garbage only: a full collection takes longer than
    most works."""
    gc.collect(1)
    torch.cuda.empty_cache()
