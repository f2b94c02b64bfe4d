"""The DMA engine's commands: defaults, text, and the rules that bind their fields."""

from __future__ import annotations

import pytest

from poblano.commands import CommandError, by_mnemonic
from poblano.config import load
from poblano_sw.assembler import assemble, disassemble, encode

TINY = load("tiny", []).slice
SMALL_HBM = load("tiny", ["slice.hbm.capacity=1000 KiB"]).slice
SIZE = 64 * 1024

ROWS = {"hbm": 0, "l1": 0, "length": 64}
INDEXED = {**ROWS, "rows": 4, "indices": 128}


def test_a_plain_run_is_one_row():
    (word,) = assemble(TINY, "load.rows hbm=0x123456789a l1=7 length=100")
    values = by_mnemonic("load.rows").decode(word)
    assert values["hbm"] == 0x123456789A
    assert (values["rows"], values["planes"]) == (1, 1)
    assert values == by_mnemonic("load.rows").complete(
        {"hbm": 0x123456789A, "l1": 7, "length": 100}
    )


@pytest.mark.parametrize(
    ("mnemonic", "opcode"),
    [("load.rows", 0x20), ("load.gather", 0x21), ("store.rows", 0x28), ("store.scatter", 0x29)],
)
def test_words_go_back_and_forth(mnemonic, opcode):
    given = {**(ROWS if mnemonic.endswith("rows") else INDEXED), "l1_row_stride": 90}
    word = encode(TINY, mnemonic, **given)
    assert word[0] == opcode
    assert assemble(TINY, disassemble([word])) == [word]


@pytest.mark.parametrize("mnemonic", ["load.rows", "store.rows"])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"length": 0}, "field length must be in 1..16777215 bytes; got 0"),
        ({"rows": 0}, "field rows must be in 1..16777215 rows; got 0"),
        ({"planes": 0}, "field planes must be in 1..65535 planes; got 0"),
        ({"l1": SIZE - 63}, "l1 must end inside L1, at or below byte 65536; got 65537"),
        (
            {"rows": 3, "l1_row_stride": SIZE // 2},
            "l1 must end inside L1, at or below byte 65536; got 65600",
        ),
        (
            {"planes": 2, "rows": 2, "l1_row_stride": 64, "l1_plane_stride": SIZE - 127},
            "l1 must end inside L1, at or below byte 65536; got 65537",
        ),
        (
            {"hbm": 1_023_937},
            "hbm must end inside HBM, at or below byte 1024000; got 1024001",
        ),
        (
            {"planes": 11, "hbm_plane_stride": 102_394},
            "hbm must end inside HBM, at or below byte 1024000; got 1024004",
        ),
    ],
)
def test_a_broken_rule_of_rows_is_named(mnemonic, changes, message):
    with pytest.raises(CommandError) as error:
        encode(SMALL_HBM, mnemonic, **{**ROWS, **changes})
    assert str(error.value) == message


@pytest.mark.parametrize("mnemonic", ["load.gather", "store.scatter"])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": 0}, "field rows must be in 1..16777215 rows; got 0"),
        ({"indices": 130}, "indices must be a multiple of 4 bytes; got 130"),
        (
            {"indices": SIZE - 12},
            "indices must end inside L1, at or below byte 65536; got 65540",
        ),
        (
            {"l1_row_stride": 21_825},
            "l1 must end inside L1, at or below byte 65536; got 65539",
        ),
        (
            {"hbm": 1_023_937},
            "hbm must end inside HBM, at or below byte 1024000; got 1024001",
        ),
    ],
)
def test_a_broken_rule_of_indices_is_named(mnemonic, changes, message):
    with pytest.raises(CommandError) as error:
        encode(SMALL_HBM, mnemonic, **{**INDEXED, **changes})
    assert str(error.value) == message


def test_the_last_byte_of_both_memories_is_legal():
    for mnemonic in ("load.rows", "store.rows"):
        encode(TINY, mnemonic, hbm=(1 << 40) - 64, l1=SIZE - 64, length=64)
        encode(SMALL_HBM, mnemonic, hbm=1_024_000 - 64, l1=SIZE - 64, length=64)
