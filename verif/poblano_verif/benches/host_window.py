"""Bench of the host's window: transfers of every shape, refusals, order and speed."""

from __future__ import annotations

import logging
from random import Random
from typing import Any, cast

import cocotb
from cocotb.triggers import with_timeout
from cocotbext.axi import AxiBus, AxiMaster

from poblano.config import SliceConfiguration
from poblano_verif.axi_bursts import INCR, Beat, Burst, BurstMaster, ReadBeat
from poblano_verif.axi_lite import pauses
from poblano_verif.dut import Dut
from poblano_verif.l1_model import L1Model

LIMIT = 100_000_000
"""Simulation steps that a test may take."""

OKAY, SLVERR = 0, 2
FIXED, WRAP = 0, 2


class Bench:
    """A window between a master and a model of L1."""

    def __init__(self, handle: Any, l1_pause: float = 0.0) -> None:
        self.handle = handle
        self.dut = Dut(handle)
        self.random = Random(cocotb.RANDOM_SEED)
        modules = cast("list[dict[str, Any]]", self.dut.manifest["modules"])
        section = SliceConfiguration.model_validate(modules[-1]["parameters"]["configuration"])
        self.width, self.size = section.host.width, section.l1.size
        self.size_log2 = (self.width - 1).bit_length()
        self.l1 = L1Model(self.dut, self.size, section.l1.line, self.own_random(), l1_pause)

    def own_random(self) -> Random:
        """Return a source of its own for a part."""
        return Random(self.random.getrandbits(64))

    async def start(self) -> None:
        """Reset, and let L1 serve."""
        self.dut.rest()
        self.dut.clock.start()
        await self.dut.clock.reset()
        self.l1.start()

    async def start_bursts(self, pause: float = 0.0) -> BurstMaster:
        """Start with a master of single bursts."""
        await self.start()
        master = BurstMaster(self.dut, self.handle, "axi_")
        master.pause(pause, self.own_random())
        return master

    async def start_transfers(self, pause: float) -> Any:
        """Start with a master that cuts transfers into bursts."""
        await self.start()
        logging.getLogger("cocotb").setLevel(logging.WARNING)
        master: Any = AxiMaster(
            AxiBus.from_prefix(self.handle, "axi_"), self.dut.ports["clk"].handle
        )
        writes, reads = master.write_if, master.read_if
        for channel in (
            *(writes.aw_channel, writes.w_channel, writes.b_channel),
            *(reads.ar_channel, reads.r_channel),
        ):
            channel.set_pause_generator(pauses(self.own_random(), pause))
        return master

    def burst(self, most_beats: int = 256) -> Burst:
        """Return a random burst inside L1."""
        size = self.random.randrange(self.size_log2 + 1)
        beats = self.random.choice((1, 2, 3, self.random.randint(1, most_beats), most_beats))
        beats = min(beats, self.size >> size)
        address = self.random.randrange(self.size - (beats << size) + 1)
        return Burst(address, beats, size, self.random.randrange(16))

    def beats(self, burst: Burst) -> list[Beat]:
        """Return random data for a burst, strobed at random within its lanes."""
        return [
            Beat(
                self.random.getrandbits(8 * self.width),
                sum(
                    1 << lane for lane in lanes if lane < self.width and self.random.random() < 0.7
                ),
            )
            for _, lanes in burst.lanes(self.width)
        ]

    def store(self, memory: bytearray, burst: Burst, beats: list[Beat]) -> None:
        """Do to a memory what a write means."""
        for (word, lanes), beat in zip(burst.lanes(self.width), beats, strict=True):
            for lane in lanes:
                if beat.strobe >> lane & 1:
                    memory[word + lane] = beat.data >> 8 * lane & 0xFF

    def check_read(self, memory: bytearray, burst: Burst, beats: list[ReadBeat]) -> None:
        """Compare the beats of a read with a memory."""
        for number, ((word, lanes), beat) in enumerate(
            zip(burst.lanes(self.width), beats, strict=True), 1
        ):
            found = bytes(beat.data >> 8 * lane & 0xFF for lane in lanes)
            wanted = bytes(memory[word + lanes.start : word + lanes.stop])
            assert found == wanted, f"beat {number} of {burst}: {found.hex()}, not {wanted.hex()}"
            assert (beat.id, beat.response) == (burst.id, OKAY), (number, burst, beat)
            assert beat.last == (number == burst.beats), (number, burst)


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
@cocotb.parametrize(pause=[0.0, 0.4])
async def transfers(dut: Any, pause: float) -> None:
    """Transfers of any length, beat size and start, reads and writes at the same time."""
    bench = Bench(dut, pause)
    master = await bench.start_transfers(pause)
    memory = bytearray(bench.l1.data)
    half = bench.size // 2

    async def run(start: int, random: Random) -> None:
        for beats in (1, 2, 5, 270, *(random.randrange(1, 40) for _ in range(6))):
            size = random.randrange(bench.size_log2 + 1)
            length = min(max(1, (beats << size) - random.randrange(1 << size)), half - 1)
            address = start + random.randrange(half - length)
            data = random.randbytes(length)
            answer = await master.write(address, data, size=size)
            assert answer.resp == OKAY
            memory[address : address + length] = data
            around = max(start, address - random.randrange(40))
            length += random.randrange(40)
            length = min(length, start + half - around)
            found = await master.read(around, length, size=random.randrange(bench.size_log2 + 1))
            assert found.resp == OKAY
            wanted = bytes(memory[around : around + length])
            assert found.data == wanted, f"{length} bytes at {around:#x} differ"

    runs = [cocotb.start_soon(run(start, bench.own_random())) for start in (0, half)]
    for task in runs:
        await task
    assert bench.l1.data == memory


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
@cocotb.parametrize(pause=[0.0, 0.4], l1_pause=[0.0, 0.4])
async def bursts(dut: Any, pause: float, l1_pause: float) -> None:
    """Writes with any strobes, sent without waiting; then reads; refused ones among both."""
    bench = Bench(dut, l1_pause)
    master = await bench.start_bursts(pause)
    memory = bytearray(bench.l1.data)
    sent: list[tuple[Burst, bool]] = []
    for _ in range(20):
        burst, refused = _maybe_refused(bench, bench.burst(48))
        beats = bench.beats(burst)
        if not refused:
            bench.store(memory, burst, beats)
        await master.send_write(burst, beats)
        sent.append((burst, refused))
    for burst, refused in sent:
        assert await master.response() == (burst.id, SLVERR if refused else OKAY), burst
    assert bench.l1.data == memory
    assert bench.l1.writes == sum(burst.beats for burst, refused in sent if not refused)

    sent = [_maybe_refused(bench, bench.burst(48)) for _ in range(20)]
    for burst, _ in sent:
        await master.send_read(burst)
    for burst, refused in sent:
        beats = [await master.read_beat() for _ in range(burst.beats)]
        if refused:
            for number, beat in enumerate(beats, 1):
                assert beat == ReadBeat(burst.id, 0, SLVERR, number == burst.beats), burst
        else:
            bench.check_read(memory, burst, beats)
    assert bench.l1.reads == sum(burst.beats for burst, refused in sent if not refused)
    await bench.dut.clock.edges(50)
    assert master.channels["r"].empty()
    assert master.channels["b"].empty()


