"""Blocks of 32 binary32 numbers that try a quantiser, and what it must make of them.

Directed blocks first: every exponent of the largest magnitude with every fraction at which a scale
rule decides; every tie of every code and its neighbours; subnormal numbers; NaN, infinities and
zeros in every place. Then random ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from poblano_golden.arrays import F64, I64, U8, U32
from poblano_golden.blocks import pack, quantise
from poblano_golden.elements import decode
from poblano_golden.formats import BLOCK_SIZE, MX_FORMATS, SCALE_BIAS, SCALE_RULES, MxFormat

__all__ = [
    "Blocks",
    "random_blocks",
    "scale_blocks",
    "special_blocks",
    "subnormal_blocks",
    "tie_blocks",
]

_FRACTION_BITS = 23
_FRACTION = (1 << _FRACTION_BITS) - 1
_SIGN = 1 << 31
_LARGEST_FIELD = 254
_INFINITY = 0x7F800000
_NAMES = list(SCALE_RULES)


@dataclass(frozen=True, eq=False)
class Blocks:
    """Blocks to quantise.

    Parameters
    ----------
    bits:
        The numbers, binary32 bits, uint32 `[n, 32]`.
    formats:
        For each block, the index of its format.
    rules:
        For each block, its scale rule, a value of `SCALE_RULES`.
    """

    bits: U32
    formats: NDArray[np.intp]
    rules: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.bits)

    @classmethod
    def of(cls, bits: NDArray[Any], formats: Any, rules: Any) -> Blocks:
        """Return blocks that may share a format and a rule."""
        n = len(bits)
        return cls(
            bits.astype(np.uint32),
            np.broadcast_to(np.asarray(formats, np.intp), n),
            np.broadcast_to(np.asarray(rules, np.intp), n),
        )

    @classmethod
    def join(cls, parts: Iterable[Blocks]) -> Blocks:
        """Return all blocks, in order."""
        each = list(parts)
        return cls(
            np.concatenate([part.bits for part in each]),
            np.concatenate([part.formats for part in each]),
            np.concatenate([part.rules for part in each]),
        )

    def take(self, indices: Any) -> Blocks:
        """Return the blocks at the indices."""
        return Blocks(self.bits[indices], self.formats[indices], self.rules[indices])

    def shuffled(self, rng: Generator) -> Blocks:
        """Return the blocks in random order: format and rule then change all the time."""
        return self.take(rng.permutation(len(self)))

    def expected(self, formats: Sequence[str], block_bytes: int) -> tuple[U8, U8]:
        """Return the golden result.

        Parameters
        ----------
        formats:
            Names of the formats that indices mean.
        block_bytes:
            Bytes of the quantiser's `codes`; a shorter block is followed by zeros.

        Returns
        -------
        Codes as they lie in memory, `[n, block_bytes]`, and scales, `[n]`.
        """
        codes = np.zeros((len(self), block_bytes), np.uint8)
        scales = np.zeros(len(self), np.uint8)
        values = self.bits.view(np.float32)
        for index, name in enumerate(formats):
            fmt = MX_FORMATS[name]
            for rule in _NAMES:
                chosen = np.nonzero((self.formats == index) & (self.rules == SCALE_RULES[rule]))[0]
                if chosen.size:
                    packed, scale = pack(quantise(values[chosen], fmt, rule))
                    codes[chosen, : fmt.block_bytes] = packed[0]
                    scales[chosen] = scale[0]
        return codes, scales


def scale_blocks(formats: Sequence[str], rng: Generator) -> Blocks:
    """Return blocks with every exponent of amax and every fraction at which a rule decides.

    Subnormal amax has its leading one in every place. The other numbers are random, no larger,
    half of them within 16 binades.
    """
    parts: list[Blocks] = []
    for index, name in enumerate(formats):
        amax = _deciding_magnitudes(MX_FORMATS[name])
        for rule in SCALE_RULES.values():
            n = len(amax)
            near = rng.integers(0, 2, (n, 1)) == 1
            least = np.where(near, np.maximum(amax[:, None] - (16 << _FRACTION_BITS), 0), 0)
            bits = rng.integers(least, amax[:, None] + 1, (n, BLOCK_SIZE))
            bits[np.arange(n), rng.integers(0, BLOCK_SIZE, n)] = amax
            parts.append(Blocks.of(_with_signs(bits, rng), index, rule))
    return Blocks.join(parts)


def tie_blocks(formats: Sequence[str], scales: Iterable[int], rng: Generator) -> Blocks:
    """Return blocks with every code's value, every tie of two codes and the ties' neighbours.

    Both signs, under each of the scale bytes by each rule, up to the largest magnitude that has
    that scale. Where a tie is too small for binary32, its two neighbours stand for it.
    """
    parts: list[Blocks] = []
    for index, name in enumerate(formats):
        fmt = MX_FORMATS[name]
        for byte in scales:
            if byte + fmt.max_exponent > _LARGEST_FIELD:
                continue
            points = _points(fmt, byte)
            for rule in SCALE_RULES:
                amax = _largest_magnitude(fmt, byte, rule)
                bits = points[points <= amax]
                bits = rng.permutation(np.concatenate([bits, bits | _SIGN]))
                room = BLOCK_SIZE - 1
                bits = np.pad(bits, (0, -len(bits) % room)).reshape(-1, room)
                blocks = np.concatenate([np.full((len(bits), 1), amax), bits], axis=1)
                blocks = rng.permuted(blocks, axis=1)
                parts.append(Blocks.of(blocks, index, SCALE_RULES[rule]))
    return Blocks.join(parts)


def special_blocks(formats: Sequence[str], rng: Generator) -> Blocks:
    """Return blocks with a NaN or an infinity in every place, blocks of zeros, and lone numbers."""
    odd = [_INFINITY, _INFINITY | 1, 0x7FC00000, 0x7FFFFFFF]
    odd += [bits | _SIGN for bits in odd]
    lone = [1, 0x007FFFFF, 0x00800000, 0x3F800000, 0x7F7FFFFF, 0xBF800000]
    bits: list[NDArray[Any]] = []
    for place in range(BLOCK_SIZE):
        for value in odd:
            full = rng.integers(0, _INFINITY, BLOCK_SIZE) | _random_signs(rng, BLOCK_SIZE)
            full[place] = value
            bits.append(full)
        for value in (*odd, *lone):
            for zero in (0, _SIGN):
                alone = np.full(BLOCK_SIZE, zero)
                alone[place] = value
                bits.append(alone)
    signs = rng.integers(0, 2, (8, BLOCK_SIZE)) * _SIGN
    zeros = _every_way(
        np.array([np.full(BLOCK_SIZE, 0), np.full(BLOCK_SIZE, _SIGN), *signs]), formats
    )
    return Blocks.join([zeros, _any_way(np.array(bits), formats, rng)])


def subnormal_blocks(formats: Sequence[str], rng: Generator) -> Blocks:
    """Return blocks of subnormal numbers, alone and beside normal ones of every small exponent."""
    bits: list[NDArray[Any]] = []
    for top in range(_FRACTION_BITS):
        for _ in range(4):
            places = rng.integers(0, top + 1, BLOCK_SIZE)
            bits.append(_with_leading_one(places, rng))
            dense = (1 << (places + 1)) - 1 - rng.integers(0, 2, BLOCK_SIZE)
            bits.append(dense | _random_signs(rng, BLOCK_SIZE))
    for field in range(1, 24):
        for _ in range(4):
            mixed = _with_leading_one(rng.integers(0, _FRACTION_BITS, BLOCK_SIZE), rng)
            normal = rng.integers(0, 4, BLOCK_SIZE) == 0
            normal[rng.integers(0, BLOCK_SIZE)] = True
            fields = rng.integers(1, field + 1, BLOCK_SIZE) << _FRACTION_BITS
            bits.append(np.where(normal, mixed | fields, mixed))
    return _every_way(np.array(bits), formats)


def random_blocks(formats: Sequence[str], n: int, rng: Generator) -> Blocks:
    """Return random blocks: wide and narrow spreads, short fractions, now and then a zero or NaN.

    A fraction is random, or all ones, or zero below a random place, or next to that: so ties and
    carries are frequent.
    """
    top = rng.integers(0, _LARGEST_FIELD + 1, (n, 1))
    low, high = rng.random((n, 1)) < 1 / 8, rng.random((n, 1)) < 1 / 16
    top = np.where(low, top % 24, np.where(high, _LARGEST_FIELD - top % 12, top))
    spread = rng.choice([1, 2, 8, 20, 256], (n, 1))
    shape = (n, BLOCK_SIZE)
    field = np.maximum(top - rng.integers(0, spread, shape), 0)

    place = rng.integers(0, _FRACTION_BITS + 1, shape)
    fraction = rng.integers(0, _FRACTION + 1, shape)
    kind = rng.integers(0, 8, shape)
    fraction = np.where(kind < 4, fraction, fraction >> place << place)
    fraction = np.where(kind == 6, _FRACTION >> place << place, fraction)
    fraction = np.where(kind == 7, fraction ^ 1, fraction)
    fraction = np.where((field == 0) & (kind % 2 == 0), fraction >> place, fraction)

    bits = (field << _FRACTION_BITS) | fraction
    bits[rng.random(shape) < 1 / 32] = 0
    odd = (rng.random((n, 1)) < 1 / 64) & (rng.random(shape) < 1 / 16)
    bits = np.where(odd, _INFINITY | fraction, bits)
    return _any_way(_with_signs(bits, rng), formats, rng)


def _every_way(bits: NDArray[Any], formats: Sequence[str]) -> Blocks:
    """Return each block in every format by every rule."""
    ways = [(i, rule) for i in range(len(formats)) for rule in SCALE_RULES.values()]
    return Blocks.join(Blocks.of(bits, index, rule) for index, rule in ways)


def _any_way(bits: NDArray[Any], formats: Sequence[str], rng: Generator) -> Blocks:
    """Return each block in a random format by a random rule."""
    n = len(bits)
    return Blocks.of(bits, rng.integers(0, len(formats), n), rng.integers(0, len(SCALE_RULES), n))


def _random_signs(rng: Generator, n: int) -> I64:
    return rng.integers(0, 2, n) * _SIGN


def _with_signs(bits: I64, rng: Generator) -> I64:
    return bits | (rng.integers(0, 2, bits.shape) * _SIGN)


def _with_leading_one(places: I64, rng: Generator) -> I64:
    """Return random subnormal numbers with the leading one in the given places."""
    leading = 1 << places
    return (
        leading
        | (rng.integers(0, _FRACTION + 1, places.shape) & (leading - 1))
        | _random_signs(rng, len(places))
    )


def _kept_bits(fmt: MxFormat) -> int:
    return fmt.bias if fmt.is_integer else fmt.mantissa_bits


def _largest_fraction(fmt: MxFormat) -> int:
    """Return the fraction of the largest magnitude, as 23 bits."""
    return int((fmt.largest / 2.0**fmt.max_exponent - 1) * (1 << _FRACTION_BITS))


def _even_threshold(fmt: MxFormat) -> int:
    """Return the least 23-bit fraction that rounds up to the next power of two."""
    return (1 << _FRACTION_BITS) - (1 << (_FRACTION_BITS - _kept_bits(fmt) - 1))


def _deciding_magnitudes(fmt: MxFormat) -> I64:
    """Return amax, as bits, of every exponent at and around every threshold of a fraction."""
    around = {
        near
        for point in (_largest_fraction(fmt), _even_threshold(fmt))
        for near in (point - 1, point, point + 1)
    }
    fractions = np.array(sorted({0, 1, _FRACTION, *around}))
    normal = (np.arange(1, _LARGEST_FIELD + 1)[:, None] << _FRACTION_BITS) | fractions
    leading = np.arange(_FRACTION_BITS)[:, None]
    exact = (fractions | (1 << _FRACTION_BITS)) >> (_FRACTION_BITS - leading)
    subnormal = np.concatenate([exact, np.maximum(exact - 1, 0), exact + 1])
    return np.unique(np.concatenate([normal.ravel(), subnormal.ravel()]))


def _points(fmt: MxFormat, byte: int) -> I64:
    """Return bits of the values of all codes under a scale, of their ties, and of what is next."""
    codes = np.arange(1 << (fmt.element_bits - 1), dtype=np.uint8)
    values: F64 = np.sort(decode(codes, fmt).astype(np.float64))
    values = values[values <= fmt.largest]
    step = values[-1] - values[-2]
    values = np.append(values, fmt.largest + step * np.arange(1, 3))
    ties = (values[1:] + values[:-1]) / 2
    points = np.concatenate([values, ties, ties[:1] / 2]) * 2.0 ** (byte - SCALE_BIAS)
    exact = points[points <= np.finfo(np.float32).max].astype(np.float32)
    bits = exact.view(np.uint32).astype(np.int64)
    return np.unique(np.concatenate([np.maximum(bits - 1, 0), bits, bits + 1]))


def _largest_magnitude(fmt: MxFormat, byte: int, rule: str) -> int:
    """Return the bits of the largest magnitude that has this scale by the rule."""
    fractions = {
        "floor": _FRACTION,
        "round_up": _largest_fraction(fmt),
        "even": _even_threshold(fmt) - 1,
    }
    return ((byte + fmt.max_exponent) << _FRACTION_BITS) | fractions[rule]
