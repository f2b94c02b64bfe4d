"""Damaged and hostile GGUF files: every kind ends in one clear line, before memory is taken."""

from __future__ import annotations

import math
import random
import struct
import tracemalloc
from pathlib import Path

import gguf
import gguf_bytes as build
import numpy as np
import pytest

from poblano_golden.blocks import dequantise, from_checkpoint
from poblano_golden.errors import PoblanoError
from poblano_sw.model.gguf_file import GgufFile

F32, F16, Q4_1, Q6_K, I8, BF16, MXFP4 = 0, 1, 3, 14, 24, 30, 39
U8, U32, BOOL, STRING, ARRAY = 0, 4, 7, 8, 9


def opened(tmp_path: Path, raw: bytes) -> GgufFile:
    path = tmp_path / "model.gguf"
    path.write_bytes(raw)
    return GgufFile(path)


def good() -> bytes:
    """A small file with every kind of entry and two tensors."""
    floats = np.arange(8, dtype="<f4").tobytes()
    half = np.arange(32, dtype="<f2").tobytes()
    return build.file(
        [
            build.entry("number", U32, struct.pack("<I", 7)),
            build.entry("flag", BOOL, b"\x01"),
            build.entry(
                "words", ARRAY, struct.pack("<IQ", STRING, 2) + build.text("a") + build.text("é")
            ),
            build.entry("bytes", ARRAY, struct.pack("<IQ", U8, 3) + b"\x01\x02\x03"),
        ],
        [build.tensor("f", [4, 2], F32, 0), build.tensor("h", [32], F16, 32)],
        floats + half,
    )


def test_reads_metadata_and_tensors(tmp_path: Path) -> None:
    file = opened(tmp_path, good())
    assert file.metadata == {"number": 7, "flag": True, "words": ["a", "é"], "bytes": [1, 2, 3]}
    assert file.tensors["f"].shape == (2, 4)
    np.testing.assert_array_equal(file.tensor("f"), np.arange(8, dtype=np.float32).reshape(2, 4))
    np.testing.assert_array_equal(file.tensor("f", rows=[1]), [[4, 5, 6, 7]])
    np.testing.assert_array_equal(file.tensor("h"), np.arange(32))


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    raw = good()
    for length in range(len(raw)):
        with pytest.raises(PoblanoError, match=r"truncated|bytes, the file has"):
            opened(tmp_path, raw[:length])


