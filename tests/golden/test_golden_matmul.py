"""The matrix product and the engine's results against exact rationals."""

import itertools
import time

import golden_exact as exact
import numpy as np
import pytest

from poblano_golden import fp32
from poblano_golden.blocks import MxTensor, dequantise, pack, quantise
from poblano_golden.dot import block_dot
from poblano_golden.formats import BF16, FP16, FP32, MX_FORMATS, MXFP4, MXFP8_E4M3, MXFP8_E5M2
from poblano_golden.matmul import block_results, matmul, result

PAIRS = list(itertools.product(exact.NAMES, exact.NAMES))


def operand(rng, rows, k, name, special=0.0):
    """Random codes under random scales near each other, with a share of NaNs and infinities."""
    spec = exact.SPECS[name]
    codes = rng.integers(0, 1 << spec.bits, (rows, k))
    unwanted = np.isin(codes, spec.nans + spec.infinities)
    codes[unwanted & (rng.random((rows, k)) >= special)] = 1
    scales = rng.integers(120, 134, (rows, -(-k // 32)))
    scales[rng.random(scales.shape) < special / 4] = 255
    return MxTensor(codes.astype(np.uint8), scales.astype(np.uint8), MX_FORMATS[name])


def expected(a, b):
    lists = [x.tolist() for t in (a, b) for x in (t.codes, t.scales)]
    return np.array(exact.matmul(*lists, a.fmt.name, b.fmt.name), np.uint32)


@pytest.mark.parametrize(("fa", "fb"), PAIRS)
def test_ragged_shapes(fa, fb):
    rng = np.random.default_rng(PAIRS.index((fa, fb)))
    for m, n, k in [(1, 1, 1), (3, 2, 31), (2, 3, 32), (1, 4, 65), (4, 1, 100)]:
        a, b = operand(rng, m, k, fa), operand(rng, n, k, fb)
        np.testing.assert_array_equal(matmul(a, b).view(np.uint32), expected(a, b))


@pytest.mark.parametrize(("fa", "fb"), PAIRS)
def test_special_numbers(fa, fb):
    rng = np.random.default_rng(100 + PAIRS.index((fa, fb)))
    for m, n, k in [(1, 6, 70), (6, 1, 70), (4, 4, 40)]:
        a, b = operand(rng, m, k, fa, 0.2), operand(rng, n, k, fb, 0.2)
        np.testing.assert_array_equal(matmul(a, b).view(np.uint32), expected(a, b))


def test_one_nan_spoils_one_row_or_column():
    rng = np.random.default_rng(12)
    a, b = operand(rng, 5, 96, "mxfp8_e4m3"), operand(rng, 7, 96, "mxfp8_e4m3")
    a.codes[2, 95] = 0x7F
    b.scales[3, 0] = 0xFF
    nan = np.isnan(matmul(a, b))
    assert nan[2].all()
    assert nan[:, 3].all()
    assert nan.sum() == 5 + 7 - 1


def test_scales_out_of_range_give_infinity_then_nan():
    """Blocks that overflow in opposite directions: infinity minus infinity is NaN."""
    codes = np.full((1, 64), 7, np.uint8)
    a = MxTensor(codes, np.full((1, 2), 254, np.uint8), MXFP4)
    mixed = codes.copy()
    mixed[0, 32:] |= 8
    assert matmul(a, a).view(np.uint32)[0, 0] == exact.POSITIVE_INFINITY
    assert matmul(a, MxTensor(mixed, a.scales, MXFP4)).view(np.uint32)[0, 0] == exact.NAN


def test_blocks_are_added_in_ascending_order():
    """2**24, then 1, then 1: each 1 is a tie to even and vanishes; descending they would not."""
    codes = np.zeros((1, 96), np.uint8)
    codes[0, ::32] = 2  # 1.0
    one = MxTensor(codes, np.full((1, 3), 127, np.uint8), MXFP4)
    down = MxTensor(codes, np.array([[151, 127, 127]], np.uint8), MXFP4)
    up = MxTensor(codes, np.array([[127, 127, 151]], np.uint8), MXFP4)
    assert matmul(down, one)[0, 0] == 2.0**24
    assert matmul(up, one)[0, 0] == 2.0**24 + 2


def test_no_result_is_minus_zero():
    codes = np.zeros((1, 64), np.uint8)
    codes[0, 0] = 10  # -1.0
    a = MxTensor(codes, np.zeros((1, 2), np.uint8), MXFP4)
    one = MxTensor(np.full((1, 64), 2, np.uint8), a.scales, MXFP4)
    assert block_results(a, one).view(np.uint32).ravel().tolist() == [0x80000000, 0]
    assert matmul(a, one).view(np.uint32)[0, 0] == 0


@pytest.mark.parametrize(("fa", "fb"), [("mxfp4", "mxfp8_e4m3"), ("mxfp8_e5m2", "mxfp8_e5m2")])
def test_agrees_with_block_dot_and_with_its_own_parts(fa, fb):
    rng = np.random.default_rng(13)
    a, b = operand(rng, 9, 128, fa, 0.01), operand(rng, 11, 128, fb, 0.01)
    blocks = block_results(a, b)
    assert blocks.shape == (4, 9, 11)
    total = np.zeros((9, 11), np.float32)
    for k in range(4):
        span = slice(32 * k, 32 * k + 32)
        dots = block_dot(
            a.codes[:, None, span], b.codes[None, :, span],
            a.scales[:, None, k], b.scales[None, :, k], a.fmt, b.fmt,
        )  # fmt: skip
        np.testing.assert_array_equal(blocks[k].view(np.uint32), dots.view(np.uint32))
        total = fp32.add(total, dots)
    np.testing.assert_array_equal(matmul(a, b).view(np.uint32), total.view(np.uint32))
    np.testing.assert_array_equal(matmul(b, a), matmul(a, b).T)
    part = MxTensor(a.codes[4:5], a.scales[4:5], a.fmt)
    np.testing.assert_array_equal(matmul(part, b)[0], matmul(a, b)[4])


@pytest.mark.parametrize(
    ("fa", "fb"),
    [(MXFP4, MXFP4), (MXFP8_E4M3, MXFP4), (MXFP8_E4M3, MXFP8_E4M3), (MXFP8_E5M2, MXFP8_E5M2)],
    ids=lambda f: f.name,
)
def test_a_layer_of_a_model(fa, fb, capsys):
    """16x576 by 576x1536: samples against exact arithmetic, the whole against float64."""
    rng = np.random.default_rng(14)
    a = quantise(rng.standard_normal((16, 576), dtype=np.float32), fa, "floor")
    b = quantise(rng.standard_normal((1536, 576), dtype=np.float32) / 24, fb, "even")
    start = time.perf_counter()
    d = matmul(a, b)
    elapsed = time.perf_counter() - start
    with capsys.disabled():
        print(f"\n16x576 by 576x1536, {fa.name} by {fb.name}: {elapsed * 1e3:.1f} ms")
    for m, n in zip(rng.integers(0, 16, 40), rng.integers(0, 1536, 40), strict=True):
        row = MxTensor(a.codes[m : m + 1], a.scales[m : m + 1], fa)
        col = MxTensor(b.codes[n : n + 1], b.scales[n : n + 1], fb)
        assert d[m, n].view(np.uint32) == expected(row, col)[0, 0]
    reference = dequantise(a) @ dequantise(b).T
    magnitudes = np.abs(dequantise(a)) @ np.abs(dequantise(b)).T
    assert (np.abs(d - reference) <= 36 * 2.0**-24 * magnitudes).all()


def test_results_of_every_format():
    rng = np.random.default_rng(15)
    d = (rng.standard_normal((33, 50)) * 100).astype(np.float32)
    d[3, 4] = np.array(0xFFC12345, np.uint32).view(np.float32)
    same = result(d, FP32)
    assert same.view(np.uint32)[3, 4] == exact.NAN
    np.testing.assert_array_equal(same, d)
    np.testing.assert_array_equal(result(d, BF16), fp32.to_bf16_bits(d))
    np.testing.assert_array_equal(result(d, FP16), fp32.to_fp16_bits(d))
    for rule in ("floor", "round_up", "even"):
        along_n, along_m = result(d, MXFP4, rule), result(d, MXFP4, rule, "m")
        assert (along_n.rows, along_n.k, along_n.rule) == (33, 50, rule)
        assert (along_m.rows, along_m.k) == (50, 33)
        np.testing.assert_array_equal(along_n.codes, quantise(d, MXFP4, rule).codes)
        np.testing.assert_array_equal(along_m.codes, quantise(d.T.copy(), MXFP4, rule).codes)
        assert (along_n.scales == 255).sum() == (along_m.scales == 255).sum() == 1
        assert pack(along_m)[0].shape == (2, 50, 16)


def test_a_result_is_the_next_operand():
    rng = np.random.default_rng(16)
    x, w = operand(rng, 4, 40, "mxfp4"), operand(rng, 35, 40, "mxfp4")
    hidden = result(matmul(x, w), MXFP8_E4M3, "even")
    v = operand(rng, 3, 35, "mxfp4")
    np.testing.assert_array_equal(matmul(hidden, v).view(np.uint32), expected(hidden, v))


def test_bad_input_is_refused_by_name():
    rng = np.random.default_rng(17)
    a, b = operand(rng, 2, 33, "mxfp4"), operand(rng, 2, 34, "mxfp4")
    for function in (matmul, block_results):
        with pytest.raises(ValueError, match=r"^A and B must have the same K, not 33 and 34$"):
            function(a, b)
    d = np.ones((2, 2), np.float32)
    with pytest.raises(ValueError, match=r"^a result in mxfp4 needs a scale rule$"):
        result(d, MXFP4)
    with pytest.raises(ValueError, match=r"^a result in bf16 takes no scale rule, not 'floor'$"):
        result(d, BF16, "floor")
    with pytest.raises(ValueError, match=r"^axis must be 'n' or 'm', not 'k'$"):
        result(d, MXFP4, "floor", "k")
