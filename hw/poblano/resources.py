"""Where presets and other files beside the code lie: in the wheel, or in the source tree."""

from __future__ import annotations

from pathlib import Path

__all__ = ["constraints", "preset_paths"]


def constraints() -> Path:
    """Return the folder of presets, waivers and technology files.

    An installed wheel carries it as `poblano/_constraints`; in a source tree it is `constraints`.

    Raises
    ------
    FileNotFoundError
        If neither is there.
    """
    package = Path(__file__).resolve().parent
    for folder in (package / "_constraints", package.parents[1] / "constraints"):
        if (folder / "presets").is_dir():
            return folder
    raise FileNotFoundError(f"the folder of presets is missing beside {package}; reinstall poblano")


def preset_paths() -> dict[str, Path]:
    """Return the presets by name, in alphabetical order."""
    return {path.stem: path for path in sorted((constraints() / "presets").glob("*.yaml"))}
