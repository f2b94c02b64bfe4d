"""Lint findings that are none: read from a file, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, cast

from poblano.config.source import read_file
from poblano.resources import constraints
from poblano_flow.lint_tools import CHECKERS
from poblano_golden.errors import PoblanoError

__all__ = ["PORT_NOTE", "Waiver", "load_waivers", "matches"]

PORT_NOTE = " (a port)"
"""What lint adds to a message that names a port."""

_REQUIRED = {"tool", "rule", "reason"}
_KNOWN = {*_REQUIRED, "kind", "message"}


@dataclass(frozen=True)
class Waiver:
    """Findings that are accepted: those of `tool` and `rule` whose kind and message match.

    Attributes
    ----------
    tool, rule:
        As in the finding.
    reason:
        Why such a finding is none.
    kind, message:
        Patterns of the whole class name and the whole message; `*` stands for any characters
        and `?` for one.
    """

    tool: str
    rule: str
    reason: str
    kind: str = "*"
    message: str = "*"

    @property
    def said(self) -> str:
        """The pattern of the tool's own message."""
        return self.message.removesuffix(PORT_NOTE)


def matches(pattern: str, text: str) -> bool:
    """Match as Verilator's configuration files do: only `*` and `?` are special."""
    return fnmatchcase(text, pattern.replace("[", "[[]"))


def load_waivers(path: Path | None = None) -> tuple[Waiver, ...]:
    """Read a waiver file; by default `lint_waivers.yaml` beside the presets.

    Raises
    ------
    PoblanoError
        If the file is not a list of waivers, or one lacks a reason.
    """
    path = path or constraints() / "lint_waivers.yaml"
    source = read_file(path)
    if not isinstance(source.value, list):
        raise PoblanoError(f"{path}:1:1: a waiver file must be a list; got none")
    waivers: list[Waiver] = []
    for index, entry in enumerate(cast("list[Any]", source.value)):
        where = source.where(source.values[index,])
        fields = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
        texts = all(isinstance(value, str) and value for value in fields.values())
        if not (_REQUIRED <= fields.keys() <= _KNOWN and texts):
            raise PoblanoError(
                f"{where}: a waiver must have texts for tool, rule and reason, and may have kind "
                f"and message; got {', '.join(fields) or 'none'}"
            )
        if fields["tool"] not in CHECKERS:
            raise PoblanoError(
                f"{where}: a waiver's tool must be one of {', '.join(CHECKERS)}; "
                f"got {fields['tool']!r}"
            )
        waivers.append(Waiver(**fields))
    return tuple(waivers)
