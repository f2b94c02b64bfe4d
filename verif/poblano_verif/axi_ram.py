"""The RAM of cocotbext-axi with errors and silences on request."""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from random import Random
from typing import Any

import numpy as np
from cocotbext.axi import AxiBus, AxiRam
from numpy.typing import NDArray

from poblano_verif.axi_lite import pauses
from poblano_verif.dut import Dut

__all__ = ["FaultyRam"]


class FaultyRam:
    """Serves an AXI4 port; addresses wrap at its size.

    Parameters
    ----------
    dut, handle:
        The block, and its cocotb handle.
    prefix:
        What the names of the bus's ports begin with, without the last underscore.
    size:
        Bytes.

    Attributes
    ----------
    data:
        The bytes, uint8 `[size]`.
    read_errors:
        Number of a burst since reset, and of a beat in it, to a response other than OKAY.
    write_errors:
        Number of a burst since reset to a response other than OKAY.
    """

    def __init__(self, dut: Dut, handle: Any, prefix: str, size: int) -> None:
        memory = mmap.mmap(-1, size)
        self.data: NDArray[np.uint8] = np.frombuffer(memory, np.uint8)
        bus: Any = AxiBus.from_prefix(handle, prefix)
        clock, reset = (dut.ports[name].handle for name in ("clk", "rst"))
        ram: Any = AxiRam(bus, clock, reset, size=size, mem=memory)
        writes, reads = ram.write_if, ram.read_if
        self._channels: dict[str, Any] = {
            "aw": writes.aw_channel,
            "w": writes.w_channel,
            "b": writes.b_channel,
            "ar": reads.ar_channel,
            "r": reads.r_channel,
        }
        self._send = {name: self._channels[name].send for name in "rb"}
        self._channels["r"].send = self._send_beat
        self._channels["b"].send = self._send_response
        self.restart()

    def restart(self) -> None:
        """Count bursts from 0, answer all of them, and with OKAY."""
        self.read_errors: Mapping[tuple[int, int], int] = {}
        self.write_errors: Mapping[int, int] = {}
        self._burst = self._beat = self._written = 0
        for channel in self._channels.values():
            channel.clear_pause_generator()
            channel.pause = False

    def pause(self, probability: float, random: Random) -> None:
        """Pause every channel with this probability in every cycle from now on."""
        for channel in self._channels.values():
            own = Random(random.getrandbits(64))
            channel.set_pause_generator(pauses(own, probability))

    def withhold(self, name: str) -> None:
        """Offer nothing more on channel `r` or `b`."""
        self._channels[name].clear_pause_generator()
        self._channels[name].pause = True

    async def _send_beat(self, beat: Any) -> None:
        beat.rresp = self.read_errors.get((self._burst, self._beat), 0)
        self._beat += 1
        if beat.rlast:
            self._burst, self._beat = self._burst + 1, 0
        await self._send["r"](beat)

    async def _send_response(self, answer: Any) -> None:
        answer.bresp = self.write_errors.get(self._written, 0)
        self._written += 1
        await self._send["b"](answer)
