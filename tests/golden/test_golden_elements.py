"""Element codes: decoding, encoding, ties, saturation, against exact rationals and ml_dtypes."""

import itertools
from fractions import Fraction

import golden_exact as exact
import ml_dtypes
import numpy as np
import pytest

from poblano_golden.elements import decode, encode, integers, nan_code
from poblano_golden.formats import MX_FORMATS

ML_DTYPES = {
    "mxfp4": ml_dtypes.float4_e2m1fn,
    "mxfp6_e2m3": ml_dtypes.float6_e2m3fn,
    "mxfp6_e3m2": ml_dtypes.float6_e3m2fn,
    "mxfp8_e4m3": ml_dtypes.float8_e4m3fn,
    "mxfp8_e5m2": ml_dtypes.float8_e5m2,
}


def all_codes(name):
    return np.arange(1 << exact.SPECS[name].bits).astype(np.uint8)


def encode_one(x, name):
    return int(encode(np.array([x]), MX_FORMATS[name])[0])


def critical_float64(name):
    """Every code's value, every midpoint, the float32 and float64 neighbours of each."""
    values, _ = exact.magnitudes(name)
    points = set(values) | {(a + b) / 2 for a, b in itertools.pairwise(values)}
    step = values[-1] - values[-2]
    points |= {values[-1] + step / 2, values[-1] + step, values[-1] * 2, values[-1] * 1000}
    exactly = np.array([float(p) for p in sorted(points)])
    assert [Fraction(x) for x in exactly] == sorted(points)
    single = exactly.astype(np.float32)
    near = [exactly, np.nextafter(exactly, np.inf), np.nextafter(exactly, 0)]
    near += [np.nextafter(single, np.float32(np.inf)), np.nextafter(single, np.float32(0))]
    positive = np.unique(np.concatenate([x.astype(np.float64) for x in near]))
    return np.concatenate([positive, -positive])


@pytest.mark.parametrize("name", exact.NAMES)
def test_format_description(name):
    fmt, spec, top = MX_FORMATS[name], exact.SPECS[name], exact.largest(name)
    assert fmt.element_bits == spec.bits
    assert Fraction(fmt.largest) == top
    assert fmt.max_exponent == exact.floor_log2(top)
    finite = [exact.element(c, name) for c in exact.finite_codes(name)]
    units = [x / exact.power(fmt.lsb_exponent) for x in finite]
    assert all(u.denominator == 1 for u in units)
    assert any(u == 1 for u in units)
    assert fmt.largest_integer == max(abs(u) for u in units)
    assert fmt.has_nan == bool(spec.nans)
    assert fmt.has_infinity == bool(spec.infinities)


@pytest.mark.parametrize("name", exact.NAMES)
def test_decode_every_code(name):
    fmt = MX_FORMATS[name]
    values = decode(all_codes(name), fmt)
    assert values.dtype == np.float32
    for code, value in enumerate(values):
        expected = exact.element(code, name)
        if exact.is_finite(expected):
            assert Fraction(float(value)) == expected
            assert integers(np.array([code], np.uint8), fmt)[0] == expected / exact.power(
                fmt.lsb_exponent
            )
        elif np.isnan(expected):
            assert value.view(np.uint32) == exact.NAN
        else:
            assert value == expected
        if name != "mxint8":
            assert np.isnan(value) or np.signbit(value) == code >> (fmt.element_bits - 1)


@pytest.mark.parametrize("name", exact.FLOATS)
def test_decode_agrees_with_ml_dtypes(name):
    theirs = all_codes(name).view(ML_DTYPES[name]).astype(np.float32)
    ours = decode(all_codes(name), MX_FORMATS[name])
    np.testing.assert_array_equal(ours, theirs)
    finite = np.isfinite(ours)
    np.testing.assert_array_equal(np.signbit(ours[finite]), np.signbit(theirs[finite]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", exact.NAMES)
def test_every_finite_code_returns(name, dtype):
    codes = np.array(exact.finite_codes(name), np.uint8)
    if name == "mxint8":
        codes = codes[codes != 0x80]
    fmt = MX_FORMATS[name]
    np.testing.assert_array_equal(encode(decode(codes, fmt).astype(dtype), fmt), codes)


@pytest.mark.parametrize("name", exact.NAMES)
def test_encode_every_tie_and_its_neighbours(name):
    x = critical_float64(name)
    assert len(x) > 8 * len(exact.magnitudes(name)[0])
    expected = [exact.encode(Fraction(v), bool(np.signbit(v)), name) for v in x]
    np.testing.assert_array_equal(encode(x, MX_FORMATS[name]), expected)
    single = x.astype(np.float32)
    expected = [exact.encode(Fraction(float(v)), bool(np.signbit(v)), name) for v in single]
    np.testing.assert_array_equal(encode(single, MX_FORMATS[name]), expected)


@pytest.mark.parametrize("name", exact.NAMES)
def test_encode_random_numbers_of_every_magnitude(name):
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 1 << 64, 4000, dtype=np.uint64)
    x = bits.view(np.float64)
    near = rng.standard_normal(4000) * 2.0 ** rng.integers(-20, 20, 4000)
    x = np.concatenate([x[np.isfinite(x)], near])
    expected = [exact.encode(Fraction(v), bool(np.signbit(v)), name) for v in x]
    np.testing.assert_array_equal(encode(x, MX_FORMATS[name]), expected)


@pytest.mark.parametrize("name", exact.FLOATS)
def test_encode_agrees_with_ml_dtypes_in_range(name):
    """All bfloat16 numbers and, between them, the float32 numbers at and beside every half step."""
    upper = np.arange(0x10000, dtype=np.uint32) << 16
    lower = np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)
    x = (upper[:, None] | lower).reshape(-1).view(np.float32)
    x = x[np.abs(x) <= MX_FORMATS[name].largest]  # beyond it ml_dtypes may give NaN or infinity
    theirs = x.astype(ML_DTYPES[name]).view(np.uint8)
    np.testing.assert_array_equal(encode(x, MX_FORMATS[name]), theirs)


