"""The AXI4-Lite slave that serves the register map."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from poblano.axi import Response, axi4_lite
from poblano.component import Component
from poblano.config import Configuration
from poblano.host.registers import (
    ADDRESS_WIDTH,
    WORD_BITS,
    Access,
    RegisterMap,
    Word,
    register_map,
)

__all__ = ["RegisterFile", "register_members"]

_INDEX_WIDTH = ADDRESS_WIDTH - 2


def register_members(registers: RegisterMap) -> dict[str, wiring.Member]:
    """Return the ports that join the registers to the hardware, named by `Register.port`.

    ========  ==================================================================================
    access    ports
    ========  ==================================================================================
    constant  none
    status    input: the value
    counter   input of one bit: counts the cycles in which it is 1
    control   output: the value
    doorbell  output: the value; and NAME_written, 1 in the first cycle after a write
    pulse     output: 1 for a cycle
    flag      input: sets the flag while it is 1
    add       input: the value; and NAME_written, 1 for the cycle in which `written` is to be added
    ========  ==================================================================================

    `written` is what was written last; bytes without a strobe are 0.
    """
    members: dict[str, wiring.Member] = {"written": Out(WORD_BITS)}
    for register, item in registers.items():
        name = register.port(item)
        match item.access:
            case Access.STATUS | Access.ADD | Access.FLAG:
                members[name] = In(item.width)
            case Access.COUNTER:
                members[name] = In(1)
            case Access.CONTROL | Access.DOORBELL | Access.PULSE:
                members[name] = Out(item.width, init=item.reset)
            case Access.CONSTANT:
                pass
        if item.access in (Access.ADD, Access.DOORBELL):
            members[f"{name}_written"] = Out(1)
    return members


class RegisterFile(Component):
    """Serves the register map on AXI4-Lite, and counts what its counters count.

    One write and one read are in progress at a time, independently; each takes two cycles where
    the master does not wait. Address and data of a write may come in either order. The two lowest
    address bits are ignored. A read outside the map is answered with SLVERR and 0; so is a write
    outside it, or to a word without a writable field, which changes nothing. What a write changes
    is visible at the ports when its response is. Reading the lower word of a counter of 64 bits
    keeps its upper word for the read of that.

    Parameters
    ----------
    configuration:
        The chip; `poblano.host.registers.register_map` of it is what is served.

    Members
    -------
    axi:
        The bus, whose master is outside.
    irq:
        1 while a flag of INTERRUPT_STATUS is set whose bit of INTERRUPT_ENABLE is 1.
    ...:
        `register_members` of the map.

    Raises
    ------
    PoblanoError
        If the map has no room for what the configuration has.
    """

    def __init__(self, *, configuration: Configuration) -> None:
        self.map = register_map(configuration)
        super().__init__(
            {
                "axi": In(axi4_lite(address_width=ADDRESS_WIDTH)),
                "irq": Out(1),
                **register_members(self.map),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        state = self._state(m)
        self._serve_writes(m, state)
        self._serve_reads(m, state)
        status, enable = (f"interrupt_{part}" for part in ("status", "enable"))
        m.d.comb += self.irq.eq(
            Cat(
                state[name] & state[name.replace(status, enable)]
                for name in state
                if name.startswith(status)
            ).any()
        )
        return m

    def _state(self, m: Module) -> dict[str, Value]:
        """Return by port name what a read of every field gives; make counters count."""
        state: dict[str, Value] = {}
        for register, item in self.map.items():
            name = register.port(item)
            match item.access:
                case Access.CONSTANT:
                    state[name] = C(item.reset, item.width)
                case Access.PULSE:
                    state[name] = C(0, item.width)
                case Access.FLAG:
                    state[name] = Signal(item.width, init=item.reset, name=name)
                case Access.COUNTER:
                    state[name] = count = Signal(item.width, name=f"{name}_count")
                    with m.If(self.control_clear_counters):
                        m.d.sync += count.eq(0)
                    with m.Elif(getattr(self, name)):
                        m.d.sync += count.eq(count + 1)
                case _:
                    state[name] = getattr(self, name)
        return state

    def _serve_writes(self, m: Module, state: dict[str, Value]) -> None:
        axi = self.axi
        has_address = Signal()
        has_data = Signal()
        index = Signal(_INDEX_WIDTH)
        data = Signal(WORD_BITS)
        strobe = Signal(WORD_BITS // 8)
        writes = Signal()
        m.d.comb += [
            axi.awready.eq(~has_address),
            axi.wready.eq(~has_data),
            writes.eq(has_address & has_data & ~axi.bvalid),
        ]
        with m.If(axi.awvalid & axi.awready):
            m.d.sync += [has_address.eq(1), index.eq(axi.awaddr[2:])]
        with m.If(axi.wvalid & axi.wready):
            m.d.sync += [has_data.eq(1), data.eq(axi.wdata), strobe.eq(axi.wstrb)]
        with m.If(axi.bready):
            m.d.sync += axi.bvalid.eq(0)

        mask = Signal(WORD_BITS)
        value = Signal(WORD_BITS)
        m.d.comb += [mask.eq(Cat(bit.replicate(8) for bit in strobe)), value.eq(data & mask)]
        clears: dict[str, Signal] = {}
        for register, item in self.map.items():
            name = register.port(item)
            if item.access in (Access.ADD, Access.DOORBELL):
                m.d.sync += getattr(self, f"{name}_written").eq(0)
            elif item.access is Access.PULSE:
                m.d.sync += getattr(self, name).eq(0)
            elif item.access is Access.FLAG:
                clears[name] = Signal(item.width, name=f"{name}_clear")
                m.d.sync += state[name].eq((state[name] & ~clears[name]) | getattr(self, name))
        with m.If(writes):
            m.d.sync += [
                has_address.eq(0),
                has_data.eq(0),
                axi.bvalid.eq(1),
                self.written.eq(value),
            ]
            with m.Switch(index):
                for word in self.map.words:
                    if word.register.writable:
                        with m.Case(word.offset >> 2):
                            m.d.sync += axi.bresp.eq(Response.OKAY)
                            self._write(m, word, value, mask, clears)
                with m.Default():
                    m.d.sync += axi.bresp.eq(Response.SLVERR)

    def _write(
        self, m: Module, word: Word, value: Value, mask: Value, clears: dict[str, Signal]
    ) -> None:
        """Write the fields of a word, which is all of its register."""
        for item in word.fields:
            name = word.register.port(item)
            bits = slice(item.low, item.low + item.width)
            match item.access:
                case Access.CONTROL | Access.DOORBELL:
                    held = getattr(self, name)
                    m.d.sync += held.eq((held & ~mask[bits]) | value[bits])
                case Access.PULSE:
                    m.d.sync += getattr(self, name).eq(value[bits])
                case Access.FLAG:
                    m.d.comb += clears[name].eq(value[bits])
                case _:
                    pass
            if item.access in (Access.ADD, Access.DOORBELL):
                m.d.sync += getattr(self, f"{name}_written").eq(mask[bits].any())

    def _serve_reads(self, m: Module, state: dict[str, Value]) -> None:
        axi = self.axi
        m.d.comb += axi.arready.eq(~axi.rvalid)
        with m.If(axi.rready):
            m.d.sync += axi.rvalid.eq(0)
        with m.If(axi.arvalid & axi.arready):
            m.d.sync += axi.rvalid.eq(1)
            with m.Switch(axi.araddr[2:]):
                for word in self.map.words:
                    with m.Case(word.offset >> 2):
                        m.d.sync += axi.rresp.eq(Response.OKAY)
                        m.d.sync += axi.rdata.eq(self._read(m, word, state))
                with m.Default():
                    m.d.sync += [axi.rresp.eq(Response.SLVERR), axi.rdata.eq(0)]

    def _read(self, m: Module, word: Word, state: dict[str, Value]) -> Value:
        """Return the bits of a word; its lower word keeps the upper word of a counter."""
        register = word.register
        bits = Const(0, 0)
        for item in register.fields:
            bits = Cat(bits, C(0, item.low - len(bits)), state[register.port(item)])
        if register.width == WORD_BITS or register.fields[0].access is not Access.COUNTER:
            return bits[word.low : word.low + WORD_BITS]
        if word.low == 0:
            kept = Signal(WORD_BITS, name=f"{register.name.lower()}_kept")
            m.d.sync += kept.eq(bits[WORD_BITS:])
            state[f"{register.name.lower()}_kept"] = kept
            return bits[:WORD_BITS]
        return state[f"{register.name.lower()}_kept"]
