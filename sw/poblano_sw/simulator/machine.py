"""Runs a program cycle by cycle of what happens between engines, and by formula inside them."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

from poblano.commands import Command, Values, by_opcode
from poblano.config import Configuration
from poblano.dma.timing import MEMORY_LATENCY
from poblano.host.registers import queue_names
from poblano_golden.errors import PoblanoError
from poblano_sw.program import Program
from poblano_sw.simulator.engines import Engine, engine_of
from poblano_sw.simulator.fetch import Fetcher
from poblano_sw.simulator.memories import Memories
from poblano_sw.simulator.scalar import NEVER, ScalarEngine

__all__ = ["Span", "Trace", "simulate"]

_IN_FLIGHT = 16
"""Commands that an engine may have accepted and not completed."""


@dataclass(frozen=True)
class Span:
    """A command's life: its queue and number there, and the cycles of its issue and its end."""

    queue: str
    number: int
    mnemonic: str
    issued: int
    done: int


@dataclass(frozen=True)
class Trace:
    """What a program did.

    Attributes
    ----------
    spans:
        Every command in the order of their ends.
    """

    spans: tuple[Span, ...]

    @property
    def first(self) -> int:
        """The cycle of the first issue."""
        return min(span.issued for span in self.spans)

    @property
    def cycles(self) -> int:
        """Cycles from the first issue to the last end, as the timing contract counts."""
        return max(span.done for span in self.spans) - self.first - 1

    def of_queue(self, queue: str) -> list[tuple[int, int]]:
        """Return issue and end of a queue's commands, counted from the first issue of all."""
        found = sorted((s for s in self.spans if s.queue == queue), key=lambda s: s.number)
        return [(span.issued - self.first, span.done - self.first) for span in found]


@dataclass
class _Queue:
    """A queue and its engine."""

    name: str
    index: int
    words: list[bytes]
    engine: Engine | ScalarEngine
    port: int
    issued: int = 0
    ends: deque[int] = field(default_factory=lambda: deque[int]())

    @property
    def head(self) -> tuple[Command, Values] | None:
        """The command that is issued next, if it has reached the queue."""
        return _decoded(self.words[self.issued]) if self.issued < len(self.words) else None


@cache
def _decoded(word: bytes) -> tuple[Command, Values]:
    command = by_opcode(word[0])
    return command, command.decode(word)


def _pairs(values: Values, kind: str) -> Iterator[tuple[int, int]]:
    for half in ("a", "b"):
        if values[f"{kind}_{half}_count"]:
            yield values[f"{kind}_{half}"], values[f"{kind}_{half}_count"]


def simulate(
    configuration: Configuration,
    program: Program,
    memories: Memories,
    *,
    latency: int = MEMORY_LATENCY,
) -> Trace:
    """Run a program to its end; `memories` then hold what the RTL's would.

    Queues, fetch and semaphores follow the hardware's rules cycle by cycle; what a command takes
    is the timing contract's. Two things are left out: clients of L1 that wait for each other, and
    loads and stores that share the memory's bus. Commands act on the memories when they are done;
    so a program whose commands race gives one of the results that the hardware may give.

    Parameters
    ----------
    configuration:
        The chip.
    program:
        What to run; its words are published before the queues are enabled.
    memories:
        L1 and HBM; changed in place. Rings of the program are not written to L1.
    latency:
        Cycles of the ideal memory.

    Raises
    ------
    PoblanoError
        If the program cannot run to its end, a command touches what does not exist, or the scalar
        engine stops.
    """
    program.check(configuration)
    return _Run(configuration, program, memories, latency).run()


