"""Random and extreme moves for either half of the DMA engine."""

from __future__ import annotations

from random import Random

from poblano_verif.dma_bench import DmaBench

__all__ = [
    "WINDOW",
    "plain_move",
    "put_indices",
    "random_move",
    "rows_command",
    "scattered_command",
]

WINDOW = 1 << 16
"""Bytes of HBM that moves use, unless a test says otherwise."""


def rows_command(bench: DmaBench, **values: int) -> bytes:
    """Return the word of the half's `rows`, `hbm` counted from the window's first byte."""
    values["hbm"] += bench.hbm.origin
    return bench.encode("load.rows" if bench.is_load else "store.rows", **values)


def scattered_command(bench: DmaBench, **values: int) -> bytes:
    """Return the word of the half's command by indices, `hbm` counted like that of `rows`."""
    values["hbm"] += bench.hbm.origin
    return bench.encode("load.gather" if bench.is_load else "store.scatter", **values)


def put_indices(bench: DmaBench, address: int, indices: list[int]) -> None:
    """Write indices into L1."""
    for number, index in enumerate(indices):
        for byte in range(4):
            bench.l1[address + 4 * number + byte] = index >> 8 * byte & 0xFF


def _length(random: Random, most: int) -> int:
    return random.choice((1, random.randint(1, 8), random.randint(1, 90), random.randint(1, most)))


def _stride(random: Random, room: int, steps: int, length: int) -> int:
    """Return a stride with which `steps` more steps fit into `room` bytes."""
    most = room // steps if steps else room
    return min(most, random.choice((0, length, length, random.randint(0, most), length + 1)))


def random_move(bench: DmaBench, most: int = 1500) -> bytes:
    """Return a random move of at most about `most` bytes inside the window.

    Indices lie in the last kilobyte of L1, which a load leaves alone.
    """
    random = bench.random
    if random.random() < 0.3:
        return _random_scattered(bench, most)
    length = _length(random, most)
    rows = random.randint(1, max(1, min(12, most // length)))
    planes = random.randint(1, max(1, min(4, most // (length * rows))))
    values = {"length": length, "rows": rows, "planes": planes}
    for side, size in (("l1", len(bench.l1) - 1024), ("hbm", len(bench.hbm.data))):
        room = size - length
        row = _stride(random, room // 2, rows - 1, length)
        plane = _stride(random, room // 2, planes - 1, length * rows)
        reach = (rows - 1) * row + (planes - 1) * plane
        values[side] = random.randint(0, room - reach)
        values[f"{side}_row_stride"] = row
        values[f"{side}_plane_stride"] = plane
    return rows_command(bench, **values)


def _random_scattered(bench: DmaBench, most: int) -> bytes:
    random = bench.random
    length = _length(random, most)
    rows = random.randint(1, max(1, min(40, most // length)))
    stride = random.choice((1, length, random.randint(1, 4096)))
    room = len(bench.hbm.data) - length
    hbm = random.randint(0, room)
    top = (room - hbm) // stride
    places = [random.choice((0, top, random.randint(0, top))) for _ in range(rows)]
    size = len(bench.l1)
    indices = size - 4 * random.randint(rows, 256)
    put_indices(bench, indices, places)
    row = _stride(random, size - 1024 - length, rows - 1, length)
    return scattered_command(
        bench,
        hbm=hbm,
        l1=random.randint(0, size - 1024 - length - (rows - 1) * row),
        length=length,
        rows=rows,
        hbm_row_stride=stride,
        l1_row_stride=row,
        indices=indices,
    )


def plain_move(bench: DmaBench) -> bytes:
    """Return a short move without indices, so that moves beside it change none."""
    random = bench.random
    length = random.randint(1, 100)
    return rows_command(
        bench,
        hbm=random.randrange(300),
        l1=random.randrange(300),
        length=length,
        rows=random.randint(1, 3),
        hbm_row_stride=random.randrange(200),
        l1_row_stride=random.randrange(200),
    )
