"""Shifts of wide words by a number of bytes, as explicit stages of multiplexers.

Amaranth's `<<` and `>>` by a signal make every output bit depend on every input bit, which its
netlist checks pay for with the square of the width.
"""

from __future__ import annotations

from amaranth.hdl import *

__all__ = ["byte_shift_left", "byte_shift_right"]


def byte_shift_right(m: Module, value: Value, amount: Value, name: str) -> Value:
    """Return `value` without its lowest `amount` bytes; zeros enter at the top."""
    for stage in range(len(amount)):
        shifted = Signal(len(value), name=f"{name}_{stage}")
        m.d.comb += shifted.eq(Mux(amount[stage], value[8 << stage :], value))
        value = shifted
    return value


def byte_shift_left(m: Module, value: Value, amount: Value, unit: int, name: str) -> Value:
    """Return `value` above `amount` zero units of `unit` bits, without losing any of its bits."""
    for stage in range(len(amount)):
        step = unit << stage
        shifted = Signal(len(value) + step, name=f"{name}_{stage}")
        m.d.comb += shifted.eq(Mux(amount[stage], Cat(C(0, step), value), value))
        value = shifted
    return value
