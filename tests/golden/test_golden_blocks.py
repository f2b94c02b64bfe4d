"""Quantisation of matrices and their layouts in memory."""

from fractions import Fraction

import golden_exact as exact
import numpy as np
import pytest

from poblano_golden.blocks import (
    GIVEN,
    MxTensor,
    dequantise,
    from_checkpoint,
    pack,
    quantise,
    unpack,
)
from poblano_golden.formats import MX_FORMATS, MXFP4, MXFP6_E2M3, MXINT8, SCALE_RULES


def quantise_exactly(x, name, rule):
    """Return codes and scales as lists, from the definitions."""
    codes, scales = [], []
    for row in x:
        line, bytes_ = [], []
        for start in range(0, len(row), 32):
            block = row[start : start + 32]
            if not np.isfinite(block).all():
                line += [0] * len(block)
                bytes_.append(255)
                continue
            numbers = [Fraction(float(v)) for v in block]
            byte = exact.scale_byte(max(abs(v) for v in numbers), name, rule)
            unit = exact.power(byte - 127)
            signs = [bool(s) for s in np.signbit(block)]
            line += [exact.encode(v / unit, s, name) for v, s in zip(numbers, signs, strict=True)]
            bytes_.append(byte)
        codes.append(line)
        scales.append(bytes_)
    return codes, scales


def matrix(rng, rows, k):
    """Rows of very different sizes, with zeros, subnormals, signs of zero and special blocks."""
    x = rng.standard_normal((rows, k)) * 2.0 ** rng.integers(-150, 127, (rows, 1))
    with np.errstate(over="ignore"):
        x = (x * 2.0 ** -rng.integers(0, 12, (rows, k))).astype(np.float32)
    x[rng.random((rows, k)) < 0.05] = -0.0
    x[0] = 0
    x[1] = -0.0
    x[2] = np.finfo(np.float32).max
    x[3] = -np.finfo(np.float32).smallest_subnormal
    x[4, -1] = np.nan
    x[5, 0] = -np.inf
    return x


