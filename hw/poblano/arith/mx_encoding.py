"""What quantisation to a set of MX formats demands of a datapath; imports no Amaranth.

The formats share the datapath. Each is taken for a float whose code, without the sign, is a field
above a fraction. MXINT8 joins them as a float with a field of one bit, which is its leading one:
only its sign is applied in another way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from poblano_golden.formats import BLOCK_SIZE, FP32, MX_FORMATS, MxFormat

__all__ = ["Encoding", "QuantiserPlan"]


@dataclass(frozen=True)
class Encoding:
    """A format as the datapath sees it."""

    fmt: MxFormat

    @property
    def fraction_bits(self) -> int:
        """Bits below the leading one."""
        return self.fmt.bias if self.fmt.is_integer else self.fmt.mantissa_bits

    @property
    def bias(self) -> int:
        """Exponent bias. In every format it is one less than a power of two."""
        return 1 if self.fmt.is_integer else self.fmt.bias

    @property
    def magnitude_bits(self) -> int:
        """Bits of a code without the sign."""
        return self.fmt.element_bits - 1

    @property
    def field_bits(self) -> int:
        """Bits of a float's exponent field; 0 for the integer format, which stores none."""
        return 0 if self.fmt.is_integer else self.fmt.exponent_bits

    @property
    def largest_field(self) -> int:
        """The field of the largest code."""
        return self.fmt.max_exponent + self.bias

    @property
    def largest_code(self) -> int:
        """The largest code that is emitted, without the sign."""
        fraction = self.fmt.largest / 2.0**self.fmt.max_exponent - 1
        return (self.largest_field << self.fraction_bits) + int(fraction * 2**self.fraction_bits)

    @property
    def largest_ones(self) -> int:
        """Ones that the fraction of the largest code begins with; only zeros follow."""
        fraction = self.largest_code & ((1 << self.fraction_bits) - 1)
        return fraction.bit_count()


@dataclass(frozen=True)
class QuantiserPlan:
    """The widths that follow from a set of formats.

    Parameters
    ----------
    formats:
        Names of different MX formats.

    Raises
    ------
    ValueError
        If there is no format, or one is unknown or named twice.
    """

    formats: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.formats:
            raise ValueError("formats must name at least one MX format, not none")
        for name in self.formats:
            if name not in MX_FORMATS:
                known = ", ".join(MX_FORMATS)
                raise ValueError(f"a format must be one of {known}, not {name!r}")
            if self.formats.count(name) > 1:
                raise ValueError(f"formats must differ, but {name!r} stands there twice")

    @cached_property
    def encodings(self) -> tuple[Encoding, ...]:
        """The formats, in order."""
        return tuple(Encoding(MX_FORMATS[name]) for name in self.formats)

    @property
    def format_width(self) -> int:
        """Width of a `format` port."""
        return max(1, (len(self.formats) - 1).bit_length())

    @property
    def code_bits(self) -> int:
        """Bits that the widest element takes in memory."""
        return max(e.fmt.storage_bits for e in self.encodings)

    @property
    def block_bits(self) -> int:
        """Bits that the codes of a block of the widest format take."""
        return BLOCK_SIZE * self.code_bits

    @property
    def magnitude_bits(self) -> int:
        """Bits of the longest code without its sign."""
        return max(e.magnitude_bits for e in self.encodings)

    @property
    def field_bits(self) -> int:
        """Bits of the longest exponent field."""
        return max(e.field_bits for e in self.encodings)

    @property
    def has_integer(self) -> bool:
        """Whether MXINT8 is among the formats."""
        return any(e.fmt.is_integer for e in self.encodings)

    @property
    def aligned_bits(self) -> int:
        """Bits of an aligned number: leading one, the longest fraction, and one to round."""
        return max(e.fraction_bits for e in self.encodings) + 2

    def below(self, encoding: Encoding) -> int:
        """Bits of an aligned number below the one that rounds a code of this format."""
        return self.aligned_bits - 2 - encoding.fraction_bits

    @property
    def largest_bias(self) -> int:
        """Also the largest left shift of a subnormal number: further down, codes are subnormal."""
        return max(e.bias for e in self.encodings)

    @property
    def shift_bits(self) -> int:
        """Bits of a shift: left by up to `largest_bias`, right by up to `aligned_bits` - 1."""
        return max(self.largest_bias.bit_length(), (self.aligned_bits - 2).bit_length())

    @property
    def fraction_bits(self) -> int:
        """Leading fraction bits of binary32 that can reach the bit that rounds, or decide a scale.

        The number furthest down that still has a normal code is subnormal and has `bias` bits
        above its leading one.
        """
        return max(e.bias + e.fraction_bits + 1 for e in self.encodings)

    @property
    def deciding_bits(self) -> int:
        """Leading fraction bits whose ones decide a scale: one more if amax may be subnormal."""
        return self.aligned_bits - 1 + self.has_integer

    @property
    def near_bits(self) -> int:
        """Low exponent bits n such that numbers 2**n binades below amax have codes of zero.

        The field of amax is at most `largest_field`; a number rounds to zero from field
        -`fraction_bits` - 1 down.
        """
        distance = max(e.largest_field + e.fraction_bits for e in self.encodings)
        return max((distance - 1).bit_length(), self.shift_bits)

    @property
    def dropped_bits(self) -> int:
        """Trailing fraction bits of binary32 of which only the disjunction matters."""
        return FP32.mantissa_bits - self.fraction_bits
