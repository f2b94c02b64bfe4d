"""Gated MLPs of one token: dense layers, shared experts, and experts chosen by their number.

    h = gate(W1 x + b1, W2 x + b2)        y = sum over all calls of weight (W3 h + b3)

Two gates: `silu`, gate sigmoid(gate) up; `clamped`, GPT-OSS's, gate sigmoid(1.702 gate) (up + 1)
with the gate clamped above and up on both sides at 7. Weights stream through a ring of buffers, so
that the next piece comes while one is multiplied, across the border of one MLP to the next too.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

from poblano_golden.errors import PoblanoError
from poblano_golden.formats import BLOCK_SIZE, MxFormat
from poblano_golden.kernels.mlp import ALPHA, GATES, LIMIT
from poblano_golden.vector import INT8
from poblano_sw.kernel import Blocks, Builder, Matrix
from poblano_sw.kernel.pipeline import Ring, pipelined
from poblano_sw.kernels.pieces import Pieces, place_pieces

__all__ = ["Call", "Mlps", "add_mlps", "place_mlps"]

_BUFFERS = 4
"""Pieces in L1: multiplied, loaded, on their way."""


@dataclass(frozen=True)
class Mlps:
    """The weights of MLPs alike in HBM.

    Parameters
    ----------
    gate, up:
        `[intermediate, hidden]`, in the same pieces.
    down:
        `[hidden, intermediate]`.
    biases:
        Of gate and up `[count, intermediate]`, of down `[count, hidden]`; None for none.
    """

    gate: Pieces
    up: Pieces
    down: Pieces
    biases: tuple[Matrix, Matrix, Matrix] | None

    @property
    def port_bytes(self) -> int:
        """Bytes of one MLP, without padding."""
        weights = sum(pieces.port_bytes for pieces in (self.gate, self.up, self.down))
        return weights + sum(table.row_bytes for table in self.biases or ())


@dataclass(frozen=True)
class Call:
    """One use of MLPs.

    Parameters
    ----------
    mlps:
        Which.
    index:
        The number among them, uint32 `[1, 1]` in L1; None for the first.
    weight:
        What the result counts, binary32 `[1, 1]` in L1; None for 1.
    """

    mlps: Mlps
    index: Matrix | None = None
    weight: Matrix | None = None


def place_mlps(
    builder: Builder,
    count: int,
    hidden: int,
    intermediate: int,
    fmt: MxFormat,
    *,
    piece: int,
    bias: bool,
) -> Mlps:
    """Take place in HBM for MLPs alike.

    Raises
    ------
    PoblanoError
        If a piece is not whole blocks of what it makes.
    """
    if piece % BLOCK_SIZE:
        raise PoblanoError(f"piece must be a multiple of {BLOCK_SIZE}; got {piece}")
    gate, up = (
        place_pieces(builder, count, intermediate, hidden, fmt, piece, name)
        for name in ("gate", "up")
    )
    down = place_pieces(builder, count, hidden, intermediate, fmt, piece, "down")
    if not bias:
        return Mlps(gate, up, down, None)
    gate_bias, up_bias, down_bias = (
        builder.matrix(count, width, place="hbm_0", name=name)
        for width, name in (
            (intermediate, "gate bias"),
            (intermediate, "up bias"),
            (hidden, "down bias"),
        )
    )
    return Mlps(gate, up, down, (gate_bias, up_bias, down_bias))


def add_mlps(
    builder: Builder,
    y: Matrix,
    x: Blocks,
    calls: Sequence[Call],
    *,
    gate: str,
    activations: MxFormat,
    rule: str = "even",
) -> None:
    """Add up the results of calls.

    Parameters
    ----------
    builder:
        Takes the commands.
    y:
        The sum, binary32 `[1, hidden]`, in L1; what it held is lost.
    x:
        The token's activations `[1, hidden]` in L1.
    calls:
        What is added, in this order.
    gate:
        `silu` or `clamped`.
    activations, rule:
        Format and scale rule of h.

    Raises
    ------
    PoblanoError
        If there is no such gate, or buffers do not fit L1.
    """
    if gate not in GATES:
        raise PoblanoError(f"a gate must be one of {', '.join(GATES)}; got {gate!r}")
    pieces = [part for call in calls for part in (call.mlps.gate, call.mlps.down)]
    size, widest = max(part.largest for part in pieces), max(part.piece for part in pieces)
    inner = max(call.mlps.gate.rows for call in calls)
    matrix = builder.matrix
    with builder.scope():
        buffers = _Buffers(
            h=Ring(2, lambda: builder.blocks(1, inner, activations, name="h")),
            weights=Ring(_BUFFERS, lambda: matrix(1, size, INT8, name="weights")),
            product=Ring(3, lambda: matrix(1, widest, name="product")),
            gated=Ring(3, lambda: matrix(1, widest, name="gated")),
            biases=Ring(
                2, lambda: tuple(matrix(1, n, name="bias") for n in (inner, inner, y.cols))
            ),
        )
        run = _Run(builder, y, x, gate, rule, buffers)
        pipelined(run.jobs(calls))


@dataclass(frozen=True)
class _Buffers:
    h: Ring[Blocks]
    weights: Ring[Matrix]
    product: Ring[Matrix]
    gated: Ring[Matrix]
    biases: Ring[tuple[Matrix, ...]]


@dataclass(frozen=True)
class _Run:
    builder: Builder
    y: Matrix
    x: Blocks
    gate: str
    rule: str
    buffers: _Buffers

    def jobs(self, calls: Sequence[Call]) -> Iterator[Iterator[None]]:
        """Yield a job a piece: of every call gates and ups in turn, then downs."""
        number = 0
        for place, call in enumerate(calls):
            mlps = call.mlps
            h = self.builder.view(self.buffers.h[place], 1, mlps.gate.rows)
            biases = self._biases(place, call)
            for piece in range(len(mlps.gate.bytes)):
                yield self._gate(call, number, piece, biases)
                yield self._up(call, number + 1, piece, biases, h)
                number += 2
            for piece in range(len(mlps.down.bytes)):
                yield self._down(call, number, piece, biases, h, first=place == 0)
                number += 1

    def _biases(self, place: int, call: Call) -> tuple[Matrix, ...] | None:
        if call.mlps.biases is None:
            return None
        found: list[Matrix] = []
        for buffer, table in zip(self.buffers.biases[place], call.mlps.biases, strict=True):
            bias = self.builder.view(buffer, 1, table.cols)
            self._fetch(bias, table, call)
            found.append(bias)
        return tuple(found)

    def _fetch(self, buffer: Matrix, table: Matrix, call: Call) -> None:
        if call.index is None:
            self.builder.load(buffer, table[:1])
        else:
            self.builder.gather(buffer, table, call.index)

    def _product(
        self, pieces: Pieces, call: Call, number: int, piece: int, x: Blocks
    ) -> Generator[None, None, Matrix]:
        """Yield after the load and after the product of a piece with x; return the product."""
        builder, table = self.builder, pieces.bytes[piece]
        buffer = builder.view(self.buffers.weights[number], 1, table.cols)
        self._fetch(buffer, table, call)
        yield
        weights = pieces.blocks(buffer, piece)
        product = builder.view(self.buffers.product[number], 1, weights.rows)
        builder.matmul(product, x, weights)
        yield
        return product

    def _gate(
        self, call: Call, number: int, piece: int, biases: tuple[Matrix, ...] | None
    ) -> Iterator[None]:
        pieces = call.mlps.gate
        product = yield from self._product(pieces, call, number, piece, self.x)
        builder = self.builder
        gated = builder.view(self.buffers.gated[number], 1, product.cols)
        bias = None if biases is None else ("add", biases[0][:, pieces.rows_of(piece)])
        if self.gate == "silu":
            if bias is not None:
                builder.vector(product, operation1=bias, d=product)
            builder.vector(product, function="sigmoid", factor2="a", d=gated)
            return
        limit = ("minimum", float(LIMIT))
        builder.vector(product, operation1=bias, operation2=limit, d=product)
        builder.vector(product, factor1=float(ALPHA), function="sigmoid", factor2="a", d=gated)

    def _up(
        self, call: Call, number: int, piece: int, biases: tuple[Matrix, ...] | None, h: Blocks
    ) -> Iterator[None]:
        pieces = call.mlps.up
        product = yield from self._product(pieces, call, number, piece, self.x)
        builder, part = self.builder, pieces.rows_of(piece)
        gated = builder.view(self.buffers.gated[number - 1], 1, product.cols)
        bias = None if biases is None else ("add", biases[1][:, part])
        if self.gate == "silu":
            builder.vector(product, operation1=bias, factor2=gated, d=h[:, part], rule=self.rule)
            return
        limit = float(LIMIT)
        builder.vector(product, operation1=bias, operation2=("minimum", limit), d=product)
        builder.vector(
            product,
            operation1=("maximum", -limit),
            factor2=gated,
            operation2=("add", gated),
            d=h[:, part],
            rule=self.rule,
        )

    def _down(
        self,
        call: Call,
        number: int,
        piece: int,
        biases: tuple[Matrix, ...] | None,
        h: Blocks,
        *,
        first: bool,
    ) -> Iterator[None]:
        pieces = call.mlps.down
        product = yield from self._product(pieces, call, number, piece, h)
        part = pieces.rows_of(piece)
        y = self.y[:, part]
        if biases is not None:
            self.builder.vector(product, operation1=("add", biases[2][:, part]), d=product)
        self.builder.vector(
            product,
            factor1="one" if call.weight is None else call.weight,
            operation1=None if first else ("add", y),
            d=y,
        )
