"""The scalar engine between L1, queues and semaphores, cycle by cycle beside the interpreter."""

from __future__ import annotations

from collections.abc import Generator
from random import Random
from typing import Any, cast

import cocotb
import numpy as np

from poblano.commands import SCALAR_RUN
from poblano.config import Configuration, SliceConfiguration, load
from poblano.faults import Fault
from poblano.scalar.timing import Step, run_cycles
from poblano_sw.assembler import encode
from poblano_sw.scalar import (
    Event,
    Issue,
    Read,
    ScalarFaultError,
    ScalarProgram,
    ScalarRun,
    Signal,
    Store,
    Wait,
    assemble_scalar,
)
from poblano_verif.axi_rules import Hold
from poblano_verif.dma_commands import CommandPort
from poblano_verif.dma_l1 import L1Ports
from poblano_verif.dut import Dut

__all__ = ["ScalarBench"]

_QUIET = 10
"""Cycles after the last run, or after a fault, in which nothing may happen."""


class _Follower:
    """The interpreter at the engine's pace: what must happen next, and from which cycle on."""

    def __init__(self, run: ScalarRun, accepted: int) -> None:
        self._events: Generator[Event, int, int] = run.events(accepted)
        self.event: Event | None = None
        self.done: int | None = None
        self.fault: ScalarFaultError | None = None
        self._advance(None)

    def happened(self, cycle: int) -> None:
        """The event happened in this cycle."""
        self._advance(cycle)

    def _advance(self, cycle: int | None) -> None:
        self.event = None
        try:
            self.event = next(self._events) if cycle is None else self._events.send(cycle)
        except StopIteration as end:
            self.done = end.value
        except ScalarFaultError as fault:
            self.fault = fault