@pytest.mark.parametrize("rule", SCALE_RULES)
@pytest.mark.parametrize("name", exact.NAMES)
def test_quantise_and_dequantise(name, rule):
    rng = np.random.default_rng(9)
    for k in (1, 31, 32, 33, 80):
        x = matrix(rng, 24, k)
        t = quantise(x, MX_FORMATS[name], rule)
        codes, scales = quantise_exactly(x, name, rule)
        np.testing.assert_array_equal(t.codes, codes)
        np.testing.assert_array_equal(t.scales, scales)
        assert (t.rows, t.k, t.num_blocks, t.rule) == (24, k, len(scales[0]), rule)
        values = dequantise(t)
        assert values.shape == x.shape
        for m, n in np.ndindex(x.shape):
            byte = scales[m][n // 32]
            if byte == 255:
                assert np.isnan(values[m, n])
            else:
                number = exact.element(codes[m][n], name) * exact.power(byte - 127)
                assert Fraction(values[m, n]) == number


def test_nan_or_infinity_spoils_its_own_block_only():
    x = np.ones((3, 70), np.float32)
    x[0, 40], x[1, 69], x[2, 0] = np.nan, np.inf, -np.nan
    t = quantise(x, MXFP4, "floor")
    spoilt = [[False, True, False], [False, False, True], [True, False, False]]
    np.testing.assert_array_equal(t.scales == 255, spoilt)
    assert (t.codes[0, 32:64] == 0).all()
    assert (t.codes[0, :32] != 0).all()


@pytest.mark.parametrize("name", exact.NAMES)
def test_largest_float32_saturates(name):
    """Scale byte 254 is the top: amax beyond it clips, and nothing becomes infinite."""
    x = np.full((1, 32), np.finfo(np.float32).max)
    for rule in SCALE_RULES:
        t = quantise(-x, MX_FORMATS[name], rule)
        assert t.scales[0, 0] <= 254
        assert np.isfinite(dequantise(t)).all()
        assert (dequantise(t) < 0).all()
    assert quantise(x, MXINT8, "even").scales[0, 0] == 254
    assert quantise(x, MXINT8, "even").codes[0, 0] == 127


def pack_by_hand(t):
    """Return the bytes of codes and scales, one at a time."""
    num_blocks = -(-t.k // 32)
    codes, scales = bytearray(), bytearray()
    for block in range(num_blocks):
        for row in range(t.rows):
            line = [int(c) for c in t.codes[row, 32 * block : 32 * block + 32]]
            line += [0] * (32 - len(line))
            if t.fmt.name == "mxfp4":
                line = [line[i] + 16 * line[i + 1] for i in range(0, 32, 2)]
            codes += bytes(line)
            scales.append(int(t.scales[row, block]))
    return bytes(codes), bytes(scales)


@pytest.mark.parametrize("k", [1, 32, 75])
@pytest.mark.parametrize("name", exact.NAMES)
def test_memory_layout(name, k):
    rng = np.random.default_rng(10)
    fmt = MX_FORMATS[name]
    codes = rng.integers(0, 1 << fmt.element_bits, (5, k)).astype(np.uint8)
    scales = rng.integers(0, 256, (5, -(-k // 32))).astype(np.uint8)
    t = MxTensor(codes, scales, fmt, "even")
    packed, packed_scales = pack(t)
    assert packed.shape == (-(-k // 32), 5, fmt.block_bytes)
    assert (packed.tobytes(), packed_scales.tobytes()) == pack_by_hand(t)
    back = unpack(packed, packed_scales, fmt, k, "even")
    np.testing.assert_array_equal(back.codes, codes)
    np.testing.assert_array_equal(back.scales, scales)
    assert (back.fmt, back.rule, back.k) == (fmt, "even", k)


@pytest.mark.parametrize("name", exact.NAMES)
def test_what_memory_holds_past_k_is_ignored(name):
    fmt = MX_FORMATS[name]
    t = quantise(np.linspace(-3, 3, 37, dtype=np.float32)[None], fmt, "floor")
    codes, scales = pack(t)
    used = 3 if fmt.storage_bits == 4 else 5  # the last block holds five elements
    codes[1, 0, used:] = 0xFF
    if fmt.storage_bits == 4:
        codes[1, 0, used - 1] |= 0xF0
    if fmt.element_bits == 6:
        codes |= 0xC0
    np.testing.assert_array_equal(unpack(codes, scales, fmt, 37).codes, t.codes)


def test_gpt_oss_checkpoint():
    """As openai/gpt-oss reads it: a table of sixteen values, low half first, ldexp by the scale."""
    table = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    table += [-v for v in table]
    rng = np.random.default_rng(11)
    blocks = rng.integers(0, 256, (6, 3, 16)).astype(np.uint8)
    scales = rng.integers(0, 255, (6, 3)).astype(np.uint8)
    expected = np.empty((6, 3, 32))
    expected[..., 0::2] = np.take(table, blocks & 15)
    expected[..., 1::2] = np.take(table, blocks >> 4)
    expected = np.ldexp(expected, scales[..., None].astype(int) - 127).reshape(6, 96)
    t = from_checkpoint(blocks, scales)
    np.testing.assert_array_equal(dequantise(t), expected)
    assert (t.fmt, t.rule) == (MXFP4, GIVEN)
    codes, packed_scales = pack(t)
    np.testing.assert_array_equal(codes, blocks.transpose(1, 0, 2))
    np.testing.assert_array_equal(packed_scales, scales.T)


def test_the_caller_s_arrays_are_left_alone():
    x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(1, 64)
    x[0, 3] = np.nan
    before = x.copy()
    t = quantise(x, MXFP6_E2M3, "floor")
    codes, scales = pack(t)
    codes[:], scales[:] = 0, 0
    np.testing.assert_array_equal(x, before)
    assert t.codes.any()
    assert t.scales.all()


def test_bad_input_is_refused_by_name():
    codes, scales = np.zeros((2, 40), np.uint8), np.zeros((2, 2), np.uint8)
    for wrong, message in [
        ((codes, scales[:, :1], MXFP4), r"^scales must be .*ceil.* = \(2, 2\): \(2, 1\)$"),
        ((codes[0], scales, MXFP4), r"^codes must be \[rows, K\], both at least 1, not \(40,\)$"),
        ((codes[:, :0], scales, MXFP4), r"^codes must be .* at least 1, not \(2, 0\)$"),
        ((codes + np.uint8(64), scales, MXFP6_E2M3), r"^a code of .* must be below 64, not 64$"),
        ((codes, scales, MXFP4, "best"), r"^a scale rule must be one of .*, not 'best'$"),
        ((codes.astype(int), scales, MXFP4), r"^codes must be a numpy array of uint8, not int64$"),
        ((codes, scales.astype(int), MXFP4), r"^scales must be a numpy array of uint8, not int64$"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=message):
            MxTensor(*wrong)
    with pytest.raises(ValueError, match=r"^x must be \[rows, K\], both at least 1, not \(3, 0\)$"):
        quantise(np.zeros((3, 0), np.float32), MXFP4, "floor")
    with pytest.raises(ValueError, match=r"^x must be a numpy array of float32, not float64$"):
        quantise(np.zeros((3, 4)), MXFP4, "floor")
    packed, packed_scales = pack(MxTensor(codes, scales, MXFP4))
    with pytest.raises(
        ValueError,
        match=r"^packed codes .* K = 65, must be \[3, rows, 16\], not \(2, 2, 16\)$",
    ):
        unpack(packed, packed_scales, MXFP4, 65)
    with pytest.raises(ValueError, match=r"^blocks must be \[rows, .*16\], not \(2, 1, 17\)$"):
        from_checkpoint(np.zeros((2, 1, 17), np.uint8), scales)
    with pytest.raises(ValueError, match=r"^scales must be .* = \(2, 1\): \(2, 2\)$"):
        from_checkpoint(np.zeros((2, 1, 16), np.uint8), scales)
