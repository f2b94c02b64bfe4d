"""Executes programs of the scalar engine, one instruction at a time, bit and cycle exact."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass

import numpy as np

from poblano.commands import HBM_ADDRESS_WIDTH, SCALAR_RUN
from poblano.config import SliceConfiguration
from poblano.faults import Fault
from poblano.scalar.instructions import (
    BLOCK_BYTES,
    FIELD,
    IMM16,
    INSTRUCTION_BYTES,
    NUM_ARGUMENTS,
    NUM_REGISTERS,
    REGISTER_WIDTH,
    SIZES,
    Alu,
    Condition,
    Form,
    Instruction,
    Kind,
    Operand,
    find,
    unpack_field,
)
from poblano.scalar.timing import BEGIN_CYCLES, BLOCK_COST, TRANSFER_CYCLES, Step, cost
from poblano_golden.arrays import U8
from poblano_golden.errors import PoblanoError

__all__ = ["Event", "Issue", "Read", "ScalarFaultError", "ScalarRun", "Signal", "Store", "Wait"]

_MASK = (1 << REGISTER_WIDTH) - 1


@dataclass(frozen=True)
class Event:
    """Something that meets the rest of the slice; `cycle` is the first in which it can happen."""

    cycle: int


@dataclass(frozen=True)
class Read(Event):
    """L1 is read: a block of code, a command word, or what an instruction loads."""

    address: int
    length: int


@dataclass(frozen=True)
class Store(Event):
    """L1 is written; the run writes it when it is resumed."""

    address: int
    data: bytes


@dataclass(frozen=True)
class Issue(Event):
    """A command word goes into the queue of that number."""

    queue: int
    word: bytes


@dataclass(frozen=True)
class Wait(Event):
    """`count` is taken from a semaphore as soon as it holds as much."""

    semaphore: int
    count: int


@dataclass(frozen=True)
class Signal(Event):
    """`count` is added to a semaphore; never waits."""

    semaphore: int
    count: int


class ScalarFaultError(PoblanoError):
    """The engine stops.

    Attributes
    ----------
    kind, field, address:
        As in the engine's fault; a fault of a semaphore has the instruction's address.
    """

    def __init__(self, kind: Fault, address: int, field: int = 0) -> None:
        self.kind = kind
        self.field = field
        self.address = address % (1 << HBM_ADDRESS_WIDTH)
        super().__init__(f"the scalar engine stops: {kind.name} at {self.address:#x}")


def _signed(number: int) -> int:
    return number - (1 << REGISTER_WIDTH) if number >> REGISTER_WIDTH - 1 else number


_ALU: dict[int, Callable[[int, int], int]] = {
    Alu.ADD: lambda a, b: a + b,
    Alu.SUB: lambda a, b: a - b,
    Alu.AND: lambda a, b: a & b,
    Alu.OR: lambda a, b: a | b,
    Alu.XOR: lambda a, b: a ^ b,
    Alu.SHL: lambda a, b: a << b % REGISTER_WIDTH,
    Alu.SHR: lambda a, b: a >> b % REGISTER_WIDTH,
    Alu.SLT: lambda a, b: int(_signed(a) < _signed(b)),
    Alu.SLTU: lambda a, b: int(a < b),
}
_CONDITIONS: dict[int, Callable[[int, int], bool]] = {
    Condition.EQ: lambda a, b: a == b,
    Condition.NE: lambda a, b: a != b,
    Condition.LT: lambda a, b: _signed(a) < _signed(b),
    Condition.GE: lambda a, b: _signed(a) >= _signed(b),
    Condition.LTU: lambda a, b: a < b,
    Condition.GEU: lambda a, b: a >= b,
}


class ScalarRun:
    """One `scalar.run`, from its issue to `halt`.

    Parameters
    ----------
    configuration:
        The slice.
    queues:
        Queues that `issue` reaches.
    l1:
        uint8 `[l1.size]`; read and written in place.
    word:
        The command, legal for the configuration.
    note:
        Called with every executed instruction, its `waits` included.

    Attributes
    ----------
    registers:
        Their values, 0 to 2**64 - 1.
    pc:
        The address of the instruction that is executed next.
    buffer:
        The command buffer.
    executed:
        Instructions executed.
    """

    def __init__(
        self,
        configuration: SliceConfiguration,
        queues: int,
        l1: U8,
        word: bytes,
        note: Callable[[Step], None] | None = None,
    ) -> None:
        values = SCALAR_RUN.decode(word)
        self._semaphores = configuration.host.semaphores
        self._queues = queues
        self._l1 = l1
        self._note = note
        self._budget = values["budget"]
        self.registers = [0] * NUM_REGISTERS
        for number in range(1, NUM_ARGUMENTS + 1):
            self.registers[number] = values[f"r{number}"]
        self.pc = values["pc"]
        self.buffer = word
        self.executed = 0
        self._block = b""
        self._block_address = -1
        self._operands: dict[str, int] = {}

    def events(self, accepted: int) -> Generator[Event, int, int]:
        """Run; yield every event and take the cycle in which it happened.

        Parameters
        ----------
        accepted:
            The cycle in which the engine accepts the command.

        Returns
        -------
        int
            The cycle in which the engine reports the command done; from it on it accepts another.

        Raises
        ------
        ScalarFaultError
            If the engine would stop.
        """
        now = accepted + 1 + BEGIN_CYCLES
        transfers = False
        while True:
            self._check_place(self.pc, INSTRUCTION_BYTES)
            block, offset = self.pc // BLOCK_BYTES * BLOCK_BYTES, self.pc % BLOCK_BYTES
            waits = 0
            if block != self._block_address:
                now += BLOCK_COST.before
                happened = yield Read(now, block, BLOCK_BYTES)
                waits = happened - now
                self._block_address, self._block = block, self._read(block, BLOCK_BYTES)
                now = happened + BLOCK_COST.after
            elif transfers:
                now += TRANSFER_CYCLES
            if self._budget and self.executed == self._budget:
                raise ScalarFaultError(Fault.LOOP, self.pc)
            word = int.from_bytes(self._block[offset : offset + INSTRUCTION_BYTES], "little")
            instruction = find(word)
            if instruction is None:
                raise ScalarFaultError(Fault.INSTRUCTION, self.pc)
            cycles = cost(instruction.kind)
            now += cycles.before
            pc = self.pc
            self._take_operands(instruction, word)
            happened = yield from self._reach(instruction, now)
            transfers = self._step(instruction)
            self.executed += 1
            if self._note is not None:
                self._note(Step(pc, instruction, transfers, waits + happened - now))
            now = happened + cycles.after
            if instruction.kind is Kind.HALT:
                return now

    def finish(self, accepted: int = -1) -> tuple[int, list[Event]]:
        """Run without a wait; return cycles by the timing contract, and the events."""
        events: list[Event] = []
        steps = self.events(accepted)
        try:
            event = next(steps)
            while True:
                events.append(event)
                event = steps.send(event.cycle)
        except StopIteration as end:
            return end.value - accepted - 1, events

    def _read(self, address: int, length: int) -> bytes:
        return self._l1[address : address + length].tobytes()

    def _check_place(self, address: int, length: int) -> None:
        if address % length:
            raise ScalarFaultError(Fault.ALIGNMENT, address)
        if address >= len(self._l1):
            raise ScalarFaultError(Fault.ADDRESS, address)

    def _take_operands(self, instruction: Instruction, word: int) -> None:
        """Note every operand by its name; of a source register also its value, as `a` or `b`."""
        self._operands = {"imm": 0}
        for operand in instruction.operands:
            number = operand.take(word)
            self._operands[operand.name] = number
            if operand.form is Form.REGISTER and operand.name != "rd":
                self._operands[operand.name[1:]] = self.registers[number]

    def _place(self, length: int) -> int:
        """Return the checked address of an access to L1."""
        address = (self._operands["a"] + self._operands["imm"]) & _MASK
        self._check_place(address, length)
        return address

    def _reach(self, instruction: Instruction, now: int) -> Generator[Event, int, int]:
        """Let the instruction's event happen, if it has one, and return when it did."""
        values = self._operands
        match instruction.kind:
            case Kind.LOAD:
                size = SIZES[instruction.function]
                address = self._place(size)
                happened = yield Read(now, address, size)
                self._set(int.from_bytes(self._read(address, size), "little"))
            case Kind.STORE:
                size = SIZES[instruction.function]
                address = self._place(size)
                data = (values["b"] & (1 << 8 * size) - 1).to_bytes(size, "little")
                happened = yield Store(now, address, data)
                self._l1[address : address + size] = np.frombuffer(data, np.uint8)
            case Kind.WORD:
                address = self._place(len(self.buffer))
                happened = yield Read(now, address, len(self.buffer))
                self.buffer = self._read(address, len(self.buffer))
            case Kind.ISSUE:
                if values["queue"] >= self._queues:
                    raise ScalarFaultError(Fault.INSTRUCTION, self.pc)
                happened = yield Issue(now, values["queue"], self.buffer)
            case Kind.WAIT | Kind.SIGNAL:
                semaphore, count = values["semaphore"], values["count"]
                if count and semaphore >= self._semaphores:
                    raise ScalarFaultError(Fault.SEMAPHORE, self.pc, semaphore)
                kind = Wait if instruction.kind is Kind.WAIT else Signal
                happened = yield kind(now, semaphore, count)
            case _:
                happened = now
        return happened

    def _set(self, number: int) -> None:
        """Write the destination; r0 stays 0."""
        if self._operands["rd"]:
            self.registers[self._operands["rd"]] = number & _MASK

    def _step(self, instruction: Instruction) -> bool:
        """Do what needs nothing of the slice; go on; return whether control is transferred."""
        values = self._operands
        following = (self.pc + INSTRUCTION_BYTES) & _MASK
        target = (self.pc + INSTRUCTION_BYTES * values.get("target", 0)) & _MASK
        second = values["imm"] if instruction.has(IMM16) else values.get("b", 0)
        transfers = False
        match instruction.kind:
            case Kind.ALU:
                self._set(_ALU[instruction.function](values["a"], second & _MASK))
            case Kind.MULTIPLY:
                self._set(values["a"] * second)
            case Kind.SET:
                self._set(values["imm"])
            case Kind.APPEND:
                self._set(self.registers[values["rd"]] << _width(instruction) | values["imm"])
            case Kind.ADDRESS:
                self._set(self.pc + values["place"])
            case Kind.BRANCH:
                transfers = _CONDITIONS[instruction.function](values["a"], values["b"])
            case Kind.JUMP:
                transfers = True
            case Kind.CALL:
                transfers = True
                self._set(following)
            case Kind.RETURN:
                transfers = True
                target = values["a"]
            case Kind.FIELD:
                self._patch(*unpack_field(values[FIELD.name]), values["a"])
            case _:
                pass
        self.pc = target if transfers else following
        return transfers

    def _patch(self, offset: int, width: int, number: int) -> None:
        mask = (1 << width) - 1
        word = int.from_bytes(self.buffer, "little")
        word = word & ~(mask << offset) | (number & mask) << offset
        self.buffer = word.to_bytes(len(self.buffer), "little")


def _width(instruction: Instruction) -> int:
    """Return the bits of an instruction's last operand."""
    last: Operand = instruction.operands[-1]
    return last.width
