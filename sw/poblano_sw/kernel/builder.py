"""Builds a program from what a kernel asks for."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TypeVar, Unpack

import numpy as np

from poblano.commands import (
    CHAIN,
    LOAD_GATHER,
    LOAD_ROWS,
    MATMUL,
    PASS,
    SCALAR_RUN,
    STORE_ROWS,
    TOPK,
    WORD_BYTES,
    Command,
)
from poblano.config import Configuration
from poblano.host.registers import queue_names
from poblano.tensor.layout import extents
from poblano_golden.arrays import F32
from poblano_golden.blocks import num_blocks
from poblano_golden.errors import PoblanoError
from poblano_golden.formats import SCALE_RULES, MxFormat
from poblano_golden.vector import Number
from poblano_sw.assembler import encode
from poblano_sw.kernel.allocation import Stack
from poblano_sw.kernel.dependencies import Operation, Ordering, semaphores
from poblano_sw.kernel.errors import located, same, source_line
from poblano_sw.kernel.passes import PassOptions, vector_pass
from poblano_sw.kernel.tensors import FP32, INT8, L1, UINT32, Blocks, Matrix, Run, Tensor
from poblano_sw.program import Program
from poblano_sw.scalar.assembler import assemble_scalar

__all__ = ["Builder"]

CHAIN_STATE = Run("the vector engine's chain", 0, 1)
"""Stands for the chain that is set, as if it were a byte."""

RING_WORDS = 16
"""Words of each queue's ring in L1."""

_Any = TypeVar("_Any", Matrix, Blocks)


