"""Mapping of one module to a library by Yosys and ABC, by one fixed script, kept by content.

The script: flatten, `synth`, flip-flops by `dfflibmap`, then ABC as in `ABC_SCRIPT`; the area is
what `stat -liberty` says, the delay what ABC's `stime` says. Yosys runs in one thread, so that the
same input gives the same netlist.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, cast

from poblano_flow.build_cache import BuildError, cached
from poblano_flow.process import supervise
from poblano_flow.synthesis.liberty import Library
from poblano_golden.errors import PoblanoError

__all__ = ["ABC_SCRIPT", "RELAXED", "Macro", "Mapped", "Source", "map_module"]

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
"""Seconds that one module may take."""

_JOB = Path(__file__).with_name("yosys_job.py")
_PRODUCTS = ("result.json", "netlist.v")


@dataclass(frozen=True)
class Source:
    """What is mapped.

    Attributes
    ----------
    top, text:
        The module's name, and the Verilog (or RTLIL, if `rtlil` is set) that holds it.
    stubs:
        Verilog headers of the modules that stay black boxes.
    macro_bits:
        Memories of at least so many bits become black boxes; None maps all to flip-flops.
    prepare:
        A pass of Yosys that runs before `synth`, such as `booth`.
    """

    top: str
    text: str
    stubs: str = ""
    macro_bits: int | None = None
    rtlil: bool = False
    prepare: str = ""


@dataclass(frozen=True)
class Macro:
    """A memory inside a module that became a black box.

    Attributes
    ----------
    kind, name:
        Names of its cell type and of its cell in the netlist.
    depth, width, reads, writes:
        Words, bits of a word, and ports.
    """

    kind: str
    name: str
    depth: int
    width: int
    reads: int
    writes: int

    @property
    def bits(self) -> int:
        """Bits that it holds."""
        return self.depth * self.width


@dataclass(frozen=True)
class Mapped:
    """A module in terms of library cells.

    Attributes
    ----------
    area, sequential_area:
        Of all library cells and of the registers among them, in the library's unit.
    delay_ps:
        Longest path through logic as ABC sees it; 0 without logic.
    cells:
        Cell type to count, black boxes included.
    macros:
        Memories that became black boxes.
    netlist:
        The Verilog netlist.
    fresh:
        Whether this call made it.
    seconds:
        Wall time of making it, by whoever did.
    """

    area: float
    sequential_area: float
    delay_ps: float
    cells: Mapping[str, int]
    macros: tuple[Macro, ...]
    netlist: Path
    fresh: bool
    seconds: float


@cache
def _script_version() -> str:
    """Return what identifies the script: its text and the version of Yosys."""
    text = _JOB.read_bytes() + "\n".join(ABC_SCRIPT).encode()
    return f"{hashlib.sha256(text).hexdigest()[:16]}, pyosys {metadata.version('pyosys')}"


def map_module(source: Source, library: Library, delay_ps: int = RELAXED) -> Mapped:
    """Map a module, or return what an earlier call made of the same input.

    Parameters
    ----------
    source:
        The module.
    library:
        All files of it are used.
    delay_ps:
        Delay asked of ABC.

    Raises
    ------
    PoblanoError
        If Yosys fails, takes too long, or gives no area.
    """
    recipe = {
        "source": hashlib.sha256(f"{source.text}\0{source.stubs}".encode()).hexdigest(),
        "top": source.top,
        "rtlil": source.rtlil,
        "macro_bits": source.macro_bits,
        "prepare": source.prepare,
        "library": library.digest,
        "delay": delay_ps,
        "script": _script_version(),
    }

    def make(folder: Path) -> Iterable[Path]:
        _run(folder, source, library, delay_ps)
        return [folder / name for name in _PRODUCTS]

    entry = cached("synth", source.top, recipe, make)
    found = cast("dict[str, Any]", json.loads((entry.folder / "result.json").read_text("utf-8")))
    return Mapped(
        area=found["area"],
        sequential_area=found["sequential_area"],
        delay_ps=found["delay_ps"],
        cells=found["cells"],
        macros=tuple(Macro(**macro) for macro in found["macros"]),
        netlist=entry.folder / "netlist.v",
        fresh=entry.fresh,
        seconds=entry.seconds,
    )


def _run(folder: Path, source: Source, library: Library, delay_ps: int) -> None:
    files = {
        "source.il" if source.rtlil else "source.v": source.text,
        "stubs.v": source.stubs,
        "abc.script": "\n".join(ABC_SCRIPT).format(delay=delay_ps) + "\n",
    }
    job = {
        "top": source.top,
        "reader": "read_rtlil" if source.rtlil else "read_verilog -sv -D SYNTHESIS",
        "source": next(iter(files)),
        "stubs": "stubs.v" if source.stubs else "",
        "macro_bits": source.macro_bits,
        "prepare": source.prepare,
        "liberty": str(library.merged),
        "script": "abc.script",
    }
    files["job.json"] = json.dumps(job, indent=1)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    done = supervise(
        [sys.executable, str(_JOB)],
        folder=folder,
        environment={**os.environ, "YOSYS_MAX_THREADS": "1"},
        limit=LIMIT,
    )
    if done.timed_out:
        raise PoblanoError(f"{source.top}: Yosys must end within {LIMIT:.0f} s; it did not")
    if done.status != 0:
        errors = [line for line in done.output.splitlines() if "ERROR" in line or "Error" in line]
        raise BuildError(
            f"{source.top}: Yosys must end without an error; got {(errors or ['none said'])[-1]}"
        )
    path = folder / "result.json"
    result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    delays = re.findall(r"Delay\s*=\s*([0-9.]+) ps", done.output)
    result["delay_ps"] = float(delays[-1]) if delays else 0.0
    path.write_text(json.dumps(result, indent=1), encoding="utf-8")
