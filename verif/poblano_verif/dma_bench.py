"""Half of a DMA engine between a memory and L1, and what it must do with both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, cast

import cocotb
import numpy as np
from numpy.typing import NDArray

from poblano.commands import HBM_ADDRESS_WIDTH, SYNCHRONISATION, by_opcode
from poblano.config import SliceConfiguration
from poblano.faults import Fault
from poblano_golden.moves import Move, load, read_indices, store
from poblano_sw.assembler import encode
from poblano_verif.axi_memory import Behaviour, IdealReads, IdealWrites, Window
from poblano_verif.axi_monitor import Samples
from poblano_verif.axi_rules import ReadRules, WriteRules
from poblano_verif.dma_commands import CommandPort, Issued
from poblano_verif.dma_l1 import L1Ports
from poblano_verif.dut import Dut

__all__ = ["DmaBench", "move_of"]

Bytes = NDArray[np.uint8]

_QUIET = 8
"""Cycles without anything to do after which a run is over."""

_SETTLED = 100
"""Cycles without a transfer after which an engine with a fault does nothing more."""


def move_of(values: Mapping[str, int]) -> Move:
    """Return what a command's values ask for."""
    names = {item.name for item in SYNCHRONISATION}
    return Move(**{name: value for name, value in values.items() if name not in names})


