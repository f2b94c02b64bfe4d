"""The command reference as Markdown, made from the table."""

from __future__ import annotations

from poblano.commands import COMMANDS, WORD_BYTES, Command, Field

__all__ = ["markdown"]


def _legal(item: Field) -> str:
    if item.choices:
        return ", ".join(f"`{name}` = {number}" for name, number in item.choices.items())
    return f"{item.minimum} to {item.largest} {item.unit}".rstrip()


def _section(command: Command) -> str:
    rows = [f"| `opcode` | 7:0 | {command.opcode:#04x} | | |"]
    for item in command.fields:
        low = command.offsets[item.name]
        default = "" if item.default is None else f"`{item.format(item.default)}`"
        bits = f"{low + item.width - 1}:{low}" if item.width > 1 else str(low)
        rows.append(f"| `{item.name}` | {bits} | {_legal(item)} | {default} | {item.summary} |")
    return "\n".join(
        [
            f"## `{command.mnemonic}`",
            "",
            command.summary,
            "",
            "| field | bits | legal | default | meaning |",
            "|---|---|---|---|---|",
            *rows,
            "",
        ]
    )


def markdown() -> str:
    """Return the reference of every command: fields, bits, legal values, defaults, meaning."""
    head = (
        "# Commands\n\n"
        "This page is made from the command table by `poblano commands --markdown`.\n\n"
        f"A command is a word of {WORD_BYTES} bytes, little endian. As text it is written\n"
        "`engine.name field=value ...`, values as integers of any base or by name. "
        "Bits outside the fields are zero.\n\n"
    )
    return head + "\n".join(_section(command) for command in COMMANDS)
