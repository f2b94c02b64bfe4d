"""Pairs of MX blocks that try a dot product, and what must come of them.

Directed pairs first (largest magnitudes, cancellation, ties, subnormal and overflowing results,
NaN and infinite elements and scales, short blocks), then random ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from poblano.arith.modes import Mode
from poblano_golden import fp32
from poblano_golden.arrays import U8, U32
from poblano_golden.dot import block_dot
from poblano_golden.elements import decode
from poblano_golden.formats import BLOCK_SIZE, MxFormat

__all__ = [
    "Operands",
    "code_pairs",
    "directed",
    "expected_sums",
    "random_operands",
    "scale_pairs",
]


@dataclass(frozen=True, eq=False)
class Operands:
    """Blocks to multiply.

    Attributes
    ----------
    mode:
        Index of the mode, `[n]`.
    a_codes, b_codes:
        Element codes, uint8 `[n, 32]`; those at or past `count` may be anything.
    a_scale, b_scale, count:
        Scale bytes and valid elements, `[n]`.
    accumulator:
        binary32 bits to add to, uint32 `[n]`.
    """

    mode: NDArray[np.int64]
    a_codes: U8
    b_codes: U8
    a_scale: U8
    b_scale: U8
    count: NDArray[np.int64]
    accumulator: U32

    def __len__(self) -> int:
        return len(self.mode)

    @classmethod
    def join(cls, parts: Iterable[Operands]) -> Operands:
        """Return all blocks, in order."""
        each = list(parts)
        return cls(*(np.concatenate([getattr(part, f.name) for part in each]) for f in fields(cls)))

    def take(self, index: NDArray[Any]) -> Operands:
        """Return the blocks of the given indices."""
        return Operands(*(getattr(self, f.name)[index] for f in fields(self)))

    def describe(self, modes: tuple[Mode, ...], index: int) -> str:
        """Return one pair as text, for messages."""
        mode = modes[int(self.mode[index])]
        count = int(self.count[index])
        return (
            f"{mode.a.name}*{mode.b.name} count={count} scales="
            f"{self.a_scale[index]:#04x},{self.b_scale[index]:#04x} "
            f"a={self.a_codes[index, :count].tobytes().hex()} "
            f"b={self.b_codes[index, :count].tobytes().hex()} "
            f"accumulator={int(self.accumulator[index]):#010x}"
        )

    def dots(self, modes: tuple[Mode, ...]) -> U32:
        """Return the blocks' dot products as binary32 bits."""
        result = np.zeros(len(self), np.uint32)
        valid = np.arange(BLOCK_SIZE) < self.count[:, np.newaxis]
        for number, mode in enumerate(modes):
            at = np.flatnonzero(self.mode == number)
            a = np.where(valid[at], self.a_codes[at], 0).astype(np.uint8)
            b = np.where(valid[at], self.b_codes[at], 0).astype(np.uint8)
            dots = block_dot(a, b, self.a_scale[at], self.b_scale[at], mode.a, mode.b)
            result[at] = dots.view(np.uint32)
        return result

    def results(self, modes: tuple[Mode, ...]) -> U32:
        """Return accumulator + dot product as binary32 bits."""
        dots = self.dots(modes).view(np.float32)
        return fp32.add(self.accumulator.view(np.float32), dots).view(np.uint32)