def test_random_damage_never_escapes(tmp_path: Path) -> None:
    """Any byte of the header may be anything: the file is read or refused, nothing else."""
    rng, raw, messages = random.Random(5), good(), list[str]()
    for _ in range(3000):
        damaged = bytearray(raw)
        for _ in range(rng.choice((1, 1, 2, 8))):
            damaged[rng.randrange(len(raw) - 96)] = rng.choice(
                (0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256))
            )
        try:
            file = opened(tmp_path, bytes(damaged))
            for name in file.tensors:
                file.tensor(name)
        except PoblanoError as error:
            messages.append(str(error))
    assert len(messages) > 1000
    assert not any("\n" in message for message in messages)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        pytest.param(b"", "truncated: the file is empty", id="empty"),
        pytest.param(
            build.file(magic=b"GGML"), "not a GGUF file: it begins with b'GGML'", id="magic"
        ),
        pytest.param(
            build.file(version=4), r"version must be one of \(2, 3\), not 4", id="version"
        ),
        pytest.param(build.file(version=3 << 24), "a big-endian file", id="big-endian"),
        pytest.param(
            build.file(tensors=[build.tensor("w", [4, 0], F32, 0)]),
            r"tensor 'w': dimension 1 must be at least 1, not 0 \(dimensions \[4, 0\]\)",
            id="zero-dimension",
        ),
        pytest.param(
            build.file(tensors=[build.tensor("w", [], F32, 0)]),
            "tensor 'w' must have 1 to 4 dimensions, not 0",
            id="no-dimension",
        ),
        pytest.param(
            build.file(tensors=[build.tensor("w", [1] * 5, F32, 0)]),
            "tensor 'w' must have 1 to 4 dimensions, not 5",
            id="five-dimensions",
        ),
        pytest.param(
            build.file(tensors=[build.tensor("w", [32], 4, 0)], data=bytes(64)),
            "tensor 'w' has the unknown type 4",
            id="removed-type",
        ),
        pytest.param(
            build.file(tensors=[build.tensor("w", [32], 99, 0)], data=bytes(64)),
            "tensor 'w' has the unknown type 99",
            id="unknown-type",
        ),
        pytest.param(
            build.file(tensors=[build.tensor("w", [1000, 1000], F32, 0)], data=bytes(4)),
            r"tensor 'w' \(F32 \[1000, 1000\], 4000000 bytes\) must lie within the file",
            id="extent",
        ),
        pytest.param(
            build.file(tensors=[build.tensor("w", [1 << 63, 1 << 63, 1 << 63, 8], F32, 0)]),
            r"tensor 'w' \(F32 .* bytes\) must lie within the file",
            id="product-overflow",
        ),
        pytest.param(
            build.file(tensors=[build.tensor("w", [8], F32, (1 << 64) - 32)], data=bytes(32)),
            "must lie within the file",
            id="offset-overflow",
        ),
        pytest.param(
            build.file(tensors=[build.tensor("w", [33], Q4_1, 0)], data=bytes(64)),
            "tensor 'w': a row of Q4_1 must be a multiple of 32 elements, not 33",
            id="ragged-row",
        ),
        pytest.param(
            build.file(tensors=[build.tensor("w", [8], F32, 4)], data=bytes(64)),
            "tensor 'w': offset 4 must be a multiple of the alignment 32",
            id="misaligned",
        ),
        pytest.param(
            build.file(
                tensors=[build.tensor("v", [16], F32, 0), build.tensor("w", [8], F32, 32)],
                data=bytes(64),
            ),
            "tensor 'w' overlaps 'v'",
            id="overlap",
        ),
        pytest.param(
            build.file(
                tensors=[build.tensor("w", [8], F32, 0), build.tensor("w", [8], F32, 32)],
                data=bytes(64),
            ),
            "tensor 'w' occurs twice",
            id="twice",
        ),
        pytest.param(
            build.file([build.entry("k", U8, b"\x00")] * 2), "key 'k' occurs twice", id="key-twice"
        ),
        pytest.param(
            build.file([build.entry("general.alignment", U32, struct.pack("<I", 0))]),
            "general.alignment must be a power of two, not 0",
            id="alignment",
        ),
        pytest.param(
            build.file([build.entry("k", 13, bytes(8))]),
            "key 'k' has the unknown value type 13",
            id="value-type",
        ),
        pytest.param(
            build.file([build.entry("k", ARRAY, struct.pack("<IQ", ARRAY, 1))]),
            "key 'k' holds an array of arrays",
            id="nested",
        ),
        pytest.param(
            build.file([build.entry("k", STRING, struct.pack("<Q", 1) + b"\xff")]),
            "k before byte .* is not UTF-8",
            id="utf8",
        ),
    ],
)
def test_refuses(tmp_path: Path, raw: bytes, message: str) -> None:
    with pytest.raises(PoblanoError, match=message):
        opened(tmp_path, raw)


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(build.file(counts=(1 << 62, 0)), id="tensors"),
        pytest.param(build.file(counts=(0, (1 << 64) - 1)), id="entries"),
        pytest.param(build.file([struct.pack("<Q", 1 << 63)]), id="key"),
        pytest.param(build.file([build.entry("k", STRING, struct.pack("<Q", 1 << 40))]), id="text"),
        pytest.param(
            build.file([build.entry("k", ARRAY, struct.pack("<IQ", STRING, 1 << 61))]), id="texts"
        ),
        pytest.param(
            build.file([build.entry("k", ARRAY, struct.pack("<IQ", U8, 1 << 33))]), id="bytes"
        ),
        pytest.param(
            build.file(tensors=[build.text("w") + struct.pack("<I", 0xFFFFFFFF)], counts=(1, 0)),
            id="dimensions",
        ),
    ],
)
def test_absurd_counts_take_no_memory(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(raw)
    tracemalloc.start()
    try:
        with pytest.raises(PoblanoError, match=r"the file has|1 to 4 dimensions"):
            GgufFile(path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["missing.gguf", "."])
def test_what_is_no_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(PoblanoError, match="cannot be read: "):
        GgufFile(tmp_path / name)


def test_mxfp4_is_read_exactly(tmp_path: Path) -> None:
    """Type 39: a scale byte and 16 bytes a block; the halves of a block are in the two nibbles."""
    codes = np.random.default_rng(3).integers(0, 16, (4, 2, 32), dtype=np.uint8)
    scales = np.array([[127, 126], [0, 1], [2, 200], [252, 100]], np.uint8)
    stored = np.concatenate([scales[..., None], codes[..., :16] | codes[..., 16:] << 4], axis=-1)
    file = opened(
        tmp_path,
        build.file(tensors=[build.tensor("w", [64, 4], MXFP4, 0)], data=stored.tobytes()),
    )
    pairs = codes[..., 0::2] | codes[..., 1::2] << 4
    np.testing.assert_array_equal(file.tensor("w"), dequantise(from_checkpoint(pairs, scales)))


@pytest.mark.parametrize("kind", [F16, BF16, Q4_1, 8, Q6_K])
def test_agrees_with_the_gguf_package(tmp_path: Path, kind: int) -> None:
    type_ = gguf.GGMLQuantizationType(kind)
    block, size = gguf.GGML_QUANT_SIZES[type_]
    width = max(block, 64)
    raw = np.random.default_rng(7).integers(0, 60, (3, width // block * size), dtype=np.uint8)
    file = opened(
        tmp_path, build.file(tensors=[build.tensor("w", [width, 3], kind, 0)], data=raw.tobytes())
    )
    np.testing.assert_array_equal(file.tensor("w"), gguf.quants.dequantize(raw, type_))


@pytest.mark.parametrize(
    ("kind", "data", "message"),
    [
        (F32, struct.pack("<f", math.nan) * 32, "tensor 'w' holds a NaN or an infinity"),
        (F16, b"\x00\x7c" * 32, "tensor 'w' holds a NaN or an infinity"),
        (MXFP4, b"\xff" + bytes(16), "tensor 'w' holds a NaN or an infinity"),
        (I8, bytes(32), "tensor 'w' has type I8, which cannot be decoded"),
    ],
)
def test_refuses_values(tmp_path: Path, kind: int, data: bytes, message: str) -> None:
    file = opened(tmp_path, build.file(tensors=[build.tensor("w", [32], kind, 0)], data=data))
    with pytest.raises(PoblanoError, match=message):
        file.tensor("w")


def test_missing_and_ill_typed_entries(tmp_path: Path) -> None:
    file = opened(tmp_path, good())
    with pytest.raises(PoblanoError, match="metadata key 'absent' is missing"):
        file.get("absent", int)
    with pytest.raises(PoblanoError, match="metadata key 'number' must be str, not int"):
        file.get("number", str)
    with pytest.raises(PoblanoError, match="metadata key 'flag' must be int, not bool"):
        file.get("flag", int)
    with pytest.raises(PoblanoError, match="tensor 'absent' is missing"):
        file.tensor("absent")
