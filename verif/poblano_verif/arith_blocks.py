"""Arithmetic blocks as their benches take them: fed with codes, and several side by side.

A simulated cycle costs the testbench far more than the simulator; copies of a small block side
by side make a million vectors affordable.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from amaranth.hdl import Cat, Module, Shape, Value, signed
from amaranth.lib.wiring import In, Out

from poblano.arith.dot_product import DotProduct
from poblano.arith.fp32_adder import Fp32Adder
from poblano.arith.fp32_compare import Fp32Compare
from poblano.arith.fp32_multiplier import Fp32Multiplier
from poblano.arith.fp32_round import Fp32Round
from poblano.arith.fp32_to_bf16 import Fp32ToBf16
from poblano.arith.fp32_to_fp16 import Fp32ToFp16
from poblano.arith.fp32_to_int8 import Fp32ToInt8
from poblano.arith.lanes import LanePlan
from poblano.arith.operand import OperandDecoder
from poblano.arith.to_fp32 import Bf16ToFp32, Fp16ToFp32, Int8ToFp32
from poblano.component import Component, once
from poblano.tensor.unit import TensorUnit
from poblano.vector.elementary import Elementary

__all__ = ["DecodedDotProduct", "DecodedUnit", "SideBySide"]


class DecodedDotProduct(Component):
    """A `DotProduct` behind its two decoders. Parameters and latency are those of `DotProduct`."""

    def __init__(self, **parameters: Any) -> None:
        self.formats: tuple[str, ...] = parameters["formats"]
        plan = LanePlan(self.formats)
        outputs = {
            "sum": signed(plan.sum_width),
            "exponent": Shape.cast(plan.sum_exponent_range),
            "nan": 1,
            "sum_valid": 1,
        }
        super().__init__(
            {**_code_ports(self.formats), **{name: Out(shape) for name, shape in outputs.items()}}
        )

    def elaborate(self, platform: Any) -> Module:
        """Connect the decoders and the block."""
        m = Module()
        m.submodules.inner = inner = DotProduct(**self.parameters)
        _decode(m, self, inner, platform)
        m.d.comb += [inner.first.eq(self.first), inner.last.eq(self.last)]
        m.d.comb += [
            getattr(self, name).eq(getattr(inner, name))
            for name in ("sum", "exponent", "nan", "sum_valid")
        ]
        return m


class DecodedUnit(Component):
    """A `TensorUnit` behind its two decoders, with its parameters and latencies."""

    def __init__(self, **parameters: Any) -> None:
        self.formats: tuple[str, ...] = parameters["formats"]
        super().__init__({**_code_ports(self.formats), "accumulator": In(32), "result": Out(32)})

    def elaborate(self, platform: Any) -> Module:
        """Connect the decoders and the unit."""
        m = Module()
        m.submodules.inner = inner = TensorUnit(**self.parameters)
        _decode(m, self, inner, platform)
        m.d.comb += [
            inner.first_beat.eq(self.first),
            inner.last_beat.eq(self.last),
            inner.accumulator.eq(self.accumulator),
            self.result.eq(inner.result),
        ]
        return m


def _code_ports(formats: tuple[str, ...]) -> dict[str, Any]:
    plan = LanePlan(formats)
    codes = {f"{side}_codes": In(plan.code_bits) for side in "ab"}
    scales = {f"{side}_scale": In(8) for side in "ab"}
    control = {"mode": plan.mode_width, "beat": 2, "count": 6, "first": 1, "last": 1, "valid": 1}
    return {**codes, **scales, **{name: In(width) for name, width in control.items()}}


def _decode(m: Module, outer: Any, inner: Any, platform: Any) -> None:
    for side in "ab":
        decoder: Any = OperandDecoder(formats=outer.formats, side=side)
        m.submodules[f"decoder_{side}"] = once(decoder, platform)
        m.d.comb += [
            decoder.codes.eq(getattr(outer, f"{side}_codes")),
            decoder.scale.eq(getattr(outer, f"{side}_scale")),
            decoder.mode.eq(outer.mode),
            decoder.beat.eq(outer.beat),
            decoder.count.eq(outer.count),
            getattr(inner, side).eq(decoder.operand),
        ]
    m.d.comb += [inner.mode.eq(outer.mode), inner.valid.eq(outer.valid)]


_BLOCKS: dict[str, type[Component]] = {
    block.__name__: block
    for block in (
        Bf16ToFp32,
        DecodedDotProduct,
        DecodedUnit,
        Elementary,
        Fp16ToFp32,
        Fp32Adder,
        Fp32Compare,
        Fp32Multiplier,
        Fp32Round,
        Fp32ToBf16,
        Fp32ToFp16,
        Fp32ToInt8,
        Int8ToFp32,
        OperandDecoder,
    )
}


class SideBySide(Component):
    """Copies of one block. Each port is the concatenation of the copies' ports, copy 0 lowest.

    Parameters
    ----------
    block:
        Class name of the block.
    copies:
        How many.
    parameters:
        Pairs of name and value: the parameters of the block.
    """

    def __init__(self, *, block: str, copies: int, parameters: tuple[tuple[str, Any], ...]) -> None:
        self.make = partial(_BLOCKS[block], **dict(parameters))
        self.copies = copies
        example: Any = self.make()
        example._MustUse__used = True  # noqa: SLF001 (it only shows the ports)
        members = example.signature.members
        super().__init__(
            {
                name: (In if member.flow is In else Out)(copies * Shape.cast(member.shape).width)
                for name, member in members.items()
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the copies."""
        m = Module()
        blocks: list[Any] = [self.make() for _ in range(self.copies)]
        for index, block in enumerate(blocks):
            m.submodules[f"copy_{index}"] = once(block, platform)
        for name, member in self.signature.members.items():
            port = Value.cast(getattr(self, name))
            inner: Any = Cat(Value.cast(getattr(block, name)) for block in blocks)
            m.d.comb += inner.eq(port) if member.flow is In else port.eq(inner)
        return m
