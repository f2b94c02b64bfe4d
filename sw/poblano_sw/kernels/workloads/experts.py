"""Workloads of MLPs, experts and routers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from poblano_golden.arrays import F32, F64
from poblano_golden.blocks import quantise
from poblano_golden.errors import PoblanoError
from poblano_golden.formats import MXFP4
from poblano_golden.kernels import mlp as golden_mlp
from poblano_golden.kernels import routing as golden_routing
from poblano_sw.kernel import UINT32
from poblano_sw.kernels.mlp import Call, Mlps, add_mlps, place_mlps
from poblano_sw.kernels.routing import route, route_groups
from poblano_sw.kernels.workloads.case import Case
from poblano_sw.kernels.workloads.workload import Expected, Workload, total_bytes

__all__ = ["dense_mlp", "experts", "grouped_routing"]


def experts(case: Case) -> Workload:
    """Return GPT-OSS's router and experts for a token."""
    shape, builder = case.shape, case.builder
    count, k = shape["experts"], shape["chosen"]
    if k > count:
        raise PoblanoError(f"chosen must be at most experts, {count}; got {k}")
    hidden, experts = shape["hidden"], _place(case, count, bias=True)
    inside = {
        name: case.pair(1, width, name)
        for name, width in (("x", hidden), ("logits", count), ("bias", count), ("y", hidden))
    }
    x = builder.blocks(1, hidden, case.fmt, name="quantised x")
    indices, weights = builder.matrix(1, k, UINT32), builder.matrix(1, k)
    for name in ("x", "logits", "bias"):
        builder.load(*inside[name])
    builder.vector(inside["x"][0], d=x)
    route(builder, indices, weights, inside["logits"][0], inside["bias"][0])
    calls = [
        Call(experts, indices[:, part], weights[:, part])
        for part in (slice(chosen, chosen + 1) for chosen in range(k))
    ]
    add_mlps(builder, inside["y"][0], x, calls, gate="clamped", activations=case.fmt)
    builder.store(inside["y"][1], inside["y"][0])

    numbers, logits, bias = (case.normal(1, width) for width in (hidden, count, count))
    given = {"x": numbers, "logits": logits, "bias": bias}
    work = Workload(builder, [(inside[name][1], array) for name, array in given.items()])
    made = _mlp_numbers(case, work, experts, count)
    chosen_weights, chosen = golden_routing.route(logits, bias, k, case.sums)
    scores = (logits + bias)[0].astype(np.float64)[chosen[0]]
    shares = np.exp(scores - scores.max())
    golden = golden_mlp.add_mlps(
        quantise(numbers, case.fmt, "even"),
        [(made[e].golden, w) for e, w in zip(chosen[0], chosen_weights[0], strict=True)],
        gate="clamped",
        activations=case.fmt,
        rule="even",
    )
    exact = numbers.astype(np.float64)
    reference = sum(
        (
            share * made[e].exact(exact, "clamped")
            for e, share in zip(chosen[0], shares, strict=True)
        ),
        start=np.zeros((1, hidden)),
    )
    work.outputs.append(Expected(inside["y"][1], golden, reference / shares.sum()))
    work.port_bytes = k * experts.port_bytes
    return work


def grouped_routing(case: Case) -> Workload:
    """Return DeepSeek's router for a token."""
    shape, builder = case.shape, case.builder
    count, k = shape["experts"], shape["chosen"]
    scale = 2.5
    (logits, logits_outside), (bias, bias_outside) = (
        case.pair(1, count, name) for name in ("logits", "bias")
    )
    weights, weights_outside = case.pair(1, k, "weights")
    indices, indices_outside = (
        builder.matrix(1, k, UINT32, place=place, name="experts") for place in ("l1", "hbm_0")
    )
    builder.load(logits, logits_outside)
    builder.load(bias, bias_outside)
    groups, kept = shape["groups"], shape["kept"]
    route_groups(builder, indices, weights, logits, bias, groups=groups, kept=kept, scale=scale)
    builder.store(weights_outside, weights)
    builder.store(indices_outside, indices)
    numbers, biases = case.normal(1, count), case.normal(1, count) * np.float32(0.1)
    found, chosen = golden_routing.route_groups(
        numbers, biases, k, groups=groups, kept=kept, scale=scale, sums=case.sums
    )
    scores = 1 / (1 + np.exp(-numbers.astype(np.float64)))[:, chosen[0]]
    return Workload(
        builder,
        [(logits_outside, numbers), (bias_outside, biases)],
        [
            Expected(weights_outside, found, scale * scores / scores.sum()),
            Expected(indices_outside, chosen, chosen.astype(np.float64)),
        ],
        port_bytes=total_bytes([logits, bias, weights, indices]),
    )


