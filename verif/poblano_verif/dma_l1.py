"""L1 as a half of the DMA engine sees it: requests may wait, reads answer a cycle later."""

from __future__ import annotations

from random import Random

import numpy as np
from numpy.typing import NDArray

from poblano_verif.axi_rules import Hold
from poblano_verif.dut import Dut

__all__ = ["L1Ports"]


class L1Ports:
    """Serves whichever of `read`, `write` and `index_read` the engine has.

    Read data are there for the cycle after the request was accepted, random bits from then on.

    Parameters
    ----------
    dut:
        The engine.
    data, line:
        The memory, uint8 `[size]`, and the bytes of a line.
    random:
        Source of the waits and of the idle data.

    Attributes
    ----------
    pause:
        Probability that a request has to wait in a cycle.
    writes:
        Lines that were written.
    """

    def __init__(self, dut: Dut, data: NDArray[np.uint8], line: int, random: Random) -> None:
        self._dut = dut
        self._line = line
        self._random = random
        self.data = data
        self.pause = 0.0
        self.writes = 0
        names = {"read": "read_data", "index_read": "index_data", "write": ""}
        self._streams = {name: dut.streams[name] for name in names if name in dut.streams}
        self._answers = {name: dut.ports[names[name]] for name in self._streams if names[name]}
        self.restart()

    def restart(self) -> None:
        """Forget the requests that wait."""
        self._holds = {name: Hold(name) for name in self._streams}
        self._answered: set[str] = set()

    def edge(self, cycle: int) -> None:
        """Work at the edge that ends a cycle."""
        for name, stream in self._streams.items():
            valid, ready = stream.handshake()
            payload = stream.payload.bits if valid else 0
            self._holds[name].step(cycle, valid, ready, payload)
            if stream.ready is not None and (self.pause or not ready):
                stream.ready.handle.value = int(self._random.random() >= self.pause)
            if name == "write":
                if valid and ready:
                    self._write(payload)
            elif valid and ready:
                self._answers[name].handle.value = self._read(payload)
                self._answered.add(name)
            elif name in self._answered:
                self._answered.remove(name)
                self._answers[name].handle.value = self._random.getrandbits(8 * self._line)

    def _read(self, index: int) -> int:
        if index >= len(self.data) // self._line:
            raise AssertionError(f"a read of line {index}, outside L1")
        line = self.data[index * self._line : (index + 1) * self._line]
        return int.from_bytes(line.tobytes(), "little")

    def _write(self, payload: int) -> None:
        self.writes += 1
        fields = self._streams["write"].payload.layout.unpack(payload)
        index = fields["address"]
        data = np.frombuffer(fields["data"].to_bytes(self._line, "little"), np.uint8)
        strobe = np.frombuffer(fields["strobe"].to_bytes(self._line // 8, "little"), np.uint8)
        mask = np.unpackbits(strobe, bitorder="little").astype(bool)
        if index >= len(self.data) // self._line:
            raise AssertionError(f"a write of line {index}, outside L1")
        self.data[index * self._line : (index + 1) * self._line][mask] = data[mask]
