"""Random kernels on few buffers, and what they must leave behind."""

from __future__ import annotations

from random import Random

from poblano.commands import by_mnemonic
from poblano_golden.arrays import U8
from poblano_golden.formats import MXINT8
from poblano_sw.kernel import UINT32, Builder
from poblano_sw.simulator import Memories

__all__ = ["in_order", "random_kernel"]

_OPERATIONS = ("add", "subtract", "maximum", "select")
_FUNCTIONS = ("pass", "negate", "sigmoid", "exp2", "reciprocal_sqrt")


def random_kernel(random: Random, builder: Builder, commands: int) -> None:
    """Ask for moves, passes and products; most touch bytes that others touch.

    Takes what it needs of L1 and of HBM port 0, 4 KiB of each at most.
    """
    rows, cols = 4, 32
    outside = [builder.matrix(rows, cols, place="hbm_0") for _ in range(3)]
    inside = [builder.matrix(rows, cols) for _ in range(3)]
    blocks = [builder.blocks(rows, cols, MXINT8) for _ in range(2)]
    numbers, indices = builder.matrix(1, rows), builder.matrix(rows, 2, UINT32)
    best = builder.matrix(rows, 2)
    for _ in range(commands):
        near, other, far = (random.choice(group) for group in (inside, inside, outside))
        match random.choice(("load", "store", "vector", "sum", "quantise", "topk", "matmul")):
            case "load":
                builder.load(near, far)
            case "store":
                builder.store(far, near)
            case "vector":
                builder.vector(
                    near,
                    factor1=random.choice((numbers, 0.5)),
                    operation1=(random.choice(_OPERATIONS), other),
                    function=random.choice(_FUNCTIONS),
                    d=random.choice(inside),
                )
            case "sum":
                builder.vector(near, reduction=(random.choice(("sum", "maximum")), numbers))
            case "quantise":
                builder.vector(near, d=random.choice(blocks))
            case "topk":
                builder.topk(near, best, indices)
            case _:
                builder.matmul(near[:, :rows], random.choice(blocks), random.choice(blocks))


def in_order(builder: Builder, l1: U8, hbm: U8) -> Memories:
    """Return the memories after the kernel's commands, each run to its end before the next.

    Parameters
    ----------
    builder:
        The kernel.
    l1, hbm:
        What L1 and HBM port 0 hold before, or the beginning of it.
    """
    memories = Memories(builder.configuration.slice, len(hbm))
    memories.hbm[0][:] = hbm
    memories.l1[: len(l1)] = l1
    for operation in builder.operations:
        command = by_mnemonic(operation.mnemonic)
        memories.execute(command, command.complete(operation.values), 0)
    return memories
