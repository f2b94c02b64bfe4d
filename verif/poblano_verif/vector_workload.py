"""Random chains, passes and topks, with operands in L1 where they say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.random import default_rng
from numpy.typing import NDArray

from poblano.commands import CHAIN, PASS, TOPK
from poblano.config import SliceConfiguration
from poblano.vector.layout import (
    STORE_NONE,
    WORD,
    number_of,
    pass_operands,
    reduction_words,
    stored_as,
)
from poblano_golden.formats import num_blocks
from poblano_golden.vector import NUMBERS, REDUCTIONS, Number, to_bytes

__all__ = ["Room", "random_chain", "random_pass", "random_topk"]

Bytes = NDArray[np.uint8]


class Room:
    """Hands out places in L1, each after the one before.

    Parameters
    ----------
    l1, line:
        The memory, and bytes of a line.
    random:
        Source of gaps and alignment.
    aligned:
        Probability that an array begins with a line.
    """

    def __init__(self, l1: Bytes, line: int, random: Random, aligned: float = 0.5) -> None:
        self.l1 = l1
        self._line = line
        self._random = random
        self._aligned = aligned
        self._next = random.randrange(4 * line)

    def take(self, size: int, unit: int = 1) -> int:
        """Return the place of `size` bytes, a multiple of `unit`."""
        unit = self._line if self._random.random() < self._aligned else unit
        place = -(-self._next // unit) * unit
        self._next = place + size + self._random.choice((0, 0, self._random.randrange(70)))
        if self._next > len(self.l1):
            raise ValueError(f"{size} bytes must fit into L1")
        return place


def some_numbers(random: Random, shape: tuple[int, ...], spread: float) -> NDArray[np.float32]:
    """Return numbers around 0, some of them equal, 0, infinite or NaN."""
    rng = default_rng(random.getrandbits(64))
    x = (rng.standard_normal(shape) * spread).astype(np.float32)
    x[rng.random(shape) < 0.1] = np.float32(spread)
    x[rng.random(shape) < 0.03] = np.float32(-0.0)
    if random.random() < 0.2:
        x[rng.random(shape) < 0.02] = np.float32(-np.inf)
        x[rng.random(shape) < 0.01] = np.float32(np.nan)
    return x


def random_chain(random: Random, **given: int) -> dict[str, int]:
    """Return a legal chain; `given` are fields that are not random."""
    chain: dict[str, int] = {}
    for item in CHAIN.own_fields:
        if item.choices:
            chain[item.name] = random.choice(list(item.choices.values()))
        elif item.width == 32:
            number = np.float32(random.choice((0.0, 1.0, -2.5, random.gauss(0, 3))))
            chain[item.name] = int(number.view(np.uint32))
        else:
            chain[item.name] = int(random.random() < 0.2)
    if random.random() < 0.3:
        chain["d_format"] = STORE_NONE
    if random.random() < 0.5:
        chain["reduction"] = REDUCTIONS.index("none")
    chain |= given
    if REDUCTIONS[chain["reduction"]] == "softmax":
        bypasses = ("function", "left2", "factor2", "operation2")
        chain |= {name: 0 for name in bypasses if name not in given}
    return CHAIN.complete(chain)


@dataclass
class _Side:
    """A stream of a pass: its place and stride, and how many rows there are of it."""

    place: int
    stride: int
    rows: int


def _put_rows(room: Room, random: Random, rows: int, cols: int, number: Number) -> _Side:
    length = cols * number.size
    stride = random.choice((length, -(-length // 64) * 64, length + random.randrange(40)))
    place = room.take((rows - 1) * stride + length)
    spread = random.choice((0.5, 3.0, 40.0, 400.0))
    data = to_bytes(some_numbers(random, (rows, cols), spread), number)
    for row in range(rows):
        start = place + row * stride
        room.l1[start : start + length] = data[row]
    return _Side(place, stride, rows)


def _put_words(room: Room, words: NDArray[np.generic]) -> int:
    place = room.take(4 * len(words), WORD)
    room.l1[place : place + 4 * len(words)] = words.view(np.uint8)
    return place


def random_pass(
    configuration: SliceConfiguration,
    random: Random,
    room: Room,
    chain: Mapping[str, int],
    rows: int,
    cols: int,
) -> dict[str, int]:
    """Put operands into L1 and return the pass that takes them through a chain."""
    values = {"rows": rows, "cols": cols}
    operands = pass_operands(chain)
    count = rows
    if chain["indexed"]:
        count = random.randrange(1, rows + 4)
        indices = np.array([random.randrange(count) for _ in range(rows)], np.uint32)
        values["index"] = _put_words(room, indices)
    for name in "abc":
        if name != "a" and name not in operands:
            continue
        same = name != "a" and random.random() < 0.3
        number = number_of(chain[f"{name}_format"])
        side = _put_rows(room, random, 1 if same else count if name == "a" else rows, cols, number)
        values |= {name: side.place, f"{name}_row_stride": 0 if same else side.stride}
    for name in "pq":
        if name in operands:
            values[name] = _put_words(room, some_numbers(random, (rows,), 3.0))
    fmt = stored_as(chain)
    if isinstance(fmt, Number):
        length = cols * fmt.size
        unit = configuration.vector.lanes * fmt.size
        stride = random.choice((length, -(-length // unit) * unit, length + random.randrange(40)))
        place = room.take((rows - 1) * stride + length)
        a_size = number_of(chain["a_format"]).size
        if not chain["indexed"] and fmt.size <= a_size and random.random() < 0.2:
            place, stride = values["a"], values["a_row_stride"]  # results replace the elements
        values |= {"d_codes": place, "d_code_stride": stride}
    elif fmt is not None:
        blocks, column = num_blocks(cols), rows * fmt.block_bytes
        stride = column + random.choice((0, fmt.block_bytes, random.randrange(40)))
        scale_stride = rows + random.choice((0, random.randrange(5)))
        values |= {
            "d_codes": room.take((blocks - 1) * stride + column),
            "d_code_stride": stride,
            "d_scales": room.take(blocks * scale_stride),
            "d_scale_stride": scale_stride,
        }
    if reduction_words(chain):
        values["r"] = room.take(4 * rows * reduction_words(chain), WORD)
    if random.random() < 0.5:
        values["limit"] = random.randrange(-3, cols + 5) % (1 << 24)
        values["limit_step"] = random.choice((0, 1, 1, random.randrange(9)))
        values["window"] = random.choice((0, 1, random.randrange(cols + 3)))
    return PASS.complete(values)


def random_topk(random: Random, room: Room, rows: int, cols: int, k: int) -> dict[str, int]:
    """Put rows into L1 and return the topk of them."""
    number = random.choice(list(NUMBERS.values()))
    side = _put_rows(room, random, rows, cols, number)
    return TOPK.complete(
        {
            "a": side.place,
            "a_row_stride": side.stride,
            "a_format": number.code,
            "rows": rows,
            "cols": cols,
            "k": k,
            "values": room.take(4 * rows * k, WORD),
            "indices": room.take(4 * rows * k, WORD),
        }
    )
