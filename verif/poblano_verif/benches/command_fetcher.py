"""Bench of the fetch of command words: rings of several queues in a model of L1."""

from __future__ import annotations

import os
from random import Random
from typing import Any

import cocotb
from cocotb.triggers import ReadOnly

from poblano.commands import WORD_BYTES
from poblano.config import L1Configuration
from poblano.faults import Fault
from poblano_verif.dut import Dut

CYCLES = int(os.environ.get("POBLANO_CYCLES", "5000"))


class Rings:
    """L1 with one ring a queue, behind each other, words numbered by queue and place."""

    def __init__(self, block: Dut, random: Random, l1: L1Configuration, queues: int) -> None:
        self.block, self.random, self.l1 = block, random, l1
        self.bases: list[int] = []
        self.sizes = [random.randrange(4) for _ in range(queues)]
        place = random.randrange(3)
        for size in self.sizes:
            self.bases.append(place)
            place += (1 << size) + random.randrange(2)
        self.published = [0] * queues
        self.taken = [0] * queues

    def word(self, place: int) -> int:
        """Return the word that lies at a place, in words."""
        return 0xC0FFEE << 64 | place

    def line(self, index: int) -> int:
        """Return a line of L1."""
        words = self.l1.line // WORD_BYTES
        places = range(index * words, (index + 1) * words)
        return sum(self.word(p) << 8 * WORD_BYTES * i for i, p in enumerate(places))

    def drive(self, queue: int) -> None:
        """Show a ring to the block."""
        self.block.ports[f"ring_{queue}"].drive(
            {
                "base": self.bases[queue],
                "size_log2": self.sizes[queue],
                "tail": self.published[queue] % (1 << 16),
            }
        )


async def _begin(dut: Any) -> tuple[Dut, L1Configuration, int]:
    block = Dut(dut)
    block.rest()
    block.clock.start()
    await block.clock.reset()
    parameters = block.manifest["modules"][-1]["parameters"]
    values = parameters["l1"]
    return block, L1Configuration.model_validate(values), int(parameters["queues"])


def _delivers(block: Dut, queue: int) -> int:
    return block.ports[f"words_{queue}__valid"].bits


@cocotb.test(timeout_time=1_000_000_000, timeout_unit="step")
async def words_come_in_order(dut: Any) -> None:
    """Words of every ring, in order and once each, under stalls of L1 and of the queues."""
    block, l1, queues = await _begin(dut)
    random = Random(cocotb.RANDOM_SEED)
    rings = Rings(block, random, l1, queues)
    data: int | None = None
    longest = 0
    since = [0] * queues
    coming: list[int] = []
    for _ in range(CYCLES):
        enable = random.random() < 0.95
        ready = [random.random() < 0.8 for _ in range(queues)]
        for queue in range(queues):
            room = (1 << rings.sizes[queue]) - (rings.published[queue] - rings.taken[queue])
            if random.random() < 0.2:
                rings.published[queue] += random.randint(0, room)
            rings.drive(queue)
            # a queue that has room keeps it until a word comes
            block.ports[f"words_{queue}__ready"].drive(int(ready[queue] or since[queue] > 0))
            since[queue] = int(ready[queue] or since[queue] > 0)
        block.ports["enable"].drive(int(enable))
        block.ports["read__ready"].drive(int(random.random() < 0.6))
        block.ports["read_data"].drive(0 if data is None else data)
        await ReadOnly()
        before = coming
        coming = [q for q in range(queues) if block.ports[f"coming_{q}"].bits]
        assert len(coming) <= 1
        asks = block.ports["read__valid"].bits
        assert bool(coming) == bool(asks or any(_delivers(block, q) for q in range(queues)))
        for queue in range(queues):
            assert block.ports[f"fetched_{queue}"].bits == rings.taken[queue] % (1 << 16)
            idle = rings.published[queue] == rings.taken[queue]
            assert block.ports[f"idle_{queue}"].bits == idle
            if block.ports[f"words_{queue}__valid"].bits:
                assert block.ports[f"words_{queue}__ready"].bits, "a word must have room"
                assert before == coming == [queue], f"{coming} was announced, not {queue}"
                assert not idle, f"queue {queue} got a word that was not published"
                offset = rings.taken[queue] % (1 << rings.sizes[queue])
                expected = rings.word(rings.bases[queue] + offset)
                found = block.ports[f"words_{queue}__payload"].bits
                assert found == expected, f"queue {queue} got {found:#x}, expected {expected:#x}"
                rings.taken[queue] += 1
                since[queue] = 0
            assert block.ports[f"fault_{queue}"].bits & 15 == Fault.NONE
        longest = max(longest, *rings.taken)
        data = None
        if block.ports["read__valid"].bits and block.ports["read__ready"].bits:
            data = rings.line(block.ports["read__payload"].bits)
        await block.clock.edge()
    assert min(rings.taken) > CYCLES // 100, f"fetched {rings.taken}"


@cocotb.test(timeout_time=1_000_000_000, timeout_unit="step")
async def rings_outside_l1(dut: Any) -> None:
    """A ring that leaves L1 is a fault at its first word outside; other queues go on."""
    block, l1, queues = await _begin(dut)
    random = Random(cocotb.RANDOM_SEED)
    rings = Rings(block, random, l1, queues)
    last = l1.size // WORD_BYTES
    rings.bases[0], rings.sizes[0] = last - 1, 1
    rings.published = [2] * queues
    rings.sizes[1:] = [1] * (queues - 1)
    block.ports["enable"].drive(1)
    block.ports["read__ready"].drive(1)
    for queue in range(queues):
        rings.drive(queue)
        block.ports[f"words_{queue}__ready"].drive(1)
    for _ in range(20 * queues):
        await block.clock.edge()
    await ReadOnly()
    fault = block.ports["fault_0"].bits
    assert (fault & 15, fault >> 12 & ((1 << 40) - 1)) == (Fault.ADDRESS, l1.size)
    fetched = [block.ports[f"fetched_{queue}"].bits for queue in range(queues)]
    assert fetched == [1] + [2] * (queues - 1)
