"""The blocks that can be emitted alone and tested, with the variants that are.

Importing this module imports no Amaranth; the factories do when they are called.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from poblano_golden.formats import MX_FORMATS
from poblano_verif.block_types import Block, Factory, Variant
from poblano_verif.noc_blocks import NOC_BLOCKS

if TYPE_CHECKING:
    from poblano.component import Component
    from poblano.config import Configuration

__all__ = ["BLOCKS"]

_LITTLE = {
    "POBLANO_VECTORS": "300",
    "POBLANO_BENCH_SHARE": "0.002",
    "POBLANO_EXTREMES_SHARE": "0.02",
}
"""What Icarus, some hundred times slower, takes of the arithmetic's vectors."""

_MILLION_EACH = {"POBLANO_VECTORS": "9000000", "POBLANO_SINGLE": "1"}
"""A million blocks for each of the nine modes of a default engine, on average."""

_WIDE_SUMS = {"POBLANO_VECTORS": "4000", "POBLANO_BENCH_SHARE": "0.15"}
"""What a unit takes whose sums are wider than the 64 bits that Verilator handles well."""

_MILLION = {"POBLANO_VECTORS": "1000000", "POBLANO_SINGLE": "1"}

_EVERY_SCALE = {"POBLANO_VECTORS": "1000000", "POBLANO_EVERY_SCALE": "1"}
"""A million random blocks, and the ties of elements under every scale byte."""

_RESULTS = ("mxfp4", "mxfp8_e4m3", "mxint8")
"""Formats of the results of a default engine."""

_FOUR_BIT = ("mxfp4*mxfp4",)
_OTHERS = (
    "mxfp8_e5m2*mxfp8_e5m2",
    "mxfp8_e5m2*mxfp4",
    "mxfp8_e5m2*mxint8",
    "mxfp6_e2m3*mxfp4",
    "mxfp6_e3m2*mxfp6_e3m2",
    "mxfp8_e4m3*mxfp8_e5m2",
    "mxint8*mxint8",
)
"""Pairs that a default engine leaves out, and one that they share a unit with."""


def _default_formats() -> tuple[str, ...]:
    from poblano.config import TensorConfiguration

    return TensorConfiguration.model_fields["formats"].default


def _made(path: str, parameters: Mapping[str, Any]) -> Component:
    module, _, name = path.partition(":")
    if "formats" in parameters and parameters["formats"] is None:
        parameters = {**parameters, "formats": _default_formats()}
    return getattr(importlib.import_module(module), name)(**parameters)


def _plain(path: str, parameters: Mapping[str, Any]) -> Factory:
    """Return a factory of `module:class`; `formats=None` stands for an engine's default ones."""
    return lambda: _made(path, parameters)


def _arithmetic(
    path: str,
    copies: int,
    parameters: Mapping[str, Any],
    around: str | None = None,
    *,
    icarus: bool = True,
    nightly: bool = False,
    wide: bool = False,
) -> Variant:
    """Return a variant whose bench takes several copies of the block at a time.

    `around` is the class of `poblano_verif.arith_blocks` that the bench wants about the block.
    """

    def harness() -> Component:
        from poblano_verif.arith_blocks import SideBySide

        inner = dict(parameters)
        if "formats" in inner and inner["formats"] is None:
            inner["formats"] = _default_formats()
        name = around or path.partition(":")[2]
        return SideBySide(block=name, copies=copies, parameters=tuple(inner.items()))

    usual = _WIDE_SUMS if wide else {}
    if nightly:
        usual = _MILLION_EACH if "formats" in parameters else _MILLION
    simulators: dict[str, dict[str, str]] = {"verilator": usual}
    if icarus and not nightly:
        simulators["icarus"] = _LITTLE
    return Variant(
        _plain(path, parameters),
        simulators,
        harness=harness,
        nightly=nightly,
        limit=6000.0 if nightly else 600.0,
    )


