"""Area and delay of a module in a cell library, by one fixed script.

The script is the one by which every figure of other designs was measured: flatten, `synth`, then
ABC as in `ABC_SCRIPT`; the area is what `stat -liberty` says, the delay what ABC's `stime` says.
A gate equivalent is the library's smallest two-input NAND. Libraries are the user's own: the
environment variable POBLANO_LIBERTY_DIR names a folder of `.lib` or `.lib.gz` files.
"""

from __future__ import annotations

import gzip
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from poblano_flow.build_cache import build_root
from poblano_flow.process import supervise
from poblano_golden.errors import PoblanoError

__all__ = ["ABC_SCRIPT", "RELAXED", "AreaResult", "find_liberty", "gate_equivalents"]

ABC_SCRIPT = (
    "strash",
    "ifraig",
    "scorr",
    "dc2",
    "strash",
    "dch -f",
    "map -B 0.9 -D {delay}",
    "topo",
    "buffer -c",
    "upsize -D {delay}",
    "dnsize -D {delay}",
    "stime -p",
)
"""ABC's commands; `{delay}` is the delay asked for, in picoseconds."""

RELAXED = 5000
"""The delay, in picoseconds, that leaves everything to area."""

LIMIT = 900.0
"""Seconds that one measurement may take."""

_RUN = """
import sys
from pyosys import libyosys as ys
design = ys.Design()
for command in open(sys.argv[1]):
    ys.Pass.call(design, command.strip())
"""

VARIABLE = "POBLANO_LIBERTY_DIR"
_CELL = re.compile(r"^\s*cell\s*\(\s*\"?([^\")\s]+)\"?\s*\)", re.MULTILINE)
_AREA = re.compile(r"^\s*area\s*:\s*\"?([0-9.eE+-]+)\"?\s*;", re.MULTILINE)
_NAND2 = re.compile(r"(?:^|_)nand2(?:_|x|$)", re.IGNORECASE)


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


def find_liberty(name: str) -> Path:
    """Return an unpacked library of the folder that POBLANO_LIBERTY_DIR names.

    Parameters
    ----------
    name:
        The file's name without `.lib` or `.lib.gz`.

    Raises
    ------
    PoblanoError
        If the variable is not set, or the folder has no such file or one that cannot be read.
    """
    folder = os.environ.get(VARIABLE)
    if not folder:
        raise PoblanoError(f"{VARIABLE} must name a folder with {name}.lib or .lib.gz; got nothing")
    plain, packed = (Path(folder, name + suffix) for suffix in (".lib", ".lib.gz"))
    if plain.is_file():
        return plain
    if not packed.is_file():
        raise PoblanoError(
            f"{VARIABLE} must name a folder with {name}.lib or .lib.gz; got {folder}"
        )
    try:
        text = gzip.decompress(packed.read_bytes())
        target = build_root() / "liberty" / f"{name}.lib"
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.is_file() or target.read_bytes() != text:
            unfinished = target.with_suffix(f".{os.getpid()}")
            unfinished.write_bytes(text)
            unfinished.replace(target)
    except (OSError, EOFError) as error:
        raise PoblanoError(f"{packed}: must be a readable gzip file; got {error}") from None
    return target


def gate_area(liberty: Sequence[Path]) -> float:
    """Return the area of the smallest two-input NAND.

    Raises
    ------
    PoblanoError
        If no library has one.
    """
    areas: list[float] = []
    for path in liberty:
        text = path.read_text(encoding="utf-8", errors="replace")
        cells = list(_CELL.finditer(text))
        for cell, following in zip(cells, [*cells[1:], None], strict=True):
            if not _NAND2.search(cell[1]):
                continue
            found = _AREA.search(text, cell.end(), following.start() if following else len(text))
            if found:
                areas.append(float(found[1]))
    if not areas:
        names = ", ".join(path.name for path in liberty) or "no file"
        raise PoblanoError(f"a library must have a two-input NAND (nand2 in its name); got {names}")
    return min(areas)


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
        The library's files, unpacked.
    delay_ps:
        Delay asked of ABC.

    Raises
    ------
    PoblanoError
        If the library has no two-input NAND, or Yosys gives no area or delay.
    """
    gate = gate_area(liberty)
    libraries = " ".join(f"-liberty {path.resolve()}" for path in liberty)
    with tempfile.TemporaryDirectory(prefix="poblano-area-") as scratch:
        folder = Path(scratch)
        text = folder / ("source.il" if rtlil else "source.v")
        text.write_text(source, encoding="utf-8")
        script = folder / "abc.script"
        script.write_text("\n".join(ABC_SCRIPT).format(delay=delay_ps) + "\n", encoding="utf-8")
        commands = (
            f"{'read_rtlil' if rtlil else 'read_verilog -sv'} {text}",
            f"hierarchy -check -top {top}",
            "proc",
            "flatten",
            f"synth -top {top} -flatten",
            f"dfflibmap {libraries}",
            f"abc {libraries} -script {script}",
            f"stat {libraries}",
        )
        said = _yosys(commands, folder)
    delays = re.findall(r"Delay\s*=\s*([0-9.]+) ps", said)
    area = re.findall(r"Chip area for (?:top )?module .*: ([0-9.eE+-]+)", said)
    registers = re.findall(r"of which used for sequential elements: ([0-9.eE+-]+)", said)
    if not area or not delays:
        raise PoblanoError(f"Yosys must give area and delay of {top}; got neither")
    sequential = float(registers[-1]) if registers else 0.0
    return AreaResult(float(area[-1]), sequential, gate, float(delays[-1]))


def _yosys(commands: Sequence[str], folder: Path) -> str:
    """Run Yosys in a process of its own, which an error of Yosys ends; return what it said."""
    listed = folder / "commands"
    listed.write_text("\n".join(commands), encoding="utf-8")
    result = supervise(
        [sys.executable, "-c", _RUN, str(listed)],
        folder=folder,
        environment={**os.environ, "YOSYS_MAX_THREADS": "1"},
        limit=LIMIT,
    )
    if result.timed_out:
        raise PoblanoError(f"Yosys must end within {LIMIT:.0f} s; it did not")
    if result.status != 0:
        errors = [line for line in result.output.splitlines() if line.startswith("ERROR")]
        raise PoblanoError(f"Yosys must end without an error; got {(errors or ['none said'])[-1]}")
    return result.output
