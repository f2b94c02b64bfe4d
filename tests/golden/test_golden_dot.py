"""Block dot products of every pair of formats against exact rationals rounded once."""

import itertools
from fractions import Fraction

import golden_exact as exact
import numpy as np
import pytest

from poblano_golden.dot import block_dot
from poblano_golden.formats import MX_FORMATS

PAIRS = list(itertools.product(exact.NAMES, exact.NAMES))
MAIN_PAIRS = [
    ("mxfp4", "mxfp4"),
    ("mxfp8_e4m3", "mxfp4"),
    ("mxfp8_e4m3", "mxfp8_e4m3"),
    ("mxint8", "mxfp4"),
    ("mxint8", "mxint8"),
]


def dot_bits(a, b, scale_a, scale_b, fa, fb):
    arrays = [np.asarray(x, np.uint8) for x in (a, b, scale_a, scale_b)]
    return block_dot(*arrays, MX_FORMATS[fa], MX_FORMATS[fb]).view(np.uint32)


def code_of(x, name):
    """Return the code of an element value."""
    code = exact.encode(abs(Fraction(x)), x < 0, name)
    assert exact.element(code, name) == x
    return code


def expected_bits(a, b, scale_a, scale_b, fa, fb):
    rows = zip(a.tolist(), b.tolist(), scale_a.tolist(), scale_b.tolist(), strict=True)
    return np.array([exact.block_dot(*row, fa, fb) for row in rows], np.uint32)


def assert_exact(a, b, scale_a, scale_b, fa, fb):
    actual = dot_bits(a, b, scale_a, scale_b, fa, fb)
    np.testing.assert_array_equal(actual, expected_bits(a, b, scale_a, scale_b, fa, fb))


@pytest.mark.parametrize(("fa", "fb"), PAIRS)
def test_every_pair_of_codes(fa, fb):
    """Each product alone in a block, in every position."""
    size_a, size_b = (1 << exact.SPECS[f].bits for f in (fa, fb))
    x, y = np.divmod(np.arange(size_a * size_b), size_b)
    a = np.zeros((len(x), 32), np.uint8)
    b = np.zeros((len(x), 32), np.uint8)
    place = np.arange(len(x)), (x + 5 * y) % 32
    a[place], b[place] = x, y
    actual = dot_bits(a, b, np.full(len(x), 127), np.full(len(x), 127), fa, fb)
    expected = []
    for i, j in zip(x.tolist(), y.tolist(), strict=True):
        p, q = exact.element(i, fa), exact.element(j, fb)
        if exact.is_finite(p) and exact.is_finite(q):
            expected.append(exact.binary32(p * q))
        else:
            expected.append(exact.block_dot([i], [j], 127, 127, fa, fb))
    np.testing.assert_array_equal(actual, np.array(expected, np.uint32))


def blocks_for_scales():
    """Blocks whose sums are short, long, tiny, huge, negative, odd beyond 24 bits, and zero."""
    rng = np.random.default_rng(6)
    cases = []
    for fa, fb in [*MAIN_PAIRS, ("mxfp8_e5m2", "mxfp8_e5m2"), ("mxfp6_e3m2", "mxfp6_e2m3")]:
        top_a, top_b = (code_of(exact.largest(f), f) for f in (fa, fb))
        one = [1] + [0] * 31
        cases += [(one, one, fa, fb), ([top_a] * 32, [top_b] * 32, fa, fb)]
        minus = top_a ^ (1 << (exact.SPECS[fa].bits - 1)) if fa != "mxint8" else 0x81
        cases += [([minus] * 32, [top_b] * 32, fa, fb), ([top_a, minus], [top_b] * 2, fa, fb)]
        cases += [([top_a, 1], [top_b, 1], fa, fb), ([minus, 1, 1], [top_b, 1, 1], fa, fb)]
        finite = [exact.finite_codes(f) for f in (fa, fb)]
        cases += [(*(rng.choice(f, 32).tolist() for f in finite), fa, fb) for _ in range(4)]
    return cases


@pytest.mark.parametrize("case", blocks_for_scales(), ids=lambda c: f"{c[2]}-{c[3]}")
def test_every_pair_of_scales(case):
    a, b, fa, fb = case
    total = sum(exact.element(x, fa) * exact.element(y, fb) for x, y in zip(a, b, strict=True))
    by_sum = [exact.binary32(total * exact.power(s - 254)) for s in range(509)]
    scale_a, scale_b = np.divmod(np.arange(1 << 16), 256)
    expected = np.array(by_sum + [0] * 2, np.uint32)[scale_a + scale_b]
    expected[(scale_a == 255) | (scale_b == 255)] = exact.NAN
    a, b = (np.array([x + [0] * (32 - len(x))]) for x in (a, b))
    np.testing.assert_array_equal(dot_bits(a, b, scale_a, scale_b, fa, fb), expected)


