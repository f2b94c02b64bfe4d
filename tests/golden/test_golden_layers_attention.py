"""Attention against loops; windows, sinks, rows that see nothing, NaN, sequences of no tokens."""

import math
import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poblano_golden.layers.attention import attention, visible
from poblano_golden.layers.grouped_query import GroupedQueryAttention, Projection
from poblano_golden.layers.rope import Rope, frequencies
from poblano_golden.layers.softmax import softmax


def random_qkv(queries, keys, heads=4, kv_heads=2, dim=8, v_dim=6, seed=1):
    rng = np.random.default_rng(seed)
    shapes = ((queries, heads, dim), (keys, kv_heads, dim), (keys, kv_heads, v_dim))
    return [rng.standard_normal(shape) for shape in shapes]


def loops(q, k, v, scale, mask, sinks=None):
    """Return attention one query, head and key at a time."""
    queries, heads, _ = q.shape
    group = heads // k.shape[1]
    out = np.zeros((queries, heads, v.shape[2]))
    for i in range(queries):
        for h in range(heads):
            seen = [j for j in range(len(k)) if mask[i, j]]
            powers = [math.exp(scale * float(q[i, h] @ k[j, h // group])) for j in seen]
            total = sum(powers) + (math.exp(sinks[h]) if sinks is not None else 0)
            for j, power in zip(seen, powers, strict=True):
                out[i, h] += power / total * v[j, h // group]
    return out


@pytest.mark.parametrize("with_sinks", [False, True])
@pytest.mark.parametrize(
    ("queries", "keys", "heads", "kv_heads", "window"),
    [(7, 7, 4, 2, None), (7, 7, 4, 4, 3), (3, 9, 6, 1, 4), (1, 12, 4, 2, 1), (5, 5, 1, 1, 99)],
)
def test_against_loops(queries, keys, heads, kv_heads, window, with_sinks):
    q, k, v = random_qkv(queries, keys, heads, kv_heads)
    sinks = np.linspace(-3, 3, heads) if with_sinks else None
    mask = visible(queries, keys, window)
    found = attention(q, k, v, 0.3, mask, sinks)
    np.testing.assert_allclose(found, loops(q, k, v, 0.3, mask, sinks), rtol=1e-12, atol=1e-15)


def test_case_c1():
    """A window of 128 holds 128 keys, the query's own among them."""
    (seen,) = np.nonzero(visible(201, 201, 128)[200])
    assert (seen[0], seen[-1], seen.size) == (73, 200, 128)


@pytest.mark.parametrize("queries", [0, 1, 7, 40])
@pytest.mark.parametrize("window", [None, 1, 2, 16, 39, 40, 41])
def test_visible_is_causal_and_ends_with_the_last_key(queries, window):
    mask = visible(queries, 40, window)
    assert mask.shape == (queries, 40)
    for i in range(queries):
        position = 40 - queries + i
        first = 0 if window is None else max(0, position - window + 1)
        assert np.nonzero(mask[i])[0].tolist() == list(range(first, position + 1))


@pytest.mark.parametrize("sinks", [None, np.array([0.5, -0.5]), np.array([-np.inf, 800.0])])
def test_case_c3(sinks):
    """Four keys, all masked, or all logits -infinity: zeros, with sinks too."""
    q, k, v = random_qkv(2, 4, heads=2, kv_heads=1)
    nothing = np.zeros((2, 4), np.bool_)
    np.testing.assert_array_equal(attention(q, k, v, 1.0, nothing, sinks), np.zeros((2, 2, 6)))
    far = np.full_like(k, -np.inf)
    found = attention(np.abs(q), far, v, 1.0, ~nothing, sinks)
    np.testing.assert_array_equal(found, np.zeros((2, 2, 6)))


def test_one_masked_row_leaves_the_others():
    q, k, v = random_qkv(3, 3)
    mask = visible(3, 3)
    mask[1] = False
    found, expected = attention(q, k, v, 0.3, mask), attention(q, k, v, 0.3, visible(3, 3))
    np.testing.assert_array_equal(found[1], 0)
    np.testing.assert_array_equal(found[[0, 2]], expected[[0, 2]])


def test_a_sink_joins_the_sum_unscaled_and_is_dropped():
    q, k, v = np.zeros((1, 1, 8)), np.zeros((3, 1, 8)), np.ones((3, 1, 6))
    found = attention(q, k, v, 0.125, visible(1, 3), np.array([math.log(2)]))
    np.testing.assert_allclose(found, 3 / 5)
    gone = attention(q, k, v, 0.125, visible(1, 3), np.array([-np.inf]))
    np.testing.assert_allclose(gone, 1)


@pytest.mark.parametrize("which", ["k", "v"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_bad_kv_entry_stays_in_the_rows_that_see_it(which, value):
    q, k, v = random_qkv(20, 20)
    mask = visible(20, 20, 6)
    expected = attention(q, k, v, 0.3, mask)
    (k if which == "k" else v)[9, 1, 2] = value
    found = attention(q, k, v, 0.3, mask)
    reached = np.zeros((20, 4), bool)
    reached[9:15, 2:] = True
    np.testing.assert_array_equal(found[~reached], expected[~reached])
    differs = (found != expected).any(axis=2)
    assert differs[reached].all()
    if np.isnan(value):
        assert np.isnan(found[reached]).any(axis=1).all()


def test_a_nan_query_stays_in_its_head():
    q, k, v = random_qkv(4, 4)
    q[2, 1, 0] = np.nan
    nan = np.isnan(attention(q, k, v, 0.3, visible(4, 4))).all(axis=2)
    assert np.argwhere(nan).tolist() == [[2, 1]]


def test_no_tokens():
    q, k, v = random_qkv(0, 0)
    assert attention(q, k, v, 0.3, visible(0, 0)).shape == (0, 4, 6)
    q, k, v = random_qkv(0, 5)
    assert attention(q, k, v, 0.3, visible(0, 5)).shape == (0, 4, 6)
    q, k, v = random_qkv(3, 0)
    nothing = np.zeros((3, 0), np.bool_)
    np.testing.assert_array_equal(attention(q, k, v, 0.3, nothing), np.zeros((3, 4, 6)))


def test_large_logits_do_not_overflow():
    q, k, v = random_qkv(3, 3)
    with warnings.catch_warnings(record=True) as overflows:
        found = attention(q * 1e3, k, v, 1.0, visible(3, 3), np.array([-1e5, 0, 1e5, 0]))
    assert overflows == []
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found[:, 2], 0)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 9), st.integers(0, 9), st.integers(1, 12), st.booleans(),
    st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_decode_is_the_end_of_prefill(queries, before, window, with_sinks, seed):
    q, k, v = random_qkv(queries + before, queries + before, seed=seed)
    sinks = np.arange(4.0) if with_sinks else None
    whole = attention(q, k, v, 0.4, visible(len(q), len(k), window), sinks)
    end = attention(q[before:], k, v, 0.4, visible(queries, len(k), window), sinks)
    np.testing.assert_allclose(end, whole[before:], rtol=1e-13, atol=1e-15)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 9), st.floats(-50, 50), st.integers(0, 2**32 - 1))
def test_a_mean_of_equal_values_is_the_value(keys, sink, seed):
    """Without sinks; with them it is the value times the share that the sink leaves."""
    q, k, v = random_qkv(keys, keys, seed=seed)
    v[:] = v[0]
    mask = visible(keys, keys)
    values = v[:, [0, 0, 1, 1]]
    np.testing.assert_allclose(attention(q, k, v, 1.0, mask), values, rtol=1e-12)
    shares = attention(q, k, v, 1.0, mask, np.full(4, sink)) / values
    assert (shares >= 0).all()
    assert (shares <= 1 + 1e-12).all()
    np.testing.assert_allclose(shares, shares[..., :1] * np.ones(6), rtol=1e-9)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(-700, 700), min_size=1, max_size=9), st.floats(-100, 100))
def test_softmax_ignores_a_common_offset_and_sums_to_one(row, offset):
    x = np.array(row)
    found = softmax(x)
    assert found.sum() == pytest.approx(1)
    np.testing.assert_allclose(softmax(x + offset), found, rtol=1e-10, atol=1e-300)
    with_sink = np.concatenate((x, [0.25]))
    np.testing.assert_allclose(softmax(x, np.array(0.25)), softmax(with_sink)[:-1], rtol=1e-12)


def test_softmax_of_special_rows():
    inf = np.inf
    np.testing.assert_array_equal(softmax(np.zeros((2, 0))), np.zeros((2, 0)))
    np.testing.assert_array_equal(softmax(np.array([-inf, -inf])), [0, 0])
    np.testing.assert_array_equal(softmax(np.array([-inf, 3.0])), [0, 1])
    np.testing.assert_array_equal(softmax(np.array([4.0, 4.0])), [0.5, 0.5])
    rows = softmax(np.array([[1.0, np.nan], [1.0, inf], [1.0, 1.0]]))
    assert np.isnan(rows).all(axis=1).tolist() == [True, True, False]


def rows(count, inputs, seed):
    return np.random.default_rng(seed).standard_normal((count, inputs))


def test_projections_without_biases_and_sinks():
    """As in Llama: nine heads share three keys and values."""
    rope = Rope(frequencies(4, 100.0), False)
    maps = [Projection(rows(*shape, seed)) for seed, shape in
            enumerate([(36, 10), (12, 10), (12, 10), (10, 36)])]  # fmt: skip
    x = rows(5, 10, 9)
    q, k, v = ((x @ m.weight.T).reshape(5, -1, 4) for m in maps[:3])
    places = np.arange(5)
    heads = loops(rope.rotate(q, places), rope.rotate(k, places), v, 0.5, visible(5, 5))
    found = GroupedQueryAttention(*maps, rope)(x)
    np.testing.assert_allclose(found, heads.reshape(5, 36) @ maps[3].weight.T, rtol=1e-11)
    assert GroupedQueryAttention(*maps, rope)(x[:0]).shape == (0, 10)
    with pytest.raises(ValueError, match=r"^k must have heads x 4 rows, not 10$"):
        GroupedQueryAttention(maps[0], Projection(rows(10, 10, 0)), *maps[2:], rope)


def attend(queries=2, keys=3, heads=2, kv_heads=1, **changed):
    q, k, v = random_qkv(queries, keys, heads, kv_heads)
    arguments = {"q": q, "k": k, "v": v, "scale": 1.0, "mask": visible(queries, keys)}
    return attention(**(arguments | changed))


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda: visible(4, 3), "queries must be 0 to 3, the keys, not 4"),
        (lambda: visible(-1, 3), "queries must be 0 to 3, the keys, not -1"),
        (lambda: visible(3, 3, 0), "window must be at least 1, not 0"),
        (
            lambda: attend(heads=3, kv_heads=2),
            "heads must be a multiple of kv_heads: 3 and 2",
        ),
        (lambda: attend(k=np.zeros((3, 1, 7))), "k must be [keys, kv_heads, 8], not [3, 1, 7]"),
        (lambda: attend(v=np.zeros((2, 1, 6))), "v must be [3, 1, v_dim], not [2, 1, 6]"),
        (
            lambda: attend(q=np.zeros((2, 0, 8))),
            "q must be [queries, heads, dim], not [2, 0, 8]",
        ),
        (lambda: attend(mask=visible(3, 3)), "mask must be [2, 3], not [3, 3]"),
        (lambda: attend(mask=np.ones((2, 3))), "mask must be a numpy array of bool, not float64"),
        (lambda: attend(sinks=np.zeros(1)), "sinks must be [2], not [1]"),
        (
            lambda: softmax(np.zeros(3, np.float32)),
            "x must be a numpy array of float64, not float32",
        ),
    ],
)
def test_bad_input_is_refused_by_name(action, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        action()
