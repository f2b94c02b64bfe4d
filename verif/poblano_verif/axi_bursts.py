"""Single AXI4 bursts of any kind, legal or not, and what memory they mean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from cocotbext.axi import AxiBus
from cocotbext.axi.axi_channels import (
    AxiARSource,
    AxiARTransaction,
    AxiAWSource,
    AxiAWTransaction,
    AxiBSink,
    AxiRSink,
    AxiWSource,
    AxiWTransaction,
)

from poblano_verif.axi_lite import pauses
from poblano_verif.dut import Dut

__all__ = ["INCR", "Beat", "Burst", "BurstMaster", "ReadBeat"]

INCR = 1


@dataclass(frozen=True)
class Burst:
    """A burst of `beats` beats of `1 << size` bytes."""

    address: int
    beats: int
    size: int
    id: int = 0
    kind: int = INCR

    def lanes(self, width: int) -> Iterator[tuple[int, range]]:
        """Yield for each beat of an INCR burst its bus word's address, and its byte lanes."""
        step = 1 << self.size
        start = self.address
        for _ in range(self.beats):
            end = start // step * step + step
            word = start // width * width
            yield word, range(start - word, end - word)
            start = end


@dataclass(frozen=True)
class Beat:
    """Data and strobes of a write beat."""

    data: int
    strobe: int


@dataclass(frozen=True)
class ReadBeat:
    """A beat that came back."""

    id: int
    data: int
    response: int
    last: bool


class BurstMaster:
    """Sends bursts as they are given; several may wait in its queues.

    Parameters
    ----------
    dut, handle:
        The block, its clock started, and its cocotb handle.
    prefix:
        What the names of the bus's ports begin with, without the last underscore.
    """

    def __init__(self, dut: Dut, handle: Any, prefix: str) -> None:
        bus: Any = AxiBus.from_prefix(handle, prefix)
        clock = dut.ports["clk"].handle
        self.channels: dict[str, Any] = {
            "aw": AxiAWSource(bus.write.aw, clock),
            "w": AxiWSource(bus.write.w, clock),
            "b": AxiBSink(bus.write.b, clock),
            "ar": AxiARSource(bus.read.ar, clock),
            "r": AxiRSink(bus.read.r, clock),
        }

    def pause(self, probability: float, random: Random) -> None:
        """Pause every channel with this probability in every cycle from now on.

        With 0 the channels pause where a test sets their `pause`.
        """
        for channel in self.channels.values() if probability else ():
            channel.set_pause_generator(pauses(Random(random.getrandbits(64)), probability))

    async def send_write(self, burst: Burst, beats: Iterable[Beat]) -> None:
        """Queue a write."""
        await self.channels["aw"].send(
            AxiAWTransaction(
                awid=burst.id,
                awaddr=burst.address,
                awlen=burst.beats - 1,
                awsize=burst.size,
                awburst=burst.kind,
            )
        )
        for number, beat in enumerate(beats, 1):
            await self.channels["w"].send(
                AxiWTransaction(
                    wdata=beat.data, wstrb=beat.strobe, wlast=int(number == burst.beats)
                )
            )

    async def response(self) -> tuple[int, int]:
        """Return identifier and response of the next write that is answered."""
        answer = await self.channels["b"].recv()
        return int(answer.bid), int(answer.bresp)

    async def send_read(self, burst: Burst) -> None:
        """Queue a read."""
        await self.channels["ar"].send(
            AxiARTransaction(
                arid=burst.id,
                araddr=burst.address,
                arlen=burst.beats - 1,
                arsize=burst.size,
                arburst=burst.kind,
            )
        )

    async def read_beat(self) -> ReadBeat:
        """Return the next beat that comes back."""
        beat = await self.channels["r"].recv()
        return ReadBeat(int(beat.rid), int(beat.rdata), int(beat.rresp), bool(beat.rlast))
