"""Area and delay of a module with everything below it, flattened, in a cell library.

`poblano_flow.synthesis.mapping` lays down the script, by which every figure of other designs was
measured too. A gate equivalent is the library's smallest two-input NAND. Libraries are the user's
own: the environment variable POBLANO_LIBERTY_DIR names a folder of `.lib` or `.lib.gz` files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from poblano_flow.synthesis.liberty import read_library
from poblano_flow.synthesis.mapping import RELAXED, Source, map_module

__all__ = ["AreaResult", "gate_equivalents"]


@dataclass(frozen=True)
class AreaResult:
    """What a module takes in a library.

    Attributes
    ----------
    area, sequential_area:
        Of all cells and of the registers among them, in the library's unit.
    gate:
        Area of one gate equivalent.
    delay:
        Picoseconds of the longest path through logic, as ABC sees it.
    """

    area: float
    sequential_area: float
    gate: float
    delay: float

    @property
    def gate_equivalents(self) -> float:
        """The area in two-input NAND gates."""
        return self.area / self.gate


def gate_equivalents(
    source: str, top: str, liberty: Sequence[Path], delay_ps: int = RELAXED, *, rtlil: bool = False
) -> AreaResult:
    """Return what a module takes in a library.

    Parameters
    ----------
    source:
        Verilog, or RTLIL if `rtlil` is given, of the module and everything below it.
    top:
        The module's name.
    liberty:
        The library's files.
    delay_ps:
        Delay asked of ABC.

    Raises
    ------
    PoblanoError
        If the library cannot be used, or Yosys fails.
    """
    library = read_library(liberty)
    mapped = map_module(Source(top, source, rtlil=rtlil), library, delay_ps)
    return AreaResult(mapped.area, mapped.sequential_area, library.gate, mapped.delay_ps)
