"""Moves against byte-by-byte copies."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from poblano_golden.moves import Move, load, read_indices, store


def memories(seed=1):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, 4096, np.uint8), rng.integers(0, 256, 2048, np.uint8)


def random_move(random, l1):
    length, rows, planes = random.randint(1, 20), random.randint(1, 6), random.randint(1, 3)
    move = Move(
        hbm=random.randrange(500),
        l1=random.randrange(300),
        length=length,
        rows=rows,
        hbm_row_stride=random.randrange(100),
        l1_row_stride=random.randrange(40),
        planes=planes,
        hbm_plane_stride=random.randrange(500),
        l1_plane_stride=random.randrange(300),
    )
    numbers = list(range(rows))
    if random.random() < 0.5:
        numbers = [random.randrange(20) for _ in range(rows)]
        l1[1000 : 1000 + 4 * rows] = np.frombuffer(
            b"".join(number.to_bytes(4, "little") for number in numbers), np.uint8
        )
        move = Move(**{**vars(move), "indices": 1000})
    return move, numbers


def copied(move, numbers, source, target, *, to_l1):
    result = list(target)
    for plane in range(move.planes):
        for row, number in enumerate(numbers):
            for byte in range(move.length):
                hbm = move.hbm + plane * move.hbm_plane_stride + number * move.hbm_row_stride
                l1 = move.l1 + plane * move.l1_plane_stride + row * move.l1_row_stride
                if to_l1:
                    result[l1 + byte] = source[hbm + byte]
                else:
                    result[hbm + byte] = source[l1 + byte]
    return result


def test_moves_are_byte_copies():
    random = Random(1)
    hbm, l1 = memories()
    for _ in range(100):
        move, numbers = random_move(random, l1)
        before = hbm.copy(), l1.copy()
        assert load(move, hbm, l1).tolist() == copied(move, numbers, hbm, l1, to_l1=True)
        assert store(move, hbm, l1).tolist() == copied(move, numbers, l1, hbm, to_l1=False)
        assert (hbm == before[0]).all()
        assert (l1 == before[1]).all()


def test_addresses_count_from_the_origin():
    hbm, l1 = memories()
    near, far = Move(hbm=10, l1=20, length=30), Move(hbm=(1 << 39) + 10, l1=20, length=30)
    assert (load(near, hbm, l1) == load(far, hbm, l1, origin=1 << 39)).all()
    assert (store(near, hbm, l1) == store(far, hbm, l1, origin=1 << 39)).all()


def test_indices_are_little_endian_and_unsigned():
    l1 = np.array([9, 1, 2, 3, 4, 0xFF, 0xFF, 0xFF, 0xFF], np.uint8)
    assert read_indices(l1, 1, 2).tolist() == [0x04030201, 0xFFFFFFFF]


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ({"l1": 2040}, r"a row must lie in 0\.\.2048, not 2040\.\.2050"),
        ({"hbm": 4090}, r"a row must lie in 0\.\.4096, not 4090\.\.4100"),
        ({"hbm": 50, "origin": 60}, r"a row must lie in 0\.\.4096, not -10\.\.0"),
    ],
)
def test_a_row_outside_is_refused(place, message):
    hbm, l1 = memories()
    given = {"hbm": 100, "l1": 0, "length": 10, "origin": 0, **place}
    origin = given.pop("origin")
    for run in (load, store):
        with pytest.raises(ValueError, match=message):
            run(Move(**given), hbm, l1, origin=origin)
