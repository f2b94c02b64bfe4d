"""Technology files: what a cell library does not say about its process.

`constraints/tech/NAME.yaml` names the library, its corner and units, and gives a model of wires and
of SRAM; every number stands with its unit and its source.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from poblano.resources import constraints
from poblano_flow.synthesis.liberty import VARIABLE, Library, find_liberty, read_library
from poblano_golden.errors import PoblanoError

__all__ = ["SramModel", "Technology", "load_technology", "select_library", "technology_paths"]

PDK_VARIABLE = "PDK_ROOT"
DEFAULT = "osu018"


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Quantity(_Section):
    """A number with its unit and where it is from."""

    value: Annotated[float, Field(ge=0)]
    unit: str
    source: Annotated[str, Field(min_length=1)]


class Units(_Section):
    """Units of the Liberty files; the area unit is the one of every area in results."""

    time: str
    area: str
    capacitance: str


class WireModel(_Section):
    """A net's wire before layout: so much length for each load, of one metal layer."""

    capacitance: Quantity
    resistance: Quantity
    length: Quantity


class SramModel(_Section):
    """Area of a memory macro: a part for the macro and a part for every bit."""

    ports: Annotated[int, Field(ge=1)]
    """Ports of the macros that the areas are from."""
    macro_area: Quantity
    bit_area: Quantity
    port_share: Quantity
    """Part of the bit area that every further port adds."""

    def area(self, bits: int, ports: int) -> float:
        """Return the area of a macro of so many bits with so many ports."""
        more = max(0, ports - self.ports) * self.port_share.value
        return self.macro_area.value + bits * self.bit_area.value * (1 + more)


class Technology(_Section):
    """A process and its library."""

    name: str
    title: str
    corner: str
    liberty: Annotated[list[str], Field(min_length=1)]
    """Stems of the Liberty files in the folder that POBLANO_LIBERTY_DIR names."""
    file: str | None = None
    """Where a package installs the library."""
    install: str | None = None
    """The command that installs that package."""
    pdk: str | None = None
    """The library's path below $PDK_ROOT."""
    units: Units
    wire: WireModel
    sram: SramModel


def technology_paths() -> dict[str, Path]:
    """Return the technology files by name, in alphabetical order."""
    return {path.stem: path for path in sorted((constraints() / "tech").glob("*.yaml"))}


def load_technology(name: str) -> Technology:
    """Read a technology, by its name or the path of a YAML file.

    Raises
    ------
    PoblanoError
        If there is none, or it breaks a rule.
    """
    known = technology_paths()
    path = Path(name) if "/" in name or "." in name else known.get(name)
    if path is None:
        raise PoblanoError(f"--tech must be one of {', '.join(known)} or a file; got {name!r}")
    try:
        content: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
        return Technology.model_validate(content)
    except ValidationError as error:
        lines = [
            f"{path}: {'.'.join(map(str, item['loc'])) or 'a technology'}: "
            f"{item['msg'].lower()}; got {item['input']!r}"
            for item in error.errors(include_url=False)
        ]
        raise PoblanoError("\n".join(lines)) from None
    except yaml.YAMLError as error:
        raise PoblanoError(f"{path}: a technology must be YAML; got {error}") from None
    except OSError as error:
        raise PoblanoError(f"{path}: a technology must be readable; got {error.strerror}") from None


def select_library(
    liberty: Sequence[Path] | None, tech: str | None
) -> tuple[Library, Technology | None]:
    """Return the library to map to, and its technology.

    The first that is given counts: `liberty`, `tech`, `$PDK_ROOT`, Debian's osu018.

    Parameters
    ----------
    liberty:
        Liberty files; a technology that names the same files goes with them unless `tech` is given.
    tech:
        Name or file of a technology.

    Raises
    ------
    PoblanoError
        If a file is missing or cannot be used.
    """
    technology = None if tech is None else load_technology(tech)
    if liberty:
        library = read_library(liberty)
        technology = technology or _technology_of(library)
    else:
        technology = technology or _installed()
        library = read_library(_files(technology))
    if technology is not None and technology.units.time.replace(" ", "") != library.time_unit:
        raise PoblanoError(
            f"{library.name}: time_unit must be {technology.units.time}, as technology "
            f"{technology.name} says; got {library.time_unit}"
        )
    return library, technology


def _technology_of(library: Library) -> Technology | None:
    stems = {path.stem for path in library.files}
    for name in technology_paths():
        technology = load_technology(name)
        names = {PurePosixPath(stem).name for stem in technology.liberty}
        if technology.pdk is not None:
            names.add(PurePosixPath(technology.pdk).stem)
        if stems <= names:
            return technology
    return None


def _installed() -> Technology:
    """Return the technology of the PDK at $PDK_ROOT, or the default one."""
    root = os.environ.get(PDK_VARIABLE)
    if not root:
        return load_technology(DEFAULT)
    candidates = [load_technology(name) for name in technology_paths()]
    for technology in candidates:
        if technology.pdk is not None and _below_pdk_root(Path(root), technology.pdk):
            return technology
    known = " or ".join(technology.pdk for technology in candidates if technology.pdk)
    raise PoblanoError(
        f"{PDK_VARIABLE} must name a folder of PDKs as ciel or volare lay it out, with {known}; "
        f"got {root}"
    )


def _below_pdk_root(root: Path, path: str) -> Path | None:
    """Return a PDK's file: of the enabled version, or of the only one that is installed."""
    family = "".join(PurePosixPath(path).parts[0].rsplit("A", 1))
    installed = [
        found
        for manager in ("ciel", "volare")
        for found in sorted(root.glob(f"{manager}/{family}/versions/*/{path}"))
    ]
    candidates = [root / path, *(installed if len(installed) == 1 else ())]
    return next((found for found in candidates if found.is_file()), None)


def _files(technology: Technology) -> list[Path]:
    if technology.file is not None and Path(technology.file).is_file():
        return [Path(technology.file)]
    root = os.environ.get(PDK_VARIABLE)
    if root and technology.pdk is not None:
        found = _below_pdk_root(Path(root), technology.pdk)
        if found is not None:
            return [found]
    if os.environ.get(VARIABLE):
        return [find_liberty(name) for name in technology.liberty]
    ways = [f"point {VARIABLE} at a folder with {technology.liberty[0]}.lib"]
    if technology.pdk is not None:
        ways.append(f"{PDK_VARIABLE} at a folder with {technology.pdk}")
    if technology.install is not None:
        ways.append(technology.install)
    raise PoblanoError(
        f"technology {technology.name} must have its library; got none ({', or '.join(ways)})"
    )
