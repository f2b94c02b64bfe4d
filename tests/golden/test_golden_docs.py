"""The numerics page tells the truth: its tables and examples are computed here and compared."""

import ast
import re
from pathlib import Path

import golden_exact as exact
import numpy as np
import pytest
from test_golden_elementary import WORST
from test_golden_layers_quantised_attention import LOSS

from poblano_golden import elementary
from poblano_golden.formats import BLOCK_SIZE, MX_FORMATS, MXFP4, SCALE_RULES, WIDE_FORMATS
from poblano_golden.scales import scale_bytes
from poblano_golden.table_polynomial import EXP2, RECIPROCAL, RECIPROCAL_SQRT

HERE = Path(__file__).parent
PAGE = (HERE.parents[1] / "docs" / "numerics.md").read_text()


def codes_text(codes):
    return " ".join(f"{c:02X}" for c in codes) or "none"


def format_row(name):
    fmt, spec = MX_FORMATS[name], exact.SPECS[name]
    fields = f"1.{spec.exponent}.{spec.mantissa}" if spec.exponent else "8, two's complement"
    normal = f"2^{1 - spec.bias}" if spec.exponent else "2^-6"
    return (
        f"| `{name}` | {fmt.code} | {fields} | {fmt.storage_bits} | {fmt.bias} | {fmt.largest:g} "
        f"| {fmt.max_exponent} | {normal} | 2^{fmt.lsb_exponent} | {fmt.largest_integer} "
        f"| {codes_text(spec.nans)} | {codes_text(spec.infinities)} |"
    )


def wide_row(name):
    fmt = WIDE_FORMATS[name]
    fields = f"1.{fmt.exponent_bits}.{fmt.mantissa_bits}"
    return f"| `{name}` | {fmt.code} | {fields} | {fmt.element_bits} | {fmt.bias} |"


def sum_row(pair):
    fa, fb = (MX_FORMATS[name] for name in pair.split(" x "))
    bound = BLOCK_SIZE * fa.largest_integer * fb.largest_integer
    unit = fa.lsb_exponent + fb.lsb_exponent
    return f"| {pair} | 2^{unit} | {bound} | {bound.bit_length() + 1} |"


def scale_row(amax):
    x = np.array([amax], np.float32)
    cells = [int(scale_bytes(x, MXFP4, rule)[0]) for rule in SCALE_RULES]
    return f"| {amax:g} | " + " | ".join(f"{b} (2^{b - 127})" for b in cells) + " |"


@pytest.mark.parametrize("name", MX_FORMATS)
def test_format_table(name):
    assert format_row(name) in PAGE


@pytest.mark.parametrize("name", WIDE_FORMATS)
def test_wide_format_table(name):
    assert wide_row(name) in PAGE


def special_name(x):
    return {np.inf: "+inf", -np.inf: "-inf", 0.5: "0.5", 1: "1"}.get(float(x)) or (
        "NaN" if np.isnan(x) else "-0" if np.signbit(x) else "+0"
    )


def function_row(name):
    error, argument = WORST[name]
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], np.float32)
    cells = " | ".join(special_name(y) for y in getattr(elementary, name)(x))
    return f"| `{name}` | {error:.6f} | {argument:08X} | {cells} |"


def table_row(table, meaning):
    widths = ", ".join(map(str, table.widths))
    intervals = 1 << table.index_bits
    return f"| `{table.name}` | {meaning} | {intervals} | {table.place_bits} | {widths} |"


@pytest.mark.parametrize("name", WORST)
def test_function_table(name):
    assert function_row(name) in PAGE


@pytest.mark.parametrize(
    ("table", "meaning"),
    [
        (EXP2, "2^f"),
        (RECIPROCAL, "2 / (1 + f)"),
        (RECIPROCAL_SQRT, "2 / sqrt(m), m in [1, 4)"),
    ],
)
def test_coefficient_table(table, meaning):
    assert table_row(table, meaning) in PAGE


@pytest.mark.parametrize("name", LOSS)
def test_attention_table(name):
    exact_weights, quantised_weights = LOSS[name]
    assert f"| `{name}` | {exact_weights:.4f} | {quantised_weights:.4f} |" in PAGE


SUMS = re.findall(r"^\| (mx\w+ x mx\w+) \|", PAGE, re.MULTILINE)


@pytest.mark.parametrize("pair", SUMS)
def test_sum_table(pair):
    assert sum_row(pair) in PAGE


@pytest.mark.parametrize("amax", [3, 5.5, 6, 6.01, 7, 8])
def test_scale_table(amax):
    assert scale_row(amax) in PAGE


def test_sum_table_covers_the_default_pairs():
    assert len(SUMS) >= 6
    assert {"mxfp4 x mxfp4", "mxfp8_e4m3 x mxfp8_e4m3", "mxint8 x mxint8"} <= set(SUMS)


def test_every_test_that_the_page_names_exists():
    named = re.findall(r"`(test_golden_\w+)::(test_\w+)`", PAGE)
    assert len(named) > 10
    for module, function in named:
        tree = ast.parse((HERE / f"{module}.py").read_text())
        assert function in {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}


def test_every_function_that_the_page_names_exists():
    named = re.findall(r"`(\w+)\.(\w+)`", PAGE)
    modules = {
        p.stem: p.read_text() for p in (HERE.parents[1] / "golden/poblano_golden").rglob("*.py")
    }
    assert len(named) > 10
    for module, function in named:
        assert module in modules, module
        assert re.search(rf"^(def|class) {function}\b|^{function}\b", modules[module], re.MULTILINE)
