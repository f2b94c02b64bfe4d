"""Sizes that follow from a tensor engine's configuration; imports no Amaranth."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from poblano.arith.modes import operand_formats
from poblano.config import SliceConfiguration

__all__ = ["Geometry", "Side"]


@dataclass(frozen=True)
class Side:
    """One side of the array: `rows` units, each with `tiles` rows of a tile.

    Parameters
    ----------
    rows, tiles:
        Rows of units, and sub-tiles of that many rows; a tile has `rows * tiles` rows.
    wide:
        Whether the engine has 8-bit formats, so that a block may take 32 bytes instead of 16.
    line:
        Bytes of an L1 line.
    """

    rows: int
    tiles: int
    wide: bool
    line: int

    @property
    def tile(self) -> int:
        """Rows of a tile; also the bytes of its scales for one k-block."""
        return self.rows * self.tiles

    @property
    def block_bytes(self) -> int:
        """Bytes of the largest block of codes."""
        return 32 if self.wide else 16

    @property
    def entry(self) -> int:
        """Bytes of a panel entry: the largest codes of one sub-tile."""
        return self.rows * self.block_bytes

    @cached_property
    def chunk(self) -> int:
        """Bytes that arrive at once: the largest divisor of an entry that a line can hold."""
        return max(n for n in range(1, min(self.entry, self.line) + 1) if self.entry % n == 0)


@dataclass(frozen=True)
class Geometry:
    """Sizes of a tensor engine that hardware and timing share."""

    configuration: SliceConfiguration

    @cached_property
    def wide(self) -> bool:
        """Whether any operand format takes 8 bits an element."""
        return any(
            fmt.storage_bits == 8 for fmt in operand_formats(self.configuration.tensor.formats)
        )

    @cached_property
    def a(self) -> Side:
        """The side of operand A, and of the rows of results."""
        tensor = self.configuration.tensor
        return Side(tensor.rows, tensor.tile_rows, self.wide, self.configuration.l1.line)

    @cached_property
    def b(self) -> Side:
        """The side of operand B, and of the columns of results."""
        tensor = self.configuration.tensor
        return Side(tensor.cols, tensor.tile_cols, self.wide, self.configuration.l1.line)

    @property
    def accumulators(self) -> int:
        """Accumulators of a unit in one of its two banks."""
        return self.a.tiles * self.b.tiles

    @property
    def add_loop(self) -> int:
        """Fewest cycles between two additions to the same accumulator.

        The adder's registers, the write, and the read of what was written.
        """
        return self.configuration.tensor.pipeline.add + 2

    @property
    def item_bytes(self) -> int:
        """Bytes of the largest result item: a beat of FP32 values, or a block of codes."""
        return max(4 * self.b.rows, self.a.block_bytes)
