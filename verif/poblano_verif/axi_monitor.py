"""Holds an AXI4 port of a block to the rules of the bus while others drive it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cocotb

from poblano_verif.axi_rules import ReadRules, WriteRules
from poblano_verif.dut import Dut, Port

__all__ = ["AxiMonitor", "Samples"]


class Samples(Mapping[str, int]):
    """The ports of the bus by the channels' names, read when asked for."""

    def __init__(self, ports: Mapping[str, Port]) -> None:
        self._ports = ports

    def __getitem__(self, name: str) -> int:
        return self._ports[name].bits

    def __iter__(self) -> Any:
        return iter(self._ports)

    def __len__(self) -> int:
        return len(self._ports)


class AxiMonitor:
    """Checks every cycle; a reset begins anew. A broken rule fails the test.

    Parameters
    ----------
    dut:
        The block, its clock started.
    prefix:
        What the names of the bus's ports begin with.
    width:
        Bytes of the data bus.
    outstanding:
        The most bursts that may be in flight, for each direction.

    Attributes
    ----------
    reads, writes:
        The rules, and what they saw since reset.
    """

    def __init__(self, dut: Dut, prefix: str, width: int, outstanding: int) -> None:
        self._dut = dut
        self._parameters = width, outstanding
        self._samples = Samples(
            {
                name.removeprefix(f"{prefix}__"): port
                for name, port in dut.ports.items()
                if name.startswith(f"{prefix}__")
            }
        )
        self._restart()
        cocotb.start_soon(self._run())

    def _restart(self) -> None:
        self.reads = ReadRules(*self._parameters)
        self.writes = WriteRules(*self._parameters)

    async def _run(self) -> None:
        while True:
            await self._dut.clock.edge()
            if self._dut.ports["rst"].bits:
                self._restart()
                continue
            cycle = self._dut.clock.cycle - 1
            self.reads.step(cycle, self._samples)
            self.writes.step(cycle, self._samples)

    def finish(self) -> None:
        """Refuse bursts that were not answered in full."""
        self.reads.finish()
        self.writes.finish()
