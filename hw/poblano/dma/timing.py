"""The DMA engine's timing contract; imports no Amaranth.

Rows pass three registers (walk, index, product) into the splitter, which issues one burst a cycle;
a data path moves the bursts' beats. Each event below is the cycle in which the hardware does the
thing; every `max` is one of the hardware's waits. The memory is ideal: it accepts addresses and
data at once, answers a read `latency` cycles after its acceptance and then with a beat a cycle,
and a write `latency` cycles after its last beat.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat

from poblano.axi_limits import BOUNDARY, MAX_BEATS
from poblano.config import SliceConfiguration

__all__ = [
    "BEAT_QUEUE_DEPTH",
    "BURST_QUEUE_DEPTH",
    "INDEX_BYTES",
    "INDEX_SHIFT",
    "MEMORY_LATENCY",
    "MoveTimeline",
    "burst_window",
    "bursts_of_row",
    "load_gather_cycles",
    "load_rows_cycles",
    "num_beats",
    "store_rows_cycles",
    "store_scatter_cycles",
]

MEMORY_LATENCY = 64
"""Cycles of the ideal memory."""

INDEX_SHIFT = 2
"""Zero bits at the end of an index's address."""

INDEX_BYTES = 1 << INDEX_SHIFT
"""Bytes of an index; where the indices lie is a multiple of it."""

BURST_QUEUE_DEPTH = 4
"""Bursts of a store whose addresses are issued and whose data are not being read yet."""

BEAT_QUEUE_DEPTH = 4
"""Beats of a store that are read, or on their way from L1, and not on the bus."""

_INDEX_READ = 2
"""Cycles to read a line of indices."""

_Row = tuple[int, int]
"""HBM and L1 address of a row."""


def burst_window(width: int) -> int:
    """Return the bytes of the aligned window that a burst on a bus of `width` bytes stays in.

    A burst within it has at most 256 beats and never crosses a 4 KiB boundary.
    """
    return min(BOUNDARY, MAX_BEATS * width)


