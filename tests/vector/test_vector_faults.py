"""Faults planted in the vector engine's arithmetic, each of which a bench must find."""

import importlib.util
import sys
from pathlib import Path

import pytest

from poblano_flow.emission import emit
from poblano_flow.simulate import build, run

MODULES = (
    "poblano.arith.datapath",
    "poblano.arith.fp32_fields",
    "poblano.arith.fp32_multiplier",
    "poblano.arith.fp32_compare",
    "poblano.arith.fp32_to_fp16",
    "poblano.arith.fp32_to_int8",
    "poblano.arith.to_fp32",
    "poblano.vector.power_argument",
    "poblano.vector.root_argument",
    "poblano.vector.one_plus_power",
    "poblano.vector.significand_round",
    "poblano.vector.table_evaluator",
    "poblano.vector.elementary",
    "poblano_verif.arith_blocks",
)
"""The modules of the arithmetic, each before those that import it."""

EVERY = ("exp2", "exp", "sigmoid", "reciprocal", "reciprocal_sqrt")

BLOCKS = {
    "multiplier": ("Fp32Multiplier", {"stages": 2}, "fp32_multiplier"),
    "compare": ("Fp32Compare", {}, "fp32_compare"),
    "to_fp16": ("Fp32ToFp16", {}, "conversion"),
    "to_int8": ("Fp32ToInt8", {}, "conversion"),
    "from_bf16": ("Bf16ToFp32", {}, "conversion"),
    "from_fp16": ("Fp16ToFp32", {}, "conversion"),
    "from_int8": ("Int8ToFp32", {}, "conversion"),
    "functions": ("Elementary", {"functions": EVERY, "stages": 8}, "elementary"),
}
"""What is simulated: class, parameters, bench."""

