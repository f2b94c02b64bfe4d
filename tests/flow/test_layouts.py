"""Payloads packed and unpacked by the layouts of a manifest."""

from random import Random

import pytest
from amaranth.hdl import Const, signed, unsigned
from amaranth.lib import data
from sim_designs import Op, Operation

from poblano_flow.manifest import describe_shape
from poblano_golden.errors import PoblanoError
from poblano_verif.layouts import Layout, leaves, text_of


class Packet(data.Struct):
    """A bit of everything."""

    op: Op
    delta: signed(5)
    flag: unsigned(1)
    pairs: data.ArrayLayout(data.StructLayout({"x": 4, "y": signed(3)}), 3)
    either: data.UnionLayout({"word": 8, "nibbles": data.ArrayLayout(4, 2)})


def layout_of(shape):
    described = describe_shape(shape)
    return Layout.of(described, described["width"])


PACKET = layout_of(Packet)
VALUE = {
    "op": "SWAP",
    "delta": -7,
    "flag": 1,
    "pairs": [{"x": 1, "y": -4}, {"x": 15, "y": 3}, {"x": 0, "y": -1}],
}


def amaranth_bits(shape, value):
    """Return the bits that Amaranth gives a value."""
    return Const(value, shape).as_value().value & ((1 << layout_of(shape).width) - 1)


def test_packed_as_amaranth_packs():
    bits = PACKET.pack({**VALUE, "either": {"word": 0xA5}})
    assert bits == amaranth_bits(Packet, {**VALUE, "op": Op.SWAP, "either": {"word": 0xA5}})


def test_unpacked_is_what_was_packed():
    found = PACKET.unpack(PACKET.pack({**VALUE, "either": {"nibbles": [5, 10]}}))
    assert found == {**VALUE, "either": {"word": 0xA5, "nibbles": [5, 10]}}


@pytest.mark.parametrize("shape", [Packet, Operation, unsigned(7), signed(7), Op])
def test_every_random_value_survives(shape):
    layout = layout_of(shape)
    random = Random(1)
    for _ in range(200):
        value = layout.random(random)
        bits = layout.pack(value)
        assert 0 <= bits < 1 << layout.width
        assert layout.unpack(bits) == value


def test_number_without_a_name_stays_a_number():
    layout = layout_of(Op)
    assert [layout.unpack(bits) for bits in range(4)] == ["ADD", "SUBTRACT", "SWAP", 3]
    assert layout.pack(3) == 3


def test_parts_left_out_are_zero():
    assert PACKET.unpack(PACKET.pack({"flag": 1})) == {
        "op": "ADD",
        "delta": 0,
        "flag": 1,
        "pairs": [{"x": 0, "y": 0}] * 3,
        "either": {"word": 0, "nibbles": [0, 0]},
    }


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"delta": 16}, "value.delta must be -16 to 15; got 16"),
        ({"flag": -1}, "value.flag must be 0 to 1; got -1"),
        ({"op": "DIVIDE"}, "value.op must be one of ADD, SUBTRACT, SWAP; got 'DIVIDE'"),
        ({"opp": 1}, "value must have fields of op, delta, .*; got 'opp'"),
        ({"pairs": [0, 0, 0, 0]}, "value.pairs must be an array of at most 3; got a sequence of 4"),
        ({"pairs": [{"z": 1}]}, r"value.pairs\[0\] must have fields of x, y; got 'z'"),
        ({"flag": [1]}, r"value.flag must be a number \(unsigned\); got a sequence of 1"),
    ],
)
def test_value_that_does_not_fit(value, message):
    with pytest.raises(PoblanoError, match=message):
        PACKET.pack(value)


def test_text():
    assert text_of(layout_of(Operation), layout_of(Operation).pack({"op": "SWAP", "b": 10})) == (
        "op=SWAP a=0x00 b=0x0a"
    )
    assert text_of(layout_of(signed(4)), 15) == "-1"
    assert text_of(Layout.of(None, 12), 0xABC) == "0xabc"


def test_leaves_have_indices():
    names = [name for name, _, _ in leaves(PACKET, 0)]
    assert names[:5] == ["op", "delta", "flag", "pairs[0].x", "pairs[0].y"]
    assert [name for name, _, _ in leaves(Layout.of(None, 4), 3)] == [""]
