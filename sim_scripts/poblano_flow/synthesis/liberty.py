"""Liberty files: where they are, and what of them the flow must know itself."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from poblano_flow.build_cache import build_root
from poblano_golden.errors import PoblanoError

__all__ = ["VARIABLE", "Library", "find_liberty", "gate_area", "read_library", "unpacked"]

VARIABLE = "POBLANO_LIBERTY_DIR"
"""The environment variable that names a folder of `.lib` or `.lib.gz` files."""

_CELL = re.compile(r"^\s*cell\s*\(\s*\"?([^\")\s]+)\"?\s*\)", re.MULTILINE)
_AREA = re.compile(r"^\s*area\s*:\s*\"?([0-9.eE+-]+)\"?\s*;", re.MULTILINE)
_NAND2 = re.compile(r"(?:^|_)nand2(?:_|x|$)", re.IGNORECASE)
_FLIP_FLOP = re.compile(r"^\s*ff(?:_bank)?\s*\(", re.MULTILINE)
_LIBRARY = re.compile(r"^\s*library\s*\(", re.MULTILINE)
_TIME_UNIT = re.compile(r"^\s*time_unit\s*:\s*\"?\s*([0-9.]+\s*[a-z]+)", re.MULTILINE)
_TOKEN = re.compile(r"[{};]|/\*.*?\*/|\"[^\"]*\"", re.DOTALL)
_HEAD = re.compile(r"(cell|type|\w+_template)\s*\(\s*\"?([^\")\s]+)\"?\s*\)\s*{")
_OUTSIDE_GROUPS = re.compile(r"/\*.*?\*/|\"[^\"]*\"", re.DOTALL)


@dataclass(frozen=True)
class Library:
    """Cells that a design is mapped to.

    Attributes
    ----------
    files:
        All of its Liberty files, unpacked; the cells of every one are used.
    merged:
        One Liberty file with the cells of all, at a path of its own for every content.
    digest:
        SHA-256 over their contents.
    gate:
        Area of the smallest two-input NAND: one gate equivalent.
    time_unit:
        Of the first file, such as `1ns`.
    """

    files: tuple[Path, ...]
    merged: Path
    digest: str
    gate: float
    time_unit: str

    @property
    def name(self) -> str:
        """The files' names."""
        return " + ".join(path.stem for path in self.files)


def read_library(files: Sequence[Path]) -> Library:
    """Check Liberty files and return what they make together.

    Raises
    ------
    PoblanoError
        If a file cannot be read or is no whole Liberty file, or together they lack a two-input
        NAND or a flip-flop.
    """
    if not files:
        raise PoblanoError("a library must have a Liberty file; got none")
    paths = tuple(unpacked(path) for path in files)
    texts = [_text(path) for path in paths]
    for path, text in zip(paths, texts, strict=True):
        _check_whole(path, text)
    gate = gate_area(paths)
    names = ", ".join(path.name for path in paths)
    if not any(map(_FLIP_FLOP.search, texts)):
        raise PoblanoError(
            f"a library must have a flip-flop (a cell with an ff group); got {names}"
        )
    units = [re.sub(r"\s", "", match[1]) for match in map(_TIME_UNIT.search, texts) if match]
    if len(set(units)) != 1:
        got = " and ".join(sorted(set(units))) or "none"
        raise PoblanoError(f"{names}: the files of a library must agree on a time_unit; got {got}")
    digest = hashlib.sha256("".join(map(_digest, paths)).encode()).hexdigest()
    return Library(paths, _merged(digest, paths, texts), digest, gate, units[0])


def find_liberty(name: str) -> Path:
    """Return an unpacked library of the folder that POBLANO_LIBERTY_DIR names.

    Parameters
    ----------
    name:
        The file's name without `.lib` or `.lib.gz`, with its folder inside that folder if any.

    Raises
    ------
    PoblanoError
        If the variable is not set, or the folder has no such file or one that cannot be read.
    """
    folder = os.environ.get(VARIABLE)
    if not folder:
        raise PoblanoError(f"{VARIABLE} must name a folder with {name}.lib or .lib.gz; got nothing")
    for suffix in (".lib", ".lib.gz"):
        path = Path(folder, name + suffix)
        if path.is_file():
            return unpacked(path)
    raise PoblanoError(f"{VARIABLE} must name a folder with {name}.lib or .lib.gz; got {folder}")


