"""What the registry knows of a block: its variants, and where its bench runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from poblano.component import Component

__all__ = ["Block", "Factory", "Variant"]

Factory = Callable[[], "Component"]


@dataclass(frozen=True)
class Variant:
    """One set of parameters of a block.

    Parameters
    ----------
    make:
        Returns a new component.
    simulators:
        Simulators that its bench runs on, and what the bench finds in its environment there.
    harness:
        Returns what the bench simulates, if that is more than the block alone.
    nightly:
        Whether it runs only in the nightly tests.
    limit:
        Wall seconds that a run of its bench may take.
    """

    make: Factory
    simulators: Mapping[str, Mapping[str, str]]
    harness: Factory | None = None
    nightly: bool = False
    limit: float = 600.0

    @property
    def simulated(self) -> Factory:
        """The factory of what the bench simulates."""
        return self.harness or self.make


@dataclass(frozen=True)
class Block:
    """A block of the hardware.

    Parameters
    ----------
    name, summary:
        Its name, and what it is in a few words.
    variants:
        Name to variant; the first is the default.
    bench:
        The cocotb module that tests it; by default `poblano_verif.benches.<name>`.
    hierarchical:
        Kinds of repeated modules that Verilator compiles apart.
    is_hardware:
        Whether it is; a model of what surrounds the hardware is simulated and not linted.
    """

    name: str
    summary: str
    variants: Mapping[str, Variant]
    bench: str = ""
    hierarchical: tuple[str, ...] = ()
    is_hardware: bool = True

    @property
    def bench_module(self) -> str:
        """The name of the cocotb module."""
        return self.bench or f"poblano_verif.benches.{self.name}"

    @property
    def default(self) -> str:
        """The name of the default variant."""
        return next(iter(self.variants))
