"""Damaged and hostile safetensors headers."""

from __future__ import annotations

import json
import random
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from poblano_golden.errors import PoblanoError
from poblano_sw.model.safetensors_file import SafetensorsFile


def raw_file(header: Any, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def opened(tmp_path: Path, raw: bytes) -> SafetensorsFile:
    path = tmp_path / "model.safetensors"
    path.write_bytes(raw)
    return SafetensorsFile(path)


def entry(dtype: Any, shape: Any, start: Any, end: Any) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


def good() -> bytes:
    header = {
        "__metadata__": {"format": "pt"},
        "b": entry("BF16", [2, 2], 0, 8),
        "e": entry("F8_E8M0", [4], 8, 12),
        "f": entry("F32", [1, 3], 12, 24),
    }
    data = struct.pack("<4H", 0x3F80, 0xC000, 0x0000, 0x7F80) + b"\x7f\x80\x00\xff"
    return raw_file(header, data + struct.pack("<3f", 1.5, -2.0, 3.0))


def test_reads_tensors(tmp_path: Path) -> None:
    file = opened(tmp_path, good())
    np.testing.assert_array_equal(file.tensor("b"), [[1, -2], [0, np.inf]])
    assert file.tensor("b").dtype == np.float32
    np.testing.assert_array_equal(file.tensor("e"), np.array([127, 128, 0, 255], np.uint8))
    np.testing.assert_array_equal(file.tensor("f"), [[1.5, -2.0, 3.0]])
    with pytest.raises(PoblanoError, match="tensor 'x' is missing"):
        file.tensor("x")


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    raw = good()
    for length in range(len(raw)):
        with pytest.raises(PoblanoError, match="truncated"):
            opened(tmp_path, raw[:length])


def test_random_damage_never_escapes(tmp_path: Path) -> None:
    rng, raw, messages = random.Random(6), good(), list[str]()
    for _ in range(2000):
        damaged = bytearray(raw)
        for _ in range(rng.choice((1, 2, 6))):
            damaged[rng.randrange(len(raw) - 24)] = rng.choice(b'\x00\xff0123456789{}[],:" eE-.')
        try:
            file = opened(tmp_path, bytes(damaged))
            for name in file.tensors:
                file.tensor(name)
        except PoblanoError as error:
            messages.append(str(error))
    assert len(messages) > 1000
    assert not any("\n" in message for message in messages)


def test_huge_header_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(bytes.fromhex("409DDF0700000000"))
    tracemalloc.start()
    try:
        with pytest.raises(
            PoblanoError, match="header length 132,095,296 must be at most 100,000,000 bytes"
        ):
            SafetensorsFile(path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (raw_file(b"[1]"), "the header must be a JSON object"),
        (raw_file(b"{"), "the header is not valid JSON"),
        (raw_file(b"[" * 100_000), "the header is not valid JSON"),
        (raw_file(b"\xff\xff"), "the header is not valid JSON"),
        (raw_file(b'{"w": 1, "w": 2}'), "'w' occurs twice"),
        (raw_file({"w": [1]}), "tensor 'w': must have exactly dtype, shape and data_offsets"),
        (raw_file({"w": entry("F31", [1], 0, 4)}, bytes(4)), "tensor 'w': unknown dtype 'F31'"),
        (raw_file({"w": entry(["F32"], [1], 0, 4)}, bytes(4)), "tensor 'w': unknown dtype"),
        (raw_file({"w": entry("F32", [-1], 0, 4)}, bytes(4)), "shape must be a list of counts"),
        (raw_file({"w": entry("F32", [1.0], 0, 4)}, bytes(4)), "shape must be a list of counts"),
        (raw_file({"w": entry("F32", [True], 0, 4)}, bytes(4)), "shape must be a list of counts"),
        (raw_file({"w": entry("F32", [4, 0], 0, 0)}), "dimension 1 must be at least 1, not 0"),
        (raw_file({"w": entry("F32", [1], 4, 0)}), "must be two ascending counts"),
        (
            raw_file({"w": entry("F32", [1000, 1000], 0, 4)}, bytes(4)),
            r"F32 \[1000, 1000\] takes 4,000,000 bytes, but data_offsets span 4",
        ),
        (raw_file({"w": entry("U8", [4], 0, 4)}, bytes(3)), "truncated: the tensors end at"),
        (raw_file({"w": entry("U8", [4], 0, 4)}, bytes(5)), "too long: the tensors end at"),
        (raw_file({"w": entry("U8", [4], 4, 8)}, bytes(8)), "'w' leaves a gap after the header"),
        (
            raw_file({"v": entry("U8", [4], 0, 4), "w": entry("U8", [4], 2, 6)}, bytes(6)),
            "tensor 'w' overlaps 'v'",
        ),
    ],
)
def test_refuses(tmp_path: Path, raw: bytes, message: str) -> None:
    with pytest.raises(PoblanoError, match=message):
        opened(tmp_path, raw)
