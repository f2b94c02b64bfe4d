"""The command buffer: one command word, of which any field can be changed."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.commands import WORD_BYTES
from poblano.component import Component
from poblano.scalar.instructions import FIELD_OFFSET_WIDTH, REGISTER_WIDTH

__all__ = ["WordBuffer"]

_RING_LOG = REGISTER_WIDTH.bit_length()
_RING = 1 << _RING_LOG
"""A field lies in a ring of 128 bits as it lies in the word, without its multiples of 128."""


class WordBuffer(Component):
    """Holds a command word. A change is there from the next cycle on.

    A value of at most 64 bits is rotated by the offset modulo 128, once for all four quarters of
    the word; each bit of the word then takes the bit of its place if the field covers it. That
    is a quarter of the multiplexers of a shift by the whole offset.

    Members
    -------
    load, loaded:
        Takes a whole word.
    patch, value, offset, last:
        Bits [offset, offset + last] = lowest bits of the value. The field must end in the word.
    word:
        The word.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "load": In(1),
                "loaded": In(8 * WORD_BYTES),
                "patch": In(1),
                "value": In(REGISTER_WIDTH),
                "offset": In(FIELD_OFFSET_WIDTH),
                "last": In(range(REGISTER_WIDTH)),
                "word": Out(8 * WORD_BYTES),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        rotated = Cat(self.value, C(0, _RING - REGISTER_WIDTH))
        for stage in range(_RING_LOG):
            turned = Signal(_RING, name=f"rotated_{stage}")
            step = self.offset[stage]
            m.d.comb += turned.eq(Mux(step, rotated.rotate_left(1 << stage), rotated))
            rotated = turned

        # the field begins in quarter `first` and ends there or in the next one
        start = self.offset[:_RING_LOG]
        first = self.offset[_RING_LOG:]
        end = Signal(_RING_LOG + 1)
        m.d.comb += end.eq(start + self.last)
        all_ones = C((1 << _RING) - 1, _RING)
        from_start = Signal(_RING)
        to_end = Signal(_RING)
        m.d.comb += [
            from_start.eq(all_ones << start),
            to_end.eq(~((all_ones << 1) << end[:_RING_LOG])),
        ]
        goes_on = end[_RING_LOG]
        for quarter in range(8 * WORD_BYTES // _RING):
            begins = first == quarter
            follows = (first == quarter - 1) & goes_on if quarter else C(0)
            covers = Signal(_RING, name=f"covers_{quarter}")
            m.d.comb += covers.eq(
                (from_start & (to_end | goes_on.replicate(_RING)) & begins.replicate(_RING))
                | (to_end & follows.replicate(_RING))
            )
            part = self.word[quarter * _RING : (quarter + 1) * _RING]
            with m.If(self.patch):
                m.d.sync += part.eq((part & ~covers) | (rotated & covers))
        with m.If(self.load):
            m.d.sync += self.word.eq(self.loaded)
        return m
