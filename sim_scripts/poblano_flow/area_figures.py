"""The area figures of the arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amaranth.hdl import Module
from amaranth.lib.wiring import In, Out

from poblano.arith.dot_product import DotProduct
from poblano.arith.lanes import LanePlan
from poblano.arith.modes import LANES
from poblano.arith.operand import OperandDecoder
from poblano.arith.structure import FourBitStructure
from poblano.component import Component
from poblano.config import TensorConfiguration, load
from poblano.tensor.unit import TensorUnit
from poblano_flow.area import AreaResult, gate_equivalents
from poblano_flow.emission import emit
from poblano_flow.synthesis.liberty import find_liberty
from poblano_flow.synthesis.mapping import RELAXED
from poblano_golden.formats import BLOCK_SIZE

__all__ = [
    "Dot32",
    "UnitArea",
    "component_area",
    "dot32_area",
    "figures",
    "tensor_unit",
    "unit_area",
]

MXFP4_ONLY = ("mxfp4*mxfp4",)


class Dot32(Component):
    """The generator's decoders and dot product for MXFP4, with whole blocks: codes in, sum out.

    Combinational. Members: `a_codes`, `b_codes`, 32 codes each; `sum`, exact, in quarters.

    Parameters
    ----------
    structure:
        That of the dot product; None is the generator's own.
    """

    def __init__(self, *, structure: FourBitStructure | None = None) -> None:
        self.structure = structure
        plan = LanePlan(MXFP4_ONLY)
        super().__init__(
            {
                "a_codes": In(plan.code_bits),
                "b_codes": In(plan.code_bits),
                "sum": Out(plan.sum_width),
            }
        )

    def elaborate(self, platform: Any) -> Module:  # noqa: ARG002 (Amaranth's interface)
        """Connect two decoders and a dot product."""
        m = Module()
        m.submodules.dot = dot = DotProduct(formats=MXFP4_ONLY, structure=self.structure)
        for side in "ab":
            m.submodules[f"decoder_{side}"] = decoder = OperandDecoder(
                formats=MXFP4_ONLY, side=side
            )
            m.d.comb += [
                decoder.codes.eq(getattr(self, f"{side}_codes")),
                decoder.count.eq(BLOCK_SIZE),
                getattr(dot, side).eq(decoder.operand),
            ]
        m.d.comb += self.sum.eq(dot.sum)
        return m


def component_area(component: Component, liberty: list[Path], delay_ps: int) -> AreaResult:
    """Return the area of a component with everything below it."""
    emission = emit(component)
    source = "\n".join(module.verilog for module in emission.modules)
    return gate_equivalents(source, emission.top.name, liberty, delay_ps)


def dot32_area(liberty: list[Path], delay_ps: int = RELAXED) -> AreaResult:
    """Return the area of the MXFP4 dot product of 32 elements, decoders included."""
    return component_area(Dot32(), liberty, delay_ps)


@dataclass(frozen=True)
class UnitArea:
    """Areas of what computes a tensor engine's products.

    Attributes
    ----------
    unit:
        One unit.
    decoder_a, decoder_b:
        One decoder of each side; a row of units shares the one, a column the other.
    tensor:
        The engine.
    """

    unit: AreaResult
    decoder_a: AreaResult
    decoder_b: AreaResult
    tensor: TensorConfiguration

    @property
    def unit_kge(self) -> float:
        """Thousand gate equivalents of the unit alone."""
        return self.unit.gate_equivalents / 1000

    @property
    def shared_kge(self) -> float:
        """Thousand gate equivalents of a unit with its share of the decoders."""
        share = (
            self.decoder_a.gate_equivalents / self.tensor.cols
            + self.decoder_b.gate_equivalents / self.tensor.rows
        )
        return self.unit_kge + share / 1000

    @property
    def kge_per_product(self) -> float:
        """Thousand gate equivalents, decoders included, for one MXFP4 product a cycle."""
        return self.shared_kge / LANES


def tensor_unit(tensor: TensorConfiguration) -> Component:
    """Return the unit of an engine."""
    stages = {
        f"{name}_stages": getattr(tensor.pipeline, name)
        for name in ("multiply", "sum", "round", "add")
    }
    return TensorUnit(formats=tensor.formats, **stages)


def unit_area(
    tensor: TensorConfiguration, liberty: list[Path], delay_ps: int = RELAXED
) -> UnitArea:
    """Return the areas of an engine's unit and decoders."""
    unit = tensor_unit(tensor)
    a, b = (
        component_area(OperandDecoder(formats=tensor.formats, side=side), liberty, delay_ps)
        for side in "ab"
    )
    return UnitArea(component_area(unit, liberty, delay_ps), a, b, tensor)


def figures() -> dict[str, dict[str, Any]]:
    """Return the published area figures, fields as in `poblano_flow.bench.Figure`.

    Raises
    ------
    PoblanoError
        If the library is not where POBLANO_LIBERTY_DIR says.
    """
    liberty = [find_liberty("nangate45_typ")]
    script = "Nangate 45 typical, NAND2_X1 = 1 GE, flatten, synth, ABC script of `poblano synth`"
    dot = dot32_area(liberty)
    unit = unit_area(load("bench", []).slice.tensor, liberty)
    share = f"with its share of the decoders of {unit.tensor.rows}x{unit.tensor.cols} units"
    return {
        "area.dot32_mxfp4_kge": {
            "value": dot.gate_equivalents / 1000,
            "unit": "kGE",
            "preset": "MXFP4 only, combinational",
            "peer": "best open MXFP4 dot-32, same script",
            "peer_value": 4.48,
            "how": f"{script}; decoders of raw codes included, exact 14-bit sum; relaxed "
            f"({RELAXED} ps asked, {dot.delay:.0f} ps reached)",
        },
        "area.unit_all_formats_kge": {
            "value": unit.unit_kge,
            "unit": "kGE",
            "preset": "bench",
            "peer": "KU Leuven hybrid unit, 8 MXFP4 products a cycle",
            "peer_value": 7.39,
            "how": f"{script}; TensorUnit of the preset's formats and pipeline, registers included "
            f"({unit.unit.sequential_area / unit.unit.gate / 1000:.2f} kGE), {LANES} MXFP4 "
            f"products a cycle; relaxed ({RELAXED} ps asked, {unit.unit.delay:.0f} ps reached); "
            f"{share} {unit.shared_kge:.2f} kGE, that is {unit.kge_per_product:.3f} kGE a product "
            f"(peer: {7.39 / 8:.2f})",
        },
    }
