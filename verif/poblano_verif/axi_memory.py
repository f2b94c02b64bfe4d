"""The ideal memory of the timing contract, and its errors and silences on request."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from poblano_verif.axi_rules import Burst
from poblano_verif.dut import Port

__all__ = ["Behaviour", "IdealReads", "IdealWrites", "Window"]


class Window:
    """The part of a memory that a test uses; the rest is out of bounds.

    Parameters
    ----------
    origin:
        Address of the first byte.
    data:
        Its bytes, uint8 `[size]`.
    """

    def __init__(self, origin: int, data: NDArray[np.uint8]) -> None:
        self.origin = origin
        self.data = data

    def read(self, address: int, width: int) -> int:
        """Return the bus word of `width` bytes that holds `address`; zeros around the window."""
        low, high = self._bounds(address, width)
        word = bytes(self.data[max(0, low) : high])
        return int.from_bytes(bytes(max(0, -low)) + word, "little")

    def write(self, address: int, width: int, value: int, strobe: int) -> None:
        """Write the strobed bytes of a bus word."""
        low, _ = self._bounds(address, width)
        data = value.to_bytes(width, "little")
        if strobe == (1 << width) - 1 and 0 <= low <= len(self.data) - width:
            self.data[low : low + width] = np.frombuffer(data, np.uint8)
            return
        for lane in range(width):
            if strobe >> lane & 1:
                if not 0 <= low + lane < len(self.data):
                    raise AssertionError(f"a write to {address + lane:#x}, outside what may change")
                self.data[low + lane] = data[lane]

    def _bounds(self, address: int, width: int) -> tuple[int, int]:
        low = address // width * width - self.origin
        if not -width < low < len(self.data):
            raise AssertionError(f"an access to {address:#x}, outside what the test uses")
        return low, low + width


@dataclass
class Behaviour:
    """What a memory does.

    Attributes
    ----------
    latency:
        Cycles to the first read beat from its acceptance, or to a response from the last beat.
    responses:
        Number of a burst, and of a beat in it (0 for a write) to a response other than OKAY.
    mute_from:
        Number of the first burst that gets no answer.
    accepts:
        Whether addresses and data are accepted.
    """

    latency: int = 64
    responses: Mapping[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    mute_from: int | None = None
    accepts: bool = True

    def is_mute(self, burst: int) -> bool:
        """Whether the burst of that number gets no answer."""
        return self.mute_from is not None and burst >= self.mute_from


class IdealReads:
    """Serves the read channels.

    Parameters
    ----------
    ports:
        The ports by the channels' signal names.
    width:
        Bytes of the data bus.
    memory, behaviour:
        What it reads, and how.
    """

    def __init__(
        self, ports: Mapping[str, Port], width: int, memory: Window, behaviour: Behaviour
    ) -> None:
        self._ports = ports
        self._width = width
        self._memory = memory
        self._behaviour = behaviour
        self._queue: deque[tuple[int, int, Burst]] = deque()
        self._accepted = 0
        self._beat = 0
        self._offers = False

    def edge(self, cycle: int) -> None:
        """Work at the edge that ends a cycle."""
        ports, behaviour = self._ports, self._behaviour
        ports["arready"].handle.value = int(behaviour.accepts)
        if ports["arvalid"].bits and ports["arready"].bits:
            burst = Burst(ports["araddr"].bits, ports["arlen"].bits + 1, self._width)
            self._queue.append((self._accepted, cycle + behaviour.latency, burst))
            self._accepted += 1
        if self._offers:
            if not ports["rready"].bits:
                return
            self._beat += 1
            if self._beat == self._queue[0][2].beats:
                self._queue.popleft()
                self._beat = 0
        self._offers = False
        if self._queue:
            number, due, burst = self._queue[0]
            self._offers = due <= cycle + 1 and not behaviour.is_mute(number)
            if self._offers:
                self._offer(number, burst)
        ports["rvalid"].handle.value = int(self._offers)

    def _offer(self, number: int, burst: Burst) -> None:
        ports = self._ports
        address = burst.address // self._width * self._width + self._beat * self._width
        ports["rdata"].handle.value = self._memory.read(address, self._width)
        ports["rresp"].handle.value = self._behaviour.responses.get((number, self._beat), 0)
        ports["rlast"].handle.value = int(self._beat == burst.beats - 1)


class IdealWrites:
    """Serves the write channels; the parameters are those of `IdealReads`."""

    def __init__(
        self, ports: Mapping[str, Port], width: int, memory: Window, behaviour: Behaviour
    ) -> None:
        self._ports = ports
        self._width = width
        self._memory = memory
        self._behaviour = behaviour
        self._bursts: deque[Burst] = deque()
        self._beats: deque[tuple[int, int]] = deque()
        self._beat = 0
        self._written = 0
        self._answers: deque[tuple[int, int]] = deque()
        self._offers = False

    def edge(self, cycle: int) -> None:
        """Work at the edge that ends a cycle."""
        ports, behaviour = self._ports, self._behaviour
        for name in ("awready", "wready"):
            ports[name].handle.value = int(behaviour.accepts)
        if ports["awvalid"].bits and ports["awready"].bits:
            self._bursts.append(Burst(ports["awaddr"].bits, ports["awlen"].bits + 1, self._width))
        if ports["wvalid"].bits and ports["wready"].bits:
            self._beats.append((ports["wdata"].bits, ports["wstrb"].bits))
        while self._bursts and self._beats:
            self._write(cycle, self._bursts[0], *self._beats.popleft())
        if self._offers:
            if not ports["bready"].bits:
                return
            self._answers.popleft()
        self._offers = False
        if self._answers:
            number, due = self._answers[0]
            self._offers = due <= cycle + 1 and not behaviour.is_mute(number)
            ports["bresp"].handle.value = behaviour.responses.get((number, 0), 0)
        ports["bvalid"].handle.value = int(self._offers)

    def _write(self, cycle: int, burst: Burst, value: int, strobe: int) -> None:
        address = burst.address // self._width * self._width + self._beat * self._width
        self._memory.write(address, self._width, value, strobe)
        self._beat += 1
        if self._beat == burst.beats:
            self._bursts.popleft()
            self._answers.append((self._written, cycle + self._behaviour.latency))
            self._beat = 0
            self._written += 1