class DmaBench:
    """A load or store engine with models of its memory and of L1.

    Parameters
    ----------
    handle:
        The cocotb handle of the engine.
    behaviour:
        Of the ideal memory; None if the test attaches another to `axi_`.
    window:
        Bytes of HBM that the test uses; `origin` is the address of the first, below 0 counted
        from the end of what the port reaches.
    l1_pause:
        Probability that L1 makes a request wait in a cycle.

    Attributes
    ----------
    hbm, l1:
        The memories as they are.
    rules:
        What the bus is held to.
    commands:
        What was sent since the reset.
    scratchpad:
        L1's ports.
    beats:
        Cycles in which the engine said that a beat was moved.
    quiet:
        Cycles since anything was transferred on the bus.
    """

    def __init__(
        self,
        handle: Any,
        behaviour: Behaviour | None = None,
        *,
        window: int = 1 << 16,
        origin: int = 0,
        l1_pause: float = 0.0,
    ) -> None:
        self.handle = handle
        self.dut = Dut(handle)
        self.random = Random(cocotb.RANDOM_SEED)
        modules = cast("list[dict[str, Any]]", self.dut.manifest["modules"])
        self.slice = SliceConfiguration.model_validate(modules[-1]["parameters"]["configuration"])
        self.width, self.line = self.slice.hbm.width, self.slice.l1.line
        self.is_load = "write" in self.dut.streams
        origin += self.slice.hbm.port_bytes if origin < 0 else 0
        self.hbm = Window(origin, self.random_bytes(window))
        self.l1 = self.random_bytes(self.slice.l1.size)
        self.scratchpad = L1Ports(self.dut, self.l1, self.line, self.own_random())
        self.scratchpad.pause = l1_pause
        self.axi = {
            name.removeprefix("axi__"): port
            for name, port in self.dut.ports.items()
            if name.startswith("axi__")
        }
        self.behaviour = behaviour
        self.commands = CommandPort(self.dut)
        self._samples = Samples(self.axi)
        self.beats = 0
        self._restart()

    def random_bytes(self, size: int) -> Bytes:
        """Return random bytes."""
        return np.frombuffer(self.random.randbytes(size), np.uint8).copy()

    def own_random(self) -> Random:
        """Return a source of its own for a part."""
        return Random(self.random.getrandbits(64))

    def _restart(self) -> None:
        """Forget what was on its way."""
        rules = ReadRules if self.is_load else WriteRules
        self.rules = rules(self.width, self.slice.hbm.outstanding)
        serve = IdealReads if self.is_load else IdealWrites
        self._memory = (
            None
            if self.behaviour is None
            else serve(self.axi, self.width, self.hbm, self.behaviour)
        )
        self.commands.restart()
        self.scratchpad.restart()
        self.quiet = 0

    async def start(self, patience: int = 0) -> None:
        """Start the clock, reset and serve."""
        self.dut.rest()
        self.dut.clock.start()
        await self.reset(patience=patience)
        cocotb.start_soon(self._run())

    async def reset(
        self,
        *,
        patience: int = 0,
        behaviour: Behaviour | None = None,
    ) -> None:
        """Reset the engine and its memory, whatever they are doing; change what is given."""
        self.behaviour = behaviour or self.behaviour
        for port in self.axi.values():
            if port.is_input:
                port.handle.value = 0
        self.dut.ports["command__valid"].handle.value = 0
        self.dut.ports["patience"].handle.value = patience
        await self.dut.clock.reset()
        self._restart()

    async def _run(self) -> None:
        resets = self.dut.ports["rst"]
        while True:
            await self.dut.clock.edge()
            if resets.bits:
                continue
            cycle = self.dut.clock.cycle - 1
            before = self.rules.transfers
            self.rules.step(cycle, self._samples)
            self.commands.edge(cycle)
            self.scratchpad.edge(cycle)
            self.beats += self.dut.ports["beat"].bits
            self.quiet = self.quiet + 1 if self.rules.transfers == before else 0
            if self._memory is not None:
                self._memory.edge(cycle)

    @property
    def fault(self) -> dict[str, int]:
        """The engine's fault."""
        return self.dut.ports["fault"].value

    async def finish(self, limit: int = 100_000) -> None:
        """Wait until all commands are done or the engine has a fault, and some cycles more.

        Raises
        ------
        AssertionError
            If neither happens within `limit` cycles.
        """
        for _ in range(limit):
            await self.dut.clock.edge()
            if not self.commands.pending or self.dut.ports["fault"].bits:
                break
        else:
            raise AssertionError(f"commands must be done within {limit} cycles")
        await self.dut.clock.edges(_QUIET)
        if self.fault["kind"]:
            while self.rules.in_flight or self.quiet < _SETTLED:
                await self.dut.clock.edge()

    def encode(self, mnemonic: str, **values: int) -> bytes:
        """Return a legal command's word."""
        return encode(self.slice, mnemonic, **values)

    async def check(self, words: Sequence[bytes], *, exactly: bool = True) -> list[Issued]:
        """Run commands one behind the other; compare all of the memory that they change.

        With `exactly` each runs alone and must take the cycles of the timing contract.
        """
        groups = [[word] for word in words] if exactly else [list(words)]
        issued: list[Issued] = []
        for group in groups:
            wanted = self.after(group)
            cycles = self.contract(group[-1])
            before = self.rules.beats, self.beats
            issued += self.commands.send(*group)
            await self.finish()
            text = "; ".join(self.describe(word) for word in group)
            if self.fault["kind"]:
                raise AssertionError(f"{text}: fault {self.fault}")
            self.compare(wanted, text)
            self.rules.finish()
            moved, told = self.rules.beats - before[0], self.beats - before[1]
            if moved != told:
                raise AssertionError(f"{text}: {moved} beats moved, the engine told of {told}")
            if exactly and issued[-1].cycles != cycles:
                raise AssertionError(
                    f"{text}: {issued[-1].cycles} cycles, the contract says {cycles}"
                )
        if self.dut.ports["busy"].bits:
            raise AssertionError("an engine without work must not be busy")
        return issued

    def contract(self, word: bytes) -> int:
        """Return the cycles of a command alone."""
        command = by_opcode(word[0])
        values = command.decode(word)
        latency = 64 if self.behaviour is None else self.behaviour.latency
        if "indices" in values:
            indices = read_indices(self.l1, values["indices"], values["rows"]).tolist()
            return command.cycles(self.slice, values, indices, latency=latency)
        return command.cycles(self.slice, values, latency=latency)

    def after(self, words: Sequence[bytes], *, rows: int | None = None) -> Bytes:
        """Return the memory that commands change, after them, or after a plane's first `rows`."""
        memory = self.l1 if self.is_load else self.hbm.data
        for word in words:
            move = move_of(by_opcode(word[0]).decode(word))
            if rows is not None:
                move = replace(move, rows=rows, planes=1)
            if self.is_load:
                memory = load(move, self.hbm.data, memory, origin=self.hbm.origin)
            else:
                memory = store(move, memory, self.l1, origin=self.hbm.origin)
        return memory

    def compare(self, wanted: Bytes, text: str) -> None:
        """Compare all of the memory that the engine changes."""
        found = self.l1 if self.is_load else self.hbm.data
        name, origin = ("L1", 0) if self.is_load else ("HBM", self.hbm.origin)
        wrong = np.flatnonzero(found != wanted)
        if len(wrong):
            first = int(wrong[0])
            raise AssertionError(
                f"{text}: {len(wrong)} bytes of {name} are wrong, the first at "
                f"{origin + first:#x}: {found[first]:#04x}, not {wanted[first]:#04x}"
            )

    def describe(self, word: bytes) -> str:
        """Return a command as text, for messages."""
        command = by_opcode(word[0])
        values = command.decode(word)
        fields = (f"{item.name}={values[item.name]:#x}" for item in command.own_fields)
        return f"{command.mnemonic} {' '.join(fields)}"

    def expect_fault(
        self, kind: Fault, *, field: int = 0, address: int = 0, response: int = 0, number: int = 0
    ) -> None:
        """Compare the engine's fault, of the command of that number."""
        wanted = {
            "kind": int(kind),
            "field": field,
            "address": address % (1 << HBM_ADDRESS_WIDTH),
            "response": response,
            "number": number,
        }
        if self.fault != wanted:
            raise AssertionError(f"the fault must be {wanted}; got {self.fault}")
