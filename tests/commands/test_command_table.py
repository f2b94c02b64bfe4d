"""The command table: words, ranges, rules and the documentation made from it."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from poblano.arith.modes import modes
from poblano.commands import COMMANDS, WORD_BYTES, CommandError, by_mnemonic, by_opcode
from poblano.commands.reference import markdown
from poblano.config import load
from poblano_golden.formats import BF16, FP32, MXFP4, MXFP8_E5M2, MXINT8
from poblano_sw.assembler import assemble, disassemble, encode
from poblano_sw.matmul import plan_matmul, split_columns

TINY = load("tiny", []).slice

MNEMONICS = ", ".join(command.mnemonic for command in COMMANDS)
OPCODES = ", ".join(f"{command.opcode:#04x}" for command in COMMANDS)


def values(**changes: int) -> dict[str, int]:
    plan = plan_matmul(TINY, m=3, n=5, k=70, a=MXFP4, b=MXFP4, result=MXFP4)
    return {**plan.values, **changes}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c.mnemonic)
def test_fields_lie_apart_and_inside_the_word(command):
    taken = set(range(8))
    for item in command.fields:
        bits = set(range(command.offsets[item.name], command.offsets[item.name] + item.width))
        assert not bits & taken
        assert max(bits) < 8 * WORD_BYTES
        assert item.width < 8 or min(bits) % 8 == 0
        taken |= bits


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c.mnemonic)
def test_a_word_gives_its_values_back(command):
    random = Random(1)
    for _ in range(200):
        full = {item.name: random.getrandbits(item.width) for item in command.fields}
        word = command.encode(full)
        assert command.decode(word) == full
        assert by_opcode(word[0]) is command


def test_opcodes_and_mnemonics_are_unique():
    assert len({c.opcode for c in COMMANDS}) == len({c.mnemonic for c in COMMANDS}) == len(COMMANDS)
    assert all(by_mnemonic(c.mnemonic) is c for c in COMMANDS)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"m": 0}, "field m must be in 1..16777215 rows; got 0"),
        ({"k": 1 << 24}, "field k must be in 1..16777215 elements; got 16777216"),
        ({"n": -1}, "field n must be in 1..16777215 rows; got -1"),
        ({"scale_rule": 3}, "field scale_rule must be 0 (floor), 1 (round_up), 2 (even); got 3"),
        (
            {"a_format": MXFP8_E5M2.code},
            "the engine multiplies mxfp4*mxfp4, mxfp8_e4m3*mxfp4, mxfp8_e4m3*mxfp8_e4m3, "
            "mxint8*mxfp4, mxint8*mxint8; got mxfp8_e5m2*mxfp4",
        ),
        (
            {"d_format": MXFP8_E5M2.code},
            "results leave as fp32, bf16, mxfp4, mxfp8_e4m3, mxint8; got mxfp8_e5m2",
        ),
        ({"a_code_stride": 47}, "a_code_stride must be at least 48 bytes; got 47"),
        (
            {"b_codes": 65536},
            "b_code must end inside L1, at or below byte 65536; got 65872",
        ),
        (
            {"d_scales": 65534},
            "d_scale must end inside L1, at or below byte 65536; got 65537",
        ),
    ],
)
def test_a_broken_rule_is_named_with_its_value(changes, message):
    with pytest.raises(CommandError) as error:
        encode(TINY, "tensor.matmul", **values(**changes))
    assert str(error.value) == message


def test_program_text_round_trips():
    words = [encode(TINY, "tensor.matmul", **values(axis=axis)) for axis in (0, 1)]
    text = disassemble(words)
    assert assemble(TINY, text) == words
    assert "a_format=mxfp4" in text
    assert "axis=m" in text


def test_defaults_comments_and_bases():
    text = disassemble([encode(TINY, "tensor.matmul", **values(d_format=FP32.code))])
    short = text.replace(" axis=n", "").replace(" scale_rule=floor", "").replace("m=3", "m=0x3")
    assert assemble(TINY, f"# a program\n\n{short.strip()} # ends here\n") == assemble(TINY, text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tensor.mul m=1", f"p:1: a command must be one of {MNEMONICS}; got 'tensor.mul'"),
        ("tensor.matmul", "p:1: tensor.matmul needs field a_format"),
        ("\ntensor.matmul q=1", "p:2: tensor.matmul has no field q"),
        ("tensor.matmul m", "p:1: a field is written name=value; got 'm'"),
        ("tensor.matmul m=1 m=2", "p:1: field m must be given once; got 'm=2' again"),
        ("tensor.matmul m=x", "p:1: field m must be an integer; got 'x'"),
        ("tensor.matmul axis=k", "p:1: field axis must be n, m; got 'k'"),
    ],
)
def test_a_bad_line_is_named(text, message):
    with pytest.raises(CommandError) as error:
        assemble(TINY, text, source="p")
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("word", "message"),
    [
        (b"\0" * 64, f"an opcode must be one of {OPCODES}; got 0x00"),
        (b"\x10" * 63, "word 0 must have 64 bytes; got 63"),
        (b"\x10" + b"\xff" * 63, "word 0 has bits outside the fields of tensor.matmul"),
    ],
)
def test_a_bad_word_is_named(word, message):
    with pytest.raises(CommandError) as error:
        disassemble([word])
    assert str(error.value) == message


def test_every_mode_has_a_cost_that_grows_with_its_beats():
    costs = {}
    for mode in modes(TINY.tensor.formats):
        plan = plan_matmul(TINY, m=8, n=64, k=256, a=mode.a, b=mode.b, result=BF16)
        costs[mode.a.name, mode.b.name] = plan.phases.beats
    assert costs["mxfp4", "mxfp4"] * 2 == costs["mxfp4", "mxint8"] == costs["mxfp8_e4m3", "mxfp4"]
    assert costs["mxfp4", "mxfp4"] * 4 == costs["mxint8", "mxint8"]


def test_what_does_not_fit_says_by_how_much():
    with pytest.raises(CommandError, match=r"65536 bytes of L1; 64x576 by 576x1536 .* takes \d+"):
        plan_matmul(TINY, m=64, n=1536, k=576, a=MXFP4, b=MXFP4, result=FP32)


def test_columns_are_split_into_whole_tiles_that_fit():
    spec = {"m": 5, "k": 576, "a": MXINT8, "b": MXINT8, "result": FP32}
    parts = split_columns(TINY, n=500, **spec)
    assert [part.start for part in parts] == [0, *(part.stop for part in parts[:-1])]
    assert parts[-1].stop == 500
    for part in parts:
        assert len(part) % 32 == 0 or part is parts[-1]
        assert plan_matmul(TINY, n=len(part), **spec).macs == 5 * 576 * len(part)
    with pytest.raises(CommandError):
        plan_matmul(TINY, n=len(parts[0]) + 32, **spec)
    with pytest.raises(CommandError):
        split_columns(TINY, n=500, **{**spec, "m": 500})


def test_the_reference_page_is_the_table():
    page = Path(__file__).parents[2] / "docs" / "commands.md"
    assert page.read_text() == markdown(), "poblano commands --markdown > docs/commands.md"
