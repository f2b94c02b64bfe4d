"""Text of the scalar engine's programs to bytes and back."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from poblano.commands import LOAD_ROWS
from poblano.config import load
from poblano.host.registers import queue_names
from poblano.scalar.instructions import INSTRUCTIONS
from poblano_golden.errors import PoblanoError
from poblano_sw.assembler import encode
from poblano_sw.scalar import ScalarRun, assemble_scalar, disassemble_scalar

TINY = load("tiny", [])
QUEUES = ", ".join(queue_names(TINY))


def words(text):
    code = assemble_scalar(TINY, text).code
    return [int.from_bytes(code[at : at + 4], "little") for at in range(0, len(code), 4)]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("add r1, r2, r3", 0x0003_2110),
        ("addi r15, r0, -1", 0xFFFF_0F20),
        ("set r4, -524288", 0x8000_0430),
        ("append r4, 0xfffff", 0xFFFF_F431),
        ("load32 r7, r8, 12", 0x000C_8742),
        ("store64 r7, r8, -8", 0xFFF8_874B),
        ("beq r1, r2, 3", 0x0003_1250),
        ("jump -1", 0xFFFF_FF58),
        ("call r9, 2", 0x0000_2959),
        ("return r9", 0x0000_905A),
        ("word r3, 64", 0x0040_3060),
        ("field r3, load.rows.hbm", 0x4E48_3061),
        ("field r3, 72:40", 0x4E48_3061),
        ("issue tensor", 0x0000_0062),
        ("issue 255", 0x0000_FF62),
        ("wait 5, 3", 0x0003_0563),
        ("signal 63, 1023", 0x03FF_3F64),
        ("halt", 0x0000_0065),
    ],
)
def test_encodings(text, word):
    assert words(text) == [word]


def test_labels_name_what_follows_them():
    text = """
    start: set r1, 1
    a: b: jump d       # forwards
    .data8 1
    c:
    .data16 0x1234, -1
    d:
       halt
    end:
    """
    program = assemble_scalar(TINY, text)
    assert program.labels == {"start": 0, "a": 4, "b": 4, "c": 10, "d": 16, "end": 20}


def test_command_words_are_aligned_and_found():
    text = """
    address r1, template
    halt
    template: .word load.rows hbm=5 l1=6 length=7
    """
    program = assemble_scalar(TINY, text)
    at = program.labels["template"]
    assert (at, len(program.code)) == (64, 128)
    assert program.code[at:] == encode(TINY.slice, "load.rows", hbm=5, l1=6, length=7)
    assert program.code[8:64] == bytes(56)
    assert program.lines == {0: 2, 4: 3}
    assert words("here: address r1, here")[0] >> 12 == 0


CONSTANTS = [0, 1, -1, 524287, 524288, -524288, -524289, 1 << 39, (1 << 40) - 1, -(1 << 63)]


@pytest.mark.parametrize("value", [*CONSTANTS, (1 << 63) - 1, 1 << 63, (1 << 64) - 1])
def test_let_sets_any_number(value):
    text = f"let r3, {value}\nhalt"
    program = assemble_scalar(TINY, text)
    l1 = np.zeros(TINY.slice.l1.size, np.uint8)
    l1[: len(program.code)] = np.frombuffer(program.code, np.uint8)
    run = ScalarRun(TINY.slice, 1, l1, encode(TINY.slice, "scalar.run", pc=0))
    run.finish()
    assert run.registers[3] == value % (1 << 64)
    width = max(value, ~value).bit_length() + 1
    assert run.executed == 1 + -(-width // 20)


def test_a_program_comes_back_from_its_bytes():
    random = Random(3)
    for _ in range(20):
        code = b"".join(
            (
                random.getrandbits(32)
                if random.random() < 0.1
                else i.encode([random.choice(o.range) for o in i.operands])
            ).to_bytes(4, "little")
            for i in random.choices(INSTRUCTIONS, k=60)
        )
        text = disassemble_scalar(TINY, code)
        if ".data32" not in text[:12]:
            assert assemble_scalar(TINY, text).code == code


def test_text_is_readable():
    text = "at_0:\n    load32 r1, r2, 4\n    issue store_0\n    bne r1, r0, at_0\n    halt\n"
    assert disassemble_scalar(TINY, assemble_scalar(TINY, text).code) == text
    with pytest.raises(PoblanoError, match="code must be a multiple of 4 bytes; got 5"):
        disassemble_scalar(TINY, bytes(5))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "p: a program must have an instruction; it has none"),
        ("nop", "p:1: an instruction must be one of the table's; got 'nop'"),
        ("\nadd r1, r2", "p:2: add takes rd, ra, rb; got r1, r2"),
        ("halt r1", "p:1: halt takes no operands; got r1"),
        ("add r1, r2, r16", "p:1: rb must be a register r0 to r15; got 'r16'"),
        ("addi r1, r2, x", "p:1: imm must be an integer; got 'x'"),
        ("addi r1, r2, 40000", "p:1: imm of addi must be in -32768..32767; got 40000"),
        ("jump away", "p:1: target, where it is no label, must be an integer; got 'away'"),
        ("a: halt\na: halt", "p:2: a label must be given once; got a again"),
        ("jump a\n.data8 0\na: .data8 0", "p:1: a target must be an instruction; got a, which is "),
        ("issue gpu", f"p:1: a queue must be one of {QUEUES}; got 'gpu'"),
        ("field r1, load.rows.x", "p:1: load.rows has no field x"),
        ("field r1, load.row.x", "p:1: a command must be one of tensor.matmul"),
        ("field r1, 500:20", "p:1: a field must have 1 to 64 bits inside a word of 512; got 20 b"),
        ("field r1, 5", "p:1: a field's width must be an integer; got ''"),
        (".word load.rows hbm=0", "p:1: load.rows needs field l1"),
        (".word", "p:1: .word must be followed by a command; got nothing"),
        (".data8 256", "p:1: data must fit 8 bits; got 256"),
        (".data64 -9223372036854775809", "p:1: data must fit 64 bits; got -9223372036854775809"),
        (".data32 x", "p:1: data must be an integer; got 'x'"),
        (".data32", "p:1: .data32 must be followed by numbers; got nothing"),
        (".align 3", "p:1: .align must be a power of two from 4 to 64; got 3"),
        (".align", "p:1: the bytes of .align must be an integer; got ''"),
        (".text", "p:1: a directive must be one of .word, .data8, .data16, .data32, .data64, .al"),
        ("let r1", "p:1: let takes a register and a number; got r1"),
        ("let r1, 0x10000000000000000", "p:1: the number of let must fit 64 bits; got 184467440"),
    ],
)
def test_a_bad_line_is_named(text, message):
    with pytest.raises(PoblanoError) as error:
        assemble_scalar(TINY, text, source="p")
    assert str(error.value).startswith(message)


def test_every_field_of_a_command_has_a_place():
    for item in LOAD_ROWS.fields:
        (word,) = words(f"field r1, load.rows.{item.name}")
        assert word >> 16 & 511 == LOAD_ROWS.offsets[item.name]
        assert (word >> 25) + 1 == item.width
