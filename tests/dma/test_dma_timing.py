"""The timing contract keeps the rates that the engine promises; benches hold the RTL to it."""

from __future__ import annotations

from random import Random

import pytest

from poblano.commands import by_mnemonic
from poblano.config import load
from poblano.dma.timing import bursts_of_row, num_beats

BENCH = load("bench", []).slice
MANY_BURSTS = load("bench", ["slice.hbm.outstanding=64"]).slice

EXTRA = {"load.rows": 7, "store.rows": 8}
"""Cycles of a one-beat row beside the memory's latency."""


def cycles(mnemonic, latency=64, **values):
    command = by_mnemonic(mnemonic)
    return command.cycles(BENCH, command.complete({"hbm": 0, "l1": 0, **values}), latency=latency)


@pytest.mark.parametrize("mnemonic", EXTRA)
@pytest.mark.parametrize("latency", [1, 64, 200])
def test_a_long_aligned_row_takes_a_cycle_a_beat(mnemonic, latency):
    for beats in (1, 2, 64, 65, 10_000):
        found = cycles(mnemonic, length=64 * beats, latency=latency)
        assert found == EXTRA[mnemonic] + latency + beats


@pytest.mark.parametrize("mnemonic", EXTRA)
def test_an_unaligned_row_loses_three_cycles_at_most(mnemonic):
    random = Random(1)
    for _ in range(200):
        place = {"hbm": random.randrange(5000), "l1": random.randrange(500)}
        aligned = cycles(mnemonic, length=64 * 1000)
        assert cycles(mnemonic, length=64 * 1000, **place) <= aligned + 3


@pytest.mark.parametrize("mnemonic", EXTRA)
def test_short_rows_take_about_a_cycle_a_beat(mnemonic):
    for hbm_stride, l1_stride in ((90, 90), (96, 96), (4096, 90), (100, 128), (90, 96)):
        for start in (0, 5, 60):
            values = {"length": 90, "rows": 1000, "l1": start}
            found = cycles(mnemonic, **values, hbm_row_stride=hbm_stride, l1_row_stride=l1_stride)
            beats = sum(num_beats(row * hbm_stride, 90, 64) for row in range(1000))
            assert found - 64 <= 1.15 * beats, (hbm_stride, l1_stride, start, found, beats)


@pytest.mark.parametrize("name", ["load.gather", "store.scatter"])
def test_indices_are_read_while_beats_move(name):
    command = by_mnemonic(name)
    random = Random(2)
    values = {"hbm": 0, "l1": 0, "length": 128, "rows": 512, "indices": 60_000}
    values = command.complete({**values, "hbm_row_stride": 128, "l1_row_stride": 128})
    indices = [random.randrange(1 << 20) for _ in range(512)]
    assert command.cycles(MANY_BURSTS, values, indices) <= 64 + 2 * 512 + 10
    short = {**values, "length": 64}
    lines = 512 * 4 // BENCH.l1.line + 1
    assert command.cycles(MANY_BURSTS, short, indices, latency=1) <= 1 + 512 + 2 * lines + 8
    with pytest.raises(ValueError, match="indices must be 512, one a row, not 511"):
        command.cycles(BENCH, values, indices[1:])


@pytest.mark.parametrize("width", [1, 4, 16, 64, 128])
def test_bursts_keep_their_limits_and_miss_no_byte(width):
    random = Random(3)
    for _ in range(200):
        hbm, l1 = random.randrange(20_000), random.randrange(1000)
        length = random.randint(1, 20_000)
        at = hbm
        for address, place, size in bursts_of_row(hbm, l1, length, width):
            assert (address, place) == (at, l1 + at - hbm)
            assert size >= 1
            assert num_beats(address, size, width) <= 256
            assert address // 4096 == (address + size - 1) // 4096
            at += size
        assert at == hbm + length


def test_eight_kilobytes_on_sixteen_bytes_are_two_bursts():
    assert list(bursts_of_row(0, 0, 0x2000, 16)) == [(0, 0, 4096), (4096, 4096, 4096)]