def _maybe_refused(bench: Bench, burst: Burst) -> tuple[Burst, bool]:
    """Return the burst, or one that must be refused, and whether it must."""
    step, end = 1 << burst.size, bench.size
    beats = burst.beats
    past = end - (beats - 1) * step  # its last beat is the first past the end
    ways = [
        Burst(burst.address, beats, burst.size, burst.id, FIXED),
        Burst(burst.address // step * step, 1 << (beats % 4 + 1), burst.size, burst.id, WRAP),
        Burst(past, beats, burst.size, burst.id),
        Burst(bench.random.randrange(end, 1 << 24), beats, burst.size, burst.id),
        Burst((1 << 24) - 1, beats, burst.size, burst.id),
    ]
    if bench.size_log2 < 7:
        ways.append(Burst(0, beats, bench.random.randint(bench.size_log2 + 1, 7), burst.id))
    if bench.random.random() < 0.5:
        return burst, False
    return bench.random.choice(ways), True


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def the_last_bytes(dut: Any) -> None:
    """A burst that ends with L1's last byte is served; one of another beat is not."""
    bench = Bench(dut)
    master = await bench.start_bursts()
    for beats in (1, 2, 4, 255):
        for size in range(bench.size_log2 + 1):
            for more in (0, 1):
                burst = Burst(bench.size - (beats << size), beats + more, size)
                await master.send_read(burst)
                found = [await master.read_beat() for _ in range(beats + more)]
                if more:
                    assert {beat.response for beat in found} == {SLVERR}
                else:
                    bench.check_read(bench.l1.data, burst, found)


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def speed(dut: Any) -> None:
    """Full-width bursts move a beat every cycle, one burst after the other; latencies hold."""
    bench = Bench(dut)
    master = await bench.start_bursts()
    count, length = 4, 40
    handshakes: dict[str, list[int]] = {name: [] for name in ("aw", "w", "b", "ar", "r")}

    async def watch() -> None:
        ports = bench.dut.ports
        while True:
            await bench.dut.clock.edge()
            for name, seen in handshakes.items():
                if ports[f"axi__{name}valid"].bits and ports[f"axi__{name}ready"].bits:
                    seen.append(bench.dut.clock.cycle)

    cocotb.start_soon(watch())
    memory = bytearray(bench.l1.data)
    some = [Burst(n * length * bench.width, length, bench.size_log2, n) for n in range(count)]
    ones = (1 << bench.width) - 1
    for burst in some:
        beats = [Beat(bench.random.getrandbits(8 * bench.width), ones) for _ in range(length)]
        bench.store(memory, burst, beats)
        await master.send_write(burst, beats)
    for burst in some:
        assert await master.response() == (burst.id, OKAY)
    for burst in some:
        await master.send_read(burst)
    for burst in some:
        found = [await master.read_beat() for _ in range(length)]
        bench.check_read(memory, burst, found)
    for name in ("w", "r"):
        seen = handshakes[name]
        assert len(seen) == count * length
        assert seen[-1] - seen[0] == count * length - 1, f"{name}: gaps in {seen}"
    assert handshakes["r"][0] - handshakes["ar"][0] == 4
    assert handshakes["b"][-1] - handshakes["w"][-1] == 2


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def reads_and_writes_are_independent(dut: Any) -> None:
    """A master that takes no read data still writes, and one that takes no responses reads."""
    bench = Bench(dut)
    master = await bench.start_bursts()
    burst = Burst(0, 8, bench.size_log2, 3)
    limit = 200 * bench.dut.clock.period
    for stuck in ("r", "b"):
        master.channels[stuck].pause = True
        await master.send_read(burst)
        await master.send_write(burst, bench.beats(burst))
        await master.send_write(burst, bench.beats(burst))
        if stuck == "r":
            for _ in range(2):
                assert await with_timeout(master.response(), limit, "step") == (3, OKAY)
        else:
            for _ in range(8):
                await with_timeout(master.read_beat(), limit, "step")
        await bench.dut.clock.edges(20)
        master.channels[stuck].pause = False
        for _ in range(8 if stuck == "r" else 2):
            await with_timeout(
                master.read_beat() if stuck == "r" else master.response(), limit, "step"
            )
    assert burst.kind == INCR
