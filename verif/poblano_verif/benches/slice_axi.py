"""Bench of the slice between the masters and the RAM of cocotbext-axi, with pauses everywhere."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import cocotb
import numpy as np
from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiMaster

from poblano.commands import WORD_BYTES
from poblano.config import Configuration
from poblano.faults import Fault
from poblano.host.registers import RegisterMap, queue_names, register_map
from poblano_sw.assembler import encode
from poblano_verif.axi_lite import pauses
from poblano_verif.axi_monitor import AxiMonitor
from poblano_verif.axi_ram import FaultyRam
from poblano_verif.dut import Dut
from poblano_verif.named_registers import NamedRegisters
from poblano_verif.slice_fault import SliceFault, read_fault
from poblano_verif.streamed_workload import random_streamed

LIMIT = 200_000_000
"""Simulation steps that a test may take."""

MEMORY_BYTES = 1 << 16
RING_WORDS = 64
RING_BYTES = RING_WORDS * WORD_BYTES

SLVERR, DECERR = 2, 3

_SHARE = float(os.environ.get("POBLANO_BENCH_SHARE", "1"))


def count(usual: int) -> int:
    """Return how many of `usual` cases this run takes; at least one."""
    return max(1, round(usual * _SHARE))


class LiteRegisters(NamedRegisters):
    """Registers behind cocotbext-axi's master of AXI4-Lite."""

    def __init__(self, registers: RegisterMap, master: Any) -> None:
        super().__init__(registers)
        self._master = master

    async def write_word(self, offset: int, value: int) -> int:
        """Write the word at a byte offset; return the response."""
        return int((await self._master.write(offset, value.to_bytes(4, "little"))).resp)

    async def read_word(self, offset: int) -> tuple[int, int]:
        """Return the word at a byte offset and the response."""
        answer = await self._master.read(offset, 4)
        return int.from_bytes(answer.data, "little"), int(answer.resp)


