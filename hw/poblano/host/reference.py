"""The register reference as Markdown, made from the register map."""

from __future__ import annotations

import re
from collections.abc import Sequence

from poblano.config import Configuration
from poblano.host.registers import Access, Field, Register, queue_names, register_map

__all__ = ["markdown"]

_MEANING = {
    Access.CONSTANT: "read only; follows from the configuration",
    Access.STATUS: "read only; the hardware's state",
    Access.COUNTER: "read only; wraps, cleared by `CONTROL.clear_counters`",
    Access.CONTROL: "read and write",
    Access.DOORBELL: "read and write; the hardware sees every write",
    Access.PULSE: "writing 1 acts once; reads as 0",
    Access.FLAG: "set by the hardware, cleared by writing 1; setting wins",
    Access.ADD: "reads the hardware's value; what is written is added to it",
}

_HEAD = """# Registers

This page is made from the register map by `poblano registers jalapeno --markdown`. A
configuration's own map, as SystemRDL, HTML and a C header, comes from `poblano registers`.

The host reaches the registers of a slice over AXI4-Lite, in words of 32 bits, little endian. A
read or write outside the map, and a write to a register without a writable field, is answered
with SLVERR and changes nothing. Bytes without a strobe keep their value. A register of 64 bits is
two words, `NAME_LOW` at its offset and `NAME_HIGH` four bytes on; reading the lower word of a
counter keeps its upper word for the read of that. `QUEUE_q` stands for the queues in the order of
their numbers: `TENSOR`, then `LOAD_p` and `STORE_p` for each HBM port `p`.

| access | meaning |
|---|---|
"""


def markdown(configuration: Configuration) -> str:
    """Return the reference of every register: offset, fields, access, reset value, meaning."""
    groups: dict[str, list[Register]] = {}
    for register in register_map(configuration).registers:
        groups.setdefault(_pattern(register.name, configuration), []).append(register)
    access = "".join(f"| {kind} | {meaning} |\n" for kind, meaning in _MEANING.items())
    sections = [_section(pattern, members) for pattern, members in groups.items()]
    return "\n".join([_HEAD + access, *sections])


def _pattern(name: str, configuration: Configuration) -> str:
    """Return the name with the queue's name and with numbers made general."""
    for queue in queue_names(configuration):
        name = name.replace(f"QUEUE_{queue.upper()}_", "QUEUE_q_")
    return re.sub(r"_\d+(?=_|$)", "_i", name)


def _section(pattern: str, members: Sequence[Register]) -> str:
    first = members[0]
    place = f"`{first.offset:#x}`"
    if len(members) > 1:
        index = "q" if "_q_" in pattern else "i"
        place = f"`{first.offset:#x} + {members[1].offset - first.offset:#x} * {index}`"
    summary = re.sub(r"(Semaphore|port) \d+", r"\1 i", first.summary)
    words = f", {first.width} bits" if len(first.words) > 1 else ""
    return "\n".join(
        [
            f"## `{pattern}`",
            "",
            f"Offset {place}{words}. {summary}",
            "",
            "| field | bits | access | reset | meaning |",
            "|---|---|---|---|---|",
            *map(_row, first.fields),
            "",
        ]
    )


def _row(item: Field) -> str:
    bits = f"{item.low + item.width - 1}:{item.low}" if item.width > 1 else str(item.low)
    has_reset = not item.access.driven and item.access is not Access.CONSTANT
    reset = str(item.reset) if has_reset else ""
    choices = ", ".join(f"`{name}` = {code}" for name, code in item.choices.items())
    meaning = f"{item.summary}: {choices}" if choices else item.summary
    return f"| `{item.name}` | {bits} | {item.access} | {reset} | {meaning} |"