def _tensor_engine(
    simulators: Mapping[str, Mapping[str, str]],
    *overrides: str,
    preset: str = "tiny",
    nightly: bool = False,
) -> Variant:
    """Return a variant of the tensor engine, whose bench simulates it on an L1 of its own."""

    def configuration() -> Configuration:
        from poblano.config import load

        return load(preset, list(overrides))

    def make() -> Component:
        from poblano.tensor.engine import TensorEngine

        return TensorEngine(configuration=configuration().slice)

    def harness() -> Component:
        from poblano_verif.tensor_on_l1 import TensorOnL1

        return TensorOnL1(configuration=configuration())

    limit = 6000.0 if nightly else 600.0
    return Variant(make, simulators, harness=harness, nightly=nightly, limit=limit)


def _register_file(*overrides: str) -> Factory:
    def make() -> Component:
        from poblano.config import load
        from poblano.host.register_file import RegisterFile

        return RegisterFile(configuration=load("tiny", list(overrides)))

    return make


def _dma(half: str, *overrides: str) -> Factory:
    def make() -> Component:
        from poblano.config import load

        path = f"poblano.dma.{half}:{half.capitalize()}Engine"
        return _made(path, {"configuration": load("tiny", list(overrides)).slice})

    return make


def _host_window(*overrides: str) -> Factory:
    def make() -> Component:
        from poblano.config import load
        from poblano.host.window import HostWindow

        return HostWindow(configuration=load("tiny", list(overrides)).slice)

    return make


_ADDER = "poblano.arith.fp32_adder:Fp32Adder"
_ROUND = "poblano.arith.fp32_round:Fp32Round"
_DECODER = "poblano.arith.operand:OperandDecoder"
_DOT = "poblano.arith.dot_product:DotProduct"
_UNIT = "poblano.tensor.unit:TensorUnit"
_BF16 = "poblano.arith.fp32_to_bf16:Fp32ToBf16"
_QUANTISER = "poblano.arith.mx_quantiser:MxQuantiser"
_MULTIPLIER = "poblano.arith.fp32_multiplier:Fp32Multiplier"
_COMPARE = "poblano.arith.fp32_compare:Fp32Compare"
_ELEMENTARY = "poblano.vector.elementary:Elementary"

_WIDE = {"width": 42, "exponents": range(-272, 253), "stages": 1}
_NARROW = {"width": 14, "exponents": range(-256, 253), "infinities": True, "stages": 0}
_DOT_STAGES = {"multiply_stages": 1, "sum_stages": 1}
_UNIT_STAGES = {**_DOT_STAGES, "round_stages": 1, "add_stages": 2}

_ADDERS = {
    "two_stages": _arithmetic(_ADDER, 32, {"stages": 2}),
    "combinational": _arithmetic(_ADDER, 32, {"stages": 0}),
    "million": _arithmetic(_ADDER, 32, {"stages": 2}, nightly=True),
}
_ROUNDINGS = {
    "wide": _arithmetic(_ROUND, 32, _WIDE),
    "narrow": _arithmetic(_ROUND, 32, _NARROW),
    "million": _arithmetic(_ROUND, 32, _WIDE, nightly=True),
}


def _dot(stages: Mapping[str, int], formats: tuple[str, ...] | None, **options: bool) -> Variant:
    return _arithmetic(_DOT, 4, {"formats": formats, **stages}, "DecodedDotProduct", **options)


def _unit(formats: tuple[str, ...] | None, **options: bool) -> Variant:
    return _arithmetic(_UNIT, 4, {"formats": formats, **_UNIT_STAGES}, "DecodedUnit", **options)


def _decoder(formats: tuple[str, ...] | None, side: str, *, icarus: bool = False) -> Variant:
    return Variant(
        _plain(_DECODER, {"formats": formats, "side": side}),
        {"verilator": {}, **({"icarus": {}} if icarus else {})},
    )


