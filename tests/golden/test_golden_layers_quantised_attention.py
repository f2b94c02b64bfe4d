"""What 8-bit attention loses: figures on random data, and which blocks an element disturbs."""

import re

import numpy as np
import pytest

from poblano_golden.formats import MX_FORMATS
from poblano_golden.layers.attention import attention, visible
from poblano_golden.layers.quantised_attention import (
    AttentionFormats,
    fake_quantise,
    quantised_attention,
    relative_rms,
)

QUERIES, KEYS, HEADS, KV_HEADS, DIM = 32, 256, 8, 2, 64
MASK = visible(QUERIES, KEYS, 128)
SCALE = DIM**-0.5


def normal_qkv(seed=0):
    rng = np.random.default_rng(seed)
    shapes = ((QUERIES, HEADS, DIM), (KEYS, KV_HEADS, DIM), (KEYS, KV_HEADS, DIM))
    return [rng.standard_normal(shape) for shape in shapes], rng.standard_normal(HEADS)


def all_in(name, weights=True, rule="round_up"):
    fmt = MX_FORMATS[name]
    return AttentionFormats(fmt, fmt, fmt, fmt if weights else None, rule)


LOSS = {
    "mxint8": (0.0139, 0.0204),
    "mxfp8_e4m3": (0.0452, 0.0502),
    "mxfp8_e5m2": (0.0895, 0.0997),
    "mxfp4": (0.1946, 0.2413),
}
"""Relative root mean square error on standard normal data: exact weights, quantised weights."""


@pytest.mark.parametrize("name", LOSS)
def test_loss_on_random_data(name):
    qkv, sinks = normal_qkv()
    expected = attention(*qkv, SCALE, MASK, sinks)
    for weights, loss in zip((False, True), LOSS[name], strict=True):
        found = quantised_attention(*qkv, SCALE, MASK, all_in(name, weights), sinks)
        assert relative_rms(found, expected) == pytest.approx(loss, abs=5e-5)


@pytest.mark.parametrize("seed", range(1, 4))
def test_loss_does_not_depend_on_the_seed(seed):
    qkv, sinks = normal_qkv(seed)
    expected = attention(*qkv, SCALE, MASK, sinks)
    for name, losses in LOSS.items():
        found = quantised_attention(*qkv, SCALE, MASK, all_in(name), sinks)
        assert relative_rms(found, expected) == pytest.approx(losses[1], rel=0.15)


def test_the_losses_of_the_operands_add_up_as_variances():
    """Each operand quantised alone: the loss of all is the root of the sum of their squares."""
    (q, k, v), _ = normal_qkv()
    expected = attention(q, k, v, SCALE, MASK)
    for name in ("mxint8", "mxfp8_e4m3"):
        fmt = MX_FORMATS[name]
        turned = np.moveaxis(v, 0, -1)
        parts = [
            relative_rms(attention(*qkv, SCALE, MASK), expected)
            for qkv in (
                (fake_quantise(q, fmt, "round_up"), k, v),
                (q, fake_quantise(k, fmt, "round_up"), v),
                (q, k, np.moveaxis(fake_quantise(turned, fmt, "round_up"), -1, 0)),
            )
        ]
        found = quantised_attention(q, k, v, SCALE, MASK, all_in(name, weights=False))
        assert relative_rms(found, expected) == pytest.approx(np.hypot.reduce(parts), rel=0.05)


@pytest.mark.parametrize("weights", [False, True])
def test_operands_that_formats_hold_lose_nothing(weights):
    """Small whole numbers, and logits whose weights are powers of two."""
    rng = np.random.default_rng(4)
    q = np.zeros((3, 2, 32))
    q[..., 0] = np.log(2)
    e4m3, int8 = MX_FORMATS["mxfp8_e4m3"], MX_FORMATS["mxint8"]
    formats = AttentionFormats(e4m3, e4m3, int8, int8 if weights else None, "floor")
    q = fake_quantise(q, formats.q, "floor")
    k = np.zeros((40, 1, 32))
    k[:, 0, 0] = rng.integers(0, 2, 40)
    v = rng.integers(-64, 64, (40, 1, 5)).astype(float)
    v[::32] = 64
    scale = np.log(2) / q[0, 0, 0]
    mask = visible(3, 40)
    found = quantised_attention(q, k, v, scale, mask, formats)
    np.testing.assert_allclose(found, attention(q, k, v, scale, mask), rtol=1e-12)


@pytest.mark.parametrize("weights", [False, True])
def test_an_outlier_disturbs_its_block_alone(weights):
    """A value's block is 32 keys of one element, a key's is 32 elements of one key."""
    (q, k, v), _ = normal_qkv()
    formats = all_in("mxint8", weights)
    mask = np.zeros((QUERIES, KEYS), bool)
    mask[:16, 30:64], mask[16:, 64:] = True, True
    plain = quantised_attention(q, k, v, SCALE, mask, formats)
    large = v.copy()
    large[40, 1, 5] = 1000
    changed = quantised_attention(q, k, large, SCALE, mask, formats) != plain
    assert changed[:16, 4:, 5].all()
    changed[:16, 4:, 5] = False
    assert not changed.any()
    large = k.copy()
    large[50, 1, 40] = 100
    lower_half = np.where(np.arange(DIM) < 32, q, 0)
    found = quantised_attention(lower_half, large, v, SCALE, mask, formats)
    plain = quantised_attention(lower_half, k, v, SCALE, mask, formats)
    np.testing.assert_array_equal(found, plain)
    assert relative_rms(found, attention(lower_half, large, v, SCALE, mask)) < 0.03


def test_what_is_masked_adds_nothing():
    (q, k, v), sinks = normal_qkv()
    mask = MASK.copy()
    mask[3] = False
    found = quantised_attention(q, k, v, SCALE, mask, all_in("mxint8"), sinks)
    np.testing.assert_array_equal(found[3], 0)
    others = np.delete(np.arange(QUERIES), 3)
    expected = attention(q, k, v, SCALE, mask, sinks)
    assert relative_rms(found[others], expected[others]) < 0.03
    empty = quantised_attention(q[:0], k[:0], v[:0], SCALE, visible(0, 0), all_in("mxint8"), sinks)
    assert empty.shape == (0, HEADS, DIM)


def refused(message):
    return pytest.raises(ValueError, match=f"^{re.escape(message)}$")


def test_bad_input_is_refused_by_name():
    with refused("relative_rms needs an expected value that is not 0"):
        relative_rms(np.zeros(3), np.zeros(3))
    (q, k, v), _ = normal_qkv()
    message = "what is quantised must be finite: NaN and infinity have no error to state"
    for array in (q, k, v):
        old, array[0, 0, 0] = array[0, 0, 0], np.nan
        with refused(message):
            quantised_attention(q, k, v, SCALE, MASK, all_in("mxint8"))
        array[0, 0, 0] = old
