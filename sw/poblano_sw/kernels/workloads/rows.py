"""Workloads of rows: softmax, RMSNorm, rotary embedding."""

from __future__ import annotations

import numpy as np

from poblano_golden.errors import PoblanoError
from poblano_golden.kernels import norm as golden_norm
from poblano_golden.kernels import rope as golden_rope
from poblano_golden.kernels import softmax as golden_softmax
from poblano_sw.kernels.norm import rms_norm
from poblano_sw.kernels.rope import rotate_halves, rotate_pairs
from poblano_sw.kernels.softmax import softmax
from poblano_sw.kernels.workloads.case import Case
from poblano_sw.kernels.workloads.workload import Expected, Workload, total_bytes

__all__ = ["norm_rows", "rotated_rows", "softmax_rows"]


def softmax_rows(case: Case) -> Workload:
    """Return softmax of rows."""
    rows, cols = case.shape["rows"], case.shape["cols"]
    (x, x_outside), (y, y_outside) = (case.pair(rows, cols, name) for name in "xy")
    work = Workload(case.builder, port_bytes=2 * total_bytes([x]))
    case.builder.load(x, x_outside)
    for _ in range(case.shape["times"]):
        softmax(case.builder, y, x)
    case.builder.store(y_outside, y)
    numbers = 3 * case.normal(rows, cols)
    weights = np.exp(numbers.astype(np.float64) - numbers.max(1, keepdims=True))
    work.inputs.append((x_outside, numbers))
    work.outputs.append(
        Expected(
            y_outside,
            golden_softmax.softmax(numbers, case.sums.lanes),
            weights / weights.sum(1, keepdims=True),
        )
    )
    return work


def norm_rows(case: Case) -> Workload:
    """Return RMSNorm of rows."""
    rows, cols = case.shape["rows"], case.shape["cols"]
    (x, x_outside), (y, y_outside) = (case.pair(rows, cols, name) for name in "xy")
    weight, weight_outside = case.pair(1, cols, "weight")
    case.builder.load(x, x_outside)
    case.builder.load(weight, weight_outside)
    rms_norm(case.builder, y, x, weight, epsilon=1e-5)
    case.builder.store(y_outside, y)
    numbers, weights = case.normal(rows, cols), case.normal(1, cols)
    exact = numbers.astype(np.float64)
    exact *= weights / np.sqrt((exact**2).mean(1, keepdims=True) + 1e-5)
    golden = golden_norm.rms_norm(numbers, weights, epsilon=1e-5, sums=case.sums)
    return Workload(
        case.builder,
        [(x_outside, numbers), (weight_outside, weights)],
        [Expected(y_outside, golden, exact)],
        port_bytes=total_bytes([x, y, weight]),
    )


def rotated_rows(case: Case, *, interleaved: bool) -> Workload:
    """Return rotary embedding of rows; row r is at position r."""
    rows, head = case.shape["rows"], case.shape["head"]
    if head % 2:
        raise PoblanoError(f"head must be even; got {head}")
    tensors = {name: case.pair(rows, head, name) for name in ("x", "cosine", "sine", "y")}
    inside = {name: near for name, (near, _) in tensors.items()}
    for name in ("x", "cosine", "sine"):
        case.builder.load(*tensors[name])
    turn = rotate_pairs if interleaved else rotate_halves
    turn(case.builder, inside["y"], inside["x"], inside["cosine"], inside["sine"])
    case.builder.store(tensors["y"][1], inside["y"])

    x = case.normal(rows, head)
    frequencies = 10000.0 ** (-np.arange(head // 2) * 2 / head)
    angles = np.arange(rows)[:, None] * frequencies
    signs = np.array([-1.0, 1.0])
    if interleaved:
        angles = np.repeat(angles, 2, axis=1)
        partner = x.reshape(rows, -1, 2)[..., ::-1].reshape(rows, head)
        sines = np.sin(angles) * np.tile(signs, head // 2)
    else:
        angles = np.concatenate([angles, angles], axis=1)
        partner = np.roll(x, head // 2, axis=1)
        sines = np.sin(angles) * np.repeat(signs, head // 2)
    cosine, sine = np.cos(angles).astype(np.float32), sines.astype(np.float32)
    golden = golden_rope.rotate_pairs if interleaved else golden_rope.rotate_halves
    return Workload(
        case.builder,
        [
            (tensors[name][1], numbers)
            for name, numbers in (("x", x), ("cosine", cosine), ("sine", sine))
        ],
        [
            Expected(
                tensors["y"][1],
                golden(x, cosine, sine),
                x.astype(np.float64) * np.cos(angles) + partner * sines,
            )
        ],
        port_bytes=total_bytes(list(inside.values())),
    )