_DECODERS = {
    "default_a": _decoder(None, "a"),
    "default_b": _decoder(None, "b"),
    "four_bit": _decoder(_FOUR_BIT, "a", icarus=True),
    "others_a": _decoder(_OTHERS, "a"),
    "others_b": _decoder(_OTHERS, "b"),
}
_DOTS = {
    "default": _dot(_DOT_STAGES, None, icarus=False),
    "four_bit": _dot({}, _FOUR_BIT),
}
_UNITS = {
    "default": _unit(None, icarus=False),
    "four_bit": _unit(_FOUR_BIT),
    "others": _unit(_OTHERS, icarus=False, wide=True),
    "million": _unit(None, nightly=True),
}
_BF16S = {
    "combinational": _arithmetic(_BF16, 32, {}),
    "million": _arithmetic(_BF16, 32, {}, nightly=True),
}
_MULTIPLIERS = {
    "two_stages": _arithmetic(_MULTIPLIER, 16, {"stages": 2}),
    "combinational": _arithmetic(_MULTIPLIER, 16, {"stages": 0}),
    "million": _arithmetic(_MULTIPLIER, 16, {"stages": 2}, nightly=True),
}
_COMPARISONS = {
    "combinational": _arithmetic(_COMPARE, 32, {}),
    "million": _arithmetic(_COMPARE, 32, {}, nightly=True),
}
_CONVERSIONS = {
    "fp32_to_fp16": _arithmetic("poblano.arith.fp32_to_fp16:Fp32ToFp16", 32, {}),
    "fp32_to_int8": _arithmetic("poblano.arith.fp32_to_int8:Fp32ToInt8", 32, {}),
    "bf16_to_fp32": _arithmetic("poblano.arith.to_fp32:Bf16ToFp32", 32, {}, icarus=False),
    "fp16_to_fp32": _arithmetic("poblano.arith.to_fp32:Fp16ToFp32", 32, {}, icarus=False),
    "int8_to_fp32": _arithmetic("poblano.arith.to_fp32:Int8ToFp32", 32, {}),
    "million_to_fp16": _arithmetic("poblano.arith.fp32_to_fp16:Fp32ToFp16", 32, {}, nightly=True),
    "million_to_int8": _arithmetic("poblano.arith.fp32_to_int8:Fp32ToInt8", 32, {}, nightly=True),
}


def _elementary(
    *functions: str, stages: int, icarus: bool = False, nightly: bool = False
) -> Variant:
    parameters = {"functions": functions, "stages": stages}
    return _arithmetic(_ELEMENTARY, 8, parameters, icarus=icarus, nightly=nightly)


_EVERY_FUNCTION = ("exp2", "exp", "sigmoid", "reciprocal", "reciprocal_sqrt")
_ELEMENTARIES = {
    "all": _elementary(*_EVERY_FUNCTION, stages=8, icarus=True),
    "exp2": _elementary("exp2", stages=2, icarus=True),
    "sigmoid": _elementary("sigmoid", stages=3),
    "reciprocal": _elementary("reciprocal", stages=4),
    "reciprocal_sqrt": _elementary("reciprocal_sqrt", stages=0),
    "softmax": _elementary("reciprocal", "exp", stages=5),
    "million": _elementary(*_EVERY_FUNCTION, stages=4, nightly=True),
}


def _lane(
    simulators: Mapping[str, Mapping[str, str]], multiply: int, add: int, function: int
) -> Variant:
    def make() -> Component:
        from poblano.config import VectorPipelineConfiguration
        from poblano.vector.lane import VectorLane

        pipeline = VectorPipelineConfiguration(multiply=multiply, add=add, function=function)
        return VectorLane(pipeline=pipeline)

    return Variant(make, simulators)


_LANES = {
    "default": _lane({"verilator": {}, "icarus": {"POBLANO_BENCH_SHARE": "0.03"}}, 2, 2, 5),
    "deep": _lane({"verilator": {"POBLANO_BENCH_SHARE": "0.4"}}, 1, 3, 8),
    "short": _lane({"verilator": {"POBLANO_BENCH_SHARE": "0.4"}}, 0, 0, 0),
}


def _vector(*overrides: str, preset: str = "tiny") -> Factory:
    def make() -> Component:
        from poblano.config import load

        path = "poblano.vector.engine:VectorEngine"
        return _made(path, {"configuration": load(preset, list(overrides)).slice})

    return make


