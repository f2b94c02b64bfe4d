"""Products streamed from HBM to HBM for a slice under test, and what must come out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from poblano.arith.modes import modes, operand_formats
from poblano.config import SliceConfiguration
from poblano_golden.blocks import MxTensor
from poblano_golden.formats import BF16, FP32, SCALE_RULES
from poblano_sw.streamed_matmul import Product, StreamedMatmul
from poblano_verif.matmul_workload import random_operand

__all__ = ["Streamed", "random_streamed"]

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Streamed:
    """A product and its operands."""

    plan: StreamedMatmul
    a: MxTensor
    b: MxTensor

    def images(self) -> Iterator[tuple[int, Bytes]]:
        """Yield HBM address and bytes of every run that must be there before."""
        yield from self.plan.images(self.a, self.b)

    def check(self, found: Bytes) -> None:
        """Compare the bytes of HBM from `plan.hbm_d` to `plan.hbm_end` with the numpy model."""
        wrong = np.flatnonzero(found != self.plan.golden_bytes(self.a, self.b))
        assert not len(wrong), f"{self.plan}: {len(wrong)} bytes are wrong from {wrong[0]}"


def random_streamed(
    random: Random, configuration: SliceConfiguration, largest: int, *, l1_size: int, hbm: range
) -> Streamed:
    """Return a product of random sizes, formats, chunks and buffers.

    Sizes are drawn up to `largest`, less until the product fits `l1_size` bytes of L1 from 0 and
    the addresses `hbm` of port 0.
    """
    formats = configuration.tensor.formats
    mode = random.choice(modes(formats))
    result = random.choice((FP32, BF16, *operand_formats(formats)))
    while True:
        m, n, k = (random.randint(1, size) for size in (min(12, largest), largest, largest))
        chunks: list[int] = []
        while sum(chunks) < n:
            chunks.append(32 * random.randint(1, 3))
        chunks[-1] -= sum(chunks) - n
        product = Product(m, n, k, mode.a, mode.b, result, random.choice(list(SCALE_RULES)))
        buffers = random.randint(1, len(chunks))
        plan = StreamedMatmul(configuration, product, tuple(chunks), buffers, hbm.start)
        if plan.l1_end <= l1_size and plan.hbm_end <= hbm.stop:
            break
        largest = max(1, largest * 3 // 4)
    a, b = (random_operand(random, rows, k, fmt, 0.1) for rows, fmt in ((m, mode.a), (n, mode.b)))
    return Streamed(plan, a, b)