class _Run:
    def __init__(
        self, configuration: Configuration, program: Program, memories: Memories, latency: int
    ) -> None:
        section = configuration.slice
        names = queue_names(configuration)
        self._memories = memories
        words = [program.queues.get(name, ()) for name in names]
        self._fetcher = Fetcher(words, section.host.queue_depth)
        self._scalar = ScalarEngine(
            section,
            len(names),
            memories.l1,
            put=self._fetcher.put,
            take=self._take_one,
            signal=self._signal_later,
        )
        self._queues: list[_Queue] = []
        for index, name in enumerate(names):
            engine = self._scalar if name == "scalar" else engine_of(section, name, latency)
            port = int(name.partition("_")[2] or 0)
            self._queues.append(_Queue(name, index, self._fetcher.arrived[index], engine, port))
        self._semaphores = [0] * section.host.semaphores
        self._granted = False
        self._times: list[int] = [0]
        self._ends: list[tuple[int, int, int]] = []  # done, queue, number
        self._signals: list[tuple[int, int, int]] = []  # cycle, semaphore, count
        self._spans: list[Span] = []
        self._issued_at: dict[tuple[int, int], int] = {}

    def run(self) -> Trace:
        """Go from cycle to cycle in which something may happen.

        Raises
        ------
        PoblanoError
            If nothing more can happen and a command waits.
        """
        cycle = -1
        while self._ends or any(self._has_more(queue) for queue in self._queues):
            while self._times and self._times[0] <= cycle:
                heapq.heappop(self._times)
            if not self._times:
                raise PoblanoError(self._stuck())
            cycle = self._times[0]
            self._complete(cycle)
            self._fetcher.advance(cycle)
            self._granted = False
            for queue in self._queues:
                self._issue(queue, cycle)
            scalar_waits = self._advance_scalar(cycle)
            self._wake(cycle, scalar_waits=scalar_waits)
        return Trace(tuple(self._spans))

    def _has_more(self, queue: _Queue) -> bool:
        return (
            queue.head is not None
            or self._fetcher.has_words(queue.index)
            or (queue.engine is self._scalar and self._scalar.next < NEVER)
        )

    def _stuck(self) -> str:
        waiting = [
            f"queue {queue.name}, command {queue.issued}: {queue.head[0].mnemonic}"
            for queue in self._queues
            if queue.head is not None
        ]
        if self._scalar.next < NEVER:
            waiting.append("the scalar engine's program")
        return f"the program must run to its end; it waits for ever at {', '.join(waiting)}"

    def _complete(self, cycle: int) -> None:
        """Add the signals of all that was done before `cycle`."""
        while self._signals and self._signals[0][0] < cycle:
            _, semaphore, count = heapq.heappop(self._signals)
            self._semaphores[semaphore] += count
        while self._ends and self._ends[0][0] < cycle:
            done, index, number = heapq.heappop(self._ends)
            queue = self._queues[index]
            queue.ends.popleft()
            command, values = _decoded(queue.words[number])
            self._memories.execute(command, values, queue.port)
            for semaphore, count in _pairs(values, "signal"):
                self._semaphores[semaphore] += count
            issued = self._issued_at.pop((index, number))
            self._spans.append(Span(queue.name, number, command.mnemonic, issued, done))

    def _may(self, queue: _Queue, cycle: int) -> bool:
        """Whether queue and engine let the first command be issued."""
        visible = self._fetcher.visible[queue.index]
        return (
            bool(visible)
            and visible[0] <= cycle
            and queue.engine.ready <= cycle
            and len(queue.ends) < _IN_FLIGHT
        )

    def _issue(self, queue: _Queue, cycle: int) -> None:
        """Issue the first command of a queue if it may be."""
        if not self._may(queue, cycle):
            return
        assert queue.head is not None
        command, values = queue.head
        waits = list(_pairs(values, "wait"))
        if waits and not self._take(waits):
            return
        number = queue.issued
        queue.issued += 1
        self._fetcher.issued(queue.index, cycle)
        self._issued_at[queue.index, number] = cycle
        if isinstance(queue.engine, ScalarEngine):
            queue.engine.start(queue.words[number], cycle)
        else:
            self._ends_at(queue, number, queue.engine.start(command, values, cycle, self._memories))

    def _ends_at(self, queue: _Queue, number: int, done: int) -> None:
        queue.ends.append(done)
        heapq.heappush(self._ends, (done, queue.index, number))
        heapq.heappush(self._times, done + 1)

    def _take(self, waits: list[tuple[int, int]]) -> bool:
        """Take from semaphores, if they hold it and nothing else was taken in this cycle."""
        if self._granted or any(self._semaphores[s] < count for s, count in waits):
            return False
        for semaphore, count in waits:
            self._semaphores[semaphore] -= count
        self._granted = True
        return True

    def _take_one(self, semaphore: int, count: int) -> bool:
        return self._take([(semaphore, count)])

    def _signal_later(self, semaphore: int, count: int, cycle: int) -> None:
        heapq.heappush(self._signals, (cycle, semaphore, count))
        heapq.heappush(self._times, cycle + 1)

    def _advance_scalar(self, cycle: int) -> bool:
        """Let the scalar engine go on; say whether it waits."""
        waits = self._scalar.advance(cycle)
        if self._scalar.next < NEVER:
            if self._scalar.next > cycle:
                heapq.heappush(self._times, self._scalar.next)
        elif self._scalar.done < NEVER:
            queue = next(queue for queue in self._queues if queue.engine is self._scalar)
            self._ends_at(queue, queue.issued - 1, self._scalar.done)
            self._scalar.done = NEVER
        return waits

    def _wake(self, cycle: int, *, scalar_waits: bool) -> None:
        """Note the next cycle in which a queue may issue; ends of commands are noted already."""
        waits = scalar_waits
        for queue in self._queues:
            visible = self._fetcher.visible[queue.index]
            if queue.engine.ready == NEVER or not (visible or self._fetcher.has_words(queue.index)):
                continue
            may = max(visible[0] if visible else cycle + 1, queue.engine.ready)
            if may > cycle:
                heapq.heappush(self._times, may)
            elif not self._blocked(queue):
                heapq.heappush(self._times, cycle + 1)
        if waits and self._granted:
            heapq.heappush(self._times, cycle + 1)

    def _blocked(self, queue: _Queue) -> bool:
        """Whether only the end of a command can let the first command of a queue go on."""
        if queue.head is None:
            return False
        _, values = queue.head
        lacking = any(self._semaphores[s] < count for s, count in _pairs(values, "wait"))
        return lacking or len(queue.ends) == _IN_FLIGHT