_LITTLE_VECTOR = {"POBLANO_RANDOM_PASSES": "4", "POBLANO_BENCH_SHARE": "0.03"}
_VECTOR_ENGINES = {
    "tiny": Variant(_vector(), {"verilator": {}, "icarus": _LITTLE_VECTOR}),
    "bench": Variant(
        _vector("slice.l1.size=64 KiB", preset="bench"),
        {"verilator": {"POBLANO_RANDOM_PASSES": "60", "POBLANO_BENCH_SHARE": "0.5"}},
    ),
    "wide": Variant(
        _vector(
            "slice.vector.lanes=64",
            "slice.l1.line=256 B",
            "slice.vector.pipeline.add=3",
            "slice.vector.pipeline.multiply=1",
            "slice.vector.pipeline.function=8",
        ),
        {"verilator": {"POBLANO_RANDOM_PASSES": "40", "POBLANO_BENCH_SHARE": "0.3"}},
        nightly=True,
        limit=6000.0,
    ),
    "short": Variant(
        _vector(
            "slice.vector.lanes=2",
            "slice.vector.pipeline.add=0",
            "slice.vector.pipeline.multiply=0",
            "slice.vector.pipeline.function=0",
        ),
        {"verilator": {"POBLANO_RANDOM_PASSES": "60", "POBLANO_BENCH_SHARE": "0.5"}},
        nightly=True,
    ),
}


def _quantiser(
    formats: tuple[str, ...], stages: int, *, icarus: bool = False, nightly: bool = False
) -> Variant:
    simulators: dict[str, dict[str, str]] = {"verilator": _EVERY_SCALE if nightly else {}}
    if icarus:
        simulators["icarus"] = {"POBLANO_VECTORS": "150", "POBLANO_BENCH_SHARE": "0.005"}
    return Variant(
        _plain(_QUANTISER, {"formats": formats, "stages": stages}),
        simulators,
        nightly=nightly,
        limit=6000.0 if nightly else 600.0,
    )


_QUANTISERS = {
    "default": _quantiser(_RESULTS, 1, icarus=True),
    "all_formats": _quantiser(tuple(MX_FORMATS), 0),
    "integer": _quantiser(("mxint8",), 3),
    "four_bit": _quantiser(("mxfp4",), 2, nightly=True),
    "million": _quantiser(_RESULTS, 1, nightly=True),
    "million_all_formats": _quantiser(tuple(MX_FORMATS), 3, nightly=True),
}
_TENSOR_ENGINES = {
    "tiny": _tensor_engine({"verilator": {}}),
    "small_l1": _tensor_engine(
        {"icarus": {"POBLANO_RANDOM_PRODUCTS": "4", "POBLANO_BENCH_SHARE": "0.1"}},
        "slice.l1.size=16 KiB",
    ),
    "odd_array": _tensor_engine(
        {"verilator": {}},
        "slice.tensor.rows=3",
        "slice.tensor.cols=6",
        "slice.l1.line=128 B",
        "slice.l1.banks=2",
    ),
    "four_bit": _tensor_engine(
        {"verilator": {}},
        "slice.tensor.formats=['mxfp4*mxfp4']",
        "slice.tensor.pipeline.multiply=0",
        "slice.tensor.pipeline.sum=0",
        "slice.tensor.pipeline.round=0",
        "slice.tensor.pipeline.add=0",
    ),
    "other_formats": _tensor_engine(
        {"verilator": {}}, f"slice.tensor.formats={list(_OTHERS)}", "slice.tensor.pipeline.add=3"
    ),
    "bench": _tensor_engine({"verilator": {}}, preset="bench", nightly=True),
}
_REGISTERS = {
    "tiny": Variant(_register_file(), {"verilator": {}, "icarus": {}}),
    "three_ports": Variant(
        _register_file("slice.hbm.ports=3", "slice.host.semaphores=5"), {"verilator": {}}
    ),
}
_CARRIES = {"tiny": Variant(_register_file(), {"icarus": {}})}
_WINDOWS = {
    "tiny": Variant(_host_window(), {"verilator": {}, "icarus": {}}),
    "whole_line": Variant(_host_window("slice.host.width=64 B"), {"verilator": {}}),
    "narrow": Variant(
        _host_window("slice.host.width=4 B", "slice.l1.line=128 B", "slice.l1.size=6 KiB"),
        {"verilator": {}},
    ),
}


