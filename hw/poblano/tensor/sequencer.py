"""Issues the beats of a matrix product to the array, one a cycle."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from poblano.component import Component
from poblano.config import SliceConfiguration
from poblano.tensor.geometry import Geometry
from poblano.tensor.job import job_layout
from poblano.tensor.tile_walker import TileWalker

__all__ = ["Sequencer", "beat_layout"]


def beat_layout(configuration: SliceConfiguration) -> data.StructLayout:
    """Return what the sequencer tells the array for one beat.

    `row_tile` and `col_tile` choose the operands; `accumulator` counts within one bank;
    `first_block` starts sums at +0; `tile_last` marks the last beat of a tile.
    """
    geometry = Geometry(configuration)
    return data.StructLayout(
        {
            "panel": 1,
            "bank": 1,
            "row_tile": range(max(2, geometry.a.tiles)),
            "col_tile": range(max(2, geometry.b.tiles)),
            "accumulator": range(max(2, geometry.accumulators)),
            "beat": 2,
            "count": 6,
            "first_beat": 1,
            "last_beat": 1,
            "first_block": 1,
            "tile_last": 1,
        }
    )


class Sequencer(Component):
    """Issues, for every k-block of every tile, the beats of all its sub-tiles.

    Column sub-tiles are the outer loop, row sub-tiles the next, beats of a block the inner one.
    A k-block begins when its panel is full, when the accumulators can be added to again
    (`Geometry.add_loop` cycles after the k-block before began) and, the first of a tile, when
    the bank that it fills is drained.

    Parameters
    ----------
    configuration:
        The slice.

    Members
    -------
    job, start:
        The product, and the pulse that begins it.
    idle:
        Every beat of the product has been issued.
    panel_full:
        Whether each panel holds a k-block.
    panel_done:
        Pulses with the last beat of the k-block in that panel.
    tile_issued:
        Pulses with the last beat of a tile.
    tile_drained:
        Pulses when a bank has been drained.
    beat_valid, beat:
        The beat that is issued in this cycle.
    """

    def __init__(self, *, configuration: SliceConfiguration) -> None:
        self.geometry = Geometry(configuration)
        super().__init__(
            {
                "job": In(job_layout(configuration)),
                "start": In(1),
                "idle": Out(1),
                "panel_full": In(2),
                "panel_done": Out(2),
                "tile_issued": Out(1),
                "tile_drained": In(1),
                "beat_valid": Out(1),
                "beat": Out(beat_layout(configuration)),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        job, beat, geometry = self.job, self.beat, self.geometry
        a_side, b_side = geometry.a, geometry.b
        m.submodules.tiles = tiles = TileWalker(tile_rows=a_side.tile, tile_cols=b_side.tile)
        m.d.comb += [
            tiles.m.eq(job.m),
            tiles.n.eq(job.n),
            tiles.start.eq(self.start),
        ]

        busy = Signal()
        blocks_left = Signal.like(job.last_block)
        position = Signal(
            data.StructLayout(
                {
                    name: beat_layout(geometry.configuration)[name].shape
                    for name in ("panel", "bank", "row_tile", "col_tile", "beat")
                }
            )
        )
        last_beat = Signal(2)
        last_row = Signal()
        last_col = Signal()
        m.d.comb += [
            last_beat.eq(Cat(job.a.wide | job.b.wide, job.a.wide & job.b.wide)),
            last_row.eq(_is_last(position.row_tile, tiles.rows, a_side)),
            last_col.eq(_is_last(position.col_tile, tiles.cols, b_side)),
        ]

        begins = Signal()
        beat_last = Signal()
        block_last = Signal()
        tile_last = Signal()
        first_block = Signal()
        m.d.comb += [
            begins.eq((position.row_tile == 0) & (position.col_tile == 0) & (position.beat == 0)),
            beat_last.eq(position.beat == last_beat),
            block_last.eq(beat_last & last_row & last_col),
            tile_last.eq(block_last & (blocks_left == 0)),
            first_block.eq(blocks_left == job.last_block),
        ]
        issues = Signal()
        may_begin = self._may_begin(m, issues & begins, issues & tile_last, first_block, position)
        m.d.comb += [
            issues.eq(busy & (~begins | may_begin)),
            self.beat_valid.eq(issues),
            beat.panel.eq(position.panel),
            beat.bank.eq(position.bank),
            beat.row_tile.eq(position.row_tile),
            beat.col_tile.eq(position.col_tile),
            beat.beat.eq(position.beat),
            beat.accumulator.eq(position.col_tile * a_side.tiles + position.row_tile),
            beat.count.eq(Mux(blocks_left == 0, job.tail, 32)),
            beat.first_beat.eq(position.beat == 0),
            beat.last_beat.eq(beat_last),
            beat.first_block.eq(first_block),
            beat.tile_last.eq(tile_last),
            self.panel_done.eq((issues & block_last) << position.panel),
            self.idle.eq(~busy),
            self.tile_issued.eq(issues & tile_last),
            tiles.step.eq(self.tile_issued),
        ]

        with m.If(issues):
            m.d.sync += position.beat.eq(position.beat + 1)
            with m.If(beat_last):
                m.d.sync += [position.beat.eq(0), position.row_tile.eq(position.row_tile + 1)]
                with m.If(last_row):
                    m.d.sync += [
                        position.row_tile.eq(0),
                        position.col_tile.eq(Mux(last_col, 0, position.col_tile + 1)),
                    ]
            with m.If(block_last):
                m.d.sync += [position.panel.eq(~position.panel), blocks_left.eq(blocks_left - 1)]
            with m.If(tile_last):
                m.d.sync += [position.bank.eq(~position.bank), blocks_left.eq(job.last_block)]
                with m.If(tiles.last):
                    m.d.sync += busy.eq(0)
        with m.If(self.start):
            m.d.sync += [busy.eq(1), blocks_left.eq(job.last_block)]
        return m

    def _may_begin(self, m: Module, block_begins, tile_ends, first_block, position) -> Value:
        """Whether the next k-block may begin in this cycle."""
        loop = self.geometry.add_loop
        age = Signal(range(loop + 1), init=loop)
        with m.If(block_begins):
            m.d.sync += age.eq(1)
        with m.Elif(age != loop):
            m.d.sync += age.eq(age + 1)

        undrained = Signal(2)
        m.d.sync += undrained.eq(undrained + tile_ends - self.tile_drained)
        bank_free = Signal()
        m.d.comb += bank_free.eq(~first_block | (undrained != 2))
        return self.panel_full.bit_select(position.panel, 1) & (age == loop) & bank_free


def _is_last(tile: Value, covered: Value, side) -> Value:
    """Whether sub-tile `tile` is the last that has any of the tile's `covered` results."""
    return Array(covered <= side.rows * (index + 1) for index in range(side.tiles))[tile]
