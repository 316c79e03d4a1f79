"""The one clock: the contenders of a case take turns, round after round, and the median of each counts.

Turns make all of them meet the same clock rates and temperatures. A contender that cannot run is missing from its case,
with the reason, and the others go on.
"""

import dataclasses
import math
import statistics
import time
from typing import Any, Callable, Optional


class Absent(Exception):
    """Why somebody cannot take part, in words that need no more."""


@dataclasses.dataclass
class Contender:
    """Somebody to be timed.

    `make` builds it (imports, compiles) and returns a list of functions, each of which does the work once, on operands
    of its own, and returns the loss or None. With `wait`, what they return is waited for by the host: who has a stream
    of its own on a GPU is timed by the wall clock. With `loops`, there is one function, which takes the number of
    calls: a loop in C. `bytes` is what a call moves where that is not what the case says.
    """

    name: str
    make: Callable[[], list]
    wait: Optional[Callable[[Any], None]] = None
    loops: bool = False
    bytes: Optional[float] = None
    value_of: Callable[[Any], float] = float

    runs: Optional[list] = None
    graph: Any = None
    missing: str = ""
    note: str = ""  # what is unlike the others' timing
    value: Optional[float] = None
    calls: int = 1  # in a turn
    is_short: bool = False
    times: list = dataclasses.field(default_factory=list)

    def seconds(self):
        return statistics.median(self.times) if self.times and not self.missing else None

    def spread(self):
        """The range without the tenth at either end, as a share of the median."""
        ordered, tenth = sorted(self.times), len(self.times) // 10
        return (ordered[-1 - tenth] - ordered[tenth]) / statistics.median(ordered)

    def play(self, calls):
        """So many calls. Each result is dropped before the next call asks for memory; the last one is returned."""
        result = None
        if self.loops:
            self.runs[0](calls)
        else:
            for call in range(calls):
                result = None
                result = self.runs[call % len(self.runs)]()
        return result


def reason_of(error):
    """The beginning of an error's text, on one line."""
    text = " ".join(str(error).split()) or "no message"
    return text if isinstance(error, Absent) else f"{type(error).__name__}: {text[:200]}"


class Clock:
    """The CPU's: perf_counter around as many calls as make a turn long enough, each of them waited for.

    Frameworks have threads that stay awake for a while after a call, in case there is another, and would take the cores
    from the next contender. So a turn of short calls begins with some that are not timed. Not with a pause: a program
    that wakes up may find its threads on one core, and they stay there.
    """

    TURN, REST, SHORT = 1e-3, 1e-3, 10e-3  # seconds: of a turn, of the calls before it, of what counts as short
    MOST_CALLS = 1 << 14

    def __init__(self, seconds=1.0, rounds=(5, 25), now=time.perf_counter):
        self.seconds_a_case, (self.least, self.most), self.now = seconds, rounds, now

    def measure(self, contenders, seconds=None):
        """Fills in the times of each; `seconds` is about how long that may take."""
        for contender in contenders:
            self.attempt(contender, self.start)
        end = self.now() + (seconds or self.seconds_a_case)
        for turn in range(self.most):
            if turn >= self.least and self.now() > end:
                break
            self.round([contender for contender in contenders if contender.runs])
        for contender in contenders:
            contender.runs = contender.graph = None  # and with them whatever they hold
        self.tidy()

    def attempt(self, contender, action):
        try:
            return action(contender)
        except Exception as error:  # whatever a peer throws, the others go on
            contender.missing = reason_of(error)
            contender.runs = contender.graph = None
            return None

    def start(self, contender):
        contender.runs = contender.make()
        if not contender.loops:
            self.play(contender, len(contender.runs))
            self.keep_value(contender, self.play(contender, 1))  # of the first operands, which everybody has
        contender.calls = 1
        self.turn(contender)
        contender.is_short = self.turn(contender) < self.SHORT
        while self.turn(contender) * contender.calls < self.TURN and contender.calls < self.MOST_CALLS:
            contender.calls *= 2

    @staticmethod
    def keep_value(contender, result):
        if result is not None:
            contender.value = contender.value_of(result)

    def round(self, contenders):
        for contender in contenders:
            seconds = self.attempt(contender, self.turn)
            contender.times += [seconds] if seconds else []

    @staticmethod
    def play(contender, calls):
        """All of them waited for, one by one."""
        if not contender.wait:
            return contender.play(calls)
        for _ in range(calls):
            result = contender.play(1)
            contender.wait(result)
        return result

    def turn(self, contender):
        rested = self.now() + self.REST
        while contender.is_short and self.now() < rested:
            self.play(contender, 1)
        begin = self.now()
        self.play(contender, contender.calls)
        return (self.now() - begin) / contender.calls

    def tidy(self):
        pass


