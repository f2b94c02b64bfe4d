"""From what a user names on the command line to a component and its emission."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from poblano.component import Component
from poblano.config import Configuration, load
from poblano.resources import preset_paths
from poblano_flow.emission import Emission, emit
from poblano_flow.options import selected_configuration
from poblano_golden.errors import PoblanoError

__all__ = ["Design", "every_design", "select"]


@dataclass(frozen=True)
class Design:
    """Something to emit.

    Attributes
    ----------
    label:
        A file name that tells this design from others.
    component:
        The outermost component.
    configuration:
        What the design was made from; None for a block alone.
    """

    label: str
    component: Component
    configuration: Configuration | None = None

    def emit(self) -> Emission:
        """Convert the design to Verilog."""
        return emit(self.component)


def select(
    preset: str | None, config: Path | None, overrides: list[str] | None, block: str | None
) -> Design:
    """Return the one design that the shared options name.

    Raises
    ------
    PoblanoError
        If they name none or several, or what they name cannot be taken.
    """
    configuration = selected_configuration(preset, config, overrides)
    if configuration is not None and block is None:
        return of_configuration(configuration)
    if configuration is None and block is not None:
        return of_block(block)
    given = "none" if block is None else f"--block {block} beside a configuration"
    raise PoblanoError(f"give one of --preset, --config and --block; got {given}")


def of_configuration(configuration: Configuration) -> Design:
    """Return the whole design of a configuration."""
    from poblano.slice import Slice

    label = f"{configuration.name}-{configuration.hash[:12]}"
    return Design(label, Slice(configuration=configuration), configuration)


def of_block(name: str) -> Design:
    """Return one block of the registry, `NAME` or `NAME:VARIANT`."""
    from poblano_verif import registry

    return Design(name.replace(":", "-"), registry.component(name))


def every_design() -> list[Design]:
    """Return every preset and every variant of every block that is hardware."""
    from poblano_verif import registry

    presets = [of_configuration(load(name)) for name in preset_paths()]
    hardware = [name for name in registry.names() if registry.find(name)[0].is_hardware]
    return [*presets, *map(of_block, hardware)]
