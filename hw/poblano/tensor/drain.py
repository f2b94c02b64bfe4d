"""Reads finished tiles out of the accumulators and cuts them into result items."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from poblano.commands import ADDRESS_WIDTH
from poblano.component import Component
from poblano.config import SliceConfiguration
from poblano.tensor.geometry import Geometry
from poblano.tensor.job import ResultKind, job_layout
from poblano.tensor.tile_walker import TileWalker
from poblano_golden.formats import BLOCK_SIZE

__all__ = ["Drain", "step_layout"]


def step_layout(configuration: SliceConfiguration) -> data.StructLayout:
    """Return what the results path is told of one drain step.

    `takes` says that accumulators are read, of which the first `valid` count; `emits` that an
    item is complete with this step, `flush` that it is the last of its row. `codes` and `scales`
    are the item's addresses.
    """
    cols = configuration.tensor.cols
    return data.StructLayout(
        {
            "takes": 1,
            "emits": 1,
            "flush": 1,
            "valid": range(cols + 1),
            "codes": ADDRESS_WIDTH,
            "scales": ADDRESS_WIDTH,
        }
    )


class _Walk:
    """A result address that follows the items of a row, the rows of a tile, and the tiles."""

    def __init__(self, name: str) -> None:
        self.column = Signal(ADDRESS_WIDTH, name=f"{name}_column")
        self.tile = Signal(ADDRESS_WIDTH, name=f"{name}_tile")
        self.row = Signal(ADDRESS_WIDTH, name=f"{name}_row")
        self.item = Signal(ADDRESS_WIDTH, name=f"{name}_item")

    def load(self, address) -> list:
        """Go to the first item of all."""
        return [s.eq(address) for s in (self.column, self.tile, self.row, self.item)]

    def next_item(self, step) -> list:
        return [self.item.eq(self.item + step)]

    def next_row(self, step) -> list:
        return [s.eq(self.row + step) for s in (self.row, self.item)]

    def next_tile(self, step) -> list:
        return [s.eq(self.tile + step) for s in (self.tile, self.row, self.item)]

    def next_column(self, step) -> list:
        return self.load(self.column + step)


class Drain(Component):
    """Reads each finished tile row by row, and within a row by column sub-tiles.

    A wide format makes one item of every sub-tile of a row. An MX format makes one item of
    every 32 results of a row; where 32 is no multiple of the columns a row may need a last step
    that reads nothing. A step that completes an item waits for a free place in the item queue.

    Parameters
    ----------
    configuration:
        The slice.

    Members
    -------
    job, start:
        The product, and the pulse that begins it.
    tile_ready:
        Pulses when a tile's accumulators are complete.
    room:
        Whether one more item may be on its way.
    tile_drained:
        Pulses with the last step of a tile.
    step_valid, step, bank, accumulator, row:
        The step of this cycle, and the accumulators that it reads.
    done:
        Every step of the product has been made.
    """

    def __init__(self, *, configuration: SliceConfiguration) -> None:
        self.configuration = configuration
        self.geometry = geometry = Geometry(configuration)
        super().__init__(
            {
                "job": In(job_layout(configuration)),
                "start": In(1),
                "tile_ready": In(1),
                "room": In(1),
                "tile_drained": Out(1),
                "step_valid": Out(1),
                "step": Out(step_layout(configuration)),
                "bank": Out(1),
                "accumulator": Out(range(max(2, geometry.accumulators))),
                "row": Out(range(max(2, geometry.a.rows))),
                "done": Out(1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        a_side, b_side = self.geometry.a, self.geometry.b
        m.submodules.tiles = tiles = TileWalker(tile_rows=a_side.tile, tile_cols=b_side.tile)

        busy = Signal()
        pending = Signal(2)
        bank = Signal()
        row = Signal(range(max(2, a_side.rows)))
        row_tile = Signal(range(max(2, a_side.tiles)))
        rows_left = Signal(range(a_side.tile + 1))
        is_first_step = Signal(init=1)

        steps = Signal()
        row_last = Signal()
        tile_last = Signal()
        col_tile = Signal(range(max(2, b_side.tiles)))
        self._row_steps(m, steps, row_last, col_tile, tiles)
        rows = Signal.like(rows_left)
        m.d.comb += [
            rows.eq(Mux(is_first_step, tiles.rows, rows_left)),
            steps.eq(busy & (pending != 0) & (~self.step.emits | self.room)),
            tile_last.eq(row_last & (rows == 1)),
            self.step_valid.eq(steps),
            self.bank.eq(bank),
            self.row.eq(row),
            self.accumulator.eq(col_tile * a_side.tiles + row_tile),
            self.tile_drained.eq(steps & tile_last),
            self.done.eq(~busy),
            tiles.m.eq(self.job.m),
            tiles.n.eq(self.job.n),
            tiles.start.eq(self.start),
            tiles.step.eq(self.tile_drained),
        ]
        m.d.sync += pending.eq(pending + self.tile_ready - self.tile_drained)

        with m.If(steps & row_last):
            m.d.sync += [rows_left.eq(rows - 1), is_first_step.eq(tile_last), row.eq(row + 1)]
            with m.If(row == a_side.rows - 1):
                m.d.sync += [row.eq(0), row_tile.eq(row_tile + 1)]
            with m.If(tile_last):
                m.d.sync += [row.eq(0), row_tile.eq(0), bank.eq(~bank)]
                with m.If(tiles.last):
                    m.d.sync += busy.eq(0)
        with m.If(self.start):
            m.d.sync += busy.eq(1)
        self._addresses(m, steps, row_last, tile_last, tiles.last_row)
        return m

    def _row_steps(self, m: Module, steps, row_last, col_tile, tiles: TileWalker) -> None:
        """Walk the steps of one row: which read, which complete an item."""
        cols = self.configuration.tensor.cols
        side = self.geometry.b
        step = self.step
        is_mx = self.job.result == ResultKind.MX

        takes = Signal()
        flush = Signal()
        emits = Signal()
        valid = Signal.like(step.valid)
        taken = Signal(range(side.tile + cols + 1))  # results of the row read before this step
        filled = Signal(range(BLOCK_SIZE + cols))  # of them, those not yet in an item
        left = Signal.like(taken)
        after = Signal(range(BLOCK_SIZE + 2 * cols))
        m.d.comb += [
            takes.eq(taken < tiles.cols),
            left.eq(Mux(takes, tiles.cols - taken, 0)),
            valid.eq(Mux(left < cols, left, cols)),
            after.eq(filled + Mux(takes, valid, 0)),
            flush.eq((left <= cols) & (~is_mx | (after <= BLOCK_SIZE))),
            emits.eq(~is_mx | (after >= BLOCK_SIZE) | flush),
            row_last.eq(flush),
            step.takes.eq(takes),
            step.valid.eq(valid),
            step.flush.eq(flush),
            step.emits.eq(emits),
        ]
        with m.If(steps):
            with m.If(row_last):
                m.d.sync += [col_tile.eq(0), taken.eq(0), filled.eq(0)]
            with m.Else():
                m.d.sync += [
                    col_tile.eq(col_tile + 1),
                    taken.eq(taken + valid),
                    filled.eq(Mux(after >= BLOCK_SIZE, after - BLOCK_SIZE, after)),
                ]

    def _addresses(self, m: Module, steps, row_last, tile_last, last_row) -> None:
        """Follow the item's addresses; the strides of the job become steps of the walk."""
        job, geometry = self.job, self.geometry
        tile_rows, tile_cols = geometry.a.tile, geometry.b.tile
        beat_bytes = Signal(8)
        block_bytes = Signal(6)
        m.d.comb += [
            beat_bytes.eq(Mux(job.result == ResultKind.FP32, 4, 2) * geometry.b.rows),
            block_bytes.eq(Mux(job.d.wide, 32, 16)),
        ]
        is_mx = job.result == ResultKind.MX
        blocks = tile_cols // BLOCK_SIZE
        codes_steps = {
            "item": Mux(is_mx, job.d.code_stride, beat_bytes),
            "row": Mux(is_mx, block_bytes, job.d.code_stride),
            "tile": Mux(is_mx, block_bytes, job.d.code_stride) * tile_rows,
            "column": Mux(is_mx, job.d.code_stride * blocks, beat_bytes * geometry.b.tiles),
        }
        scale_steps = {
            "item": job.d.scale_stride,
            "row": C(1),
            "tile": C(tile_rows),
            "column": job.d.scale_stride * blocks,
        }
        walks = {
            "codes": (job.d.codes, codes_steps),
            "scales": (job.d.scales, scale_steps),
        }
        for name, (base, by) in walks.items():
            walk = _Walk(name)
            m.d.comb += self.step[name].eq(walk.item)
            with m.If(steps & tile_last):
                with m.If(last_row):
                    m.d.sync += walk.next_column(by["column"])
                with m.Else():
                    m.d.sync += walk.next_tile(by["tile"])
            with m.Elif(steps & row_last):
                m.d.sync += walk.next_row(by["row"])
            with m.Elif(steps & self.step.emits):
                m.d.sync += walk.next_item(by["item"])
            with m.If(self.start):
                m.d.sync += walk.load(base)
