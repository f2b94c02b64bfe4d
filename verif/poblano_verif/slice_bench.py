"""A slice with memories, programs of copies for it, and what they must leave behind."""

from __future__ import annotations

import os
from collections.abc import Iterable
from random import Random
from typing import Any

import cocotb
import numpy as np
from numpy.typing import NDArray

from poblano.commands import by_opcode
from poblano_sw.assembler import encode
from poblano_sw.program import Program
from poblano_verif.slice_fault import SliceFault, SliceFaultError
from poblano_verif.system_driver import SystemDriver

__all__ = ["LIMIT", "Bench", "Move", "after", "count", "handed_over", "random_moves", "with_fields"]

LIMIT = 2_000_000_000
"""Simulation steps that a test may take."""

Bytes = NDArray[np.uint8]
Move = tuple[int, int, int, int]
"""HBM addresses of source and target, length, and L1 address on the way."""

_SHARE = float(os.environ.get("POBLANO_BENCH_SHARE", "1"))


def count(usual: int) -> int:
    """Return how many of `usual` cases this run takes; at least one."""
    return max(1, round(usual * _SHARE))


def with_fields(word: bytes, **values: int) -> bytes:
    """Return a command's word with some fields changed, legal or not."""
    command = by_opcode(word[0])
    return command.encode({**command.decode(word), **values})


class Bench:
    """A slice, its memories, and random data."""

    def __init__(self, handle: Any) -> None:
        self.driver = SystemDriver(handle)
        self.random = Random(cocotb.RANDOM_SEED)
        self.slice = self.driver.configuration.slice
        self.ports = range(self.slice.hbm.ports)

    async def start(self) -> list[Bytes]:
        """Reset and fill the memories with random bytes; return them."""
        await self.driver.start()
        return await self.fill()

    async def fill(self) -> list[Bytes]:
        """Fill the memories with random bytes; return them."""
        memories: list[Bytes] = []
        for port in self.ports:
            data = np.frombuffer(self.random.randbytes(self.driver.memory_bytes), np.uint8).copy()
            await self.driver.load_hbm(port, 0, data)
            memories.append(data)
        return memories

    def word(self, mnemonic: str, **values: int) -> bytes:
        """Return the word of a legal command."""
        return encode(self.slice, mnemonic, **values)

    async def read(self, register: str) -> int:
        """Return a register."""
        return await self.driver.registers.read(register)

    async def write(self, register: str, value: int) -> None:
        """Write a register."""
        await self.driver.registers.write(register, value)

    async def wait_for(self, register: str, value: int, limit: int = 20_000) -> None:
        """Read a register until it holds a value."""
        end = self.driver.dut.clock.cycle + limit
        while (found := await self.read(register)) != value:
            if self.driver.dut.clock.cycle > end:
                raise AssertionError(f"{register} must become {value}; got {found}")
            await self.driver.dut.clock.edges(20)

    async def run_to_fault(self, program: Program, limit: int = 50_000) -> SliceFault:
        """Run a program, whatever is wrong with it, until the interrupt of a fault; return it."""
        try:
            await self.driver.run(program, limit, check=False)
        except SliceFaultError as error:
            return error.fault
        raise AssertionError("a fault must end the run")

    async def compare(self, memories: Iterable[Bytes]) -> None:
        """Compare all of every memory."""
        for port, wanted in enumerate(memories):
            found = await self.driver.dump_hbm(port, 0, len(wanted))
            wrong = np.flatnonzero(found != wanted)
            assert not len(wrong), f"port {port}: {len(wrong)} bytes are wrong from {wrong[0]:#x}"


def handed_over(bench: Bench, moves: list[Move], port: int) -> dict[str, list[bytes]]:
    """Return queues that make moves one after the other.

    Semaphore 2 * port says that L1 holds a run, the one after it that the run was stored.
    """
    full, free = 2 * port, 2 * port + 1
    loads: list[bytes] = []
    stores: list[bytes] = []
    for number, (source, target, length, l1) in enumerate(moves):
        waits = {"wait_a": free, "wait_a_count": int(number > 0)}
        signals = {"signal_a": full, "signal_a_count": 1}
        place = {"l1": l1, "length": length}
        loads.append(bench.word("load.rows", hbm=source, **place, **signals, **waits))
        waits = {"wait_a": full, "wait_a_count": 1}
        signals = {"signal_a": free, "signal_a_count": int(number < len(moves) - 1)}
        stores.append(bench.word("store.rows", hbm=target, **place, **waits, **signals))
    return {f"load_{port}": loads, f"store_{port}": stores}


def random_moves(bench: Bench, number: int, first: int) -> list[Move]:
    """Return moves from a memory's lower half to its upper, by L1 addresses from `first` on."""
    half = bench.driver.memory_bytes // 2
    moves: list[Move] = []
    for _ in range(number):
        length = bench.random.choice((1, 64, bench.random.randrange(1, 1500)))
        source, target = (bench.random.randrange(half - length) + part for part in (0, half))
        moves.append((source, target, length, bench.random.randrange(first, first + 4000)))
    return moves


def after(memory: Bytes, moves: Iterable[Move]) -> Bytes:
    """Return a memory after moves within it."""
    memory = memory.copy()
    for source, target, length, _ in moves:
        memory[target : target + length] = memory[source : source + length]
    return memory
