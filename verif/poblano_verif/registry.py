"""Every block that can be emitted alone and tested: its variants and its bench.

Importing this module imports no Amaranth; the factories do when they are called.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from poblano_golden.errors import PoblanoError

if TYPE_CHECKING:
    from poblano.component import Component

__all__ = ["BLOCKS", "Block", "Variant", "block", "component", "find", "names"]

BOTH = ("verilator", "icarus")


@dataclass(frozen=True)
class Variant:
    """One set of parameters of a block.

    Parameters
    ----------
    make:
        Returns a new component.
    simulators:
        Those that its bench runs on.
    nightly:
        Whether it runs only in the nightly tests.
    environment:
        Variables for its bench.
    limit:
        Wall seconds that a run of its bench may take.
    """

    make: Callable[[], Component]
    simulators: tuple[str, ...] = BOTH
    nightly: bool = False
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    limit: float = 600.0


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
    """

    name: str
    summary: str
    variants: Mapping[str, Variant]
    bench: str = ""
    hierarchical: tuple[str, ...] = ()

    @property
    def bench_module(self) -> str:
        """The name of the cocotb module."""
        return self.bench or f"poblano_verif.benches.{self.name}"

    @property
    def default(self) -> str:
        """The name of the default variant."""
        return next(iter(self.variants))


def lazy(path: str, **parameters: Any) -> Callable[[], Component]:
    """Return a factory that imports `module:class` when it is called."""

    def make() -> Component:
        module, _, name = path.partition(":")
        return getattr(importlib.import_module(module), name)(**parameters)

    return make


def _slice(preset: str) -> Callable[[], Component]:
    def make() -> Component:
        from poblano.config import load
        from poblano.slice import Slice

        return Slice(configuration=load(preset))

    return make


def _table(*blocks: Block) -> dict[str, Block]:
    return {block.name: block for block in blocks}


BLOCKS: Mapping[str, Block] = _table(
    Block(
        "slice",
        "tensor engine, L1 and host port",
        {
            "tiny": Variant(_slice("tiny"), simulators=("verilator",)),
            "bench": Variant(_slice("bench"), simulators=("verilator",), nightly=True),
        },
    ),
)
"""Every block by name."""


def block(name: str) -> Block:
    """Return the block of that name.

    Raises
    ------
    PoblanoError
        If there is none.
    """
    if name not in BLOCKS:
        raise PoblanoError(f"a block must be one of {', '.join(BLOCKS)}; got {name!r}")
    return BLOCKS[name]


def find(name: str) -> tuple[Block, str]:
    """Return the block and the variant that `NAME` or `NAME:VARIANT` stands for.

    Raises
    ------
    PoblanoError
        If there is no such block or variant.
    """
    wanted, colon, variant = name.partition(":")
    found = block(wanted)
    variant = variant if colon else found.default
    if variant not in found.variants:
        raise PoblanoError(
            f"a variant of {wanted} must be one of {', '.join(found.variants)}; got {variant!r}"
        )
    return found, variant


def component(name: str) -> Component:
    """Return a new component for `NAME` or `NAME:VARIANT`."""
    found, variant = find(name)
    return found.variants[variant].make()


def names() -> list[str]:
    """Return `NAME:VARIANT` of every variant of every block."""
    return [f"{name}:{variant}" for name, found in BLOCKS.items() for variant in found.variants]
