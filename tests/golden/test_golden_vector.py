"""Chains of the vector engine, and the sums that it takes of rows."""

import math
from fractions import Fraction

import golden_exact as exact
import numpy as np
import pytest

from poblano_golden import elementary, fp32, reductions, vector
from poblano_golden.vector import NUMBERS, OPERATIONS, Chain, chained, from_bytes, to_bytes

RNG = np.random.default_rng(20)
F32 = np.float32


def numbers(*shape, spread=3.0):
    return (RNG.standard_normal(shape) * spread).astype(F32)


def run(chain, a, *, b=None, c=None, p=None, q=None, valid=None):
    rows = a.shape[0]
    zero, row = np.zeros_like(a), np.zeros((rows, 1), F32)
    valid = np.ones(a.shape, bool) if valid is None else valid
    given = (b, c, p, q)
    rest = (x if x is not None else z for x, z in zip(given, (zero, zero, row, row), strict=True))
    return chained(chain, a, valid, *rest)


def same(found, expected):
    np.testing.assert_array_equal(found.view(np.uint32), expected.astype(F32).view(np.uint32))


def test_a_chain_at_rest_hands_its_elements_on():
    a = numbers(3, 7)
    same(run(Chain(), a), a)


OPERATED = {
    "pass": lambda x, _: x,
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "subtract_from": lambda x, y: y - x,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "select": lambda x, y: np.where(x >= y, x, F32(-7)),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_both_operations(name):
    a, b = numbers(4, 9), numbers(4, 9)
    b[0] = a[0]
    expected = OPERATED[name](a, b)
    same(run(Chain(operation1=name, operand1="b", fill=F32(-7)), a, b=b), expected)
    same(run(Chain(operation2=name, operand2="b", fill=F32(-7)), a, b=b), expected)


def test_a_rotation_of_halves_is_two_passes():
    """x1 cos - x2 sin: the second product joins what the first pass stored."""
    x1, x2, cos, sin = (numbers(5, 8) for _ in range(4))
    first = run(Chain(factor1="b"), x2, b=sin)
    same(
        run(Chain(factor1="b", operation1="subtract", operand1="c"), x1, b=cos, c=first),
        x1 * cos - x2 * sin,
    )


def test_a_rotation_of_pairs_is_one_pass():
    """Neighbours (x, y) turn into x cos - y sin and y cos + x sin."""
    x, angle = numbers(3, 10), RNG.random((3, 5))
    cos = np.repeat(np.cos(angle), 2, axis=1).astype(F32)
    sin = np.stack([-np.sin(angle), np.sin(angle)], axis=2).reshape(3, 10).astype(F32)
    chain = Chain(factor1="b", left2="pair", factor2="c", operation2="add", operand2="m1")
    swapped = x.reshape(3, 5, 2)[:, :, ::-1].reshape(3, 10)
    same(run(chain, x, b=cos, c=sin), swapped * sin + x * cos)


def test_a_last_column_alone_is_paired_with_zero():
    same(run(Chain(left2="pair"), numbers(2, 1)), np.zeros((2, 1)))


def test_swiglu_is_one_pass():
    gate, up = numbers(2, 11), numbers(2, 11)
    chain = Chain(function="sigmoid", factor2="a", operation2="pass")
    silu = run(chain, gate)
    same(silu, fp32.multiply(elementary.sigmoid(gate), gate))
    same(run(Chain(factor1="b"), silu, b=up), silu * up)


def test_elements_outside_the_valid_columns_are_filled():
    valid = vector.valid_columns(3, 6, limit=1, limit_step=2, window=3)
    assert valid.astype(int).tolist() == [
        [1, 0, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0],
        [0, 0, 1, 1, 1, 0],
    ]
    a = numbers(3, 6)
    same(run(Chain(fill=F32(-np.inf)), a, valid=valid), np.where(valid, a, -np.inf))


@pytest.mark.parametrize("name", NUMBERS)
def test_elements_return_from_memory(name):
    number = NUMBERS[name]
    x = to_bytes(numbers(4, 13, spread=50.0), number)
    assert x.shape == (4, 13 * number.size)
    np.testing.assert_array_equal(to_bytes(from_bytes(x, number), number), x)


def test_a_softmax_is_two_passes():
    x = numbers(4, 300, spread=80.0)
    scale = {"factor1": "constant", "constant1": F32(math.log2(math.e))}
    statistics = Chain(**scale, reduction="softmax")
    reference, total = vector.reduced(statistics, run(statistics, x), lanes=16, ways=4)
    chain = Chain(
        **scale,
        operation1="subtract",
        operand1="p",
        function="exp2",
        factor2="reciprocal_q",
    )
    found = run(chain, x, p=reference[:, None], q=total[:, None]).astype(np.float64)
    expected = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    expected /= expected.sum(axis=1, keepdims=True)
    # an argument of 300 log2(e) is rounded in its 16th bit below the point
    np.testing.assert_allclose(found, expected, rtol=5e-5, atol=1e-30)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=2e-6)


