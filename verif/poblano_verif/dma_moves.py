"""Tests of moves that both halves of the DMA engine pass; their benches import them."""

from __future__ import annotations

import itertools
import mmap
import os
from typing import Any

import cocotb
import numpy as np
from cocotbext.axi import AxiRamRead, AxiRamWrite, AxiReadBus, AxiWriteBus

from poblano_verif.axi_lite import pauses
from poblano_verif.axi_memory import Behaviour
from poblano_verif.dma_bench import DmaBench
from poblano_verif.dma_workload import (
    WINDOW,
    plain_move,
    put_indices,
    random_move,
    rows_command,
    scattered_command,
)

__all__ = [
    "LIMIT",
    "boundaries_of_bursts",
    "commands_in_flight",
    "ends_of_both_memories",
    "every_alignment",
    "indices_of_every_kind",
    "random_moves",
    "stalls_of_l1",
    "uneven_memory",
]

LIMIT = 2_000_000_000
"""Simulation steps that a test may take."""

_SHARE = float(os.environ.get("POBLANO_BENCH_SHARE", "1"))


def count(usual: int) -> int:
    """Return how many of `usual` cases this run takes; at least one."""
    return max(1, round(usual * _SHARE))


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def every_alignment(dut: Any) -> None:
    """Every pair of offsets in a beat and in a line, with lengths of up to three lines."""
    bench = DmaBench(dut, Behaviour(latency=3))
    await bench.start()
    pairs = list(itertools.product(range(bench.width), range(bench.line)))
    for lane, offset in bench.random.sample(pairs, min(len(pairs), count(1024))):
        length = bench.random.randint(1, 3 * bench.line)
        hbm, l1 = 64 * bench.width + lane, 8 * bench.line + offset
        await bench.check([rows_command(bench, hbm=hbm, l1=l1, length=length)])


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def random_moves(dut: Any) -> None:
    """Rows, planes and indices at random places, each exactly as long as the contract says."""
    bench = DmaBench(dut, Behaviour())
    await bench.start()
    for latency in (1, 64):
        await bench.reset(behaviour=Behaviour(latency=latency))
        for _ in range(count(60)):
            await bench.check([random_move(bench)])


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def boundaries_of_bursts(dut: Any) -> None:
    """Rows longer than a burst and rows around 4 KiB; none crosses, and none is cut elsewhere."""
    bench = DmaBench(dut, Behaviour())
    await bench.start()
    await bench.check([rows_command(bench, hbm=0, l1=0, length=0x2000)])
    lengths = [burst.beats * bench.width for burst in bench.rules.bursts]
    window = min(4096, 256 * bench.width)
    assert lengths == [window] * (0x2000 // window), lengths
    cases = itertools.product((-2, -1, 0, 1), (1, 2, bench.width + 1, 4096, 4099, 9000), (0, 5))
    for start, length, l1 in bench.random.sample(list(cases), count(48)):
        await bench.check([rows_command(bench, hbm=8192 + start, l1=l1, length=length)])


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def indices_of_every_kind(dut: Any) -> None:
    """Repeated indices, 0 and the largest, lists across lines and at L1's end."""
    bench = DmaBench(dut, Behaviour(), origin=-WINDOW)
    await bench.start()
    stride = 255
    top = min((1 << 32) - 1, (bench.slice.hbm.port_bytes - 100) // stride)
    bench.hbm.origin = top * stride - WINDOW + 100
    size = len(bench.l1)
    low = -bench.hbm.origin
    for rows in (1, 2, 17, 40)[: count(4)]:
        places = [top - bench.random.choice((0, 0, 1, 100)) for _ in range(rows)]
        indices = size - 4 * rows
        put_indices(bench, indices, places)
        await bench.check(
            [
                scattered_command(
                    bench,
                    hbm=low + 3,
                    l1=5,
                    length=90,
                    rows=rows,
                    hbm_row_stride=stride,
                    l1_row_stride=97,
                    indices=indices,
                )
            ]
        )
    put_indices(bench, 0, [0] * 20)
    values = {"hbm": 100, "l1": 1000, "length": 33, "rows": 20, "l1_row_stride": 33}
    await bench.check([scattered_command(bench, **values, hbm_row_stride=1 << 39, indices=0)])


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def ends_of_both_memories(dut: Any) -> None:
    """Rows that end with the last byte of HBM, of L1, or of both."""
    bench = DmaBench(dut, Behaviour(), origin=-WINDOW)
    await bench.start()
    size = len(bench.l1)
    for length, rows in ((1, 1), (64, 3), (4097, 2), (5000, 1))[: count(4)]:
        end = {"hbm": WINDOW - rows * length, "l1": size - rows * length}
        strides = {"hbm_row_stride": length, "l1_row_stride": length}
        await bench.check([rows_command(bench, **end, length=length, rows=rows, **strides)])


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def commands_in_flight(dut: Any) -> None:
    """Commands one behind the other: in order, and as fast as one command of all their rows."""
    bench = DmaBench(dut, Behaviour())
    await bench.start()
    whole = rows_command(bench, hbm=0, l1=0, length=0x4000)
    words = [rows_command(bench, hbm=at, l1=at, length=0x800) for at in range(0, 0x4000, 0x800)]
    issued = await bench.check(words, exactly=False)
    total = issued[-1].done - issued[0].accepted - 1
    bursts = 0x4000 // min(4096, 256 * bench.width)
    if len(words) == bursts or bench.slice.hbm.outstanding >= len(words):
        assert total == bench.contract(whole), (total, bench.contract(whole))
    for _ in range(count(10)):
        first = random_move(bench, bench.random.choice((30, 300)))
        await bench.check([first, *(plain_move(bench) for _ in range(12))], exactly=False)


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def stalls_of_l1(dut: Any) -> None:
    """L1 keeps the engine waiting, the ideal memory does not."""
    bench = DmaBench(dut, Behaviour(latency=4))
    await bench.start()
    for pause in (0.3, 0.8):
        bench.scratchpad.pause = pause
        for _ in range(count(8)):
            await bench.check([random_move(bench, 600), plain_move(bench)], exactly=False)


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def uneven_memory(dut: Any) -> None:
    """Another model of the memory, with pauses on every channel, and L1 with some of its own."""
    bench = DmaBench(dut, l1_pause=0.3)
    memory = mmap.mmap(-1, WINDOW)
    memory[:] = bench.hbm.data.tobytes()
    bench.hbm.data = np.frombuffer(memory, np.uint8)
    clock, reset = (bench.dut.ports[name].handle for name in ("clk", "rst"))
    if bench.is_load:
        reads = AxiRamRead(AxiReadBus.from_prefix(dut, "axi_"), clock, reset, mem=memory)
        channels = [reads.ar_channel, reads.r_channel]
    else:
        writes = AxiRamWrite(AxiWriteBus.from_prefix(dut, "axi_"), clock, reset, mem=memory)
        channels = [writes.aw_channel, writes.w_channel, writes.b_channel]
    await bench.start()
    for pattern in itertools.product((0.0, 0.5, 0.9), repeat=len(channels)):
        for channel, pause in zip(channels, pattern, strict=True):
            channel.set_pause_generator(pauses(bench.own_random(), pause))
        for _ in range(count(2)):
            await bench.check([random_move(bench, 500), plain_move(bench)], exactly=False)
