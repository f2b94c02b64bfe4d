"""Errors of a configuration, each with its position."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from poblano_golden.errors import PoblanoError

__all__ = ["ConfigurationError", "shorten"]


class ConfigurationError(PoblanoError):
    """A configuration that cannot be taken; a line a problem, `FILE:LINE:COLUMN: RULE; got VALUE`.

    Attributes
    ----------
    problems:
        The lines.
    """

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


def shorten(value: Any) -> str:
    """Return a value as it stands in a message: one line, at most about 60 characters."""
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
