"""Programs of the scalar engine from bytes back to text."""

from __future__ import annotations

from poblano.config import Configuration
from poblano.host.registers import queue_names
from poblano.scalar.instructions import (
    INSTRUCTION_BYTES,
    Form,
    Instruction,
    Operand,
    find,
    unpack_field,
)
from poblano_golden.errors import PoblanoError

__all__ = ["disassemble_scalar"]


def disassemble_scalar(configuration: Configuration, code: bytes) -> str:
    """Return the text of a program, one word a line; `assemble_scalar` gives the bytes back.

    What is no instruction is written as `.data32`; command words and data that look like
    instructions are written as such.

    Raises
    ------
    PoblanoError
        If the code is not a multiple of four bytes.
    """
    if len(code) % INSTRUCTION_BYTES:
        raise PoblanoError(f"code must be a multiple of {INSTRUCTION_BYTES} bytes; got {len(code)}")
    words = {
        place: int.from_bytes(code[place : place + INSTRUCTION_BYTES], "little")
        for place in range(0, len(code), INSTRUCTION_BYTES)
    }
    found = {place: find(word) for place, word in words.items()}
    named = {
        target
        for place, instruction in found.items()
        if instruction is not None
        for operand in instruction.operands
        if (target := _target(operand, place, words[place])) in words
    }
    lines: list[str] = []
    for place, word in words.items():
        if place in named:
            lines.append(f"{_name(place)}:\n")
        instruction = found[place]
        if instruction is None:
            lines.append(f"    .data32 {word:#010x}\n")
        else:
            lines.append(f"    {_text(configuration, instruction, place, word, named)}\n")
    return "".join(lines)


def _name(place: int) -> str:
    return f"at_{place:x}"


def _target(operand: Operand, place: int, word: int) -> int | None:
    """Return the offset that a relative operand means, or None for any other operand."""
    if operand.form is Form.TARGET:
        return place + INSTRUCTION_BYTES * operand.take(word)
    return place + operand.take(word) if operand.form is Form.PLACE else None


def _text(
    configuration: Configuration, instruction: Instruction, place: int, word: int, named: set[int]
) -> str:
    queues = queue_names(configuration)
    parts: list[str] = []
    for operand in instruction.operands:
        number = operand.take(word)
        target = _target(operand, place, word)
        if target in named:
            parts.append(_name(target))
        elif operand.form is Form.REGISTER:
            parts.append(f"r{number}")
        elif operand.form is Form.FIELD:
            parts.append("{}:{}".format(*unpack_field(number)))
        elif operand.form is Form.QUEUE and number < len(queues):
            parts.append(queues[number])
        else:
            parts.append(str(number))
    return f"{instruction.mnemonic} {', '.join(parts)}".rstrip()
