"""Faults planted in the arithmetic hardware, each of which a bench must find."""

import importlib.util
import sys
from pathlib import Path

import pytest

from poblano.config import TensorConfiguration
from poblano_flow.emission import emit
from poblano_flow.simulate import build, run

MODULES = (
    "poblano.arith.lanes",
    "poblano.arith.datapath",
    "poblano.arith.fp32_fields",
    "poblano.arith.structure",
    "poblano.arith.structured",
    "poblano.arith.operand",
    "poblano.arith.four_bit_sum",
    "poblano.arith.lane_sum",
    "poblano.arith.dot_product",
    "poblano.arith.fp32_round",
    "poblano.arith.fp32_adder",
    "poblano.tensor.unit",
    "poblano_verif.arith_blocks",
)
"""The modules of the arithmetic, each before those that import it."""

DEFAULT = TensorConfiguration.model_fields["formats"].default
INFINITE = ("mxfp8_e5m2*mxfp4",)
STAGES = {"multiply_stages": 1, "sum_stages": 1, "round_stages": 1, "add_stages": 2}
LITTLE = {"POBLANO_VECTORS": "2000", "POBLANO_BENCH_SHARE": "0.05"}
MUCH = {"POBLANO_VECTORS": "20000"}
"""Vectors of the units' benches, and of the others', which are quicker."""

BLOCKS = {
    "adder": ("Fp32Adder", {"stages": 2}, "fp32_adder"),
    "round": ("Fp32Round", {"width": 42, "exponents": range(-272, 253)}, "fp32_round"),
    "unit": ("DecodedUnit", {"formats": DEFAULT, **STAGES}, "tensor_unit"),
    "infinite": ("DecodedUnit", {"formats": INFINITE, **STAGES}, "tensor_unit"),
    "four_bit": ("DecodedUnit", {"formats": DEFAULT[:1], **STAGES}, "tensor_unit"),
    "dot": ("DecodedDotProduct", {"formats": DEFAULT, "sum_stages": 1}, "dot_product"),
}
"""What is simulated: class, parameters, bench."""

