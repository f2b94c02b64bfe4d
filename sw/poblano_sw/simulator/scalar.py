"""The scalar engine beside the queues: it runs until it must wait for something of the slice."""

from __future__ import annotations

from collections.abc import Callable, Generator

from poblano.config import SliceConfiguration
from poblano_golden.arrays import U8
from poblano_sw.scalar.interpreter import Event, Issue, ScalarRun, Signal, Wait

__all__ = ["NEVER", "ScalarEngine"]

NEVER = 1 << 62
"""A cycle that does not come."""


class ScalarEngine:
    """Runs one program at a time.

    Parameters
    ----------
    configuration:
        The slice.
    queues:
        Queues that it can issue to.
    l1:
        L1, read and written in place.
    put:
        Takes queue, word and cycle; says whether the queue has room.
    take:
        Takes a count from a semaphore; says whether it held as much.
    signal:
        Takes semaphore, count, and the cycle in which it is added.

    Attributes
    ----------
    ready:
        The first cycle in which it accepts another command.
    done:
        The cycle in which the command that was last accepted is done; `NEVER` until it is known.
    """

    def __init__(
        self,
        configuration: SliceConfiguration,
        queues: int,
        l1: U8,
        *,
        put: Callable[[int, bytes, int], bool],
        take: Callable[[int, int], bool],
        signal: Callable[[int, int, int], None],
    ) -> None:
        self._configuration = configuration
        self._queues = queues
        self._l1 = l1
        self._put, self._take, self._signal = put, take, signal
        self._steps: Generator[Event, int, int] | None = None
        self._event: Event | None = None
        self.ready = 0
        self.done = NEVER

    def start(self, word: bytes, cycle: int) -> None:
        """Accept a command."""
        run = ScalarRun(self._configuration, self._queues, self._l1, word)
        self._steps = run.events(cycle)
        self.ready = self.done = NEVER
        self._event = next(self._steps)

    @property
    def next(self) -> int:
        """The cycle of the next event, `NEVER` if none is known."""
        return NEVER if self._event is None else self._event.cycle

    def advance(self, cycle: int) -> bool:
        """Let everything happen that can up to and with `cycle`; say whether it waits."""
        while self._event is not None and self._event.cycle <= cycle:
            event = self._event
            happened = event.cycle
            if isinstance(event, Issue | Wait):
                # what it waits for may have come only now
                happened = cycle
                if isinstance(event, Issue):
                    taken = self._put(event.queue, event.word, cycle)
                else:
                    taken = event.count == 0 or self._take(event.semaphore, event.count)
                if not taken:
                    return True
            elif isinstance(event, Signal):
                self._signal(event.semaphore, event.count, happened)
            self._resume(happened)
        return False

    def _resume(self, happened: int) -> None:
        assert self._steps is not None
        try:
            self._event = self._steps.send(happened)
        except StopIteration as end:
            self._event = None
            self.ready = self.done = end.value
