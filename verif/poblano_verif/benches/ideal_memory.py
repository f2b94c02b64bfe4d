"""Bench of the ideal memory: the contract's numbers, the shared bus, refusals, the back door."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any, cast

import cocotb
import numpy as np
from cocotbext.axi import AxiBus, AxiMaster

from poblano_verif.axi_bursts import Beat, Burst, BurstMaster
from poblano_verif.axi_lite import pauses
from poblano_verif.axi_memory import Behaviour, IdealReads, IdealWrites, Window
from poblano_verif.dut import Dut

LIMIT = 400_000_000
"""Simulation steps that a test may take."""

OKAY, DECERR = 0, 3
FIXED, WRAP = 0, 2
CHANNELS = ("ar", "r", "aw", "w", "b")


class Bench:
    """A memory, what it should hold, and when its channels transferred something."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self.dut = Dut(handle)
        self.random = Random(cocotb.RANDOM_SEED)
        modules = cast("list[dict[str, Any]]", self.dut.manifest["modules"])
        parameters = modules[-1]["parameters"]
        self.width, self.size = int(parameters["width"]), int(parameters["size"])
        self.latency = int(parameters["latency"])
        self.full = (self.width - 1).bit_length()
        self.data = bytearray(self.size)
        self.axi = {
            name.removeprefix("axi__"): port
            for name, port in self.dut.ports.items()
            if name.startswith("axi__")
        }
        self.moved: dict[str, list[int]] = {name: [] for name in CHANNELS}

    def own_random(self) -> Random:
        """Return a source of its own for a part."""
        return Random(self.random.getrandbits(64))

    async def start(self, pause: float = 0.0) -> BurstMaster:
        """Reset, fill the memory through the back door, attach a master and watch."""
        self.dut.rest()
        self.dut.clock.start()
        await self.dut.clock.reset()
        await self.load(0, self.random.randbytes(self.size))
        cocotb.start_soon(self._watch())
        master = BurstMaster(self.dut, self.handle, "axi_")
        master.pause(pause, self.own_random())
        return master

    async def _watch(self) -> None:
        while True:
            await self.dut.clock.edge()
            moves = [
                name
                for name in CHANNELS
                if self.axi[f"{name}valid"].bits and self.axi[f"{name}ready"].bits
            ]
            for name in moves:
                self.moved[name].append(self.dut.clock.cycle - 1)
            assert not {"r", "w"} <= {*moves}, f"cycle {self.dut.clock.cycle - 1}: two beats"

    async def load(self, address: int, data: bytes) -> None:
        """Write through the back door."""
        Path("memory.load").write_bytes(data)
        await self._back_door("load", address, len(data))
        self.data[address : address + len(data)] = data

    async def dump(self, address: int, length: int) -> bytes:
        """Read through the back door."""
        await self._back_door("dump", address, length)
        return Path("memory.dump").read_bytes()

    async def _back_door(self, way: str, address: int, length: int) -> None:
        self.dut.ports["address"].handle.value = address
        self.dut.ports["length"].handle.value = length
        self.dut.ports[way].handle.value = 1
        await self.dut.clock.edge()
        self.dut.ports[way].handle.value = 0
        await self.dut.clock.edge()

    def burst(self, beats: int) -> Burst:
        """Return a random burst inside the memory."""
        size = self.random.randrange(self.full + 1)
        address = self.random.randrange(self.size - (beats << size) + 1)
        return Burst(address, beats, size, self.random.randrange(16))

    def beats(self, burst: Burst, *, changes: bool = True) -> list[Beat]:
        """Return random data for a burst, with random strobes; do to `data` what it means."""
        beats: list[Beat] = []
        for word, lanes in burst.lanes(self.width):
            value = self.random.getrandbits(8 * self.width)
            chosen = [lane for lane in lanes if self.random.random() < 0.7]
            beats.append(Beat(value, sum(1 << lane for lane in chosen)))
            for lane in chosen if changes else ():
                self.data[word + lane] = value >> 8 * lane & 0xFF
        return beats

    async def check_read(self, master: BurstMaster, burst: Burst) -> None:
        """Take the beats of a read and compare them."""
        for number, (word, _) in enumerate(burst.lanes(self.width), 1):
            beat = await master.read_beat()
            wanted = int.from_bytes(self.data[word : word + self.width], "little")
            assert (beat.id, beat.response, beat.data) == (burst.id, OKAY, wanted), (burst, number)
            assert beat.last == (number == burst.beats), (burst, number)

    async def count(self) -> tuple[int, int]:
        """Return the beats read and written, as the memory counts them."""
        await self.dut.clock.edge()
        return self.dut.ports["read_beats"].bits, self.dut.ports["write_beats"].bits


class _Shadow:
    """A port of the Python model: the master's signals are the block's, the others its own."""

    def __init__(self, bench: Bench, name: str) -> None:
        self.port = bench.axi[name]
        self.handle = self
        self.value = self._now = 0

    @property
    def bits(self) -> int:
        return self.port.bits if self.port.is_input else self._now

    def settle(self) -> None:
        self._now = self.value


