"""How contenders are timed: all of them in turn, round after round, and the median of each.

On the CPU by the wall clock, with the call's own costs, as a user meets it. On a GPU by its own clock, around a few
calls that follow each other on the stream: the stream is kept busy before, so that the host is ahead and nothing waits
for it. JAX has a stream of its own there, so its calls are timed by the wall clock until the last one is done.
"""

import dataclasses
import math
import statistics
import time
from typing import Any, Callable, Optional

TURN_SECONDS = 1e-3  # of a turn on the CPU: shorter calls are repeated
REST_SECONDS = 1e-3  # of short calls before a turn on the CPU that are not timed
SHORT_SECONDS = 10e-3
WALL_SECONDS = 50e-3  # the same for JAX on a GPU, where the waiting at the end counts too
ROUNDS_SECONDS = 1.0
LEAST_ROUNDS, MOST_ROUNDS = 3, 25
MOST_CALLS = 1 << 14
IN_FLIGHT_BYTES = 24 << 30  # of gradients that JAX may have on a GPU at once
GPU_CYCLES = 2.2e9  # a second, or fewer: only how long the stream is kept busy depends on it


class Absent(Exception):
    """Why somebody cannot take part, in words that need no more."""


@dataclasses.dataclass
class Contender:
    """Somebody to be timed. `make` builds it (imports, compiles) and returns what runs it once: that returns the value,
    or something that `wait` waits for."""

    name: str
    make: Callable[[], Callable[[], Any]]
    wait: Optional[Callable[[Any], None]] = None
    value_of: Callable[[Any], float] = float

    run: Optional[Callable[[], Any]] = None
    missing: str = ""
    value: Optional[float] = None
    calls: int = 1
    is_short: bool = False
    host_seconds: float = 0  # that a call takes on the host, on a GPU
    times: list = dataclasses.field(default_factory=list)

    def seconds(self):
        return statistics.median(self.times) if self.times and not self.missing else None


def reason_of(error):
    """The beginning of an error's text, on one line."""
    if isinstance(error, Absent):
        return str(error)
    text = " ".join(str(error).split()) or "no message"
    return f"{type(error).__name__}: {text[:200]}"


def attempt(contender, action):
    """What the action returns for a contender; None if it fails, and the contender is missing from then on."""
    try:
        return action(contender)
    except Exception as error:  # whatever a peer throws, the others go on
        contender.missing = reason_of(error)
        contender.run = None
        return None


def measure(contenders, clock, bytes, held):
    """Fills in the times of each; those that fail at any time become missing. A call moves `bytes`, and what it returns
    holds some of them."""
    for contender in contenders:
        attempt(contender, lambda contender: clock.start(contender, bytes, held))
    end = time.perf_counter() + ROUNDS_SECONDS
    for turn in range(MOST_ROUNDS):
        if turn >= LEAST_ROUNDS and time.perf_counter() > end:
            break
        for contender in contenders:
            seconds = attempt(contender, clock.turn) if contender.run else None
            contender.times += [seconds] if seconds else []
    for contender in contenders:
        contender.run = None  # and with it whatever it holds
    clock.tidy()


def keep_value(contender, result):
    if result is not None:
        contender.value = contender.value_of(result)


class WallClock:
    """The CPU's: every call is waited for.

    Frameworks have threads that stay awake for a while after a call, in case there is another, and would take the cores
    from the next contender. So each turn begins with calls that are not timed, until the others' threads are at rest.
    Not with a pause: a program that wakes up may find its threads on one core, and they stay there.
    """

    def start(self, contender, bytes, held):
        contender.run = contender.make()
        for warm_up in range(2):
            keep_value(contender, self.call(contender))
        contender.calls = 1
        contender.is_short = self.turn(contender) < SHORT_SECONDS
        while self.turn(contender) * contender.calls < TURN_SECONDS and contender.calls < MOST_CALLS:
            contender.calls *= 2

    @staticmethod
    def call(contender):
        result = contender.run()
        if contender.wait:
            contender.wait(result)
        return result

    def turn(self, contender):
        rested = time.perf_counter() + REST_SECONDS
        while contender.is_short and time.perf_counter() < rested:
            self.call(contender)
        begin = time.perf_counter()
        for _ in range(contender.calls):
            self.call(contender)
        return (time.perf_counter() - begin) / contender.calls

    def tidy(self):
        pass


class GpuClock:
    """The GPU's own, by CUDA events; and the wall clock for who has a stream of its own."""

    def __init__(self, torch):
        self.torch = torch

    def start(self, contender, bytes, held):
        contender.run = contender.make()
        for warm_up in range(3):
            keep_value(contender, contender.run())
            self.torch.cuda.synchronize()
        contender.calls = 16 if bytes <= 1 << 24 else 4
        if contender.wait:
            self.choose_calls(contender, held)
            return
        begin = time.perf_counter()
        for _ in range(contender.calls):
            contender.run()
        contender.host_seconds = (time.perf_counter() - begin) / contender.calls
        self.torch.cuda.synchronize()

    def choose_calls(self, contender, held):
        """As many as make the waiting at the end count for little, within what memory holds."""
        contender.wait(contender.run())
        contender.calls = 1
        seconds = max(self.turn(contender), 1e-6)
        contender.calls = max(1, min(1000, math.ceil(WALL_SECONDS / seconds), IN_FLIGHT_BYTES // max(held, 1)))

    def turn(self, contender):
        return self.wall_turn(contender) if contender.wait else self.event_turn(contender)

    def event_turn(self, contender):
        cuda = self.torch.cuda
        begin, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        cuda._sleep(int(GPU_CYCLES * (100e-6 + 1.5 * contender.calls * contender.host_seconds)))
        begin.record()
        for _ in range(contender.calls):
            contender.run()
        end.record()
        cuda.synchronize()
        return 1e-3 * begin.elapsed_time(end) / contender.calls

    def wall_turn(self, contender):
        self.torch.cuda.synchronize()
        result = None
        begin = time.perf_counter()
        for _ in range(contender.calls):
            result = None  # each is dropped before the next asks for memory
            result = contender.run()
        contender.wait(result)
        return (time.perf_counter() - begin) / contender.calls

    def tidy(self):
        self.torch.cuda.empty_cache()
