"""The three scale rules against their definitions in exact rationals."""

from fractions import Fraction

import golden_exact as exact
import ml_dtypes
import numpy as np
import pytest

from poblano_golden.formats import MX_FORMATS, MXFP4, SCALE_RULES
from poblano_golden.scales import scale_bytes, scale_values


def boundary_fractions(name):
    """23-bit fractions at which some rule might step, and beside them."""
    top = exact.largest(name)
    significand = top / exact.power(exact.floor_log2(top))
    largest = int((significand - 1) * (1 << 23))
    centres = {0, largest, (1 << 23) - 1}
    for kept in range(9):
        centres |= {(1 << 23) - (1 << (23 - kept)), (1 << 23) - (1 << (22 - kept))}
    near = {c + d for c in centres for d in (-1, 0, 1)}
    return sorted(f for f in near if 0 <= f < 1 << 23)


def amax_bits(name):
    fractions = boundary_fractions(name)
    normal = [(e << 23) | f for e in range(1, 255) for f in fractions]
    subnormal = {(1 << n) + d for n in range(24) for d in (-1, 0, 1)}
    subnormal |= {f >> n for f in fractions for n in range(23)}
    return np.array(normal + sorted(b for b in subnormal if 0 <= b < 1 << 23), np.uint32)


@pytest.mark.parametrize("rule", SCALE_RULES)
@pytest.mark.parametrize("name", exact.NAMES)
def test_rules_over_all_exponents_and_boundary_mantissas(name, rule):
    bits = amax_bits(name)
    assert len(bits) > 254 * 20
    actual = scale_bytes(bits.view(np.float32), MX_FORMATS[name], rule)
    expected = [exact.scale_byte(exact.value32(int(b)), name, rule) for b in bits]
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("rule", SCALE_RULES)
@pytest.mark.parametrize("name", exact.NAMES)
def test_rules_on_random_magnitudes(name, rule):
    bits = np.random.default_rng(2).integers(0, 0x7F800000, 3000).astype(np.uint32)
    actual = scale_bytes(bits.view(np.float32), MX_FORMATS[name], rule)
    expected = [exact.scale_byte(exact.value32(int(b)), name, rule) for b in bits]
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize(
    ("amax", "floor", "round_up", "even"),
    [
        (5.5, 127, 127, 127),  # CASES A1: not floor(log2(5.5 / 6)), which would be 126
        (6.0, 127, 127, 127),
        (6.01, 127, 128, 127),
        (7.0, 127, 128, 128),
        (np.nextafter(np.float32(7), np.float32(0)), 127, 128, 127),
        (8.0, 128, 128, 128),
        (4.0, 127, 127, 127),
        (3.0, 126, 126, 126),
    ],
)
def test_mxfp4_table(amax, floor, round_up, even):
    x = np.array([amax], np.float32)
    assert [int(scale_bytes(x, MXFP4, rule)[0]) for rule in ("floor", "round_up", "even")] == [
        floor,
        round_up,
        even,
    ]


@pytest.mark.parametrize("rule", SCALE_RULES)
@pytest.mark.parametrize("name", exact.NAMES)
def test_zero_nan_infinity_and_clamps(name, rule):
    special = np.array([0, 0x80000000, 1, 0x7F800000, 0x7FC00000, 0xFFC00001, 0x7F800001])
    x = np.append(special.astype(np.uint32).view(np.float32), np.finfo(np.float32).max)
    top = scale_bytes(x[-1:], MX_FORMATS[name], rule)[0]
    expected = [0, 0, 0, 255, 255, 255, 255, top]
    np.testing.assert_array_equal(scale_bytes(x, MX_FORMATS[name], rule), expected)
    assert top <= 254


def test_scale_values_every_byte():
    values = scale_values(np.arange(256).astype(np.uint8))
    assert np.isnan(values[255])
    assert [Fraction(v) for v in values[:255]] == [exact.power(s - 127) for s in range(255)]
    theirs = np.arange(256).astype(np.uint8).view(ml_dtypes.float8_e8m0fnu).astype(np.float64)
    np.testing.assert_array_equal(values, theirs)


def test_bad_input_is_refused_by_name():
    one = np.ones(1, np.float32)
    with pytest.raises(ValueError, match=r"^a scale rule must be one of floor, .*, not 'nearest'$"):
        scale_bytes(one, MXFP4, "nearest")
    with pytest.raises(ValueError, match=r"^amax must not be negative, not -1\.0$"):
        scale_bytes(-one, MXFP4, "floor")
    with pytest.raises(ValueError, match=r"^amax must be a numpy array of float32, not float64$"):
        scale_bytes(one.astype(np.float64), MXFP4, "floor")
    with pytest.raises(ValueError, match=r"^scales must be a numpy array of uint8, not int64$"):
        scale_values(np.array([3]))
