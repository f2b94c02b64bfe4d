"""The lines of one stream of elements, and the elements of a beat out of them."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import *
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from poblano.component import Component
from poblano.l1.byte_shift import byte_shift_right

__all__ = ["StreamWindow", "window_layout"]


def window_layout(line: int) -> data.StructLayout:
    """Return what a step does with a stream.

    takes:
        The line that arrives is the stream's.
    makes:
        The stream's part of the beat is whole: its first byte is `offset` of the line that arrives,
        or with `joins` or without `takes` of the line before.
    """
    return data.StructLayout(
        {"takes": 1, "makes": 1, "joins": 1, "offset": (line - 1).bit_length()}
    )


class StreamWindow(Component):
    """Holds a stream's last line, and cuts beats out of it and the one that arrives.

    A beat's bytes stand at the output in the cycle after the step that makes them, and stay there.
    Nothing moves while `enable` is 0.

    Parameters
    ----------
    line:
        Bytes of a line, a power of two.
    most:
        Bytes of a beat; at most a line.

    Members
    -------
    enable:
        Time passes.
    step, arrived:
        What to do, and the line that arrives.
    chunk:
        The beat's bytes, the first lowest.
    """

    def __init__(self, *, line: int, most: int) -> None:
        if not 1 <= most <= line:
            raise ValueError(f"most must be 1 to {line}, not {most}")
        self.line = line
        self.most = most
        super().__init__(
            {
                "enable": In(1),
                "step": In(window_layout(line)),
                "arrived": In(8 * line),
                "chunk": Out(8 * most),
            }
        )

    def elaborate(self, platform: Any) -> Elaboratable:
        m = Module()
        step = self.step
        held = Signal(8 * self.line, reset_less=True)
        low = Mux(step.takes & ~step.joins, self.arrived, held)
        window = Signal(8 * (self.line + self.most))
        m.d.comb += window.eq(Cat(low, self.arrived[: 8 * self.most]))
        shifted = byte_shift_right(m, window, step.offset, "shifted")
        with m.If(step.takes):
            m.d.sync += held.eq(self.arrived)
        with m.If(step.makes):
            m.d.sync += self.chunk.eq(shifted)
        return EnableInserter(self.enable)(m)
