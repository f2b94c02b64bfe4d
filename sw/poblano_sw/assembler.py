"""Programs as text and as command words; both directions follow the command table."""

from __future__ import annotations

from collections.abc import Sequence

from poblano.commands import WORD_BYTES, CommandError, by_mnemonic, by_opcode
from poblano.config import SliceConfiguration

__all__ = ["assemble", "disassemble", "encode"]


def encode(configuration: SliceConfiguration, mnemonic: str, **values: int) -> bytes:
    """Return one command's word after checking it against the table and the configuration.

    Raises
    ------
    CommandError
        If the command is unknown or a value breaks a rule.
    """
    command = by_mnemonic(mnemonic)
    full = command.complete(values)
    command.check(configuration, full)
    return command.encode(full)


def assemble(
    configuration: SliceConfiguration, text: str, *, source: str = "program"
) -> list[bytes]:
    """Return the words of a program, one command a line: `engine.name field=value ...`.

    Values are integers of any base or the names of choices; `#` begins a comment.

    Raises
    ------
    CommandError
        If a line breaks a rule; the message begins with `source:line`.
    """
    words: list[bytes] = []
    for number, line in enumerate(text.splitlines(), start=1):
        mnemonic, *parts = line.partition("#")[0].split() or [""]
        if not mnemonic:
            continue
        try:
            words.append(encode(configuration, mnemonic, **_fields(mnemonic, parts)))
        except CommandError as error:
            raise CommandError(f"{source}:{number}: {error}") from None
    return words


def _fields(mnemonic: str, parts: Sequence[str]) -> dict[str, int]:
    known = {item.name: item for item in by_mnemonic(mnemonic).fields}
    values: dict[str, int] = {}
    for part in parts:
        name, equals, text = part.partition("=")
        if not equals:
            raise CommandError(f"a field is written name=value; got {part!r}")
        if name not in known:
            raise CommandError(f"{mnemonic} has no field {name}")
        if name in values:
            raise CommandError(f"field {name} must be given once; got {part!r} again")
        values[name] = known[name].parse(text)
    return values


def disassemble(words: Sequence[bytes]) -> str:
    """Return the text of a program, one line a word; `assemble` gives the words back.

    Fields that have their default are left out.

    Raises
    ------
    CommandError
        If a word has a wrong length, an unknown opcode or bits outside every field.
    """
    lines: list[str] = []
    for number, word in enumerate(words):
        if len(word) != WORD_BYTES:
            raise CommandError(f"word {number} must have {WORD_BYTES} bytes; got {len(word)}")
        command = by_opcode(word[0])
        values = command.decode(word)
        if command.encode(values) != word:
            raise CommandError(f"word {number} has bits outside the fields of {command.mnemonic}")
        fields = " ".join(
            f"{f.name}={f.format(values[f.name])}"
            for f in command.fields
            if values[f.name] != f.default
        )
        lines.append(f"{command.mnemonic} {fields}\n")
    return "".join(lines)
