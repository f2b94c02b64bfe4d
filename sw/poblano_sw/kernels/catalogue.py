"""Every kernel by name, with shapes and random numbers to run it on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from poblano.config import Configuration
from poblano.vector.timing import sum_ways
from poblano_golden.arrays import F32, F64
from poblano_golden.blocks import MxTensor, quantise
from poblano_golden.errors import PoblanoError
from poblano_golden.formats import MX_FORMATS, MXFP4, MxFormat
from poblano_golden.kernels import attention as golden_attention
from poblano_golden.kernels import mlp as golden_mlp
from poblano_golden.kernels import norm as golden_norm
from poblano_golden.kernels import rope as golden_rope
from poblano_golden.kernels import routing as golden_routing
from poblano_golden.kernels.row_sums import RowSums
from poblano_golden.vector import valid_columns
from poblano_sw.kernel import UINT32, Blocks, Builder, Mask, Matrix
from poblano_sw.kernels.attention import Attend, attention
from poblano_sw.kernels.mlp import Call, Mlps, add_mlps, place_mlps
from poblano_sw.kernels.norm import rms_norm
from poblano_sw.kernels.rope import rotate_halves, rotate_pairs
from poblano_sw.kernels.routing import route, route_groups
from poblano_sw.kernels.softmax import softmax
from poblano_sw.kernels.workload import Expected, Workload, total_bytes

__all__ = ["CATALOGUE", "Entry", "workload"]

Shape = Mapping[str, int]

HBM_LIMIT = 1 << 28
"""Bytes of HBM that a kernel of the catalogue may take."""


@dataclass(frozen=True)
class Entry:
    """A kernel of the catalogue.

    Attributes
    ----------
    summary:
        What it computes.
    shape:
        Its sizes, with those that it runs with if none are given.
    make:
        Makes the workload, from configuration, shape, formats and a generator of numbers.
    """

    summary: str
    shape: Shape
    make: Callable[[_Case], Workload]


@dataclass(frozen=True)
class _Case:
    """What a workload is made from."""

    builder: Builder
    shape: Shape
    fmt: MxFormat
    numbers: np.random.Generator

    def normal(self, rows: int, cols: int) -> F32:
        """Return normally distributed numbers."""
        return self.numbers.standard_normal((rows, cols), dtype=np.float32)

    @property
    def sums(self) -> RowSums:
        """The order of the vector engine's sums."""
        vector = self.builder.configuration.slice.vector
        return RowSums(vector.lanes, sum_ways(vector))

    def pair(self, rows: int, cols: int, name: str) -> tuple[Matrix, Matrix]:
        """Return a matrix in L1 and one of its shape in HBM."""
        return (
            self.builder.matrix(rows, cols, name=name),
            self.builder.matrix(rows, cols, place="hbm_0", name=name),
        )


def workload(
    configuration: Configuration,
    name: str,
    shape: Mapping[str, int] | None = None,
    *,
    fmt: str = "mxint8",
    seed: int = 1,
) -> Workload:
    """Return a kernel of the catalogue with random numbers.

    Parameters
    ----------
    configuration:
        The chip.
    name:
        A key of `CATALOGUE`.
    shape:
        Sizes that differ from the entry's.
    fmt:
        The MX format of activations and of keys and values.
    seed:
        Of the numbers.

    Raises
    ------
    PoblanoError
        If name, shape or format do not exist, or the kernel does not fit.
    """
    if name not in CATALOGUE:
        raise PoblanoError(f"a kernel must be one of {', '.join(CATALOGUE)}; got {name!r}")
    entry = CATALOGUE[name]
    for key, value in (shape or {}).items():
        if key not in entry.shape:
            raise PoblanoError(f"the sizes of {name} are {', '.join(entry.shape)}; got {key!r}")
        if value < (0 if entry.shape[key] == 0 else 1):
            raise PoblanoError(f"{key} must be at least 1; got {value}")
    if fmt not in MX_FORMATS:
        raise PoblanoError(f"a format must be one of {', '.join(MX_FORMATS)}; got {fmt!r}")
    builder = Builder(configuration, HBM_LIMIT)
    case = _Case(
        builder, {**entry.shape, **(shape or {})}, MX_FORMATS[fmt], np.random.default_rng(seed)
    )
    return entry.make(case)


def _softmax(case: _Case) -> Workload:
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
            golden_attention.softmax(numbers, case.sums),
            weights / weights.sum(1, keepdims=True),
        )
    )
    return work


def _rms_norm(case: _Case) -> Workload:
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


def _rope(case: _Case, *, interleaved: bool) -> Workload:
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


@dataclass(frozen=True)
class _Head:
    """A KV head of a workload: its tensors in HBM, and its jobs by their first query."""

    keys: Blocks
    values: Blocks
    jobs: Mapping[int, Attend]


