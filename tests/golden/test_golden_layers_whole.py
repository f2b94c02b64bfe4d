"""Norm, whole layers and head: who reaches whom, no tokens, ties, bad input."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layer_vectors import NAMES, vectors

from poblano_golden.layers.layer import Head
from poblano_golden.layers.norm import rms_norm

NAN = np.nan


def test_rms_norm_of_known_rows():
    weight = np.array([1.0, 2])
    x = np.array([[3.0, 4], [0, 0], [-1e-9, 0]])
    found = rms_norm(x, weight, 1e-6)
    rms = np.sqrt(12.5 + 1e-6)
    np.testing.assert_allclose(found, [[3 / rms, 8 / rms], [0, 0], [-1e-6, 0]], rtol=1e-11)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 40), st.floats(1e-3, 1e3), st.integers(0, 2**32 - 1))
def test_rms_norm_makes_the_mean_square_one_at_any_scale(hidden, scale, seed):
    x = np.random.default_rng(seed).standard_normal((3, hidden)) * scale
    found = rms_norm(x, np.ones(hidden), 1e-300)
    np.testing.assert_allclose(np.mean(found**2, axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(found, rms_norm(x * 7, np.ones(hidden), 1e-300), rtol=1e-12)


def test_rms_norm_keeps_a_nan_in_its_row():
    x = np.ones((3, 4))
    x[1, 2] = NAN
    assert np.isnan(rms_norm(x, np.ones(4), 1e-5)).all(axis=1).tolist() == [False, True, False]


@pytest.mark.parametrize("name", NAMES)
def test_a_token_reaches_only_what_follows_it(name):
    """With a window only the next window - 1; rows that it does not reach keep their bits."""
    v = vectors(name)
    for layer in v.layers:
        x = np.random.default_rng(5).standard_normal((24, v.embedded.shape[1]))
        expected = layer.attention(x)
        x[10, 0] = NAN
        found = layer.attention(x)
        window = getattr(layer.attention, "window", None) or 24
        reached = np.zeros(24, bool)
        reached[10 : 10 + window] = True
        np.testing.assert_array_equal(found[~reached], expected[~reached])
        assert np.isnan(found[reached]).all()
        whole = layer(x)
        assert np.isnan(whole).any(axis=1).tolist() == reached.tolist()
        assert np.isnan(whole[reached]).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_shorter_prompt_is_the_beginning_of_a_longer_one(name):
    v = vectors(name)
    x, short = v.embedded, v.embedded[:11]
    for layer in v.layers:
        x, short = layer(x), layer(short)
    np.testing.assert_allclose(short, x[:11], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_no_tokens(name):
    v = vectors(name)
    x = v.embedded[:0]
    for layer in v.layers:
        x = layer(x)
        assert x.shape == (0, v.embedded.shape[1])
    assert v.head.logits(x).shape == (0, 48)
    assert v.head.token(x).shape == (0,)


def test_of_equal_logits_the_lowest_token_is_chosen():
    weight = np.array([[0.0, 0], [1, 1], [1, 1], [-1, 0], [1, 1]])
    head = Head(np.ones(2), weight, 1e-5)
    assert head.token(np.array([[1.0, 1], [-1, 1], [-2, -2], [-1, -2]])).tolist() == [1, 3, 3, 3]
    assert head.token(np.array([[0.0, 0]])).tolist() == [0], "all equal"
    assert head.token(np.array([[NAN, 0]])).tolist() == [0], "all NaN"


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda: rms_norm(np.zeros((2, 3)), np.ones(4), 1e-5), "x must be [tokens, 4], not [2, 3]"),
        (lambda: rms_norm(np.zeros((2, 0)), np.ones(0), 1e-5), "weight must be [hidden], not [0]"),
        (
            lambda: rms_norm(np.zeros((2, 3), np.float32), np.ones(3), 1e-5),
            "x must be a numpy array of float64, not float32",
        ),
        (lambda: rms_norm(np.zeros((2, 3)), np.ones(3), 0.0), "epsilon must be above 0, not 0"),
        (lambda: rms_norm(np.zeros((2, 3)), np.ones(3), NAN), "epsilon must be above 0, not nan"),
    ],
)
def test_bad_input_is_refused_by_name(action, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        action()
