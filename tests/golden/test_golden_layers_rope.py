"""Rotary embedding and YaRN: published figures, and what a rotation must preserve."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poblano_golden.layers.rope import Rope, frequencies
from poblano_golden.layers.yarn import Yarn

GPT_OSS = Yarn(base=150000.0, original=4096, factor=32.0, truncate=False)
DEEPSEEK = Yarn(base=10000.0, original=4096, factor=40.0, mscale=1.0, mscale_all_dim=1.0)
KIMI = Yarn(base=50000.0, original=4096, factor=64.0, mscale=1.0, mscale_all_dim=1.0)


def test_case_c6():
    """The ramp's ends are not rounded; rounded, pair 17 would turn 1.8 times as fast."""
    assert GPT_OSS.ramp(64) == pytest.approx((8.0928, 17.3980), abs=1e-4)
    assert GPT_OSS.frequencies(64)[17] == pytest.approx(1.293e-4, abs=1e-7)
    rounded = Yarn(base=150000.0, original=4096, factor=32.0, truncate=True)
    assert rounded.ramp(64) == (8, 18)
    assert rounded.frequencies(64)[17] == pytest.approx(2.279e-4, abs=1e-7)


@pytest.mark.parametrize(
    ("yarn", "ramp"),
    [
        (DEEPSEEK, (10, 23)),
        (KIMI, (8, 20)),
        (Yarn(base=50000.0, original=4096, factor=32.0, beta_fast=1.0), (19, 20)),
        (Yarn(base=100.0, original=4096, factor=2.0), (20, 46)),
        (Yarn(base=100.0, original=10**9, factor=2.0), (63, 63)),
        (Yarn(base=150000.0, original=6, factor=2.0), (0, 0)),
    ],
    ids=["deepseek", "kimi", "kimi k2 with equal betas", "high", "past the end", "below 0"],
)
def test_ramps_of_64_elements(yarn, ramp):
    low, high = yarn.ramp(64)
    assert (low, high) == ramp
    plain, found = frequencies(64, yarn.base), yarn.frequencies(64)
    share = (plain - found) / (plain - plain / yarn.factor)
    for pair in range(32):
        expected = float(pair > low) if low == high else (pair - low) / (high - low)
        assert share[pair] == pytest.approx(min(max(expected, 0), 1), abs=1e-9)


def test_the_whole_ramp_of_deepseek_in_loops():
    found = DEEPSEEK.frequencies(64)
    for pair in range(32):
        plain = 10000.0 ** (-pair / 32)
        share = min(max((pair - 10) / 13, 0), 1)
        assert found[pair] == pytest.approx(plain * (share / 40 + 1 - share), rel=1e-14)


def test_factors():
    """Of GPT-OSS on sine and cosine; of DeepSeek and Kimi, squared, on the softmax's scale."""
    assert GPT_OSS.rope_factor == pytest.approx(0.1 * math.log(32) + 1)
    assert GPT_OSS.softmax_factor == 1
    assert DEEPSEEK.rope_factor == KIMI.rope_factor == 1
    assert DEEPSEEK.softmax_factor == pytest.approx((0.1 * math.log(40) + 1) ** 2)
    assert KIMI.softmax_factor == pytest.approx(1.4158883**2)
    lopsided = Yarn(base=10000.0, original=4096, factor=40.0, mscale=0.5, mscale_all_dim=1.0)
    assert lopsided.rope_factor == pytest.approx(1.1844440 / 1.3688879)
    one = Yarn(base=10000.0, original=4096, factor=1.0, mscale_all_dim=1.0)
    assert (one.rope_factor, one.softmax_factor) == (1, 1)
    np.testing.assert_allclose(one.frequencies(64), frequencies(64, 10000.0), rtol=1e-15)


def test_rotation_by_a_quarter_turn():
    """Of pairs of places: halves, or neighbours."""
    quarter = np.array([math.pi / 2, 0])
    x = np.array([[[1.0, 2, 3, 4]]])
    place = np.array([1])
    np.testing.assert_allclose(Rope(quarter, False).rotate(x, place), [[[-3, 2, 1, 4]]])
    np.testing.assert_allclose(Rope(quarter, True).rotate(x, place), [[[-2, 1, 3, 4]]])
    np.testing.assert_allclose(Rope(quarter, True, 2.0).rotate(x, place), [[[-4, 2, 6, 8]]])
    np.testing.assert_array_equal(Rope(quarter, True).rotate(x, place - 1), x)


