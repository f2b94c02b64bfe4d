"""Bench of the quantiser: codes and scales of block after block against the numpy model.

A block enters every cycle, and its format and rule differ from the last one's. Each result must
appear exactly the published latency later.
"""

from __future__ import annotations

import os
from typing import Any

import cocotb
import numpy as np
from numpy.random import default_rng

from poblano_golden.arrays import U8
from poblano_golden.elements import decode
from poblano_golden.formats import MX_FORMATS, SCALE_NAN, SCALE_RULES, MxFormat
from poblano_verif.batch import apply, block_parameters, reset, to_words
from poblano_verif.mx_blocks import (
    Blocks,
    random_blocks,
    scale_blocks,
    special_blocks,
    subnormal_blocks,
    tie_blocks,
)

EDGE_SCALES = (*range(18), *range(124, 130), *range(236, SCALE_NAN))
"""Scale bytes under which subnormal and the largest numbers occur, and some between."""

_DEFAULT_BLOCKS = 10_000
_CHUNK = 10_000


class Bench:
    """A quantiser under test."""

    def __init__(self, dut: Any) -> None:
        parameters, _ = block_parameters()
        self.dut = dut
        self.formats: list[str] = parameters["formats"]
        self.latency = int(parameters["stages"])
        self.block_bytes = len(dut.codes) // 8
        self.rng = default_rng(cocotb.RANDOM_SEED)
        self.share = float(os.environ.get("POBLANO_BENCH_SHARE", "1"))

    async def check(self, blocks: Blocks, *, whole: bool = False) -> None:
        """Quantise the blocks in random order, and compare every result.

        Takes the share of them that POBLANO_BENCH_SHARE says, unless `whole`.
        """
        for port in (self.dut.values, self.dut.format, self.dut.rule):
            port.value = 0
        await reset(self.dut)
        blocks = blocks.shuffled(self.rng)
        n = len(blocks) if whole else int(len(blocks) * self.share)
        assert n, "no block is left to compare"
        for start in range(0, n, _CHUNK):
            await self._compare(blocks.take(slice(start, min(start + _CHUNK, n))), start)

    async def _compare(self, blocks: Blocks, first: int) -> None:
        n = len(blocks)
        # What follows the last block must not change its result: the first ones again.
        fed = blocks.take(np.arange(n + self.latency) % n)
        inputs = {
            "values": to_words(fed.bits.view(np.uint8)[:, None], 8 * fed.bits.strides[0]),
            "format": fed.formats.tolist(),
            "rule": fed.rules.tolist(),
        }
        outputs = await apply(self.dut, inputs, ["codes", "scale"])
        found = [outputs[port][self.latency :] for port in ("codes", "scale")]
        codes, scales = blocks.expected(self.formats, self.block_bytes)
        wanted = [to_words(codes[:, None], 8 * self.block_bytes), scales.tolist()]
        if found != wanted:
            wrong = [
                i for i in range(n) if any(f[i] != w[i] for f, w in zip(found, wanted, strict=True))
            ]
            at = wrong[0]
            raise AssertionError(
                f"{len(wrong)} of {n} blocks are wrong; the first is transaction {first + at}, "
                f"cycle {first + at + self.latency}: "
                + self.describe(blocks.take([at]), found[0][at], found[1][at])
            )

    def describe(self, block: Blocks, codes: int, scale: int) -> str:
        """Return what is wrong with the result of one block."""
        expected, scales = block.expected(self.formats, self.block_bytes)
        found = np.frombuffer(codes.to_bytes(self.block_bytes, "little"), np.uint8)
        fmt = MX_FORMATS[self.formats[int(block.formats[0])]]
        rule = list(SCALE_RULES)[int(block.rules[0])]
        amax = int((block.bits & 0x7FFFFFFF).max())
        text = f"{fmt.name}, {rule}, amax {amax:#010x}: scale {scale:#04x}, not {scales[0]:#04x}"
        wanted, got = _elements(expected[0], fmt), _elements(found, fmt)
        for i in np.flatnonzero(wanted != got)[:4]:
            bits = block.bits[0, i]
            text += (
                f"; element {i} of {bits:#010x} ({bits.view(np.float32):g}):"
                f" {got[i]:#04x} ({_number(got[i], fmt)}),"
                f" not {wanted[i]:#04x} ({_number(wanted[i], fmt)})"
            )
        rest = found[fmt.block_bytes :]
        return text + (f"; {rest[::-1].tobytes().hex()} above, not 0" if rest.any() else "")


def _elements(block: U8, fmt: MxFormat) -> U8:
    """Return the 32 codes of a block as it lies in memory."""
    block = block[: fmt.block_bytes]
    if fmt.storage_bits == 4:
        return np.stack((block & np.uint8(15), block >> np.uint8(4)), axis=-1).reshape(-1)
    return block


def _number(code: Any, fmt: MxFormat) -> str:
    if int(code) >> fmt.element_bits:
        return "no code"
    return f"{decode(np.array([code], np.uint8), fmt)[0]:g}"


@cocotb.test(timeout_time=1_000_000_000, timeout_unit="step")
async def every_decision_of_a_scale(dut: Any) -> None:
    """Every exponent of the largest magnitude and fraction at which a rule decides."""
    bench = Bench(dut)
    await bench.check(scale_blocks(bench.formats, bench.rng))


@cocotb.test(timeout_time=1_000_000_000, timeout_unit="step")
async def every_tie_of_an_element(dut: Any) -> None:
    """Every code's value, every tie and its neighbours; POBLANO_EVERY_SCALE: by every scale."""
    bench = Bench(dut)
    scales = range(SCALE_NAN) if "POBLANO_EVERY_SCALE" in os.environ else EDGE_SCALES
    await bench.check(tie_blocks(bench.formats, scales, bench.rng))


@cocotb.test(timeout_time=1_000_000_000, timeout_unit="step")
async def specials_in_every_place(dut: Any) -> None:
    """NaN and infinity in every place; zeros of both signs; lone numbers."""
    bench = Bench(dut)
    await bench.check(special_blocks(bench.formats, bench.rng))


@cocotb.test(timeout_time=1_000_000_000, timeout_unit="step")
async def subnormal_numbers(dut: Any) -> None:
    """Subnormal numbers, alone and beside small normal ones."""
    bench = Bench(dut)
    await bench.check(subnormal_blocks(bench.formats, bench.rng))


@cocotb.test(timeout_time=1_000_000_000, timeout_unit="step")
async def random_numbers(dut: Any) -> None:
    """Random blocks; POBLANO_VECTORS says how many."""
    bench = Bench(dut)
    count = int(os.environ.get("POBLANO_VECTORS", _DEFAULT_BLOCKS))
    for start in range(0, count, _CHUNK):
        blocks = random_blocks(bench.formats, min(_CHUNK, count - start), bench.rng)
        await bench.check(blocks, whole=True)
