"""The instruction table of the scalar engine: every instruction, described once.

The hardware decoder, the assembler, the disassembler, the interpreter and `docs/scalar.md` come
from it. Imports no Amaranth.
"""

from __future__ import annotations

from poblano.scalar.instruction_model import (
    BLOCK_BYTES,
    COMMAND_BITS,
    FIELD_OFFSET_WIDTH,
    INSTRUCTION_BYTES,
    NUM_ARGUMENTS,
    NUM_REGISTERS,
    REGISTER_WIDTH,
    SIZES,
    Alu,
    Condition,
    Form,
    Instruction,
    InstructionError,
    Kind,
    Operand,
    pack_field,
    unpack_field,
)

__all__ = [
    "APPEND20",
    "BLOCK_BYTES",
    "COUNT",
    "FIELD",
    "FIELD_OFFSET_WIDTH",
    "IMM16",
    "INSTRUCTIONS",
    "INSTRUCTION_BYTES",
    "NUM_ARGUMENTS",
    "NUM_REGISTERS",
    "PLACE20",
    "QUEUE",
    "RA",
    "RB",
    "RD",
    "REGISTER_WIDTH",
    "RX",
    "SEMAPHORE",
    "SET20",
    "SIZES",
    "TARGET16",
    "TARGET20",
    "TARGET24",
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
    if instruction.kind is Kind.FIELD and sum(unpack_field(FIELD.take(word))) > COMMAND_BITS:
        return None
    return instruction