class ScalarBench:
    """Runs programs on the engine, and holds every cycle of its ports to the interpreter.

    Whatever the engine offers (reads, writes, words, waits, signals) must be what the interpreter
    does next, from the very cycle that the published timing gives, and hold still until it is
    accepted. The interpreter is told when it was, so this is exact with and without waits.

    Parameters
    ----------
    handle:
        The cocotb handle of the engine.
    pause:
        Probability that L1, a queue or a semaphore makes the engine wait in a cycle.

    Attributes
    ----------
    l1, golden:
        L1 as the engine sees it, and as the interpreter does.
    granting:
        Whether waits for semaphores are ever granted.
    cycles:
        Of every complete run, from issue to done.
    """

    def __init__(self, handle: Any, pause: float = 0.0) -> None:
        self.dut = Dut(handle)
        self.random = Random(cocotb.RANDOM_SEED)
        modules = cast("list[dict[str, Any]]", self.dut.manifest["modules"])
        parameters = modules[-1]["parameters"]
        self.slice = SliceConfiguration.model_validate(parameters["configuration"])
        self.configuration: Configuration = load("tiny", []).model_copy(
            update={"slice": self.slice}
        )
        self.queues = int(parameters["queues"])
        self.line = self.slice.l1.line
        self.l1 = np.frombuffer(self.random.randbytes(self.slice.l1.size), np.uint8).copy()
        self.golden = self.l1.copy()
        self.pause = pause
        self.granting = True
        self._scratchpad = L1Ports(self.dut, self.l1, self.line, Random(self.random.random()))
        self._commands = CommandPort(self.dut)
        self._issues = {f"issue_{q}": self.dut.streams[f"issue_{q}"] for q in range(self.queues)}
        self._restart()

    def _restart(self) -> None:
        self._scratchpad.pause = self.pause
        self._scratchpad.restart()
        self._commands.restart()
        self._holds = {name: Hold(name) for name in self._issues}
        self._follower: _Follower | None = None
        self._steps: list[Step] = []
        self._accepted = 0
        self.cycles: list[int] = []

    async def start(self, patience: int = 0) -> None:
        """Start the clock, reset and serve."""
        self.dut.rest()
        self.dut.clock.start()
        await self.reset(patience=patience)
        cocotb.start_soon(self._run())

    async def reset(self, patience: int = 0) -> None:
        """Reset the engine, whatever it is doing."""
        self.dut.ports["command__valid"].drive(0)
        self.dut.ports["patience"].drive(patience)
        await self.dut.clock.reset()
        self._restart()
        self.golden[:] = self.l1

    def place(self, text: str, origin: int | None = None) -> tuple[ScalarProgram, int]:
        """Assemble a program and put it into L1, by default somewhere; return where."""
        program = assemble_scalar(self.configuration, text)
        room = self.slice.l1.size - len(program.code)
        if origin is None:
            origin = 64 * self.random.randint(0, room // 64)
        self.write(origin, program.code)
        return program, origin

    def write(self, address: int, data: bytes) -> None:
        """Change L1 from outside."""
        for memory in (self.l1, self.golden):
            memory[address : address + len(data)] = np.frombuffer(data, np.uint8)

    def send(self, *words: bytes) -> None:
        """Queue commands, legal or not."""
        self._commands.send(*words)

    async def check(self, text: str, origin: int | None = None, **fields: int) -> None:
        """Run a program to its end, whatever it does."""
        _, origin = self.place(text, origin)
        self.send(encode(self.slice, "scalar.run", pc=origin, **fields))
        await self.finish()

    async def finish(self, limit: int = 200_000) -> None:
        """Wait for the end of all runs and compare L1.

        Raises
        ------
        AssertionError
            If the engine has a fault, does not end within `limit` cycles, or L1 is wrong.
        """
        for _ in range(limit):
            await self.dut.clock.edge()
            if not self._commands.pending or self.fault["kind"]:
                break
        else:
            raise AssertionError(f"runs must end within {limit} cycles")
        await self.dut.clock.edges(_QUIET)
        if self.fault["kind"]:
            raise AssertionError(f"fault {self.fault}")
        self._compare()

    async def expect_fault(
        self, kind: Fault, *, address: int = 0, field: int = 0, number: int = 0
    ) -> None:
        """Wait for a fault and compare it, with the interpreter's too if that ran."""
        for _ in range(20_000):
            await self.dut.clock.edge()
            if self.fault["kind"]:
                break
        await self.dut.clock.edges(_QUIET)
        wanted = {"kind": int(kind), "field": field, "address": address, "response": 0}
        wanted["number"] = number
        assert self.fault == wanted, f"the fault must be {wanted}; got {self.fault}"
        follower = self._follower
        if follower is not None:
            fault = follower.fault
            assert fault is not None, f"the interpreter goes on with {follower.event}"
            assert (fault.kind, fault.address, fault.field) == (kind, address, field)
        assert self.dut.ports["busy"].bits
        self._compare()

    def stopped(self) -> None:
        """Take the run for one that the engine has given up; the interpreter knows no patience."""
        self._follower = None

    @property
    def fault(self) -> dict[str, int]:
        """The engine's fault."""
        return self.dut.ports["fault"].value

    @property
    def happening(self) -> Event | None:
        """What the run does next."""
        return self._follower.event if self._follower else None

    def _compare(self) -> None:
        wrong = np.flatnonzero(self.l1 != self.golden)
        assert not len(wrong), f"{len(wrong)} bytes of L1 are wrong, the first at {wrong[0]:#x}"

    async def _run(self) -> None:
        ports = self.dut.ports
        while True:
            await self.dut.clock.edge()
            if ports["rst"].bits:
                continue
            cycle = self.dut.clock.cycle - 1
            self._follow(cycle)
            for name, stream in self._issues.items():
                valid, ready = stream.handshake()
                payload = stream.payload.bits if valid else 0
                self._holds[name].step(cycle, valid, ready, payload)
                ports[f"{name}__ready"].drive(int(self.random.random() >= self.pause))
            ports["granted"].drive(int(self.granting and self.random.random() >= self.pause))
            accepts = ports["command__valid"].bits and ports["command__ready"].bits
            word = ports["command__payload"].bits.to_bytes(64, "little") if accepts else b""
            self._scratchpad.edge(cycle)
            self._commands.edge(cycle)
            if accepts:
                self._begin(word, cycle)

    def _begin(self, word: bytes, cycle: int) -> None:
        assert self._follower is None, f"cycle {cycle}: a run begins before the end of another"
        values = SCALAR_RUN.decode(word)
        if word[0] != SCALAR_RUN.opcode or values["pc"] % 4:
            return  # a fault that the interpreter has nothing to do with
        self._steps = []
        self._accepted = cycle
        run = ScalarRun(self.slice, self.queues, self.golden, word, self._steps.append)
        self._follower = _Follower(run, cycle)

    def _follow(self, cycle: int) -> None:
        """Compare what the engine offers in a cycle with what must happen."""
        offered = self._offered()
        follower = self._follower
        expected = follower.event if follower else None
        if expected is None or cycle < expected.cycle:
            assert not offered, f"cycle {cycle}: {offered} before {expected}"
        else:
            assert len(offered) == 1, f"cycle {cycle}: expected {expected}, got {offered}"
            (found, taken), wanted = offered[0], self._wanted(expected)
            assert found == wanted, f"cycle {cycle}: expected {wanted}, got {found}"
            if taken:
                assert follower is not None
                follower.happened(cycle)
        done = self.dut.ports["done"].bits
        wanted_done = follower is not None and follower.done == cycle
        assert done == wanted_done, f"cycle {cycle}: done is {done}; {follower and follower.done}"
        if done:
            cycles = cycle - self._accepted - 1
            contract = run_cycles(self.slice, {}, self._steps)
            assert cycles == contract, f"{cycles} cycles, the contract says {contract}"
            self.cycles.append(cycles)
            self._follower = None

    def _offered(self) -> list[tuple[tuple[Any, ...], int]]:
        """Return what the engine offers, and whether it is taken in this cycle."""
        found: list[tuple[tuple[Any, ...], int]] = []
        ports, streams = self.dut.ports, self.dut.streams
        for name in ("read", "write", *self._issues):
            valid, ready = streams[name].handshake()
            if valid:
                found.append(((name, streams[name].payload.value), ready))
        for name in ("wait", "signal"):
            if ports[f"{name}_valid"].bits:
                request = ports[name].value
                taken = 1 if name == "signal" else ports["granted"].bits
                found.append(((name, request), taken))
        return found

    def _wanted(self, event: Event) -> tuple[Any, ...]:
        """Return what the engine must offer for an event."""
        match event:
            case Read(address=address):
                return ("read", address // self.line)
            case Store(address=address, data=data):
                column = address % self.line
                size = len(data)
                line = data * (self.line // size)
                strobe = ((1 << size) - 1) << column
                index = address // self.line
                fields = {"address": index, "data": int.from_bytes(line, "little")}
                return ("write", {**fields, "strobe": strobe})
            case Issue(queue=queue, word=word):
                return (f"issue_{queue}", int.from_bytes(word, "little"))
            case Wait(semaphore=semaphore, count=count):
                return ("wait", {"a": semaphore, "a_count": count, "b": 0, "b_count": 0})
            case Signal(semaphore=semaphore, count=count):
                return ("signal", {"a": semaphore, "a_count": count, "b": 0, "b_count": 0})
            case _:
                raise AssertionError(f"an event of no port: {event}")
