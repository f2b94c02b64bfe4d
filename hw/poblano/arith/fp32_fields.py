"""The fields of binary32 numbers, as several datapaths take them."""

from __future__ import annotations

from amaranth.hdl import *

from poblano_golden.formats import FP32

__all__ = ["NAN", "canonical", "is_infinite", "is_nan", "is_zero", "unpack"]

_FRACTION = FP32.mantissa_bits

NAN = 0x7FC00000
"""The one NaN that results are."""


def is_nan(number: Value) -> Value:
    """Return whether a number is a NaN."""
    return number[_FRACTION:31].all() & number[:_FRACTION].any()


def is_infinite(number: Value) -> Value:
    """Return whether a number is an infinity."""
    return number[_FRACTION:31].all() & ~number[:_FRACTION].any()


def is_zero(number: Value) -> Value:
    """Return whether a number is +0 or -0."""
    return ~number[:31].any()


def canonical(number: Value, nan: Value) -> Value:
    """Return `number`, or the canonical NaN where `nan`."""
    quiet = _FRACTION - 1
    return Cat(
        number[:quiet] & ~nan.replicate(quiet),
        number[quiet:31] | nan.replicate(31 - quiet),
        number[31] & ~nan,
    )


def unpack(m: Module, number: Value, name: str) -> tuple[Signal, Signal]:
    """Return the exponent field, 1 for subnormals, and the significand with its leading bit."""
    field = number[_FRACTION:31]
    exponent = Signal(FP32.exponent_bits, name=f"{name}_exponent")
    significand = Signal(_FRACTION + 1, name=f"{name}_significand")
    normal = Signal(name=f"{name}_normal")
    m.d.comb += [
        normal.eq(field.any()),
        exponent.eq(Cat(field[0] | ~normal, field[1:])),
        significand.eq(Cat(number[:_FRACTION], normal)),
    ]
    return exponent, significand
