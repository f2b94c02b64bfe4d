"""Walks the tiles of a matrix product in the order that every part of the engine follows."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.commands import ADDRESS_WIDTH
from poblano.component import Component

__all__ = ["TileWalker"]


class TileWalker(Component):
    """Counts tiles, rows innermost, and says how much of the product the current one covers.

    Parameters
    ----------
    tile_rows, tile_cols:
        Results of a whole tile in both directions.

    Members
    -------
    start:
        Loads the first tile of an `m` x `n` product.
    step:
        Moves to the next tile.
    rows, cols:
        Results that the current tile covers; the ragged edge is smaller.
    last_row:
        The tile is the last of its column of tiles.
    last:
        The tile is the last of all.
    """

    def __init__(self, *, tile_rows: int, tile_cols: int) -> None:
        self.tile_rows = tile_rows
        self.tile_cols = tile_cols
        super().__init__(
            {
                "start": In(1),
                "m": In(ADDRESS_WIDTH),
                "n": In(ADDRESS_WIDTH),
                "step": In(1),
                "rows": Out(range(tile_rows + 1)),
                "cols": Out(range(tile_cols + 1)),
                "last_row": Out(1),
                "last": Out(1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        rows_left = Signal(ADDRESS_WIDTH)
        cols_left = Signal(ADDRESS_WIDTH)
        last_col = Signal()
        m.d.comb += [
            self.last_row.eq(rows_left <= self.tile_rows),
            last_col.eq(cols_left <= self.tile_cols),
            self.last.eq(self.last_row & last_col),
            self.rows.eq(Mux(self.last_row, rows_left, self.tile_rows)),
            self.cols.eq(Mux(last_col, cols_left, self.tile_cols)),
        ]
        with m.If(self.start):
            m.d.sync += [rows_left.eq(self.m), cols_left.eq(self.n)]
        with m.Elif(self.step):
            with m.If(self.last_row):
                m.d.sync += [rows_left.eq(self.m), cols_left.eq(cols_left - self.tile_cols)]
            with m.Else():
                m.d.sync += rows_left.eq(rows_left - self.tile_rows)
        return m