def expected_sums(operands: Operands, modes: tuple[Mode, ...]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return exact sums in units of the modes' lsb (Python integers), and whether each is NaN.

    Sums of blocks that are NaN or infinite are 0.
    """
    sums = np.zeros(len(operands), object)
    nan = np.zeros(len(operands), bool)
    valid = np.arange(BLOCK_SIZE) < operands.count[:, np.newaxis]
    for number, mode in enumerate(modes):
        at = np.flatnonzero(operands.mode == number)
        sides: list[NDArray[Any]] = []
        for codes, fmt in ((operands.a_codes, mode.a), (operands.b_codes, mode.b)):
            values = np.where(valid[at], decode(codes[at], fmt), np.float32(0)).astype(np.float64)
            bad = ~np.isfinite(values)
            nan[at] |= bad.any(axis=1)
            whole = np.ldexp(np.where(bad, 0.0, values), -fmt.lsb_exponent)
            sides.append(whole.astype(np.int64).astype(object))
        sums[at] = (sides[0] * sides[1]).sum(axis=1)
    nan |= (operands.a_scale == 0xFF) | (operands.b_scale == 0xFF)
    return np.where(nan, 0, sums), nan


def _make(
    number: int,
    a: NDArray[Any],
    b: NDArray[Any],
    scales: Any = (127, 127),
    count: Any = BLOCK_SIZE,
    accumulator: Any = 0,
) -> Operands:
    a, b = np.broadcast_arrays(np.atleast_2d(a), np.atleast_2d(b))
    n = len(a)
    return Operands(
        np.full(n, number),
        a.astype(np.uint8),
        b.astype(np.uint8),
        np.broadcast_to(np.asarray(scales[0], np.uint8), n),
        np.broadcast_to(np.asarray(scales[1], np.uint8), n),
        np.broadcast_to(np.asarray(count, np.int64), n),
        np.broadcast_to(np.asarray(accumulator, np.uint32), n),
    )


def _finite_codes(fmt: MxFormat) -> U8:
    codes = np.arange(1 << fmt.element_bits, dtype=np.uint8)
    return codes[np.isfinite(decode(codes, fmt))]


def _special_codes(fmt: MxFormat) -> U8:
    codes = np.arange(1 << fmt.element_bits, dtype=np.uint8)
    return codes[~np.isfinite(decode(codes, fmt))]


def _extreme(fmt: MxFormat, negative: bool) -> int:
    """Return the code of the largest magnitude; -128 for the integers' negative one."""
    codes = _finite_codes(fmt)
    values = decode(codes, fmt)
    return int(codes[values.argmin() if negative else values.argmax()])


def code_pairs(mode: Mode, number: int, rng: Generator) -> Operands:
    """Return every pair of codes once, 32 pairs a block, in a random order."""
    pairs = np.arange(1 << (mode.a.element_bits + mode.b.element_bits))
    rng.shuffle(pairs)
    pairs = pairs.reshape(-1, BLOCK_SIZE)
    return _make(number, pairs >> mode.b.element_bits, pairs & ((1 << mode.b.element_bits) - 1))


def single_pairs(mode: Mode, number: int, rng: Generator) -> Operands:
    """Return every pair of codes alone in a block, at a random element."""
    pairs = np.arange(1 << (mode.a.element_bits + mode.b.element_bits))
    place = rng.integers(0, BLOCK_SIZE, len(pairs))
    a, b = np.zeros((2, len(pairs), BLOCK_SIZE), np.uint8)
    at = np.arange(len(pairs))
    a[at, place] = pairs >> mode.b.element_bits
    b[at, place] = pairs & ((1 << mode.b.element_bits) - 1)
    return _make(number, a, b)


def scale_pairs(mode: Mode, number: int, rng: Generator, sums: int = 1) -> Operands:
    """Return all 65,536 pairs of scales, each with a few random blocks."""
    pair = np.tile(np.arange(1 << 16), sums)
    a = rng.choice(_finite_codes(mode.a), (len(pair), BLOCK_SIZE))
    b = rng.choice(_finite_codes(mode.b), (len(pair), BLOCK_SIZE))
    return _make(number, a, b, (pair >> 8, pair & 0xFF))


def directed(mode: Mode, number: int, rng: Generator) -> Operands:
    """Return extremes: magnitudes, cancellation, ties, ranges, special values, short blocks."""
    parts: list[Operands] = []
    sides = [
        (_extreme(mode.a, x), _extreme(mode.b, y)) for x in (False, True) for y in (False, True)
    ]
    scales = [(127, 127), (254, 254), (0, 0), (254, 0), (1, 3), (255, 127), (127, 255)]
    for scale in scales:
        for a, b in sides:
            parts.append(_make(number, np.full(BLOCK_SIZE, a), np.full(BLOCK_SIZE, b), scale))
        zero = np.zeros(BLOCK_SIZE)
        parts.append(_make(number, zero, zero, scale))
        parts.append(_make(number, np.full(BLOCK_SIZE, sides[1][0]), zero, scale))

    # cancellation to exactly zero, and to one smallest product
    half = rng.choice(_finite_codes(mode.a), (64, BLOCK_SIZE // 2))
    other = rng.choice(_finite_codes(mode.b), (64, BLOCK_SIZE // 2))
    if not mode.b.is_integer:
        flipped = other ^ (1 << (mode.b.element_bits - 1))
    else:
        other = np.where(other == 0x80, 0x81, other).astype(np.uint8)
        flipped = (-other.astype(np.int64) & 0xFF).astype(np.uint8)
    a, b = np.concatenate([half, half], axis=1), np.concatenate([other, flipped], axis=1)
    parts.append(_make(number, a, b))
    rest_a, rest_b = a.copy(), b.copy()
    rest_a[:, -1] = rest_a[:, 15] = rest_b[:, 15] = 0
    rest_a[:, -1] = rest_b[:, -1] = 1
    parts.append(_make(number, rest_a, rest_b))
    parts += [
        _make(number, rest_a, rest_b, scale)
        for scale in ((0, 0), (0, 20), (60, 40), (52, 52), (50, 50))
    ]

    # few bits set far apart: ties and their neighbours, in the normal and the subnormal range
    for scale in ((127, 127), (40, 40), (30, 35), (20, 20), (10, 12), (5, 5)):
        sparse_a = np.where(
            rng.random((256, BLOCK_SIZE)) < 0.15, rng.choice(_finite_codes(mode.a), (256, 32)), 0
        )
        sparse_b = rng.choice(_finite_codes(mode.b), (256, BLOCK_SIZE))
        spread = rng.integers(-9, 10, 256)
        low = np.clip(scale[0] + spread, 0, 254)
        parts.append(_make(number, sparse_a, sparse_b, (low, scale[1])))

    # short blocks: what lies past the count is anything, NaN too
    count = np.arange(256) % BLOCK_SIZE + 1
    any_a = rng.integers(0, 1 << mode.a.element_bits, (256, BLOCK_SIZE))
    any_b = rng.integers(0, 1 << mode.b.element_bits, (256, BLOCK_SIZE))
    valid = np.arange(BLOCK_SIZE) < count[:, np.newaxis]
    any_a = np.where(valid, rng.choice(_finite_codes(mode.a), any_a.shape), any_a)
    any_b = np.where(valid, rng.choice(_finite_codes(mode.b), any_b.shape), any_b)
    parts.append(_make(number, any_a, any_b, count=count))

    parts.extend(_specials(mode, number, rng))
    return Operands.join(parts)


def _specials(mode: Mode, number: int, rng: Generator) -> list[Operands]:
    """Return blocks with one or two NaN or infinite elements, at every place."""
    parts: list[Operands] = []
    for own, (fmt, partner) in enumerate(((mode.a, mode.b), (mode.b, mode.a))):
        codes = _special_codes(fmt)
        if not len(codes):
            continue
        n = BLOCK_SIZE * 4
        mine = rng.choice(_finite_codes(fmt), (n, BLOCK_SIZE))
        theirs = rng.choice(_finite_codes(partner), (n, BLOCK_SIZE))
        at, place = np.arange(n), np.arange(n) % BLOCK_SIZE
        mine[at, place] = rng.permutation(np.resize(codes, n))
        half = at >= n // 2
        theirs[at[half], place[half]] = rng.choice((0, 1), int(half.sum()))
        second = mine.copy()
        second[at, (place + 5) % BLOCK_SIZE] = rng.choice(codes, n)
        for side in (mine, second):
            pair = (theirs, side) if own else (side, theirs)
            count = np.where(rng.random(n) < 0.25, np.maximum(place, 1), BLOCK_SIZE)
            parts.append(_make(number, *pair, count=count))
    return parts


def random_operands(modes: tuple[Mode, ...], n: int, rng: Generator) -> Operands:
    """Return random blocks of random modes: codes, scales, counts and accumulators of any kind."""
    number = rng.integers(0, len(modes), n)
    codes = np.zeros((2, n, BLOCK_SIZE), np.uint8)
    for index, mode in enumerate(modes):
        at = np.flatnonzero(number == index)
        for side, fmt in enumerate((mode.a, mode.b)):
            some = rng.choice(_finite_codes(fmt), (len(at), BLOCK_SIZE))
            keep = rng.random((len(at), 1)) < 0.2  # mostly zeros: sums of few bits
            some = np.where(keep & (rng.random(some.shape) < 0.8), 0, some)
            if len(_special_codes(fmt)):
                rare = rng.random(some.shape) < 0.0005
                some = np.where(rare, rng.choice(_special_codes(fmt), some.shape), some)
            codes[side, at] = some
    scales = rng.integers(0, 256, (2, n))
    near = rng.random(n) < 0.6
    scales[0] = np.where(near, rng.integers(115, 140, n), scales[0])
    scales[1] = np.where(near, rng.integers(115, 140, n), scales[1])
    accumulator = rng.integers(0, 1 << 32, n).astype(np.uint32)
    kind = rng.integers(0, 4, n)
    exponent = rng.integers(105, 150, n).astype(np.uint32) << 23
    accumulator = np.where(kind < 2, (accumulator & 0x807FFFFF) | exponent, accumulator)
    accumulator = np.where(kind == 2, 0, accumulator).astype(np.uint32)
    count = np.where(rng.random(n) < 0.7, BLOCK_SIZE, rng.integers(1, BLOCK_SIZE + 1, n))
    return Operands(
        number,
        codes[0],
        codes[1],
        scales[0].astype(np.uint8),
        scales[1].astype(np.uint8),
        count,
        accumulator,
    )
