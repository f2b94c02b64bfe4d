"""Every block that can be emitted alone and tested, by `NAME` or `NAME:VARIANT`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from poblano_golden.errors import PoblanoError
from poblano_verif.block_table import BLOCKS
from poblano_verif.block_types import Block, Variant

if TYPE_CHECKING:
    from poblano.component import Component

__all__ = ["BLOCKS", "Block", "Variant", "block", "component", "find", "names"]


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