def _attention(case: _Case, *, causal: bool) -> Workload:
    shape, builder = case.shape, case.builder
    tokens, head = shape["tokens"], shape["head"]
    width = shape.get("values", head)
    rows = tokens if causal else shape["rows"]
    tile = shape.get("tile", rows)
    heads: list[_Head] = []
    for number in range(shape["heads"]):
        keys = builder.blocks(tokens, head, case.fmt, place="hbm_0", name=f"keys {number}")
        values = builder.blocks(width, tokens, case.fmt, place="hbm_0", name=f"values {number}")
        jobs: dict[int, Attend] = {}
        for first in range(0, rows, tile):
            count = min(tile, rows - first)
            seen = min(tokens, -(-(first + count) // 32) * 32) if causal else tokens
            name = f"results {number}, {first}"
            jobs[first] = Attend(
                builder.blocks(count, head, case.fmt, place="hbm_0", name="queries"),
                keys[:seen],
                values[:, :seen],
                builder.matrix(count, width, place="hbm_0", name=name),
                Mask(first + 1 if causal else tokens, 1 if causal else 0, shape["window"]),
                sink=builder.matrix(1, count, place="hbm_0") if shape["sinks"] else None,
            )
        heads.append(_Head(keys, values, jobs))
    attention(
        builder,
        [job for head in heads for job in head.jobs.values()],
        scale=1 / math.sqrt(head),
        weights=case.fmt,
        chunk=shape["chunk"],
    )
    work = Workload(builder)
    for one in heads:
        _attention_numbers(case, work, one, rows, tokens)
    return work


def _attention_numbers(case: _Case, work: Workload, head: _Head, rows: int, tokens: int) -> None:
    """Give a head its numbers, and its jobs what must come out."""
    fmt, width = case.fmt, case.shape["head"]
    q, k, v = (case.normal(count, width) for count in (rows, tokens, tokens))
    if head.values.rows < width:
        v = np.ascontiguousarray(k[:, : head.values.rows])
    sinks = case.normal(1, rows)
    work.inputs += [(head.keys, _quantised(k, fmt)), (head.values, _quantised(v.T, fmt))]
    work.port_bytes += total_bytes([head.keys, head.values])
    scale = 1 / math.sqrt(width)
    for first, job in head.jobs.items():
        part, seen = slice(first, first + job.q.rows), job.k.rows
        sink = None if job.sink is None else sinks[:, part]
        if job.sink is not None:
            work.inputs.append((job.sink, sinks[:, part]))
        work.inputs.append((job.q, _quantised(q[part], fmt)))
        work.port_bytes += total_bytes([job.q, job.o])
        mask = job.mask
        assert mask is not None
        valid = valid_columns(job.q.rows, seen, mask.limit, mask.limit_step, mask.window)
        golden = golden_attention.attention(
            _quantised(q[part], fmt),
            _quantised(k[:seen], fmt),
            _quantised(v[:seen].T, fmt),
            valid,
            scale=scale,
            weights=fmt,
            rule="even",
            sums=case.sums,
            sink=None if sink is None else sink[0],
            chunk=case.shape["chunk"],
        )
        scores = np.where(valid, q[part].astype(np.float64) @ k[:seen].T * scale, -np.inf)
        top = scores.max(1, keepdims=True)
        if sink is not None:
            top = np.maximum(top, sink.T)
        weights = np.exp(scores - top)
        total = weights.sum(1, keepdims=True)
        if sink is not None:
            total = total + np.exp(sink.T - top)
        work.outputs.append(Expected(job.o, golden, weights @ v[:seen] / total))


def _quantised(x: F32, fmt: MxFormat) -> MxTensor:
    return quantise(np.ascontiguousarray(x), fmt, "even")


def _moe(case: _Case) -> Workload:
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


def _route_groups(case: _Case) -> Workload:
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


def _mlp(case: _Case) -> Workload:
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


def _place(case: _Case, count: int, *, bias: bool) -> Mlps:
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


def _mlp_numbers(case: _Case, work: Workload, mlps: Mlps, count: int) -> list[_Made]:
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


CATALOGUE: Mapping[str, Entry] = {
    "softmax": Entry(
        "softmax of rows, perhaps several times",
        {"rows": 1, "cols": 1024, "times": 1},
        _softmax,
    ),
    "rms_norm": Entry("RMSNorm of rows", {"rows": 4, "cols": 576}, _rms_norm),
    "rope_halves": Entry(
        "rotary embedding, half-split",
        {"rows": 32, "head": 64},
        lambda case: _rope(case, interleaved=False),
    ),
    "rope_pairs": Entry(
        "rotary embedding, interleaved",
        {"rows": 32, "head": 64},
        lambda case: _rope(case, interleaved=True),
    ),
    "attention_decode": Entry(
        "grouped-query attention of one token: `rows` query heads for each of `heads` KV heads",
        {
            "rows": 8,
            "tokens": 2048,
            "heads": 8,
            "head": 64,
            "chunk": 2048,
            "window": 0,
            "sinks": 0,
        },
        lambda case: _attention(case, causal=False),
    ),
    "attention_prefill": Entry(
        "causal attention of a prompt, in tiles of queries",
        {
            "tokens": 512,
            "heads": 2,
            "head": 64,
            "tile": 32,
            "chunk": 512,
            "window": 0,
            "sinks": 0,
        },
        lambda case: _attention(case, causal=True),
    ),
    "mla_decode": Entry(
        "absorbed latent attention of one token: `rows` heads on one latent of `head` columns, "
        "the first `values` of which are the values",
        {
            "rows": 16,
            "tokens": 512,
            "heads": 1,
            "head": 576,
            "values": 512,
            "chunk": 256,
            "window": 0,
            "sinks": 0,
        },
        lambda case: _attention(case, causal=False),
    ),
    "route_groups": Entry(
        "DeepSeek's router for one token: best groups, then best experts",
        {"experts": 256, "chosen": 8, "groups": 8, "kept": 4},
        _route_groups,
    ),
    "mlp": Entry(
        "gated MLP of one token, MXFP4 weights, SiLU",
        {"hidden": 1440, "intermediate": 1440, "piece": 288},
        _mlp,
    ),
    "moe": Entry(
        "GPT-OSS's router and MXFP4 experts for one token; experts are fetched by their number",
        {
            "hidden": 1440,
            "intermediate": 1440,
            "experts": 8,
            "chosen": 4,
            "piece": 288,
        },
        _moe,
    ),
}
"""Every kernel."""