class GpuClock(Clock):
    """The GPU's own, by CUDA events on the stream.

    Small works are replays of a CUDA graph of many calls over several sets of operands, which takes the host out of the
    figure. Large ones are single calls, and before each of them other memory is read, so that nobody finds its
    operands, or another's dirty lines, in the cache. Before every turn the stream is kept busy, so that the host is
    ahead of it.
    """

    SCRUB = 256 << 20  # bytes, several times any GPU's cache
    LEAD = 2_000_000  # cycles, about 1 ms
    WALL = 50e-3  # seconds of a turn by the wall clock, so that dispatch and waiting count for little
    MOST_IN_FLIGHT = 24 << 30  # bytes of results that may wait there

    def __init__(self, torch, seconds=1.0, rounds=(7, 51), now=time.perf_counter):
        super().__init__(seconds, rounds, now)
        self.torch, self.cuda = torch, torch.cuda
        self.cuda.set_stream(self.cuda.Stream())  # one that can be captured, for all that follows
        self.memory = torch.zeros(self.SCRUB // 4, device="cuda")
        self.sum = torch.zeros((), device="cuda")
        self.calls_in_graph = 0  # 0: no graph
        self.bytes_in_flight = 1  # of what a call returns

    def set_size(self, elements, bytes):
        self.calls_in_graph = 64 if elements <= 1 << 20 else 16 if elements <= 1 << 24 else 0
        self.bytes_in_flight = bytes

    def start(self, contender):
        contender.runs = contender.make()
        for _ in range(2):
            contender.play(len(contender.runs))
            self.cuda.synchronize()
        self.keep_value(contender, contender.play(1))
        contender.calls = 1
        if contender.wait:
            seconds = max(self.wall_turn(contender), 1e-6)
            most = max(1, self.MOST_IN_FLIGHT // self.bytes_in_flight)
            contender.calls = max(1, min(1000, most, math.ceil(self.WALL / seconds)))
        elif self.calls_in_graph:
            try:
                self.capture(contender)
            except RuntimeError as error:
                contender.graph, contender.calls = None, 16
                contender.note = f"timed without a graph: {reason_of(error)}"

    def capture(self, contender):
        graph = self.cuda.CUDAGraph()
        # Thread-local, since JAX's threads may use the device meanwhile.
        with self.cuda.graph(graph, stream=self.cuda.current_stream(), capture_error_mode="thread_local"):
            result = contender.play(self.calls_in_graph)
        contender.graph, contender.calls = (graph, result), self.calls_in_graph  # a graph keeps no tensor alive
        graph.replay()
        self.cuda.synchronize()

    def round(self, contenders):
        turns = [(contender, self.attempt(contender, self.event_turn)) for contender in contenders
                 if not contender.wait]
        self.cuda.synchronize()
        for contender, events in turns:
            contender.times += [1e-3 * events[0].elapsed_time(events[1]) / contender.calls] if events else []
        for contender in contenders:
            if contender.wait:
                seconds = self.attempt(contender, self.wall_turn)
                contender.times += [seconds] if seconds else []

    def event_turn(self, contender):
        """Enqueues a turn between two events."""
        begin, end = (self.cuda.Event(enable_timing=True) for _ in range(2))
        if not contender.graph:
            self.torch.sum(self.memory, dim=0, out=self.sum)
        self.cuda._sleep(self.LEAD)
        begin.record()
        if contender.graph:
            contender.graph[0].replay()
        else:
            contender.play(contender.calls)
        end.record()
        return begin, end

    def wall_turn(self, contender):
        self.cuda.synchronize()
        begin = self.now()
        contender.wait(contender.play(contender.calls))
        return (self.now() - begin) / contender.calls

    def fastest(self, run, times=5):
        """Seconds of the fastest of a few runs in a row: for choosing among shapes of a launch."""
        marks = [self.cuda.Event(enable_timing=True) for _ in range(times + 1)]
        run()
        marks[0].record()
        for mark in marks[1:]:
            run()
            mark.record()
        self.cuda.synchronize()
        return 1e-3 * min(begin.elapsed_time(end) for begin, end in zip(marks, marks[1:]))

    def tidy(self):
        self.cuda.empty_cache()
