"""Elementary functions against float64, and their tables against exact rationals."""

from fractions import Fraction

import numpy as np
import pytest

from poblano_golden import elementary
from poblano_golden.table_polynomial import EXP2, FRACTION_BITS, RECIPROCAL, RECIPROCAL_SQRT

NAN = 0x7FC00000
POWERS = ("exp2", "exp", "sigmoid")
EXPONENTS = {
    **dict.fromkeys(POWERS, range(127 - 28, 127 + 9)),
    "reciprocal": (0, 1, 2, 127, 251, 252, 253, 254),
    "reciprocal_sqrt": (0, 1, 2, 127, 128, 253, 254),
}
"""Exponent fields that stand for all. Below the first 2**x is 1 and sigmoid(x) 1/2, past the last
they saturate; other powers of two, or of four, only shift 1/x, or 1/sqrt(x)."""

CHUNK = 1 << 15


def floats(bits):
    return np.array(bits, np.uint32).view(np.float32)


def bits_of(x):
    return np.asarray(x).view(np.uint32)


def reference(name, x):
    """Return the function in float64, whose own error is below 2**-28 of a last place here."""
    x = x.astype(np.float64)
    with np.errstate(all="ignore"):
        if name == "sigmoid":
            return 1 / (1 + np.exp(-x))
        if name == "reciprocal":
            return 1 / x
        return 1 / np.sqrt(x) if name == "reciprocal_sqrt" else getattr(np, name)(x)


def errors(name, x):
    """Return the errors at finite arguments, in units of the exact result's last place.

    Where the exact result rounds to an infinity, an infinity has no error.
    """
    found, exact = getattr(elementary, name)(x).astype(np.float64), reference(name, x)
    infinite = np.abs(exact) >= 2.0**128 - 2.0**103
    np.testing.assert_array_equal(found[infinite], np.copysign(np.inf, exact[infinite]))
    found, exact = found[~infinite], exact[~infinite]
    place = np.maximum(np.frexp(exact)[1] - 1, -126) - 23
    return np.ldexp(np.abs(found - exact), -place)


def signs(name):
    return (0, 1) if name in POWERS else (0,)


WORST = {
    "exp2": (0.690289, 0x3D7FF4D3),
    "exp": (0.736415, 0x3FFFC020),
    "sigmoid": (0.882364, 0xC19BB278),
    "reciprocal": (0.681329, 0x00846C17),
    "reciprocal_sqrt": (0.775558, 0x0081CE4F),
}
"""The largest error, and bits of an argument that has it."""


def edges():
    """Return fractions at and beside the ends and middles of every interval, and the last bits."""
    grid = np.arange(0, 1 << 23, 1 << 14)
    return np.unique((grid[:, None] + np.arange(-2, 3)) % (1 << 23))


@pytest.mark.parametrize("name", EXPONENTS)
def test_error_of_a_sample(name):
    rng = np.random.default_rng(6)
    for sign in signs(name):
        for exponent in EXPONENTS[name]:
            fractions = np.concatenate([edges(), rng.integers(0, 1 << 23, 20_000)])
            x = floats((sign << 31) | (exponent << 23) | fractions)
            assert errors(name, x[x != 0]).max(initial=0) <= WORST[name][0] + 1e-6


@pytest.mark.parametrize("name", EXPONENTS)
def test_stated_error_is_reached(name):
    assert errors(name, floats([WORST[name][1]]))[0] == pytest.approx(WORST[name][0], abs=1e-6)


@pytest.mark.nightly
@pytest.mark.parametrize("name", EXPONENTS)
def test_error_of_every_argument(name):
    """Every fraction, under every exponent that matters."""
    worst, argument = 0.0, 0
    for sign in signs(name):
        for exponent in EXPONENTS[name]:
            for start in range(0, 1 << 23, CHUNK):
                fractions = np.arange(start, start + CHUNK, dtype=np.uint32)
                x = floats(np.uint32(sign << 31) | np.uint32(exponent << 23) | fractions)
                found = errors(name, x[1:] if x[0] == 0 else x)
                if len(found) and found.max() > worst:
                    worst = found.max()
                    argument = int(bits_of(x)[found.argmax() + (x[0] == 0)])
    print(f"{name}: {worst:.6f} at {argument:#010x}")
    assert worst == pytest.approx(WORST[name][0], abs=1e-6)


TABLES = {
    EXP2: lambda x, y: y**128 <= Fraction(2) ** int(128 * x),
    RECIPROCAL: lambda x, y: y * (1 + x) <= 2,
    RECIPROCAL_SQRT: lambda x, y: y * y * (1 + 2 * x if x < Fraction(1, 2) else 4 * x) <= 4,
}
"""For each table, whether y is at most the function at x, by exact rationals."""


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_table_holds_the_rounded_function_and_intervals_meet(table):
    at_most = TABLES[table]
    half = Fraction(1, 2 << FRACTION_BITS)
    sign = -1 if table.falls else 1
    rows = table.coefficients
    assert len(rows) == 1 << table.index_bits
    for index, (c0, c1, c2) in enumerate(rows):
        x, y = Fraction(index, len(rows)), Fraction(c0, 1 << FRACTION_BITS)
        assert at_most(x, y - half)
        assert not at_most(x, y + half) or (y == 2 and index == 0)
        following = rows[index + 1][0] if index + 1 < len(rows) else (1 if table.falls else 2) << 27
        assert c0 + sign * c1 + c2 == following


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_table_results_stay_in_range(table):
    """All arguments next to the ends of intervals: results fit the bits that the hardware has."""
    ends = np.arange(1 << table.index_bits, dtype=np.int64) << table.place_bits
    near = (ends[:, None] + np.arange(-9, 9)) % (1 << (table.index_bits + table.place_bits))
    found = table(near)
    assert found.min() >= (1 << FRACTION_BITS) - 1
    assert found.max() <= 2 << FRACTION_BITS
    assert (table.falls and found.max() == 2 << FRACTION_BITS) or found.max() < 2 << FRACTION_BITS


