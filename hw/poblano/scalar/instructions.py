"""The instruction table of the scalar engine: every instruction, described once.

The hardware decoder, the assembler, the disassembler, the interpreter and `docs/scalar.md` come
from it. Imports no Amaranth.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from poblano_golden.errors import PoblanoError

__all__ = [
    "BLOCK_BYTES",
    "FIELD_OFFSET_WIDTH",
    "INSTRUCTIONS",
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
    "find",
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

_WORD_BITS = 1 << FIELD_OFFSET_WIDTH


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
    if not (1 <= width <= REGISTER_WIDTH and 0 <= offset <= _WORD_BITS - width):
        raise InstructionError(
            f"a field must have 1 to {REGISTER_WIDTH} bits inside a word of {_WORD_BITS}; "
            f"got {width} bits at {offset}"
        )
    return (width - 1) << FIELD_OFFSET_WIDTH | offset


def unpack_field(number: int) -> tuple[int, int]:
    """Return offset and width of a field; together they may exceed the word."""
    return number % _WORD_BITS, (number >> FIELD_OFFSET_WIDTH) + 1


# Two sources are always read, those at `RA` and at `RB` or `RX`.
RD = Operand("rd", Form.REGISTER, 8, 4)
RX = Operand("rb", Form.REGISTER, 8, 4)
RA = Operand("ra", Form.REGISTER, 12, 4)
RB = Operand("rb", Form.REGISTER, 16, 4)
IMM16 = Operand("imm", Form.NUMBER, 16, 16, signed=True)
SET20 = Operand("imm", Form.NUMBER, 12, 20, signed=True)
APPEND20 = Operand("imm", Form.NUMBER, 12, 20)
PLACE20 = Operand("place", Form.PLACE, 12, 20, signed=True)
TARGET16 = Operand("target", Form.TARGET, 16, 16, signed=True)
TARGET20 = Operand("target", Form.TARGET, 12, 20, signed=True)
TARGET24 = Operand("target", Form.TARGET, 8, 24, signed=True)
FIELD = Operand("field", Form.FIELD, 16, 15)
QUEUE = Operand("queue", Form.QUEUE, 8, 8)
SEMAPHORE = Operand("semaphore", Form.NUMBER, 8, 6)
COUNT = Operand("count", Form.NUMBER, 16, 10)

_SYMBOLS = {
    Alu.ADD: "ra + {}",
    Alu.SUB: "ra - {}",
    Alu.AND: "ra & {}",
    Alu.OR: "ra | {}",
    Alu.XOR: "ra ^ {}",
    Alu.SHL: "ra << ({} mod 64)",
    Alu.SHR: "ra >> ({} mod 64), zeros enter",
    Alu.SLT: "1 if ra < {} as signed numbers, else 0",
    Alu.SLTU: "1 if ra < {} as unsigned numbers, else 0",
}
_CONDITIONS = {
    Condition.EQ: "ra = rb",
    Condition.NE: "ra and rb differ",
    Condition.LT: "ra < rb, signed",
    Condition.GE: "ra >= rb, signed",
    Condition.LTU: "ra < rb, unsigned",
    Condition.GEU: "ra >= rb, unsigned",
}


def _alu() -> list[Instruction]:
    found: list[Instruction] = []
    for function, text in _SYMBOLS.items():
        name = function.name.lower()
        found += [
            Instruction(
                name + suffix,
                base + function,
                Kind.ALU,
                (RD, RA, last),
                f"rd = {text.format(last.name)}",
                function,
            )
            for suffix, base, last in (("", 0x10, RB), ("i", 0x20, IMM16))
        ]
    product = "rd = lowest 64 bits of ra * "
    return [
        *found,
        Instruction("mul", 0x1F, Kind.MULTIPLY, (RD, RA, RB), f"{product}rb"),
        Instruction("muli", 0x2F, Kind.MULTIPLY, (RD, RA, IMM16), f"{product}imm"),
    ]


def _memory() -> list[Instruction]:
    found: list[Instruction] = []
    for log, size in enumerate(SIZES):
        bits = 8 * size
        found += [
            Instruction(
                f"load{bits}",
                0x40 + log,
                Kind.LOAD,
                (RD, RA, IMM16),
                f"rd = the {bits} bits of L1 at ra + imm, zeros above",
                log,
            ),
            Instruction(
                f"store{bits}",
                0x48 + log,
                Kind.STORE,
                (RX, RA, IMM16),
                f"the {bits} bits of L1 at ra + imm = lowest bits of rb",
                log,
            ),
        ]
    return found


def _branches() -> list[Instruction]:
    return [
        Instruction(
            f"b{condition.name.lower()}",
            0x50 + condition,
            Kind.BRANCH,
            (RA, RX, TARGET16),
            f"goes to target if {text}",
            condition,
        )
        for condition, text in _CONDITIONS.items()
    ]


INSTRUCTIONS: tuple[Instruction, ...] = (
    *_alu(),
    Instruction("set", 0x30, Kind.SET, (RD, SET20), "rd = imm"),
    Instruction("append", 0x31, Kind.APPEND, (RD, APPEND20), "rd = rd << 20 | imm"),
    Instruction("address", 0x32, Kind.ADDRESS, (RD, PLACE20), "rd = the address of place"),
    *_memory(),
    *_branches(),
    Instruction("jump", 0x58, Kind.JUMP, (TARGET24,), "goes to target"),
    Instruction(
        "call",
        0x59,
        Kind.CALL,
        (RD, TARGET20),
        "rd = the address of the next instruction; goes to target",
    ),
    Instruction("return", 0x5A, Kind.RETURN, (RA,), "goes to the address ra"),
    Instruction(
        "word",
        0x60,
        Kind.WORD,
        (RA, IMM16),
        "command buffer = the 64 bytes of L1 at ra + imm",
    ),
    Instruction(
        "field", 0x61, Kind.FIELD, (RA, FIELD), "field of the command buffer = lowest bits of ra"
    ),
    Instruction(
        "issue",
        0x62,
        Kind.ISSUE,
        (QUEUE,),
        "puts the command buffer into the queue; waits while it has no room",
    ),
    Instruction(
        "wait",
        0x63,
        Kind.WAIT,
        (SEMAPHORE, COUNT),
        "waits until the semaphore holds count and takes it",
    ),
    Instruction("signal", 0x64, Kind.SIGNAL, (SEMAPHORE, COUNT), "adds count to the semaphore"),
    Instruction("halt", 0x65, Kind.HALT, (), "ends the run"),
)
"""Every instruction."""

_BY_OPCODE = {instruction.opcode: instruction for instruction in INSTRUCTIONS}


def find(word: int) -> Instruction | None:
    """Return what a word is, or None if it is no instruction.

    It is none if its opcode is unknown, a bit that no operand takes is 1, or a field of a command
    word ends outside it.
    """
    instruction = _BY_OPCODE.get(word & 0xFF)
    if instruction is None or word & ~instruction.mask:
        return None
    if instruction.kind is Kind.FIELD and sum(unpack_field(FIELD.take(word))) > _WORD_BITS:
        return None
    return instruction
