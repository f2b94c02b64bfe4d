"""Programs as text and as files: both give the program back; what is wrong is named."""

from __future__ import annotations

import struct
import zlib

import pytest
from test_streamed_matmul import CASES

from poblano.config import load
from poblano_golden.errors import PoblanoError
from poblano_sw.program import Program
from poblano_sw.program_file import MAGIC, pack_program, unpack_program
from poblano_sw.program_text import format_program, parse_program
from poblano_sw.streamed_matmul import StreamedMatmul

TINY = load("tiny", ["slice.l1.size=16 KiB"])

COPY = """\
# a copy
.queue load_0
load.rows hbm=0 l1=0 length=0x40 signal_a=1 signal_a_count=1   # in
.queue store_0
store.rows hbm=4096 l1=0 length=64 wait_a=1 wait_a_count=1
"""


def streamed(case):
    product, chunks, buffers = case
    queues = StreamedMatmul(TINY.slice, product, chunks, buffers).queues
    return Program(queues, ring_base=15 << 10, ring_words=4)


@pytest.mark.parametrize("case", CASES)
def test_text_and_bytes_give_the_program_back(case):
    program = streamed(case)
    assert parse_program(TINY, format_program(program)) == program
    assert unpack_program(TINY, pack_program(TINY, program)) == program


def test_rings_lie_at_the_end_of_l1_by_default():
    program = parse_program(TINY, COPY)
    assert program.ring_base + 2 * program.ring_bytes == TINY.slice.l1.size
    assert parse_program(TINY, ".ring base=0x400 words=2\n" + COPY).ring_base == 0x400


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("load.rows hbm=0 l1=0 length=4", "p:1: a command must follow a .queue; got load.rows"),
        (
            ".queue load_1",
            "p:1: .queue must be followed by one of tensor, vector, scalar, load_0, store_0; "
            "got load_1",
        ),
        (
            ".queue",
            "p:1: .queue must be followed by one of tensor, vector, scalar, load_0, store_0; "
            "got nothing",
        ),
        ("\n.words 3", "p:2: a directive must be .queue or .ring; got .words"),
        (".ring size=3", "p:1: .ring takes base=N and words=N; got 'size=3'"),
        (".ring words=x", "p:1: .ring takes base=N and words=N; got 'words=x'"),
        (".queue load_0\nload.rows hbm=0 l1=0", "p:2: load.rows needs field length"),
        (".queue load_0\nload.rows hbm=0 l1=0 length=0", "p:2: field length must be in 1"),
        ("# nothing\n", "p: a program must have a queue; it has none"),
    ],
)
def test_what_is_wrong_in_a_text_is_named(text, message):
    with pytest.raises(PoblanoError) as caught:
        parse_program(TINY, text, source="p")
    assert str(caught.value).startswith(message)


def resealed(data: bytes) -> bytes:
    body = data[:-4]
    return body + struct.pack("<I", zlib.crc32(body))


def test_what_is_wrong_in_a_file_is_named():
    data = pack_program(TINY, parse_program(TINY, COPY))
    cases = [
        (b"", "f: a program must begin with"),
        (b"PBLO", "f: a program must begin with"),
        (b"X" + data[1:], "f: a program must begin with"),
        (MAGIC + b"\2\0" + data[10:], "f: a program's version must be 1; got 2"),
        (data[:-1], "f: a program's CRC must be"),
        (
            resealed(data[:-68] + data[-4:]),
            "f: queue 4 with 1 words must exist and lie in the file",
        ),
        (
            resealed(data[:-4] + b"12345678"),
            "f: a program must end after its queues; 4 bytes are left",
        ),
    ]
    for bad, message in cases:
        with pytest.raises(PoblanoError) as caught:
            unpack_program(TINY, bad, source="f")
        assert str(caught.value).startswith(message), caught.value
    for position in range(12, len(data)):
        flipped = bytearray(data)
        flipped[position] ^= 0x10
        with pytest.raises(PoblanoError):
            unpack_program(TINY, bytes(flipped))
    other = load("tiny", ["slice.l1.size=32 KiB"])
    with pytest.raises(PoblanoError, match="a program must be made for configuration tiny"):
        unpack_program(other, data)


def test_a_program_that_cannot_end_is_not_packed():
    text = COPY.replace("signal_a=1", "signal_a=2")
    with pytest.raises(PoblanoError, match="queue store_0, command 0: semaphore 1"):
        pack_program(TINY, parse_program(TINY, text))
