"""What a command is: fields with widths, units and legal ranges, packed into one word."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from poblano.config import HBM_ADDRESS_BITS, L1_ADDRESS_BITS, SliceConfiguration
from poblano_golden.errors import PoblanoError

__all__ = [
    "ADDRESS_WIDTH",
    "HBM_ADDRESS_WIDTH",
    "OPCODE_WIDTH",
    "SYNCHRONISATION",
    "WORD_BYTES",
    "Command",
    "CommandError",
    "Field",
    "Values",
]

WORD_BYTES = 64
"""Bytes of one command word."""

ADDRESS_WIDTH = L1_ADDRESS_BITS
"""Bits of an L1 byte address, and of the strides between its blocks and rows."""

HBM_ADDRESS_WIDTH = HBM_ADDRESS_BITS
"""Bits of an HBM byte address, and of the strides between its rows."""

OPCODE_WIDTH = 8
"""Bits of the opcode, which stands in the lowest bits of every word."""

Values = Mapping[str, int]
"""Field name to value."""


class CommandError(PoblanoError):
    """A command breaks a rule of the command table."""


@dataclass(frozen=True)
class Field:
    """One field of a command.

    Parameters
    ----------
    name, width:
        The field's name, and its bits in the command word.
    unit:
        What the value counts, such as `elements` or `bytes`; empty for a choice.
    summary:
        What the field means, for the documentation.
    minimum, maximum:
        The legal range, both ends included; `maximum` defaults to all ones.
    choices:
        Symbolic values by name; no other value is legal then.
    default:
        The value where a program gives none; `None` makes the field mandatory.
    """

    name: str
    width: int
    unit: str
    summary: str
    minimum: int = 0
    maximum: int = -1
    choices: Mapping[str, int] = field(default_factory=dict)
    default: int | None = None

    @property
    def largest(self) -> int:
        """The largest legal value."""
        if self.choices:
            return max(self.choices.values())
        return self.maximum if self.maximum >= 0 else (1 << self.width) - 1

    def format(self, value: int) -> str:
        """Return the value as a program would write it."""
        names = [name for name, number in self.choices.items() if number == value]
        return names[0] if names else str(value)

    def parse(self, text: str) -> int:
        """Return the value of a program's text: a choice's name or an integer of any base."""
        if text in self.choices:
            return self.choices[text]
        try:
            return int(text, 0)
        except ValueError:
            legal = ", ".join(self.choices) if self.choices else "an integer"
            raise CommandError(f"field {self.name} must be {legal}; got {text!r}") from None

    def check(self, value: int) -> None:
        """Refuse a value outside the legal range."""
        if self.choices and value not in self.choices.values():
            raise CommandError(f"field {self.name} must be {_choices(self)}; got {value}")
        if not self.minimum <= value <= self.largest:
            unit = f" {self.unit}" if self.unit else ""
            raise CommandError(
                f"field {self.name} must be in {self.minimum}..{self.largest}{unit}; got {value}"
            )


def _choices(item: Field) -> str:
    return ", ".join(f"{number} ({name})" for name, number in item.choices.items())


SEMAPHORE_WIDTH = 6
COUNT_WIDTH = 10


def _synchronisation() -> tuple[Field, ...]:
    fields: list[Field] = []
    for name, what, count in (
        ("wait_a", "waited for before issue", "taken from wait_a once it holds as many"),
        ("wait_b", "waited for together with wait_a", "taken from wait_b"),
        ("signal_a", "signalled when the command is complete", "added to signal_a"),
        ("signal_b", "signalled together with signal_a", "added to signal_b"),
    ):
        fields += (
            Field(f"{name}_count", COUNT_WIDTH, "", f"{count}; 0 for none", default=0),
            Field(name, SEMAPHORE_WIDTH, "", f"semaphore {what}", default=0),
        )
    return tuple(fields)


SYNCHRONISATION: tuple[Field, ...] = _synchronisation()
"""The fields with which every command begins: what it waits for and what it signals.

The slice's queues serve them; engines see them and leave them alone.
"""


def _check_synchronisation(configuration: SliceConfiguration, values: Values) -> None:
    count = configuration.host.semaphores
    for name in ("wait_a", "wait_b", "signal_a", "signal_b"):
        if values[f"{name}_count"] and values[name] >= count:
            raise CommandError(f"{name} must be a semaphore below {count}; got {values[name]}")
    if values["wait_a_count"] and values["wait_b_count"] and values["wait_a"] == values["wait_b"]:
        raise CommandError(
            f"wait_a and wait_b must be different semaphores; got {values['wait_a']} twice"
        )


@dataclass(frozen=True)
class Command:
    """One command of one engine.

    Parameters
    ----------
    engine, name, opcode:
        `engine.name` is what programs write; the opcode is unique over all engines.
    summary:
        What the command does.
    own_fields:
        The fields that follow SYNCHRONISATION, in the order of the word. A field of eight bits
        or more starts at a byte.
    rule:
        Refuses values that are in range one by one but not together, for a configuration.
    cycles:
        The timing contract: cycles from issue to completion without contention, from the
        configuration and the values; moves by index take the indices too.
    """

    engine: str
    name: str
    opcode: int
    summary: str
    own_fields: tuple[Field, ...]
    rule: Callable[[SliceConfiguration, Values], None]
    cycles: Callable[..., int]

    @property
    def mnemonic(self) -> str:
        """`engine.name`."""
        return f"{self.engine}.{self.name}"

    @property
    def fields(self) -> tuple[Field, ...]:
        """Every field in the order of the word: SYNCHRONISATION, then the command's own."""
        return (*SYNCHRONISATION, *self.own_fields)

    @cached_property
    def offsets(self) -> dict[str, int]:
        """Bit offset of every field in the word."""
        offsets: dict[str, int] = {}
        position = OPCODE_WIDTH
        for item in self.fields:
            if item.width >= 8:
                position = math.ceil(position / 8) * 8
            offsets[item.name] = position
            position += item.width
        if position > 8 * WORD_BYTES:
            raise ValueError(f"{self.mnemonic} takes {position} bits, over {8 * WORD_BYTES}")
        return offsets

    def complete(self, values: Values) -> dict[str, int]:
        """Return `values` with defaults filled in; refuse unknown and missing fields."""
        known = {item.name for item in self.fields}
        for name in values:
            if name not in known:
                raise CommandError(f"{self.mnemonic} has no field {name}")
        full: dict[str, int] = {}
        for item in self.fields:
            value = values.get(item.name, item.default)
            if value is None:
                raise CommandError(f"{self.mnemonic} needs field {item.name}")
            full[item.name] = int(value)
        return full

    def check(self, configuration: SliceConfiguration, values: Values) -> None:
        """Refuse values that this configuration cannot run."""
        for item in self.fields:
            item.check(values[item.name])
        _check_synchronisation(configuration, values)
        self.rule(configuration, values)

    def encode(self, values: Values) -> bytes:
        """Return the command word; a value must fit its field, legal or not."""
        word = self.opcode
        full = self.complete(values)
        for item in self.fields:
            if not 0 <= full[item.name] < 1 << item.width:
                raise CommandError(
                    f"field {item.name} does not fit {item.width} bits; got {full[item.name]}"
                )
            word |= full[item.name] << self.offsets[item.name]
        return word.to_bytes(WORD_BYTES, "little")

    def decode(self, word: bytes) -> dict[str, int]:
        """Return the field values of a command word."""
        number = int.from_bytes(word, "little")
        return {
            item.name: (number >> self.offsets[item.name]) & ((1 << item.width) - 1)
            for item in self.fields
        }
