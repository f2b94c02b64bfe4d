"""Which operand formats a unit multiplies, and at what rate; imports no Amaranth."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from poblano_golden.formats import BLOCK_SIZE, MX_FORMATS, MxFormat

__all__ = ["LANES", "Mode", "modes", "operand_formats", "parse_pair"]

LANES = 32
"""Four-bit by four-bit multipliers in a unit."""


@dataclass(frozen=True)
class Mode:
    """One ordered pair of operand formats.

    A four-bit element takes one lane on its side and an eight-bit one two, so a block takes
    one beat (4 x 4 bit), two (8 x 4) or four (8 x 8).
    """

    a: MxFormat
    b: MxFormat

    @property
    def beats(self) -> int:
        """Cycles that one block occupies a unit."""
        return (self.a.storage_bits // 4) * (self.b.storage_bits // 4)

    @property
    def elements(self) -> int:
        """Elements of a block that one beat multiplies."""
        return BLOCK_SIZE // self.beats

    @property
    def lsb_exponent(self) -> int:
        """Every product of finite elements is an integer multiple of 2**lsb_exponent."""
        return self.a.lsb_exponent + self.b.lsb_exponent


@cache
def parse_pair(text: str) -> tuple[MxFormat, MxFormat]:
    """Return the two formats of a pair such as `mxfp8_e4m3*mxfp4`.

    Raises
    ------
    ValueError
        If the text is not two known MX format names joined by `*`.
    """
    names = [name.strip() for name in text.split("*")]
    if len(names) != 2 or any(name not in MX_FORMATS for name in names):
        raise ValueError(
            f"a format pair must be two of {', '.join(MX_FORMATS)} joined by '*', not {text!r}"
        )
    return MX_FORMATS[names[0]], MX_FORMATS[names[1]]


def modes(pairs: tuple[str, ...]) -> tuple[Mode, ...]:
    """Return the modes of a unit that multiplies `pairs`, both orders of a mixed pair.

    A mode's index in the result is its number on every `mode` port.
    """
    found: dict[tuple[str, str], Mode] = {}
    for text in pairs:
        a, b = parse_pair(text)
        for x, y in ((a, b), (b, a)):
            found.setdefault((x.name, y.name), Mode(x, y))
    return tuple(found.values())


@cache
def operand_formats(pairs: tuple[str, ...]) -> tuple[MxFormat, ...]:
    """Return the formats that occur in `pairs`, by code: what operands and MX results may be."""
    found = {fmt for text in pairs for fmt in parse_pair(text)}
    return tuple(sorted(found, key=lambda fmt: fmt.code))
