"""Exact rational arithmetic for the golden tests: slow, certain, and free of the package's code.

Everything here follows the text of the OCP Microscaling specification and IEEE 754 with Python
integers and fractions. Nothing of `poblano_golden` is imported, not even its format table.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

NAN = 0x7FC00000
POSITIVE_INFINITY = 0x7F800000
NEGATIVE_INFINITY = 0xFF800000

Number = Fraction | float
"""A finite number as a fraction, an infinity or NaN as a float."""


@dataclass(frozen=True)
class Spec:
    """A row of the specification's tables: field widths, bias, special codes."""

    exponent: int
    mantissa: int
    bias: int
    infinities: tuple[int, ...] = ()
    nans: tuple[int, ...] = ()

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.mantissa


SPECS = {
    "mxfp4": Spec(2, 1, 1),
    "mxfp6_e2m3": Spec(2, 3, 1),
    "mxfp6_e3m2": Spec(3, 2, 3),
    "mxfp8_e4m3": Spec(4, 3, 7, nans=(0x7F, 0xFF)),
    "mxfp8_e5m2": Spec(
        5, 2, 15, infinities=(0x7C, 0xFC), nans=(0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF)
    ),
    "mxint8": Spec(0, 7, 6),
}
NAMES = tuple(SPECS)
FLOATS = tuple(name for name in NAMES if name != "mxint8")


def power(exponent: int) -> Fraction:
    return Fraction(2) ** exponent


@cache
def element(code: int, name: str) -> Number:
    """Return the value of an element code."""
    spec = SPECS[name]
    if name == "mxint8":
        return Fraction(code - 256 if code >= 128 else code, 64)
    sign = -1 if code >> (spec.bits - 1) else 1
    if code in spec.nans:
        return math.nan
    if code in spec.infinities:
        return sign * math.inf
    field = (code >> spec.mantissa) % (1 << spec.exponent)
    fraction = Fraction(code % (1 << spec.mantissa), 1 << spec.mantissa)
    if field == 0:
        return sign * fraction * power(1 - spec.bias)
    return sign * (1 + fraction) * power(field - spec.bias)


def is_finite(x: Number) -> bool:
    return isinstance(x, Fraction)


def finite_codes(name: str) -> list[int]:
    """Return every code of a finite element."""
    return [c for c in range(1 << SPECS[name].bits) if is_finite(element(c, name))]


@cache
def magnitudes(name: str) -> tuple[tuple[Fraction, ...], tuple[int, ...]]:
    """Return every finite magnitude that an encoder may emit, ascending, with its code."""
    positive = [c for c in finite_codes(name) if c < 1 << (SPECS[name].bits - 1)]
    pairs = sorted((element(c, name), c) for c in positive)
    return tuple(v for v, _ in pairs), tuple(c for _, c in pairs)


def largest(name: str) -> Fraction:
    return magnitudes(name)[0][-1]


def encode(x: Fraction, negative: bool, name: str) -> int:
    """Return the code nearest to |x| with the given sign: ties to the even code, saturating."""
    values, codes = magnitudes(name)
    x = abs(x)
    above = bisect.bisect_left(values, x)
    if above == len(values):
        code = codes[-1]
    elif values[above] == x:
        code = codes[above]
    else:
        below, up = x - values[above - 1], values[above] - x
        pick_up = up < below or (up == below and codes[above] % 2 == 0)
        code = codes[above if pick_up else above - 1]
    if name == "mxint8":
        return (-code) % 256 if negative else code
    return code | (negative << (SPECS[name].bits - 1))


def floor_log2(x: Fraction) -> int:
    """Return the integer e with 2**e <= x < 2**(e + 1)."""
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if power(e) <= x else e - 1


def round_float(x: Fraction, exponent_bits: int, mantissa_bits: int) -> int:
    """Return the bits of an IEEE 754 format nearest to x, ties to even; a zero is +0."""
    sign = (1 if x < 0 else 0) << (exponent_bits + mantissa_bits)
    x = abs(x)
    if x == 0:
        return 0
    bias = (1 << (exponent_bits - 1)) - 1
    e = max(floor_log2(x), 1 - bias)
    steps = round(x / power(e - mantissa_bits))  # a Fraction rounds half to even
    infinity = ((1 << exponent_bits) - 1) << mantissa_bits
    return sign | min(steps + ((e + bias - 1) << mantissa_bits), infinity)


def binary32(x: Fraction) -> int:
    return round_float(x, 8, 23)


def value32(bits: int) -> Number:
    """Return the number that binary32 bits stand for."""
    sign = -1 if bits >> 31 else 1
    field, fraction = (bits >> 23) & 0xFF, bits & 0x7FFFFF
    if field == 0xFF:
        return math.nan if fraction else sign * math.inf
    if field == 0:
        return sign * fraction * power(-149)
    return sign * ((1 << 23) + fraction) * power(field - 150)


def add32(a: int, b: int) -> int:
    """Return the bits of the IEEE 754 sum of two binary32 numbers given by their bits."""
    x, y = value32(a), value32(b)
    if not (is_finite(x) and is_finite(y)):
        return _special(float(x) + float(y))
    if x + y == 0:
        return 0x80000000 if a == b == 0x80000000 else 0
    return binary32(x + y)


def block_dot(a: list[int], b: list[int], scale_a: int, scale_b: int, fa: str, fb: str) -> int:
    """Return the binary32 bits of the dot product of two blocks, rounded once."""
    total, special = Fraction(0), 0.0
    for x_code, y_code in zip(a, b, strict=True):
        x, y = element(x_code, fa), element(y_code, fb)
        if is_finite(x) and is_finite(y):
            total += x * y
        else:
            special += _signum(x) * _signum(y)
    if 255 in (scale_a, scale_b):
        return NAN
    if special != 0:  # infinite or NaN; nothing finite enters it
        return _special(special)
    return binary32(total * power(scale_a - 127) * power(scale_b - 127))


def matmul(a: list[list[int]], sa: list[list[int]], b: list[list[int]], sb: list[list[int]],
           fa: str, fb: str) -> list[list[int]]:  # fmt: skip
    """Return the binary32 bits of A times B transposed, blocks summed in ascending order."""
    result = []
    for row_a, scales_a in zip(a, sa, strict=True):
        line = []
        for row_b, scales_b in zip(b, sb, strict=True):
            total = 0
            for block, (x, y) in enumerate(zip(scales_a, scales_b, strict=True)):
                span = slice(32 * block, 32 * block + 32)
                total = add32(total, block_dot(row_a[span], row_b[span], x, y, fa, fb))
            line.append(total)
        result.append(line)
    return result


def scale_byte(amax: Fraction, name: str, rule: str) -> int:
    """Return the scale byte of a block with that largest magnitude, from the rules' definitions."""
    if amax == 0:
        return 0
    top = floor_log2(largest(name))
    if rule == "floor":
        e = floor_log2(amax) - top
    elif rule == "round_up":
        ratio = amax / largest(name)
        e = floor_log2(ratio)
        e += power(e) != ratio
    else:
        kept = 6 if name == "mxint8" else SPECS[name].mantissa
        unit = power(floor_log2(amax) - kept)
        e = floor_log2(round(amax / unit) * unit) - top
    return min(max(e + 127, 0), 254)


def _signum(x: Number) -> float:
    """Return what of x decides a product with a NaN or an infinity."""
    return float((x > 0) - (x < 0)) if is_finite(x) else float(x)


def _special(x: float) -> int:
    if math.isnan(x):
        return NAN
    return POSITIVE_INFINITY if x > 0 else NEGATIVE_INFINITY
