"""A slice: engines that meet in L1, their queues and semaphores, and the ports to host and HBM."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from poblano.axi import axi4, axi4_lite, axi4_read, axi4_write, forward
from poblano.commands import ADDRESS_WIDTH, HBM_ADDRESS_WIDTH
from poblano.component import Component, once
from poblano.config import Configuration
from poblano.control.command_queue import CommandQueue
from poblano.control.fault_register import FaultRegister
from poblano.control.fetcher import CommandFetcher
from poblano.control.semaphores import Semaphores
from poblano.control.word_merger import WordMerger
from poblano.dma.load import LoadEngine
from poblano.dma.store import StoreEngine
from poblano.faults import Fault
from poblano.host.register_file import RegisterFile
from poblano.host.registers import ADDRESS_WIDTH as REGISTER_ADDRESS_WIDTH
from poblano.host.registers import queue_names
from poblano.host.window import ID_WIDTH, HostWindow
from poblano.l1.scratchpad import Scratchpad, index_width
from poblano.l1.shared_reader import SharedReader
from poblano.scalar.engine import ScalarEngine
from poblano.tensor.engine import TensorEngine
from poblano.vector.engine import VectorEngine

__all__ = ["Slice"]


class Slice(Component):
    """One slice of the machine.

    Every engine takes commands from a queue of its own, in order, and meets the others only
    through semaphores; the scalar engine can also put words into every queue. In L1 the tensor
    engine goes first, then the vector engine, then stores and loads by the number of their port,
    then the scalar engine's writes and the host's; index lists, the scalar engine's reads, command
    words and the host's reads share a port behind these.

    Parameters
    ----------
    configuration:
        The chip; its `slice` section describes this one, its hash is readable in the registers.

    Members
    -------
    registers:
        AXI4-Lite slave: the map of `poblano.host.registers`.
    window:
        AXI4 slave: L1.
    hbm_P:
        AXI4 master: HBM port P.
    irq:
        The interrupt, a level.
    issued, completed:
        Bit Q pulses when queue Q issues or completes a command.

    Raises
    ------
    PoblanoError
        If the register map has no room for what the configuration has.
    """

    def __init__(self, *, configuration: Configuration) -> None:
        self.configuration = configuration
        section = configuration.slice
        self.queues = queue_names(configuration)
        self.ports = range(section.hbm.ports)
        window = axi4(width=section.host.width, address_width=ADDRESS_WIDTH, id_width=ID_WIDTH)
        hbm = axi4(width=section.hbm.width, address_width=HBM_ADDRESS_WIDTH)
        super().__init__(
            {
                "registers": In(axi4_lite(address_width=REGISTER_ADDRESS_WIDTH)),
                "window": In(window),
                **{f"hbm_{port}": Out(hbm) for port in self.ports},
                "irq": Out(1),
                "issued": Out(len(self.queues)),
                "completed": Out(len(self.queues)),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        section = self.configuration.slice
        tensor = TensorEngine(configuration=section)
        loads = [LoadEngine(configuration=section) for _ in self.ports]
        stores = [StoreEngine(configuration=section) for _ in self.ports]
        halves = [half for port in self.ports for half in (loads[port], stores[port])]
        vector = VectorEngine(configuration=section)
        scalar = ScalarEngine(configuration=section, queues=len(self.queues))
        engines = [tensor, vector, scalar, *halves]
        for name, engine in zip(self.queues, engines, strict=True):
            m.submodules[f"{name}_engine"] = once(engine, platform)

        registers = RegisterFile(configuration=self.configuration)
        window = HostWindow(configuration=section)
        m.submodules.register_file = once(registers, platform)
        m.submodules.host_window = once(window, platform)
        wiring.connect(m, wiring.flipped(self.registers), registers.axi)
        wiring.connect(m, wiring.flipped(self.window), window.axi)
        m.d.comb += self.irq.eq(registers.irq)

        fetcher = CommandFetcher(l1=section.l1, queues=len(self.queues))
        m.submodules.command_fetcher = once(fetcher, platform)
        self._connect_l1(
            m, platform, tensor, vector, scalar, loads, stores, fetcher, window, registers
        )
        self._connect_hbm(m, loads, stores, registers)
        self._connect_queues(m, platform, engines, scalar, fetcher, registers)
        return m

    def _connect_l1(
        self, m, platform, tensor, vector, scalar, loads, stores, fetcher, window, registers
    ) -> None:
        """Give every client its port of L1."""
        section = self.configuration.slice.l1
        ports = len(self.ports)
        l1 = Scratchpad(
            size=section.size,
            line=section.line,
            banks=section.banks,
            readers=3 + ports,
            writers=4 + ports,
        )
        m.submodules.l1 = once(l1, platform)
        seldom = [
            *((half.index_read, half.index_data) for half in (*loads, *stores)),
            (scalar.read, scalar.read_data),
            (fetcher.read, fetcher.read_data),
            (window.read, window.read_data),
        ]
        shared = SharedReader(
            clients=len(seldom), address_width=index_width(section.size // section.line)
        )
        m.submodules.shared_reader = once(shared, platform)

        # the tensor engine is client 0, which never waits
        m.d.comb += [
            l1.read_0.valid.eq(tensor.read.valid),
            l1.read_0.payload.eq(tensor.read.payload),
            tensor.read_data.eq(l1.read_data_0),
            l1.write_0.valid.eq(tensor.write.valid),
            l1.write_0.payload.eq(tensor.write.payload),
        ]
        for client, reader, writer in (
            (1, vector, vector),
            *((2 + port, stores[port], loads[port]) for port in self.ports),
        ):
            wiring.connect(m, reader.read, getattr(l1, f"read_{client}"))
            m.d.comb += reader.read_data.eq(getattr(l1, f"read_data_{client}"))
            wiring.connect(m, writer.write, getattr(l1, f"write_{client}"))
        last = 2 + ports
        wiring.connect(m, shared.read, getattr(l1, f"read_{last}"))
        wiring.connect(m, scalar.write, getattr(l1, f"write_{last}"))
        wiring.connect(m, window.write, getattr(l1, f"write_{last + 1}"))
        for client, (read, line) in enumerate(seldom):
            wiring.connect(m, read, getattr(shared, f"client_{client}"))
            m.d.comb += line.eq(getattr(l1, f"read_data_{last}"))
        m.d.comb += [
            registers.l1_read_conflicts.eq(l1.read_conflict),
            registers.l1_write_conflicts.eq(l1.write_conflict),
        ]

    def _connect_hbm(self, m, loads, stores, registers) -> None:
        """Both halves of a port's DMA engine share its AXI4 master, each its own channels."""
        shape = {
            "width": self.configuration.slice.hbm.width,
            "address_width": HBM_ADDRESS_WIDTH,
        }
        for index in self.ports:
            port = getattr(self, f"hbm_{index}")
            forward(m, axi4_read(**shape), loads[index].axi, port)
            forward(m, axi4_write(**shape), stores[index].axi, port)
            for half, kind in ((loads[index], "read"), (stores[index], "write")):
                m.d.comb += [
                    half.patience.eq(registers.watchdog),
                    getattr(registers, f"hbm_{index}_{kind}_beats").eq(half.beat),
                ]

    def _connect_queues(self, m, platform, engines, scalar, fetcher, registers) -> None:
        """Rings to queues, queues to engines and semaphores, and all of it to the registers."""
        host = self.configuration.slice.host
        count = len(self.queues)
        semaphores = Semaphores(count=host.semaphores, queues=count + 1)
        faults = FaultRegister(queues=count)
        m.submodules.semaphores = once(semaphores, platform)
        m.submodules.fault_register = once(faults, platform)
        m.d.comb += [
            fetcher.enable.eq(registers.control_enable),
            scalar.patience.eq(registers.watchdog),
            # the scalar engine's instructions come after all queues
            *_asks(semaphores, count, scalar),
            scalar.granted.eq(getattr(semaphores, f"granted_{count}")),
        ]

        notified = Signal(count)
        busy = Signal(count)
        idle = Signal(count)
        for index, (name, engine) in enumerate(zip(self.queues, engines, strict=True)):
            queue = CommandQueue(depth=host.queue_depth, semaphores=host.semaphores)
            m.submodules[f"{name}_queue"] = once(queue, platform)
            registers_of = _RegistersOf(registers, f"queue_{name}")
            ring = getattr(fetcher, f"ring_{index}")
            merger = WordMerger()
            m.submodules[f"{name}_words"] = once(merger, platform)
            wiring.connect(m, getattr(scalar, f"issue_{index}"), merger.issued)
            wiring.connect(m, getattr(fetcher, f"words_{index}"), merger.fetched)
            wiring.connect(m, merger.words, queue.words)
            wiring.connect(m, queue.command, engine.command)
            m.d.comb += [
                merger.coming.eq(getattr(fetcher, f"coming_{index}")),
                ring.base.eq(registers_of.base),
                ring.size_log2.eq(registers_of.size_log2),
                ring.tail.eq(registers_of.tail),
                queue.enable.eq(registers.control_enable),
                queue.patience.eq(registers.watchdog),
                queue.done.eq(engine.done),
                self.issued[index].eq(queue.issues),
                self.completed[index].eq(engine.done),
                registers_of.fetched.eq(getattr(fetcher, f"fetched_{index}")),
                registers_of.issued.eq(queue.issued),
                registers_of.completed.eq(queue.completed),
                registers_of.busy_cycles.eq(queue.busy),
                notified[index].eq(engine.done & (queue.completed + 1 == registers_of.notify)),
                busy[index].eq(queue.busy),
                idle[index].eq(queue.empty & getattr(fetcher, f"idle_{index}")),
                getattr(faults, f"engine_{index}").eq(engine.fault),
                getattr(faults, f"queue_{index}").eq(queue.fault),
                getattr(faults, f"ring_{index}").eq(getattr(fetcher, f"fault_{index}")),
                getattr(faults, f"completed_{index}").eq(queue.completed),
            ]
            m.d.comb += _asks(semaphores, index, queue)
            for part in ("granted", "missing"):
                m.d.comb += getattr(queue, part).eq(getattr(semaphores, f"{part}_{index}"))

        m.d.comb += semaphores.host_add.eq(registers.written)
        for index in range(host.semaphores):
            m.d.comb += [
                getattr(registers, f"semaphore_{index}").eq(semaphores.values[index]),
                semaphores.host_valid[index].eq(getattr(registers, f"semaphore_{index}_written")),
            ]
        failed = Signal()
        m.d.comb += [
            faults.overflow.eq(semaphores.overflow),
            faults.overflowing.eq(semaphores.overflowing),
            failed.eq(faults.fault.kind != Fault.NONE),
            registers.cycles.eq(1),
            registers.status_fault.eq(failed),
            registers.status_busy.eq(busy.any()),
            registers.status_idle.eq(idle.all()),
            registers.interrupt_status_notify.eq(notified.any()),
            registers.fault_kind.eq(faults.fault.kind),
            registers.fault_response.eq(faults.fault.response),
            registers.fault_index.eq(faults.fault.field),
            registers.fault_queue.eq(faults.queue_number),
            registers.fault_command.eq(faults.number),
            registers.fault_address.eq(faults.fault.address),
        ]
        before = Signal()
        m.d.sync += before.eq(failed)
        m.d.comb += registers.interrupt_status_fault.eq(failed & ~before)


def _asks(semaphores: Semaphores, index: int, client: Any) -> list[Any]:
    """Return the statements by which a client of the semaphores asks and signals."""
    return [
        getattr(semaphores, f"{part}_{index}").eq(getattr(client, part))
        for part in ("wait", "wait_valid", "signal", "signal_valid")
    ]


class _RegistersOf:
    """The ports of a register file whose names begin with a prefix."""

    def __init__(self, registers: RegisterFile, prefix: str) -> None:
        self._registers = registers
        self._prefix = prefix

    def __getattr__(self, name: str) -> Value:
        return getattr(self._registers, f"{self._prefix}_{name}")
