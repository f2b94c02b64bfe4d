"""The vector engine's timing contract; imports no Amaranth.

Cycle 0 follows the issue of a word; a count ends with the last byte written. L1 makes nothing wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from poblano.config import SliceConfiguration, VectorConfiguration
from poblano.l1.timing import lines_touched
from poblano.vector.latency import (
    NUMBER_LATENCY,
    parts_latency,
    result_latency,
    sum_ways,
)
from poblano.vector.layout import (
    WORD,
    number_of,
    pass_operands,
    reduction_words,
    stored_as,
)
from poblano_golden.formats import BLOCK_SIZE
from poblano_golden.vector import REDUCTIONS, Number

__all__ = [
    "DEBT_LIMIT",
    "GATHER_STAGES",
    "QUANTISER_STAGES",
    "QUEUE_DEPTH",
    "chain_cycles",
    "pass_cycles",
    "sum_ways",
    "topk_cycles",
]

DEBT_LIMIT = 2
"""Writes that earlier beats may still cause when a beat is emitted."""

QUEUE_DEPTH = 4
"""Items, and rows' words, that wait to be written."""

GATHER_STAGES = 1
"""Registers of a block that is gathered from beats."""

QUANTISER_STAGES = 1
"""Registers of the quantiser of MX results."""

_READ_LATENCY = 2
"""Cycles from a beat's emission to its elements at the lanes."""

_INDEX_CYCLES = 4
"""Cycles that a row by index takes before its first read."""

_POWER_SUM_LATENCY = 5


def chain_cycles(_configuration: SliceConfiguration, _values: Mapping[str, int]) -> int:
    """Return the cycles of a `vector.chain`: it is done when the next command may be accepted."""
    return 0


def pass_cycles(
    configuration: SliceConfiguration,
    values: Mapping[str, int],
    chain: Mapping[str, int],
    indices: Sequence[int] | None = None,
) -> int:
    """Return the cycles of a `vector.pass` with a chain.

    Parameters
    ----------
    configuration:
        The slice.
    values, chain:
        The fields of the pass, and of the chain that it runs through.
    indices:
        Those of A's rows, if the chain takes them by index.

    Raises
    ------
    ValueError
        If the chain takes rows by index and there is not one for each.
    """
    vector, rows = configuration.vector, values["rows"]
    if chain["indexed"] and (indices is None or len(indices) < rows):
        raise ValueError(f"indices must be those of {rows} rows")
    walk = _Walk(configuration, values["cols"])
    streams = _streams(configuration, values, chain)
    writes = _Writes(configuration, values, chain)
    result = _READ_LATENCY + result_latency(vector.pipeline)
    reduction = _READ_LATENCY + _reduction_latency(vector, REDUCTIONS[chain["reduction"]])
    words = reduction_words(chain)
    for row in range(rows):
        if chain["indexed"] and indices is not None:
            walk.pause(_INDEX_CYCLES)
            streams[-1].base = values["a"] + indices[row] * values["a_row_stride"]
        for start, count in walk.beats():
            last = start + count == values["cols"]
            runs = list(writes.runs(row, start, count))
            debt = writes.most(start, count) + (words if last else 0)
            cycle = walk.emit(_reads(streams, row, start, count), debt)
            writes.items += ((cycle + result + writes.latency, lines) for lines in runs)
            if last:
                writes.words += [cycle + reduction + 1] * words
    return max(writes.finished(), walk.cycle - 1 + result) + 1


def topk_cycles(configuration: SliceConfiguration, values: Mapping[str, int]) -> int:
    """Return the cycles of a `vector.topk`."""
    size = number_of(values["a_format"]).size
    line = configuration.l1.line
    stream = _Stream(values["a"], values["a_row_stride"], size, line)
    walk = _Walk(configuration, values["cols"])
    found = _READ_LATENCY + NUMBER_LATENCY + _maximum_latency(configuration.vector)
    last = 0
    for row in range(values["rows"]):
        for _ in range(values["k"]):
            for start, count in walk.beats():
                ends = start + count == values["cols"]
                cycle = walk.emit(stream.reads(row, start, count), 2 if ends else 0)
                if ends:
                    last = cycle + found + 2
                    walk.pause(cycle + found - walk.cycle + 1)
    return last + 1


