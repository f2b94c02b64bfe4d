"""The tensor engine's timing contract; imports no Amaranth.

The engine is four processes that meet at two-place buffers: fetch fills panels, the sequencer
multiplies them, drain empties finished tiles, the writer stores items. Each event below is the
cycle in which the hardware does the thing; every `max` is one of the hardware's waits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from poblano.arith.latency import unit_latency
from poblano.arith.modes import Mode
from poblano.config import SliceConfiguration
from poblano.l1.timing import LINE_READER_LATENCY, lines_touched, run_cycles
from poblano.tensor.geometry import Geometry, Side
from poblano.tensor.layout import format_of
from poblano_golden.formats import BLOCK_SIZE, MxFormat, num_blocks

__all__ = [
    "ITEM_LATENCY",
    "ITEM_QUEUE_DEPTH",
    "QUANTISER_STAGES",
    "Phases",
    "Timeline",
    "matmul_cycles",
    "matmul_phases",
    "write_latency",
]

QUANTISER_STAGES = 1
"""Pipeline registers inside the quantiser of results."""

ITEM_LATENCY = 3 + QUANTISER_STAGES
"""Cycles from a drain step to its item's arrival in the queue."""

ITEM_QUEUE_DEPTH = 8
"""Result items that may be on their way or queued."""

_FIRST_FETCH = 3
"""The cycle in which the first line is asked for: decode, start, request, line."""


def write_latency(configuration: SliceConfiguration) -> int:
    """Return the cycles from a block's last beat to the write of its accumulator."""
    return 2 + unit_latency(configuration.tensor.pipeline)


@dataclass(frozen=True)
class Phases:
    """Where the cycles of a product went.

    Attributes
    ----------
    cycles:
        From issue to the last byte written.
    beats:
        Cycles in which the array multiplied.
    fetch_wait:
        Cycles in which the array waited for operands after the first k-block began.
    add_wait:
        Cycles in which it waited for an addition to the same accumulators.
    drain_wait:
        Cycles in which it waited for a bank of accumulators.
    fill, tail:
        Cycles before the first beat and after the last.
    """

    cycles: int
    beats: int
    fetch_wait: int
    add_wait: int
    drain_wait: int
    fill: int
    tail: int


@dataclass(frozen=True)
class _Product:
    """A product with axis m resolved by exchanging its operands, as the decoder does."""

    geometry: Geometry
    values: Mapping[str, int]

    @property
    def sides(self) -> tuple[str, str]:
        """Names of the operands on the array's row side and column side."""
        return ("a", "b") if self.values["axis"] == 0 else ("b", "a")

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns of the results."""
        m, n = self.values["m"], self.values["n"]
        return (m, n) if self.values["axis"] == 0 else (n, m)

    def tiles(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield first row, first column, rows and columns of every tile, rows innermost."""
        geometry = self.geometry
        rows, cols = self.size
        for col in range(0, cols, geometry.b.tile):
            for row in range(0, rows, geometry.a.tile):
                yield (
                    row,
                    col,
                    min(geometry.a.tile, rows - row),
                    min(geometry.b.tile, cols - col),
                )

    def scale_cycles(self, side: Side, name: str, first: int, rows: int, block: int) -> int:
        """Cycles to fetch an operand's scales for a k-block of a tile."""
        address = self._address(side, f"{name}_scale", first, block)
        return run_cycles(address, rows, side.line, side.tile)

    def code_cycles(self, side: Side, name: str, first: int, rows: int, block: int) -> int:
        """Cycles to fetch an operand's codes for a k-block of a tile."""
        fmt = format_of(self.values[f"{name}_format"])
        assert isinstance(fmt, MxFormat)
        size = fmt.block_bytes
        address = self._address(side, f"{name}_code", first * size, block)
        return run_cycles(address, rows * size, side.line, side.chunk)

    def _address(self, side: Side, array: str, offset: int, block: int) -> int:
        """Place of a run within its line."""
        stride = self.values[f"{array}_stride"]
        return (self.values[f"{array}s"] + offset + block * stride) % side.line

    def row_items(self, cols: int) -> tuple[tuple[int, int], ...]:
        """For every item of a tile's row: drain steps that complete it, and results in it."""
        return _row_items(cols, self.geometry.b.rows, self.is_mx)

    @property
    def is_mx(self) -> bool:
        """Whether results are quantised."""
        return isinstance(format_of(self.values["d_format"]), MxFormat)

    def item_writes(self, row: int, col: int, results: int) -> int:
        """Line writes of the item that begins at result [row, col]."""
        values, line = self.values, self.geometry.configuration.l1.line
        fmt = format_of(values["d_format"])
        if isinstance(fmt, MxFormat):
            block = col // BLOCK_SIZE * values["d_code_stride"]
            address = values["d_codes"] + block + row * fmt.block_bytes
            return lines_touched(address, fmt.block_bytes, line) + 1
        size = fmt.element_bits // 8
        address = values["d_codes"] + row * values["d_code_stride"] + col * size
        return lines_touched(address, results * size, line)


@cache
def _row_items(cols: int, width: int, is_mx: bool) -> tuple[tuple[int, int], ...]:
    if not is_mx:
        return tuple((1, min(width, cols - col)) for col in range(0, cols, width))
    items: list[tuple[int, int]] = []
    steps = filled = taken = 0
    while taken < cols or filled:
        steps += 1
        taken, filled = min(cols, taken + width), filled + min(width, cols - taken)
        if filled >= BLOCK_SIZE or taken == cols:
            results = min(filled, BLOCK_SIZE)
            items.append((steps, results))
            filled -= results
            steps = 0
    return tuple(items)


