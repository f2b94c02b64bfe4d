"""The register map as SystemRDL 2.0 (Accellera), for the tools of software and verification."""

from __future__ import annotations

from collections.abc import Iterator

from poblano.config import Configuration
from poblano.host.registers import WORD_BITS, Access, Field, Word, register_map

__all__ = ["systemrdl"]

_PROPERTIES = {
    Access.CONSTANT: ("sw=r", "hw=na"),
    Access.STATUS: ("sw=r", "hw=w"),
    Access.COUNTER: ("sw=r", "hw=na", "counter"),
    Access.CONTROL: ("sw=rw", "hw=r"),
    Access.DOORBELL: ("sw=rw", "hw=r", "swmod"),
    Access.PULSE: ("sw=w", "hw=r", "singlepulse"),
    Access.FLAG: ("sw=rw", "hw=w", "woclr", "hwset"),
    Access.ADD: ("sw=rw", "hw=w", "onwrite=wuser"),
}
"""What each kind of access is in SystemRDL."""


def systemrdl(configuration: Configuration) -> str:
    """Return an address map named `poblano_slice`, a register a word.

    A register of 64 bits is two, NAME_LOW and NAME_HIGH. Fields that the hardware drives have no
    reset value.
    """
    words = register_map(configuration).words
    head = [
        "addrmap poblano_slice {",
        '    name = "Poblano slice";',
        f'    desc = "Registers of configuration {configuration.name}, '
        f'hash {configuration.hash[:16]}.";',
        f"    default regwidth = {WORD_BITS};",
        f"    default accesswidth = {WORD_BITS};",
    ]
    lines = [line for word in words for line in _register(word)]
    return "\n".join([*head, *lines, "};"]) + "\n"


def _register(word: Word) -> Iterator[str]:
    yield ""
    choices = [item for item in word.fields if item.choices]
    for item in choices:
        yield f"    enum {_enum(word, item)} {{"
        yield from (f"        {name.upper()} = {code};" for name, code in item.choices.items())
        yield "    };"
    outside = any(item.access is Access.ADD for item in word.fields)
    yield f"    {'external ' if outside else ''}reg {{"
    yield f'        desc = "{word.register.summary}";'
    for item in word.fields:
        properties = [*_PROPERTIES[item.access], f'desc = "{item.summary}"']
        if item.choices:
            properties.append(f"encode = {_enum(word, item)}")
        bits = f"[{item.low + item.width - 1}:{item.low}]"
        reset = "" if item.access.driven else f" = {item.width}'h{item.reset:x}"
        yield f"        field {{ {'; '.join(properties)}; }} {item.name}{bits}{reset};"
    yield f"    }} {word.name} @ {word.offset:#x};"


def _enum(word: Word, item: Field) -> str:
    return f"{word.name.lower()}_{item.name}_e"
