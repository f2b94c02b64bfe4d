"""Properties that hold for any data, searched by hypothesis."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from poblano_golden import fp32
from poblano_golden.blocks import MxTensor, dequantise, pack, quantise, unpack
from poblano_golden.dot import block_dot
from poblano_golden.formats import BF16, FP32, MX_FORMATS, SCALE_RULES
from poblano_golden.matmul import matmul, result

FORMATS = st.sampled_from(list(MX_FORMATS.values()))
RULES = st.sampled_from(list(SCALE_RULES))
FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)
ANY = st.floats(width=32)
repeatable = settings(derandomize=True, deadline=None, max_examples=150, database=None)


def matrices(elements, max_k=70):
    shape = st.tuples(st.integers(1, 3), st.integers(1, max_k))
    return arrays.arrays(np.float32, shape, elements=elements)


@st.composite
def operands(draw, rows=3, k=None):
    """Any codes, NaNs and infinities too, under any scales."""
    fmt = draw(FORMATS)
    k = draw(st.integers(1, 70)) if k is None else k
    limit = (1 << fmt.element_bits) - 1
    codes = draw(arrays.arrays(np.uint8, (rows, k), elements=st.integers(0, limit)))
    scales = draw(arrays.arrays(np.uint8, (rows, -(-k // 32)), elements=st.integers(0, 255)))
    return MxTensor(codes, scales, fmt)


def same(a, b):
    """Whether two arrays are equal bit for bit."""
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@repeatable
@given(matrices(FINITE), FORMATS, RULES)
def test_quantisation_error_is_half_a_step_unless_saturated(x, fmt, rule):
    t = quantise(x, fmt, rule)
    unit = np.repeat(2.0 ** (t.scales.astype(float) - 127), 32, axis=1)[:, : t.k]
    size = np.abs(x.astype(np.float64)) / unit
    error = np.abs(dequantise(t) - x) / unit
    fraction_bits = fmt.bias if fmt.is_integer else fmt.mantissa_bits
    least = 0 if fmt.is_integer else 1 - fmt.bias
    exponent = np.floor(np.log2(np.maximum(size, 2.0**least)))
    step = 2.0 ** (exponent - fraction_bits)
    clipped = size > fmt.largest
    assert (error[~clipped] <= step[~clipped] / 2).all()
    np.testing.assert_array_equal(error[clipped], size[clipped] - fmt.largest)
    if rule == "round_up" and (t.scales < 254).all():
        assert not clipped.any()
    assert (size < 2.0 ** (fmt.max_exponent + 1)).all()  # at most one binade is ever clipped


@repeatable
@given(matrices(FINITE), FORMATS, RULES)
def test_quantising_again_changes_no_number(x, fmt, rule):
    values = dequantise(quantise(x, fmt, rule))
    single = fp32.from_float64(values)
    if np.isfinite(single).all():
        assert same(dequantise(quantise(single, fmt, rule)), values)


@repeatable
@given(matrices(ANY), FORMATS, RULES)
def test_quantisation_is_odd_and_rows_and_blocks_are_independent(x, fmt, rule):
    t, negative = quantise(x, fmt, rule), quantise(-x, fmt, rule)
    assert same(t.scales, negative.scales)
    np.testing.assert_array_equal(dequantise(negative), -dequantise(t))
    assert same(quantise(x[-1:], fmt, rule).codes, t.codes[-1:])
    assert same(quantise(x[:, :32], fmt, rule).codes, t.codes[:, :32])


@repeatable
@given(operands())
def test_unpack_inverts_pack(t):
    back = unpack(*pack(t), t.fmt, t.k, t.rule)
    assert same(back.codes, t.codes)
    assert same(back.scales, t.scales)


@repeatable
@given(operands(), st.data())
def test_pack_inverts_unpack_of_a_result(t, data):
    other = data.draw(operands(rows=2, k=t.k))
    d = matmul(t, other)
    for axis in ("n", "m"):
        q = result(d, other.fmt, "even", axis)
        codes, scales = pack(q)
        again = pack(unpack(codes, scales, q.fmt, q.k))
        assert same(codes, again[0])
        assert same(scales, again[1])


@repeatable
@given(operands(), st.data())
def test_matmul_is_symmetric_and_zero_padding_changes_nothing(a, data):
    b = data.draw(operands(rows=2, k=a.k))
    d = matmul(a, b)
    assert same(d, np.ascontiguousarray(matmul(b, a).T))
    room = -a.k % 32
    padded = [MxTensor(np.pad(t.codes, ((0, 0), (0, room))), t.scales, t.fmt) for t in (a, b)]
    assert same(matmul(*padded), d)
    assert np.isnan(d).sum() == (d.view(np.uint32) == fp32.NAN_BITS).sum()
    assert not (d.view(np.uint32) == 0x80000000).any()


@repeatable
@given(operands(k=50), st.integers(-8, 8), st.data())
def test_matmul_is_linear_in_powers_of_two(a, shift, data):
    """Away from the ends of the range, scaling an operand scales every result exactly."""
    b = data.draw(operands(rows=2, k=50))
    near = [MxTensor(t.codes, 110 + t.scales % np.uint8(30), t.fmt) for t in (a, b)]
    scales = (near[0].scales.astype(int) + shift).astype(np.uint8)
    moved = MxTensor(near[0].codes, scales, near[0].fmt)
    expected = fp32.multiply(matmul(*near), np.float32(2.0**shift))
    assert same(matmul(moved, near[1]), expected)


@repeatable
@given(operands(rows=2, k=32), st.data())
def test_order_inside_a_block_does_not_matter(t, data):
    other = data.draw(operands(rows=2, k=32))
    order = np.array(data.draw(st.permutations(range(32))))
    args = t.scales[:, 0], other.scales[:, 0], t.fmt, other.fmt
    assert same(
        block_dot(t.codes, other.codes, *args),
        block_dot(t.codes[:, order], other.codes[:, order], *args),
    )


@repeatable
@given(arrays.arrays(np.float32, (2, 6), elements=ANY))
def test_maximum_and_minimum_order_everything(x):
    a, b = x
    top, bottom = fp32.maximum(a, b), fp32.minimum(a, b)
    assert same(top, fp32.maximum(b, a))
    assert same(bottom, fp32.minimum(b, a))
    nan = np.isnan(a) | np.isnan(b)
    assert (top.view(np.uint32)[nan] == fp32.NAN_BITS).all()
    assert (top[~nan] >= bottom[~nan]).all()
    assert not (np.signbit(top[~nan]) & ~np.signbit(bottom[~nan])).any()


@repeatable
@given(matrices(ANY))
def test_results_round_trip(d):
    assert same(result(result(d, FP32), FP32), fp32.canonical(d))
    bits = result(d, BF16)
    assert same(fp32.to_bf16_bits(fp32.from_bf16_bits(bits)), bits)


@pytest.mark.parametrize("rule", SCALE_RULES)
def test_a_small_step_never_lowers_the_scale(rule):
    """Scales are monotonic in amax over a dense walk through three binades."""
    bits = np.arange(0x3F800000, 0x41000000, 997, dtype=np.uint32)
    x = np.repeat(bits.view(np.float32)[:, None], 2, axis=1)
    for fmt in MX_FORMATS.values():
        scales = quantise(x, fmt, rule).scales[:, 0].astype(int)
        assert (np.diff(scales) >= 0).all()
        assert scales[-1] - scales[0] in (2, 3)
