"""Turns a job into its rows, each checked to lie inside L1 and HBM."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from poblano.commands import ADDRESS_WIDTH, HBM_ADDRESS_WIDTH
from poblano.component import Component, once
from poblano.config import SliceConfiguration
from poblano.dma.index_reader import IndexReader
from poblano.dma.job import job_layout, row_layout
from poblano.dma.timing import INDEX_BYTES

__all__ = ["RowWalker"]


class RowWalker(Component):
    """Emits the rows of a job, one a cycle; the next job's rows follow without a gap.

    A row appears three cycles after its job was accepted, one with an index two cycles later.

    Parameters
    ----------
    configuration:
        The slice.

    Members
    -------
    job:
        Moves.
    rows:
        Their rows in order; planes outermost.
    index_read, index_data:
        L1's read port for indices.
    outside, address:
        The next row, or its index, lies outside L1 or HBM; it is not emitted, and `address` is
        where it begins.
    busy:
        Rows are left.
    """

    def __init__(self, *, configuration: SliceConfiguration) -> None:
        self.configuration = configuration
        l1 = configuration.l1
        self.reader = IndexReader(line=l1.line, lines=l1.size // l1.line)
        super().__init__(
            {
                "job": In(stream.Signature(job_layout())),
                "rows": Out(stream.Signature(row_layout())),
                "index_read": Out(stream.Signature(self.reader.memory.payload.shape())),
                "index_data": In(8 * l1.line),
                "outside": Out(1),
                "address": Out(HBM_ADDRESS_WIDTH),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        reader = self.reader
        m.submodules.index_reader = once(reader, platform)
        wiring.connect(m, reader.memory, wiring.flipped(self.index_read))
        m.d.comb += reader.memory_data.eq(self.index_data)

        # Walk: the place of the next row by strides. One bit more than an address suffices, since
        # the first row whose place has it ends the walk.
        place = data.StructLayout({"hbm": HBM_ADDRESS_WIDTH + 1, "l1": ADDRESS_WIDTH + 1})
        job = Signal(job_layout())
        walking, first = Signal(), Signal()
        row, plane, next_plane = Signal(place), Signal(place), Signal(place)
        rows_left = Signal(job.rows.shape())
        planes_left = Signal(job.planes.shape())
        ends_plane, last, emits = Signal(), Signal(), Signal()

        # Index, product: the row's distance from its base, if an index gives it.
        stage = data.StructLayout(
            {
                "base": place,
                "length": ADDRESS_WIDTH,
                "first": 1,
                "last": 1,
            }
        )
        at_index, at_product = Signal(stage), Signal(stage)
        index = Signal(8 * INDEX_BYTES)
        stride = Signal(HBM_ADDRESS_WIDTH)
        distance = Signal(len(index) + len(stride))
        index_valid, product_valid = Signal(), Signal()
        index_ready, product_ready = Signal(), Signal()

        m.d.comb += [
            ends_plane.eq(rows_left == 1),
            last.eq(ends_plane & (planes_left == 1)),
            emits.eq(walking & index_ready & (reader.valid | ~job.indexed)),
            self.job.ready.eq(~walking | (emits & last)),
            self.busy.eq(walking | index_valid | product_valid),
            next_plane.hbm.eq(plane.hbm + job.hbm_plane_stride),
            next_plane.l1.eq(plane.l1 + job.l1_plane_stride),
            reader.start.eq(self.job.valid & self.job.ready),
            reader.address.eq(self.job.payload.indices),
            reader.wanted.eq(walking & job.indexed),
            reader.taken.eq(emits & job.indexed),
        ]
        with m.If(emits):
            m.d.sync += [
                first.eq(0),
                rows_left.eq(rows_left - 1),
                row.l1.eq(row.l1 + job.l1_row_stride),
            ]
            with m.If(~job.indexed):
                m.d.sync += row.hbm.eq(row.hbm + job.hbm_row_stride)
            with m.If(ends_plane):
                m.d.sync += [
                    planes_left.eq(planes_left - 1),
                    rows_left.eq(job.rows),
                    row.eq(next_plane),
                    plane.eq(next_plane),
                ]
            with m.If(last):
                m.d.sync += walking.eq(0)
        with m.If(self.job.valid & self.job.ready):
            new = self.job.payload
            m.d.sync += [
                job.eq(new),
                walking.eq(1),
                first.eq(1),
                rows_left.eq(new.rows),
                planes_left.eq(new.planes),
                *(target[part].eq(new[part]) for target in (row, plane) for part in ("hbm", "l1")),
            ]

        m.d.comb += [
            index_ready.eq(~index_valid | product_ready),
            product_ready.eq(~product_valid | self.rows.ready),
        ]
        with m.If(index_ready):
            m.d.sync += [
                index_valid.eq(emits),
                index.eq(Mux(job.indexed, reader.index, 0)),
                stride.eq(job.hbm_row_stride),
                at_index.base.eq(row),
                at_index.length.eq(job.length),
                at_index.first.eq(first),
                at_index.last.eq(last),
            ]
        with m.If(product_ready):
            m.d.sync += [
                product_valid.eq(index_valid),
                distance.eq(index * stride),
                at_product.eq(at_index),
            ]
        drained = ~index_valid & ~product_valid
        self._check(m, at_product, distance, product_valid, drained)
        return m

    def _check(self, m, at_product, distance, valid, drained) -> None:
        """Add the distance, and let only rows pass that lie inside both memories.

        A row or an index is refused when its turn has come, so that the rows before it are moved.
        """
        hbm = Signal(len(distance) + 1)
        hbm_end = Signal(len(hbm) + 1)
        l1_end = Signal(ADDRESS_WIDTH + 2)
        leaves_hbm, leaves_l1, leaves = Signal(), Signal(), Signal()
        base = at_product.base
        m.d.comb += [
            hbm.eq(base.hbm + distance),
            hbm_end.eq(hbm + at_product.length),
            l1_end.eq(base.l1 + at_product.length),
            leaves_hbm.eq(hbm_end > self.configuration.hbm.port_bytes),
            leaves_l1.eq(l1_end > self.configuration.l1.size),
            leaves.eq(leaves_hbm | leaves_l1),
            self.rows.valid.eq(valid & ~leaves),
            self.rows.payload.hbm.eq(hbm),
            self.rows.payload.l1.eq(base.l1),
            self.rows.payload.length.eq(at_product.length),
            self.rows.payload.first.eq(at_product.first),
            self.rows.payload.last.eq(at_product.last),
        ]
        with m.If(valid & self.rows.ready & leaves):
            m.d.comb += [
                self.outside.eq(1),
                self.address.eq(Mux(leaves_hbm, hbm, base.l1)),
            ]
        with m.Elif(self.reader.outside & drained & self.rows.ready):
            m.d.comb += [self.outside.eq(1), self.address.eq(self.reader.place)]
