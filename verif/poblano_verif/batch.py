"""Vectors through a block in bulk: arrays of numbers to wide port values and back."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from cocotb.triggers import Timer
from numpy.typing import NDArray

__all__ = ["apply", "block_parameters", "from_words", "report", "reset", "to_words"]


def block_parameters() -> tuple[dict[str, Any], int]:
    """Return the parameters of the block under test, from the manifest, and its copies."""
    top = _top()
    parameters: dict[str, Any] = top["parameters"]
    if top["kind"] == "SideBySide":
        return dict(parameters["parameters"]), int(parameters["copies"])
    return parameters, 1


def _top() -> dict[str, Any]:
    manifest = json.loads(Path(os.environ["POBLANO_MANIFEST"]).read_text("utf-8"))
    return next(module for module in manifest["modules"] if module["name"] == manifest["top"])


def to_words(values: NDArray[Any], width: int) -> list[int]:
    """Join the numbers of each row into one integer, `width` bits each, column 0 lowest.

    Parameters
    ----------
    values:
        Integers `[cycles, copies]`, negative ones in two's complement; or bytes, lowest first,
        uint8 `[cycles, copies, width / 8]`.
    """
    cycles, copies = values.shape[:2]
    if values.ndim == 2:
        values = values.astype("<i8").view(np.uint8).reshape(cycles, copies, 8)
    elif values.shape[2] * 8 != width:
        raise ValueError(f"{values.shape[2]} bytes must be {width} bits")
    if width % 8 == 0 and width <= 8 * values.shape[2]:
        rows = values[:, :, : width // 8].reshape(cycles, -1)
    else:
        bits = np.unpackbits(values, axis=2, count=width, bitorder="little")
        rows = np.packbits(bits.reshape(cycles, -1), axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in rows]


def from_words(words: Sequence[int], width: int, copies: int) -> NDArray[np.uint64]:
    """Split integers that the copies' ports make together: uint64 `[len(words), copies]`."""
    if width > 64:
        raise ValueError(f"width must be at most 64, not {width}")
    size = -(-width * copies // 8)
    rows = np.frombuffer(b"".join(word.to_bytes(size, "little") for word in words), np.uint8)
    bits = np.unpackbits(
        rows.reshape(len(words), size), axis=1, count=width * copies, bitorder="little"
    )
    padded = np.zeros((len(words), copies, 64), np.uint8)
    padded[:, :, :width] = bits.reshape(len(words), copies, width)
    return np.packbits(padded, axis=2, bitorder="little").view("<u8")[:, :, 0].astype(np.uint64)


async def apply(
    dut: Any, inputs: Mapping[str, Sequence[int]], outputs: Sequence[str]
) -> dict[str, list[int]]:
    """Drive one value a cycle on each input; return what each output was in each cycle.

    An output is read after the cycle's inputs have settled and before the clock edge that ends
    the cycle, so a result of latency n to the inputs of cycle c is entry c + n. A block without
    registers has no clock, and none is driven.
    """
    clock = getattr(dut, "clk", None)
    found: dict[str, list[int]] = {name: [] for name in outputs}
    ports = [(getattr(dut, name), values) for name, values in inputs.items()]
    reads = [(getattr(dut, name), found[name]) for name in outputs]
    for cycle in range(len(next(iter(inputs.values())))):
        for port, values in ports:
            port.value = values[cycle]
        if clock is not None:
            clock.value = 0
        await Timer(1, unit="step")
        for port, values in reads:
            values.append(int(port.value))
        if clock is not None:
            clock.value = 1
            await Timer(1, unit="step")
    return found


async def reset(dut: Any) -> None:
    """Put every input to 0, and hold reset for one cycle where the block has one."""
    for port in _top()["ports"]:
        if port["direction"] == "input":
            getattr(dut, port["name"]).value = 0
    if hasattr(dut, "rst"):
        dut.rst.value = 1
        dut.clk.value = 0
        await Timer(1, unit="step")
        dut.clk.value = 1
        await Timer(1, unit="step")
        dut.rst.value = 0


def report(
    name: str,
    found: NDArray[Any],
    expected: NDArray[Any],
    describe: Any,
) -> None:
    """Raise an AssertionError that shows the first difference, if there is one."""
    assert found.shape == expected.shape, f"{name}: {found.shape} results, not {expected.shape}"
    assert found.size, f"{name}: no result was compared"
    wrong = np.flatnonzero(found != expected)
    if len(wrong):
        first = int(wrong[0])
        raise AssertionError(
            f"{name}: {len(wrong)} of {len(found)} wrong; first is vector {first}: "
            f"{describe(first)}: expected {int(expected[first]):#x}, got {int(found[first]):#x}"
        )
