"""Quick masters of a slice's host port: registers by name, and bytes of L1 through the window.

They drive the ports directly; while no transfer is on its way they cost nothing. Several coroutines
may use a master: one access goes after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cocotb.triggers import Lock

from poblano.dma.timing import burst_window, num_beats
from poblano.host.registers import RegisterMap
from poblano_verif.dut import Dut, Port
from poblano_verif.named_registers import NamedRegisters

__all__ = ["RegisterMaster", "WindowMaster"]

_INCR = 1


class _Master:
    """Handshakes on the channels of one bus."""

    def __init__(self, dut: Dut, prefix: str) -> None:
        self._clock = dut.clock
        self._name = prefix
        self._turn = Lock()
        self._ports: Mapping[str, Port] = {
            name.removeprefix(f"{prefix}__"): port
            for name, port in dut.ports.items()
            if name.startswith(f"{prefix}__")
        }

    def _drive(self, **values: int) -> None:
        for name, value in values.items():
            self._ports[name].handle.value = value

    async def _send(self, *channels: str, **payload: int) -> None:
        """Offer the payload on the channels until each has taken it."""
        self._drive(**payload, **{f"{channel}valid": 1 for channel in channels})
        waiting = set(channels)
        while waiting:
            await self._clock.edge()
            taken = {channel for channel in waiting if self._ports[f"{channel}ready"].bits}
            self._drive(**{f"{channel}valid": 0 for channel in taken})
            waiting -= taken

    async def _receive(self, channel: str, *names: str) -> list[int]:
        """Wait for one transfer of a channel whose ready is 1; return what it carries."""
        while True:
            await self._clock.edge()
            if self._ports[f"{channel}valid"].bits:
                return [self._ports[name].bits for name in names]

    def _check(self, response: int, what: str) -> None:
        if response:
            raise AssertionError(f"{self._name}: {what} must be answered with OKAY; got {response}")


class RegisterMaster(_Master, NamedRegisters):
    """Reads and writes registers.

    Parameters
    ----------
    dut:
        The block, its clock started.
    registers:
        The map.
    prefix:
        What the names of the bus's ports begin with.
    """

    def __init__(self, dut: Dut, registers: RegisterMap, prefix: str = "registers") -> None:
        _Master.__init__(self, dut, prefix)
        NamedRegisters.__init__(self, registers)

    async def write_word(self, offset: int, value: int) -> int:
        """Write a word; return the response."""
        async with self._turn:
            await self._send("aw", "w", awaddr=offset, awprot=0, wdata=value, wstrb=0xF)
            self._drive(bready=1)
            (response,) = await self._receive("b", "bresp")
            self._drive(bready=0)
        return response

    async def read_word(self, offset: int) -> tuple[int, int]:
        """Return a word and the response."""
        async with self._turn:
            await self._send("ar", araddr=offset, arprot=0)
            self._drive(rready=1)
            value, response = await self._receive("r", "rdata", "rresp")
            self._drive(rready=0)
        return value, response


class WindowMaster(_Master):
    """Reads and writes runs of bytes, in bursts as long as AXI allows.

    Parameters
    ----------
    dut:
        The block, its clock started.
    width:
        Bytes of the data bus.
    prefix:
        What the names of the bus's ports begin with.
    """

    def __init__(self, dut: Dut, width: int, prefix: str = "window") -> None:
        super().__init__(dut, prefix)
        self._width = width

    async def write(self, address: int, data: bytes) -> None:
        """Write bytes."""
        async with self._turn:
            await self._write(address, data)

    async def _write(self, address: int, data: bytes) -> None:
        width, ones = self._width, (1 << self._width) - 1
        for start, length in self._bursts(address, len(data)):
            beats = num_beats(start, length, width)
            before = start % width
            after = beats * width - before - length
            run = data[start - address : start - address + length]
            run = bytes(before) + run + bytes(after)
            await self._send("aw", **self._burst("aw", start, beats))
            for beat in range(beats):
                strobe = ones
                if beat == 0:
                    strobe &= ones << before
                if beat == beats - 1:
                    strobe &= ones >> after
                word = int.from_bytes(run[beat * width : (beat + 1) * width], "little")
                last = int(beat == beats - 1)
                await self._send("w", wdata=word, wstrb=strobe, wlast=last)
            self._drive(bready=1)
            (response,) = await self._receive("b", "bresp")
            self._drive(bready=0)
            self._check(response, f"a write of {length} bytes at {start:#x}")

    async def read(self, address: int, length: int) -> bytes:
        """Read bytes."""
        async with self._turn:
            return await self._read(address, length)

    async def _read(self, address: int, length: int) -> bytes:
        found: list[bytes] = []
        for start, part in self._bursts(address, length):
            beats = num_beats(start, part, self._width)
            await self._send("ar", **self._burst("ar", start, beats))
            self._drive(rready=1)
            run = bytearray()
            for _ in range(beats):
                word, response = await self._receive("r", "rdata", "rresp")
                self._check(response, f"a read of {part} bytes at {start:#x}")
                run += word.to_bytes(self._width, "little")
            self._drive(rready=0)
            before = start % self._width
            found.append(bytes(run[before : before + part]))
        return b"".join(found)

    def _burst(self, channel: str, address: int, beats: int) -> dict[str, int]:
        size = (self._width - 1).bit_length()
        names = {"id": 0, "addr": address, "len": beats - 1, "size": size, "burst": _INCR}
        return {f"{channel}{name}": value for name, value in names.items()}

    def _bursts(self, address: int, length: int) -> Iterator[tuple[int, int]]:
        """Yield start and length of bursts."""
        window, end = burst_window(self._width), address + length
        while address < end:
            stop = min(end, (address // window + 1) * window)
            yield address, stop - address
            address = stop