def test_the_two_layouts_are_one_rotation():
    rng = np.random.default_rng(3)
    x, places = rng.standard_normal((5, 2, 16)), np.arange(5) * 1000
    turns = GPT_OSS.frequencies(16)
    halves = Rope(turns, False, 1.5).rotate(x, places)
    apart = [*range(0, 16, 2), *range(1, 16, 2)]
    neighbours = np.empty_like(x)
    neighbours[..., apart] = x
    np.testing.assert_array_equal(
        Rope(turns, True, 1.5).rotate(neighbours, places)[..., apart], halves
    )


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 131071), st.integers(0, 131071), st.integers(-1000, 1000), st.booleans(),
    st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_products_depend_on_the_distance_alone(first, second, shift, interleaved, seed):
    rope = Rope(DEEPSEEK.frequencies(32), interleaved)
    q, k = np.random.default_rng(seed).standard_normal((2, 1, 3, 32))

    def product(p, r):
        turned = rope.rotate(q, np.array([p])), rope.rotate(k, np.array([r]))
        return np.sum(turned[0] * turned[1], axis=2)

    np.testing.assert_allclose(
        product(first, second), product(first + shift, second + shift), atol=1e-8
    )
    np.testing.assert_allclose(product(first, first), np.sum(q * k, axis=2), atol=1e-8)


def test_a_nan_stays_in_its_pair():
    x = np.ones((2, 1, 8))
    x[1, 0, 1] = np.nan
    nan = np.isnan(Rope(frequencies(8, 10.0), False).rotate(x, np.arange(2)))
    assert np.argwhere(nan).tolist() == [[1, 0, 1], [1, 0, 5]]
    nan = np.isnan(Rope(frequencies(8, 10.0), True).rotate(x, np.arange(2)))
    assert np.argwhere(nan).tolist() == [[1, 0, 0], [1, 0, 1]]


def test_no_tokens():
    empty = Rope(frequencies(8, 10.0), False).rotate(np.zeros((0, 2, 8)), np.arange(0))
    assert empty.shape == (0, 2, 8)


ROPE = Rope(frequencies(8, 10.0), False)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda: frequencies(7, 10.0), "dim must be even and at least 2, not 7"),
        (lambda: frequencies(0, 10.0), "dim must be even and at least 2, not 0"),
        (lambda: frequencies(8, 1.0), "base must be above 1, not 1"),
        (lambda: Rope(np.zeros(0), False), "frequencies must be [pairs], not [0]"),
        (
            lambda: ROPE.rotate(np.zeros((3, 1, 6)), np.arange(3)),
            "x must be [tokens, heads, 8], not [3, 1, 6]",
        ),
        (
            lambda: ROPE.rotate(np.zeros((3, 0, 8)), np.arange(3)),
            "x must be [tokens, heads, 8], not [3, 0, 8]",
        ),
        (
            lambda: ROPE.rotate(np.zeros((3, 1, 8)), np.arange(2)),
            "positions must be [3], not [2]",
        ),
        (
            lambda: ROPE.rotate(np.zeros((3, 1, 8)), np.zeros(3)),
            "positions must be a numpy array of int64, not float64",
        ),
        (
            lambda: ROPE.rotate(np.zeros((3, 1, 8), np.float32), np.arange(3)),
            "x must be a numpy array of float64, not float32",
        ),
        (lambda: Yarn(10.0, 4096, 0.5), "factor must be at least 1, not 0.5"),
        (lambda: Yarn(10.0, 4096, math.nan), "factor must be at least 1, not nan"),
        (lambda: Yarn(1.0, 4096, 2.0), "base must be above 1, not 1"),
        (lambda: Yarn(10.0, 0, 2.0), "original must be at least 1, not 0"),
        (lambda: Yarn(10.0, 4096, 2.0, beta_slow=0.0), "beta_slow must be above 0, not 0"),
    ],
)
def test_bad_input_is_refused_by_name(action, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        action()
