"""A mixture of experts for one token, in GPT-OSS's form, the chosen experts' weights from HBM.

    gate, up = W1 x + b1, gate clamped above, up on both sides
    h = gate sigmoid(alpha gate) (up + 1)
    y = sum over the chosen experts of weight (W2 h + b2)

The router's logits are products of MX blocks plus a bias; the k largest, the lowest expert first
among equals, are chosen, and a softmax over them gives the weights. Which weights are fetched
follows from the choice: `load.gather` takes the expert's number from L1.

An expert's matrices lie in HBM in pieces of some of its rows, codes before scales, so that a piece
is one run; all experts' pieces of the same rows lie one behind the other.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass

from poblano_golden.formats import MxFormat, num_blocks
from poblano_golden.kernels.moe import ALPHA, LIMIT
from poblano_golden.vector import INT8
from poblano_sw.kernel import Blocks, Builder, Matrix
from poblano_sw.kernel.pipeline import Ring, pipelined

__all__ = ["Experts", "Pieces", "moe", "place_experts", "place_pieces", "route"]


@dataclass(frozen=True)
class Pieces:
    """A matrix of every expert: `[rows, cols]` in pieces of `piece` rows.

    `bytes` is `[experts, ...]` for every piece: a row is an expert's piece.
    """

    rows: int
    cols: int
    piece: int
    fmt: MxFormat
    bytes: tuple[Matrix, ...]

    @property
    def num_blocks(self) -> int:
        """Blocks of a row."""
        return num_blocks(self.cols)

    def blocks(self, buffer: Matrix, piece: int) -> Blocks:
        """Return a piece that lies in a buffer of L1 as the operand that it is."""
        rows = self.piece_rows(piece)
        codes = rows * self.fmt.block_bytes
        scales = buffer.address + codes * (self.num_blocks)
        return Blocks(
            buffer.place, buffer.address, scales, rows, self.cols, self.fmt, codes, rows, "weights"
        )

    def piece_rows(self, piece: int) -> int:
        """Return the rows of a piece; the last may have fewer."""
        return min(self.piece, self.rows - piece * self.piece)


@dataclass(frozen=True)
class Experts:
    """The weights of all experts in HBM.

    Parameters
    ----------
    gate, up:
        `[intermediate, hidden]`, in the same pieces.
    down:
        `[hidden, intermediate]`.
    gate_bias, up_bias:
        `[experts, intermediate]`.
    down_bias:
        `[experts, hidden]`.
    """

    gate: Pieces
    up: Pieces
    down: Pieces
    gate_bias: Matrix
    up_bias: Matrix
    down_bias: Matrix


def place_pieces(
    builder: Builder, experts: int, rows: int, cols: int, fmt: MxFormat, piece: int, name: str
) -> Pieces:
    """Take place in HBM for a matrix of every expert."""
    found: list[Matrix] = []
    blocks = num_blocks(cols)
    for begin in range(0, rows, piece):
        length = min(piece, rows - begin) * blocks * (fmt.block_bytes + 1)
        stride = -(-length // 64) * 64
        taken = builder.matrix(experts, stride, INT8, place="hbm_0", name=f"{name} {begin}")
        found.append(taken[:, :length])
    return Pieces(rows, cols, piece, fmt, tuple(found))


def place_experts(
    builder: Builder, experts: int, hidden: int, intermediate: int, fmt: MxFormat, piece: int
) -> Experts:
    """Take place in HBM for the weights of all experts."""
    gate, up = (
        place_pieces(builder, experts, intermediate, hidden, fmt, piece, name)
        for name in ("gate", "up")
    )
    down = place_pieces(builder, experts, hidden, intermediate, fmt, piece, "down")
    biases = [
        builder.matrix(experts, width, place="hbm_0", name=name)
        for width, name in (
            (intermediate, "gate bias"),
            (intermediate, "up bias"),
            (hidden, "down bias"),
        )
    ]
    return Experts(gate, up, down, *biases)


def route(builder: Builder, indices: Matrix, weights: Matrix, logits: Matrix, bias: Matrix) -> None:
    """Choose experts from logits `[1, experts]` and a bias, and give them weights.

    `indices` is uint32 `[1, k]`, `weights` binary32 `[1, k]`; all lie in L1.
    """
    with builder.scope():
        best = builder.matrix(1, weights.cols, name="best logits")
        total, largest = (builder.matrix(1, 1, name=name) for name in ("total", "largest"))
        builder.vector(logits, operation1=("add", bias), d=logits)
        builder.topk(logits, best, indices)
        builder.vector(best, reduction=("maximum", largest))
        builder.vector(
            best,
            operation1=("subtract", largest),
            function="exp",
            d=best,
            reduction=("sum", total),
        )
        builder.vector(total, function="reciprocal", d=total)
        builder.vector(best, factor1=total, d=weights)


@dataclass(frozen=True)
class _State:
    x: Blocks
    h: Blocks
    y: Matrix
    indices: Matrix
    weights: Matrix
    buffers: Ring[Matrix]
    numbers: Ring[list[Matrix]]
    biases: Ring[list[Matrix]]


def moe(
    builder: Builder,
    y: Matrix,
    x: Blocks,
    experts: Experts,
    indices: Matrix,
    weights: Matrix,
    *,
    activations: MxFormat,
    rule: str = "even",
) -> None:
    """Add up the chosen experts' results for a token.

    Parameters
    ----------
    builder:
        Takes the commands.
    y:
        The sum, binary32 `[1, hidden]`, in L1.
    x:
        The token's activations `[1, hidden]` in L1.
    experts:
        All weights.
    indices, weights:
        The chosen, uint32 `[1, k]`, and what each counts, binary32 `[1, k]`, in L1.
    activations:
        The format of h.
    """
    gate, down = experts.gate, experts.down
    size = max(pieces.bytes[0].cols for pieces in (gate, down))
    widest = max(gate.piece, down.piece)
    with builder.scope():
        state = _State(
            x,
            builder.blocks(1, gate.rows, activations, name="h"),
            y,
            indices,
            weights,
            Ring(4, lambda: builder.matrix(1, size, INT8, name="weights")),
            Ring(3, lambda: [builder.matrix(1, widest, name=n) for n in ("product", "gated")]),
            Ring(
                2,
                lambda: [
                    builder.matrix(1, width, name="bias")
                    for width in (gate.rows, gate.rows, down.rows)
                ],
            ),
        )
        pipelined(_pieces(builder, experts, state, rule))


def _pieces(
    builder: Builder, experts: Experts, state: _State, rule: str
) -> Iterator[Iterator[None]]:
    """Yield the jobs of all chosen experts: their gates and ups piece by piece, then downs."""
    number = 0
    for chosen in range(state.indices.cols):
        index = state.indices[:, chosen : chosen + 1]
        biases = state.biases[chosen]
        for bias, table in zip(
            biases, (experts.gate_bias, experts.up_bias, experts.down_bias), strict=True
        ):
            builder.gather(bias, table, index)
        for piece in range(len(experts.gate.bytes)):
            yield _gate(builder, experts, state, number, chosen, piece)
            yield _up(builder, experts, state, number + 1, chosen, piece, rule)
            number += 2
        for piece in range(len(experts.down.bytes)):
            yield _down(builder, experts, state, number, chosen, piece)
            number += 1


def _product(
    builder: Builder, pieces: Pieces, state: _State, number: int, chosen: int, piece: int, x: Blocks
) -> Generator[None, None, Matrix]:
    """Yield after the load and after the product of a piece with x; return the product."""
    buffer = builder.view(state.buffers[number], 1, pieces.bytes[piece].cols)
    index = state.indices[:, chosen : chosen + 1]
    builder.gather(buffer, pieces.bytes[piece], index)
    product = builder.view(state.numbers[number][0], 1, pieces.piece_rows(piece))
    yield
    builder.matmul(product, x, pieces.blocks(buffer, piece))
    yield
    return product


def _gate(
    builder: Builder, experts: Experts, state: _State, number: int, chosen: int, piece: int
) -> Iterator[None]:
    product = yield from _product(builder, experts.gate, state, number, chosen, piece, state.x)
    begin = piece * experts.gate.piece
    bias = state.biases[chosen][0][:, begin : begin + product.cols]
    gated = builder.view(state.numbers[number][1], 1, product.cols)
    builder.vector(
        product, operation1=("add", bias), operation2=("minimum", float(LIMIT)), d=product
    )
    builder.vector(product, factor1=float(ALPHA), function="sigmoid", factor2="a", d=gated)


def _up(
    builder: Builder,
    experts: Experts,
    state: _State,
    number: int,
    chosen: int,
    piece: int,
    rule: str,
) -> Iterator[None]:
    product = yield from _product(builder, experts.up, state, number, chosen, piece, state.x)
    begin = piece * experts.up.piece
    bias = state.biases[chosen][1][:, begin : begin + product.cols]
    gated = builder.view(state.numbers[number - 1][1], 1, product.cols)
    builder.vector(
        product, operation1=("add", bias), operation2=("minimum", float(LIMIT)), d=product
    )
    builder.vector(
        product,
        operation1=("maximum", -float(LIMIT)),
        factor2=gated,
        operation2=("add", gated),
        d=state.h[:, begin : begin + product.cols],
        rule=rule,
    )


def _down(
    builder: Builder, experts: Experts, state: _State, number: int, chosen: int, piece: int
) -> Iterator[None]:
    product = yield from _product(builder, experts.down, state, number, chosen, piece, state.h)
    begin = piece * experts.down.piece
    columns = slice(begin, begin + product.cols)
    bias, y = state.biases[chosen][2][:, columns], state.y[:, columns]
    weight = state.weights[:, chosen : chosen + 1]
    builder.vector(product, operation1=("add", bias), d=product)
    if chosen == 0:
        builder.vector(product, factor1=weight, d=y)
    else:
        builder.vector(product, factor1=weight, operation1=("add", y), d=y)