async def _compare(bench: Bench, model: type[IdealReads] | type[IdealWrites], *names: str) -> None:
    """Hold the outputs of one direction to those of the Python model, cycle for cycle.

    `names` are the outputs; those with a valid count only while it is 1.
    """
    shadows = {name: _Shadow(bench, name) for name in bench.axi}
    memory = Window(0, np.frombuffer(bench.data, np.uint8).copy())
    ports = cast("Mapping[str, Any]", shadows)
    ideal = model(ports, bench.width, memory, Behaviour(latency=bench.latency))
    for name in ("arready", "awready", "wready"):
        shadows[name].value = 1
    while True:
        for shadow in shadows.values():
            shadow.settle()
        await bench.dut.clock.edge()
        cycle = bench.dut.clock.cycle - 1
        for name in names:
            valid = f"{name[0]}valid"
            if valid not in names or name == valid or shadows[valid].bits:
                found, wanted = bench.axi[name].bits, shadows[name].bits
                assert found == wanted, f"cycle {cycle}: {name} {found:#x}, not {wanted:#x}"
        ideal.edge(cycle)


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
@cocotb.parametrize(pause=[0.0, 0.3])
async def reads_as_the_model(dut: Any, pause: float) -> None:
    """Reads take the cycles of the Python model, which the timing contracts are tested with."""
    bench = Bench(dut)
    master = await bench.start(pause)
    cocotb.start_soon(_compare(bench, IdealReads, "arready", "rvalid", "rdata", "rresp", "rlast"))
    bursts = [_aligned(bench, bench.random.choice((1, 2, 17))) for _ in range(60)]
    for burst in bursts:
        await master.send_read(burst)
    for burst in bursts:
        await bench.check_read(master, burst)
    assert await bench.count() == (sum(burst.beats for burst in bursts), 0)


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
@cocotb.parametrize(pause=[0.0, 0.3], late=[False, True])
async def writes_as_the_model(dut: Any, pause: float, late: bool) -> None:
    """So do writes; with `late` data come before their addresses."""
    bench = Bench(dut)
    master = await bench.start(pause)
    cocotb.start_soon(_compare(bench, IdealWrites, "awready", "wready", "bvalid", "bresp"))
    if late:
        master.channels["aw"].set_pause_generator(pauses(bench.own_random(), 0.95))
    bursts = [_aligned(bench, bench.random.choice((1, 2, 5))) for _ in range(40)]
    for burst in bursts:
        await master.send_write(burst, bench.beats(burst))
    for burst in bursts:
        assert await master.response() == (burst.id, OKAY)
    assert await bench.dump(0, bench.size) == bench.data
    assert await bench.count() == (0, sum(burst.beats for burst in bursts))
    early = bench.moved["w"][0] < bench.moved["aw"][0]
    assert early or not late


