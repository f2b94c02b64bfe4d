"""When an engine's commands are done, for engines that a formula describes."""

from __future__ import annotations

from typing import Any, Protocol

from poblano.commands import CHAIN, PASS, Command, Values
from poblano.config import SliceConfiguration
from poblano.dma.timing import MoveTimeline
from poblano.tensor.timing import Timeline
from poblano_golden.moves import read_indices
from poblano_sw.simulator.memories import Memories

__all__ = ["Engine", "engine_of"]


class Engine(Protocol):
    """An engine as its queue sees it."""

    @property
    def ready(self) -> int:
        """The first cycle in which it accepts another word."""
        ...

    def start(self, command: Command, values: Values, cycle: int, memories: Memories, /) -> int:
        """Accept a command; return the cycle in which it reports that it is done."""
        ...


def engine_of(configuration: SliceConfiguration, queue: str, latency: int) -> Engine:
    """Return the engine of a queue; `latency` is that of the ideal memory."""
    match queue.partition("_")[0]:
        case "tensor":
            return _Tensor(configuration)
        case "vector":
            return _Vector(configuration)
        case half:
            return _Moves(configuration, half, latency)


class _Tensor:
    def __init__(self, configuration: SliceConfiguration) -> None:
        self._timeline = Timeline(configuration)

    @property
    def ready(self) -> int:
        return self._timeline.ready

    def start(self, _command: Command, values: Values, cycle: int, _memories: Memories) -> int:
        return cycle + 1 + self._timeline.run(values, cycle).cycles


class _Moves:
    def __init__(self, configuration: SliceConfiguration, half: str, latency: int) -> None:
        self._timeline = MoveTimeline(configuration, half, latency)

    @property
    def ready(self) -> int:
        return self._timeline.ready

    def start(self, _command: Command, values: Values, cycle: int, memories: Memories) -> int:
        found = memories.indices(values)
        return self._timeline.run(values, None if found is None else found.tolist(), cycle)


class _Vector:
    """One command at a time; the chain stays until the next."""

    def __init__(self, configuration: SliceConfiguration) -> None:
        self._configuration = configuration
        self._chain: Values = CHAIN.complete({})
        self.ready = 0

    def start(self, command: Command, values: Values, cycle: int, memories: Memories) -> int:
        more: tuple[Any, ...] = ()
        if command is CHAIN:
            self._chain = values
        elif command is PASS:
            indices = None
            if self._chain["indexed"]:
                indices = read_indices(memories.l1, values["index"], values["rows"]).tolist()
            more = (self._chain, indices)
        self.ready = cycle + 1 + command.cycles(self._configuration, values, *more)
        return self.ready
