from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from poblano_golden.elements import decode
from poblano_golden.formats import MX_FORMATS, SCALE_NAN, SCALE_RULES
from poblano_verif.mx_blocks import (
    Blocks,
    random_blocks,
    scale_blocks,
    special_blocks,
    subnormal_blocks,
    tie_blocks,
)

FORMATS = tuple(MX_FORMATS)


def rng():
    return np.random.default_rng(1)


def amax(blocks):
    return (blocks.bits & 0x7FFFFFFF).max(axis=1)


def test_scale_blocks_have_every_exponent_and_meet_every_scale():
    blocks = scale_blocks(FORMATS, rng())
    _, scales = blocks.expected(FORMATS, 32)
    for index, name in enumerate(FORMATS):
        for rule in SCALE_RULES.values():
            chosen = (blocks.formats == index) & (blocks.rules == rule)
            fields = amax(blocks)[chosen] >> 23
            assert set(fields) == set(range(255))
            top = 254 - MX_FORMATS[name].max_exponent + (rule != 0)
            assert set(scales[chosen]) == set(range(min(top, 254) + 1))


@pytest.mark.parametrize("rule", SCALE_RULES)
@pytest.mark.parametrize("name", FORMATS)
def test_scale_blocks_decide_both_ways_at_every_exponent(name, rule):
    blocks = scale_blocks((name,), rng())
    blocks = blocks.take(np.flatnonzero(blocks.rules == SCALE_RULES[rule]))
    _, scales = blocks.expected((name,), 32)
    fields = amax(blocks) >> 23
    for field in range(MX_FORMATS[name].max_exponent + 1, 254):
        assert len(set(scales[fields == field])) == (1 if rule == "floor" else 2)


def test_tie_blocks_hold_every_tie_and_its_neighbours():
    for name in FORMATS:
        fmt = MX_FORMATS[name]
        blocks = tie_blocks((name,), [127], rng())
        values = np.unique(decode(np.arange(1 << fmt.element_bits, dtype=np.uint8), fmt))
        values = [Fraction(float(v)) for v in values if abs(v) <= fmt.largest]
        ties = {(a + b) / 2 for a, b in pairwise(values)}
        for rule in SCALE_RULES.values():
            chosen = blocks.bits[blocks.rules == rule]
            bits = set(np.unique(chosen).tolist())
            held = {Fraction(float(np.uint32(b).view(np.float32))) for b in bits}
            assert ties <= held
            for tie in ties:
                near = int(np.float32(float(tie)).view(np.uint32))
                assert {near - 1, near + 1} & bits or tie == 0
        assert np.isin(blocks.expected((name,), 32)[1], 127).all()


def test_tie_blocks_keep_to_their_scale():
    for scale in (0, 1, 8, 200, 254):
        blocks = tie_blocks(("mxfp4", "mxint8"), [scale], rng())
        assert set(blocks.expected(("mxfp4", "mxint8"), 32)[1]) == {scale}


def test_special_blocks_have_each_special_in_every_place():
    blocks = special_blocks(FORMATS, rng())
    codes, scales = blocks.expected(FORMATS, 32)
    magnitude = blocks.bits & 0x7FFFFFFF
    for pick in (magnitude == 0x7F800000, magnitude > 0x7F800000):
        assert pick.any(axis=0).all()
    invalid = (magnitude >= 0x7F800000).any(axis=1)
    assert set(scales[invalid]) == {SCALE_NAN}
    assert not codes[invalid].any()
    zero = ~magnitude.any(axis=1)
    assert zero.sum() >= 10 * len(FORMATS) * len(SCALE_RULES)
    assert not scales[zero].any()


def test_subnormal_blocks_lead_with_every_bit():
    blocks = subnormal_blocks(FORMATS, rng())
    top = amax(blocks)
    assert set(range(23)) <= {int(t).bit_length() - 1 for t in top}
    assert set(range(1, 24)) >= set(top >> 23) - {0}


def test_random_blocks_repeat_by_seed_and_mix_formats_and_rules():
    one, other = (random_blocks(FORMATS, 500, rng()) for _ in range(2))
    assert np.array_equal(one.bits, other.bits)
    ways = set(zip(one.formats.tolist(), one.rules.tolist(), strict=True))
    assert len(ways) == len(FORMATS) * len(SCALE_RULES)


def test_a_short_block_is_followed_by_zeros():
    ones = Blocks.of(np.full((1, 32), 0x3F800000), 0, 0)
    codes, scales = ones.expected(("mxfp4",), 32)
    assert codes[0].tolist() == [0x66] * 16 + [0] * 16
    assert scales.tolist() == [125]


def test_shuffling_keeps_each_block_with_its_format_and_rule():
    blocks = scale_blocks(("mxfp4", "mxint8"), rng())
    mixed = blocks.shuffled(rng())

    def rows(b):
        return sorted(map(tuple, np.column_stack([b.bits, b.formats, b.rules]).tolist()))

    assert rows(mixed) == rows(blocks)
    changes = np.count_nonzero(np.diff(mixed.formats))
    assert changes > len(mixed) / 3
