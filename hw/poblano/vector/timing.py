"""The vector engine's timing contract; imports no Amaranth."""

from __future__ import annotations

from collections.abc import Mapping

from poblano.config import SliceConfiguration

__all__ = ["chain_cycles", "pass_cycles", "topk_cycles"]


def chain_cycles(configuration: SliceConfiguration, values: Mapping[str, int]) -> int:
    """Return the cycles of a `vector.chain`."""
    return 1


def pass_cycles(
    configuration: SliceConfiguration, values: Mapping[str, int], chain: Mapping[str, int]
) -> int:
    """Return the cycles of a `vector.pass` with a chain, from issue to the last byte written."""
    beats = -(-values["cols"] // configuration.vector.lanes)
    return values["rows"] * beats + 24


def topk_cycles(configuration: SliceConfiguration, values: Mapping[str, int]) -> int:
    """Return the cycles of a `vector.topk`, from issue to the last byte written."""
    beats = -(-values["cols"] // configuration.vector.lanes)
    return values["rows"] * values["k"] * (beats + 12) + 12


def sum_ways(configuration: SliceConfiguration) -> int:
    return 4
