"""L1 as a client sees it: a memory that may make reads and writes wait."""

from __future__ import annotations

from random import Random

import cocotb

from poblano_verif.dut import Dut
from poblano_verif.streams import StreamMonitor, StreamSink

__all__ = ["L1Model"]


class L1Model:
    """Serves the ports `read`, `read_data` and `write` of a client of L1.

    `read_data` carries random bits except in the cycle after a read was accepted.

    Parameters
    ----------
    dut:
        The client.
    size, line:
        Bytes of L1 and of a line.
    random:
        Source of the waits, the idle data and the memory's first content.
    pause:
        Probability that a request has to wait in a cycle.

    Attributes
    ----------
    data:
        The memory.
    reads, writes:
        Lines read, and lines written, so far.
    """

    def __init__(self, dut: Dut, size: int, line: int, random: Random, pause: float) -> None:
        self._dut = dut
        self._line = line
        self._random = random
        self.data = bytearray(random.randbytes(size))
        self.reads = self.writes = 0
        self._answer: int | None = None
        read, write = dut.streams["read"], dut.streams["write"]
        self._sinks = [
            StreamSink(stream, dut.clock, Random(random.getrandbits(64)), pause)
            for stream in (read, write)
        ]
        self._monitors = [
            StreamMonitor(read, dut.clock, self._read),
            StreamMonitor(write, dut.clock, self._write),
        ]
        self._layout = write.payload.layout

    def start(self) -> None:
        """Begin to serve."""
        for part in (*self._sinks, *self._monitors):
            part.start()
        cocotb.start_soon(self._drive())

    def _span(self, index: int) -> slice:
        assert 0 <= index < len(self.data) // self._line, f"line {index} lies outside L1"
        return slice(index * self._line, (index + 1) * self._line)

    def _read(self, index: int) -> None:
        self._answer = int.from_bytes(self.data[self._span(index)], "little")
        self.reads += 1

    def _write(self, bits: int) -> None:
        write = self._layout.unpack(bits)
        assert isinstance(write, dict)
        fields = {name: int(value) for name, value in write.items()}
        span = self._span(fields["address"])
        data = fields["data"].to_bytes(self._line, "little")
        for byte in range(self._line):
            if fields["strobe"] >> byte & 1:
                self.data[span.start + byte] = data[byte]
        self.writes += 1

    async def _drive(self) -> None:
        port = self._dut.ports["read_data"].handle
        while True:
            await self._dut.clock.edge()
            port.value = (
                self._random.getrandbits(8 * self._line) if self._answer is None else self._answer
            )
            self._answer = None