class Builder:
    """Collects the commands of a kernel for one slice.

    Commands run in the order of their queues: `load` and `store` of each HBM port, `tensor`,
    `vector` and `scalar`. Two commands that touch the same bytes keep the kernel's order, by
    semaphores that the builder places; everything else overlaps. So a kernel says by its buffers
    what may overlap.

    Parameters
    ----------
    configuration:
        The chip.
    hbm_bytes:
        Bytes of each HBM port's memory that a kernel may use.

    Attributes
    ----------
    operations:
        Every command in the kernel's order.
    images:
        Matrices in HBM that must hold these numbers before the program runs.
    """

    def __init__(self, configuration: Configuration, hbm_bytes: int = 1 << 30) -> None:
        self.configuration = configuration
        section = configuration.slice
        queues = queue_names(configuration)
        rings = len(queues) * RING_WORDS * WORD_BYTES
        self._l1 = Stack("L1", section.l1.size - rings)
        reach = min(hbm_bytes, section.hbm.port_bytes)
        self._hbm = [Stack(f"HBM port {port}", reach) for port in range(section.hbm.ports)]
        self._queues: dict[str, list[Operation]] = {name: [] for name in queues}
        self.operations: list[Operation] = []
        self._ordering = Ordering()
        self._chain: dict[str, int] | None = None
        self.images: list[tuple[Matrix, F32]] = []

    @property
    def l1_peak(self) -> int:
        """Bytes of L1 that tensors take at most."""
        return self._l1.peak

    @property
    def hbm_end(self) -> int:
        """Bytes of the fullest HBM port's memory that tensors take."""
        return max(stack.peak for stack in self._hbm)

    # -- tensors ---------------------------------------------------------------------------------

    @located
    def matrix(
        self, rows: int, cols: int, number: Number = FP32, *, place: str = L1, name: str = ""
    ) -> Matrix:
        """Take place for rows of plain numbers; rows lie one behind the other."""
        name = name or f"matrix [{rows}, {cols}] {number.name}"
        _positive(name, rows, cols)
        stride = cols * number.size
        address = self._take(place, rows * stride, name)
        return Matrix(place, address, rows, cols, number, stride, name)

    @located
    def blocks(
        self, rows: int, cols: int, fmt: MxFormat, *, place: str = L1, name: str = ""
    ) -> Blocks:
        """Take place for a matrix in an MX format, block-major."""
        name = name or f"blocks [{rows}, {cols}] {fmt.name}"
        _positive(name, rows, cols)
        count = num_blocks(cols)
        code_stride = rows * fmt.block_bytes
        codes = self._take(place, count * code_stride, name)
        scales = self._take(place, count * rows, name)
        return Blocks(place, codes, scales, rows, cols, fmt, code_stride, rows, name)

    @located
    def view(self, buffer: _Any, rows: int, cols: int) -> _Any:
        """Return a smaller tensor that lies, without gaps, where a buffer does."""
        _inside(buffer, rows, cols)
        if isinstance(buffer, Matrix):
            return replace(buffer, rows=rows, cols=cols, stride=cols * buffer.number.size)
        return replace(
            buffer,
            rows=rows,
            cols=cols,
            code_stride=rows * buffer.fmt.block_bytes,
            scale_stride=rows,
        )

    def scope(self) -> AbstractContextManager[None]:
        """Free on leaving the places in L1 that were taken inside.

        Commands that use them later wait for the commands inside that do.
        """
        return self._l1.scope()

    def _take(self, place: str, length: int, name: str) -> int:
        line = self.configuration.slice.l1.line
        if place == L1:
            return self._l1.take(length, line, name)
        return self._hbm[self._port(place)].take(length, max(line, 64), name)

    def _port(self, place: str) -> int:
        ports = [f"hbm_{port}" for port in range(len(self._hbm))]
        if place not in ports:
            raise PoblanoError(f"a place must be {', '.join((L1, *ports))}; got {place!r}")
        return ports.index(place)

    # -- moves -----------------------------------------------------------------------------------

    @located
    def load(self, d: Tensor, s: Tensor) -> None:
        """Move a tensor of the same shape and format from HBM to L1."""
        self._move(LOAD_ROWS, "load", inner=d, outer=s, writes_inner=True)

    @located
    def store(self, d: Tensor, s: Tensor) -> None:
        """Move a tensor of the same shape and format from L1 to HBM."""
        self._move(STORE_ROWS, "store", inner=s, outer=d, writes_inner=False)

    @located
    def gather(self, d: Matrix, s: Matrix, indices: Matrix) -> None:
        """Load rows of a matrix in HBM by number: row i of `d` is row `indices[i]` of `s`.

        `indices` is uint32 `[1, rows of d]` in L1.
        """
        port = self._port(s.place)
        same("columns of source and destination", s.cols, d.cols)
        same("indices and rows of the destination", indices.cols, d.rows)
        values = {
            "hbm": s.address,
            "l1": d.address,
            "length": d.row_bytes,
            "rows": d.rows,
            "hbm_row_stride": s.stride,
            "l1_row_stride": d.stride,
            "indices": indices.address,
        }
        self._add(LOAD_GATHER, f"load_{port}", values, (*s.runs(), *indices.runs()), d.runs())

    def _move(
        self, command: Command, half: str, *, inner: Tensor, outer: Tensor, writes_inner: bool
    ) -> None:
        same("places", inner.place, L1)
        port = self._port(outer.place)
        same("shapes", (inner.rows, inner.cols), (outer.rows, outer.cols))
        for near, far in zip(inner.runs(), outer.runs(), strict=True):
            near, far = _joined(near, far)
            same("bytes of a row", near.length, far.length)
            values = {
                "hbm": far.address,
                "l1": near.address,
                "length": near.length,
                "rows": near.count,
                "hbm_row_stride": far.stride if near.count > 1 else 0,
                "l1_row_stride": near.stride if near.count > 1 else 0,
            }
            reads, writes = ((far,), (near,)) if writes_inner else ((near,), (far,))
            self._add(command, f"{half}_{port}", values, reads, writes)

    # -- tensor engine ---------------------------------------------------------------------------

    @located
    def matmul(self, d: Tensor, a: Blocks, b: Blocks, *, rule: str = "even") -> None:
        """Write A B^T: sums over the columns of both.

        `d` is `[rows of a, rows of b]`; given as `[rows of b, rows of a]` it is the transpose, and
        blocks then run along the rows of a. For equal row counts, see `matmul_transposed`.
        """
        self._matmul(d, a, b, rule, transposed=(d.rows, d.cols) != (a.rows, b.rows))

    @located
    def matmul_transposed(self, d: Tensor, a: Blocks, b: Blocks, *, rule: str = "even") -> None:
        """Write B A^T, `[rows of b, rows of a]`, blocks along the rows of a."""
        self._matmul(d, a, b, rule, transposed=True)

    def _matmul(self, d: Tensor, a: Blocks, b: Blocks, rule: str, *, transposed: bool) -> None:
        same("columns of a and b", a.cols, b.cols)
        wanted = (b.rows, a.rows) if transposed else (a.rows, b.rows)
        same("shape of the results", (d.rows, d.cols), wanted)
        fmt = d.fmt if isinstance(d, Blocks) else d.number
        values = {
            "a_format": a.fmt.code,
            "b_format": b.fmt.code,
            "d_format": fmt.code,
            "scale_rule": SCALE_RULES[rule],
            "axis": int(transposed),
            "m": a.rows,
            "n": b.rows,
            "k": a.cols,
        }
        for side, tensor in (("a", a), ("b", b), ("d", d)):
            if isinstance(tensor, Blocks):
                values |= {
                    f"{side}_codes": tensor.codes,
                    f"{side}_code_stride": tensor.code_stride,
                    f"{side}_scales": tensor.scales,
                    f"{side}_scale_stride": tensor.scale_stride,
                }
            else:
                values |= {
                    f"{side}_codes": tensor.address,
                    f"{side}_code_stride": tensor.stride,
                }
        found = [
            (Run(L1, e.address, e.length, e.steps, e.stride), e.written)
            for e in extents(MATMUL.complete(values))
        ]
        reads = [run for run, written in found if not written]
        writes = [run for run, written in found if written]
        self._add(MATMUL, "tensor", values, reads, writes)

    # -- vector engine ---------------------------------------------------------------------------

    @located
    def vector(self, a: Matrix, **options: Unpack[PassOptions]) -> None:
        """Send a matrix through the chain of the vector engine; see `PassOptions`.

        The chain is set anew only if it differs from that of the pass before.

        Raises
        ------
        KernelError
            If it needs more operands than one pass has, or shapes do not fit.
        """
        made = vector_pass(a, options)
        if made.chain != self._chain:
            self._chain = made.chain
            self._add(CHAIN, "vector", made.chain, (), (CHAIN_STATE,))
        self._add(PASS, "vector", made.values, (*made.reads, CHAIN_STATE), made.writes)

    @located
    def topk(self, a: Matrix, values: Matrix, indices: Matrix) -> None:
        """Find the largest of every row of `a`: as many as `values` and `indices` have columns."""
        same("shape of values and indices", (values.rows, values.cols), (a.rows, indices.cols))
        same("format of the indices", indices.number, UINT32)
        fields = {
            "a_format": a.number.code,
            "a": a.address,
            "a_row_stride": a.stride,
            "rows": a.rows,
            "cols": a.cols,
            "k": values.cols,
            "values": values.address,
            "indices": indices.address,
        }
        self._add(TOPK, "vector", fields, a.runs(), (*values.runs(), *indices.runs()))

    # -- scalar engine ---------------------------------------------------------------------------

    @located
    def code(self, source: str, *, name: str = "program") -> Matrix:
        """Take place for a program of the scalar engine, and load it; return where in L1 it lies.

        Raises
        ------
        KernelError
            If the text breaks a rule.
        """
        made = assemble_scalar(self.configuration, source, source=name)
        data = np.frombuffer(made.code, np.int8)
        inside, outside = (
            self.matrix(1, len(data), INT8, place=place, name=name) for place in (L1, "hbm_0")
        )
        self.images.append((outside, data[None].astype(np.float32)))
        self.load(inside, outside)
        return inside

    @located
    def scalar(
        self,
        code: Matrix,
        registers: Sequence[int],
        *,
        reads: Sequence[Matrix] = (),
        writes: Sequence[Matrix] = (),
    ) -> None:
        """Run a program of the scalar engine.

        It must have waited for every command that it issues when it halts, and may issue none to a
        queue of which the kernel uses more afterwards: what waits for the run would stand before
        its words. What these and itself read and write must be said. Of the vector engine's chain
        nothing is known afterwards.

        Parameters
        ----------
        code:
            The program, of `code`.
        registers:
            r1 and those that follow.
        reads, writes:
            What it and its commands touch in L1.
        """
        values = {"pc": code.address}
        values |= {f"r{number}": value for number, value in enumerate(registers, start=1)}
        read = [run for matrix in (code, *reads) for run in matrix.runs()]
        written = [run for matrix in writes for run in matrix.runs()]
        self._chain = None
        self._add(SCALAR_RUN, "scalar", values, read, (*written, CHAIN_STATE))

    # -- the program -----------------------------------------------------------------------------

    def _add(
        self,
        command: Command,
        queue: str,
        values: dict[str, int],
        reads: Sequence[Run],
        writes: Sequence[Run],
    ) -> None:
        command.check(self.configuration.slice, command.complete(values))
        operations = self._queues[queue]
        operation = Operation(queue, len(operations), command.mnemonic, values, source_line())
        self._ordering.add(operation, reads, writes)
        operations.append(operation)
        self.operations.append(operation)

    def lines(self) -> dict[tuple[str, int], str]:
        """Return the kernel's `file:line` of every command, by queue and number."""
        return {
            (operation.queue, operation.number): operation.line for operation in self.operations
        }

    def program(self) -> Program:
        """Return the program.

        Raises
        ------
        PoblanoError
            If there is no command, or semaphores cannot express the order.
        """
        if not self.operations:
            raise PoblanoError("a kernel must ask for something; it has no command")
        plain = [
            Operation(o.queue, o.number, o.mnemonic, dict(o.values), o.line, dict(o.waits))
            for o in self.operations
        ]
        semaphores(plain, self.configuration.slice.host.semaphores)
        queues: dict[str, list[bytes]] = {}
        for operation in plain:
            word = encode(self.configuration.slice, operation.mnemonic, **operation.values)
            queues.setdefault(operation.queue, []).append(word)
        return Program(queues, ring_base=self._l1.size, ring_words=RING_WORDS)


def _inside(buffer: Tensor, rows: int, cols: int) -> None:
    if not (0 < rows <= buffer.rows and 0 < cols <= buffer.cols):
        raise PoblanoError(
            f"a view of {buffer.name} must be at most [{buffer.rows}, {buffer.cols}]; "
            f"got [{rows}, {cols}]"
        )


def _joined(near: Run, far: Run) -> tuple[Run, Run]:
    """Return runs that lie without gaps on both sides as one run."""
    if near.count > 1 and near.stride == near.length and far.stride == far.length:
        length = near.count * near.length
        return Run(near.place, near.address, length), Run(far.place, far.address, length)
    return near, far


def _positive(name: str, rows: int, cols: int) -> None:
    if rows < 1 or cols < 1:
        raise PoblanoError(f"rows and columns of {name} must be at least 1; got [{rows}, {cols}]")
