"""Numbers with units, and the checked number types that configuration fields are made of."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, WithJsonSchema
from pydantic_core import PydanticCustomError
from pydantic_core.core_schema import ValidationInfo

__all__ = [
    "FREQUENCY",
    "FROM_FILE",
    "RATE",
    "SIZE",
    "Frequency",
    "Quantity",
    "Rate",
    "Size",
    "broken_rule",
    "integer",
    "power_of_two",
    "size_power_of_two",
]

FROM_FILE = {"from_file": True}
"""Validation context of values that were read from a file, where a quantity needs its unit."""

_NUMBER_AND_UNIT = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,12})?) ?([A-Za-z/]+)")


def broken_rule(rule: str, **context: Any) -> PydanticCustomError:
    """Return the error of a value that breaks `rule`, a sentence that goes on from its name."""
    return PydanticCustomError("rule", "{rule}", {"rule": rule, **context})


@dataclass(frozen=True)
class Quantity:
    """A kind of number with a unit, held as an integer count of the first (smallest) unit.

    Parameters
    ----------
    units:
        Unit name to its factor, ascending.
    example:
        A well-formed text for messages.
    """

    units: dict[str, int]
    example: str

    @property
    def rule(self) -> str:
        """What a text must look like."""
        return f"must be a number with one of the units {', '.join(self.units)}"

    def parse(self, text: str) -> int:
        """Return the number that a text such as `1.7 GHz` stands for, in the smallest unit.

        Raises
        ------
        PydanticCustomError
            If the text is not a positive number and a known unit, or not a whole number of the
            smallest unit.
        """
        match = _NUMBER_AND_UNIT.fullmatch(text)
        if match is None or match[2] not in self.units:
            raise broken_rule(f"{self.rule}, such as '{self.example}'")
        value = Fraction(match[1]) * self.units[match[2]]
        if value <= 0 or value.denominator != 1:
            raise broken_rule(f"must be a positive whole number of {next(iter(self.units))}")
        return int(value)

    def format(self, value: int) -> str:
        """Return the text of a number, exact, in the largest unit that takes three decimals."""
        for unit, factor in reversed(self.units.items()):
            if value >= factor and value * 1000 % factor == 0:
                whole, thousandths = divmod(value * 1000 // factor, 1000)
                decimals = f".{thousandths:03}".rstrip("0").rstrip(".")
                return f"{whole}{decimals} {unit}"
        return f"{value} {next(iter(self.units))}"

    def validate(self, value: Any, info: ValidationInfo) -> int:
        """Take a text with a unit, and from Python also a plain positive integer."""
        if isinstance(value, str):
            return self.parse(value)
        plain = isinstance(value, int) and not isinstance(value, bool)
        if not plain or info.context == FROM_FILE:
            raise broken_rule(f"{self.rule}, such as '{self.example}'")
        if value <= 0:
            raise broken_rule(f"must be a positive whole number of {next(iter(self.units))}")
        return value

    @property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of the text."""
        names = "|".join(self.units)
        pattern = rf"^[0-9]+(\.[0-9]+)? ?({names})$"
        return {"type": "string", "pattern": pattern, "examples": [self.example]}


SIZE = Quantity({"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}, "64 KiB")
"""Bytes."""

FREQUENCY = Quantity({"Hz": 1, "kHz": 10**3, "MHz": 10**6, "GHz": 10**9}, "1.7 GHz")
"""Hertz."""

RATE = Quantity({"b/s": 1, "kb/s": 10**3, "Mb/s": 10**6, "Gb/s": 10**9}, "10 Gb/s")
"""Bits a second."""

Size = Annotated[
    int,
    BeforeValidator(SIZE.validate),
    PlainSerializer(SIZE.format, when_used="json"),
    WithJsonSchema(SIZE.schema),
]
Frequency = Annotated[
    int,
    BeforeValidator(FREQUENCY.validate),
    PlainSerializer(FREQUENCY.format, when_used="json"),
    WithJsonSchema(FREQUENCY.schema),
]
Rate = Annotated[
    int,
    BeforeValidator(RATE.validate),
    PlainSerializer(RATE.format, when_used="json"),
    WithJsonSchema(RATE.schema),
]


def integer(minimum: int, maximum: int | None = None, why: str = "") -> Any:
    """Return annotations of a strict integer field with bounds; `why` is the bound's reason."""
    bounds = f"of at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"
    rule = f"must be an integer {bounds}{f' ({why})' if why else ''}"

    def check(value: Any) -> int:
        fits = isinstance(value, int) and not isinstance(value, bool) and value >= minimum
        if not fits or (maximum is not None and value > maximum):
            raise broken_rule(rule)
        return value

    schema: dict[str, Any] = {"type": "integer", "minimum": minimum}
    if maximum is not None:
        schema["maximum"] = maximum
    return BeforeValidator(check, json_schema_input_type=int), WithJsonSchema(schema)


def power_of_two(minimum: int = 1) -> Any:
    """Return the annotations of a strict integer field that must be a power of two."""
    rule = f"must be a power of two of at least {minimum}"

    def check(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not _is_power(value, minimum):
            raise broken_rule(rule)
        return value

    return BeforeValidator(check), WithJsonSchema({"type": "integer", "minimum": minimum})


def size_power_of_two(minimum: int, maximum: int | None = None, why: str = "") -> AfterValidator:
    """Return the check of a `Size` that must be a power of two, bounds in bytes."""
    bounds = (
        f"of at least {SIZE.format(minimum)}"
        if maximum is None
        else f"from {SIZE.format(minimum)} to {SIZE.format(maximum)}"
    )
    rule = f"must be a power of two {bounds}{f' ({why})' if why else ''}"

    def check(value: int) -> int:
        if not _is_power(value, minimum) or (maximum is not None and value > maximum):
            raise broken_rule(rule)
        return value

    return AfterValidator(check)


def _is_power(value: int, minimum: int) -> bool:
    return value >= minimum and value & (value - 1) == 0
