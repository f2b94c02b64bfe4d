"""Every kernel by name, with shapes and random numbers to run it on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from poblano.config import Configuration
from poblano_golden.errors import PoblanoError
from poblano_golden.formats import MX_FORMATS
from poblano_sw.kernel import Builder
from poblano_sw.kernels.workloads.attention import attended
from poblano_sw.kernels.workloads.case import Case
from poblano_sw.kernels.workloads.decode import decode_step, last_token
from poblano_sw.kernels.workloads.experts import dense_mlp, experts, grouped_routing
from poblano_sw.kernels.workloads.rows import norm_rows, rotated_rows, softmax_rows
from poblano_sw.kernels.workloads.workload import Workload

__all__ = ["CATALOGUE", "Entry", "workload"]

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
    shape: Mapping[str, int]
    make: Callable[[Case], Workload]


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
    case = Case(
        builder, {**entry.shape, **(shape or {})}, MX_FORMATS[fmt], np.random.default_rng(seed)
    )
    return entry.make(case)


CATALOGUE: Mapping[str, Entry] = {
    "softmax": Entry(
        "softmax of rows, perhaps several times",
        {"rows": 1, "cols": 1024, "times": 1},
        softmax_rows,
    ),
    "rms_norm": Entry("RMSNorm of rows", {"rows": 4, "cols": 576}, norm_rows),
    "rope_halves": Entry(
        "rotary embedding, half-split",
        {"rows": 32, "head": 64},
        lambda case: rotated_rows(case, interleaved=False),
    ),
    "rope_pairs": Entry(
        "rotary embedding, interleaved",
        {"rows": 32, "head": 64},
        lambda case: rotated_rows(case, interleaved=True),
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
        lambda case: attended(case, causal=False),
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
        lambda case: attended(case, causal=True),
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
            "latent": 1,
            "chunk": 256,
            "window": 0,
            "sinks": 0,
        },
        lambda case: attended(case, causal=False),
    ),
    "mla_naive": Entry(
        "latent attention of one token, keys and values of every head expanded",
        {
            "rows": 1,
            "tokens": 512,
            "heads": 4,
            "head": 192,
            "values": 128,
            "chunk": 256,
            "window": 0,
            "sinks": 0,
        },
        lambda case: attended(case, causal=False),
    ),
    "decode_step": Entry(
        "a token appended to the cache of a KV head, and attention of its query heads",
        {"rows": 8, "tokens": 500, "head": 64, "chunk": 512},
        decode_step,
    ),
    "best_token": Entry(
        "final norm, logits and arg-max of one token",
        {"vocabulary": 8192, "hidden": 576, "piece": 512},
        last_token,
    ),
    "route_groups": Entry(
        "DeepSeek's router for one token: best groups, then best experts",
        {"experts": 256, "chosen": 8, "groups": 8, "kept": 4},
        grouped_routing,
    ),
    "mlp": Entry(
        "gated MLP of one token, MXFP4 weights, SiLU",
        {"hidden": 1440, "intermediate": 1440, "piece": 288},
        dense_mlp,
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
        experts,
    ),
}
"""Every kernel."""
