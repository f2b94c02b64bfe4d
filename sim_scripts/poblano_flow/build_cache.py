"""Simulation builds, kept by their content.

A build's folder is `build/sim/<simulator>/<label>-<key>`; the key is the digest of everything that
the build depends on. A marker file, written last, lists the digests of what the build produced: a
build that was killed, or whose files were damaged since, is made again. Processes that want the
same build wait for each other at a lock file beside the folder.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from filelock import FileLock

from poblano_golden.errors import PoblanoError

__all__ = [
    "BuildError",
    "Entry",
    "build_root",
    "cached",
    "empty_build_folder",
    "file_error",
    "recipe_key",
]

MARKER = "complete.json"
_FULL = "no space left on device"
_LEAST_ROOM = 1 << 16
"""Bytes; a tool that fails with less left on the disk failed for that, whatever it says."""


class BuildError(PoblanoError):
    """A simulation build failed; the message ends with what the tools said."""


@dataclass(frozen=True)
class Entry:
    """A whole build.

    Attributes
    ----------
    folder:
        Where it is.
    fresh:
        Whether this call made it.
    seconds:
        Wall time of making it, by whoever did.
    """

    folder: Path
    fresh: bool
    seconds: float


def build_root() -> Path:
    """Return the folder for everything generated: $POBLANO_BUILD_DIR, by default `build`."""
    return Path(os.environ.get("POBLANO_BUILD_DIR") or "build").resolve()


@contextlib.contextmanager
def empty_build_folder() -> Generator[Path]:
    """Let everything generated go to a new folder, in which nothing is kept from before."""
    before = os.environ.get("POBLANO_BUILD_DIR")
    with tempfile.TemporaryDirectory(prefix="poblano-empty-") as folder:
        os.environ["POBLANO_BUILD_DIR"] = folder
        try:
            yield Path(folder)
        finally:
            if before is None:
                del os.environ["POBLANO_BUILD_DIR"]
            else:
                os.environ["POBLANO_BUILD_DIR"] = before


def recipe_key(recipe: Mapping[str, Any]) -> str:
    """Return the digest of a recipe, 16 hexadecimal digits."""
    text = json.dumps(recipe, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def cached(
    simulator: str,
    label: str,
    recipe: Mapping[str, Any],
    make: Callable[[Path], Iterable[Path]],
) -> Entry:
    """Return the build of `recipe`; make it if it is not there whole.

    Parameters
    ----------
    simulator, label:
        Place the folder and make its name readable.
    recipe:
        Everything that the build depends on, as JSON data.
    make:
        Fills an empty folder and returns the files in it that a run needs.

    Raises
    ------
    PoblanoError
        If the folder cannot be written, or the disk is full.
    BuildError
        If `make` raises it.
    """
    folder = build_root() / "sim" / simulator / f"{label}-{recipe_key(recipe)}"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{folder}.lock"):
            seconds = _whole(folder)
            if seconds is not None:
                return Entry(folder, fresh=False, seconds=seconds)
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            started = time.monotonic()
            products = make(folder)
            seconds = time.monotonic() - started
            _mark(folder, recipe, products, seconds)
            return Entry(folder, fresh=True, seconds=seconds)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            shutil.rmtree(folder, ignore_errors=True)
        raise file_error(folder, error) from None
    except BuildError as error:
        if _FULL in str(error).lower() or shutil.disk_usage(folder).free < _LEAST_ROOM:
            shutil.rmtree(folder, ignore_errors=True)
            raise _disk_full(folder) from None
        raise


def file_error(folder: Path, error: OSError) -> PoblanoError:
    """Return what to tell the user about a place that cannot be written."""
    if error.errno == errno.ENOSPC:
        return _disk_full(folder)
    return PoblanoError(
        f"{folder}: the build folder must be writable; got {(error.strerror or str(error)).lower()}"
        " (POBLANO_BUILD_DIR names another place)"
    )


def _disk_full(folder: Path) -> PoblanoError:
    return PoblanoError(
        f"{folder}: a build needs room on the disk; got {_FULL} "
        "(POBLANO_BUILD_DIR names another place)"
    )


def _mark(
    folder: Path, recipe: Mapping[str, Any], products: Iterable[Path], seconds: float
) -> None:
    content = {
        "recipe": recipe,
        "seconds": seconds,
        "products": {str(path.relative_to(folder)): _digest(path) for path in products},
    }
    scratch = folder / f"{MARKER}.new"
    with scratch.open("w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(folder / MARKER)


def _whole(folder: Path) -> float | None:
    """Return the build time of a whole build, None for anything else."""
    try:
        content = cast("dict[str, Any]", json.loads((folder / MARKER).read_text("utf-8")))
        products = cast("dict[str, str]", content["products"])
        if all(_digest(folder / name) == digest for name, digest in products.items()):
            return float(content["seconds"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    return None


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
