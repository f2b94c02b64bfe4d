"""From a preset's name or a file, and overrides, to a configuration."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path as FilePath

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from poblano.config.errors import ConfigurationError, shorten
from poblano.config.model import Configuration
from poblano.config.quantities import FROM_FILE
from poblano.config.source import Mark, Path, Source, read_file, read_text
from poblano.resources import preset_paths

__all__ = ["find", "load", "load_text"]

_KINDS = {
    "string_type": "must be a text",
    "tuple_type": "must be a list",
    "model_type": "must be a section of keys",
    "missing": "must be given",
}
"""Rules behind the validation library's own error types."""

_AFTER_FILE = (1 << 30, 0)
"""Sorts the problems of overrides behind those of the file."""


def load(source: str | FilePath, overrides: Sequence[str] = ()) -> Configuration:
    """Read a configuration.

    Parameters
    ----------
    source:
        A preset's name, or the path of a YAML file (anything with a slash or a dot).
    overrides:
        Texts such as `slice.tensor.rows=8`, applied in order; the value is read as YAML.

    Raises
    ------
    ConfigurationError
        With one line for every problem: `FILE:LINE:COLUMN: RULE; got VALUE`. In place of the
        position, a problem that an override brought in has `-P PATH`.
    """
    return _validate(read_file(find(source)), overrides)


def load_text(text: str, overrides: Sequence[str] = (), name: str = "text") -> Configuration:
    """Read a configuration from YAML text; `name` stands for the file in messages."""
    return _validate(read_text(text, name), overrides)


def find(source: str | FilePath) -> FilePath:
    """Return the file behind a preset's name or a path.

    Raises
    ------
    ConfigurationError
        If it is neither a path nor a known preset.
    """
    if isinstance(source, FilePath) or "/" in source or "." in source:
        return FilePath(source)
    presets = preset_paths()
    if source not in presets:
        known = ", ".join(presets)
        raise ConfigurationError(
            [f"a preset must be one of {known}{_hint(source, presets)}; got {source!r}"]
        )
    return presets[source]


def _validate(source: Source, overrides: Sequence[str]) -> Configuration:
    if not isinstance(source.value, dict):
        got = shorten(source.value)
        raise ConfigurationError(
            [f"{source.name}:1:1: a configuration must be a mapping of keys; got {got}"]
        )
    merged = _Merged(source, overrides)
    try:
        return Configuration.model_validate(merged.value, context=FROM_FILE)
    except ValidationError as error:
        problems = [_problem(details, merged) for details in error.errors(include_url=False)]
        raise ConfigurationError(line for _, line in sorted(problems)) from None


class _Merged:
    """A document with overrides applied, and where each value came from."""

    def __init__(self, source: Source, overrides: Sequence[str]) -> None:
        self.source = source
        self.value = copy.deepcopy(source.value)
        self.overridden: list[Path] = []
        for text in overrides:
            self._apply(text)

    def _apply(self, text: str) -> None:
        dotted, equals, value = text.partition("=")
        path = tuple(part.strip() for part in dotted.split("."))
        if not equals or not all(path):
            raise ConfigurationError(
                [f"-P {text}: an override must be like slice.tensor.rows=8; got {text!r}"]
            )
        section = self.value
        for depth, key in enumerate(path[:-1], start=1):
            section = section.setdefault(key, {}) if isinstance(section, dict) else None
            if not isinstance(section, dict):
                name = ".".join(path[:depth])
                raise ConfigurationError(
                    [f"-P {dotted}: {name} must be a section to have keys; got {shorten(section)}"]
                )
        section[path[-1]] = read_text(value, f"-P {dotted}").value
        self.overridden.append(path)

    def position(self, paths: Iterable[Path]) -> tuple[Mark, str]:
        """Return a sorting key and the text of where a problem with the values at `paths` stands.

        The first path that an override set is it; else the first that the file holds; else an
        override below the first path; else the innermost section around it.
        """
        paths = list(paths)
        for path in paths:
            if mark := self._override(
                lambda override, path=path: path[: len(override)] == override
            ):
                return mark
        for path in paths:
            if path in self.source.values:
                mark = self.source.values[path]
                return mark, self.source.where(mark)
        first = paths[0]
        if mark := self._override(lambda override: override[: len(first)] == first):
            return mark
        around = first[:-1]
        while around and around not in self.source.keys:
            around = around[:-1]
        mark = self.source.keys.get(around, (1, 1))
        return mark, self.source.where(mark)

    def key_position(self, path: Path) -> tuple[Mark, str]:
        """Return the same for the key at `path` itself."""
        key, where = self.position([path])
        if key < _AFTER_FILE and path in self.source.keys:
            key = self.source.keys[path]
            where = self.source.where(key)
        return key, where

    def _override(self, fits: Callable[[Path], bool]) -> tuple[Mark, str] | None:
        for number, path in enumerate(self.overridden):
            if fits(path):
                return (_AFTER_FILE[0], number), f"-P {_dotted(path)}"
        return None


def _problem(details: ErrorDetails, merged: _Merged) -> tuple[tuple[Mark, str], str]:
    """Return a sorting key and the line of one problem."""
    loc: Path = tuple(details["loc"])
    kind, context = details["type"], details.get("ctx", {})
    if kind == "extra_forbidden":
        position = merged.key_position(loc)
        rule, got = _unknown_key(loc), repr(str(loc[-1]))
    elif "fields" in context:
        position = merged.position((*loc, *field) for field in context["fields"])
        section = f"{_dotted(loc)}: " if loc else ""
        rule, got = f"{section}{context['rule']}", context["got"]
    else:
        position = merged.position([loc])
        sentence = context["rule"] if kind == "rule" else _KINDS.get(kind, details["msg"])
        rule = f"{_dotted(loc)} {sentence}"
        got = "nothing" if kind == "missing" else shorten(details["input"])
    return position, f"{position[1]}: {rule}; got {got}"


def _unknown_key(loc: Path) -> str:
    name, section = str(loc[-1]), _section(loc[:-1])
    elsewhere = [path for path in _paths(Configuration) if path.rpartition(".")[2] == name]
    hint = f" (did you mean '{elsewhere[0]}'?)" if len(elsewhere) == 1 else ""
    hint = hint or _hint(name, section.model_fields)
    hint = hint or f" (known: {', '.join(section.model_fields)})"
    return f"unknown key in {_dotted(loc[:-1]) or 'the configuration'}{hint}"


def _hint(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean '{close[0]}'?)" if close else ""


def _section(path: Path) -> type[BaseModel]:
    section: type[BaseModel] = Configuration
    for key in path:
        annotation = section.model_fields[str(key)].annotation
        assert isinstance(annotation, type)
        section = annotation
    return section


def _paths(section: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in section.model_fields.items():
        yield prefix + name
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _paths(field.annotation, f"{prefix}{name}.")


def _dotted(path: Path) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