def dense_mlp(case: Case) -> Workload:
    """Return a gated MLP of a token."""
    builder, hidden = case.builder, case.shape["hidden"]
    mlps = _place(case, 1, bias=False)
    (x, x_outside), (y, y_outside) = (case.pair(1, hidden, name) for name in "xy")
    quantised = builder.blocks(1, hidden, case.fmt, name="quantised x")
    builder.load(x, x_outside)
    builder.vector(x, d=quantised)
    add_mlps(builder, y, quantised, [Call(mlps)], gate="silu", activations=case.fmt)
    builder.store(y_outside, y)
    numbers = case.normal(1, hidden)
    work = Workload(builder, [(x_outside, numbers)], port_bytes=mlps.port_bytes)
    [made] = _mlp_numbers(case, work, mlps, 1)
    golden = golden_mlp.add_mlps(
        quantise(numbers, case.fmt, "even"),
        [(made.golden, None)],
        gate="silu",
        activations=case.fmt,
        rule="even",
    )
    reference = made.exact(numbers.astype(np.float64), "silu")
    work.outputs.append(Expected(y_outside, golden, reference))
    return work


def _place(case: Case, count: int, *, bias: bool) -> Mlps:
    shape = case.shape
    return place_mlps(
        case.builder,
        count,
        shape["hidden"],
        shape["intermediate"],
        MXFP4,
        piece=shape["piece"],
        bias=bias,
    )


@dataclass(frozen=True)
class _Made:
    """The numbers of an MLP, quantised and not."""

    golden: golden_mlp.Mlp
    matrices: tuple[F32, F32, F32]

    def exact(self, x: F64, gate: str) -> F64:
        """Return the result for x `[1, hidden]` in float64, without its weight."""
        nothing = np.zeros(1)
        biases = self.golden.biases or (nothing, nothing, nothing)
        g, u = (x @ m.T + b for m, b in zip(self.matrices[:2], biases[:2], strict=True))
        if gate == "clamped":
            g, u = np.minimum(g, 7.0), np.clip(u, -7.0, 7.0)
            h = g / (1 + np.exp(-1.702 * g)) * (u + 1)
        else:
            h = g / (1 + np.exp(-g)) * u
        return h @ self.matrices[2].T + biases[2]


def _mlp_numbers(case: Case, work: Workload, mlps: Mlps, count: int) -> list[_Made]:
    """Give MLPs random numbers."""
    parts = (mlps.gate, mlps.up, mlps.down)
    found: list[_Made] = []
    tables = [case.normal(t.rows, t.cols) * np.float32(0.1) for t in mlps.biases or ()]
    work.inputs += zip(mlps.biases or (), tables, strict=True)
    for number in range(count):
        matrices = tuple(
            case.normal(part.rows, part.cols) * np.float32(1 / math.sqrt(part.cols))
            for part in parts
        )
        quantised = [quantise(matrix, MXFP4, "even") for matrix in matrices]
        for part, matrix in zip(parts, quantised, strict=True):
            work.inputs += part.inputs(number, matrix)
        rows = [table[number : number + 1] for table in tables]
        biases = (rows[0], rows[1], rows[2]) if rows else None
        gate, up, down = quantised
        found.append(
            _Made(golden_mlp.Mlp(gate, up, down, biases), (matrices[0], matrices[1], matrices[2]))
        )
    return found
