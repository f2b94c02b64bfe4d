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

from poblano.arith.modes import Mode, modes
from poblano_golden.formats import BLOCK_SIZE, SCALE_BIAS, MxFormat

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
        wide = any(_has_integer(mode) and mode.beats == 4 for mode in self.modes)
        return max(floats, NIBBLE) if wide else floats

    def product_shift(self, lane: int) -> int:
        """Return the largest shift, both sides together, that a product of an even lane needs."""
        return max(_product_shift(mode, lane) for mode in self.modes)

    def shifts_add(self, lane: int) -> bool:
        """Whether a mode has both sides ask for a shift on an even lane."""
        modes = [mode for mode in self.modes if mode.beats == 4]
        if lane % 4 == 0:
            return any(not mode.a.is_integer and not mode.b.is_integer for mode in modes)
        return any(mode.a.is_integer != mode.b.is_integer for mode in modes)

    def uses_group(self, group: int) -> bool:
        """Whether a mode uses the lanes whose number is `group` modulo 4."""
        return any(mode.beats == 1 or _has_integer(mode) for mode in self.modes) or (
            group == 0 or (group == 2 and any(mode.beats == 2 for mode in self.modes))
        )

    def group_weight(self, mode: Mode, group: int) -> int:
        """Return the power of two that lanes `group` modulo 4 weigh in a mode, if not shifted."""
        if mode.beats == 1 or not any(_has_integer(each) for each in self.modes):
            return 0
        high_nibbles = group % 2 + (group // 2 if mode.beats == 4 else 0)
        return NIBBLE * high_nibbles

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


def _has_integer(mode: Mode) -> bool:
    return mode.a.is_integer or mode.b.is_integer


def _product_shift(mode: Mode, lane: int) -> int:
    shift = largest_shift(mode.a) + largest_shift(mode.b)
    if mode.beats < 4 or lane % 4 == 0:
        return shift
    return shift + NIBBLE if _has_integer(mode) else 0
