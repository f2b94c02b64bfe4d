"""Runs a program cycle by cycle of what happens between engines, and by formula inside them."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from poblano.commands import CHAIN, PASS, Command, Values, by_opcode
from poblano.config import Configuration, SliceConfiguration
from poblano.dma.timing import MEMORY_LATENCY, MoveTimeline
from poblano.host.registers import queue_names
from poblano.tensor.timing import Timeline
from poblano_golden.moves import read_indices
from poblano_sw.program import Program
from poblano_sw.simulator.fetch import Fetcher
from poblano_sw.simulator.memories import Memories

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
    commands: list[tuple[Command, dict[str, int]]]
    timeline: Timeline | MoveTimeline | VectorTimeline
    port: int
    issued: int = 0
    ends: deque[int] = field(default_factory=lambda: deque[int]())

    @property
    def head(self) -> tuple[Command, dict[str, int]] | None:
        """The command that is issued next."""
        return self.commands[self.issued] if self.issued < len(self.commands) else None

    def start(self, cycle: int, memories: Memories) -> int:
        """Issue the first command in `cycle`; return the cycle in which it is done."""
        command, values = self.commands[self.issued]
        self.issued += 1
        if isinstance(self.timeline, Timeline):
            done = cycle + 1 + self.timeline.run(values, cycle).cycles
        elif isinstance(self.timeline, VectorTimeline):
            done = self.timeline.run(command, values, cycle, memories)
        else:
            found = memories.indices(values)
            indices = None if found is None else [int(index) for index in found]
            done = self.timeline.run(values, indices, cycle)
        self.ends.append(done)
        return done


class VectorTimeline:
    """When the vector engine's commands are done: one at a time.

    Attributes
    ----------
    ready:
        The first cycle in which the engine accepts another word.
    """

    def __init__(self, configuration: SliceConfiguration) -> None:
        self.configuration = configuration
        self.ready = 0
        self._chain: Values = CHAIN.complete({})

    def run(self, command: Command, values: Values, accepted: int, memories: Memories) -> int:
        """Return the cycle in which a command is done whose word is accepted in `accepted`."""
        more: tuple[Any, ...] = ()
        if command is CHAIN:
            self._chain = values
        elif command is PASS:
            indices = None
            if self._chain["indexed"]:
                indices = read_indices(memories.l1, values["index"], values["rows"]).tolist()
            more = (self._chain, indices)
        self.ready = accepted + 1 + command.cycles(self.configuration, values, *more)
        return self.ready


def _timeline(
    section: SliceConfiguration, engine: str, latency: int
) -> Timeline | MoveTimeline | VectorTimeline:
    if engine == "tensor":
        return Timeline(section)
    if engine == "vector":
        return VectorTimeline(section)
    return MoveTimeline(section, engine, latency)


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
        If the program cannot run to its end, or a move leaves the memory of its port.
    """
    program.check(configuration)
    return _Run(configuration, program, memories, latency).run()


class _Run:
    def __init__(
        self, configuration: Configuration, program: Program, memories: Memories, latency: int
    ) -> None:
        section = configuration.slice
        self._memories = memories
        self._queues: list[_Queue] = []
        for index, name in enumerate(queue_names(configuration)):
            engine, _, port = name.partition("_")
            words = program.queues.get(name, ())
            timeline = _timeline(section, engine, latency)
            commands = [(by_opcode(word[0]), by_opcode(word[0]).decode(word)) for word in words]
            self._queues.append(_Queue(name, index, commands, timeline, int(port or 0)))
        counts = [len(queue.commands) for queue in self._queues]
        self._fetcher = Fetcher(counts, section.host.queue_depth)
        self._semaphores = [0] * section.host.semaphores
        self._times: list[int] = [0]
        self._ends: list[tuple[int, int, int]] = []  # done, queue, number
        self._spans: list[Span] = []
        self._issued_at: dict[tuple[int, int], int] = {}

    def run(self) -> Trace:
        """Go from cycle to cycle in which something may happen."""
        cycle = -1
        while self._ends or any(queue.head for queue in self._queues):
            while self._times[0] <= cycle:
                heapq.heappop(self._times)
            cycle = self._times[0]
            self._complete(cycle)
            self._fetcher.advance(cycle)
            granted = False
            for queue in self._queues:
                granted = self._issue(queue, cycle, granted) or granted
            self._wake(cycle)
        return Trace(tuple(self._spans))

    def _complete(self, cycle: int) -> None:
        """Add the signals of all commands that were done before `cycle`."""
        while self._ends and self._ends[0][0] < cycle:
            done, index, number = heapq.heappop(self._ends)
            queue = self._queues[index]
            queue.ends.popleft()
            command, values = queue.commands[number]
            self._memories.execute(command, values, queue.port)
            for semaphore, count in _pairs(values, "signal"):
                self._semaphores[semaphore] += count
            issued = self._issued_at.pop((index, number))
            self._spans.append(Span(queue.name, number, command.mnemonic, issued, done))

    def _may(self, queue: _Queue, cycle: int) -> bool:
        """Whether queue and engine let the first command be issued."""
        visible = self._fetcher.visible[queue.index]
        return (
            queue.head is not None
            and bool(visible)
            and visible[0] <= cycle
            and queue.timeline.ready <= cycle
            and len(queue.ends) < _IN_FLIGHT
        )

    def _issue(self, queue: _Queue, cycle: int, granted: bool) -> bool:
        """Issue the first command of a queue if it may be; return whether a wait was granted."""
        if not self._may(queue, cycle):
            return False
        assert queue.head is not None
        _, values = queue.head
        waits = list(_pairs(values, "wait"))
        if waits and (granted or any(self._semaphores[s] < count for s, count in waits)):
            return False
        for semaphore, count in waits:
            self._semaphores[semaphore] -= count
        number = queue.issued
        done = queue.start(cycle, self._memories)
        self._fetcher.issued(queue.index, cycle)
        self._issued_at[queue.index, number] = cycle
        heapq.heappush(self._ends, (done, queue.index, number))
        heapq.heappush(self._times, done + 1)
        return bool(waits)

    def _wake(self, cycle: int) -> None:
        """Note the next cycle in which a queue may issue; ends of commands are noted already."""
        for queue in self._queues:
            if queue.head is None:
                continue
            visible = self._fetcher.visible[queue.index]
            may = max(visible[0] if visible else cycle + 1, queue.timeline.ready)
            if may > cycle:
                heapq.heappush(self._times, may)
            elif not self._blocked(queue):
                heapq.heappush(self._times, cycle + 1)

    def _blocked(self, queue: _Queue) -> bool:
        """Whether only the end of a command can let the first command of a queue go on."""
        assert queue.head is not None
        _, values = queue.head
        lacking = any(self._semaphores[s] < count for s, count in _pairs(values, "wait"))
        return lacking or len(queue.ends) == _IN_FLIGHT
