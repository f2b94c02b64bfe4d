"""The demonstration: one layer of a real language model on the generated hardware.

Three steps, each a function: `prepare` makes the layer's matrix products out of a prompt, `jobs`
cuts them to what fits L1, and `judge` holds what the hardware returned to the numpy model, bit
for bit, and to float arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from poblano.arith.modes import LANES, Mode
from poblano.config import Configuration
from poblano.tensor.timing import Phases
from poblano_flow.matmul_job import MatmulJob, MatmulOutcome
from poblano_golden import fp32
from poblano_golden.arrays import F32, F64, U32
from poblano_golden.blocks import MxTensor, quantise
from poblano_golden.errors import PoblanoError
from poblano_golden.formats import BF16
from poblano_golden.matmul import matmul
from poblano_sw.matmul import MatmulPlan, plan_matmul, split_columns
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
    cycles, load_cycles, wall_seconds:
        Sums over the product's jobs (see `MatmulOutcome`).
    contract_cycles:
        What the engine's timing function says the jobs take.
    where:
        Where the cycles went: category to cycles; sums to `contract_cycles`.
    utilisation:
        Useful multiply-accumulates over peak times `cycles`.
    """

    product: Product
    wrong: int
    first: Mismatch | None
    snr_db: float
    cycles: int
    load_cycles: int
    wall_seconds: float
    contract_cycles: int
    where: dict[str, float]
    utilisation: float

    @property
    def passed(self) -> bool:
        """Whether every bit, and the cycle count, is what it must be."""
        return not self.wrong and self.cycles == self.contract_cycles


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


def _tiles(configuration: Configuration, product: Product) -> list[tuple[range, range]]:
    """Cut the results into rows and columns whose product fits L1; rows whole if they can be."""
    m, n, k = product.shape
    p = product.precision
    rows = m
    while True:
        try:
            columns = split_columns(
                configuration.slice,
                m=rows, n=n, k=k, a=p.activation, b=p.weight, result=p.result,
            )  # fmt: skip
        except PoblanoError:
            if rows == 1:
                raise
            rows = -(-rows // 2)
        else:
            starts = range(0, m, rows)
            return [(range(s, min(m, s + rows)), c) for s in starts for c in columns]


def _cut(tensor: MxTensor, rows: range) -> MxTensor:
    part = slice(rows.start, rows.stop)
    return MxTensor(tensor.codes[part], tensor.scales[part], tensor.fmt, tensor.rule)


def _job_name(product: Product, rows: range, columns: range) -> str:
    return f"{product.name}[{rows.start}:{rows.stop}, {columns.start}:{columns.stop}]"


def jobs(configuration: Configuration, products: Sequence[Product]) -> Iterator[MatmulJob]:
    """Yield the jobs of every product, each small enough for L1.

    Raises
    ------
    PoblanoError
        Not even one row and one tile of columns fit.
    """
    for product in products:
        for rows, columns in _tiles(configuration, product):
            yield MatmulJob(
                _job_name(product, rows, columns),
                _cut(product.a, rows),
                _cut(product.b, columns),
                product.precision.result.name,
            )


def peak_macs(configuration: Configuration, precision: Precision) -> int:
    """Return the multiply-accumulates a cycle of the engine at a precision's formats."""
    tensor = configuration.slice.tensor
    return tensor.rows * tensor.cols * LANES // Mode(precision.activation, precision.weight).beats


def judge(
    configuration: Configuration, product: Product, outcomes: Mapping[str, MatmulOutcome]
) -> Verdict:
    """Hold the outcomes of a product's jobs, by job name, to the numpy model and to float."""
    d = np.full(product.reference.shape, np.nan, np.float32)
    where: dict[str, float] = dict.fromkeys(CATEGORIES, 0)
    contract = cycles = load = 0
    seconds = 0.0
    for rows, columns in _tiles(configuration, product):
        outcome = outcomes[_job_name(product, rows, columns)]
        assert not isinstance(outcome.d, MxTensor)
        d[rows.start : rows.stop, columns.start : columns.stop] = outcome.d
        plan = _plan(configuration, product, len(rows), len(columns))
        contract += plan.phases.cycles
        for category, share in _categories(configuration, product, plan).items():
            where[category] += share
        cycles += outcome.cycles
        load += outcome.load_cycles
        seconds += outcome.wall_seconds
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
        load_cycles=load,
        wall_seconds=seconds,
        contract_cycles=contract,
        where=where,
        utilisation=m * n * k / (peak_macs(configuration, product.precision) * cycles),
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


def _plan(configuration: Configuration, product: Product, rows: int, columns: int) -> MatmulPlan:
    p = product.precision
    return plan_matmul(
        configuration.slice, m=rows, n=columns, k=product.a.k, a=p.activation, b=p.weight,
        result=p.result,
    )  # fmt: skip


CATEGORIES = {
    "multiply": "useful multiplications",
    "masked": "multiplications of masked lanes: results past the edge of the product",
    "fetch": "array waits for operands from L1, first ones included",
    "add": "array waits for an addition to the same accumulators",
    "drain": "array waits for a bank of accumulators, and the last results leave",
}
"""Where the engine's cycles go, and what that means."""


def _categories(
    configuration: Configuration, product: Product, plan: MatmulPlan
) -> dict[str, float]:
    phases: Phases = plan.phases
    useful = plan.macs / peak_macs(configuration, product.precision)
    return {
        "multiply": useful,
        "masked": phases.beats - useful,
        "fetch": phases.fill + phases.fetch_wait,
        "add": phases.add_wait,
        "drain": phases.drain_wait + phases.tail,
    }