@pytest.mark.nightly
@pytest.mark.parametrize("name", exact.FLOATS)
def test_encode_agrees_with_ml_dtypes_on_every_float32(name):
    """Every float32 from a quarter of the smallest step to the largest element."""
    quarter = np.float32(2.0 ** (MX_FORMATS[name].lsb_exponent - 2))
    first, last = (int(x.view(np.uint32)) for x in (quarter, np.float32(MX_FORMATS[name].largest)))
    assert last - first > 4 << 23
    for start in range(first, last + 1, 1 << 22):
        bits = np.arange(start, min(start + (1 << 22), last + 1), dtype=np.uint32)
        x = bits.view(np.float32)
        theirs = x.astype(ML_DTYPES[name]).view(np.uint8)
        np.testing.assert_array_equal(encode(x, MX_FORMATS[name]), theirs)


@pytest.mark.parametrize("name", exact.NAMES)
def test_half_of_the_smallest_step_is_the_tie(name):
    """CASES A3: a sticky bit far below a subnormal decides; float64 is not rounded via float32."""
    half = 2.0 ** (MX_FORMATS[name].lsb_exponent - 1)
    assert encode_one(half, name) == 0
    assert encode_one(np.nextafter(half, 1), name) == 1
    assert encode_one(np.nextafter(np.float32(half), np.float32(1)), name) == 1
    assert encode_one(np.nextafter(half, 0), name) == 0
    assert encode_one(half * 3, name) == 2
    assert encode_one(np.nextafter(half * 3, 0), name) == 1


def test_case_a3():
    assert encode_one(np.float32(0.25000006), "mxfp4") == 1
    assert decode(np.array([1], np.uint8), MX_FORMATS["mxfp4"])[0] == 0.5
    assert encode_one(np.float32(0.25), "mxfp4") == 0
    assert encode_one(-np.float32(0.25), "mxfp4") == 8


@pytest.mark.parametrize("name", exact.NAMES)
def test_saturation_zero_signs_and_infinity(name):
    fmt = MX_FORMATS[name]
    top = np.float32(fmt.largest)
    code = exact.encode(Fraction(fmt.largest), False, name)
    for x in (top, top * 2, np.float32(3e38), np.float32(np.inf), np.float64(1e308)):
        assert encode_one(x, name) == code
        assert decode(np.array([encode_one(-x, name)], np.uint8), fmt)[0] == -top
    minus_zero = 0 if fmt.is_integer else 1 << (fmt.element_bits - 1)
    for x in (-0.0, -1e-300, np.float32(-1e-45)):
        assert encode_one(x, name) == minus_zero
    assert encode_one(0.0, name) == encode_one(1e-300, name) == 0


def test_mxint8_has_no_minus_128():
    x = np.linspace(-3, 3, 9973)
    codes = encode(x, MX_FORMATS["mxint8"])
    assert 0x80 not in codes
    assert {0x7F, 0x81} <= set(codes.tolist())
    assert decode(np.array([0x80], np.uint8), MX_FORMATS["mxint8"])[0] == -2.0


@pytest.mark.parametrize("name", exact.NAMES)
def test_nan_becomes_the_nan_code_or_is_refused(name):
    fmt = MX_FORMATS[name]
    x = np.array([1.0, np.nan, -np.nan, np.inf])
    if exact.SPECS[name].nans:
        codes = encode(x, fmt)
        assert codes[1] == codes[2] == nan_code(fmt)
        assert codes[1] in exact.SPECS[name].nans
        assert np.isfinite(decode(codes[[0, 3]], fmt)).all()
    else:
        with pytest.raises(ValueError, match=f"^{name} has no code for NaN$"):
            encode(x, fmt)


def test_bad_input_is_refused_by_name():
    fmt = MX_FORMATS["mxfp4"]
    with pytest.raises(ValueError, match=r"^a code of mxfp4 must be below 16, not 16$"):
        decode(np.array([3, 16], np.uint8), fmt)
    with pytest.raises(ValueError, match=r"^codes must be a numpy array of uint8, not int64$"):
        decode(np.array([3]), fmt)
    with pytest.raises(ValueError, match=r"^values must be .* float32 or float64, not float16$"):
        encode(np.array([3], np.float16), fmt)
    with pytest.raises(ValueError, match=r"^codes of mxfp8_e5m2 must be finite to be integers$"):
        integers(np.array([0x7C], np.uint8), MX_FORMATS["mxfp8_e5m2"])
