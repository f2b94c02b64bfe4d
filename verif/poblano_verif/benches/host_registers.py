"""Bench of the register file: every word of the map, refusals, flags, counters, strobes."""

from __future__ import annotations

from random import Random
from typing import Any, cast

import cocotb

from poblano.config import Configuration
from poblano.host.registers import ADDRESS_WIDTH, Access, Word, register_map
from poblano_verif.axi_lite import LiteMaster
from poblano_verif.dut import Dut
from poblano_verif.register_model import OKAY, SLVERR, RegisterModel

LIMIT = 30_000_000
"""Simulation steps that a test may take."""


class Bench:
    """A register file with a master and a model."""

    def __init__(self, handle: Any) -> None:
        self.dut = Dut(handle)
        self.handle = handle
        self.random = Random(cocotb.RANDOM_SEED)
        modules = cast("list[dict[str, Any]]", self.dut.manifest["modules"])
        values = modules[-1]["parameters"]["configuration"]
        self.configuration = Configuration.model_validate(values)
        self.map = register_map(self.configuration)
        self.model = RegisterModel(self.dut, self.map, self.own_random())
        self.master: LiteMaster

    def own_random(self) -> Random:
        """Return a source of its own for a part."""
        return Random(self.random.getrandbits(64))

    async def start(self, pause: float = 0.0) -> None:
        """Reset, and begin to follow."""
        self.dut.rest()
        self.dut.clock.start()
        self.master = LiteMaster(self.dut, self.handle, "axi_", self.own_random())
        await self.dut.clock.reset()
        self.master.pause(pause)
        self.model.start()

    def word(self, name: str) -> Word:
        """Return the word of that name."""
        return next(word for word in self.map.words if word.name == name)

    async def write(self, word: Word, value: int, strobe: int = 0xF) -> None:
        """Write, and compare response and outputs."""
        expected = self.model.write(word, value, strobe)
        found = await self.master.write(word.offset, value, strobe)
        assert found == expected, f"{word.name}: response {found}, not {expected}"
        self.model.check_outputs()

    async def read(self, word: Word) -> None:
        """Read while the inputs rest, and compare."""
        found = await self.master.read(word.offset)
        expected = (self.model.expected(word), OKAY)
        assert found == expected, f"{word.name}: {found}, not {expected}"

    async def read_all(self) -> None:
        """Read every word, the lower of two before the upper."""
        for word in self.map.words:
            await self.read(word)


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def resets(dut: Any) -> None:
    """Every word after reset, and again after a second reset that undoes writes."""
    bench = Bench(dut)
    await bench.start()
    assert bench.map.field("WATCHDOG").reset == bench.model.values["watchdog"] == 1_000_000
    assert (await bench.master.read(0))[0] == int.from_bytes(b"PBLO", "big")
    low, high = [(await bench.master.read(offset))[0] for offset in (8, 12)]
    assert high << 32 | low == bench.configuration.hash64
    await bench.read_all()
    bench.model.check_outputs()
    for word in bench.map.words:
        if word.register.writable:
            await bench.write(word, 0xFFFF_FFFF)
    await bench.dut.clock.reset()
    await bench.dut.clock.edge()
    bench.model.values |= {
        word.register.port(item): item.reset
        for word in bench.map.words
        for item in word.register.fields
        if not item.access.driven
    }
    bench.model.check_outputs()
    await bench.read_all()


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
@cocotb.parametrize(pause=[0.0, 0.6])
async def every_word(dut: Any, pause: float) -> None:
    """Writes of random bytes to every word, read back among random values of the hardware."""
    bench = Bench(dut)
    await bench.start(pause)
    for _ in range(3):
        for word in bench.random.sample(bench.map.words, len(bench.map.words)):
            bench.model.drive_values()
            name = word.name.lower()
            before = list(bench.model.strobes.get(name, []))
            value, strobe = bench.random.getrandbits(32), bench.random.getrandbits(4)
            await bench.write(word, value, strobe)
            if name in bench.model.strobes:
                mask = sum(0xFF << 8 * byte for byte in range(4) if strobe >> byte & 1)
                rings = bool(mask & word.fields[0].mask)
                assert bench.model.strobes[name] == before + [value & mask] * rings, word.name
            await bench.read(bench.random.choice(bench.map.words))
    await bench.read_all()
    strobed = sum(len(seen) for seen in bench.model.strobes.values())
    assert strobed > len(bench.model.strobes)


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def outside_the_map(dut: Any) -> None:
    """Reads and writes of addresses without a register are refused and change nothing."""
    bench = Bench(dut)
    await bench.start(0.3)
    mapped = set(bench.map.offsets.values())
    near = {offset ^ 1 << bit for offset in mapped for bit in range(2, ADDRESS_WIDTH)}
    for address in [*bench.random.sample(sorted(near - mapped), 150), (1 << ADDRESS_WIDTH) - 4]:
        assert await bench.master.write(address, 0xFFFF_FFFF) == SLVERR
        assert await bench.master.read(address) == (0, SLVERR)
    assert not any(bench.model.strobes.values())
    bench.model.check_outputs()
    await bench.read_all()
    word = bench.word("WATCHDOG")
    for low in range(4):
        assert await bench.master.write(word.offset + low, low + 5) == OKAY
        assert await bench.master.read(word.offset + low ^ 1) == (low + 5, OKAY)


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
@cocotb.parametrize(pause=[0.0, 0.5])
async def several_in_flight(dut: Any, pause: float) -> None:
    """Writes, and reads, that do not wait for their answers are answered in order."""
    bench = Bench(dut)
    await bench.start(pause)
    known = list(bench.map.words)
    free = sorted({*range(0, 0x200, 4)} - {*bench.map.offsets.values()})
    expected: list[int] = []
    for _ in range(40):
        word, refused = bench.random.choice(known), bench.random.random() < 0.3
        value = bench.random.getrandbits(32) & ~2  # no clearing of counters
        expected.append(SLVERR if refused else bench.model.write(word, value, 0xF))
        address = bench.random.choice(free) if refused else word.offset
        await bench.master.send_write(address, value)
    assert [await bench.master.response() for _ in expected] == expected
    bench.model.check_outputs()
    words = bench.random.choices(known, k=40)
    for word in words:
        await bench.master.send_read(word.offset)
        await bench.master.send_read(free[0])
    for word in words:
        assert await bench.master.answer() == (bench.model.expected(word), OKAY), word.name
        assert await bench.master.answer() == (0, SLVERR)


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def address_and_data_in_any_order(dut: Any) -> None:
    """The address comes up to four cycles before or after the data."""
    bench = Bench(dut)
    await bench.start()
    word = bench.word("WATCHDOG")
    for lead in range(-4, 5):
        late = "w" if lead > 0 else "aw"
        bench.master.pause(1.0 if lead else 0.0, late)
        await bench.dut.clock.edges(2)
        write = cocotb.start_soon(bench.master.write(word.offset, lead + 100))
        await bench.dut.clock.edges(abs(lead) + 1)
        assert not lead or not write.done()
        bench.master.pause(0.0, late)
        assert await write == OKAY
        assert bench.dut.ports["watchdog"].bits == lead + 100


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def setting_a_flag_wins(dut: Any) -> None:
    """A flag that is set in the cycle of its clearing stays; earlier settings are cleared."""
    bench = Bench(dut)
    await bench.start()
    ports, clock = bench.dut.ports, bench.dut.clock
    word = bench.word("INTERRUPT_STATUS")
    raced = 0
    for item in word.fields:
        port = ports[word.register.port(item)]
        for delay in range(10):
            write = cocotb.start_soon(bench.master.write(word.offset, 1 << item.low))
            set_at = answered = -1
            for cycle in range(12):
                port.handle.value = int(cycle == delay)
                bench.model.values[port.name] = 0
                await clock.edge()
                if cycle == delay:
                    set_at = cycle
                if ports["axi__bvalid"].bits and answered < 0:
                    answered = cycle
            assert await write == OKAY
            raced += set_at == answered - 1
            flags = (await bench.master.read(word.offset))[0]
            assert flags == (1 << item.low) * (set_at >= answered - 1), (delay, answered)
            await bench.master.write(word.offset, 0xF)
    assert raced == len(word.fields)


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def interrupts(dut: Any) -> None:
    """Flags raise the interrupt where they are enabled, and fall by writing ones only."""
    bench = Bench(dut)
    await bench.start(0.2)
    enable, status = (bench.word(f"INTERRUPT_{part}") for part in ("ENABLE", "STATUS"))
    levels: set[int] = set()
    for _ in range(60):
        bench.model.activity = 0.1
        await bench.dut.clock.edges(bench.random.randrange(1, 8))
        bench.model.activity = 0.0
        await bench.dut.clock.edges(2)
        await bench.write(enable, bench.random.getrandbits(32), bench.random.getrandbits(4))
        await bench.read(status)
        levels.add(bench.dut.ports["irq"].bits)
        await bench.write(status, bench.random.getrandbits(2))
        await bench.read(status)
    assert levels == {0, 1}


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def counters(dut: Any) -> None:
    """Counters count every cycle of their input, are cleared together, and go on."""
    bench = Bench(dut)
    await bench.start(0.2)
    for activity in (0.5, 1.0, 0.1):
        bench.model.activity = activity
        await bench.dut.clock.edges(300)
        if activity == 1.0:
            await bench.master.write(bench.map.offset("CONTROL"), 2)
            await bench.dut.clock.edges(50)
        bench.model.activity = 0.0
        await bench.dut.clock.edges(2)
        await bench.read_all()
    await bench.master.write(bench.map.offset("CONTROL"), 2)
    await bench.dut.clock.edges(2)
    await bench.read_all()
    assert all(
        bench.model.values[word.register.port(f)] == 0
        for word in bench.map.words
        for f in word.register.fields
        if f.access is Access.COUNTER
    )
