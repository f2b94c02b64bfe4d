"""The end of a model for one token: the token with the largest logit.

Logits are products of MX blocks. The embedding streams from HBM in pieces. Of each the best token
is kept, and of these the best: the lowest token among equals, NaN above all.
"""

from __future__ import annotations

from collections.abc import Iterator

from poblano_golden.vector import INT8
from poblano_sw.kernel import UINT32, Blocks, Builder, Matrix
from poblano_sw.kernel.pipeline import Ring, pipelined
from poblano_sw.kernels.pieces import Pieces

__all__ = ["best_token"]

_BUFFERS = 3

_PICK = """
# r1: where the best piece's number lies, r2: best rows of the pieces, r3: rows of a piece,
# r4: where the token goes
    load32 r5, r1, 0
    mul r6, r5, r3
    add r5, r5, r5
    add r5, r5, r5
    add r5, r5, r2
    load32 r5, r5, 0
    add r5, r5, r6
    store32 r5, r4, 0
    halt
"""


def best_token(builder: Builder, token: Matrix, x: Blocks, embedding: Pieces) -> None:
    """Find the token with the largest logit.

    Parameters
    ----------
    builder:
        Takes the commands.
    token:
        Where its number goes, uint32 `[1, 1]`, in L1.
    x:
        The normalised activations `[1, hidden]` in L1.
    embedding:
        `[vocabulary, hidden]` in HBM.
    """
    count = len(embedding.bytes)
    with builder.scope():
        values, rows = builder.matrix(count, 1), builder.matrix(count, 1, UINT32)
        best, piece = builder.matrix(1, 1), builder.matrix(1, 1, UINT32)
        code = builder.code(_PICK, name="best token")
        weights = Ring(
            _BUFFERS, lambda: builder.matrix(1, embedding.largest, INT8, name="embedding")
        )
        logits = Ring(2, lambda: builder.matrix(1, embedding.piece, name="logits"))

        def job(number: int) -> Iterator[None]:
            table = embedding.bytes[number]
            buffer = builder.view(weights[number], 1, table.cols)
            builder.load(buffer, table[:1])
            yield
            operand = embedding.blocks(buffer, number)
            scores = builder.view(logits[number], 1, operand.rows)
            builder.matmul(scores, x, operand)
            yield
            here = slice(number, number + 1)
            builder.topk(scores, values[here], rows[here])

        pipelined(job(number) for number in range(count))
        builder.topk(values.reshaped(1, count), best, piece)
        registers = (piece.address, rows.address, embedding.piece, token.address)
        builder.scalar(code, registers, reads=(piece, rows), writes=(token,))