def _memory(width: int, size: int, latency: int) -> Factory:
    def make() -> Component:
        from poblano_verif.ideal_memory import IdealMemory

        return IdealMemory(width=width, size=size, address_width=40, id_width=4, latency=latency)

    return make


_MEMORIES = {
    "contract": Variant(_memory(16, 1 << 16, 64), {"verilator": {}, "icarus": {}}),
    "odd_size": Variant(_memory(4, 12_300, 1), {"verilator": {}, "icarus": {}}),
    "wide": Variant(_memory(64, 3 << 20, 64), {"verilator": {}}),
}


def _slice(
    simulators: Mapping[str, Mapping[str, str]],
    *overrides: str,
    preset: str = "tiny",
    memory_bytes: int = 1 << 18,
    nightly: bool = False,
) -> Variant:
    """Return a variant of the slice, whose bench simulates it with memories at its HBM ports."""

    def configuration() -> Configuration:
        from poblano.config import load

        return load(preset, list(overrides))

    def make() -> Component:
        from poblano.slice import Slice

        return Slice(configuration=configuration())

    def harness() -> Component:
        from poblano_verif.slice_system import SliceSystem

        return SliceSystem(configuration=configuration(), memory_bytes=memory_bytes)

    limit = 6000.0 if nightly else 600.0
    return Variant(make, simulators, harness=harness, nightly=nightly, limit=limit)


def _bare_slice() -> Component:
    from poblano.config import load
    from poblano.slice import Slice

    return Slice(configuration=load("tiny"))


_SLICES = {
    "tiny": _slice({"verilator": {}}),
    "two_ports": _slice(
        {"verilator": {"POBLANO_BENCH_SHARE": "0.3"}},
        "slice.hbm.ports=2",
        "slice.l1.line=128 B",
        "slice.host.width=4 B",
        nightly=True,
    ),
    "icarus": _slice({"icarus": {"POBLANO_BENCH_SHARE": "0.04"}}, nightly=True),
}


def _dmas(half: str) -> dict[str, Variant]:
    wide = ("slice.hbm.width=64 B",)
    narrow = (
        "slice.hbm.width=4 B",
        "slice.hbm.outstanding=2",
        "slice.hbm.capacity=1000 KiB",
        "slice.l1.line=128 B",
    )
    return {
        "tiny": Variant(_dma(half), {"verilator": {}, "icarus": {"POBLANO_BENCH_SHARE": "0.02"}}),
        "whole_line": Variant(_dma(half, *wide), {"verilator": {}}),
        "narrow": Variant(_dma(half, *narrow), {"verilator": {"POBLANO_BENCH_SHARE": "0.5"}}),
    }


def _scalar(*overrides: str, queues: int) -> Factory:
    def make() -> Component:
        from poblano.config import load

        section = load("tiny", list(overrides)).slice
        path = "poblano.scalar.engine:ScalarEngine"
        return _made(path, {"configuration": section, "queues": queues})

    return make


_SCALARS = {
    "tiny": Variant(
        _scalar(queues=4), {"verilator": {}, "icarus": {"POBLANO_BENCH_SHARE": "0.05"}}
    ),
    "wide_line": Variant(
        _scalar("slice.l1.line=512 B", "slice.l1.size=18 KiB", queues=9),
        {"verilator": {"POBLANO_BENCH_SHARE": "0.3"}},
    ),
}


def _both(make: Factory) -> Variant:
    """Return a variant that both simulators run, Icarus with a tenth of the cycles."""
    return Variant(make, {"verilator": {}, "icarus": {"POBLANO_CYCLES": "500"}})


