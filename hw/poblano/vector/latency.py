"""Latencies of a vector lane and of what follows it; imports no Amaranth."""

from __future__ import annotations

from poblano.config import VectorConfiguration, VectorPipelineConfiguration
from poblano.vector.function_places import FUNCTIONS, PARTS_PLACES, register_places

__all__ = [
    "NUMBER_LATENCY",
    "parts_latency",
    "result_latency",
    "s1_latency",
    "sum_ways",
]

NUMBER_LATENCY = 1
"""Cycles from an element to its number in binary32."""


def s1_latency(pipeline: VectorPipelineConfiguration) -> int:
    """Return the cycles from an element to s1."""
    return NUMBER_LATENCY + pipeline.multiply + pipeline.add


def parts_latency(pipeline: VectorPipelineConfiguration) -> int:
    """Return the cycles from an element to the parts of 2**s1."""
    places = register_places(FUNCTIONS)[: pipeline.function]
    return s1_latency(pipeline) + sum(place in PARTS_PLACES for place in places)


def result_latency(pipeline: VectorPipelineConfiguration) -> int:
    """Return the cycles from an element to s2."""
    return s1_latency(pipeline) + pipeline.function + pipeline.multiply + pipeline.add


def sum_ways(vector: VectorConfiguration) -> int:
    """Return the accumulators of a row's sum: one is used again when its addition is done."""
    return 1 << vector.pipeline.add.bit_length()