def random_blocks(rng, count, fa, fb):
    """Blocks of finite codes with several habits of size, sign and cancellation."""
    blocks = []
    for name in (fa, fb):
        codes = np.array(
            [
                c
                for c in range(1 << exact.SPECS[name].bits)
                if exact.is_finite(exact.element(c, name))
            ]
        )
        by_size = np.array(sorted(codes.tolist(), key=lambda c: abs(exact.element(c, name))))
        uniform = rng.choice(codes, (count, 32))
        small = by_size[np.minimum(rng.geometric(0.1, (count, 32)), len(codes)) - 1]
        large = by_size[-np.minimum(rng.geometric(0.2, (count, 32)), len(codes))]
        mixed = np.where(rng.random((count, 32)) < 0.3, large, small)
        habit = rng.integers(0, 4, (count, 1))
        blocks.append(np.choose(habit, [uniform, small, large, mixed]))
    a, b = blocks
    cancel = np.flatnonzero(rng.random(count) < 0.3)
    negate = a[cancel, :15]
    sign = 1 << (exact.SPECS[fa].bits - 1)
    a[cancel, 16:31] = negate ^ sign if fa != "mxint8" else -negate % 256
    b[cancel, 16:31] = b[cancel, :15]
    return a, b


def random_scales(rng, count, fa, fb):
    """Scales of any size, and pairs that put the sum at either end of binary32's range."""
    scale_a = rng.integers(0, 255, count)
    near_end = np.choose(rng.integers(0, 3, count), [-149, -126, 127])
    unit = MX_FORMATS[fa].max_exponent + MX_FORMATS[fb].max_exponent
    aimed = 254 + near_end - scale_a - rng.integers(-unit - 12, unit + 12, count)
    free = rng.integers(0, 255, count)
    return scale_a, np.where((aimed < 0) | (aimed > 254), free, aimed)


@pytest.mark.parametrize(("fa", "fb"), PAIRS)
def test_random_blocks(fa, fb):
    rng = np.random.default_rng(PAIRS.index((fa, fb)))
    a, b = random_blocks(rng, 300, fa, fb)
    assert_exact(a, b, *random_scales(rng, 300, fa, fb), fa, fb)


@pytest.mark.nightly
@pytest.mark.parametrize(("fa", "fb"), PAIRS)
def test_random_blocks_many(fa, fb):
    rng = np.random.default_rng(1000 + PAIRS.index((fa, fb)))
    a, b = random_blocks(rng, 20000, fa, fb)
    assert_exact(a, b, *random_scales(rng, 20000, fa, fb), fa, fb)


@pytest.mark.parametrize(
    ("fa", "fb"), [(a, b) for a, b in PAIRS if exact.SPECS[a].nans or exact.SPECS[b].nans]
)
def test_nan_and_infinity_among_elements(fa, fb):
    rng = np.random.default_rng(7)
    a, b = random_blocks(rng, 400, fa, fb)
    zero = rng.random((400, 32)) < 0.5
    a, b = np.where(zero, 0, a), np.where(zero ^ (rng.random((400, 32)) < 0.1), b, 0)
    for codes, name in ((a, fa), (b, fb)):
        spec = exact.SPECS[name]
        for special, chance in ((spec.infinities, 0.9), (spec.nans, 0.2)):
            if special:
                rows = np.flatnonzero(rng.random(400) < chance)
                for _ in range(2):
                    codes[rows, rng.integers(0, 32, len(rows))] = rng.choice(special, len(rows))
    scales = random_scales(rng, 400, fa, fb)
    assert_exact(a, b, *scales, fa, fb)
    bits = dot_bits(a, b, *scales, fa, fb)
    assert (bits == exact.NAN).sum() > 50
    if "mxfp8_e5m2" in (fa, fb):
        special_rows = expected_bits(a, b, np.full(400, 127), np.full(400, 127), fa, fb)
        assert {exact.POSITIVE_INFINITY, exact.NEGATIVE_INFINITY} <= set(special_rows.tolist())


@pytest.mark.parametrize(
    ("tail", "expected"),
    [(0, 0x4E800000), (1, 0x4E800001), (-1, 0x4E800000)],
)
def test_a_bit_beyond_float64_decides_a_tie(tail, expected):
    """2**30 + 2**6 is a tie; 2**-32 below it is out of reach of 53 bits. CASES B5's kind."""
    big, half, least = Fraction(1 << 15), Fraction(1 << 6), exact.power(-16)
    a = [code_of(x, "mxfp8_e5m2") for x in (big, half, least)] + [0] * 29
    b = [code_of(x, "mxfp8_e5m2") for x in (big, Fraction(1), tail * least)] + [0] * 29
    bits = dot_bits([a], [b], [127], [127], "mxfp8_e5m2", "mxfp8_e5m2")
    assert bits[0] == expected
    bits = dot_bits([b], [a], [0], [254], "mxfp8_e5m2", "mxfp8_e5m2")
    assert bits[0] == expected


def powers(name):
    """Return the lowest and the highest exponent among a format's elements."""
    return exact.floor_log2(exact.element(1, name)), exact.floor_log2(exact.largest(name))