def _maximum_latency(vector: VectorConfiguration) -> int:
    return -(-(vector.lanes.bit_length() - 1) // 2) + 1


def _reduction_latency(vector: VectorConfiguration, reduction: str) -> int:
    """Return the cycles from a row's last elements at the lanes to the row's words."""
    if reduction == "softmax":
        return parts_latency(vector.pipeline) + _POWER_SUM_LATENCY
    if reduction == "maximum":
        return result_latency(vector.pipeline) + _maximum_latency(vector)
    levels = (vector.lanes * sum_ways(vector)).bit_length() - 1
    return result_latency(vector.pipeline) + (levels + 1) * vector.pipeline.add + 1


class _Walk:
    """The cycle of the next read, and the writes that are owed then."""

    def __init__(self, configuration: SliceConfiguration, cols: int) -> None:
        self.lanes = configuration.vector.lanes
        self.cols = cols
        self.cycle = 0
        self.debt = 0

    def beats(self) -> Iterator[tuple[int, int]]:
        """Return first column and elements of every beat of a row."""
        for start in range(0, self.cols, self.lanes):
            yield start, min(self.lanes, self.cols - start)

    def pause(self, cycles: int) -> None:
        """Let cycles pass."""
        self.cycle += cycles
        self.debt = max(0, self.debt - cycles)

    def emit(self, reads: int, writes: int) -> int:
        """Return the cycle of the next beat, which needs and causes so many accesses."""
        self.pause(max(1, reads) - 1)
        self.pause(max(0, self.debt - DEBT_LIMIT))
        cycle = self.cycle
        self.pause(1)
        self.debt += writes
        return cycle


@dataclass
class _Stream:
    """A stream's place, and the line that it keeps; row scalars have a `size` of 0."""

    base: int
    stride: int
    size: int
    line: int
    by_index: bool = False
    kept: int = -1

    def reads(self, row: int, start: int, count: int) -> int:
        """Return the lines that a beat lacks."""
        if self.size == 0:
            if start:
                return 0
            first = last = (self.base + row * WORD) // self.line
        else:
            row_place = self.base + (0 if self.by_index else row * self.stride)
            place = row_place + start * self.size
            first, last = place // self.line, (place + count * self.size - 1) // self.line
        lacks = int(self.kept != first) + int(last != first)
        self.kept = last
        return lacks


def _streams(
    configuration: SliceConfiguration, values: Mapping[str, int], chain: Mapping[str, int]
) -> list[_Stream]:
    """Return the streams of a pass, A last."""
    line, operands = configuration.l1.line, pass_operands(chain)
    found = [_Stream(values[name], 0, 0, line) for name in "pq" if name in operands]
    for side in "bca":
        if side == "a" or side in operands:
            size = number_of(chain[f"{side}_format"]).size
            found.append(_Stream(values[side], values[f"{side}_row_stride"], size, line))
    found[-1].by_index = bool(chain["indexed"])
    return found


def _reads(streams: list[_Stream], row: int, start: int, count: int) -> int:
    return sum(stream.reads(row, start, count) for stream in streams)


@dataclass
class _Writes:
    """What a pass writes: items as (first cycle, lines) in order, and words as cycles."""

    configuration: SliceConfiguration
    values: Mapping[str, int]
    chain: Mapping[str, int]
    items: list[tuple[int, int]] = field(default_factory=list)
    words: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.format = stored_as(self.chain)
        wide = isinstance(self.format, Number)
        self.latency = 1 if wide else 1 + GATHER_STAGES + QUANTISER_STAGES
        unit = 0
        if isinstance(self.format, Number):
            unit = self.configuration.vector.lanes * self.format.size
        elif self.format is not None:
            unit = self.format.block_bytes
        places = self.values["d_codes"] | self.values["d_code_stride"]
        self.straddles = int(unit > 0 and places % unit != 0)

    def _blocks(self, start: int, count: int) -> range:
        """Return the blocks that a beat completes."""
        end = start + count
        ends_row = end == self.values["cols"]
        return range(start // BLOCK_SIZE, -(-end // BLOCK_SIZE) if ends_row else end // BLOCK_SIZE)

    def most(self, start: int, count: int) -> int:
        """Return the writes that a beat is taken to cause."""
        if self.format is None:
            return 0
        if isinstance(self.format, Number):
            return 1 + self.straddles
        return len(self._blocks(start, count)) * (2 + self.straddles)

    def runs(self, row: int, start: int, count: int) -> Iterator[int]:
        """Return the lines of every run that a beat causes."""
        values, line = self.values, self.configuration.l1.line
        codes, stride = values["d_codes"], values["d_code_stride"]
        if isinstance(self.format, Number):
            size = self.format.size
            yield lines_touched(codes + row * stride + start * size, count * size, line)
        elif self.format is not None:
            size = self.format.block_bytes
            for block in self._blocks(start, count):
                yield lines_touched(codes + block * stride + row * size, size, line)
                yield 1

    def finished(self) -> int:
        """Return the cycle of the last write: words go first, nothing is interrupted."""
        now, item, word = 0, 0, 0
        while item < len(self.items) or word < len(self.words):
            waiting = [self.items[item][0]] if item < len(self.items) else []
            waiting += [self.words[word]] if word < len(self.words) else []
            now = max(now, min(waiting))
            if word < len(self.words) and self.words[word] <= now:
                now, word = now + 1, word + 1
            else:
                now, item = now + self.items[item][1], item + 1
        return now - 1
