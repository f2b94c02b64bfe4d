"""Where the elementary functions can have registers; imports no Amaranth."""

from __future__ import annotations

__all__ = ["FUNCTIONS", "PARTS_PLACES", "POWERS", "ROOTS", "register_places"]

POWERS = ("exp2", "exp")
ROOTS = ("reciprocal", "reciprocal_sqrt")

FUNCTIONS = (*POWERS, "sigmoid", *ROOTS)
"""Every function."""

PARTS_PLACES = ("product", "argument", "power_slope", "power")
"""The places that the parts of a power pass."""


def register_places(functions: tuple[str, ...]) -> list[str]:
    """Return the places where registers can be, those that shorten the longest paths first."""
    chosen = {*functions}
    first, second = chosen - {*ROOTS}, chosen - {*POWERS}
    places = {
        "result": True,
        "fraction": bool(first and second),
        "argument": True,
        "significand": True,
        "power": "sigmoid" in chosen,
        "slope": bool(second),
        "power_slope": bool(first),
        "product": bool(first - {"exp2"}),
    }
    return [place for place, exists in places.items() if exists]
