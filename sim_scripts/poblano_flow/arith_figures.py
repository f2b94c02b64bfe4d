"""Figures of searched arithmetic, and of the same written plainly with `*` and `+`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.data import ArrayLayout
from amaranth.lib.wiring import In, Out

from poblano.arith.modes import LANES
from poblano.component import Component
from poblano_flow.area import AreaResult
from poblano_flow.area_figures import Dot32, component_area
from poblano_flow.emission import emit
from poblano_flow.synthesis.liberty import find_liberty, read_library
from poblano_flow.synthesis.mapping import RELAXED, Source, map_module

__all__ = ["PlainDot32", "figures", "plain_figures"]

FAST = 1000
"""Picoseconds asked for the fast point."""
ASKED = (FAST, RELAXED)
"""Delays at which a plain design and ours are mapped; the best product of each counts."""
PREPARATIONS = ("", "booth", "arith_tree")
"""What Yosys may do with multipliers and sums before `synth`; the best counts."""
_SCRIPT = "Nangate 45 typical, NAND2_X1 = 1 GE, flatten, synth, ABC script of `poblano synth`"
_PEER = 5.57 * 1.07
"""Area and delay, in kGE and ns, of the best open MXFP4 dot-32 by the same script, multiplied."""


class PlainDot32(Component):
    """What `Dot32` computes, written with `*` and `+`. Combinational; members as there."""

    def __init__(self) -> None:
        codes = ArrayLayout(4, LANES)
        super().__init__({"a_codes": In(codes), "b_codes": In(codes), "sum": Out(14)})

    def elaborate(self, platform: Any) -> Module:  # noqa: ARG002 (Amaranth's interface)
        """Decode to sign and magnitude, multiply, give the product its sign, and add."""
        m = Module()
        terms: list[Any] = []
        for lane in range(LANES):
            magnitudes: list[Signal] = []
            for side, codes in (("a", self.a_codes), ("b", self.b_codes)):
                code = codes[lane]
                magnitude = Signal(4, name=f"{side}_{lane}")
                middle, high = code[1], code[2]
                significand = code[:2] | (high << 1)
                m.d.comb += magnitude.eq(
                    Mux(high, Mux(middle, significand << 2, significand << 1), significand)
                )
                magnitudes.append(magnitude)
            product = Signal(8, name=f"product_{lane}")
            term = Signal(9, name=f"term_{lane}")
            negative = self.a_codes[lane][3] ^ self.b_codes[lane][3]
            m.d.comb += [
                product.eq(magnitudes[0] * magnitudes[1]),
                term.eq(Mux(negative, -product, product)),
            ]
            terms.append(term.as_signed())
        m.d.comb += self.sum.eq(sum(terms[1:], terms[0]))
        return m


def _product(result: AreaResult) -> float:
    """Return area times delay, in kGE and ns."""
    return result.gate_equivalents * result.delay / 1e6


def _ours() -> Mapping[int, AreaResult]:
    liberty = [find_liberty("nangate45_typ")]
    return {asked: component_area(Dot32(), liberty, asked) for asked in ASKED}


def _figure(value: float, unit: str, peer_value: float | None, how: str) -> dict[str, Any]:
    peer = None if peer_value is None else "best open MXFP4 dot-32, same script"
    return {
        "value": value,
        "unit": unit,
        "preset": "MXFP4 only, combinational",
        "peer": peer,
        "peer_value": peer_value,
        "how": how,
    }


def figures() -> dict[str, dict[str, Any]]:
    """Return area and delay of the searched dot product, fields as in `Figure`.

    Raises
    ------
    PoblanoError
        If the library is not where POBLANO_LIBERTY_DIR says.
    """
    ours = _ours()
    relaxed, fast = ours[RELAXED], ours[FAST]
    what = f"{_SCRIPT}; structure of constraints/structures, decoders of raw codes included"
    best = min(map(_product, ours.values()))
    return {
        "arith.dot32_mxfp4_relaxed_kge": _figure(
            relaxed.gate_equivalents / 1000,
            "kGE",
            4.48,
            f"{what}; {RELAXED} ps asked, {relaxed.delay:.0f} ps reached",
        ),
        "arith.dot32_mxfp4_fast_kge": _figure(
            fast.gate_equivalents / 1000, "kGE", 5.57, f"{what}; {FAST} ps asked"
        ),
        "arith.dot32_mxfp4_fast_ns": _figure(
            fast.delay / 1000, "ns", 1.07, f"{what}; {FAST} ps asked, ABC's stime"
        ),
        "arith.gain_fp4_dot_vs_peer": _figure(
            _PEER / best,
            "1",
            None,
            f"area times delay, the peer's {_PEER:.2f} kGE ns over ours, {best:.2f}; {what}",
        ),
    }


def plain_figures() -> dict[str, dict[str, Any]]:
    """Return by how much the searched dot product beats plain arithmetic, as in `Figure`.

    Raises
    ------
    PoblanoError
        If the library is not where POBLANO_LIBERTY_DIR says.
    """
    library = read_library([find_liberty("nangate45_typ")])
    emission = emit(PlainDot32())
    text = "\n".join(module.verilog for module in emission.modules)
    plain = {
        (prepare or "default", asked): _product(
            AreaResult(mapped.area, mapped.sequential_area, library.gate, mapped.delay_ps)
        )
        for prepare in PREPARATIONS
        for asked in ASKED
        for mapped in [map_module(Source(emission.top.name, text, prepare=prepare), library, asked)]
    }
    (way, asked), worst = min(plain.items(), key=lambda item: item[1])
    best = min(map(_product, _ours().values()))
    how = (
        f"area times delay: Amaranth's * and + through the best of {len(plain)} ways ({way}, "
        f"{asked} ps asked: {worst:.2f} kGE ns) over ours ({best:.2f}); {_SCRIPT}"
    )
    return {"arith.gain_fp4_dot": _figure(worst / best, "1", None, how)}