FAULTS = {
    "adder: half rounds up": ("adder", "fp32_adder", "guard & (sticky | fraction[0])", "guard"),
    "adder: half rounds down": (
        "adder",
        "fp32_adder",
        "guard & (sticky | fraction[0])",
        "guard & sticky",
    ),
    "adder: what falls off is forgotten": (
        "adder",
        "fp32_adder",
        "(distance[k] & value[: 1 << k].any())",
        "C(0, 1)",
    ),
    "adder: far operands are near": ("adder", "fp32_adder", "Mux(far, 0, ", "Mux(0, 0, "),
    "adder: subnormals have exponent 0": ("adder", "fp32_fields", "field[0] | ~normal", "field[0]"),
    "adder: subnormals have a leading one": (
        "adder",
        "fp32_fields",
        "Cat(number[:_FRACTION], normal)",
        "Cat(number[:_FRACTION], 1)",
    ),
    "adder: normalises below the least exponent": (
        "adder",
        "datapath",
        "empty & allowed",
        "empty",
    ),
    "adder: x - x is -0": ("adder", "fp32_adder", "& ~(zero & differ)", ""),
    "adder: infinity minus infinity": ("adder", "fp32_adder", "(differ & small[", "(C(0) & small["),
    "adder: overflow keeps its fraction": (
        "adder",
        "fp32_adder",
        "special | packed[_FRACTION:].all()",
        "special",
    ),
    "adder: NaN keeps its sign": ("adder", "fp32_adder", "sign & ~nan &", "sign &"),
    "round: negative ties": ("round", "fp32_round", "window[1] ^ sign", "window[1]"),
    "round: negative sticky": ("round", "fp32_round", "(rest ^ sign.replicate(len(rest)))", "rest"),
    "round: deep sticky": (
        "round",
        "fp32_round",
        "(window[:step] ^ sign.replicate(step)).any()",
        "C(0, 1)",
    ),
    "round: very small numbers wrap": ("round", "fp32_round", "distance[k] | far", "distance[k]"),
    "round: overflow": ("round", "fp32_round", ">= (1 << FP32.exponent_bits) - 1", "> 511"),
    "round: NaN": ("round", "fp32_round", "self.nan | infinite", "infinite"),
    "unit: a sum one bit too narrow": (
        "unit",
        "lanes",
        "self.sum_bound.bit_length() + 1",
        "self.sum_bound.bit_length()",
    ),
    "dot: a sum one bit too narrow": (
        "dot",
        "lanes",
        "self.sum_bound.bit_length() + 1",
        "self.sum_bound.bit_length()",
    ),
    "dot: valid on every beat": ("dot", "dot_product", "valid & last", "valid"),
    "unit: a first beat adds to the block before": (
        "unit",
        "dot_product",
        "Mux(first, 0, partial)),\n                total",
        "partial),\n                total",
    ),
    "unit: idle cycles count": ("unit", "dot_product", "with m.If(valid):", "with m.If(1):"),
    "unit: NaN of an earlier beat is forgotten": (
        "unit",
        "dot_product",
        "beat | Mux(first, 0, partial)",
        "beat",
    ),
    "unit: high nibbles weigh 8": ("unit", "lanes", "NIBBLE * high", "3 * high"),
    "unit: lanes past the count": (
        "unit",
        "operand",
        "m.Case(*numbers), m.If(valid):",
        "m.Case(*numbers):",
    ),
    "unit: E4M3 NaN is a number": ("unit", "operand", "(top & fraction.all())", "C(0, 1)"),
    "unit: scale 255 is a number": ("unit", "operand", "(self.scale == SCALE_NAN) | ", ""),
    "unit: subnormal elements are normal": (
        "unit",
        "operand",
        "Cat(fraction, normal)",
        "Cat(fraction, 1)",
    ),
    "unit: -128 is 0": (
        "unit",
        "operand",
        "Mux(code[7], -code, code)[:8]",
        "Mux(code[7], -code, code)[:7]",
    ),
    "unit: odd lanes drop a bit": ("unit", "lane_sum", "Mux(a[3], b << 3, 0)", "0"),
    "unit: one carry is lost": ("unit", "datapath", "bits.pop() if bits", "bits.pop() & 0 if bits"),
    "infinite: infinity times zero": ("infinite", "dot_product", " | invalid.any()", ""),
    "infinite: infinity minus infinity": (
        "infinite",
        "dot_product",
        "nan | (positive & negative)",
        "nan",
    ),
    "infinite: the sign is lost": ("infinite", "dot_product", "(infinite & sign).any()", "C(0, 1)"),
    "four_bit: the largest product": (
        "four_bit",
        "structured",
        "in lane.outputs]",
        "in (*lane.outputs[:7], lane.outputs[8], lane.outputs[8])]",
    ),
    "four_bit: negative products lack 1": (
        "four_bit",
        "four_bit_sum",
        "Cat(columns[k], negative[k])",
        "Cat(columns[k], C(0, 1))",
    ),
    "four_bit: a full adder's carry": (
        "four_bit",
        "structured",
        "(x[0] | x[1]) & (x[2] | ~half)",
        "x[0] & x[1]",
    ),
    "four_bit: a half adder is an or": (
        "four_bit",
        "structured",
        "total.eq(x[0] ^ x[1])",
        "total.eq(x[0] | x[1])",
    ),
    "four_bit: a carry is not passed on": (
        "four_bit",
        "structured",
        "generate[upper] | (propagate[upper] & generate[lower])",
        "generate[upper]",
    ),
}
"""What is simulated, the module, and the text in it that is replaced by another."""

USUAL = ("adder: half rounds up", "round: negative ties", "four_bit: the largest product")
"""The faults that every run plants; the others are nightly."""


def planted(monkeypatch, block, module="", old="", new=""):
    """Return what is simulated, of the modules' sources, one text in one of them replaced."""
    for name in MODULES:
        spec = importlib.util.find_spec(name)
        source = Path(spec.origin).read_text("utf-8")
        if name.rpartition(".")[2] == module:
            assert old in source, f"{old!r} must stand in {name}"
            source = source.replace(old, new)
        made = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, spec.name, made)
        exec(compile(source, spec.origin, "exec"), made.__dict__)
    kind, parameters, _ = BLOCKS[block]
    side_by_side = sys.modules["poblano_verif.arith_blocks"].SideBySide
    return side_by_side(block=kind, copies=2, parameters=tuple(parameters.items()))


def cases(component, block, folder):
    """Run the bench on a part of its vectors."""
    bench = f"poblano_verif.benches.{BLOCKS[block][2]}"
    environment = LITTLE if block in ("unit", "infinite", "four_bit", "dot") else MUCH
    return run(build(emit(component)), bench, folder, seed=1, environment=environment).cases


@pytest.mark.nightly
@pytest.mark.parametrize("block", BLOCKS)
def test_benches_pass_without_a_fault(block, monkeypatch, tmp_path):
    found = cases(planted(monkeypatch, block), block, tmp_path)
    assert {case.status for case in found} == {"passed"}


@pytest.mark.parametrize(
    "fault",
    [pytest.param(f, marks=[] if f in USUAL else [pytest.mark.nightly]) for f in FAULTS],
)
def test_a_bench_finds(fault, monkeypatch, tmp_path):
    block, *change = FAULTS[fault]
    found = cases(planted(monkeypatch, block, *change), block, tmp_path)
    failed = [case for case in found if case.status == "failed"]
    assert failed, f"no test failed of {', '.join(case.name for case in found)}"
    assert all(" wrong; first is vector " in case.message for case in failed), failed[0].message
