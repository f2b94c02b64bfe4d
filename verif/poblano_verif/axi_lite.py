"""A master of AXI4-Lite registers, with any byte strobes and random pauses on every channel."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from cocotbext.axi import AxiLiteBus
from cocotbext.axi.axil_channels import (
    AxiLiteARSource,
    AxiLiteARTransaction,
    AxiLiteAWSource,
    AxiLiteAWTransaction,
    AxiLiteBSink,
    AxiLiteRSink,
    AxiLiteWSource,
    AxiLiteWTransaction,
)

from poblano_verif.dut import Dut

__all__ = ["LiteMaster", "pauses"]

CHANNELS = ("aw", "w", "b", "ar", "r")


def pauses(random: Random, probability: float) -> Iterator[bool]:
    """Yield for every cycle whether a channel pauses in it."""
    while True:
        yield random.random() < probability


class LiteMaster:
    """Reads and writes words.

    Parameters
    ----------
    dut, handle:
        The block, its clock started, and its cocotb handle.
    prefix:
        What the names of the bus's ports begin with, without the last underscore.
    random:
        Source of the pauses.
    """

    def __init__(self, dut: Dut, handle: Any, prefix: str, random: Random) -> None:
        bus: Any = AxiLiteBus.from_prefix(handle, prefix)
        clock = dut.ports["clk"].handle
        self._random = random
        self.channels: dict[str, Any] = {
            "aw": AxiLiteAWSource(bus.write.aw, clock),
            "w": AxiLiteWSource(bus.write.w, clock),
            "b": AxiLiteBSink(bus.write.b, clock),
            "ar": AxiLiteARSource(bus.read.ar, clock),
            "r": AxiLiteRSink(bus.read.r, clock),
        }

    def pause(self, probability: float, *names: str) -> None:
        """Pause the named channels, or all, with this probability in every cycle from now on."""
        for name in names or CHANNELS:
            own = Random(self._random.getrandbits(64))
            self.channels[name].set_pause_generator(pauses(own, probability))

    async def write(self, address: int, value: int, strobe: int = 0xF) -> int:
        """Write the bytes of a word that `strobe` names; return the response."""
        await self.send_write(address, value, strobe)
        return await self.response()

    async def send_write(self, address: int, value: int, strobe: int = 0xF) -> None:
        """Queue a write."""
        await self.channels["aw"].send(AxiLiteAWTransaction(awaddr=address, awprot=0))
        await self.channels["w"].send(AxiLiteWTransaction(wdata=value, wstrb=strobe))

    async def response(self) -> int:
        """Return the response to the oldest write that has none yet."""
        return int((await self.channels["b"].recv()).bresp)

    async def read(self, address: int) -> tuple[int, int]:
        """Return a word and the response."""
        await self.send_read(address)
        return await self.answer()

    async def send_read(self, address: int) -> None:
        """Queue a read."""
        await self.channels["ar"].send(AxiLiteARTransaction(araddr=address, arprot=0))

    async def answer(self) -> tuple[int, int]:
        """Return word and response of the oldest read that has none yet."""
        answer = await self.channels["r"].recv()
        return int(answer.rdata), int(answer.rresp)
