"""Reductions against loops over exact additions and comparisons."""

import functools
import itertools
import re

import golden_exact as exact
import numpy as np
import pytest

from poblano_golden import fp32, reductions

LENGTHS = (1, 2, 3, 4, 5, 15, 16, 17, 31, 33, 127, 129)
INFINITY, NAN = np.float32(np.inf), np.float32(np.nan)


def bits_of(x):
    return np.asarray(x).view(np.uint32)


def rows(length, seed=9):
    """Return rows whose sums depend on the order, some with infinities or NaN."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((6, length)) * 2.0 ** rng.integers(-12, 13, (6, length))
    x = x.astype(np.float32)
    x[3, rng.integers(length)] = INFINITY
    x[4, rng.integers(0, length, 2)] = INFINITY, -INFINITY
    x[5, rng.integers(length)] = np.uint32(0xFFC12345).view(np.float32)
    return x


def tree(terms):
    """Return the sum of bits by halves of a power of two of terms."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return exact.add32(tree(terms[:half]), tree(terms[half:]))


def sum_of_beats(row, lanes):
    terms = [int(b) for b in bits_of(row)]
    terms += [0] * (-len(terms) % lanes)
    beats = [tree(terms[i : i + lanes]) for i in range(0, len(terms), lanes)]
    return functools.reduce(exact.add32, beats, 0)


@pytest.mark.parametrize(("length", "lanes"), [*itertools.product(LENGTHS, (1, 4, 16))])
def test_sum_is_a_tree_of_neighbours_then_beats(length, lanes):
    x = rows(length)
    expected = np.array([sum_of_beats(row, lanes) for row in x], np.uint32)
    np.testing.assert_array_equal(bits_of(reductions.total(x, lanes)), expected)
    np.testing.assert_array_equal(bits_of(reductions.total(x.T, lanes, axis=0)), expected)


def test_the_order_of_a_sum_matters():
    """Alone, a 1 is lost beside 2**24; what the tree has joined or cancelled before is not."""
    x = np.array([2.0**24, 1, -(2.0**24), 1, 2.0**24, 1, 1, 1], np.float32)
    found = [float(reductions.total(x, lanes)) - 2.0**24 for lanes in (1, 2, 4)]
    assert found == [0, 2, 4]


def test_sums_of_zeros_and_of_nothing_are_plus_zero():
    for length in (0, 1, 4, 5):
        assert bits_of(reductions.total(np.full(length, -0.0, np.float32), 4))[()] == 0


@pytest.mark.parametrize("length", LENGTHS)
def test_maximum_does_not_depend_on_the_order(length):
    x = rows(length)
    found = reductions.maximum(x)
    for row, largest in zip(x, found, strict=True):
        nan = np.isnan(row).any()
        expected = NAN if nan else max(row, key=lambda v: (v, not np.signbit(v)))
        assert bits_of(largest) == bits_of(expected)
    np.testing.assert_array_equal(bits_of(reductions.maximum(x[:, ::-1])), bits_of(found))
    np.testing.assert_array_equal(bits_of(reductions.maximum(x.T, axis=0)), bits_of(found))


def test_maximum_of_nothing():
    np.testing.assert_array_equal(
        reductions.maximum(np.zeros((2, 0), np.float32)), [-INFINITY, -INFINITY]
    )


def key(value):
    """Return what orders a number: NaN above all, +0 above -0."""
    return (1, 0, 0) if np.isnan(value) else (0, float(value), not np.signbit(value))


TIES = np.array(
    [
        [1, 3, 3, 2, 3],
        [-1, -1, -1, -1, -1],
        [-0.0, 0, -0.0, 0, -1],
        [-INFINITY] * 5,
        [1, NAN, INFINITY, NAN, 2],
        [INFINITY, 5, INFINITY, -INFINITY, -0.0],
    ],
    np.float32,
)


@pytest.mark.parametrize("x", [TIES, rows(5), rows(33)], ids=["ties", "5", "33"])
def test_top_k_is_the_head_of_a_stable_sort(x):
    for k in range(1, x.shape[1] + 1):
        values, indices = reductions.top_k(x, k)
        for row, found, places in zip(x, values, indices, strict=True):
            expected = sorted(range(len(row)), key=lambda i: key(row[i]), reverse=True)
            assert list(places) == expected[:k]
            np.testing.assert_array_equal(bits_of(found), bits_of(fp32.canonical(row[places])))
    along_rows = reductions.top_k(x.T, 2, axis=0)
    for there, here in zip(along_rows, reductions.top_k(x, 2), strict=True):
        np.testing.assert_array_equal(there, here.T)


@pytest.mark.parametrize("x", [TIES, *(rows(n) for n in LENGTHS)], ids=len)
def test_argmax_is_the_first_largest(x):
    found = reductions.argmax(x)
    for row, place in zip(x, found, strict=True):
        assert place == max(range(len(row)), key=lambda i: (key(row[i]), -i))
    np.testing.assert_array_equal(reductions.argmax(x.T, axis=0), found)
    np.testing.assert_array_equal(
        bits_of(np.take_along_axis(fp32.canonical(x), found[:, None], 1)[:, 0]),
        bits_of(reductions.maximum(x)),
    )


def refused(message):
    return pytest.raises(ValueError, match=f"^{re.escape(message)}$")


def test_bad_input_is_refused_by_name():
    x = np.zeros(8, np.float32)
    with refused("lanes must be a power of two, not 3"):
        reductions.total(x, 3)
    with refused("lanes must be a power of two, not 0"):
        reductions.total(x, 0)
    for k in (0, 9):
        with refused(f"k must be 1 to 8, the elements of a row, not {k}"):
            reductions.top_k(x, k)
    with refused("k must be 1 to 0, the elements of a row, not 1"):
        reductions.argmax(x[:0])
    for reduction in (lambda y: reductions.total(y, 4), reductions.maximum, reductions.argmax):
        with refused("x must be a numpy array of float32, not float64"):
            reduction(np.zeros(8))