# ---- sums


def test_a_sum_of_several_ways_takes_beats_in_turn():
    x = numbers(3, 37)
    for lanes, ways in ((1, 4), (4, 2), (4, 4), (16, 4)):
        beats = -(-x.shape[1] // lanes)
        padded = np.zeros((3, beats * lanes), F32)
        padded[:, : x.shape[1]] = x
        found = np.zeros((3, ways), F32)
        for beat in range(beats):
            level = padded[:, beat * lanes : (beat + 1) * lanes]
            while level.shape[1] > 1:
                level = level[:, ::2] + level[:, 1::2]
            found[:, beat % ways] += level[:, 0]
        while found.shape[1] > 1:
            found = found[:, ::2] + found[:, 1::2]
        same(reductions.total(x, lanes, ways), found[:, 0])


def test_ways_must_be_a_power_of_two():
    with pytest.raises(ValueError, match=r"^ways must be a power of two, not 3$"):
        reductions.total(numbers(1, 4), 4, 3)


def exact_power_sum(row, lanes):
    """Follow the definition in rational numbers: 2**x only as the table gives it."""
    significand, exponent = elementary.power_parts(row)
    reference, total = -(1 << 15), 0
    for start in range(0, len(row), lanes):
        beat = range(start, min(start + lanes, len(row)))
        largest = max([reference, *(int(exponent[i]) for i in beat)])
        total = math.floor(Fraction(total, 1 << (largest - reference)))
        for i in beat:
            term = 0 if np.isneginf(row[i]) else int(significand[i]) << 9
            total += math.floor(Fraction(term, 1 << (largest - int(exponent[i]))))
        reference = largest
    return reference, exact.binary32(Fraction(total, 1 << 36)) if total else 0


@pytest.mark.parametrize("lanes", [1, 2, 4, 16])
@pytest.mark.parametrize("spread", [0.3, 20.0, 3000.0])
def test_a_sum_of_powers_is_as_defined(lanes, spread):
    x = numbers(6, 45, spread=spread)
    x[2, 5:30] = -np.inf
    x[3] = x[3, 0]
    x[4, 0] = 30000.0
    x[5, 44] = 40000.0
    reference, total = reductions.power_sum(x, lanes)
    for row in range(len(x)):
        expected = exact_power_sum(x[row], lanes)
        assert int(reference[row]) == expected[0]
        assert int(total[row : row + 1].view(np.uint32)[0]) == expected[1]


def test_a_sum_of_powers_is_near_the_true_one():
    x = numbers(8, 1024, spread=6.0)
    reference, total = reductions.power_sum(x, 16)
    true = np.exp2(x.astype(np.float64) - reference[:, None]).sum(axis=1)
    np.testing.assert_allclose(total, true, rtol=2.0**-23)


def test_sums_of_powers_of_special_numbers():
    inf, nan = np.inf, np.nan
    x = np.array([[-inf, -inf], [nan, 0], [0, inf], [-4e4, -1e30]], F32)
    reference, total = reductions.power_sum(x, 2)
    assert reference[0] == -32768
    assert total[:1].view(np.uint32)[0] == 0
    assert (reference[1:3].view(np.uint32) == fp32.NAN_BITS).all()
    assert (total[1:3].view(np.uint32) == fp32.NAN_BITS).all()
    assert (reference[3], total[3]) == (-32768, F32(2))


def test_parts_of_powers_reach_beyond_binary32():
    x = np.array([0, -0.5, 1000.25, -1000.25, 1e9, -1e9], F32)
    significand, exponent = elementary.power_parts(x)
    assert exponent.tolist() == [0, -1, 1000, -1001, 32767, -32768]
    assert ((significand >= 1 << 27) & (significand < 1 << 28)).all()
    fraction = x[:4].astype(np.float64) - exponent[:4]
    np.testing.assert_allclose(significand[:4] * 2.0**-27, 2.0**fraction, rtol=2e-8)
