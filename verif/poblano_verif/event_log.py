"""The log of commands issued and completed: `hdl/event_log.v`, and what it wrote."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from amaranth.lib.wiring import In

from poblano.verilog_component import VerilogComponent

__all__ = ["Event", "EventLog", "EventReader"]


class EventLog(VerilogComponent):
    """Writes when queues issue and complete commands to a file of the run's folder.

    Parameters
    ----------
    queues:
        Queues.
    name:
        The file's name without its ending, `.txt`.

    Members
    -------
    issued, completed:
        Bit Q is 1 for a cycle in which queue Q issues or completes a command.
    """

    source = files("poblano_verif") / "hdl" / "event_log.v"

    def __init__(self, *, queues: int, name: str = "events") -> None:
        self.values = {"QUEUES": queues, "NAME": name}
        super().__init__({"issued": In(queues), "completed": In(queues)})


@dataclass(frozen=True)
class Event:
    """A command was issued, or else completed.

    Attributes
    ----------
    cycle:
        Number of the cycle since the simulation began, from 0.
    queue:
        Name of the queue.
    issued:
        Whether it was issued; otherwise it was completed.
    """

    cycle: int
    queue: str
    issued: bool


class EventReader:
    """Reads an `EventLog`'s file while it grows.

    Parameters
    ----------
    queues:
        Names of the queues in the order of their numbers.
    path:
        The file.
    """

    def __init__(self, queues: tuple[str, ...], path: Path = Path("events.txt")) -> None:
        self._queues = queues
        self._path = path
        self._position = 0

    def take(self) -> list[Event]:
        """Return the events since the last call in order; issues of a cycle before completions."""
        with self._path.open("rb") as file:
            file.seek(self._position)
            text = file.read()
        self._position += len(text)
        events: list[Event] = []
        for line in text.splitlines():
            cycle, *masks = line.split()
            for issued, mask in zip((True, False), masks, strict=True):
                events += [
                    Event(int(cycle), queue, issued)
                    for number, queue in enumerate(self._queues)
                    if int(mask, 16) >> number & 1
                ]
        return events
