"""The demonstration: one layer of a real language model on the generated hardware.

Three steps, each a function: `prepare` makes the layer's matrix products out of a prompt, `jobs`
cuts them into rows whose activations fit L1, and `judge` holds what the hardware left in HBM to the
numpy model, bit for bit, and to float arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from poblano.arith.modes import LANES, Mode
from poblano.commands import CommandError
from poblano.config import Configuration
from poblano_flow.matmul_job import MatmulJob, StreamedOutcome
from poblano_flow.run_streamed import plan_job
from poblano_flow.streamed_timing import CATEGORIES, ContractCheck, check_contract
from poblano_golden import fp32
from poblano_golden.arrays import F32, F64, U32
from poblano_golden.blocks import MxTensor, quantise
from poblano_golden.errors import PoblanoError
from poblano_golden.formats import BF16
from poblano_golden.matmul import matmul
from poblano_sw.model.llama import LINEARS, Floats, KvCache, LlamaModel
from poblano_sw.model.policy import Policy, Precision

__all__ = ["Layer", "Mismatch", "Product", "Verdict", "jobs", "judge", "prepare"]

PHASES = ("prefill", "decode")
"""The whole prompt at once, and the one token after it."""

CONTINUATION = 7
"""Tokens that the float model goes on with, for the report."""


@dataclass(frozen=True, eq=False)
class Product:
    """One matrix product of the layer: results [M, N] of activations [M, K] and weights [N, K].

    Attributes
    ----------
    phase, linear:
        A name of PHASES and one of LINEARS.
    precision:
        What the policy says about it.
    a, b:
        Activations and weights, quantised.
    reference:
        The product of the unquantised operands in float64.
    """

    phase: str
    linear: str
    precision: Precision
    a: MxTensor
    b: MxTensor
    reference: F64

    @property
    def name(self) -> str:
        """`phase.linear`."""
        return f"{self.phase}.{self.linear}"

    @property
    def shape(self) -> tuple[int, int, int]:
        """M, N and K."""
        return self.a.rows, self.b.rows, self.a.k


@dataclass(frozen=True, eq=False)
class Layer:
    """A layer's work on a prompt.

    Attributes
    ----------
    model, number:
        The model and the layer's number.
    prompt, continuation:
        The prompt's tokens, and the most likely next ones; decode runs on the first of them.
    products:
        Seven for each of PHASES, in the order in which they run.
    sample:
        The first block of the first input of ffn_down, before quantisation.
    """

    model: LlamaModel
    number: int
    prompt: list[int]
    continuation: list[int]
    products: list[Product]
    sample: Floats


@dataclass(frozen=True)
class Mismatch:
    """The first result of a product that is not what the numpy model says."""

    row: int
    column: int
    expected: int
    actual: int

    def __str__(self) -> str:
        """Position, and both values as bits and as numbers."""
        values = np.array([self.expected, self.actual], np.uint32).view(np.float32)
        return (
            f"D[{self.row}, {self.column}] must be 0x{self.expected:08X} ({values[0]:g}), "
            f"got 0x{self.actual:08X} ({values[1]:g})"
        )


@dataclass(frozen=True)
class Verdict:
    """What became of one product.

    Attributes
    ----------
    product:
        The product.
    wrong, first:
        Results that differ from the numpy model in any bit, and the first of them.
    snr_db:
        Power of the float results over the power of the difference, in decibels.
    cycles, wall_seconds:
        Sums over the product's jobs (see `StreamedOutcome`).
    mismatches, commands:
        Commands of the tensor engine that were not done when the timing contract says, and all.
    where:
        Where the cycles went: a name of CATEGORIES to cycles; sums to `cycles`.
    utilisation:
        Useful multiply-accumulates over peak times `cycles`.
    port_utilisation:
        Bytes of codes, scales and results over the HBM port's peak times `cycles`.
    runs:
        The jobs' outcomes.
    """

    product: Product
    wrong: int
    first: Mismatch | None
    snr_db: float
    cycles: int
    wall_seconds: float
    mismatches: int
    commands: int
    where: dict[str, float]
    utilisation: float
    port_utilisation: float
    runs: tuple[StreamedOutcome, ...]

    @property
    def passed(self) -> bool:
        """Whether every bit, and the cycle of every command's end, is what it must be."""
        return not self.wrong and not self.mismatches