def unpacked(path: Path) -> Path:
    """Return the path of a Liberty file as plain text, unpacked into the build folder if need be.

    Raises
    ------
    PoblanoError
        If the file is missing or its package cannot be read.
    """
    if not path.is_file():
        raise PoblanoError(f"{path}: a Liberty file must be there; got no such file")
    if path.suffix != ".gz":
        return path.resolve()
    try:
        content = gzip.decompress(path.read_bytes())
    except (OSError, EOFError) as error:
        raise PoblanoError(f"{path}: must be a readable gzip file; got {error}") from None
    target = build_root() / "liberty" / _digest(path)[:12] / path.stem
    _write(target, content)
    return target


def gate_area(liberty: Sequence[Path]) -> float:
    """Return the area of the smallest two-input NAND.

    Raises
    ------
    PoblanoError
        If no library has one.
    """
    areas = [
        area for path in liberty for name, area in _cell_areas(_text(path)) if _NAND2.search(name)
    ]
    if not areas:
        names = ", ".join(path.name for path in liberty) or "no file"
        raise PoblanoError(f"a library must have a two-input NAND (nand2 in its name); got {names}")
    return min(areas)


def _merged(digest: str, paths: Sequence[Path], texts: Sequence[str]) -> Path:
    """Write one library with the cells of all files; ABC cannot use a first file of few cells."""
    target = build_root() / "liberty" / f"{digest[:12]}.lib"
    if target.is_file():
        return target
    groups = dict(_groups(texts[0]))
    added: list[str] = []
    for path, text in zip(paths[1:], texts[1:], strict=True):
        for head, group in _groups(text):
            known = groups.setdefault(head, group)
            if known is group:
                added.append(group)
            elif not head.startswith("cell") and known.split() != group.split():
                raise PoblanoError(
                    f"{path}: {head} must be the same in every file of a library; got another"
                )
    end = texts[0].rindex("}")
    _write(target, "\n".join((texts[0][:end], *added, "}\n")).encode())
    return target


def _groups(text: str) -> Iterator[tuple[str, str]]:
    """Yield head and text of the cells, templates and types of a library."""
    depth, begin = 0, 0
    for token in _TOKEN.finditer(text):
        if token[0] == "{":
            depth += 1
        elif token[0] == "}":
            depth -= 1
            if depth == 1:
                statement = text[begin : token.end()].lstrip()
                match = _HEAD.match(statement)
                if match:
                    yield f"{match[1]}({match[2]})", statement
        if depth == 1 and token[0][0] in "{};/":
            begin = token.end()


def _write(target: Path, content: bytes) -> None:
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_suffix(f".{os.getpid()}")
        unfinished.write_bytes(content)
        unfinished.replace(target)


def _cell_areas(text: str) -> Iterator[tuple[str, float]]:
    cells = list(_CELL.finditer(text))
    for cell, following in zip(cells, [*cells[1:], None], strict=True):
        found = _AREA.search(text, cell.end(), following.start() if following else len(text))
        if found:
            yield cell[1], float(found[1])


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_whole(path: Path, text: str) -> None:
    """Raise if the text is no library, or a group of it has no end or no beginning."""
    if not _LIBRARY.search(text):
        raise PoblanoError(f"{path}: a Liberty file must hold a library group; got none")
    groups = _OUTSIDE_GROUPS.sub(lambda match: "\n" * match[0].count("\n"), text)
    if groups.count("{") == groups.count("}"):
        return
    open_lines: list[int] = []
    for number, line in enumerate(groups.splitlines(), start=1):
        for mark in re.findall(r"[{}]", line):
            if mark == "{":
                open_lines.append(number)
            elif open_lines:
                open_lines.pop()
            else:
                raise PoblanoError(
                    f"{path}:{number}: every group of a Liberty file must begin and end; "
                    "got an end without a beginning"
                )
    raise PoblanoError(
        f"{path}:{open_lines[-1]}: every group of a Liberty file must begin and end; "
        "got one without an end"
    )