class Timeline:
    """When each of a sequence of products is done, and where its cycles go.

    The engine's processes overlap between commands too; the state here is what one command
    leaves to the next.

    Parameters
    ----------
    configuration:
        The slice.

    Attributes
    ----------
    ready:
        The first cycle in which the engine accepts another word.
    """

    def __init__(self, configuration: SliceConfiguration) -> None:
        self.configuration = configuration
        self.geometry = Geometry(configuration)
        self.ready = 0
        self._fetched = 0  # first cycle in which the next k-block's fetch may run
        self._freed = [0, 0]  # cycle after the last beat from each panel
        self._may_add = 0  # first cycle in which the same accumulators can be added to
        self._may_issue = 0  # cycle after the last beat
        self._drained = [0, 0]  # cycle after the last drain step of each bank
        self._drain_free = 0
        self._popped = [0] * ITEM_QUEUE_DEPTH  # cycle after the item that many before was popped
        self._writer_free = 0
        self._collected = -1  # cycle in which the drain took its job
        self._blocks = 0
        self._tiles = 0

    def run(self, values: Mapping[str, int], accepted: int | None = None) -> Phases:
        """Return the cycles of the next product, from its issue to its last write.

        Parameters
        ----------
        values:
            The command's fields.
        accepted:
            The cycle in which the engine accepts its word, by default `ready`.

        Raises
        ------
        ValueError
            If the engine accepts no word in that cycle yet.
        """
        accepted = self.ready if accepted is None else accepted
        if accepted < self.ready:
            raise ValueError(f"a word can be accepted from cycle {self.ready}; got {accepted}")
        issue = accepted + 1
        product = _Product(self.geometry, values)
        geometry = self.geometry
        a, b = (format_of(values[f"{name}_format"]) for name in product.sides)
        assert isinstance(a, MxFormat)
        assert isinstance(b, MxFormat)
        beats_per_block = Mode(a, b).beats
        latency = write_latency(self.configuration)

        compute = max(issue + 2, self._may_issue + latency, self._collected + 1)
        collect = max(compute + 1, self._writer_free)
        self._collected = collect
        self._fetched = max(self._fetched, issue + _FIRST_FETCH)
        may_begin = compute + 2
        step = max(self._drain_free, collect + 2)
        fetch_wait = add_wait = drain_wait = fill = total = 0
        last_run = 0

        for row, col, rows, cols in product.tiles():
            beats = -(-rows // geometry.a.rows) * -(-cols // geometry.b.rows) * beats_per_block
            bank = self._tiles % 2
            for block in range(num_blocks(values["k"])):
                panel = self._blocks % 2
                begin_fetch = max(self._fetched, self._freed[panel])
                last_run = (
                    begin_fetch
                    + product.scale_cycles(geometry.a, product.sides[0], row, rows, block)
                    + product.code_cycles(geometry.a, product.sides[0], row, rows, block)
                    + product.scale_cycles(geometry.b, product.sides[1], col, cols, block)
                )
                self._fetched = last_run + product.code_cycles(
                    geometry.b, product.sides[1], col, cols, block
                )
                full = self._fetched + LINE_READER_LATENCY
                bank_free = self._drained[bank] if block == 0 else 0
                ready = max(self._may_issue, may_begin)
                begin = max(ready, self._may_add, full, bank_free)
                if not total:
                    fill = begin - issue
                else:
                    fetch_wait += max(0, full - max(ready, self._may_add, bank_free))
                    drain_wait += max(0, bank_free - max(ready, self._may_add))
                    add_wait += max(0, self._may_add - ready)
                self._may_issue = begin + beats
                self._may_add = begin + geometry.add_loop
                self._freed[panel] = self._may_issue
                total += beats
                self._blocks += 1

            step = max(step, self._may_issue + latency)
            for line in range(rows):
                first = 0
                for steps, results in product.row_items(cols):
                    # the step that completes the item
                    step = max(step + steps - 1, self._popped[0])
                    start = max(step + ITEM_LATENCY + 1, self._writer_free)
                    self._writer_free = start + product.item_writes(
                        row + line, col + first, results
                    )
                    self._popped = [*self._popped[1:], self._writer_free]
                    first += results
                    step += 1
            self._drained[bank] = step
            self._tiles += 1
        self._drain_free = step
        self.ready = max(issue + 2, last_run, compute + 1)
        return Phases(
            cycles=self._writer_free - issue,
            beats=total,
            fetch_wait=fetch_wait,
            add_wait=add_wait,
            drain_wait=drain_wait,
            fill=fill,
            tail=self._writer_free - self._may_issue,
        )


def matmul_phases(configuration: SliceConfiguration, values: Mapping[str, int]) -> Phases:
    """Return the cycles of a `tensor.matmul` alone, issue to last write, and where they went."""
    return Timeline(configuration).run(values)


def matmul_cycles(configuration: SliceConfiguration, values: Mapping[str, int]) -> int:
    """Return the cycles of a `tensor.matmul` alone, from issue to last write."""
    return matmul_phases(configuration, values).cycles
