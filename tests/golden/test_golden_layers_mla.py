"""Latent attention: its two forms agree, the cache is what is said, and the scale has mscale."""

import dataclasses
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poblano_golden.layers.attention import visible
from poblano_golden.layers.mla import Mla, attend_absorbed, attend_naive
from poblano_golden.layers.rope import Rope
from poblano_golden.layers.yarn import Yarn

YARN = Yarn(base=10000.0, original=4096, factor=40.0, mscale=1.0, mscale_all_dim=1.0)
HIDDEN, Q_RANK, KV_RANK = 20, 14, 10


def make_mla(heads=3, nope=6, rope=8, v=5, seed=0, **changed):
    rng = np.random.default_rng(seed)
    shapes = {
        "q_a": (Q_RANK, HIDDEN),
        "q_norm": (Q_RANK,),
        "q_b": (heads * (nope + rope), Q_RANK),
        "kv_a": (KV_RANK + rope, HIDDEN),
        "kv_norm": (KV_RANK,),
        "kv_b": (heads * (nope + v), KV_RANK),
        "o": (HIDDEN, heads * v),
    }
    weights = {name: rng.standard_normal(shape) / 3 for name, shape in shapes.items()}
    turns = Rope(YARN.frequencies(rope), True, YARN.rope_factor)
    arguments = weights | {"heads": heads, "rope": turns, "softmax_factor": YARN.softmax_factor}
    return Mla(**(arguments | changed))


def tokens(count, seed=1):
    return np.random.default_rng(seed).standard_normal((count, HIDDEN))


@settings(max_examples=20, deadline=None)
@given(
    st.integers(0, 12), st.integers(1, 5), st.integers(1, 9), st.integers(1, 9),
    st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_naive_and_absorbed_forms_agree(count, heads, nope, v, seed):
    mla = make_mla(heads, nope, 4, v, seed)
    x = tokens(count, seed)
    naive, absorbed = mla(x), mla(x, attend_absorbed)
    assert naive.shape == absorbed.shape == (count, HIDDEN)
    np.testing.assert_allclose(absorbed, naive, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("attend", [attend_naive, attend_absorbed])
def test_one_head_by_hand(attend):
    """The last of four tokens: keys and values from the latent, written out."""
    mla = make_mla(heads=2)
    x, places = tokens(4), np.arange(4)

    def norm(y, weight):
        return y / np.sqrt(np.mean(y * y, axis=-1, keepdims=True) + 1e-6) * weight

    q = (norm(x @ mla.q_a.T, mla.q_norm) @ mla.q_b.T).reshape(4, 2, 14)[:, 1]
    latent = x @ mla.kv_a.T
    c = norm(latent[:, :10], mla.kv_norm)
    both = (c @ mla.kv_b.T).reshape(4, 2, 11)[:, 1]
    turned_q = mla.rope.rotate(q[:, None, 6:], places)[3, 0]
    turned_k = mla.rope.rotate(latent[:, None, 10:], places)[:, 0]
    mscale = 0.1 * np.log(40) + 1
    logits = (both[:, :6] @ q[3, :6] + turned_k @ turned_q) / np.sqrt(14) * mscale**2
    powers = np.exp(logits)
    expected = powers / powers.sum() @ both[:, 6:]
    found = attend(mla, mla.queries(x, places), mla.latents(x, places), visible(4, 4))
    np.testing.assert_allclose(found[3, 1], expected, rtol=1e-11)


@pytest.mark.parametrize("attend", [attend_naive, attend_absorbed])
def test_decode_from_the_cache(attend):
    """A token's cache entry is its latent and one turned key part, the same for all heads."""
    mla, x = make_mla(), tokens(9)
    parts = [mla.latents(x[i : i + 1], np.array([i])) for i in range(9)]
    cache = mla.latents(x, np.arange(9))
    for i, part in enumerate(parts):
        assert sum(array.size for array in part) == KV_RANK + 8
        for array, whole in zip(part, cache, strict=True):
            np.testing.assert_allclose(array[0], whole[i], rtol=1e-11)
    last = attend(mla, mla.queries(x[8:], np.array([8])), cache, visible(1, 9))
    np.testing.assert_allclose(last.reshape(1, -1) @ mla.o.T, mla(x)[8:], rtol=1e-10)


def test_the_norms_of_latents_have_an_epsilon_of_their_own():
    assert make_mla().epsilon == 1e-6
    x = tokens(3) * 1e-3
    other = make_mla(epsilon=1e-5)(x)
    assert np.abs(other / make_mla()(x) - 1).max() > 0.01


def test_softmax_factor_scales_the_logits():
    mla = make_mla()
    assert mla.scale == pytest.approx(14**-0.5 * 1.3688879**2)
    plain = dataclasses.replace(mla, softmax_factor=1.0)
    assert plain.scale == 14**-0.5


@pytest.mark.parametrize("attend", [attend_naive, attend_absorbed])
def test_a_nan_stays_in_the_tokens_that_see_it(attend):
    mla, x = make_mla(), tokens(7)
    expected = mla(x, attend)
    x[4, 3] = np.nan
    found = mla(x, attend)
    np.testing.assert_array_equal(found[:4], expected[:4])
    assert np.isnan(found[4:]).all()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"q_a": np.zeros((14, 0))}, "q_a must be [q_rank, hidden], not [14, 0]"),
        ({"q_norm": np.zeros(13)}, "q_norm must be [14], not [13]"),
        ({"kv_a": np.zeros((17, 20))}, "kv_a must be [18, 20], not [17, 20]"),
        ({"kv_b": np.zeros((32, 10))}, "kv_b must be [33, 10], not [32, 10]"),
        ({"o": np.zeros((20, 16))}, "heads must divide heads x v, 16, not 3"),
        ({"heads": 0}, "heads must divide heads x v, 15, not 0"),
        ({"q_b": np.zeros((43, 14))}, "q_b must have heads x (nope + rope) rows, not 43"),
        ({"q_b": np.zeros((24, 14))}, "q_b must have heads x (nope + rope) rows, not 24"),
    ],
)
def test_bad_input_is_refused_by_name(changed, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        dataclasses.replace(make_mla(), **changed)