def _aligned(bench: Bench, beats: int) -> Burst:
    """Return a burst of whole bus words: the model knows no others."""
    address = bench.random.randrange(bench.size // bench.width - beats + 1) * bench.width
    return Burst(address, beats, bench.full, bench.random.randrange(16))


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def the_contract(dut: Any) -> None:
    """Latencies overlap, beats follow each other, and are counted from where the contract says."""
    bench = Bench(dut)
    master = await bench.start()
    reads = [Burst(n * 3 * bench.width, 3, bench.full, n) for n in range(5)]
    for burst in reads:
        await master.send_read(burst)
    for burst in reads:
        await bench.check_read(master, burst)
    moved = bench.moved
    assert moved["r"] == [moved["ar"][0] + bench.latency + n for n in range(15)]
    assert moved["ar"] == [moved["ar"][0] + n for n in range(5)]

    for burst in reads:
        await master.send_write(burst, bench.beats(burst))
    for burst in reads:
        assert await master.response() == (burst.id, OKAY)
    assert moved["w"] == [moved["w"][0] + n for n in range(15)]
    assert moved["b"] == [cycle + bench.latency for cycle in moved["w"][2::3]]


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def a_shared_bus(dut: Any) -> None:
    """While reads and writes both have beats they take turns, and no cycle is lost."""
    bench = Bench(dut)
    master = await bench.start()
    beats = 200
    half = bench.size // bench.width // 2 * bench.width
    read, write = Burst(0, beats, bench.full, 1), Burst(half, beats, bench.full, 2)
    await master.send_read(read)
    await bench.dut.clock.edges(bench.latency + 20)
    data = bench.beats(write)
    await master.send_write(write, data)
    await bench.check_read(master, read)
    assert await master.response() == (2, OKAY)
    reads, writes = bench.moved["r"], bench.moved["w"]
    assert sorted(reads + writes) == [reads[0] + n for n in range(2 * beats)]
    contested = [cycle for cycle in writes if cycle < reads[-1]]
    assert contested == [writes[0] + 2 * n for n in range(len(contested))]
    assert contested[-1] == reads[-1] - 1
    assert len(contested) > beats // 2
    assert await bench.dump(0, bench.size) == bench.data


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def a_reader_that_waits(dut: Any) -> None:
    """A read beat that is offered and not taken keeps no write from the bus."""
    bench = Bench(dut)
    master = await bench.start()
    master.channels["r"].pause = True
    read, write = Burst(0, 4, bench.full, 1), Burst(1024, 8, bench.full, 2)
    await master.send_read(read)
    await bench.dut.clock.edges(bench.latency + 20)
    await master.send_write(write, bench.beats(write))
    assert await master.response() == (2, OKAY)
    assert bench.moved["w"] == [bench.moved["w"][0] + n for n in range(8)]
    master.channels["r"].pause = False
    await bench.check_read(master, read)


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
@cocotb.parametrize(pause=[0.0, 0.4])
async def bursts(dut: Any, pause: float) -> None:
    """Bursts of every beat size and start, with any strobes; and refused ones among them."""
    bench = Bench(dut)
    master = await bench.start(pause)
    sent: list[tuple[Burst, bool]] = []
    for _ in range(40):
        burst = bench.burst(bench.random.choice((1, 2, 5, 30)))
        refused = bench.random.random() < 0.3
        if refused:
            burst = _refused(bench, burst)
        await master.send_write(burst, bench.beats(burst, changes=not refused))
        sent.append((burst, refused))
    for burst, refused in sent:
        assert await master.response() == (burst.id, DECERR if refused else OKAY), burst
    assert await bench.dump(0, bench.size) == bench.data
    for burst, _ in sent:
        await master.send_read(burst)
    for burst, refused in sent:
        if not refused:
            await bench.check_read(master, burst)
            continue
        for number in range(1, burst.beats + 1):
            beat = await master.read_beat()
            assert (beat.data, beat.response) == (0, DECERR), burst
            assert beat.last == (number == burst.beats), burst


def _refused(bench: Bench, burst: Burst) -> Burst:
    """Return a burst all of whose beats must be refused."""
    ways = [
        Burst(burst.address, burst.beats, burst.size, burst.id, FIXED),
        Burst(burst.address, burst.beats, burst.size, burst.id, WRAP),
        Burst(bench.size, burst.beats, burst.size, burst.id),
        Burst((1 << 39) + burst.address, burst.beats, burst.size, burst.id),
    ]
    return bench.random.choice(ways)


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def the_last_bytes(dut: Any) -> None:
    """Beats up to the last byte are served, those after it refused; the write up to it is done."""
    bench = Bench(dut)
    master = await bench.start()
    burst = Burst(bench.size - 2 * bench.width, 3, bench.full, 5)
    await master.send_read(burst)
    beats = [await master.read_beat() for _ in range(3)]
    assert [beat.response for beat in beats] == [OKAY, OKAY, DECERR]
    assert beats[1].data == int.from_bytes(bench.data[-bench.width :], "little")
    ones = (1 << bench.width) - 1
    await master.send_write(burst, [Beat(value, ones) for value in (1, 2, 3)])
    assert await master.response() == (5, DECERR)
    wanted = b"".join(value.to_bytes(bench.width, "little") for value in (1, 2))
    assert await bench.dump(burst.address, 2 * bench.width) == wanted
    bench.data[burst.address :] = wanted
    assert await bench.dump(0, bench.size) == bench.data


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def transfers(dut: Any) -> None:
    """What another master, which cuts transfers into bursts, writes and reads."""
    bench = Bench(dut)
    bench.dut.rest()
    bench.dut.clock.start()
    await bench.dut.clock.reset()
    await bench.load(0, bytes(bench.size))
    logging.getLogger("cocotb").setLevel(logging.WARNING)
    master: Any = AxiMaster(AxiBus.from_prefix(dut, "axi_"), bench.dut.ports["clk"].handle)
    for _ in range(12):
        length = bench.random.randrange(1, 900)
        address = bench.random.randrange(bench.size - length)
        data = bench.random.randbytes(length)
        size = bench.random.randrange(bench.full + 1)
        assert (await master.write(address, data, size=size)).resp == OKAY
        bench.data[address : address + length] = data
        found = await master.read(address, length)
        assert (found.resp, found.data) == (OKAY, data)
    assert await bench.dump(0, bench.size) == bench.data


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def the_back_door(dut: Any) -> None:
    """Parts of any start and length go in and come out."""
    bench = Bench(dut)
    await bench.start()
    for length in (1, 2, 1000, 1001):
        address = bench.random.randrange(bench.size - length + 1)
        await bench.load(address, bench.random.randbytes(length))
        before = bench.random.randrange(min(address, 20) + 1)
        wanted = bench.data[address - before : address + length]
        assert await bench.dump(address - before, length + before) == wanted
    assert await bench.dump(0, bench.size) == bench.data
