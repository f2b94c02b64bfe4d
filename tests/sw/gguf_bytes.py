"""GGUF files byte by byte, right or wrong in one chosen place."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import gguf
import numpy as np

ALIGNMENT = 32


def text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def entry(key: str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def tensor(name: str, dimensions: Sequence[int], kind: int, offset: int) -> bytes:
    lengths = b"".join(struct.pack("<Q", d) for d in dimensions)
    return (
        text(name) + struct.pack("<I", len(dimensions)) + lengths + struct.pack("<IQ", kind, offset)
    )


def file(
    entries: Sequence[bytes] = (),
    tensors: Sequence[bytes] = (),
    data: bytes = b"",
    *,
    magic: bytes = b"GGUF",
    version: int = 3,
    counts: tuple[int, int] | None = None,
) -> bytes:
    head = magic + struct.pack("<I", version)
    head += struct.pack("<QQ", *(counts or (len(tensors), len(entries))))
    head += b"".join(entries) + b"".join(tensors)
    return head + bytes(-len(head) % ALIGNMENT) + data


def tiny_llama(path: Path, **changes: object) -> Path:
    """Write a Llama of one layer: hidden 32, 2 heads, 1 KV head, intermediate 64.

    `changes` replaces metadata (`__` for a dot; None leaves it out) or, under `tensors`, arrays.
    """
    tokens = [chr(c) for c in range(33, 127)] + ["th", "the", "<end>"]
    metadata: dict[str, object] = {
        "llama.block_count": 1,
        "llama.context_length": 16,
        "llama.embedding_length": 32,
        "llama.feed_forward_length": 64,
        "llama.attention.head_count": 2,
        "llama.attention.head_count_kv": 1,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [1] * (len(tokens) - 1) + [3],
        "tokenizer.ggml.merges": ["t h", "th e"],
        "tokenizer.ggml.eos_token_id": len(tokens) - 1,
    }
    rng = np.random.default_rng(1)

    def random(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32) / 8

    arrays: dict[str, np.ndarray] = {
        "token_embd.weight": random(len(tokens), 32),
        "output_norm.weight": random(32),
        "blk.0.attn_norm.weight": random(32),
        "blk.0.attn_q.weight": random(32, 32),
        "blk.0.attn_k.weight": random(16, 32),
        "blk.0.attn_v.weight": random(16, 32),
        "blk.0.attn_output.weight": random(32, 32),
        "blk.0.ffn_norm.weight": random(32),
        "blk.0.ffn_gate.weight": random(64, 32),
        "blk.0.ffn_up.weight": random(64, 32),
        "blk.0.ffn_down.weight": random(32, 64),
    }
    architecture = str(changes.pop("architecture", "llama"))
    arrays |= changes.pop("tensors", {})  # type: ignore[arg-type]
    metadata |= {key.replace("__", "."): value for key, value in changes.items()}
    writer = gguf.GGUFWriter(path, architecture)
    for key, value in metadata.items():
        if isinstance(value, bool):
            writer.add_bool(key, value)
        elif isinstance(value, int):
            writer.add_uint32(key, value)
        elif isinstance(value, float):
            writer.add_float32(key, value)
        elif isinstance(value, str):
            writer.add_string(key, value)
        elif value is not None:
            writer.add_array(key, value)
    for name, array in arrays.items():
        if array is not None:
            writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
