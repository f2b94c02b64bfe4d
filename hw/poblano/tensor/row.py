"""One row of tensor units with their accumulators."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import data
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from poblano.arith.lanes import LanePlan
from poblano.arith.modes import operand_formats
from poblano.arith.operand import OperandDecoder, operand_layout
from poblano.component import Component, once
from poblano.config import TensorConfiguration
from poblano.tensor.unit import TensorUnit

__all__ = ["TensorRow", "unit_control_layout"]


def unit_control_layout(configuration: TensorConfiguration) -> data.StructLayout:
    """Return what every unit is told with its operands."""
    return data.StructLayout(
        {
            "mode": LanePlan(configuration.formats).mode_width,
            "first_beat": 1,
            "last_beat": 1,
            "valid": 1,
        }
    )


class TensorRow(Component):
    """A row of `cols` units that share operand A, and their accumulators in one memory.

    Operand A arrives as a block of codes one cycle before the units need it; it is decoded and
    registered here. The accumulators have a port for reading before an addition, one for
    writing after it, and one for draining; each read takes a cycle.

    Parameters
    ----------
    configuration:
        The tensor engine.

    Members
    -------
    codes, scale, mode, beat, count:
        Operand A and how to decode it, one cycle before `control`.
    b:
        The decoded operands of the columns.
    control:
        What the units are told; with the operands.
    read_address, first_block:
        The accumulators to add to, one cycle before the adders take them, and, in the cycle in
        which they do, whether sums start from +0 instead.
    write_enable, write_address:
        Where results go, in the cycle in which units deliver them.
    drain, drain_address, drained:
        Reads accumulators: `cols` FP32 values, one cycle later.
    """

    def __init__(self, *, configuration: TensorConfiguration) -> None:
        self.configuration = configuration
        formats = configuration.formats
        self.depth = 2 << (configuration.tile_rows * configuration.tile_cols - 1).bit_length()
        address = range(self.depth)
        control = unit_control_layout(configuration)
        super().__init__(
            {
                "codes": In(8 * max(fmt.block_bytes for fmt in operand_formats(formats))),
                "scale": In(8),
                "mode": In(control["mode"].shape),
                "beat": In(2),
                "count": In(6),
                "b": In(data.ArrayLayout(operand_layout(formats), configuration.cols)),
                "control": In(control),
                "read_address": In(address),
                "first_block": In(1),
                "write_enable": In(1),
                "write_address": In(address),
                "drain": In(1),
                "drain_address": In(address),
                "drained": Out(32 * configuration.cols),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        configuration = self.configuration

        decoder = OperandDecoder(formats=configuration.formats, side="a")
        m.submodules.decoder = once(decoder, platform)
        a = Signal(operand_layout(configuration.formats))
        m.d.comb += [
            decoder.codes.eq(self.codes),
            decoder.scale.eq(self.scale),
            decoder.mode.eq(self.mode),
            decoder.beat.eq(self.beat),
            decoder.count.eq(self.count),
        ]
        m.d.sync += a.eq(decoder.operand)

        m.submodules.accumulators = accumulators = Memory(
            shape=32 * configuration.cols, depth=self.depth, init=[]
        )
        read = accumulators.read_port()
        write = accumulators.write_port()
        drain = accumulators.read_port()
        before = Signal(32 * configuration.cols)
        m.d.comb += [
            read.addr.eq(self.read_address),
            before.eq(Mux(self.first_block, 0, read.data)),
            write.addr.eq(self.write_address),
            write.en.eq(self.write_enable),
            drain.en.eq(self.drain),
            drain.addr.eq(self.drain_address),
            self.drained.eq(drain.data),
        ]

        pipeline = configuration.pipeline
        unit = TensorUnit(
            formats=configuration.formats,
            multiply_stages=pipeline.multiply,
            sum_stages=pipeline.sum,
            round_stages=pipeline.round,
            add_stages=pipeline.add,
        )
        for column in range(configuration.cols):
            sums = Signal(32, name=f"result_{column}")
            m.submodules[f"unit_{column}"] = once(
                unit,
                platform,
                a=a,
                b=self.b[column],
                mode=self.control.mode,
                first_beat=self.control.first_beat,
                last_beat=self.control.last_beat,
                valid=self.control.valid,
                accumulator=before.word_select(column, 32),
                result=sums,
            )
            m.d.comb += write.data.word_select(column, 32).eq(sums)
        return m
