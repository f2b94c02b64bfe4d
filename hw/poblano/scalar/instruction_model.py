"""What an instruction of the scalar engine is: operands in 32 bits; imports no Amaranth."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from poblano_golden.errors import PoblanoError

__all__ = [
    "BLOCK_BYTES",
    "COMMAND_BITS",
    "FIELD_OFFSET_WIDTH",
    "INSTRUCTION_BYTES",
    "NUM_ARGUMENTS",
    "NUM_REGISTERS",
    "REGISTER_WIDTH",
    "SIZES",
    "Alu",
    "Condition",
    "Form",
    "Instruction",
    "InstructionError",
    "Kind",
    "Operand",
    "pack_field",
    "unpack_field",
]

NUM_REGISTERS = 16
"""Registers r0 to r15; r0 is always 0."""

REGISTER_WIDTH = 64
"""Bits of a register."""

NUM_ARGUMENTS = 4
"""Registers r1, r2, ... that a run's command sets; the others begin as 0."""

INSTRUCTION_BYTES = 4
"""Bytes of an instruction, little endian; it lies at a multiple of them."""

BLOCK_BYTES = 64
"""Bytes of code that the engine has at hand, at a multiple of as many."""

SIZES = (1, 2, 4, 8)
"""Bytes of a load or a store; bit widths in the mnemonics."""

FIELD_OFFSET_WIDTH = 9
"""Bits of a bit offset in a command word."""

COMMAND_BITS = 1 << FIELD_OFFSET_WIDTH
"""Bits of a command word."""


class InstructionError(PoblanoError):
    """An instruction breaks a rule of the instruction table."""


class Kind(enum.IntEnum):
    """What an instruction does; `Instruction.function` says more where there are several."""

    ALU = 0
    MULTIPLY = 1
    SET = 2
    APPEND = 3
    ADDRESS = 4
    LOAD = 5
    STORE = 6
    BRANCH = 7
    JUMP = 8
    CALL = 9
    RETURN = 10
    WORD = 11
    FIELD = 12
    ISSUE = 13
    WAIT = 14
    SIGNAL = 15
    HALT = 16


class Alu(enum.IntEnum):
    """Functions of two numbers; comparisons give 1 or 0."""

    ADD = 0
    SUB = 1
    AND = 2
    OR = 3
    XOR = 4
    SHL = 5
    SHR = 6
    SLT = 7
    SLTU = 8


class Condition(enum.IntEnum):
    """When a branch is taken; the lowest bit negates the one before."""

    EQ = 0
    NE = 1
    LT = 2
    GE = 3
    LTU = 4
    GEU = 5


class Form(enum.Enum):
    """What an operand's number stands for."""

    REGISTER = "a register"
    NUMBER = "a number"
    TARGET = "a label, or instructions from this one"
    PLACE = "a label, or bytes from this instruction"
    FIELD = "a field of a command as `engine.command.field`, or `offset:width` in bits"
    QUEUE = "the name of a queue, or its number"


@dataclass(frozen=True)
class Operand:
    """One operand: `width` bits of the instruction from bit `low` on."""

    name: str
    form: Form
    low: int
    width: int
    signed: bool = False

    @property
    def range(self) -> range:
        """The legal numbers."""
        half = 1 << self.width - 1
        return range(-half, half) if self.signed else range(2 * half)

    def take(self, word: int) -> int:
        """Return the operand's number in an instruction."""
        bits = word >> self.low & (1 << self.width) - 1
        return bits - (1 << self.width) if bits not in self.range else bits


@dataclass(frozen=True)
class Instruction:
    """One instruction.

    Parameters
    ----------
    mnemonic, opcode:
        Its name, and the lowest eight bits of its word.
    kind, function:
        What it does; the function is an `Alu`, a `Condition`, or the logarithm of a size.
    operands:
        In the order in which programs write them.
    summary:
        What it does, for the documentation.
    """

    mnemonic: str
    opcode: int
    kind: Kind
    operands: tuple[Operand, ...]
    summary: str
    function: int = 0

    @property
    def mask(self) -> int:
        """The bits that opcode and operands take; all others are 0."""
        return 0xFF | sum(((1 << o.width) - 1) << o.low for o in self.operands)

    def has(self, operand: Operand) -> bool:
        """Whether the instruction has this operand."""
        return operand in self.operands

    def encode(self, numbers: Sequence[int]) -> int:
        """Return the instruction's word.

        Raises
        ------
        InstructionError
            If the operands are not as many as it has, or one is out of range.
        """
        if len(numbers) != len(self.operands):
            raise InstructionError(
                f"{self.mnemonic} takes {len(self.operands)} operands; got {len(numbers)}"
            )
        word = self.opcode
        for operand, number in zip(self.operands, numbers, strict=True):
            legal = operand.range
            if number not in legal:
                raise InstructionError(
                    f"{operand.name} of {self.mnemonic} must be in {legal[0]}..{legal[-1]}; "
                    f"got {number}"
                )
            word |= (number & (1 << operand.width) - 1) << operand.low
        return word

    def decode(self, word: int) -> tuple[int, ...]:
        """Return the operands' numbers."""
        return tuple(operand.take(word) for operand in self.operands)


def pack_field(offset: int, width: int) -> int:
    """Return the number of a field of `width` bits at bit `offset` of a command word.

    Raises
    ------
    InstructionError
        If it does not have 1 to 64 bits inside the word.
    """
    if not (1 <= width <= REGISTER_WIDTH and 0 <= offset <= COMMAND_BITS - width):
        raise InstructionError(
            f"a field must have 1 to {REGISTER_WIDTH} bits inside a word of {COMMAND_BITS}; "
            f"got {width} bits at {offset}"
        )
    return (width - 1) << FIELD_OFFSET_WIDTH | offset


def unpack_field(number: int) -> tuple[int, int]:
    """Return offset and width of a field; together they may exceed the word."""
    return number % COMMAND_BITS, (number >> FIELD_OFFSET_WIDTH) + 1
