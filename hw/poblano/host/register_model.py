"""What a register is: fields with positions, access kinds and reset values; no Amaranth."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

__all__ = ["ADDRESS_WIDTH", "WORD_BITS", "Access", "Field", "Register", "RegisterMap", "Word"]

ADDRESS_WIDTH = 16
"""Bits of the byte address of a register; the same for every configuration."""

WORD_BITS = 32
"""Bits of the data bus, and of the word that one access moves."""


class Access(enum.StrEnum):
    """What software may do with a field, and what the hardware does."""

    CONSTANT = "constant"
    """Read only; the value follows from the configuration."""
    STATUS = "status"
    """Read only; the hardware drives the value."""
    COUNTER = "counter"
    """Read only; counts a signal of the hardware, wraps, and is cleared by CONTROL."""
    CONTROL = "control"
    """Read and written by software, read by the hardware."""
    DOORBELL = "doorbell"
    """As CONTROL, and the hardware sees every write."""
    PULSE = "pulse"
    """Writing 1 makes a pulse of one cycle; reads as 0."""
    FLAG = "flag"
    """Set by the hardware, cleared by writing 1; setting wins over clearing."""
    ADD = "add"
    """The hardware drives the value; the hardware adds what software writes to it."""

    @property
    def writable(self) -> bool:
        """Whether software may write it."""
        return self not in (Access.CONSTANT, Access.STATUS, Access.COUNTER)

    @property
    def driven(self) -> bool:
        """Whether its value comes from outside the register file."""
        return self in (Access.STATUS, Access.ADD)


@dataclass(frozen=True)
class Field:
    """A field of a register.

    Parameters
    ----------
    name:
        Lower case; `value` for the only field of a register that needs no other name.
    low, width:
        Position of its lowest bit in the register, and its bits.
    access:
        What may be done with it.
    summary:
        What it means, for the documentation.
    reset:
        Value after reset; without meaning where the hardware drives the value.
    choices:
        Symbolic values by name.
    """

    name: str
    low: int
    width: int
    access: Access
    summary: str
    reset: int = 0
    choices: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def mask(self) -> int:
        """Ones in its bits of the register."""
        return ((1 << self.width) - 1) << self.low


@dataclass(frozen=True)
class Register:
    """A register of one word, or of two where it has 64 bits.

    Parameters
    ----------
    name:
        Upper case. The words of a register of 64 bits are NAME_LOW and NAME_HIGH.
    offset:
        Byte offset of its first word.
    summary:
        What it is, for the documentation.
    fields:
        In ascending order.
    width:
        32 or 64.
    """

    name: str
    offset: int
    summary: str
    fields: tuple[Field, ...]
    width: int = WORD_BITS

    @property
    def writable(self) -> bool:
        """Whether software may write to it; otherwise a write is answered with SLVERR."""
        return any(item.access.writable for item in self.fields)

    @property
    def words(self) -> tuple[Word, ...]:
        """The words that software sees."""
        if self.width == WORD_BITS:
            return (Word(self.name, self.offset, self, 0),)
        return (
            Word(f"{self.name}_LOW", self.offset, self, 0),
            Word(f"{self.name}_HIGH", self.offset + WORD_BITS // 8, self, WORD_BITS),
        )

    def port(self, item: Field) -> str:
        """Return the name of the port of a field: `register` or `register_field`."""
        name = self.name.lower()
        return name if item.name == "value" else f"{name}_{item.name}"


@dataclass(frozen=True)
class Word:
    """One word of a register: what one access reads or writes; `low` is its lowest bit there."""

    name: str
    offset: int
    register: Register
    low: int

    @property
    def fields(self) -> tuple[Field, ...]:
        """The parts of the register's fields in this word, at their positions in the word."""
        parts: list[Field] = []
        for item in self.register.fields:
            low = max(item.low, self.low)
            high = min(item.low + item.width, self.low + WORD_BITS)
            if low < high:
                reset = (item.reset >> (low - item.low)) & ((1 << (high - low)) - 1)
                parts.append(
                    Field(
                        item.name,
                        low - self.low,
                        high - low,
                        item.access,
                        item.summary,
                        reset,
                        item.choices,
                    )
                )
        return tuple(parts)


@dataclass(frozen=True)
class RegisterMap:
    """The registers of a slice in ascending order.

    Raises
    ------
    ValueError
        If registers, fields or names collide, or something lies where it must not.
    """

    registers: tuple[Register, ...]

    def __post_init__(self) -> None:
        offsets = [word.offset for word in self.words]
        if offsets != sorted(set(offsets)):
            raise ValueError("registers must ascend and lie apart")
        if any(offset % 4 or offset >= 1 << ADDRESS_WIDTH for offset in offsets):
            raise ValueError(f"registers must be aligned and end below {1 << ADDRESS_WIDTH:#x}")
        ports = [register.port(item) for register, item in self.items()]
        for names in (ports, [word.name for word in self.words]):
            if len(set(names)) != len(names):
                raise ValueError("names of registers and fields must be unique")
        for register in self.registers:
            position = 0
            for item in register.fields:
                if item.low < position or item.reset >> item.width:
                    raise ValueError(f"fields of {register.name} must lie apart and hold resets")
                position = item.low + item.width
            if position > register.width:
                raise ValueError(f"fields of {register.name} must end at bit {register.width}")

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """Every word, in ascending order."""
        return tuple(word for register in self.registers for word in register.words)

    def items(self) -> Iterator[tuple[Register, Field]]:
        """Yield every field with its register."""
        for register in self.registers:
            for item in register.fields:
                yield register, item

    @cached_property
    def offsets(self) -> dict[str, int]:
        """Byte offset of every word by name."""
        return {word.name: word.offset for word in self.words}

    def offset(self, name: str) -> int:
        """Return the byte offset of the word of that name, such as `QUEUE_TENSOR_TAIL`.

        Raises
        ------
        KeyError
            If there is none.
        """
        return self.offsets[name]

    def field(self, register: str, name: str = "value") -> Field:
        """Return a field by the names of register and field.

        Raises
        ------
        KeyError
            If there is none.
        """
        for owner, item in self.items():
            if (owner.name, item.name) == (register, name):
                return item
        raise KeyError(f"{register}.{name}")
