"""Gathers the results of a row into blocks of 32."""

from __future__ import annotations

import math

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.component import Component
from poblano_golden.formats import BLOCK_SIZE

__all__ = ["BlockGatherer"]


class BlockGatherer(Component):
    """Joins beats of `cols` FP32 values to blocks of 32; what is missing at a row's end is +0.

    A block stands at the output in the cycle after the step that completes it: one that fills
    32 places, or one with `flush`.

    Parameters
    ----------
    cols:
        Values of a beat, 1 to 32.

    Members
    -------
    valid, takes, count, flush, values:
        A step: whether it brings values, how many of them count, and whether the row ends.
    block:
        32 values; the first lowest.

    Raises
    ------
    ValueError
        If `cols` is not in 1..32.
    """

    def __init__(self, *, cols: int) -> None:
        if not 1 <= cols <= BLOCK_SIZE:
            raise ValueError(f"cols must be in 1..{BLOCK_SIZE}, not {cols}")
        self.cols = cols
        super().__init__(
            {
                "valid": In(1),
                "takes": In(1),
                "count": In(range(cols + 1)),
                "flush": In(1),
                "values": In(32 * cols),
                "block": Out(32 * BLOCK_SIZE),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        cols = self.cols
        unit = math.gcd(cols, BLOCK_SIZE)
        places = BLOCK_SIZE // unit  # where a beat may begin, in multiples of `unit`

        beat = Signal(32 * cols)
        for index in range(cols):
            counts = self.takes & (self.count > index)
            m.d.comb += beat.word_select(index, 32).eq(
                Mux(counts, self.values.word_select(index, 32), 0)
            )

        # `kept` values wait at the bottom; the beat is put above them
        waiting = Signal(32 * BLOCK_SIZE)
        kept = Signal(range(max(2, places)))
        joined = Signal(32 * (BLOCK_SIZE + cols))
        with m.Switch(kept):
            for place in range(places):
                with m.Case(place):
                    m.d.comb += joined.eq(waiting | beat << (32 * unit * place))
        after = Signal(range(places + cols // unit + 1))
        full = Signal()
        m.d.comb += [
            after.eq(kept + Mux(self.takes, cols // unit, 0)),
            full.eq(after >= places),
        ]
        with m.If(self.valid):
            with m.If(full | self.flush):
                m.d.sync += self.block.eq(joined)
            with m.If(self.flush):
                m.d.sync += [waiting.eq(0), kept.eq(0)]
            with m.Elif(full):
                m.d.sync += [
                    waiting.eq(joined[32 * BLOCK_SIZE :]),
                    kept.eq(after - places),
                ]
            with m.Else():
                m.d.sync += [waiting.eq(joined), kept.eq(after)]
        return m