def _fetcher() -> Component:
    from poblano.config import L1Configuration
    from poblano.control.fetcher import CommandFetcher

    return CommandFetcher(l1=L1Configuration(size=4096, line=128), queues=3)


def _one_word_lines() -> Component:
    from poblano.config import L1Configuration
    from poblano.control.fetcher import CommandFetcher

    return CommandFetcher(l1=L1Configuration(size=4096, line=64), queues=2)


_PAD = {"size": 2048, "line": 32, "banks": 4, "readers": 3, "writers": 4}
_SCRATCHPADS = {
    "four_banks": _both(_plain("poblano.l1.scratchpad:Scratchpad", _PAD)),
    "one_bank": _both(
        _plain("poblano.l1.scratchpad:Scratchpad", {**_PAD, "banks": 1, "readers": 2, "writers": 1})
    ),
}
_SEMAPHORES = {
    "default": _both(_plain("poblano.control.semaphores:Semaphores", {"count": 5, "queues": 3})),
}
_QUEUES = {
    "default": _both(
        _plain("poblano.control.command_queue:CommandQueue", {"depth": 4, "semaphores": 8})
    ),
}
_MERGERS = {"default": _both(_plain("poblano.control.word_merger:WordMerger", {}))}
_FETCHERS = {"two_words_a_line": _both(_fetcher), "one_word_a_line": _both(_one_word_lines)}

BLOCKS: Mapping[str, Block] = {
    block.name: block
    for block in (
        Block("fp32_adder", "binary32 adder", _ADDERS),
        Block("fp32_round", "rounding of an exact sum to binary32", _ROUNDINGS),
        Block("operand_decoder", "decoder of one beat of an MX block", _DECODERS),
        Block("dot_product", "exact dot product of two MX blocks", _DOTS),
        Block("tensor_unit", "dot product, rounding and accumulation", _UNITS),
        Block("fp32_to_bf16", "rounding of binary32 to BF16", _BF16S),
        Block("fp32_multiplier", "binary32 multiplier", _MULTIPLIERS),
        Block("fp32_compare", "comparison, maximum and minimum of binary32", _COMPARISONS),
        Block("conversion", "binary32 to a narrow format or from it", _CONVERSIONS),
        Block("elementary", "exponentials, roots, reciprocal and sigmoid", _ELEMENTARIES),
        Block("vector_lane", "lane of the vector engine", _LANES),
        Block("vector_engine", "vector engine", _VECTOR_ENGINES),
        Block("mx_quantiser", "quantiser of a block to any of several MX formats", _QUANTISERS),
        Block("host_registers", "register map on AXI4-Lite", _REGISTERS),
        Block("register_carry", "counters of the register map that carry", _CARRIES),
        Block("host_window", "AXI4 window of the host on L1", _WINDOWS),
        Block("dma_load", "DMA engine, HBM to L1", _dmas("load")),
        Block("dma_store", "DMA engine, L1 to HBM", _dmas("store")),
        Block("word_merger", "words of fetcher and scalar engine for a queue", _MERGERS),
        Block("scalar_engine", "scalar engine on L1, queues and semaphores", _SCALARS),
        Block("scratchpad", "L1 and its clients", _SCRATCHPADS),
        Block("semaphores", "counting semaphores", _SEMAPHORES),
        Block("command_queue", "queue of an engine", _QUEUES),
        Block("command_fetcher", "fetch of command words from L1", _FETCHERS),
        Block("ideal_memory", "model of HBM with a fixed latency", _MEMORIES, is_hardware=False),
        Block("slice", "slice with ideal memories at its HBM ports", _SLICES),
        Block(
            "slice_axi",
            "slice between the masters and the RAM of cocotbext-axi",
            {
                "tiny": Variant(_bare_slice, {"icarus": {"POBLANO_BENCH_SHARE": "0.1"}}),
                "every_error": Variant(_bare_slice, {"verilator": {}}, nightly=True, limit=6000.0),
            },
        ),
        *NOC_BLOCKS,
        Block("tensor_engine", "tensor engine on an L1 of its own", _TENSOR_ENGINES),
    )
}
"""Every block by name."""
