"""Bench of the operand decoder: every code at every element, every beat, count and scale.

The expected lanes are laid out here from the elements' values and the table in
`poblano.arith.lanes`, element by element.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import cocotb
import numpy as np
from amaranth.lib import data
from numpy.random import Generator, default_rng
from numpy.typing import NDArray

from poblano.arith.lanes import LanePlan
from poblano.arith.modes import LANES, Mode
from poblano.arith.operand import operand_layout
from poblano_golden.elements import decode
from poblano_golden.formats import BLOCK_SIZE, SCALE_BIAS, SCALE_NAN, MxFormat
from poblano_verif.batch import apply, block_parameters, to_words

_DEFAULT_VECTORS = 2_000


@dataclass
class Lanes:
    """What a decoder must put out; the lanes that a mode leaves unused have magnitude 0.

    `free` lanes, an infinite element's others, may hold anything.
    """

    sign: list[int] = field(default_factory=lambda: [0] * LANES)
    magnitude: list[int] = field(default_factory=lambda: [0] * LANES)
    shift: list[int] = field(default_factory=lambda: [0] * LANES)
    infinity: list[int] = field(default_factory=lambda: [0] * LANES)
    zero: list[int] = field(default_factory=lambda: [0] * LANES)
    free: list[int] = field(default_factory=lambda: [0] * LANES)
    nan: int = 0


def parts(code: int, fmt: MxFormat) -> tuple[int, int, int]:
    """Return sign, integer significand and shift of a finite element."""
    value = float(decode(np.array(code, np.uint8), fmt)) * 2.0**-fmt.lsb_exponent
    if fmt.is_integer:
        return int(value < 0), int(abs(value)), 0
    sign = code >> (fmt.element_bits - 1) & 1
    if fmt.storage_bits == 4:
        return sign, int(abs(value)), 0
    exponent = code >> fmt.mantissa_bits & ((1 << fmt.exponent_bits) - 1)
    shift = max(exponent, 1) - 1
    return sign, int(abs(value)) >> shift, shift


def expected(mode: Mode, side: str, codes: NDArray[Any], beat: int, count: int) -> Lanes:
    """Return the lanes of one beat."""
    own, other = (mode.a, mode.b) if side == "a" else (mode.b, mode.a)
    lanes = Lanes()
    spacing = LANES // mode.elements
    for j in range(mode.elements):
        index, first = mode.elements * beat + j, spacing * j
        code = int(codes[index]) if index < count else 0
        value = float(decode(np.array(code, np.uint8), own))
        if np.isnan(value):
            lanes.nan = 1
            continue
        lanes.zero[first] = int(value == 0)
        if np.isinf(value):
            lanes.infinity[first] = 1
            lanes.free[first + 1 : first + spacing] = [1] * (spacing - 1)
            lanes.sign[first] = int(value < 0)
            continue
        sign, magnitude, shift = parts(code, own)
        low, high = magnitude & 15, magnitude >> 4
        if spacing == 1:
            places = [(0, low, 0)]
        elif own.storage_bits == 4:
            places = [(0, low, 0), (1, low, 0)]
        elif spacing == 2:
            places = [(0, low, shift), (1, high, shift)]
        elif own.is_integer and other.is_integer:
            order = [low, high, low, high] if side == "a" else [low, low, high, high]
            weight = 4 if side == "b" else 0
            places = [(k, nibble, weight if k == 2 else 0) for k, nibble in enumerate(order)]
        elif own.is_integer:
            places = [(0, low, 0), (2, high, 4)]
        elif other.is_integer:
            places = [(0, low, shift), (2, low, shift)]
        else:
            places = [(0, low, shift)]
        for offset, nibble, power in places:
            lanes.sign[first + offset] = sign
            lanes.magnitude[first + offset] = nibble
            lanes.shift[first + offset] = power
    return lanes


class Bench:
    """The decoder under test."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.rng: Generator = default_rng(cocotb.RANDOM_SEED)
        parameters, copies = block_parameters()
        assert copies == 1
        self.side: str = parameters["side"]
        self.plan = LanePlan(tuple(parameters["formats"]))
        self.layout = operand_layout(self.plan.formats)

    def fields(self, word: int) -> dict[str, int]:
        """Split an operand into its fields, as unsigned numbers."""
        found: dict[str, int] = {}
        for name, at in self.layout:
            assert isinstance(at, data.Field)
            found[str(name)] = word >> at.offset & ((1 << at.width) - 1)
        return found

    async def check(
        self,
        number: int,
        codes: NDArray[Any],
        beat: NDArray[Any],
        count: NDArray[Any],
        scale: NDArray[Any],
    ) -> None:
        """Decode beats of blocks of one mode and compare every lane that counts."""
        mode = self.plan.modes[number]
        own = mode.a if self.side == "a" else mode.b
        n = len(codes)
        stored = self.rng.integers(0, 256, (n, 1, self.plan.code_bits // 8)).astype(np.uint8)
        packed = codes.astype(np.uint8)
        if own.storage_bits == 4:
            packed = packed[:, 0::2] | (packed[:, 1::2] << 4)
        stored[:, 0, : own.block_bytes] = packed
        inputs = {
            "codes": to_words(stored, self.plan.code_bits),
            "mode": [number] * n,
            "beat": [int(x) for x in beat],
            "count": [int(x) for x in count],
            "scale": [int(x) for x in scale],
        }
        found = (await apply(self.dut, inputs, ["operand"]))["operand"]
        assert len(found) == n
        for k, word in enumerate(found):
            lanes = expected(mode, self.side, codes[k], int(beat[k]), int(count[k]))
            where = (
                f"{mode.a.name}*{mode.b.name} side {self.side} beat {beat[k]} count {count[k]} "
                f"scale {scale[k]:#04x} codes {codes[k].astype(np.uint8).tobytes().hex()}"
            )
            self.compare(self.fields(word), lanes, int(scale[k]), own, where)

    def compare(
        self, found: dict[str, int], lanes: Lanes, scale: int, own: MxFormat, where: str
    ) -> None:
        """Compare one operand; a NaN beat's lanes and an infinite element's do not count."""
        nan = lanes.nan | (scale == SCALE_NAN)
        assert found["nan"] == nan, f"{where}: nan must be {nan}, got {found['nan']}"
        exponent = scale - SCALE_BIAS + own.lsb_exponent
        width = self.layout["exponent"].width
        assert found["exponent"] == exponent % (1 << width), f"{where}: exponent is not {exponent}"
        if lanes.nan:
            return
        for lane in range(LANES):
            if lanes.free[lane]:
                continue
            if lanes.infinity[lane]:
                assert found["infinity"] >> lane // 2 & 1, f"{where}: lane {lane} is not infinite"
                assert found["sign"] >> lane & 1 == lanes.sign[lane], f"{where}: sign of {lane}"
                continue
            if self.plan.has_infinity and lane % 2 == 0:
                assert not found["infinity"] >> lane // 2 & 1, f"{where}: lane {lane} is infinite"
            magnitude = self.magnitude(found, lane)
            wanted = lanes.magnitude[lane]
            assert magnitude == wanted, f"{where}: lane {lane} must be {wanted}, got {magnitude}"
            if magnitude:
                sign = found["sign"] >> lane & 1
                assert sign == lanes.sign[lane], f"{where}: lane {lane} has sign {sign}"
            if magnitude and self.plan.has_shifters and lane % 2 == 0:
                bits = self.plan.element_shift.bit_length()
                shift = found["shift"] >> bits * (lane // 2) & ((1 << bits) - 1)
                wanted = lanes.shift[lane]
                assert shift == wanted, f"{where}: lane {lane} must shift {wanted}, got {shift}"
            if self.plan.has_infinity and lanes.zero[lane] and self.plan.largest_beats > 1:
                zero = found["zero"] >> lane // 2 & 1
                assert zero or lane % 2, f"{where}: lane {lane} is not zero"

    def magnitude(self, found: dict[str, int], lane: int) -> int:
        """Return a lane's magnitude, in halves for FP4."""
        if not self.plan.four_bit_only:
            return found["magnitude"] >> 4 * lane & 15
        code = sum((found["code"] >> LANES * k + lane & 1) << k for k in range(3))
        return (0, 1, 2, 3, 4, 6, 8, 12)[code]


@cocotb.test(timeout_time=10_000_000, timeout_unit="step")
async def every_code(dut: Any) -> None:
    """Every code at every element of a block, in every mode and beat."""
    bench = Bench(dut)
    for number, mode in enumerate(bench.plan.modes):
        own = mode.a if bench.side == "a" else mode.b
        codes = np.arange(1 << own.element_bits)
        blocks = (codes[:, np.newaxis] + np.arange(BLOCK_SIZE)) % len(codes)
        for beat in range(mode.beats):
            n = len(blocks)
            whole, one = np.full(n, BLOCK_SIZE), np.full(n, SCALE_BIAS)
            await bench.check(number, blocks, np.full(n, beat), whole, one)


@cocotb.test(timeout_time=10_000_000, timeout_unit="step")
async def every_count_and_scale(dut: Any) -> None:
    """Every count with random codes, NaN and infinity among them; every scale."""
    bench = Bench(dut)
    for number, mode in enumerate(bench.plan.modes):
        own = mode.a if bench.side == "a" else mode.b
        for beat in range(mode.beats):
            codes = bench.rng.integers(0, 1 << own.element_bits, (256, BLOCK_SIZE))
            scale = bench.rng.permutation(256)
            await bench.check(number, codes, np.full(256, beat), np.arange(256) % 33, scale)


@cocotb.test(timeout_time=10_000_000, timeout_unit="step")
async def random_beats(dut: Any) -> None:
    """Random beats; POBLANO_VECTORS says how many."""
    bench = Bench(dut)
    left = int(os.environ.get("POBLANO_VECTORS", _DEFAULT_VECTORS))
    while left > 0:
        number = int(bench.rng.integers(len(bench.plan.modes)))
        mode = bench.plan.modes[number]
        own = mode.a if bench.side == "a" else mode.b
        n = min(left, 256)
        left -= n
        await bench.check(
            number,
            bench.rng.integers(0, 1 << own.element_bits, (n, BLOCK_SIZE)),
            bench.rng.integers(0, mode.beats, n),
            bench.rng.integers(0, BLOCK_SIZE + 1, n),
            bench.rng.integers(0, 256, n),
        )
