"""Faults planted in the quantiser's hardware, each of which its bench must find."""

import importlib.util
import sys
from pathlib import Path

import pytest

from poblano_flow.emission import emit
from poblano_flow.simulate import build, run

MODULES = ("mx_encoding", "mx_candidate", "mx_encoder", "mx_quantiser")
"""The quantiser's modules, each before those that import it."""

FAULTS = {
    "floor steps up": ("mx_quantiser", '& (found["rule"] != SCALE_RULES["floor"])', ""),
    "no rule steps up": ("mx_quantiser", "largest + raised - highest", "largest - highest"),
    "even asks for a bit less": (
        "mx_quantiser",
        "leading(e.fraction_bits + 1)",
        "leading(e.fraction_bits)",
    ),
    "round_up takes the exact largest": (
        "mx_candidate",
        "(self.exact | follows)",
        "(self.exact | follows | 1)",
    ),
    "sticky does not count for a scale": ("mx_candidate", " | tail.any() | self.sticky", ""),
    "a smaller number decides": ("mx_quantiser", "(left[0] & raises)", "(left[1] & raises)"),
    "subnormal amax decides as a normal one": (
        "mx_quantiser",
        "ones | Mux(one_more, Cat(ones[1:], 1), 0)",
        "ones",
    ),
    "scale -1 is not clamped": (
        "mx_quantiser",
        "m.Elif(exponent[-1])",
        "m.Elif(exponent[-1] & ~exponent.all())",
    ),
    "scale 255 of a finite block": (
        "mx_quantiser",
        "scale.eq(SCALE_NAN - 1)",
        "scale.eq(SCALE_NAN)",
    ),
    "codes of an invalid block stay": (
        "mx_quantiser",
        "Mux(invalid, C(_ALL, BLOCK_SIZE), ~top & distant)",
        "~top & distant",
    ),
    "signs of an invalid block stay": (
        "mx_quantiser",
        'Mux(invalid, 0, found["signs"])',
        'found["signs"]',
    ),
    "32 numbers are 31": (
        "mx_quantiser",
        "C(_ALL, BLOCK_SIZE), bits)",
        "C(_ALL >> 1, BLOCK_SIZE), bits)",
    ),
    "far numbers are near": ("mx_quantiser", "~top & distant", "C(0, BLOCK_SIZE)"),
    "nibbles are swapped": (
        "mx_quantiser",
        "codes[2 * i][:4], codes[2 * i + 1][:4]",
        "codes[2 * i + 1][:4], codes[2 * i][:4]",
    ),
    "upper half is not cleared": ("mx_quantiser", "low & ~nibbles.replicate(4)", "low"),
    "left shift ignores the scale": ("mx_encoder", "leading | self.stop", "leading"),
    "subnormal numbers keep exponent 0": ("mx_encoder", "0, 1 - left)", "0, -left)"),
    "half rounds up": ("mx_encoder", "half & (sticky | magnitude[0])", "half"),
    "half rounds down": ("mx_encoder", "half & (sticky | magnitude[0])", "half & sticky"),
    "codes are cut": ("mx_encoder", "half & (sticky | magnitude[0])", "C(0)"),
    "low bits are forgotten": ("mx_encoder", "lost = [self.sticky, ", "lost = ["),
    "bits of a right shift are forgotten": (
        "mx_encoder",
        "lost.append(shift[k] & current[:step].any())",
        "",
    ),
    "bits shifted out first are forgotten": (
        "mx_encoder",
        ", ~depth[-1] & number[: zero + 1].any()]",
        "]",
    ),
    "bits of longer formats are forgotten": (
        "mx_encoder",
        "plan.below(e) > i)\n                    for i in range(lowest)",
        "False)\n                    for i in range(lowest)",
    ),
    "largest code overflows": ("mx_encoder", "magnitude[0]) & ~largest", "magnitude[0])"),
    "E4M3 emits its NaN": ("mx_encoder", "(ones[0] | ~largest)", "1"),
    "a deep number wraps": ("mx_encoder", " & ~depth[bits:-1].any()", ""),
    "the field of no leading one stays": ("mx_encoder", "field[0] & number[-1]", "field[0]"),
    "a negative integer is its complement": ("mx_encoder", "(up ^ negative)", "up"),
    "negative zero loses its sign": (
        "mx_encoder",
        "not e.fmt.is_integer and e.magnitude_bits == i)",
        "not e.fmt.is_integer and e.magnitude_bits == i) & magnitude.any()",
    ),
    "near is too near": (
        "mx_encoding",
        "(distance - 1).bit_length()",
        "(distance - 1).bit_length() - 1",
    ),
    "too few fraction bits": (
        "mx_encoding",
        "return max(e.bias + e.fraction_bits + 1 for",
        "return max(e.bias + e.fraction_bits for",
    ),
}


FORMATS = ("mxfp4", "mxfp8_e4m3", "mxint8")


def quantiser(monkeypatch, module="", old="", new=""):
    """Return the quantiser made of the modules' sources, one text in one of them replaced."""
    for name in MODULES:
        spec = importlib.util.find_spec(f"poblano.arith.{name}")
        source = Path(spec.origin).read_text("utf-8")
        if name == module:
            assert old in source, f"{old!r} must stand in {name}"
            source = source.replace(old, new)
        made = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, spec.name, made)
        exec(compile(source, spec.origin, "exec"), made.__dict__)
    return sys.modules["poblano.arith.mx_quantiser"].MxQuantiser(formats=FORMATS, stages=1)


def cases(component, folder):
    """Run the bench on part of its blocks."""
    built = build(emit(component))
    result = run(
        built,
        "poblano_verif.benches.mx_quantiser",
        folder,
        seed=1,
        environment={"POBLANO_BENCH_SHARE": "0.5"},
    )
    return {case.name.rpartition(".")[2]: case for case in result.cases}


@pytest.mark.nightly
def test_the_bench_passes_without_a_fault(monkeypatch, tmp_path):
    assert {case.status for case in cases(quantiser(monkeypatch), tmp_path).values()} == {"passed"}


@pytest.mark.nightly
@pytest.mark.parametrize("fault", FAULTS)
def test_the_bench_finds(fault, monkeypatch, tmp_path):
    found = cases(quantiser(monkeypatch, *FAULTS[fault]), tmp_path)
    failed = [case for case in found.values() if case.status == "failed"]
    assert failed, f"no test failed of {', '.join(found)}"
    assert all("blocks are wrong" in case.message for case in failed), failed[0].message