def num_beats(address: int, length: int, width: int) -> int:
    """Return the beats of a burst of `length` bytes at `address`."""
    return -(-(address % width + length) // width)


def bursts_of_row(hbm: int, l1: int, length: int, width: int) -> Iterator[tuple[int, int, int]]:
    """Yield HBM address, L1 address and bytes of every burst of a row."""
    window = burst_window(width)
    while length:
        size = min(length, window - hbm % window)
        yield hbm, l1, size
        hbm, l1, length = hbm + size, l1 + size, length - size


class _Path(ABC):
    """Moves the beats of one burst after the other.

    Attributes
    ----------
    room:
        The first cycle in which the next burst may be issued.
    end:
        The cycle after the last byte so far was written.
    """

    def __init__(self, configuration: SliceConfiguration, latency: int) -> None:
        self.width = configuration.hbm.width
        self.line = configuration.l1.line
        self.latency = latency
        self.last_line = -1
        self.room = self.end = 0

    def straddles_anew(self, hbm: int, l1: int, length: int) -> bool:
        """Whether the first beat lies in two lines, the first of which is not at hand.

        Within a row it is at hand: the beat before ended in it.
        """
        known, self.last_line = self.last_line, (l1 + length - 1) // self.line
        beat = min(length, self.width - hbm % self.width)
        return l1 % self.line + beat > self.line and known != l1 // self.line

    @abstractmethod
    def burst(self, issue: int, hbm: int, l1: int, length: int) -> int:
        """Move a burst issued in cycle `issue`; return the cycle in which it is over."""


class _Load(_Path):
    """Beats enter a register, and from there the line that is being put together."""

    def __init__(self, configuration: SliceConfiguration, latency: int) -> None:
        super().__init__(configuration, latency)
        self.free = 0
        self.empty = True

    def burst(self, issue: int, hbm: int, l1: int, length: int) -> int:
        """Take the burst's beats as they come."""
        beats = num_beats(hbm, length, self.width)
        extra = int(self.straddles_anew(hbm, l1, length) and not self.empty)
        self.empty = False
        self.free = max(issue + 1 + self.latency, self.free) + beats + extra
        self.end = self.free + 2
        return self.free - 1 - (extra if beats == 1 else 0)


class _Store(_Path):
    """Lines are read, cut into beats, and queued for the bus."""

    def __init__(self, configuration: SliceConfiguration, latency: int) -> None:
        super().__init__(configuration, latency)
        self.emitted = 0
        self.begun = deque([-1] * BURST_QUEUE_DEPTH, BURST_QUEUE_DEPTH)

    def burst(self, issue: int, hbm: int, l1: int, length: int) -> int:
        """Read the burst's beats, the last of which enters the queue a cycle after its line."""
        begin = max(issue + 1, self.emitted)
        extra = int(self.straddles_anew(hbm, l1, length))
        self.emitted = begin + num_beats(hbm, length, self.width) + extra
        self.begun.append(begin)
        self.room = self.begun[0] + 1
        answer = self.emitted + 2 + self.latency
        self.end = answer + 1
        return answer


class MoveTimeline:
    """When each of a sequence of moves of one half of the engine is done.

    Moves overlap: rows of the next are walked while bursts of the one before are on their way.

    Parameters
    ----------
    configuration:
        The slice.
    engine:
        `load` or `store`.
    latency:
        Cycles of the memory.

    Attributes
    ----------
    ready:
        The first cycle in which the engine accepts another word.
    """

    def __init__(
        self, configuration: SliceConfiguration, engine: str, latency: int = MEMORY_LATENCY
    ) -> None:
        self.configuration = configuration
        self.ready = 0
        path = {"load": _Load, "store": _Store}[engine]
        self._path = path(configuration, latency)
        outstanding = configuration.hbm.outstanding
        self._over = deque([-1] * outstanding, outstanding)
        # the cycle in which the row before left each register
        self._walk = self._index = self._product = self._issue = 0

    def run(
        self,
        values: Mapping[str, int],
        indices: Sequence[int] | None = None,
        accepted: int | None = None,
    ) -> int:
        """Return the cycle in which the engine reports the next move done.

        Parameters
        ----------
        values:
            The command's fields.
        indices:
            One a row for `gather` and `scatter`, else None.
        accepted:
            The cycle in which the engine accepts the word, by default `ready`.

        Raises
        ------
        ValueError
            If there is not an index a row, or the engine accepts no word in that cycle yet.
        """
        accepted = self.ready if accepted is None else accepted
        if accepted < self.ready:
            raise ValueError(f"a word can be accepted from cycle {self.ready}; got {accepted}")
        self._walk = self.ready = max(accepted + 1, self._walk)
        if indices is None:
            rows, waits = _plain_rows(values), repeat(0)
        else:
            rows, waits = self._indexed_rows(values, indices)
        width = self.configuration.hbm.width
        for (hbm, l1), wait in zip(rows, waits, strict=False):
            self._walk = max(self._walk + 1 + wait, self._index)
            self._index = max(self._walk + 1, self._product)
            self._product = max(self._index + 1, self._issue)
            self._issue = max(self._issue, self._product)
            for burst in bursts_of_row(hbm, l1, values["length"], width):
                self._issue = max(self._issue + 1, self._over[0] + 1, self._path.room)
                self._over.append(self._path.burst(self._issue, *burst))
        return self._path.end

    def _indexed_rows(
        self, values: Mapping[str, int], indices: Sequence[int]
    ) -> tuple[Iterator[_Row], Iterator[int]]:
        """Return the rows, and the cycles that each row's index takes to be read."""
        if len(indices) != values["rows"]:
            raise ValueError(f"indices must be {values['rows']}, one a row, not {len(indices)}")
        line = self.configuration.l1.line
        rows = (
            (
                values["hbm"] + int(index) * values["hbm_row_stride"],
                values["l1"] + number * values["l1_row_stride"],
            )
            for number, index in enumerate(indices)
        )
        waits = (
            _INDEX_READ
            if number == 0 or (values["indices"] + number * INDEX_BYTES) % line == 0
            else 0
            for number in range(len(indices))
        )
        return rows, waits


def _plain_rows(values: Mapping[str, int]) -> Iterator[_Row]:
    for plane in range(values["planes"]):
        for row in range(values["rows"]):
            yield (
                values["hbm"] + plane * values["hbm_plane_stride"] + row * values["hbm_row_stride"],
                values["l1"] + plane * values["l1_plane_stride"] + row * values["l1_row_stride"],
            )


def _alone(
    configuration: SliceConfiguration,
    engine: str,
    values: Mapping[str, int],
    latency: int,
    indices: Sequence[int] | None = None,
) -> int:
    """Return the cycles of a move alone; cycle 0 follows the acceptance of its word."""
    return MoveTimeline(configuration, engine, latency).run(values, indices, accepted=0) - 1


def load_rows_cycles(
    configuration: SliceConfiguration,
    values: Mapping[str, int],
    *,
    latency: int = MEMORY_LATENCY,
) -> int:
    """Return the cycles of a `load.rows` from issue to the last byte in L1, alone."""
    return _alone(configuration, "load", values, latency)


def load_gather_cycles(
    configuration: SliceConfiguration,
    values: Mapping[str, int],
    indices: Sequence[int],
    *,
    latency: int = MEMORY_LATENCY,
) -> int:
    """Return the cycles of a `load.gather` with these indices, one a row, alone."""
    return _alone(configuration, "load", values, latency, indices)


def store_rows_cycles(
    configuration: SliceConfiguration,
    values: Mapping[str, int],
    *,
    latency: int = MEMORY_LATENCY,
) -> int:
    """Return the cycles of a `store.rows` from issue to its last write response, alone."""
    return _alone(configuration, "store", values, latency)


def store_scatter_cycles(
    configuration: SliceConfiguration,
    values: Mapping[str, int],
    indices: Sequence[int],
    *,
    latency: int = MEMORY_LATENCY,
) -> int:
    """Return the cycles of a `store.scatter` with these indices, one a row, alone."""
    return _alone(configuration, "store", values, latency, indices)
