"""The memories of a simulated slice, and what each command does to them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from poblano.commands import Command, Values
from poblano.config import SliceConfiguration
from poblano.tensor.layout import Extent, format_of
from poblano_golden import moves
from poblano_golden.arrays import U8
from poblano_golden.blocks import MxTensor, unpack
from poblano_golden.errors import PoblanoError
from poblano_golden.formats import MxFormat, num_blocks
from poblano_sw.matmul import MatmulPlan, golden_bytes
from poblano_sw.simulator.vector import VectorEngine

__all__ = ["Memories"]


class Memories:
    """L1 and HBM as bytes.

    Parameters
    ----------
    configuration:
        The slice.
    hbm_bytes:
        Bytes of each HBM port's memory.

    Attributes
    ----------
    l1:
        uint8 `[l1.size]`.
    hbm:
        For each port uint8 `[hbm_bytes]`.
    """

    def __init__(self, configuration: SliceConfiguration, hbm_bytes: int) -> None:
        self.configuration = configuration
        self.l1: U8 = np.zeros(configuration.l1.size, np.uint8)
        self.hbm: list[U8] = [np.zeros(hbm_bytes, np.uint8) for _ in range(configuration.hbm.ports)]
        self._vector = VectorEngine(configuration)

    def indices(self, values: Values) -> NDArray[np.uint32] | None:
        """Return the indices that a move reads, or None if it reads none."""
        if "indices" not in values:
            return None
        return moves.read_indices(self.l1, values["indices"], values["rows"])

    def execute(self, command: Command, values: Values, port: int) -> None:
        """Do all of a command at once.

        Parameters
        ----------
        command, values:
            What to do; legal for the configuration.
        port:
            HBM port of a move.

        Raises
        ------
        PoblanoError
            If a move leaves the port's memory.
        """
        if command.engine == "tensor":
            self._multiply(values)
            return
        if command.engine == "scalar":
            return  # what it does to L1 it did while it ran
        if command.engine == "vector":
            self._vector.execute(command, values, self.l1)
            return
        names = moves.Move.__dataclass_fields__
        move = moves.Move(**{name: values[name] for name in names if name in values})
        hbm = self.hbm[port]
        for outer, inner in move.places(self.l1):
            if outer + move.length > len(hbm):
                raise PoblanoError(
                    f"{command.mnemonic}: a row must end in the {len(hbm)} bytes of HBM port "
                    f"{port}; it ends at {outer + move.length}"
                )
            in_hbm, in_l1 = hbm[outer:][: move.length], self.l1[inner:][: move.length]
            if command.engine == "load":
                in_l1[:] = in_hbm
            else:
                in_hbm[:] = in_l1

    def _multiply(self, values: Values) -> None:
        plan = MatmulPlan(self.configuration, dict(values), format_of(values["d_format"]))
        a, b = (self._operand(plan, side, values) for side in ("a", "b"))
        for address, data in golden_bytes(plan, a, b):
            self.l1[address : address + len(data)] = data

    def _operand(self, plan: MatmulPlan, side: str, values: Values) -> MxTensor:
        fmt = format_of(values[f"{side}_format"])
        assert isinstance(fmt, MxFormat)
        codes, scales = (self._gather(plan.arrays[f"{side}_{part}"]) for part in ("code", "scale"))
        rows = values["m" if side == "a" else "n"]
        shaped = codes.reshape(num_blocks(values["k"]), rows, fmt.block_bytes)
        return unpack(shaped, scales, fmt, values["k"])

    def _gather(self, extent: Extent) -> U8:
        starts = extent.address + extent.stride * np.arange(extent.steps)
        return self.l1[starts[:, None] + np.arange(extent.length)]
