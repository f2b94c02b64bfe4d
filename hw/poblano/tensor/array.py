"""The array of tensor units: operands broadcast along rows and columns."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from poblano.arith.latency import accumulator_latency, unit_latency
from poblano.arith.operand import OperandDecoder, operand_layout
from poblano.component import Component, once
from poblano.config import SliceConfiguration
from poblano.tensor.geometry import Geometry
from poblano.tensor.row import TensorRow, unit_control_layout
from poblano.tensor.sequencer import beat_layout

__all__ = ["TensorArray"]


class TensorArray(Component):
    """`rows x cols` units; a beat of the sequencer meets its operands one cycle later.

    The panels answer a beat in the cycle after it; operands are decoded and registered in that
    cycle, and reach the units in the next. The accumulator write of a block's last beat follows
    `poblano.tensor.timing.write_latency` cycles after the beat was issued.

    Parameters
    ----------
    configuration:
        The slice.

    Members
    -------
    beat_valid, beat, mode:
        The beat that the sequencer issues in this cycle.
    a_codes, a_scales, b_codes, b_scales:
        The panels' answer to the beat of the cycle before.
    tile_done:
        Pulses with the last write of a tile.
    drain, drain_row, drain_bank, drain_accumulator:
        Reads the accumulators of one row of units.
    drained:
        `cols` FP32 values, two cycles after `drain`.
    """

    def __init__(self, *, configuration: SliceConfiguration) -> None:
        self.configuration = configuration
        self.geometry = geometry = Geometry(configuration)
        beat = beat_layout(configuration)
        tensor = configuration.tensor
        code_bits = 8 * geometry.a.block_bytes
        super().__init__(
            {
                "beat_valid": In(1),
                "beat": In(beat),
                "mode": In(unit_control_layout(tensor)["mode"].shape),
                "a_codes": In(data.ArrayLayout(code_bits, tensor.rows)),
                "a_scales": In(data.ArrayLayout(8, tensor.rows)),
                "b_codes": In(data.ArrayLayout(code_bits, tensor.cols)),
                "b_scales": In(data.ArrayLayout(8, tensor.cols)),
                "tile_done": Out(1),
                "drain": In(1),
                "drain_row": In(range(max(2, tensor.rows))),
                "drain_bank": In(1),
                "drain_accumulator": In(beat["accumulator"].shape),
                "drained": Out(32 * tensor.cols),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        tensor = self.configuration.tensor
        stages = self._delays(m)

        # operand B: one decoder a column, registered for the whole array
        lanes = data.ArrayLayout(operand_layout(tensor.formats), tensor.cols)
        decoded = Signal(lanes)
        b = Signal(lanes)
        m.d.sync += b.eq(decoded)
        decoder = OperandDecoder(formats=tensor.formats, side="b")
        for column in range(tensor.cols):
            m.submodules[f"decoder_{column}"] = once(
                decoder,
                platform,
                codes=self.b_codes[column],
                scale=self.b_scales[column],
                mode=self.mode,
                beat=stages[1].beat.beat,
                count=stages[1].beat.count,
                operand=decoded[column],
            )

        reading = stages[1 + accumulator_latency(tensor.pipeline)]
        adding = stages[2 + accumulator_latency(tensor.pipeline)]
        writing = stages[2 + unit_latency(tensor.pipeline)]
        control = Signal(unit_control_layout(tensor))
        write_enable = Signal()
        m.d.comb += [
            control.mode.eq(self.mode),
            control.first_beat.eq(stages[2].beat.first_beat),
            control.last_beat.eq(stages[2].beat.last_beat),
            control.valid.eq(stages[2].valid),
            write_enable.eq(writing.valid & writing.beat.last_beat),
            self.tile_done.eq(writing.valid & writing.beat.tile_last),
        ]

        drain_row = Signal.like(self.drain_row)
        m.d.sync += drain_row.eq(self.drain_row)
        drained = []
        row = TensorRow(configuration=tensor)
        for index in range(tensor.rows):
            values = Signal(32 * tensor.cols, name=f"drained_{index}")
            m.submodules[f"row_{index}"] = once(
                row,
                platform,
                codes=self.a_codes[index],
                scale=self.a_scales[index],
                mode=self.mode,
                beat=stages[1].beat.beat,
                count=stages[1].beat.count,
                b=b,
                control=control,
                read_address=self._address(reading.beat),
                first_block=adding.beat.first_block,
                write_enable=write_enable,
                write_address=self._address(writing.beat),
                drain=self.drain & (self.drain_row == index),
                drain_address=Cat(self.drain_accumulator, self.drain_bank),
                drained=values,
            )
            drained.append(values)
        m.d.sync += self.drained.eq(Array(drained)[drain_row])
        return m

    def _address(self, beat) -> Value:
        return Cat(beat.accumulator, beat.bank)

    def _delays(self, m: Module) -> list:
        """Return the beat as it was 0, 1, 2 ... cycles ago, up to the accumulator write."""
        layout = data.StructLayout({"valid": 1, "beat": self.beat.shape()})
        now = Signal(layout, name="beat_0")
        m.d.comb += [now.valid.eq(self.beat_valid), now.beat.eq(self.beat)]
        stages = [now]
        for age in range(1, 3 + unit_latency(self.configuration.tensor.pipeline)):
            stage = Signal(layout, name=f"beat_{age}")
            m.d.sync += stage.eq(stages[-1])
            stages.append(stage)
        return stages
