"""How blocks are laid on the lanes of a unit, and the widths that follow; imports no Amaranth.

A unit has 32 lanes, each a 4 x 4 bit multiplier of magnitudes beside an exclusive-or of signs.

=================  =========================================================================
mode               lanes
=================  =========================================================================
4 x 4 bit          element i on lane i
8 x 4 bit          element j of the beat's 16: low nibble (or significand) of the 8-bit side on
                   lane 2j, high nibble on lane 2j + 1; the 4-bit side on both
integer x integer  element j of the beat's 8 on lanes 4j to 4j + 3: nibbles (low, low),
                   (high, low), (low, high), (high, high) of sides a and b
float x float      element j of the beat's 8 on lane 4j
float x integer    element j of the beat's 8: low nibble on lane 4j, high nibble on lane 4j + 2
=================  =========================================================================

Lanes that a mode does not use have magnitude zero. Each even lane may be followed by a shifter,
which raises the product by the exponents of 8-bit floats and the weight of an integer's high
nibble; odd lanes carry no floats, and only their sums are weighted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from poblano_golden.formats import BLOCK_SIZE, SCALE_BIAS, MxFormat

from poblano.arith.modes import Mode, modes

__all__ = ["NIBBLE", "LanePlan", "largest_magnitude", "largest_shift"]

NIBBLE = 4
"""Bits of a lane's magnitude; a high nibble weighs 2**NIBBLE."""


def largest_shift(fmt: MxFormat) -> int:
    """Return the largest exponent field of an 8-bit float, less the one that subnormals share.

    0 for four-bit elements and integers, whose magnitudes are plain integers.
    """
    if fmt.is_integer or fmt.storage_bits == 4:
        return 0
    return fmt.max_exponent + fmt.bias - 1


def largest_magnitude(fmt: MxFormat) -> int:
    """Return the largest magnitude that an element decodes to, in units of its lsb_exponent."""
    if fmt.is_integer:
        return 1 << fmt.mantissa_bits
    return int(fmt.largest * 2.0**-fmt.lsb_exponent)


@dataclass(frozen=True)
class LanePlan:
    """What a set of format pairs demands of a unit's datapath.

    Parameters
    ----------
    formats:
        Format pairs such as `mxfp4*mxfp4`; a mixed pair works in both orders.

    Raises
    ------
    ValueError
        If there is no pair, or one is unknown.
    """

    formats: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.formats:
            raise ValueError("formats must name at least one pair, not none")
        modes(self.formats)

    @cached_property
    def modes(self) -> tuple[Mode, ...]:
        """The modes, in the order of their numbers."""
        return modes(self.formats)

    @property
    def mode_width(self) -> int:
        """Width of every `mode` port."""
        return max(1, (len(self.modes) - 1).bit_length())

    @property
    def four_bit_only(self) -> bool:
        """Whether every element has four bits, so that a block is one beat and nothing shifts."""
        return self.largest_beats == 1

    @property
    def largest_beats(self) -> int:
        """Beats of the longest block."""
        return max(mode.beats for mode in self.modes)

    @property
    def code_bits(self) -> int:
        """Width of a block's codes: what the widest element takes."""
        return BLOCK_SIZE * max(m.a.storage_bits for m in self.modes)

    @property
    def has_infinity(self) -> bool:
        """Whether an element can be infinite."""
        return any(mode.a.has_infinity for mode in self.modes)

    @property
    def has_shifters(self) -> bool:
        """Whether even lanes are followed by shifters: an element is an 8-bit float."""
        return any(largest_shift(mode.a) > 0 for mode in self.modes)

    @property
    def element_shift(self) -> int:
        """Largest shift that one side asks of a lane."""
        floats = max(largest_shift(mode.a) for mode in self.modes)
        return max(floats, NIBBLE) if any(_weighs_high_nibbles(m) for m in self.modes) else floats

    def product_shift(self, lane: int) -> int:
        """Return the largest sum of both sides' shifts on an even lane."""
        return max(self._lane_shift(mode, lane) for mode in self.modes)

    def _lane_shift(self, mode: Mode, lane: int) -> int:
        shift = largest_shift(mode.a) + largest_shift(mode.b)
        if mode.beats < 4 or lane % 4 == 0:
            return shift
        return shift + NIBBLE if _weighs_high_nibbles(mode) else 0

    @cached_property
    def sum_bound(self) -> int:
        """Largest magnitude of a block's sum, in units of its mode's lsb_exponent."""
        return BLOCK_SIZE * max(largest_magnitude(m.a) * largest_magnitude(m.b) for m in self.modes)

    @property
    def sum_width(self) -> int:
        """Bits of the signed sum of a block: the narrowest that holds -sum_bound to sum_bound."""
        return self.sum_bound.bit_length() + 1

    @property
    def exponent_range(self) -> range:
        """Exponents that one side's scale can give: its power of two times its format's lsb."""
        lsb = [mode.a.lsb_exponent for mode in self.modes]
        return range(min(lsb) - SCALE_BIAS, max(lsb) + SCALE_BIAS + 1)

    @property
    def sum_exponent_range(self) -> range:
        """Exponents of a block's sum: both sides' added."""
        lsb = [mode.lsb_exponent for mode in self.modes]
        return range(min(lsb) - 2 * SCALE_BIAS, max(lsb) + 2 * SCALE_BIAS + 1)


def _weighs_high_nibbles(mode: Mode) -> bool:
    """Whether lane 4j + 2 holds an integer's high nibble."""
    return mode.beats == 4 and (mode.a.is_integer or mode.b.is_integer)
