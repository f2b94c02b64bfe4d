"""Latencies of the arithmetic in cycles; imports no Amaranth.

A beat is presented in cycle 0. A latency of n means that the result can be read in cycle n, that
is after n clock edges; 0 is combinational.
"""

from __future__ import annotations

from poblano.config import PipelineConfiguration

__all__ = ["accumulator_latency", "dot_latency", "unit_latency"]


def dot_latency(pipeline: PipelineConfiguration) -> int:
    """Cycles from a block's last beat to its exact sum at the outputs of `DotProduct`."""
    return pipeline.multiply + pipeline.sum


def accumulator_latency(pipeline: PipelineConfiguration) -> int:
    """Cycle, counted from a block's last beat, in which `TensorUnit` reads `accumulator`."""
    return dot_latency(pipeline) + pipeline.round


def unit_latency(pipeline: PipelineConfiguration) -> int:
    """Cycles from a block's last beat to `TensorUnit`'s `result`."""
    return accumulator_latency(pipeline) + pipeline.add
