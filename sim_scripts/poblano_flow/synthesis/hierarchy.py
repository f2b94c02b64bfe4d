"""Area of a whole design: every distinct module mapped once and counted as often as it occurs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

from poblano.l1.sram import Sram
from poblano_flow.emission import Emission, Module
from poblano_flow.synthesis.liberty import Library
from poblano_flow.synthesis.mapping import RELAXED, Macro, Mapped, Source, map_module
from poblano_flow.synthesis.technology import Technology
from poblano_golden.errors import PoblanoError

__all__ = ["MACRO_BITS", "DesignArea", "ModuleArea", "synthesise"]

MACRO_BITS = 4096
"""Memories of at least so many bits are SRAM macros; smaller ones are flip-flops."""

WORKERS = 2
"""Modules that are mapped at a time, if nothing else is said."""


@dataclass(frozen=True)
class ModuleArea:
    """One distinct module.

    Attributes
    ----------
    module:
        The emitted module.
    count:
        How often it occurs in the design.
    mapped:
        Its own cells; None for a memory that is a macro.
    macros:
        Memory macros in it, without those of the modules below.
    own_logic, own_memory:
        Areas of its own cells and of its own macros.
    logic, memory:
        The same with everything below it, each occurrence counted.
    """

    module: Module
    count: int
    mapped: Mapped | None
    macros: tuple[Macro, ...]
    own_logic: float
    own_memory: float
    logic: float
    memory: float

    @property
    def cells(self) -> int:
        """Library cells of its own."""
        if self.mapped is None:
            return 0
        inside = {*self.module.instances.values(), *(macro.kind for macro in self.macros)}
        return sum(count for kind, count in self.mapped.cells.items() if kind not in inside)


@dataclass(frozen=True)
class DesignArea:
    """The modules of a design, children before parents; the last is the top."""

    emission: Emission
    modules: tuple[ModuleArea, ...]
    library: Library
    technology: Technology | None
    delay_ps: int

    @property
    def top(self) -> ModuleArea:
        """The outermost module."""
        return self.modules[-1]

    def find(self, name: str) -> ModuleArea:
        """Return the module of that name, or the first of that kind.

        Raises
        ------
        PoblanoError
            If there is none.
        """
        for area in self.modules:
            if name in (area.module.name, area.module.kind):
                return area
        kinds = ", ".join(sorted({area.module.kind for area in self.modules}))
        raise PoblanoError(f"a module must be one of {kinds} or a module's name; got {name!r}")

    @property
    def cells(self) -> int:
        """Library cells of the whole design."""
        return sum(area.cells * area.count for area in self.modules)


def synthesise(
    emission: Emission,
    library: Library,
    technology: Technology | None,
    *,
    delay_ps: int = RELAXED,
    macro_bits: int = MACRO_BITS,
    workers: int = WORKERS,
    progress: Callable[[str, int, int], None] | None = None,
) -> DesignArea:
    """Map every distinct module of a design.

    Parameters
    ----------
    emission:
        The design. In each module the others that it instantiates stay black boxes.
    library, technology:
        Cells, and the model of SRAM.
    delay_ps:
        Delay asked of ABC.
    macro_bits:
        Memories of at least so many bits are macros.
    workers:
        Modules that are mapped at a time.
    progress:
        Called after every module with its name, how many are done, and how many there are.

    Raises
    ------
    PoblanoError
        If a module cannot be mapped, or a macro has no model.
    """
    by_name = {module.name: module for module in emission.modules}
    macros = {
        module.name: _whole_macro(module.component)
        for module in emission.modules
        if isinstance(module.component, Sram)
        and module.component.depth * module.component.width >= macro_bits
    }
    logic = [module for module in emission.modules if module.name not in macros]
    mapped: dict[str, Mapped] = {}
    with ThreadPoolExecutor(workers) as pool:
        largest_first = sorted(logic, key=lambda module: -len(module.verilog))
        running = {
            pool.submit(map_module, _source(module, by_name, macro_bits), library, delay_ps): module
            for module in largest_first
        }
        try:
            for done in as_completed(running):
                mapped[running[done].name] = done.result()
                if progress is not None:
                    progress(running[done].name, len(mapped), len(logic))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return DesignArea(
        emission,
        _totals(emission, mapped, macros, technology),
        library,
        technology,
        delay_ps,
    )


def _whole_macro(sram: Sram) -> Macro:
    return Macro("", "", sram.depth, sram.width, 1, 1)


def _source(module: Module, by_name: dict[str, Module], macro_bits: int) -> Source:
    children = sorted(set(module.instances.values()))
    stubs = "".join(_stub(by_name[name]) for name in children)
    return Source(module.name, module.verilog, stubs, macro_bits)


def _stub(module: Module) -> str:
    """Return the header of a black box."""
    names = ", ".join(port.name for port in module.ports)
    lines = [f"  {port.direction} [{port.width - 1}:0] {port.name};\n" for port in module.ports]
    return f"(* blackbox *)\nmodule {module.name}({names});\n{''.join(lines)}endmodule\n"


def _totals(
    emission: Emission,
    mapped: dict[str, Mapped],
    macros: dict[str, Macro],
    technology: Technology | None,
) -> tuple[ModuleArea, ...]:
    counts = emission.instance_counts()
    totals: dict[str, ModuleArea] = {}
    for module in emission.modules:
        own = mapped.get(module.name)
        inside = (macros[module.name],) if own is None else own.macros
        own_logic = 0.0 if own is None else own.area
        own_memory = _memory_area(inside, technology)
        children = Counter(module.instances.values())
        totals[module.name] = ModuleArea(
            module,
            counts[module.name],
            own,
            inside,
            own_logic,
            own_memory,
            own_logic + sum(totals[child].logic * n for child, n in children.items()),
            own_memory + sum(totals[child].memory * n for child, n in children.items()),
        )
    return tuple(totals.values())


def _memory_area(macros: Sequence[Macro], technology: Technology | None) -> float:
    if macros and technology is None:
        raise PoblanoError(
            "a design with SRAM macros must have a model of their area: --tech names a technology; "
            "got none for this library"
        )
    if technology is None:
        return 0.0
    return sum(technology.sram.area(m.bits, m.reads + m.writes) for m in macros)
