"""Quick masters of a slice's host port: registers by name, and bytes of L1 through the window.

They drive the ports directly and one transfer at a time; while none is on its way they cost
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from poblano.dma.timing import burst_window, num_beats
from poblano.host.registers import RegisterMap
from poblano_verif.dut import Dut, Port

__all__ = ["RegisterMaster", "WindowMaster"]

_INCR = 1


class _Master:
    """Handshakes on the channels of one bus."""

    def __init__(self, dut: Dut, prefix: str) -> None:
        self._clock = dut.clock
        self._name = prefix
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


class RegisterMaster(_Master):
    """Reads and writes registers by the names of the register map.

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
        super().__init__(dut, prefix)
        self.map = registers
        self._by_name = {register.name: register for register in registers.registers}

    async def write(self, name: str, value: int) -> None:
        """Write all of a register."""
        for word in self._by_name[name].words:
            part = value >> word.low & 0xFFFF_FFFF
            await self._send("aw", "w", awaddr=word.offset, awprot=0, wdata=part, wstrb=0xF)
            self._drive(bready=1)
            (response,) = await self._receive("b", "bresp")
            self._drive(bready=0)
            self._check(response, f"a write to {word.name}")

    async def read(self, name: str) -> int:
        """Read all of a register."""
        value = 0
        for word in self._by_name[name].words:
            await self._send("ar", araddr=word.offset, arprot=0)
            self._drive(rready=1)
            part, response = await self._receive("r", "rdata", "rresp")
            self._drive(rready=0)
            self._check(response, f"a read of {word.name}")
            value |= part << word.low
        return value

    async def read_fields(self, name: str) -> dict[str, int]:
        """Read a register; return its fields by name."""
        value = await self.read(name)
        return {
            item.name: value >> item.low & (1 << item.width) - 1
            for item in self._by_name[name].fields
        }


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
