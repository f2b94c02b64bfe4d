"""Programs of the scalar engine as text; the instruction table says how each line is written."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from poblano.commands import WORD_BYTES, CommandError, by_mnemonic
from poblano.config import Configuration
from poblano.host.registers import queue_names
from poblano.scalar.instructions import (
    APPEND20,
    BLOCK_BYTES,
    INSTRUCTION_BYTES,
    INSTRUCTIONS,
    NUM_REGISTERS,
    REGISTER_WIDTH,
    SIZES,
    Form,
    Operand,
    pack_field,
)
from poblano_golden.errors import PoblanoError
from poblano_sw.assembler import assemble

__all__ = ["ScalarProgram", "assemble_scalar"]

_BY_MNEMONIC = {instruction.mnemonic: instruction for instruction in INSTRUCTIONS}
_LABEL = re.compile(r"([A-Za-z_]\w*):\s*")
_DATA = {f".data{8 * size}": size for size in SIZES}


@dataclass(frozen=True)
class ScalarProgram:
    """A program that runs wherever it lies in L1, at a multiple of 64.

    Attributes
    ----------
    code:
        Its bytes: instructions, command words and data.
    labels:
        Label to offset in `code`.
    lines:
        Offset of every instruction to the number of its line.
    """

    code: bytes
    labels: dict[str, int]
    lines: dict[int, int]


@dataclass
class _Item:
    """Something that takes `size` bytes at a multiple of `alignment`; a line may have several."""

    number: int
    words: list[str]
    size: int
    alignment: int
    place: int = 0


@dataclass
class _Source:
    configuration: Configuration
    labels: dict[str, int] = field(default_factory=dict[str, int])
    items: list[_Item] = field(default_factory=list["_Item"])


def assemble_scalar(
    configuration: Configuration, text: str, *, source: str = "program"
) -> ScalarProgram:
    """Return the program of a text.

    A line holds labels (`name:`), then an instruction, its operands separated by commas, or one of

    * `let rd, number`: one to four instructions that set a register to any 64-bit number;
    * `.word engine.command field=value ...`: a command word, legal by the command table;
    * `.data8 number, ...`, also 16, 32 and 64: data, little endian, at a multiple of their size;
    * `.align bytes`: goes on at a multiple of 4 to 64 bytes.

    `#` begins a comment. A gap is filled with zeros, which are no instruction.

    Raises
    ------
    PoblanoError
        If a line breaks a rule; the message begins with `source:line`.
    """
    parsed = _Source(configuration)
    for number, line in enumerate(text.splitlines(), start=1):
        with _at(source, number):
            _parse(parsed, number, line.partition("#")[0].strip())
    code = bytearray()
    lines: dict[int, int] = {}
    for item in parsed.items:
        code += bytes(item.place - len(code))
        with _at(source, item.number):
            code += _encode(parsed, item)
        if not item.words[0].startswith("."):
            lines |= dict.fromkeys(range(item.place, len(code), INSTRUCTION_BYTES), item.number)
    if not lines:
        raise PoblanoError(f"{source}: a program must have an instruction; it has none")
    return ScalarProgram(bytes(code), parsed.labels, lines)


@contextmanager
def _at(source: str, number: int) -> Generator[None]:
    """Put `source:line` before the message of an error."""
    try:
        yield
    except PoblanoError as error:
        raise PoblanoError(f"{source}:{number}: {error}") from None


def _parse(parsed: _Source, number: int, line: str) -> None:
    """Note a line's labels, and its item with its place."""
    names: list[str] = []
    while match := _LABEL.match(line):
        names.append(match[1])
        line = line[match.end() :]
    end = parsed.items[-1].place + parsed.items[-1].size if parsed.items else 0
    item = _item(number, line) if line else _Item(number, [], 0, 1)
    item.place = -(-end // item.alignment) * item.alignment
    # labels that ended the text before name this item, wherever its alignment puts it
    for name, place in parsed.labels.items():
        if place == end and line:
            parsed.labels[name] = item.place
    for name in names:
        if name in parsed.labels:
            raise PoblanoError(f"a label must be given once; got {name} again")
        parsed.labels[name] = item.place
    if line:
        parsed.items.append(item)


def _item(number: int, line: str) -> _Item:
    head, _, rest = line.partition(" ")
    rest = rest.strip()
    if head == ".word":
        return _Item(number, [head, rest], WORD_BYTES, WORD_BYTES)
    words = [head, *(part.strip() for part in rest.split(","))] if rest else [head]
    if head in _DATA and len(words) == 1:
        raise PoblanoError(f"{head} must be followed by numbers; got nothing")
    if head in _DATA:
        return _Item(number, words, _DATA[head] * (len(words) - 1), _DATA[head])
    if head == ".align":
        bytes_ = _number("the bytes of .align", words[1] if len(words) == 2 else "")
        if bytes_ < INSTRUCTION_BYTES or bytes_ > BLOCK_BYTES or bytes_ & (bytes_ - 1):
            raise PoblanoError(f".align must be a power of two from 4 to 64; got {bytes_}")
        return _Item(number, words, 0, bytes_)
    if head.startswith("."):
        known = ", ".join((".word", *_DATA, ".align"))
        raise PoblanoError(f"a directive must be one of {known}; got {head}")
    count = len(_constant(words)) if head == "let" else 1
    return _Item(number, words, count * INSTRUCTION_BYTES, INSTRUCTION_BYTES)


def _encode(parsed: _Source, item: _Item) -> bytes:
    head, *operands = item.words
    if head == ".align":
        return b""
    if head == ".word":
        try:
            return assemble(parsed.configuration.slice, operands[0])[0]
        except IndexError:
            raise PoblanoError(".word must be followed by a command; got nothing") from None
        except CommandError as error:
            raise PoblanoError(str(error).partition(": ")[2]) from None
    if head in _DATA:
        return b"".join(_datum(text, _DATA[head]) for text in operands)
    lines = _constant(item.words) if head == "let" else [item.words]
    return b"".join(_instruction(parsed, item.place, *line) for line in lines)


def _datum(text: str, size: int) -> bytes:
    value, limit = _number("data", text), 1 << 8 * size
    if not -limit // 2 <= value < limit:
        raise PoblanoError(f"data must fit {8 * size} bits; got {value}")
    return (value % limit).to_bytes(size, "little")


def _constant(words: list[str]) -> list[list[str]]:
    """Return the instructions of `let`: the highest part signed, then 20 bits each."""
    if len(words) != 3:
        raise PoblanoError(f"let takes a register and a number; got {', '.join(words[1:])}")
    value, part = _number("the number of let", words[2]), APPEND20.width
    if not -(1 << REGISTER_WIDTH - 1) <= value < 1 << REGISTER_WIDTH:
        raise PoblanoError(f"the number of let must fit {REGISTER_WIDTH} bits; got {value}")
    parts = [value & (1 << part) - 1]
    while not -(1 << part - 1) <= value < 1 << part - 1:
        value >>= part
        parts.append(value & (1 << part) - 1)
    parts[-1] = value
    first, *others = (str(number) for number in reversed(parts))
    return [["set", words[1], first], *(["append", words[1], number] for number in others)]


def _instruction(parsed: _Source, place: int, mnemonic: str, *operands: str) -> bytes:
    instruction = _BY_MNEMONIC.get(mnemonic)
    if instruction is None:
        raise PoblanoError(f"an instruction must be one of the table's; got {mnemonic!r}")
    if len(operands) != len(instruction.operands):
        names = ", ".join(operand.name for operand in instruction.operands) or "no operands"
        raise PoblanoError(f"{mnemonic} takes {names}; got {', '.join(operands) or 'nothing'}")
    numbers = [
        _operand(parsed, place, operand, text)
        for operand, text in zip(instruction.operands, operands, strict=True)
    ]
    return instruction.encode(numbers).to_bytes(INSTRUCTION_BYTES, "little")


def _operand(parsed: _Source, place: int, operand: Operand, text: str) -> int:
    match operand.form:
        case Form.REGISTER:
            names = [f"r{number}" for number in range(NUM_REGISTERS)]
            if text not in names:
                raise PoblanoError(f"{operand.name} must be a register r0 to r15; got {text!r}")
            return names.index(text)
        case Form.FIELD:
            return _field(text)
        case Form.QUEUE:
            names = queue_names(parsed.configuration)
            if text in names:
                return names.index(text)
            if not text.isdecimal():
                raise PoblanoError(f"a queue must be one of {', '.join(names)}; got {text!r}")
            return int(text)
        case Form.TARGET | Form.PLACE if text in parsed.labels:
            distance = parsed.labels[text] - place
            if operand.form is Form.PLACE:
                return distance
            if distance % INSTRUCTION_BYTES:
                raise PoblanoError(f"a target must be an instruction; got {text}, which is data")
            return distance // INSTRUCTION_BYTES
        case Form.TARGET | Form.PLACE:
            return _number(f"{operand.name}, where it is no label,", text)
        case Form.NUMBER:
            return _number(operand.name, text)


def _field(text: str) -> int:
    mnemonic, dot, name = text.rpartition(".")
    if not dot:
        offset, _, width = text.partition(":")
        return pack_field(_number("a field's offset", offset), _number("a field's width", width))
    command = by_mnemonic(mnemonic)
    widths = {item.name: item.width for item in command.fields}
    if name not in widths:
        raise PoblanoError(f"{mnemonic} has no field {name}")
    return pack_field(command.offsets[name], widths[name])


def _number(what: str, text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise PoblanoError(f"{what} must be an integer; got {text!r}") from None
