"""A slice with an ideal memory at every HBM port."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from poblano.commands import HBM_ADDRESS_WIDTH
from poblano.component import Component, once
from poblano.config import Configuration
from poblano.slice import Slice
from poblano_verif.event_log import EventLog
from poblano_verif.ideal_memory import BACK_DOOR_WIDTH, IdealMemory

__all__ = ["SliceSystem"]


class SliceSystem(Component):
    """What a host sees of a slice: registers, window and interrupt.

    Port P's memory is `IdealMemory` with files `hbm_P`; when queues issue and complete commands
    is written to `events.txt` (`EventLog`).

    Parameters
    ----------
    configuration:
        The chip.
    memory_bytes:
        Bytes of each memory; accesses past them are answered with DECERR.

    Members
    -------
    registers, window, irq:
        Of the slice.
    address, length:
        Of the memories' back doors.
    load_P, dump_P:
        Of the back door of port P's memory.
    read_beats_P, write_beats_P:
        Beats that the memory of port P moved since reset.
    """

    def __init__(self, *, configuration: Configuration, memory_bytes: int) -> None:
        self.slice = Slice(configuration=configuration)
        width = configuration.slice.hbm.width
        self.memories = [
            IdealMemory(
                width=width, size=memory_bytes, address_width=HBM_ADDRESS_WIDTH, name=f"hbm_{port}"
            )
            for port in range(configuration.slice.hbm.ports)
        ]
        members = self.slice.signature.members
        ports: dict[str, wiring.Member] = {
            **{name: members[name] for name in ("registers", "window", "irq")},
            "address": In(BACK_DOOR_WIDTH),
            "length": In(BACK_DOOR_WIDTH),
        }
        for port in range(len(self.memories)):
            ports |= {
                f"load_{port}": In(1),
                f"dump_{port}": In(1),
                f"read_beats_{port}": Out(64),
                f"write_beats_{port}": Out(64),
            }
        super().__init__(ports)

    def elaborate(self, platform: Any) -> Module:
        """Connect the slice and what surrounds it."""
        m = Module()
        log = EventLog(queues=len(self.slice.queues))
        m.submodules.slice = once(self.slice, platform)
        m.submodules.event_log = once(log, platform)
        for name in ("registers", "window"):
            wiring.connect(m, wiring.flipped(getattr(self, name)), getattr(self.slice, name))
        m.d.comb += [
            self.irq.eq(self.slice.irq),
            log.issued.eq(self.slice.issued),
            log.completed.eq(self.slice.completed),
        ]
        for port, memory in enumerate(self.memories):
            m.submodules[f"memory_{port}"] = once(memory, platform)
            wiring.connect(m, getattr(self.slice, f"hbm_{port}"), memory.axi)
            m.d.comb += [
                memory.address.eq(self.address),
                memory.length.eq(self.length),
                *(
                    getattr(memory, way).eq(getattr(self, f"{way}_{port}"))
                    for way in ("load", "dump")
                ),
                *(
                    getattr(self, f"{count}_{port}").eq(getattr(memory, count))
                    for count in ("read_beats", "write_beats")
                ),
            ]
        return m
