"""Brings the operands of one k-block after the other into the panels."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import data, enum, stream
from amaranth.lib.wiring import In, Out

from poblano.commands import ADDRESS_WIDTH
from poblano.component import Component
from poblano.config import SliceConfiguration
from poblano.l1.line_reader import run_layout
from poblano.tensor.geometry import Geometry, Side
from poblano.tensor.job import job_layout
from poblano.tensor.tile_walker import TileWalker

__all__ = ["OperandFetch", "Run"]


class Run(enum.Enum, shape=2):
    """The four runs of a k-block, in the order in which they are read."""

    A_SCALES = 0
    A_CODES = 1
    B_SCALES = 2
    B_CODES = 3


class _Operand:
    """Addresses of one operand: of the current tile, and of its current k-block."""

    def __init__(self, name: str, side: Side) -> None:
        self.side = side
        layout = data.StructLayout({"codes": ADDRESS_WIDTH, "scales": ADDRESS_WIDTH})
        self.tile = Signal(layout, name=f"{name}_tile")
        self.block = Signal(layout, name=f"{name}_block")

    def load(self, place) -> list:
        """Go to the first tile."""
        return [
            *(target.codes.eq(place.codes) for target in (self.tile, self.block)),
            *(target.scales.eq(place.scales) for target in (self.tile, self.block)),
        ]

    def next_block(self, place) -> list:
        """Go to the next k-block of the tile."""
        return [
            self.block.codes.eq(self.block.codes + place.code_stride),
            self.block.scales.eq(self.block.scales + place.scale_stride),
        ]

    def same_tile(self) -> list:
        """Go back to the tile's first k-block."""
        return [self.block.eq(self.tile)]

    def next_tile(self, m: Module, place, name: str) -> list:
        """Go to the first k-block of the next tile."""
        step = self.side.tile * 16
        codes = Signal(ADDRESS_WIDTH, name=f"{name}_next_codes")
        scales = Signal(ADDRESS_WIDTH, name=f"{name}_next_scales")
        m.d.comb += [
            codes.eq(self.tile.codes + Mux(place.wide, 2 * step, step)),
            scales.eq(self.tile.scales + self.side.tile),
        ]
        return [
            *(target.codes.eq(codes) for target in (self.tile, self.block)),
            *(target.scales.eq(scales) for target in (self.tile, self.block)),
        ]


class OperandFetch(Component):
    """Asks for the four runs of every k-block of every tile, one panel ahead of the arithmetic.

    The first run of a k-block waits until its panel is free; the others follow without a gap.

    Parameters
    ----------
    configuration:
        The slice.

    Members
    -------
    job, start:
        The product to fetch for, and the pulse that begins it.
    idle:
        Every run of the product has been asked for.
    panel_free:
        Whether each of the two panels may be overwritten by chunks that come three cycles later.
    runs:
        Requests for a `LineReader`, whose kinds are `Run`.
    """

    def __init__(self, *, configuration: SliceConfiguration) -> None:
        self.geometry = Geometry(configuration)
        super().__init__(
            {
                "job": In(job_layout(configuration)),
                "start": In(1),
                "idle": Out(1),
                "panel_free": In(2),
                "runs": Out(stream.Signature(run_layout(len(Run)))),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        job = self.job
        a_side, b_side = self.geometry.a, self.geometry.b
        m.submodules.tiles = tiles = TileWalker(tile_rows=a_side.tile, tile_cols=b_side.tile)

        a = _Operand("a", a_side)
        b = _Operand("b", b_side)
        busy = Signal()
        panel = Signal()
        run = Signal(Run)
        blocks_left = Signal.like(job.last_block)

        accepted = Signal()
        block_done = Signal()
        tile_done = Signal()
        m.d.comb += [
            self.idle.eq(~busy),
            self.runs.valid.eq(
                busy & ((run != Run.A_SCALES) | self.panel_free.bit_select(panel, 1))
            ),
            accepted.eq(self.runs.valid & self.runs.ready),
            block_done.eq(accepted & (run == Run.B_CODES)),
            tile_done.eq(block_done & (blocks_left == 0)),
            tiles.m.eq(job.m),
            tiles.n.eq(job.n),
            tiles.start.eq(self.start),
            tiles.step.eq(tile_done),
        ]
        self._choose_run(m, run, a, b, tiles)

        with m.If(accepted):
            m.d.sync += run.eq(run.as_value() + 1)
        with m.If(block_done):
            m.d.sync += [panel.eq(~panel), blocks_left.eq(blocks_left - 1)]
            m.d.sync += [*a.next_block(job.a), *b.next_block(job.b)]
        with m.If(tile_done):
            m.d.sync += blocks_left.eq(job.last_block)
            next_a, next_b = a.next_tile(m, job.a, "a"), b.next_tile(m, job.b, "b")
            with m.If(tiles.last_row):
                m.d.sync += [*a.load(job.a), *next_b]
            with m.Else():
                m.d.sync += [*next_a, *b.same_tile()]
            with m.If(tiles.last):
                m.d.sync += busy.eq(0)
        with m.If(self.start):
            m.d.sync += busy.eq(1)
            m.d.sync += [blocks_left.eq(job.last_block), *a.load(job.a), *b.load(job.b)]
        return m

    def _choose_run(self, m: Module, run, a: _Operand, b: _Operand, tiles) -> None:
        """Address and length of the run that comes next."""
        payload = self.runs.payload

        def codes_length(count, wide):
            return Mux(wide, count << 5, count << 4)

        m.d.comb += payload.kind.eq(run)
        with m.Switch(run):
            with m.Case(Run.A_SCALES):
                m.d.comb += [payload.address.eq(a.block.scales), payload.length.eq(tiles.rows)]
            with m.Case(Run.A_CODES):
                m.d.comb += [
                    payload.address.eq(a.block.codes),
                    payload.length.eq(codes_length(tiles.rows, self.job.a.wide)),
                ]
            with m.Case(Run.B_SCALES):
                m.d.comb += [payload.address.eq(b.block.scales), payload.length.eq(tiles.cols)]
            with m.Case(Run.B_CODES):
                m.d.comb += [
                    payload.address.eq(b.block.codes),
                    payload.length.eq(codes_length(tiles.cols, self.job.b.wide)),
                ]
