"""Drives a `poblano_verif.slice_system.SliceSystem` as a host would: memories, L1 and programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
from cocotb.triggers import RisingEdge, SimTimeoutError, with_timeout
from numpy.typing import NDArray

from poblano.config import Configuration
from poblano.host.registers import POINTER_WIDTH, queue_names, register_map
from poblano_sw.program import Program
from poblano_verif.clock import PERIOD
from poblano_verif.dut import Dut
from poblano_verif.event_log import Event, EventReader
from poblano_verif.host_bus import RegisterMaster, WindowMaster
from poblano_verif.slice_fault import SliceFaultError, read_fault

__all__ = ["Run", "SystemDriver"]

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Run:
    """What a program did.

    Attributes
    ----------
    events:
        Issues and completions, in order.
    beats:
        For each HBM port the data beats read and written.
    """

    events: tuple[Event, ...]
    beats: tuple[tuple[int, int], ...]

    @property
    def cycles(self) -> int:
        """Cycles from the first issue to the last byte written, as the timing contract counts."""
        return self.events[-1].cycle - self.events[0].cycle - 1

    @cached_property
    def spans(self) -> Mapping[str, list[tuple[int, int]]]:
        """For each queue the cycles in which each command was issued and was reported done."""
        cycles: dict[tuple[str, bool], list[int]] = {}
        for event in self.events:
            cycles.setdefault((event.queue, event.issued), []).append(event.cycle)
        return {
            queue: list(zip(issued, cycles[queue, False], strict=True))
            for (queue, is_issue), issued in cycles.items()
            if is_issue
        }


class SystemDriver:
    """A host with access to the memories.

    Parameters
    ----------
    handle:
        The cocotb handle of the top.
    period:
        Clock period in simulation steps.

    Attributes
    ----------
    dut, configuration:
        The block, and what it was made from.
    registers, window:
        Masters of the host port.
    events:
        Reads the log of commands.
    """

    def __init__(self, handle: Any, *, period: int = PERIOD) -> None:
        self.dut = Dut(handle, period=period)
        described = self.dut.manifest["configuration"]
        self.configuration = Configuration.model_validate(described["values"])
        modules = cast("list[dict[str, Any]]", self.dut.manifest["modules"])
        self.memory_bytes = int(modules[-1]["parameters"]["memory_bytes"])
        self.registers = RegisterMaster(self.dut, register_map(self.configuration))
        self.window = WindowMaster(self.dut, self.configuration.slice.host.width)
        self.events = EventReader(queue_names(self.configuration))

    async def start(self) -> None:
        """Start the clock and reset."""
        self.dut.clock.start()
        await self.reset()

    async def reset(self) -> None:
        """Reset slice and host, whatever they are doing; let queues run and interrupts come.

        Memories and L1 keep what they hold.

        Raises
        ------
        AssertionError
            If the hardware was made from another configuration.
        """
        self.dut.rest()
        await self.dut.clock.reset()
        found = await self.registers.read("CONFIG_HASH")
        if found != self.configuration.hash64:
            wanted = self.configuration.hash64
            raise AssertionError(f"the hardware's hash must be {wanted:#x}; got {found:#x}")
        await self.registers.write("CONTROL", 1)
        await self.registers.write("INTERRUPT_ENABLE", _FAULT | _NOTIFY)

    async def load_hbm(self, port: int, address: int, data: bytes | Bytes) -> None:
        """Put bytes into the memory of a port, at once."""
        Path(f"hbm_{port}.load").write_bytes(bytes(data))
        await self._back_door(f"load_{port}", address, len(data))

    async def dump_hbm(self, port: int, address: int, length: int) -> Bytes:
        """Return bytes of the memory of a port, uint8 `[length]`."""
        await self._back_door(f"dump_{port}", address, length)
        return np.fromfile(f"hbm_{port}.dump", np.uint8)

    async def _back_door(self, way: str, address: int, length: int) -> None:
        if not 0 <= address <= address + length <= self.memory_bytes:
            raise AssertionError(
                f"{length} bytes at {address:#x} must lie inside the memory of "
                f"{self.memory_bytes:#x} bytes"
            )
        ports = self.dut.ports
        ports["address"].handle.value = address
        ports["length"].handle.value = length
        ports[way].handle.value = 1
        await self.dut.clock.edge()
        ports[way].handle.value = 0
        await self.dut.clock.edge()

    def beats(self) -> tuple[tuple[int, int], ...]:
        """Return for each HBM port the data beats read and written since reset."""
        return tuple(
            (self.dut.ports[f"read_beats_{port}"].bits, self.dut.ports[f"write_beats_{port}"].bits)
            for port in range(self.configuration.slice.hbm.ports)
        )

    async def run(self, program: Program, limit: int, *, check: bool = True) -> Run:
        """Run a program to its end.

        A queue that is longer than its ring is published piece by piece, as its commands complete.
        Between interrupts the testbench sleeps.

        Parameters
        ----------
        program:
            What to run; its rings overwrite that part of L1.
        limit:
            Cycles that it may take, the host's part included.
        check:
            Whether a program is refused that cannot run to its end.

        Raises
        ------
        PoblanoError
            If the program is refused.
        SliceFaultError
            If the slice has a fault.
        AssertionError
            If the program takes longer.
        """
        if check:
            program.check(self.configuration)
        end = self.dut.clock.cycle + limit
        before = self.beats()
        self.events.take()
        queues = [_Queue(self, name, program) for name in program.queues]
        await self.registers.write("CONTROL", 0)  # until every queue has its words
        for queue in queues:
            await queue.begin()
            await queue.advance()
        await self.registers.write("CONTROL", 1)
        while True:
            for queue in queues:
                await queue.advance()
            if all(queue.is_done for queue in queues):
                break
            await self._interrupt(end, limit, queues)
        after = self.beats()
        moved = zip(before, after, strict=True)
        return Run(
            tuple(self.events.take()),
            tuple((new[0] - old[0], new[1] - old[1]) for old, new in moved),
        )

    async def _interrupt(self, end: int, limit: int, queues: list[_Queue]) -> None:
        """Wait for the interrupt, and clear it; raise if it tells of a fault."""
        clock, irq = self.dut.clock, self.dut.ports["irq"]
        while not irq.bits:
            left = max(1, end - clock.cycle)
            try:
                await with_timeout(RisingEdge(irq.handle), left * clock.period, "step")
            except SimTimeoutError:
                counts = ", ".join(queue.progress for queue in queues)
                raise AssertionError(
                    f"a program must end within {limit} cycles; completed were {counts}"
                ) from None
            await clock.edge()
        status = await self.registers.read("INTERRUPT_STATUS")
        await self.registers.write("INTERRUPT_STATUS", status)
        if status & _FAULT:
            names = queue_names(self.configuration)
            words = {queue.name: (queue.started, queue.words) for queue in queues}
            raise SliceFaultError(await read_fault(self.registers, names, words))


_FAULT, _NOTIFY = 1, 2
"""Bits of INTERRUPT_STATUS and INTERRUPT_ENABLE."""


class _Queue:
    """One queue of a program that runs: how far it is, in words since the program began."""

    def __init__(self, driver: SystemDriver, name: str, program: Program) -> None:
        self.name = name
        self.words = program.queues[name]
        self.started = 0
        self._registers, self._window = driver.registers, driver.window
        self._base, self._size = program.rings[name], program.ring_words
        self._tail = self._published = self._completed = 0
        self._notified_at: int | None = None

    @property
    def is_done(self) -> bool:
        """Whether every command is complete."""
        return self._completed == len(self.words)

    @property
    def progress(self) -> str:
        """How far the queue was when it was last looked at."""
        return f"{self._completed} of {len(self.words)} of {self.name}"

    async def _read(self, register: str) -> int:
        return await self._registers.read(f"QUEUE_{self.name.upper()}_{register}")

    async def _write(self, register: str, value: int) -> None:
        await self._registers.write(f"QUEUE_{self.name.upper()}_{register}", value)

    async def begin(self) -> None:
        """Set the ring up."""
        await self._write("BASE", self._base)
        await self._write("SIZE_LOG2", self._size.bit_length() - 1)
        self._tail = await self._read("FETCHED")
        self.started = await self._read("COMPLETED")

    async def advance(self) -> None:
        """Publish what the ring has room for; ask for the interrupt after which there is more."""
        while not self.is_done:
            await self._publish()
            left = len(self.words) - self._published
            target = self._published - (self._size // 2 if left else 0)
            target = max(target, self._completed + 1)
            if target != self._notified_at:
                await self._write("NOTIFY", (self.started + target) % (1 << 32))
                self._notified_at = target
            self._completed = (await self._read("COMPLETED") - self.started) % (1 << 32)
            if self._completed < target:
                return

    async def _publish(self) -> None:
        if self._published == len(self.words):
            return
        waiting = (self._tail - await self._read("FETCHED")) % (1 << POINTER_WIDTH)
        new = self.words[self._published : self._published + self._size - waiting]
        if not new:
            return
        first = self._tail % self._size
        whole = self._size - first
        for place, part in ((first, new[:whole]), (0, new[whole:])):
            if part:
                await self._window.write(self._base + place * len(part[0]), b"".join(part))
        self._published += len(new)
        self._tail = (self._tail + len(new)) % (1 << POINTER_WIDTH)
        await self._write("TAIL", self._tail)
