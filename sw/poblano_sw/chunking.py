"""How the columns of a streamed product are cut into chunks."""

from __future__ import annotations

import math
from collections.abc import Sequence

from poblano.commands import CommandError
from poblano.config import SliceConfiguration
from poblano.dma.timing import MEMORY_LATENCY
from poblano.tensor.timing import Timeline
from poblano_golden.formats import BLOCK_SIZE
from poblano_sw.streamed_matmul import Product, StreamedMatmul

__all__ = ["plan_streamed", "predicted_cycles"]


def plan_streamed(
    configuration: SliceConfiguration, product: Product, *, l1_size: int, hbm: int = 0
) -> StreamedMatmul:
    """Cut a product into the chunks that are predicted to take the fewest cycles.

    Few large chunks waste the beginning, in which only the port works, and the end, in which
    results leave; many small ones waste cycles between commands. So chunks grow, as the port
    gets ahead, and shrink at the end; the best of several such sequences is taken.

    Parameters
    ----------
    configuration:
        The slice.
    product:
        What is multiplied.
    l1_size:
        Bytes of L1 that may be used, from address 0.
    hbm:
        HBM address on port 0 at which the product begins.

    Raises
    ------
    CommandError
        If not even chunks of one unit of columns fit L1.
    """
    tensor = configuration.tensor
    unit = math.lcm(tensor.cols, BLOCK_SIZE)
    best: tuple[int, StreamedMatmul] | None = None
    smallest = 0
    costs: dict[int, tuple[int, int]] = {}
    for chunks in _sequences(product.n, unit):
        plan = None
        for buffers in range(min(len(chunks), 4), 0, -1):
            candidate = StreamedMatmul(configuration, product, chunks, buffers, hbm)
            if candidate.l1_end <= l1_size:
                plan = candidate
                break
            smallest = min(smallest or candidate.l1_end, candidate.l1_end)
        if plan is not None:
            cycles = _predicted(plan, costs)
            if best is None or cycles < best[0]:
                best = (cycles, plan)
    if best is None:
        raise CommandError(
            f"a product's operand A, and chunks of B and D, must fit {l1_size} bytes of L1; "
            f"{product.m}x{product.k} by {product.k}x{product.n} takes at least {smallest}"
        )
    return best[1]


def predicted_cycles(plan: StreamedMatmul) -> int:
    """Return about how many cycles a plan takes, from the first issue to the last response."""
    return _predicted(plan, {})


def _sequences(columns: int, unit: int) -> set[tuple[int, ...]]:
    """Return sequences of chunks: growing from a first one, shrinking to a last one."""
    found: set[tuple[int, ...]] = set()
    units = -(-columns // unit)
    for first in (1, 2):
        for growth in (1.5, 1.9):
            for last in (1, 2):
                for largest in (1, 2, 4, 8, units):
                    up = _ramp(first, growth, largest, units)
                    down = _ramp(last, 2.0, largest, units)
                    found.add(_joined(up, down, units, unit, columns))
    return found


def _ramp(first: int, growth: float, largest: int, total: int) -> list[int]:
    sizes: list[int] = []
    size = float(first)
    while sum(sizes) < total:
        sizes.append(max(1, min(int(size), largest)))
        size *= growth
    return sizes


def _joined(
    up: Sequence[int], down: Sequence[int], units: int, unit: int, columns: int
) -> tuple[int, ...]:
    """Take from both ends in turn, the smaller one next, until all units are taken."""
    front: list[int] = []
    back: list[int] = []
    left = units
    while left:
        if len(front) <= len(back) or up[len(front)] <= down[len(back)]:
            front.append(min(left, up[len(front)]))
            left -= front[-1]
        else:
            back.append(min(left, down[len(back)]))
            left -= back[-1]
    sizes = [size * unit for size in (*front, *reversed(back))]
    sizes[-1] -= units * unit - columns
    return tuple(sizes)


_COMMAND = 8
"""Cycles from a semaphore's signal to the work of the command that waits for it, about."""


def _predicted(plan: StreamedMatmul, costs: dict[int, tuple[int, int]]) -> int:
    """Return about how many cycles a plan takes, from the first issue to the last response.

    `costs` keeps `_cost` by columns.
    """
    product, width = plan.product, plan.configuration.hbm.width
    free = 0
    loaded = MEMORY_LATENCY + _COMMAND + product.operand_bytes(product.a, product.m) // width
    stored = 0
    multiplied: list[int] = []
    emptied: list[int] = []
    for chunk, columns in enumerate(plan.chunks):
        begin = loaded
        if chunk >= plan.buffers:
            begin = max(begin, multiplied[chunk - plan.buffers] + MEMORY_LATENCY + _COMMAND)
        loaded = begin + product.operand_bytes(product.b, columns) // width
        may = loaded + _COMMAND
        if chunk >= plan.result_buffers:
            may = max(may, emptied[chunk - plan.result_buffers])
        if columns not in costs:
            costs[columns] = _cost(plan, chunk)
        cycles, next_after = costs[columns]
        accepted = max(free, may)
        free = accepted + next_after
        multiplied.append(accepted + 1 + cycles)
        beats = sum(product.result_bytes(columns)) // width + 2
        stored = max(stored, multiplied[-1]) + beats + _COMMAND
        loaded += beats  # the bus is shared
        emptied.append(stored + MEMORY_LATENCY)
    return emptied[-1]


def _cost(plan: StreamedMatmul, chunk: int) -> tuple[int, int]:
    """Return a chunk's cycles in the tensor engine, and how much later an equal one is done."""
    timeline = Timeline(plan.configuration)
    values = plan.matmul_values(chunk)
    first = timeline.run(values).cycles
    issue = timeline.ready
    return first, issue + timeline.run(values).cycles - first
