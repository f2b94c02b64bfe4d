"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from poblano_golden.errors import PoblanoError

if TYPE_CHECKING:
    from poblano.config import Configuration

__all__ = [
    "BlockOption",
    "ConfigOption",
    "OverrideOption",
    "PresetOption",
    "selected_configuration",
]

PresetOption = Annotated[
    str | None, typer.Option("--preset", "-p", metavar="NAME", help="A preset, such as bench.")
]
ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="A configuration file, YAML or JSON."),
]
BlockOption = Annotated[
    str | None,
    typer.Option("--block", "-b", metavar="NAME[:VARIANT]", help="One block of the registry."),
]
OverrideOption = Annotated[
    list[str] | None,
    typer.Option(
        "-P",
        metavar="KEY=VALUE",
        help="Override one value, such as slice.tensor.rows=8; may be repeated.",
    ),
]


def selected_configuration(
    preset: str | None, config: Path | None, overrides: list[str] | None
) -> Configuration | None:
    """Return the configuration that the shared options name; None if they name none.

    Raises
    ------
    PoblanoError
        If both are named, overrides stand alone, or the configuration cannot be taken.
    """
    from poblano.config import load

    if preset is not None and config is not None:
        raise PoblanoError(
            f"give one of --preset and --config; got --preset {preset} and --config {config}"
        )
    if preset is not None:
        return load(preset, overrides or ())
    if config is not None:
        return load(config, overrides or ())
    if overrides:
        raise PoblanoError(f"-P needs --preset or --config; got -P {overrides[0]} alone")
    return None