def test_log2_e():
    """2**36 log2(e): the power of two with the nearest exponents on either side encloses e."""
    unit = Fraction(1, 1 << elementary.LOG2_E_BITS)
    log2_e = Fraction(elementary.LOG2_E) * unit
    ln_2 = sum(Fraction(1, k << k) for k in range(1, 90))
    assert abs(log2_e * ln_2 - 1) < unit * ln_2 / 2


def test_exact_results():
    whole = np.arange(-149, 128)
    np.testing.assert_array_equal(
        elementary.exp2(whole.astype(np.float32)), np.ldexp(1.0, whole).astype(np.float32)
    )
    powers = np.ldexp(1.0, np.arange(-127, 128)).astype(np.float32)
    np.testing.assert_array_equal(elementary.reciprocal(powers), powers[::-1])
    np.testing.assert_array_equal(elementary.reciprocal(-powers), -powers[::-1])
    quarters = np.ldexp(1.0, np.arange(-148, 128, 2)).astype(np.float32)
    np.testing.assert_array_equal(
        elementary.reciprocal_sqrt(quarters), (1 / np.sqrt(quarters)).astype(np.float32)
    )
    assert elementary.sigmoid(np.float32(0)) == 0.5
    assert elementary.exp(np.float32(0)) == 1


SPECIAL = [0x00000000, 0x80000000, 0x7F800000, 0xFF800000, 0x7F800001, 0xFFC00000, 0x7FFFFFFF]
"""+0, -0, +infinity, -infinity, and three NaNs."""
ONE, HALF, PLUS, MINUS = 0x3F800000, 0x3F000000, 0x7F800000, 0xFF800000


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("exp2", [ONE, ONE, PLUS, 0, NAN, NAN, NAN]),
        ("exp", [ONE, ONE, PLUS, 0, NAN, NAN, NAN]),
        ("sigmoid", [HALF, HALF, ONE, 0, NAN, NAN, NAN]),
        ("reciprocal", [PLUS, MINUS, 0, 0x80000000, NAN, NAN, NAN]),
        ("reciprocal_sqrt", [PLUS, MINUS, 0, NAN, NAN, NAN, NAN]),
    ],
)
def test_special_values(name, expected):
    with np.errstate(all="raise"):
        found = getattr(elementary, name)(floats(SPECIAL))
    np.testing.assert_array_equal(bits_of(found), np.array(expected, np.uint32))
    for bits, result in zip(SPECIAL, expected, strict=True):
        assert bits_of(getattr(elementary, name)(floats(bits)))[()] == result


def test_root_of_a_negative_number_is_nan():
    x = -floats([0x00000001, 0x007FFFFF, 0x3F800000, 0x7F7FFFFF])
    np.testing.assert_array_equal(bits_of(elementary.reciprocal_sqrt(x)), np.full(4, NAN))


def test_exponent_range():
    """CASES B4: the exponent field is never written unchecked."""
    x = np.array([-100, 100, -104, 88.7, 89, -87.4, -1e30, 1e30], np.float32)
    expected = [27 * 2.0**-149, np.inf, 0, np.exp(x[3], dtype=np.float32), np.inf]
    found = elementary.exp(x)
    np.testing.assert_allclose(found[:5], expected, rtol=1e-6, atol=0)
    assert 0 < found[5] < 2.0**-126
    np.testing.assert_array_equal(found[6:], [0, np.inf])
    ends = np.array([-149, -149.5, -150, -151, 127.99999, 128, -1e30, 3e38], np.float32)
    found = elementary.exp2(ends)
    assert (bits_of(found[:4]) == [1, 1, 0, 0]).all()
    assert np.isfinite(found[4])
    np.testing.assert_array_equal(found[5:], [np.inf, 0, np.inf])
    tiny = floats([0x00000001, 0x001FFFFF, 0x00200000, 0x00200001])
    found = elementary.reciprocal(tiny)
    np.testing.assert_array_equal(np.isinf(found), [True, True, True, False])
    assert bits_of(elementary.reciprocal(floats([0x7F7FFFFF])))[0] == 0x00200000
    assert bits_of(elementary.sigmoid(np.array([-104], np.float32)))[0] == 0
    assert bits_of(elementary.sigmoid(np.array([-103], np.float32)))[0] == 1


@pytest.mark.parametrize("name", EXPONENTS)
def test_small_arguments_and_large_ones(name):
    """Arguments outside `EXPONENTS`, where the functions are constant or only shift."""
    rng = np.random.default_rng(7)
    x = floats(rng.integers(0, 1 << 32, 50_000))
    x = x[np.isfinite(x) & (x != 0) & ((x > 0) | (name != "reciprocal_sqrt"))]
    assert errors(name, x).max() <= WORST[name][0] + 1e-6


@pytest.mark.parametrize("name", EXPONENTS)
def test_bad_input_is_refused_by_name(name):
    with pytest.raises(ValueError, match=r"^x must be a numpy array of float32, not float64$"):
        getattr(elementary, name)(np.ones(1))