class Bench:
    """A slice with one HBM port, and everything around it."""

    def __init__(self, handle: Any) -> None:
        logging.getLogger("cocotb").setLevel(logging.WARNING)
        self.dut = Dut(handle)
        self.random = Random(cocotb.RANDOM_SEED)
        described = self.dut.manifest["configuration"]
        self.configuration = Configuration.model_validate(described["values"])
        self.slice = self.configuration.slice
        self.dut.rest()
        self.dut.clock.start()
        clock, reset = (self.dut.ports[name].handle for name in ("clk", "rst"))
        lite: Any = AxiLiteMaster(AxiLiteBus.from_prefix(handle, "registers_"), clock, reset)
        self.window: Any = AxiMaster(AxiBus.from_prefix(handle, "window_"), clock, reset)
        self.registers = LiteRegisters(register_map(self.configuration), lite)
        self.ram = FaultyRam(self.dut, handle, "hbm_0_", MEMORY_BYTES)
        hbm = self.slice.hbm
        self.monitor = AxiMonitor(self.dut, "hbm_0", hbm.width, hbm.outstanding)
        self._masters = (lite, self.window)
        self.rings = self.slice.l1.size - 3 * RING_BYTES

    async def reset(self, pause: float = 0.0, watchdog: int = 0) -> None:
        """Reset everything, let the memory be random, and pause every channel of every bus."""
        await self.dut.clock.reset()
        self.ram.restart()
        self.ram.data[:] = np.frombuffer(self.random.randbytes(MEMORY_BYTES), np.uint8)
        self.ram.pause(pause, self.random)
        for master in self._masters:
            for half, names in ((master.write_if, ("aw", "w", "b")), (master.read_if, ("ar", "r"))):
                for name in names:
                    own = Random(self.random.getrandbits(64))
                    getattr(half, f"{name}_channel").set_pause_generator(pauses(own, pause))
        await self.registers.write("INTERRUPT_ENABLE", 1)
        await self.registers.write("WATCHDOG", watchdog)

    async def begin(self, queues: Mapping[str, Sequence[bytes]]) -> None:
        """Publish all words of queues that were not used since reset, and let them run."""
        for number, (queue, words) in enumerate(queues.items()):
            name, base = f"QUEUE_{queue.upper()}", self.rings + number * RING_BYTES
            await self.window.write(base, b"".join(words))
            await self.registers.write(f"{name}_BASE", base)
            await self.registers.write(f"{name}_SIZE_LOG2", RING_WORDS.bit_length() - 1)
            await self.registers.write(f"{name}_TAIL", len(words))
        await self.registers.write("CONTROL", 1)

    async def finish(self, queues: Mapping[str, Sequence[bytes]], limit: int = 60_000) -> None:
        """Wait until every command is complete."""
        end = self.dut.clock.cycle + limit
        for queue, words in queues.items():
            name = f"QUEUE_{queue.upper()}_COMPLETED"
            while (found := await self.registers.read(name)) != len(words):
                fault = await self.fault(queues)
                assert fault.kind == Fault.NONE, str(fault)
                assert self.dut.clock.cycle < end, f"{name} must be {len(words)}; got {found}"
                await self.dut.clock.edges(50)

    async def fault(self, queues: Mapping[str, Sequence[bytes]]) -> SliceFault:
        """Read the fault registers."""
        words = {queue: (0, words) for queue, words in queues.items()}
        return await read_fault(self.registers, queue_names(self.configuration), words)

    async def check_beats(self) -> None:
        """Nothing is under way at the HBM port, and the counters say what the monitor saw."""
        self.monitor.finish()
        found = [await self.registers.read(f"HBM_0_{kind}_BEATS") for kind in ("READ", "WRITE")]
        assert found == [self.monitor.reads.beats, self.monitor.writes.beats]

    def moves(self, number: int) -> tuple[dict[str, list[bytes]], np.ndarray]:
        """Return queues that copy runs of any alignment, and the memory after them."""
        after, half = self.ram.data.copy(), MEMORY_BYTES // 2
        queues: dict[str, list[bytes]] = {"load_0": [], "store_0": []}
        for _ in range(number):
            length = self.random.choice((1, 64, self.random.randrange(1, 1200)))
            place = {"length": length, "l1": self.random.randrange(4000)}
            source, target = (self.random.randrange(half - length) + at for at in (0, half))
            waits = {"wait_a": 1, "wait_a_count": int(len(queues["load_0"]) > 0)}
            signals = {"signal_a": 0, "signal_a_count": 1}
            load = encode(self.slice, "load.rows", hbm=source, **place, **waits, **signals)
            waits = {"wait_a": 0, "wait_a_count": 1}
            signals = {"signal_a": 1, "signal_a_count": 1}
            store = encode(self.slice, "store.rows", hbm=target, **place, **waits, **signals)
            queues["load_0"].append(load)
            queues["store_0"].append(store)
            after[target : target + length] = after[source : source + length]
        return queues, after


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def copies(dut: Any) -> None:
    """Runs of any alignment go through L1, whatever channels pause."""
    bench = Bench(dut)
    for pause in (0.3, 0.0, 0.7)[: count(3)]:
        await bench.reset(pause)
        queues, after = bench.moves(12)
        await bench.begin(queues)
        await bench.finish(queues)
        assert np.array_equal(bench.ram.data, after)
        await bench.check_beats()


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def streamed_product(dut: Any) -> None:
    """A product from HBM to HBM, whatever channels pause, while the host reads and writes L1."""
    bench = Bench(dut)
    for pause in (0.5, 0.2)[: count(2)]:
        await bench.reset(pause)
        own = bench.rings - 4096
        streamed = random_streamed(
            bench.random, bench.slice, 100, l1_size=own, hbm=range(40, MEMORY_BYTES)
        )
        for address, image in streamed.images():
            bench.ram.data[address : address + len(image)] = image
        plan = streamed.plan
        await bench.begin(plan.queues)
        data = bench.random.randbytes(1000)
        await bench.window.write(own + 11, data)
        assert bytes((await bench.window.read(own + 11, len(data))).data) == data
        await bench.finish(plan.queues)
        streamed.check(bench.ram.data[plan.hbm_d : plan.hbm_end])
        await bench.check_beats()