def prepare(model: LlamaModel, policy: Policy, prompt: Sequence[int], layer: int) -> Layer:
    """Compute in float what enters a layer, with the weights of every layer before, and quantise.

    Raises
    ------
    PoblanoError
        No such layer, an empty prompt, one that is longer than the model's context, or a tensor
        for which the policy has no entry.
    """
    context = model.configuration.context
    if not 0 < len(prompt) < context:
        raise PoblanoError(
            f"the prompt must have 1 to {context - 1} tokens; got {len(prompt)} tokens"
        )
    cache = KvCache()
    entered = {"prefill": model.activations(prompt, layer, cache)}
    continuation = model.continue_greedily(prompt, min(CONTINUATION, context - len(prompt)))
    entered["decode"] = model.activations(continuation[:1], layer, cache)
    weights: dict[str, MxTensor] = {}
    products: list[Product] = []
    for phase in PHASES:
        for linear in LINEARS:
            p = policy.precision(f"blk.{layer}.{linear}")
            weight, x = model.weight(layer, linear), entered[phase][linear]
            if linear not in weights:
                weights[linear] = quantise(weight, p.weight, p.scale_rule)
            reference = x.astype(np.float64) @ weight.astype(np.float64).T
            a = quantise(np.ascontiguousarray(x), p.activation, p.scale_rule)
            products.append(Product(phase, linear, p, a, weights[linear], reference))
    sample = entered["prefill"]["ffn_down"][-1, :32]
    return Layer(model, layer, list(prompt), continuation, products, sample)


def _rows(configuration: Configuration, product: Product) -> list[range]:
    """Cut the rows of the results so that each part's activations fit L1; whole if they can be."""
    m = product.shape[0]
    rows = m
    while True:
        try:
            plan_job(configuration, _job(product, range(rows)))
        except CommandError:
            if rows == 1:
                raise
            rows = -(-rows // 2)
        else:
            return [range(start, min(m, start + rows)) for start in range(0, m, rows)]


def _job(product: Product, rows: range) -> MatmulJob:
    part = slice(rows.start, rows.stop)
    a = product.a
    return MatmulJob(
        f"{product.name}[{rows.start}:{rows.stop}]",
        MxTensor(a.codes[part], a.scales[part], a.fmt, a.rule),
        product.b,
        product.precision.result.name,
    )


def jobs(configuration: Configuration, products: Sequence[Product]) -> Iterator[MatmulJob]:
    """Yield the jobs of every product, each of as many rows as fit L1.

    Raises
    ------
    PoblanoError
        Not even one row fits.
    """
    for product in products:
        for rows in _rows(configuration, product):
            yield _job(product, rows)


def peak_macs(configuration: Configuration, precision: Precision) -> int:
    """Return the multiply-accumulates a cycle of the engine at a precision's formats."""
    tensor = configuration.slice.tensor
    return tensor.rows * tensor.cols * LANES // Mode(precision.activation, precision.weight).beats


def judge(
    configuration: Configuration, product: Product, outcomes: Mapping[str, StreamedOutcome]
) -> Verdict:
    """Hold the outcomes of a product's jobs, by job name, to the numpy model and to float."""
    d = np.full(product.reference.shape, np.nan, np.float32)
    checks: list[ContractCheck] = []
    runs: list[StreamedOutcome] = []
    moved = 0
    for rows in _rows(configuration, product):
        job = _job(product, rows)
        outcome = outcomes[job.name]
        assert not isinstance(outcome.d, MxTensor)
        d[rows.start : rows.stop] = outcome.d
        plan = plan_job(configuration, job)
        useful = plan.product.m * plan.product.n * plan.product.k
        share = useful / peak_macs(configuration, product.precision)
        checks.append(check_contract(plan, outcome, share))
        runs.append(outcome)
        moved += plan.product.moved_bytes
    cycles = sum(run.cycles for run in runs)
    expected, actual = _bits(golden(product)), _bits(d)
    wrong = np.argwhere(expected != actual)
    first = None
    if len(wrong):
        row, column = (int(i) for i in wrong[0])
        first = Mismatch(row, column, int(expected[row, column]), int(actual[row, column]))
    m, n, k = product.shape
    return Verdict(
        product=product,
        wrong=len(wrong),
        first=first,
        snr_db=snr_db(product.reference, d),
        cycles=cycles,
        wall_seconds=sum(run.wall_seconds for run in runs),
        mismatches=sum(check.mismatches for check in checks),
        commands=sum(len(run.spans["tensor"]) for run in runs),
        where={name: sum(check.where[name] for check in checks) for name in CATEGORIES},
        utilisation=m * n * k / (peak_macs(configuration, product.precision) * cycles),
        port_utilisation=moved / (configuration.slice.hbm.width * cycles),
        runs=tuple(runs),
    )


def golden(product: Product) -> F32:
    """Return what the numpy model says the hardware must return, as float32."""
    d = matmul(product.a, product.b)
    if product.precision.result == BF16:
        return fp32.from_bf16_bits(fp32.to_bf16_bits(d))
    return d


def snr_db(reference: F64, d: F32) -> float:
    """Return the signal-to-noise ratio of `d` in decibels; infinite if it is exact."""
    noise = float(np.square(reference - d).sum())
    return float("inf") if noise == 0 else 10 * np.log10(np.square(reference).sum() / noise)


def _bits(d: F32) -> U32:
    return np.ascontiguousarray(d).view(np.uint32)
