"""The fields with which every command word begins, as queues and semaphores see them."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import data

from poblano.commands import SYNCHRONISATION, by_mnemonic

__all__ = ["VALUE_WIDTH", "request_layout", "requests"]

VALUE_WIDTH = 16
"""Bits of a semaphore's value."""

_WIDTHS = {item.name: item.width for item in SYNCHRONISATION}
_OFFSETS = by_mnemonic("tensor.matmul").offsets  # the same in every command


def request_layout() -> data.StructLayout:
    """Return two semaphores and how much to take from them or add to them; 0 for none."""
    width, count = _WIDTHS["wait_a"], _WIDTHS["wait_a_count"]
    return data.StructLayout({"a": width, "a_count": count, "b": width, "b_count": count})


def requests(word: Value) -> tuple[Value, Value]:
    """Return what a command word waits for and what it signals, as `request_layout`."""
    return _request(word, "wait"), _request(word, "signal")


def _request(word: Value, kind: str) -> Value:
    parts = []
    for name in ("a", "a_count", "b", "b_count"):
        start = _OFFSETS[f"{kind}_{name}"]
        parts.append(word[start : start + _WIDTHS[f"{kind}_{name}"]])
    return Cat(parts)