def as_product(x, fa, fb, share=0.5):
    """Return the codes of two elements, powers of two but for a sign, whose product is x.

    The first is the smallest possible at share 0 and the largest at share 1.
    """
    n, (low_a, high_a), (low_b, high_b) = exact.floor_log2(abs(x)), powers(fa), powers(fb)
    low, high = max(low_a, n - high_b), min(high_a, n - low_b)
    p = round(low + share * (high - low))
    sign = -1 if x < 0 else 1
    return code_of(sign * exact.power(p), fa), code_of(exact.power(n - p), fb)


def code_of_largest(name):
    return code_of(exact.largest(name), name)


@pytest.mark.parametrize("copies", [1, 22])
@pytest.mark.parametrize(
    ("fa", "fb"),
    [("mxfp8_e5m2", "mxfp8_e5m2"), ("mxfp8_e5m2", "mxfp8_e4m3"), ("mxfp8_e4m3", "mxfp8_e5m2"),
     ("mxfp8_e4m3", "mxfp8_e4m3")],
)  # fmt: skip
def test_ties_with_every_tail(fa, fb, copies):
    """The widest sums at a tie of binary32, with tails of one to eight bits anywhere below it."""
    least = exact.element(1, fa) * exact.element(1, fb)
    top = exact.largest(fa) * exact.largest(fb)
    half = exact.power(exact.floor_log2(copies * top) - 24)
    base = [(code_of_largest(fa), code_of_largest(fb))] * copies + [as_product(half, fa, fb)]
    tails = [[]]
    span = exact.floor_log2(half / least)
    tails += [[sign * least * 2**n] for n in range(span) for sign in (1, -1)]
    for n in range(max(0, span - 40), span - 8):
        for bits in range(3, 256, 23):
            for sign in (1, -1):
                chosen = [i for i in range(8) if bits >> i & 1]
                tails.append([sign * least * 2 ** (n + i) for i in chosen])
    blocks = [
        base + [as_product(x, fa, fb, share) for x in tail]
        for tail in tails
        for share in (0, 0.5, 1)
    ]
    padded = np.array([block + [(0, 0)] * (32 - len(block)) for block in blocks])
    ones = np.full(len(blocks), 127)
    assert_exact(padded[..., 0], padded[..., 1], ones, ones, fa, fb)
    results = dot_bits(padded[..., 0], padded[..., 1], ones, ones, fa, fb)
    assert len(set(results.tolist())) == 2  # the tail decides


def test_seventy_bit_sum_keeps_its_last_bit():
    """All the largest products cancel but for one least significant bit."""
    top, least = code_of(Fraction(57344), "mxfp8_e5m2"), 1
    a = [top] * 15 + [least] + [top | 0x80] * 15 + [0]
    b = [top] * 15 + [least] + [top] * 15 + [0]
    for shift in range(32):
        x, y = np.roll(a, shift), np.roll(b, shift)
        bits = dot_bits([x], [y], [127], [127], "mxfp8_e5m2", "mxfp8_e5m2")
        assert bits[0] == exact.binary32(exact.power(-32))


@pytest.mark.parametrize(("fa", "fb"), PAIRS)
def test_zero_and_its_sign(fa, fb):
    """An exact zero is +0 whatever the signs; a sum that rounds to zero keeps its sign."""
    minus_a = code_of(Fraction(-1), fa)
    plus_a, plus_b = code_of(Fraction(1), fa), code_of(Fraction(1), fb)
    minus_zero = 0 if fa == "mxint8" else 1 << (exact.SPECS[fa].bits - 1)
    a = np.array([[minus_zero] * 32, [plus_a, minus_a] * 16, [minus_a] + [0] * 31, [0] * 32])
    b = np.full((4, 32), plus_b)
    one, least = np.full(4, 127), np.zeros(4)
    assert dot_bits(a, b, one, one, fa, fb).tolist() == [0, 0, 0xBF800000, 0]
    assert dot_bits(a, b, least, least, fa, fb).tolist() == [0, 0, 0x80000000, 0]


def test_leading_shapes_broadcast():
    rng = np.random.default_rng(8)
    a, b = rng.integers(0, 16, (3, 1, 32)), rng.integers(0, 16, (4, 32))
    scale_a, scale_b = rng.integers(100, 150, (3, 1)), rng.integers(100, 150, 4)
    both = dot_bits(a, b, scale_a, scale_b, "mxfp4", "mxfp4")
    assert both.shape == (3, 4)
    for m, n in np.ndindex(3, 4):
        single = dot_bits(a[m, 0], b[n], scale_a[m, 0], scale_b[n], "mxfp4", "mxfp4")
        assert single == both[m, n]


def test_bad_input_is_refused_by_name():
    block, one, fmt = np.zeros((1, 32), np.uint8), np.zeros(1, np.uint8), MX_FORMATS["mxfp4"]
    with pytest.raises(ValueError, match=r"^b_codes must have 32 codes .*: \(1, 31\)$"):
        block_dot(block, block[:, :31], one, one, fmt, fmt)
    with pytest.raises(ValueError, match=r"^a code of mxfp4 must be below 16, not 16$"):
        block_dot(block + np.uint8(16), block, one, one, fmt, fmt)
    with pytest.raises(ValueError, match=r"^scales must be a numpy array of uint8, not int64$"):
        block_dot(block, block, np.zeros(1, np.int64), one, fmt, fmt)
