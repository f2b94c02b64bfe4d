"""The vector engine with a model of L1, and what its commands must do there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from random import Random
from typing import Any, TypeVar, cast

import cocotb
import numpy as np
from numpy.typing import NDArray

from poblano.commands import CHAIN, PASS, Command, by_opcode
from poblano.config import SliceConfiguration
from poblano.faults import Fault
from poblano.vector import timing
from poblano_golden.moves import read_indices
from poblano_sw.simulator.vector import VectorEngine
from poblano_verif.dma_commands import CommandPort, Issued
from poblano_verif.dma_l1 import L1Ports
from poblano_verif.dut import Dut
from poblano_verif.vector_workload import Room

__all__ = ["VectorBench"]

Bytes = NDArray[np.uint8]
T = TypeVar("T")

_RESET_CHAIN: Mapping[str, int] = CHAIN.complete({})
"""The chain after a reset."""

_QUIET = 40
"""Cycles after the last command in which nothing may happen."""


class VectorBench:
    """A vector engine under test.

    Parameters
    ----------
    handle:
        The cocotb handle of the engine.

    Attributes
    ----------
    l1:
        L1 as it is.
    commands:
        What was sent since the reset.
    chain:
        The chain that was set last.
    """

    def __init__(self, handle: Any) -> None:
        self.dut = Dut(handle)
        self.random = Random(cocotb.RANDOM_SEED)
        modules = cast("list[dict[str, Any]]", self.dut.manifest["modules"])
        self.slice = SliceConfiguration.model_validate(modules[-1]["parameters"]["configuration"])
        self.lanes, self.line = self.slice.vector.lanes, self.slice.l1.line
        data = self.random.randbytes(self.slice.l1.size)
        self.l1: Bytes = np.frombuffer(data, np.uint8).copy()
        self._ports = L1Ports(self.dut, self.l1, self.line, Random(self.random.getrandbits(64)))
        self.commands = CommandPort(self.dut)
        self.chain: Mapping[str, int] = _RESET_CHAIN

    async def start(self) -> None:
        """Start the clock, reset and serve."""
        self.dut.rest()
        self.dut.clock.start()
        await self.reset()
        cocotb.start_soon(self._run())

    async def reset(self) -> None:
        """Reset the engine, whatever it is doing."""
        self.dut.ports["command__valid"].handle.value = 0
        await self.dut.clock.reset()
        self.commands.restart()
        self._ports.restart()
        self.chain = _RESET_CHAIN

    async def _run(self) -> None:
        resets = self.dut.ports["rst"]
        while True:
            await self.dut.clock.edge()
            if not resets.bits:
                cycle = self.dut.clock.cycle - 1
                self.commands.edge(cycle)
                self._ports.edge(cycle)

    @property
    def pause(self) -> float:
        """Probability that L1 makes a request wait in a cycle."""
        return self._ports.pause

    @pause.setter
    def pause(self, pause: float) -> None:
        self._ports.pause = pause

    @property
    def fault(self) -> dict[str, int]:
        """The engine's fault."""
        return cast("dict[str, int]", self.dut.ports["fault"].value)

    def room(self, aligned: float = 0.5) -> Room:
        """Return places in L1 for a command's arrays."""
        return Room(self.l1, self.line, self.random, aligned)

    def share(self, cases: Iterable[T]) -> list[T]:
        """Return the part of the cases that the environment asks for, at least one."""
        everything = list(cases)
        part = float(os.environ.get("POBLANO_BENCH_SHARE", "1"))
        return self.random.sample(everything, max(1, round(part * len(everything))))

    async def set_chain(self, values: Mapping[str, int]) -> None:
        """Set the chain of the passes that follow."""
        await self.check(CHAIN, values)
        self.chain = values

    def contract(self, command: Command, values: Mapping[str, int]) -> int:
        """Return the cycles of a command."""
        if command is PASS:
            indices = None
            if self.chain["indexed"]:
                indices = read_indices(self.l1, values["index"], values["rows"]).tolist()
            return timing.pass_cycles(self.slice, values, self.chain, indices)
        return command.cycles(self.slice, values)

    def after(self, command: Command, values: Mapping[str, int]) -> Bytes:
        """Return L1 after a command, as the simulator's engine leaves it."""
        model, after = VectorEngine(self.slice), self.l1.copy()
        model.execute(CHAIN, self.chain, after)
        model.execute(command, values, after)
        return after

    async def check(self, command: Command, values: Mapping[str, int]) -> Issued:
        """Run a command; compare all of L1, and its cycles if L1 made nothing wait."""
        command.check(self.slice, values)
        wanted, cycles = self.after(command, values), self.contract(command, values)
        issued = self.commands.send(command.encode(values))[0]
        await self.finish()
        text = self.describe(command.encode(values))
        if self.fault["kind"]:
            raise AssertionError(f"{text}: fault {self.fault}")
        self.compare(wanted, text)
        if not self.pause and issued.cycles != cycles:
            raise AssertionError(f"{text}: {issued.cycles} cycles, the contract says {cycles}")
        return issued

    async def finish(self, limit: int = 200_000) -> None:
        """Wait until all commands are done or the engine has a fault and rests.

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
        if self.dut.ports["fault"].bits:
            await self.dut.clock.edges(_QUIET)
        if self.dut.ports["busy"].bits:
            raise AssertionError("an engine without work must not be busy")

    def compare(self, wanted: Bytes, text: str) -> None:
        """Compare all of L1."""
        wrong = np.flatnonzero(self.l1 != wanted)
        if len(wrong):
            first = int(wrong[0])
            raise AssertionError(
                f"{text}, chain {dict(self.chain)}: {len(wrong)} bytes of L1 are wrong, the first "
                f"at {first:#x}: {self.l1[first]:#04x}, not {wanted[first]:#04x}"
            )

    def expect_fault(self, kind: Fault, *, field: int = 0, number: int = 0) -> None:
        """Compare the engine's fault but for its address, of the command of that number."""
        found = {name: self.fault[name] for name in ("kind", "field", "number", "response")}
        wanted = {"kind": int(kind), "field": field, "number": number, "response": 0}
        if found != wanted:
            raise AssertionError(f"the fault must be {wanted}; got {found}")

    def describe(self, word: bytes) -> str:
        """Return a command as text, for messages."""
        command = by_opcode(word[0])
        values = command.decode(word)
        fields = (f"{item.name}={values[item.name]:#x}" for item in command.own_fields)
        return f"{command.mnemonic} {' '.join(fields)}"
