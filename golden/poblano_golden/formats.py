"""Number formats: the OCP Microscaling element types and the wide types beside them.

Every format is described once, here; the hardware derives its widths from these descriptions.
Source: OCP Microscaling Formats (MX) Specification v1.0, tables 1 and 2; IEEE 754-2019.
"""

from __future__ import annotations

from dataclasses import dataclass

BLOCK_SIZE = 32
"""Elements that share one scale, along the reduction axis."""

SCALE_BIAS = 127
"""An E8M0 scale byte s stands for 2**(s - SCALE_BIAS)."""

SCALE_NAN = 0xFF
"""The E8M0 code for not-a-number."""


def num_blocks(k: int) -> int:
    """Return how many blocks a row of `k` elements takes: ceil(k / 32)."""
    return -(-k // BLOCK_SIZE)


@dataclass(frozen=True)
class MxFormat:
    """An MX format: 32 elements of one type under one E8M0 scale.

    Parameters
    ----------
    name:
        The name used in configurations, commands and files.
    code:
        The number that stands for the format in command fields.
    exponent_bits, mantissa_bits:
        Field widths of the element. `exponent_bits` is 0 for the integer format, whose
        `mantissa_bits` counts the bits below the sign.
    bias:
        Exponent bias; for the integer format the number of fraction bits.
    largest:
        The largest finite magnitude that the encoder emits.
    has_nan, has_infinity:
        Whether element codes for NaN and infinity exist.
    """

    name: str
    code: int
    exponent_bits: int
    mantissa_bits: int
    bias: int
    largest: float
    has_nan: bool = False
    has_infinity: bool = False

    @property
    def element_bits(self) -> int:
        """Bits of one element code."""
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def storage_bits(self) -> int:
        """Bits that one element takes in memory: 4, or 8 (a six-bit code sits in a byte)."""
        return 4 if self.element_bits == 4 else 8

    @property
    def block_bytes(self) -> int:
        """Bytes that the 32 codes of one block take in memory, without the scale."""
        return BLOCK_SIZE * self.storage_bits // 8

    @property
    def is_integer(self) -> bool:
        """Whether elements are two's complement fixed-point numbers."""
        return self.exponent_bits == 0

    @property
    def max_exponent(self) -> int:
        """floor(log2(largest)): `emax` of the specification's scale rule."""
        if self.is_integer:
            return 0
        top = (1 << self.exponent_bits) - 1
        return top - self.bias - (1 if self.has_infinity else 0)

    @property
    def lsb_exponent(self) -> int:
        """Every finite element is an integer multiple of 2**lsb_exponent."""
        return -self.bias if self.is_integer else 1 - self.bias - self.mantissa_bits

    @property
    def largest_integer(self) -> int:
        """The largest magnitude of any finite code, in units of 2**lsb_exponent."""
        if self.is_integer:
            return 1 << self.mantissa_bits
        return int(self.largest * 2.0**-self.lsb_exponent)


MXFP4 = MxFormat("mxfp4", 0, 2, 1, 1, 6.0)
MXFP8_E4M3 = MxFormat("mxfp8_e4m3", 1, 4, 3, 7, 448.0, has_nan=True)
MXFP8_E5M2 = MxFormat("mxfp8_e5m2", 2, 5, 2, 15, 57344.0, has_nan=True, has_infinity=True)
MXFP6_E2M3 = MxFormat("mxfp6_e2m3", 3, 2, 3, 1, 7.5)
MXFP6_E3M2 = MxFormat("mxfp6_e3m2", 4, 3, 2, 3, 28.0)
MXINT8 = MxFormat("mxint8", 5, 0, 7, 6, 127 / 64)

MX_FORMATS: dict[str, MxFormat] = {
    f.name: f for f in (MXFP4, MXFP8_E4M3, MXFP8_E5M2, MXFP6_E2M3, MXFP6_E3M2, MXINT8)
}
"""Every MX format by name."""


@dataclass(frozen=True)
class WideFormat:
    """A plain floating-point format for results: BF16, FP16 or FP32."""

    name: str
    code: int
    exponent_bits: int
    mantissa_bits: int

    @property
    def element_bits(self) -> int:
        """Bits of one value."""
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def bias(self) -> int:
        """Exponent bias."""
        return (1 << (self.exponent_bits - 1)) - 1


BF16 = WideFormat("bf16", 8, 8, 7)
FP16 = WideFormat("fp16", 9, 5, 10)
FP32 = WideFormat("fp32", 10, 8, 23)

WIDE_FORMATS: dict[str, WideFormat] = {f.name: f for f in (BF16, FP16, FP32)}
"""Every wide format by name."""

SCALE_RULES: dict[str, int] = {"floor": 0, "round_up": 1, "even": 2}
"""Scale rules by name, with the number that stands for each in command fields."""
