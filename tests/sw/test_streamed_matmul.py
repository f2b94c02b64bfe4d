"""Streamed products: placement, and that their semaphores suffice in whatever order engines run."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from poblano.commands import CommandError, by_opcode
from poblano.config import load
from poblano_golden.blocks import MxTensor, quantise
from poblano_golden.formats import BF16, FP32, MXFP4, MXFP8_E4M3, MXINT8
from poblano_sw.chunking import plan_streamed
from poblano_sw.simulator import Memories
from poblano_sw.streamed_matmul import Product, StreamedMatmul

TINY = load("tiny", ["slice.l1.size=16 KiB"]).slice


def operands(product: Product, seed: int) -> tuple[MxTensor, MxTensor]:
    numbers = np.random.default_rng(seed)
    return (
        quantise(numbers.standard_normal((product.m, product.k), np.float32), product.a, "even"),
        quantise(numbers.standard_normal((product.n, product.k), np.float32), product.b, "even"),
    )


class Machine:
    """Runs command words on the simulator's memories, queues in an order drawn at random."""

    def __init__(self, hbm_size: int, random: Random) -> None:
        self.memories = Memories(TINY, hbm_size)
        self.hbm = self.memories.hbm[0]
        self.semaphores = [0] * 64
        self.random = random

    def run(self, queues: dict[str, list[bytes]]) -> None:
        left = {name: list(words) for name, words in queues.items()}
        while any(left.values()):
            ready = [name for name, words in left.items() if words and self._may(words[0])]
            assert ready, f"every queue waits: {self.semaphores}"
            self._execute(left[self.random.choice(ready)].pop(0))

    def _pairs(self, word: bytes, kind: str) -> list[tuple[int, int]]:
        values = by_opcode(word[0]).decode(word)
        return [(values[f"{kind}_{h}"], values[f"{kind}_{h}_count"]) for h in "ab"]

    def _may(self, word: bytes) -> bool:
        return all(self.semaphores[s] >= count for s, count in self._pairs(word, "wait"))

    def _execute(self, word: bytes) -> None:
        for semaphore, count in self._pairs(word, "wait"):
            self.semaphores[semaphore] -= count
        command = by_opcode(word[0])
        self.memories.execute(command, command.decode(word), port=0)
        for semaphore, count in self._pairs(word, "signal"):
            self.semaphores[semaphore] += count


CASES = [
    (Product(1, 96, 64, MXFP4, MXFP4, MXFP4, "even"), (32, 32, 32), 2),
    (Product(3, 160, 70, MXFP8_E4M3, MXFP4, FP32), (32, 64, 32, 32), 1),
    (Product(5, 100, 33, MXINT8, MXINT8, BF16), (64, 36), 2),
    (Product(2, 130, 64, MXFP4, MXFP4, MXINT8), (32, 32, 32, 32, 2), 3),
    (Product(4, 20, 40, MXFP4, MXINT8, MXFP8_E4M3), (20,), 1),
]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("product", "chunks", "buffers"), CASES)
def test_any_order_of_engines_gives_the_golden_bytes(product, chunks, buffers, seed):
    plan = StreamedMatmul(TINY, product, chunks, buffers, hbm=4096)
    a, b = operands(product, seed)
    machine = Machine(plan.hbm_end, Random(seed))
    for address, data in plan.images(a, b):
        assert not machine.hbm[address : address + len(data)].any(), "arrays must lie apart"
        machine.hbm[address : address + len(data)] = data
    machine.run(plan.queues)
    found = machine.hbm[plan.hbm_d :]
    expected = plan.golden_bytes(a, b)
    assert np.array_equal(found, expected)
    assert machine.semaphores == [0] * 64, "nothing must be left over"
    read = plan.read(found)
    if isinstance(read, MxTensor):
        assert read.codes.shape == (product.m, product.n)
    else:
        assert read.shape == (product.m, product.n)


def test_moved_bytes_are_those_of_the_arrays():
    product = Product(1, 1536, 576, MXFP4, MXFP4, MXFP4)
    assert product.moved_bytes == 18 * 17 + 1536 * 18 * 17 + 48 * 17


@pytest.mark.parametrize("n", [1, 31, 32, 33, 95, 96, 1000])
def test_plans_cover_all_columns_and_fit(n):
    product = Product(2, n, 64, MXFP4, MXFP4, FP32)
    plan = plan_streamed(TINY, product, l1_size=12_000)
    assert sum(plan.chunks) == n
    assert all(start % 32 == 0 for start in plan.starts)
    assert all(chunk > 0 for chunk in plan.chunks)
    assert plan.l1_end <= 12_000
    assert plan.queues.keys() == {"load_0", "tensor", "store_0"}


def test_what_does_not_fit_is_refused_with_its_size():
    product = Product(64, 64, 4096, MXFP4, MXFP4, FP32)
    with pytest.raises(CommandError, match=r"must fit 16384 bytes of L1.* takes at least \d+"):
        plan_streamed(TINY, product, l1_size=TINY.l1.size)
