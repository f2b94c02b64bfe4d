"""Binary32 operations and conversions against exact rationals."""

import itertools
from fractions import Fraction

import golden_exact as exact
import ml_dtypes
import numpy as np
import pytest

from poblano_golden import fp32

CORNERS = [
    0x00000000, 0x00000001, 0x00000002, 0x007FFFFF, 0x00800000, 0x00800001, 0x33800000, 0x3F000000,
    0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x4B7FFFFF, 0x4B800000, 0x4B800001, 0x7E800000, 0x7F000000,
    0x7F7FFFFE, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF,
]  # fmt: skip
CORNERS += [c | 0x80000000 for c in CORNERS]


def floats(bits):
    return np.array(bits, np.uint32).view(np.float32)


def bits_of(x):
    return np.asarray(x).view(np.uint32)


def pairs():
    """Every pair of corners, and random pairs with near and far exponents."""
    rng = np.random.default_rng(3)
    left = rng.integers(0, 1 << 32, 6000)
    near = (left + (rng.integers(-30, 31, 6000) << 23)) ^ rng.integers(0, 1 << 23, 6000)
    near ^= rng.integers(0, 2, 6000) << 31
    rows = list(itertools.product(CORNERS, CORNERS)) + list(
        zip(left, near % (1 << 32), strict=True)
    )
    a, b = np.array(rows, np.uint64).astype(np.uint32).T
    return np.ascontiguousarray(a), np.ascontiguousarray(b)


def product32(a, b):
    x, y = exact.value32(a), exact.value32(b)
    if exact.is_finite(x) and exact.is_finite(y):
        return exact.binary32(x * y) | ((a ^ b) & 0x80000000)
    signs = [float((v > 0) - (v < 0)) if exact.is_finite(v) else float(v) for v in (x, y)]
    product = signs[0] * signs[1]
    if np.isnan(product):
        return exact.NAN
    return exact.POSITIVE_INFINITY if product > 0 else exact.NEGATIVE_INFINITY


def order(bits):
    return bits if bits < 1 << 31 else (1 << 31) - 1 - bits


def select32(a, b, largest):
    if any(np.isnan(float(exact.value32(x))) for x in (a, b)):
        return exact.NAN
    return (max if largest else min)(a, b, key=order)


REFERENCES = {
    fp32.add: exact.add32,
    fp32.subtract: lambda a, b: exact.add32(a, b ^ 0x80000000),
    fp32.multiply: product32,
    fp32.maximum: lambda a, b: select32(a, b, True),
    fp32.minimum: lambda a, b: select32(a, b, False),
}