async def stops(
    bench: Bench, bad: str, wanted: SliceFault, queues: Mapping[str, list[bytes]]
) -> None:
    """One queue stops with a fault and the interrupt; the other one ends."""
    other = "store_0" if bad == "load_0" else "load_0"
    await bench.begin(queues)
    await bench.finish({other: queues[other]})
    for _ in range(20_000):
        if bench.dut.ports["irq"].bits:
            break
        await bench.dut.clock.edge()
    found = await bench.fault(queues)
    assert found == wanted, f"{found}; it must be {wanted}"
    assert bench.dut.ports["irq"].bits
    await bench.registers.write("INTERRUPT_STATUS", 1)
    await bench.dut.clock.edges(10)
    assert not bench.dut.ports["irq"].bits
    await bench.dut.clock.edges(500)
    completed = await bench.registers.read(f"QUEUE_{bad.upper()}_COMPLETED")
    assert completed <= wanted.command
    assert await bench.fault(queues) == wanted, "the first fault stays"


def two_queues(bench: Bench) -> dict[str, list[bytes]]:
    """Return three commands of two bursts for each half, whose places lie apart."""
    places = [{"hbm": 4096 * (2 * n + 1) - 1000, "l1": 2048 * n, "length": 2000} for n in range(6)]
    return {
        "load_0": [encode(bench.slice, "load.rows", **place) for place in places[:3]],
        "store_0": [encode(bench.slice, "store.rows", **place) for place in places[3:]],
    }


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def errors_of_the_memory(dut: Any) -> None:
    """SLVERR and DECERR on first, middle and last beats of reads, and on responses of writes."""
    bench = Bench(dut)
    beats = 1000 // bench.slice.hbm.width
    reads = [(burst, beat) for burst in (0, 1, 4) for beat in (0, 7, beats - 1)]
    cases: list[tuple[str, int, int]] = [("load_0", *case) for case in reads]
    cases += [("store_0", burst, 0) for burst in (0, 3, 5)]
    for queue, burst, beat in bench.random.sample(cases, count(len(cases))):
        response = bench.random.choice((SLVERR, DECERR))
        await bench.reset(bench.random.choice((0.0, 0.4)))
        if queue == "load_0":
            bench.ram.read_errors = {(burst, beat): response, (burst, beat + 2): SLVERR}
        else:
            bench.ram.write_errors = {burst: response, burst + 1: SLVERR}
        command = burst // 2
        number = command + (3 if queue == "store_0" else 0)
        address = 4096 * (2 * number + 1) - (0 if burst % 2 else 1000)
        wanted = SliceFault(Fault.RESPONSE, queue, command, 0, address, response)
        await stops(bench, queue, wanted, two_queues(bench))
        bench.monitor.finish()
    await works_again(bench)


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def responses_withheld(dut: Any) -> None:
    """A memory that answers no more is a fault after WATCHDOG cycles, for its half alone."""
    bench = Bench(dut)
    for queue, channel in (("load_0", "r"), ("store_0", "b")):
        await bench.reset(0.3, watchdog=600)
        bench.ram.withhold(channel)
        number = 0 if queue == "load_0" else 3
        address = 4096 * (2 * number + 1) - 1000
        wanted = SliceFault(Fault.SILENCE, queue, 0, 0, address, 0)
        await stops(bench, queue, wanted, two_queues(bench))
        await works_again(bench)


async def works_again(bench: Bench) -> None:
    """Reset, whatever is under way, and copy."""
    await bench.reset(0.2)
    assert (await bench.fault({})).kind == Fault.NONE
    queues, after = bench.moves(4)
    await bench.begin(queues)
    await bench.finish(queues)
    assert np.array_equal(bench.ram.data, after)
    await bench.check_beats()
