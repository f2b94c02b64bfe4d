"""Adds 1 to a power of two."""

from __future__ import annotations

from amaranth.hdl import *

from poblano.arith.datapath import shift_right
from poblano.vector.power_argument import EXPONENT_WIDTH
from poblano_golden.table_polynomial import FRACTION_BITS

__all__ = ["one_plus_power"]


def one_plus_power(m: Module, fraction: Value, exponent: Value) -> tuple[Signal, Signal]:
    """Return the parts of the argument of 1 / (1 + (1 + fraction) * 2**exponent).

    The smaller summand is rounded down to the last place of the larger, and a sum of 2 or more
    to its own.

    Returns
    -------
    The fraction of the sum, and the exponent of its reciprocal: what the table gives times 2 to
    that power.
    """
    low = exponent[-1]
    power, one = Cat(fraction, C(1, 1)), C(1 << FRACTION_BITS, FRACTION_BITS + 1)
    smaller, larger = (Signal(FRACTION_BITS + 1, name=name) for name in ("smaller", "larger"))
    distance = Signal(EXPONENT_WIDTH)
    m.d.comb += [
        smaller.eq(Mux(low, power, one)),
        larger.eq(Mux(low, one, power)),
        distance.eq(Mux(low, -exponent, exponent)),
    ]
    shifted, _ = shift_right(m, smaller, distance, "smaller_shifted")
    total, carry = Signal(FRACTION_BITS + 2), Signal()
    sum_fraction, result_exponent = Signal(FRACTION_BITS), Signal(signed(EXPONENT_WIDTH))
    m.d.comb += [
        total.eq(larger + shifted),
        carry.eq(total[-1]),
        sum_fraction.eq(Mux(carry, total[1:], total)),
        result_exponent.eq(~Mux(low, 0, exponent) - carry),
    ]
    return sum_fraction, result_exponent