@pytest.mark.parametrize("operation", REFERENCES, ids=lambda f: f.__name__)
def test_operation(operation):
    a, b = pairs()
    actual = bits_of(operation(a.view(np.float32), b.view(np.float32)))
    reference = REFERENCES[operation]
    expected = [reference(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    np.testing.assert_array_equal(actual, np.array(expected, np.uint32))


def test_no_warning_escapes():
    with np.errstate(all="raise"):
        big, nan = floats([0x7F7FFFFF]), floats([0x7F800001])
        assert np.isinf(fp32.add(big, big)).all()
        assert np.isinf(fp32.multiply(big, big)).all()
        assert np.isnan(fp32.subtract(floats([0x7F800000]), floats([0x7F800000]))).all()
        assert np.isnan(fp32.maximum(nan, big)).all()
        assert np.isnan(fp32.absolute(nan)).all()
        assert not fp32.less(nan, big).any()
        assert fp32.to_int8(nan)[0] == 0
        assert fp32.from_float64(np.array([1e-46, 1e300]))[1] == np.inf


def test_tiny_product_rounds_to_the_smallest_normal():
    """CASES B1: the number is right; there are no exception flags to be wrong."""
    product = fp32.multiply(floats([0x00800000]), floats([0x3F7FFFFF]))
    assert bits_of(product)[0] == 0x00800000


def test_multiply_and_add_round_separately():
    """CASES B5: nothing here is fused, so multiply and add give the two-rounding result."""
    a, b, c = (np.array([v], np.float32) for v in (0.9474001, 4.639901e-7, -0.24325085))
    product = exact.binary32(Fraction(float(a[0])) * Fraction(float(b[0])))
    expected = exact.add32(product, int(bits_of(c)[0]))
    assert bits_of(fp32.add(fp32.multiply(a, b), c))[0] == expected


def test_sum_is_ascending_from_plus_zero():
    rng = np.random.default_rng(4)
    x = (rng.standard_normal((7, 50)) * 2.0 ** rng.integers(-20, 20, (7, 50))).astype(np.float32)
    expected = []
    for row in bits_of(x):
        total = 0
        for term in row:
            total = exact.add32(total, int(term))
        expected.append(total)
    np.testing.assert_array_equal(bits_of(fp32.ascending_sum(x)), np.array(expected, np.uint32))
    np.testing.assert_array_equal(fp32.ascending_sum(x.T, axis=0), fp32.ascending_sum(x))
    one, tiny = np.float32(1), np.float32(2.0**-24)
    assert fp32.ascending_sum(np.array([one, tiny, tiny])) == one
    assert fp32.ascending_sum(np.array([tiny, tiny, one])) > one
    assert bits_of(fp32.ascending_sum(np.array([-0.0, -0.0], np.float32))) == 0


def test_from_float64_rounds_once():
    rng = np.random.default_rng(5)
    bits = rng.integers(0, 1 << 23, 3000) | (rng.integers(0, 255, 3000) << 23)
    low = floats(bits).astype(np.float64)
    tie = (low + np.nextafter(floats(bits), np.float32(np.inf)).astype(np.float64)) / 2
    x = np.concatenate([low, tie, np.nextafter(tie, np.inf), np.nextafter(tie, 0)])
    x = np.concatenate([x[np.isfinite(x)], [2.0**-150, 2.0**-149 * 1.5, 2.0**128 * (1 - 2.0**-25)]])
    x = np.concatenate([x, -x])
    expected = [exact.binary32(Fraction(v)) | (int(np.signbit(v)) << 31) for v in x]
    np.testing.assert_array_equal(bits_of(fp32.from_float64(x)), np.array(expected, np.uint32))


def conversion_inputs():
    """Each of 2**16 upper halves with lower halves at and beside the ties."""
    upper = np.arange(0x10000, dtype=np.uint32) << 16
    lower = np.array([0, 1, 0x0FFF, 0x1000, 0x1001, 0x3000, 0x7FFF, 0x8000, 0x8001, 0xFFFF])
    return (upper[:, None] | lower.astype(np.uint32)).reshape(-1).view(np.float32)


def test_bf16():
    x = conversion_inputs()
    actual = fp32.to_bf16_bits(x)
    with np.errstate(invalid="ignore"):
        theirs = x.astype(ml_dtypes.bfloat16).view(np.uint16)
    theirs[np.isnan(x)] = 0x7FC0
    np.testing.assert_array_equal(actual, theirs)
    sample = x[:: len(x) // 4001]
    sample = sample[np.isfinite(sample)]
    expected = [
        exact.round_float(Fraction(float(v)), 8, 7) | (int(np.signbit(v)) << 15) for v in sample
    ]
    np.testing.assert_array_equal(fp32.to_bf16_bits(sample), expected)
    codes = np.arange(0x10000).astype(np.uint16)
    back = fp32.from_bf16_bits(codes)
    nan = np.isnan(codes.view(ml_dtypes.bfloat16).astype(np.float32))
    np.testing.assert_array_equal(fp32.to_bf16_bits(back)[~nan], codes[~nan])
    assert (bits_of(back)[nan] == exact.NAN).all()


def test_fp16():
    x = conversion_inputs()
    exponent = (bits_of(x) >> 23) & 0xFF
    keep = (exponent >= 100) & (exponent < 145)
    sample = x[keep][::11]
    expected = [
        exact.round_float(Fraction(float(v)), 5, 10) | (int(np.signbit(v)) << 15) for v in sample
    ]
    assert len(set(expected)) > 4000
    np.testing.assert_array_equal(fp32.to_fp16_bits(sample), expected)
    assert (fp32.to_fp16_bits(x[np.isnan(x)]) == 0x7E00).all()
    codes = np.arange(0x10000).astype(np.uint16)
    back = fp32.from_fp16_bits(codes)
    nan = np.isnan(codes.view(np.float16))
    np.testing.assert_array_equal(fp32.to_fp16_bits(back)[~nan], codes[~nan])
    assert (bits_of(back)[nan] == exact.NAN).all()


def numbers():
    """Return corners of every kind, and random numbers."""
    rng = np.random.default_rng(8)
    return np.concatenate([CORNERS, rng.integers(0, 1 << 32, 5000)]).astype(np.uint32)


def test_signs():
    bits = numbers()
    nan = np.isnan(floats(bits))
    for operation, expected in (
        (fp32.negate, bits ^ (1 << 31)),
        (fp32.absolute, bits & 0x7FFFFFFF),
    ):
        found = bits_of(operation(floats(bits)))
        np.testing.assert_array_equal(found, np.where(nan, exact.NAN, expected))


COMPARISONS = {
    fp32.less: lambda x, y: x < y,
    fp32.less_equal: lambda x, y: x <= y,
    fp32.equal: lambda x, y: x == y,
}
"""Exact numbers compare as IEEE 754 wants: -0 is +0 there, and a NaN is in no relation."""


@pytest.mark.parametrize("comparison", COMPARISONS, ids=lambda f: f.__name__)
def test_comparison(comparison):
    a, b = pairs()
    found = comparison(floats(a), floats(b))
    relation = COMPARISONS[comparison]
    values = ((exact.value32(int(x)), exact.value32(int(y))) for x, y in zip(a, b, strict=True))
    np.testing.assert_array_equal(found, [relation(x, y) for x, y in values])


def test_select_takes_one_side_whatever_the_other_is():
    a, b = numbers(), numbers()[::-1].copy()
    condition = np.arange(len(a)) % 3 == 0
    found = bits_of(fp32.select(condition, floats(a), floats(b)))
    chosen = np.where(condition, a, b)
    np.testing.assert_array_equal(found, np.where(np.isnan(floats(chosen)), exact.NAN, chosen))


def test_int8():
    halves = np.arange(-600, 601).astype(np.float32) / 4
    x = np.concatenate([halves, np.nextafter(halves, np.float32(np.inf)), floats(numbers())])
    finite = np.isfinite(x)
    expected = [min(max(round(Fraction(float(v))), -128), 127) for v in x[finite]]
    np.testing.assert_array_equal(fp32.to_int8(x)[finite], expected)
    special = floats([0x7F800000, 0xFF800000, 0x7F800001, 0xFFC00000])
    np.testing.assert_array_equal(fp32.to_int8(special), [127, -128, 0, 0])
    every = np.arange(-128, 128).astype(np.int8)
    np.testing.assert_array_equal(fp32.from_int8(every).astype(np.int64), every)
    np.testing.assert_array_equal(fp32.to_int8(fp32.from_int8(every)), every)
    assert bits_of(fp32.from_int8(np.zeros(1, np.int8)))[0] == 0


def test_bad_input_is_refused_by_name():
    one = np.ones(1, np.float32)
    for operation in REFERENCES:
        with pytest.raises(ValueError, match=r"^an operand must be .* float32, not float64$"):
            operation(one, np.ones(1))
    with pytest.raises(ValueError, match=r"^bits must be a numpy array of uint16, not uint32$"):
        fp32.from_bf16_bits(np.ones(1, np.uint32))
    with pytest.raises(ValueError, match=r"^x must be a numpy array of int8, not float32$"):
        fp32.from_int8(one)
    with pytest.raises(ValueError, match=r"^condition must be a numpy array of bool, not float32$"):
        fp32.select(one, one, one)