FAULTS = {
    "multiplier: zero times infinity": (
        "multiplier",
        "fp32_multiplier",
        "(is_zero(self.a) | is_zero(self.b))",
        "is_zero(self.a)",
    ),
    "multiplier: NaN keeps a sign": ("multiplier", "fp32_multiplier", "sign & ~nan)", "sign)"),
    "multiplier: an exponent is one off": (
        "multiplier",
        "fp32_multiplier",
        "a_exponent + b_exponent - 2 * _LAST_PLACE",
        "a_exponent + b_exponent - 2 * _LAST_PLACE + (a_exponent == 1)",
    ),
    "multiplier: b is not seen infinite": (
        "multiplier",
        "fp32_multiplier",
        "a_infinite | b_infinite",
        "a_infinite",
    ),
    "compare: -0 is less than +0": ("compare", "fp32_compare", "below & ~zeros &", "below &"),
    "compare: -0 differs from +0": ("compare", "fp32_compare", "(same | zeros) &", "same &"),
    "compare: a NaN equals itself": (
        "compare",
        "fp32_compare",
        "(same | zeros) & ~self.unordered",
        "same | zeros",
    ),
    "compare: negative numbers": ("compare", "fp32_compare", "~(smaller | same)", "smaller"),
    "to_fp16: half rounds up": (
        "to_fp16",
        "fp32_to_fp16",
        "(dropped[:-1].any() | lost | kept[0])",
        "1",
    ),
    "to_fp16: what falls off is forgotten": ("to_fp16", "fp32_to_fp16", "| lost |", "|"),
    "to_fp16: overflow wraps": (
        "to_fp16",
        "fp32_to_fp16",
        ">= (1 << FP16.exponent_bits) - 1",
        "== (1 << FP16.exponent_bits) - 1",
    ),
    "to_int8: -128 saturates to -127": ("to_int8", "fp32_to_int8", "-128, 127", "-127, 127"),
    "to_int8: NaN saturates": ("to_int8", "fp32_to_int8", "is_nan(self.i)", "C(0)"),
    "to_int8: far bits are forgotten": ("to_int8", "fp32_to_int8", "| lost |", "|"),
    "to_int8: large numbers wrap": ("to_int8", "fp32_to_int8", "(exponent > _LARGE) | ", ""),
    "from_bf16: NaN keeps its payload": (
        "from_bf16",
        "to_fp32",
        "canonical(number, nan)",
        "number",
    ),
    "from_fp16: subnormals": ("from_fp16", "to_fp32", "field[0] | ~normal", "field[0]"),
    "from_fp16: infinity is a NaN": (
        "from_fp16",
        "to_fp32",
        "field.all() & fraction.any()",
        "field.all()",
    ),
    "from_int8: zero is a power of two": (
        "from_int8",
        "to_fp32",
        "m.If(significand[7])",
        "m.If(1)",
    ),
    "functions: a table's last interval": (
        "functions",
        "table_evaluator",
        "packed = values[0]",
        "packed = values[0] - (row == 255)",
    ),
    "functions: a slope is cut": (
        "functions",
        "table_evaluator",
        "for _, c1, c2 in rows) + 1",
        "for _, c1, c2 in rows) // 2",
    ),
    "functions: a square loses a bit": (
        "functions",
        "table_evaluator",
        "c2 * place[-square_bits:]",
        "c2 * (place[-square_bits:] & ~1)",
    ),
    "functions: roots take the reciprocal's table": (
        "functions",
        "elementary",
        'table.select.eq(state["root"])',
        "table.select.eq(0)",
    ),
    "functions: log2(e) is one bit off": (
        "functions",
        "power_argument",
        "significand * LOG2_E",
        "significand * (LOG2_E + 1)",
    ),
    "functions: large powers wrap": (
        "functions",
        "power_argument",
        "shifted | large.replicate(_FIXED_BITS)",
        "shifted",
    ),
    "functions: a negative power is a complement": (
        "functions",
        "power_argument",
        "(_FIXED_BITS + 1)) + negative",
        "(_FIXED_BITS + 1))",
    ),
    "functions: sigmoid of -x": ("functions", "power_argument", "x[31] ^ negated", "x[31]"),
    "functions: 1 + a power does not carry": (
        "functions",
        "one_plus_power",
        "Mux(carry, total[1:], total)",
        "total",
    ),
    "functions: 1 + a large power": (
        "functions",
        "one_plus_power",
        "~Mux(low, 0, exponent) - carry",
        "~exponent - carry",
    ),
    "functions: odd exponents of roots": (
        "functions",
        "root_argument",
        "fraction, exponent[0])",
        "fraction, C(0, 1))",
    ),
    "functions: subnormal arguments": (
        "functions",
        "root_argument",
        "field - count - FP32.bias",
        "field - FP32.bias",
    ),
    "functions: 1 / 0 is finite": ("functions", "root_argument", "m.If(is_zero(x))", "m.If(0)"),
    "functions: 1 / infinity is finite": (
        "functions",
        "root_argument",
        "m.Elif(is_infinite(x))",
        "m.Elif(0)",
    ),
    "functions: half rounds up": (
        "functions",
        "significand_round",
        "(dropped[:-1].any() | lost | kept[0])",
        "1",
    ),
    "functions: subnormal results forget bits": (
        "functions",
        "significand_round",
        "| lost |",
        "|",
    ),
    "functions: subnormal results flush": (
        "functions",
        "significand_round",
        "shifted[_DROPPED:], ",
        "shifted[_DROPPED:] & ~low.replicate(len(shifted) - _DROPPED), ",
    ),
    "functions: overflow wraps": (
        "functions",
        "significand_round",
        ">= _INFINITY",
        "== _INFINITY",
    ),
    "functions: a root of a negative number": (
        "functions",
        "elementary",
        "(root & self.x[31] & ~is_zero(self.x))",
        "C(0, 1)",
    ),
    "functions: the root of -0 is +infinity": (
        "functions",
        "elementary",
        "self.x[31] & roots",
        "self.x[31] & roots & ~root",
    ),
    "functions: a register is missing": (
        "functions",
        "elementary",
        'self._held(m, "power_slope", state)',
        "state",
    ),
}
"""What is simulated, the module, and the text in it that is replaced by another."""

USUAL = ("to_int8: far bits are forgotten",)
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
    little = {"POBLANO_VECTORS": "20000", "POBLANO_BENCH_SHARE": "0.3"}
    return run(build(emit(component)), bench, folder, seed=1, environment=little).cases


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
