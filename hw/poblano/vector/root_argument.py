"""Normalises the argument of a reciprocal or a reciprocal square root."""

from __future__ import annotations

from amaranth.hdl import *

from poblano.arith.datapath import normalise
from poblano.arith.fp32_fields import is_infinite, is_zero, unpack
from poblano.vector.power_argument import EXPONENT_WIDTH
from poblano_golden.formats import FP32
from poblano_golden.table_polynomial import FRACTION_BITS

__all__ = ["root_argument"]

_FAR = 300
"""An exponent that overflows, and negated underflows, whatever the significand."""


def root_argument(m: Module, x: Value, root: Value) -> tuple[Signal, Signal]:
    """Return the argument of the table for 1 / |x|, or for 1 / sqrt(|x|) if `root`.

    `root` may be a constant.

    Returns
    -------
    The table's argument, `FRACTION_BITS` wide, and the exponent of the result, signed: what the
    table gives times 2 to that power. For 0 it overflows, for an infinity it underflows.
    """
    field, significand = unpack(m, x, "x")
    normal, count = normalise(m, significand, C(0x1F, 5), C(0, 1), "normal")
    exponent = Signal(signed(EXPONENT_WIDTH))
    result_exponent = Signal(signed(EXPONENT_WIDTH))
    argument = Signal(FRACTION_BITS)
    fraction = normal[: FP32.mantissa_bits]
    pad = FRACTION_BITS - FP32.mantissa_bits
    m.d.comb += [
        exponent.eq(field - count - FP32.bias),
        argument.eq(Mux(root, Cat(C(0, pad - 1), fraction, exponent[0]), Cat(C(0, pad), fraction))),
    ]
    with m.If(is_zero(x)):
        m.d.comb += result_exponent.eq(_FAR)
    with m.Elif(is_infinite(x)):
        m.d.comb += result_exponent.eq(-_FAR)
    with m.Else():
        m.d.comb += result_exponent.eq(~Mux(root, exponent >> 1, exponent))
    return argument, result_exponent
