"""Reads YAML into plain values and remembers where each one stands.

The language is the part of YAML that configurations need: one document of mappings, lists and
scalars. Plain scalars are read as in YAML 1.2's core schema (`true`, `false`, `null`, decimal
numbers, everything else text), so `on`, `010` and `12:30` are texts. Anchors, aliases, tags,
duplicate keys and keys that are not text are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, cast

import yaml

from poblano.config.errors import ConfigurationError, shorten

__all__ = ["Mark", "Path", "Source", "read_file", "read_text"]

LARGEST_FILE = 1 << 20
"""Bytes of the largest configuration file that is read."""

Path = tuple[str | int, ...]
"""Keys and list indices from the root to a value."""

Mark = tuple[int, int]
"""Line and column, both from 1."""

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,18})")
_FLOAT = re.compile(r"[-+]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}


@dataclass
class Source:
    """A document: its name for messages, its value, and the marks of keys and of values."""

    name: str
    value: Any = None
    keys: dict[Path, Mark] = field(default_factory=dict)
    values: dict[Path, Mark] = field(default_factory=dict)

    def where(self, mark: Mark) -> str:
        """Return a position as it stands before a message."""
        return f"{self.name}:{mark[0]}:{mark[1]}"


def read_file(path: FilePath) -> Source:
    """Read the document in a file.

    Raises
    ------
    ConfigurationError
        If the file cannot be read, is no UTF-8 text, or is outside the language.
    """
    name = str(path)
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigurationError(
            [f"{name}: a configuration must be a readable file; got {reason}"]
        ) from None
    if len(content) > LARGEST_FILE:
        raise ConfigurationError(
            [f"{name}: a configuration must be at most {LARGEST_FILE} bytes; got more"]
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8", "replace")
        line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
        byte = content[error.start]
        raise ConfigurationError(
            [f"{name}:{line}:{column}: the file must be UTF-8 text; got byte 0x{byte:02X}"]
        ) from None
    return read_text(text, name)


def read_text(text: str, name: str) -> Source:
    """Read the document in a text; `name` stands before every message.

    Raises
    ------
    ConfigurationError
        If the text is not YAML or is outside the language.
    """
    source = Source(name)
    try:
        root = _Composer(text, source).get_single_node()
        source.value = None if root is None else _convert(root, (), source)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        position = (1, 1) if mark is None else (mark.line + 1, mark.column + 1)
        got = " ".join(part for part in (error.problem, error.context) if part)
        raise ConfigurationError(
            [f"{source.where(position)}: the text must be valid YAML: {_one_line(got)}"]
        ) from None
    except yaml.reader.ReaderError as error:
        before, code = text[: error.position], ord(text[error.position])
        line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
        raise ConfigurationError(
            [f"{name}:{line}:{column}: a text must be printable; got character U+{code:04X}"]
        ) from None
    except RecursionError:
        raise ConfigurationError(
            [f"{name}: the text must be nested less deeply; got hundreds of levels"]
        ) from None
    return source


class _Composer(yaml.SafeLoader):
    """Builds YAML nodes; refuses what the language leaves out."""

    def __init__(self, text: str, source: Source) -> None:
        super().__init__(text)
        self._source = source

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = cast("yaml.NodeEvent", self.peek_event())
        if event.anchor is not None:
            _refuse(self._source, event, "anchors and aliases are not allowed", event.anchor)
        tag = getattr(event, "tag", None)
        if tag is not None:
            _refuse(self._source, event, "tags are not allowed", tag)
        return super().compose_node(parent, index)


def _convert(node: yaml.Node, path: Path, source: Source) -> Any:
    source.values[path] = _mark(node)
    if isinstance(node, yaml.MappingNode):
        return _convert_mapping(node, path, source)
    if isinstance(node, yaml.SequenceNode):
        return [_convert(item, (*path, index), source) for index, item in enumerate(node.value)]
    return _scalar(cast("yaml.ScalarNode", node))


def _convert_mapping(node: yaml.MappingNode, path: Path, source: Source) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    for key_node, value_node in node.value:
        is_text = isinstance(key_node, yaml.ScalarNode) and isinstance(_scalar(key_node), str)
        if not is_text:
            _refuse(
                source,
                key_node,
                "a key must be a text",
                shorten(_convert(key_node, (), Source(""))),
            )
        key = str(key_node.value)
        if key in mapping:
            line = source.keys[*path, key][0]
            _refuse(
                source, key_node, f"a key must stand once, and line {line} has it", shorten(key)
            )
        source.keys[*path, key] = _mark(key_node)
        mapping[key] = _convert(value_node, (*path, key), source)
    return mapping


def _scalar(node: yaml.ScalarNode) -> Any:
    text = str(node.value)
    if node.style is not None:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text


def _mark(node: yaml.Node | yaml.Event) -> Mark:
    mark = node.start_mark
    return (mark.line + 1, mark.column + 1)


def _refuse(source: Source, node: yaml.Node | yaml.Event, rule: str, got: str) -> None:
    raise ConfigurationError([f"{source.where(_mark(node))}: {rule}; got {got}"])


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text)
