"""What a register file should hold, by its description, and what its ports did."""

from __future__ import annotations

from random import Random

import cocotb

from poblano.host.registers import Access, Field, Register, RegisterMap, Word
from poblano_verif.dut import Dut

__all__ = ["OKAY", "SLVERR", "RegisterModel"]

OKAY, SLVERR = 0, 2

_EVENTS = (Access.COUNTER, Access.FLAG)


class RegisterModel:
    """Follows the inputs of a register file, and knows what reads give and outputs show.

    Counters, flags and strobes are followed at every clock edge from the ports; everything else
    changes by `write`.

    Parameters
    ----------
    dut:
        The register file.
    registers:
        Its description.
    random:
        Source of what the hardware's side does.

    Attributes
    ----------
    values:
        Port name to the value of the field.
    strobes:
        Port name to the values of `written` that came with its strobe.
    activity:
        Probability that an input which counts or sets is 1 in a cycle.
    """

    def __init__(self, dut: Dut, registers: RegisterMap, random: Random) -> None:
        self._dut = dut
        self._random = random
        self.map = registers
        self.activity = 0.0
        self._by_port = {register.port(item): item for register, item in registers.items()}
        self.values = {name: item.reset for name, item in self._by_port.items()}
        self.strobes: dict[str, list[int]] = {name: [] for name in self._with(*_STROBED)}
        self._counters = self._with(Access.COUNTER)
        self._flags = self._with(Access.FLAG)

    def _with(self, *access: Access) -> list[str]:
        return [name for name, item in self._by_port.items() if item.access in access]

    def start(self) -> None:
        """Begin to drive the inputs, and to follow the ports."""
        self.drive_values(0)
        cocotb.start_soon(self._follow())

    def drive_values(self, *chosen: int) -> None:
        """Give every input that carries a value the chosen or a random one."""
        for name in self._with(Access.STATUS, Access.ADD):
            value = chosen[0] if chosen else self._random.getrandbits(self._by_port[name].width)
            self._dut.ports[name].handle.value = self.values[name] = value

    async def _follow(self) -> None:
        ports = self._dut.ports
        events = self._counters + self._flags
        drawn = dict.fromkeys(events, 0)
        while True:
            for name in events:
                drawn[name] = int(self._random.random() < self.activity)
                ports[name].handle.value = drawn[name]
            await self._dut.clock.edge()
            cleared = ports["control_clear_counters"].bits
            for name in self._counters:
                wraps = 1 << self._by_port[name].width
                self.values[name] = 0 if cleared else (self.values[name] + drawn[name]) % wraps
            for name in self._flags:
                self.values[name] |= drawn[name]
            for name, seen in self.strobes.items():
                if ports[f"{name}_written"].bits:
                    seen.append(ports["written"].bits)

    def expected(self, word: Word) -> int:
        """Return what a read of the word gives."""
        found = 0
        for item in word.register.fields:
            name = word.register.port(item)
            if item.access is not Access.PULSE:
                found |= self.values[name] << item.low
        return (found >> word.low) & 0xFFFF_FFFF

    def write(self, word: Word, value: int, strobe: int) -> int:
        """Take a write whose flags nothing sets meanwhile; return the response to expect."""
        if not word.register.writable:
            return SLVERR
        mask = sum(0xFF << 8 * byte for byte in range(4) if strobe >> byte & 1)
        for item in word.register.fields:
            self._write(word.register, item, value & mask, mask)
        return OKAY

    def _write(self, register: Register, item: Field, value: int, mask: int) -> None:
        name = register.port(item)
        if item.access in (Access.CONTROL, Access.DOORBELL):
            held = self.values[name] << item.low
            self.values[name] = ((held & ~mask) | value) >> item.low & (1 << item.width) - 1
        elif item.access is Access.FLAG:
            self.values[name] &= ~(value >> item.low)

    def check_outputs(self) -> None:
        """Compare the outputs that carry values, and the interrupt."""
        for name in self._with(Access.CONTROL, Access.DOORBELL):
            found = self._dut.ports[name].bits
            assert found == self.values[name], f"{name}: {found:#x}, not {self.values[name]:#x}"
        causes = [name.removeprefix("interrupt_status_") for name in self._flags]
        wanted = any(
            self.values[f"interrupt_status_{cause}"] & self.values[f"interrupt_enable_{cause}"]
            for cause in causes
        )
        found = self._dut.ports["irq"].bits
        assert found == wanted, f"irq: {found}, not {int(wanted)}"


_STROBED = (Access.ADD, Access.DOORBELL)
