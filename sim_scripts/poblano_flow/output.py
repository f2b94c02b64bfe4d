"""Output folders that are whole or not there."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, cast

from poblano_golden.errors import PoblanoError

__all__ = ["MANIFEST", "check_replaceable", "digests", "is_whole", "write_file", "write_folder"]

MANIFEST = "manifest.json"
"""Written last, with the digest of every other file under `files`."""


def write_folder(folder: Path, files: Mapping[str, str | bytes], *, force: bool = False) -> None:
    """Write `files`, relative path to content, as the whole content of `folder`.

    Everything is written beside the folder first and then renamed, so that whoever finds the
    folder finds all of it. A folder of an earlier run is replaced.

    Raises
    ------
    PoblanoError
        If something is there that an earlier run did not write, unless `force` is given.
    OSError
        If a file cannot be written; nothing is left behind then.
    """
    folder = folder.resolve()
    check_replaceable(folder, force=force)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _scratch(folder, "new") as new, _scratch(folder, "old") as old:
            for name, content in files.items():
                path = new / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(_bytes(content))
            _swap(folder, new, old / folder.name)
    except OSError as error:
        error.filename, error.filename2 = str(folder), None  # not the scratch folder beside it
        raise


def write_file(path: Path, data: bytes) -> None:
    """Write a file; it appears whole or not at all.

    Raises
    ------
    OSError
        It cannot be written.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(0o666 & ~umask)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def check_replaceable(folder: Path, *, force: bool = False) -> None:
    """Raise what `write_folder` would raise about `folder` before it writes anything."""
    folder = folder.resolve()
    if Path.cwd().is_relative_to(folder):
        raise PoblanoError(
            f"{folder}: the output folder must not be the current folder or one above it; "
            f"got {folder}"
        )
    around = next(parent for parent in folder.parents if parent.exists())
    if not around.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(around))
    if not os.access(around, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(around))
    if not folder.exists() or force:
        return
    if not folder.is_dir():
        raise PoblanoError(f"{folder}: the output must be a folder; got a file (--force replaces)")
    present = sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()
    )
    if not present:
        return
    known = {MANIFEST, *_manifest_digests(folder)}
    foreign = [name for name in present if name not in known]
    if MANIFEST not in present or foreign:
        raise PoblanoError(
            f"{folder}: the output folder must be new, empty or an earlier emission; "
            f"got {(foreign or present)[0]} in it (--force replaces the folder)"
        )


def digests(files: Mapping[str, str | bytes]) -> dict[str, str]:
    """Return the SHA-256 of every file."""
    return {name: hashlib.sha256(_bytes(content)).hexdigest() for name, content in files.items()}


def is_whole(folder: Path) -> bool:
    """Whether `folder` holds a manifest and every file that it lists, unchanged."""
    listed = _manifest_digests(folder)
    return bool(listed) and all(
        (folder / name).is_file()
        and hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
        for name, digest in listed.items()
    )


def _bytes(content: str | bytes) -> bytes:
    return content if isinstance(content, bytes) else content.encode()


def _manifest_digests(folder: Path) -> dict[str, str]:
    try:
        manifest: Any = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    files: Any = cast("dict[str, Any]", manifest).get("files") if isinstance(manifest, dict) else {}
    return cast("dict[str, str]", files) if isinstance(files, dict) else {}


def _swap(folder: Path, new: Path, old: Path) -> None:
    """Rename `new` to `folder`, and what was there to `old`."""
    if not folder.exists():
        new.rename(folder)
        return
    folder.rename(old)
    try:
        new.rename(folder)
    except OSError:
        old.rename(folder)
        raise


@contextlib.contextmanager
def _scratch(folder: Path, purpose: str) -> Generator[Path]:
    path = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.{purpose}-"))
    umask = os.umask(0)
    os.umask(umask)
    path.chmod(0o777 & ~umask)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
