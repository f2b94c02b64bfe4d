"""Matrix products for a slice under test: operands, places in L1, and what must come out."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from poblano.arith.modes import Mode, modes, operand_formats
from poblano.commands import MATMUL
from poblano.config import SliceConfiguration
from poblano.tensor.layout import extents
from poblano_golden.blocks import MxTensor, num_blocks
from poblano_golden.elements import decode
from poblano_golden.formats import (
    BF16,
    BLOCK_SIZE,
    FP32,
    SCALE_NAN,
    SCALE_RULES,
    MxFormat,
    WideFormat,
)
from poblano_sw.matmul import MatmulPlan

__all__ = ["Product", "random_bytes", "random_operand", "random_product"]


@dataclass(frozen=True)
class Product:
    """One product: its place and command, and its operands.

    `a_memory` and `b_memory` are the operands as L1 holds them: whole blocks, in which whatever
    stands past K is random, NaN included.
    """

    plan: MatmulPlan
    a: MxTensor
    b: MxTensor
    a_memory: MxTensor
    b_memory: MxTensor

    def images(self) -> list[tuple[int, NDArray[np.uint8]]]:
        """Return address and bytes of every run that must be in L1 before the command."""
        return list(self.plan.images(self.a_memory, self.b_memory))


def _with_padding(random: Random, operand: MxTensor) -> MxTensor:
    """Return the operand in whole blocks, random codes past K."""
    numbers = np.random.default_rng(random.getrandbits(64))
    shape = (operand.rows, operand.num_blocks * BLOCK_SIZE)
    codes = numbers.integers(0, 1 << operand.fmt.element_bits, shape, dtype=np.uint8)
    if operand.fmt.has_nan:
        codes[numbers.random(shape) < 0.3] = 0x7F
    codes[:, : operand.k] = operand.codes
    return MxTensor(codes, operand.scales, operand.fmt)


def random_operand(random: Random, rows: int, k: int, fmt: MxFormat, nan: float = 0.0) -> MxTensor:
    """Return an operand of random codes under scales that make the results interesting.

    Scales are near one, spread over a few powers of two, or anywhere; `nan` is the probability
    of an operand with a few NaN scales and, where the format has them, NaN elements.
    """
    numbers = np.random.default_rng(random.getrandbits(64))
    codes = numbers.integers(0, 1 << fmt.element_bits, (rows, k), dtype=np.uint8)
    not_finite = ~np.isfinite(decode(codes, fmt))
    codes[not_finite] = 0
    spread = random.choice((0, 3, 20, 126))
    scales = numbers.integers(127 - spread, 128 + spread, (rows, num_blocks(k))).astype(np.uint8)
    if random.random() < nan:
        scales[numbers.random(scales.shape) < 0.02] = SCALE_NAN
        if fmt.has_nan:
            codes[numbers.random(codes.shape) < 0.0005] = 0x7F
    return MxTensor(codes, scales, fmt)


def _place(
    random: Random, configuration: SliceConfiguration, values: dict[str, int], window: range
) -> bool:
    """Place the command's arrays in random order, with gaps and at any byte; say if they fit."""
    address = window.start + random.randrange(64)
    arrays = list(extents(values))
    random.shuffle(arrays)
    aligned = random.random() < 0.3
    for extent in arrays:
        stride = extent.length + random.choice((0, 0, 1, 7, random.randrange(200)))
        if aligned:
            line = configuration.l1.line
            stride, address = -(-stride // line) * line, -(-address // line) * line
        values |= {f"{extent.name}s": address, f"{extent.name}_stride": stride}
        address += (extent.steps - 1) * stride + extent.length + random.randrange(40)
    return address <= window.stop


def random_product(
    random: Random,
    configuration: SliceConfiguration,
    *,
    mode: Mode | None = None,
    result: MxFormat | WideFormat | None = None,
    axis: int | None = None,
    shape: tuple[int, int, int] | None = None,
    largest: int = 100,
    nan: float = 0.1,
    window: range | None = None,
) -> Product:
    """Return a product with everything random that is not given.

    Sizes are drawn up to `largest` and halved until everything fits L1, or the `window` of its
    addresses.
    """
    formats = configuration.tensor.formats
    mode = mode or random.choice(modes(formats))
    result = result or random.choice((FP32, BF16, *operand_formats(formats)))
    while True:
        m, n, k = shape or [_size(random, largest) for _ in range(3)]
        values = {
            "a_format": mode.a.code,
            "b_format": mode.b.code,
            "d_format": result.code,
            "scale_rule": random.choice(list(SCALE_RULES.values())),
            "axis": random.randrange(2) if axis is None else axis,
            "m": m,
            "n": n,
            "k": k,
        }
        for side in "abd":
            for part in ("codes", "code_stride", "scales", "scale_stride"):
                values[f"{side}_{part}"] = 0
        if _place(random, configuration, values, window or range(configuration.l1.size)):
            break
        largest = max(1, largest // 2)
    values = MATMUL.complete(values)
    MATMUL.check(configuration, values)
    a, b = (random_operand(random, rows, k, fmt, nan) for rows, fmt in ((m, mode.a), (n, mode.b)))
    return Product(
        MatmulPlan(configuration, values, result),
        a,
        b,
        _with_padding(random, a),
        _with_padding(random, b),
    )


def _size(random: Random, largest: int) -> int:
    """Return a size that favours one, and multiples of 32 and their neighbours."""
    near = 32 * random.randint(1, max(1, largest // 32)) + random.choice((-1, 0, 1))
    return min(largest, random.choice((1, near, near, random.randint(1, largest))))


def random_bytes(random: Random, size: int) -> NDArray[np.uint8]:
    """Return `size` random bytes."""
    return np.frombuffer(random.randbytes(size), np.uint8)
