"""Drives a `poblano_verif.tensor_on_l1.TensorOnL1`: loads L1, issues commands, reads L1 back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from cocotb.triggers import ReadOnly, RisingEdge, SimTimeoutError, with_timeout
from cocotb.utils import get_sim_time
from numpy.typing import NDArray

__all__ = ["L1Image", "TensorDriver"]

Bytes = NDArray[np.uint8]


class L1Image:
    """What L1 should hold: `size` bytes, and which lines were touched since the last flush.

    Parameters
    ----------
    size, line:
        Bytes of L1 and of a line.
    """

    def __init__(self, size: int, line: int) -> None:
        self.line = line
        self.data: Bytes = np.zeros(size, np.uint8)
        self._touched: set[int] = set()

    def put(self, runs: Iterable[tuple[int, Bytes]]) -> None:
        """Write runs of bytes at their addresses."""
        for address, data in runs:
            self.data[address : address + len(data)] = data
            self._touched.update(self._lines(address, len(data)))

    def fill(self, data: Bytes) -> None:
        """Write all of L1."""
        self.put([(0, data)])

    def _lines(self, address: int, length: int) -> range:
        return range(address // self.line, (address + length - 1) // self.line + 1)

    def lines(self, runs: Iterable[tuple[int, Bytes]]) -> list[int]:
        """Return the indices of the lines that hold any of the runs, ascending."""
        return sorted({n for address, data in runs for n in self._lines(address, len(data))})

    def take_touched(self) -> list[int]:
        """Return the indices of the lines touched since the last call, ascending."""
        touched, self._touched = sorted(self._touched), set()
        return touched

    def word(self, index: int) -> int:
        """Return a line as the integer that the host port carries."""
        start = index * self.line
        return int.from_bytes(self.data[start : start + self.line].tobytes(), "little")


class TensorDriver:
    """Access to a tensor engine and its L1 through their top ports.

    Parameters
    ----------
    dut:
        The cocotb handle of the top.
    line:
        Bytes of an L1 line.
    period:
        Clock period in simulation steps.
    """

    def __init__(self, dut: Any, *, line: int, period: int) -> None:
        self.dut = dut
        self.line = line
        self.period = period
        self.resting = True

    async def reset(self) -> None:
        """Put every input at rest and hold the reset for two cycles."""
        for stream in ("command", "host"):
            getattr(self.dut, f"{stream}__valid").value = 0
            getattr(self.dut, f"{stream}__payload").value = 0
        self.dut.rst.value = 1
        await self._edge()
        await self._edge()
        self.dut.rst.value = 0
        await self._edge()

    async def _edge(self) -> None:
        await RisingEdge(self.dut.clk)

    def _host(self, index: int, data: int, write: bool) -> int:
        """Return the payload of a host access; every byte of a written line is strobed."""
        address_bits = len(self.dut.host__payload) - 9 * self.line - 1
        strobe = (1 << self.line) - 1
        word = index | data << address_bits
        word |= strobe << (address_bits + 8 * self.line)
        return word | int(write) << (address_bits + 9 * self.line)

    async def write_lines(self, image: L1Image, lines: Iterable[int]) -> None:
        """Write lines of `image` into L1, one a cycle while the port is free."""
        await self._begin()
        for index in lines:
            self.dut.host__payload.value = self._host(index, image.word(index), write=True)
            await self._taken(self.dut.host__ready)
        self.dut.host__valid.value = 0

    async def read_lines(self, lines: Iterable[int]) -> dict[int, Bytes]:
        """Read lines of L1, one a cycle while the port is free."""
        await self._begin()
        found: dict[int, Bytes] = {}
        before: int | None = None
        for index in (*lines, None):
            if index is None:
                self.dut.host__valid.value = 0
            else:
                self.dut.host__payload.value = self._host(index, 0, write=False)
            if before is not None:
                await ReadOnly()
                if not int(self.dut.host_valid.value):
                    raise AssertionError(f"no answer to the read of line {before}")
                data = int(self.dut.host_data.value).to_bytes(self.line, "little")
                found[before] = np.frombuffer(data, np.uint8)
            if index is not None:
                await self._taken(self.dut.host__ready)
            before = index
        await self._edge()
        return found

    async def _begin(self) -> None:
        await self._edge()
        self.dut.host__valid.value = 1

    async def _taken(self, ready: Any) -> None:
        """Wait for the edge at which an offered payload is accepted.

        While the engine rests its L1 ports are free, and so is the host's.
        """
        if self.resting:
            await self._edge()
            return
        while True:
            await ReadOnly()
            accepted = int(ready.value)
            await self._edge()
            if accepted:
                return

    async def _done(self) -> None:
        """Wait until `done` has settled at 1: it may glitch while registers change."""
        await ReadOnly()
        while not int(self.dut.done.value):
            await RisingEdge(self.dut.done)
            await ReadOnly()

    async def run(self, word: bytes, limit: int) -> int:
        """Issue a command and wait until it is done; return its cycles.

        The count runs from the cycle after the word was accepted up to the last write, as the
        timing contract counts.

        Raises
        ------
        AssertionError
            If the command is not done after `limit` cycles.
        """
        self.resting = False
        await self._edge()
        self.dut.command__payload.value = int.from_bytes(word, "little")
        self.dut.command__valid.value = 1
        await ReadOnly()
        if not int(self.dut.command__ready.value):
            raise AssertionError("a resting engine must accept a command")
        await self._edge()
        issued = get_sim_time("step")
        self.dut.command__valid.value = 0
        try:
            await with_timeout(self._done(), limit * self.period, "step")
        except SimTimeoutError:
            raise AssertionError(f"a command must be done within {limit} cycles") from None
        cycles = round((get_sim_time("step") - issued) / self.period)
        await self._edge()
        await self._edge()
        self.resting = True
        return cycles

    async def refuse(self, word: bytes, limit: int) -> None:
        """Issue a command and wait until the engine has a fault and rests.

        Raises
        ------
        AssertionError
            If that takes more than `limit` cycles, or the command is reported done.
        """
        await self._edge()
        self.dut.command__payload.value = int.from_bytes(word, "little")
        self.dut.command__valid.value = 1
        await self._edge()
        self.dut.command__valid.value = 0
        for _ in range(limit):
            await ReadOnly()
            if int(self.dut.done.value):
                raise AssertionError("a faulty command must not be reported done")
            if int(self.dut.fault.value) and not int(self.dut.busy.value):
                await self._edge()
                return
            await self._edge()
        raise AssertionError(f"a fault must show within {limit} cycles")

    async def run_all(self, words: Sequence[bytes], limit: int) -> list[int]:
        """Issue commands as fast as the engine takes them; return when each was done.

        Cycle 0 is the one in which the first word is accepted.

        Raises
        ------
        AssertionError
            If they are not all done after `limit` cycles.
        """
        self.resting = False
        await self._edge()
        done: list[int] = []
        offered = 0
        for cycle in range(limit):
            self.dut.command__valid.value = offered < len(words)
            if offered < len(words):
                self.dut.command__payload.value = int.from_bytes(words[offered], "little")
            await ReadOnly()
            offered += offered < len(words) and int(self.dut.command__ready.value)
            if int(self.dut.done.value):
                done.append(cycle)
            await self._edge()
            if len(done) == len(words):
                self.resting = True
                return done
        raise AssertionError(f"{len(words)} commands must be done within {limit} cycles")
