"""The golden tests must fail when the golden models are wrong: each mutation plants one fault."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import poblano_golden

PACKAGE = Path(poblano_golden.__file__).parent

MUTATIONS = {
    "encode truncates": ("elements.py", "np.rint(", "np.trunc("),
    "encode rounds half up": ("elements.py", "np.rint(np.ldexp(", "np.floor(0.5 + np.ldexp("),
    "encode rounds float64 to float32 first": (
        "elements.py",
        "exact = values.astype(np.float64)",
        "exact = values.astype(np.float32).astype(np.float64)",
    ),
    "encode loses the sign of zero": ("elements.py", "np.signbit(exact)", "exact < 0"),
    "encode treats subnormals as normal": (
        "elements.py",
        "np.maximum(magnitude, 2.0**least)",
        "np.maximum(magnitude, 2.0**(least - 1))",
    ),
    "encode of MXINT8 reaches -128": ("formats.py", "7, 6, 127 / 64)", "7, 6, 2.0)"),
    "MXINT8 decodes 0x80 as zero": (
        "elements.py",
        "(codes ^ 0x80) - 0x80",
        "((codes ^ 0x80) - 0x80) * (codes != 0x80)",
    ),
    "E4M3 has no NaN": ("formats.py", "448.0, has_nan=True", "448.0"),
    "E4M3 clips at 240": ("formats.py", "448.0", "240.0"),
    "E5M2 NaN codes read as infinity": ("elements.py", "& (fraction > 0)", "& (fraction > 2)"),
    "round_up from the quotient's floor (A1)": (
        "scales.py",
        "return (fraction > largest).astype(np.int64)",
        "return -(fraction <= largest).astype(np.int64)",
    ),
    "round_up steps when the quotient is exact": (
        "scales.py",
        "fraction > largest",
        "fraction >= largest",
    ),
    "even keeps one bit too many": (
        "scales.py",
        "else fmt.mantissa_bits",
        "else fmt.mantissa_bits + 1",
    ),
    "even keeps seven bits of MXINT8": (
        "scales.py",
        "kept = fmt.bias if fmt.is_integer else ",
        "kept = ",
    ),
    "subnormal amax is not normalised": ("scales.py", "_FRACTION_BITS + 1 - length, 0)", "0, 0)"),
    "scale clamps at 253": ("scales.py", "_LARGEST_BYTE = 254", "_LARGEST_BYTE = 253"),
    "infinite amax is taken for large": ("scales.py", "bits >= _INFINITY", "bits > _INFINITY"),
    "scale byte 0 stands for zero": (
        "scales.py",
        "return _SCALE_VALUES[scales]",
        "return np.where(scales == 0, 0.0, _SCALE_VALUES[scales])",
    ),
    "scale 0xFF is not NaN": ("scales.py", "SCALE_BIAS), np.nan)", "SCALE_BIAS), 2.0**128)"),
    "codes of a NaN block stay": (
        "blocks.py",
        "np.where(invalid[..., None], np.float32(0), blocks)",
        "np.nan_to_num(blocks)",
    ),
    "amax of signed values": ("blocks.py", "& 0x7FFFFFFF", "& 0xFFFFFFFF"),
    "nibbles swapped": (
        "blocks.py",
        "blocks[..., 0::2] | (blocks[..., 1::2] <<",
        "blocks[..., 1::2] | (blocks[..., 0::2] <<",
    ),
    "checkpoint nibbles swapped": (
        "blocks.py",
        "np.stack((blocks & np.uint8(0xF), blocks >> np.uint8(4)), axis=-1)",
        "np.stack((blocks >> np.uint8(4), blocks & np.uint8(0xF)), axis=-1)",
    ),
    "layout is row-major": (
        "blocks.py",
        "blocks.transpose(1, 0, 2).copy()",
        "blocks.reshape(blocks.shape[1], blocks.shape[0], -1).copy()",
    ),
    "garbage in six-bit codes is kept": ("blocks.py", "(1 << fmt.element_bits) - 1", "0xFF"),
    "pack hands out the tensor's own scales": ("blocks.py", "t.scales.T.copy()", "t.scales.T"),
    "wide sums are not split": ("dot.py", "<= 1 << 53", "<= 1 << 73"),
    "split sums round twice": ("dot.py", "(error != 0) & even", "(error != 0) & False"),
    "rounding to odd goes the wrong way": ("dot.py", "np.where(error > 0", "np.where(error < 0"),
    "rounding to odd disturbs odd sums": ("dot.py", "(error != 0) & even", "(error != 0)"),
    "split parts need more than 53 bits": ("dot.py", "_SPLIT_BITS = 16", "_SPLIT_BITS = 13"),
    "an exact zero may be -0": ("dot.py", "return finite(a, b) + 0.0", "return -finite(-a, b)"),
    "infinities are finite": ("dot.py", "np.isfinite(special)", "~np.isnan(special)"),
    "elements' NaN is dropped": ("dot.py", "np.isfinite(special)", "~np.isinf(special)"),
    "scales multiply in float32": (
        "dot.py",
        "(scale_values(a_scale) * scale_values(b_scale))",
        "(scale_values(a_scale) * scale_values(b_scale)).astype(np.float32)",
    ),
    "subnormal results flush to zero": (
        "fp32.py",
        "return canonical(x.astype(np.float32))",
        "return canonical(np.where(abs(x) < 2.0**-126, 0, x).astype(np.float32))",
    ),
    "overflow saturates": (
        "fp32.py",
        "return canonical(x.astype(np.float32))",
        "return canonical(np.clip(x, -(2.0**127), 2.0**127).astype(np.float32))",
    ),
    "NaN keeps its payload": ("fp32.py", "return np.where(np.isnan(x), _NAN, x)", "return x"),
    "maximum ignores the sign of zero": ("fp32.py", "order_keys(a) >= order_keys(b)", "a >= b"),
    "minimum lets a number beat NaN": (
        "fp32.py",
        "<= order_keys(b), a, b)\n    return np.where(np.isnan(a) | np.isnan(b), _NAN, chosen)",
        "<= order_keys(b), a, b)\n    return np.where(np.isnan(a) & np.isnan(b), _NAN, chosen)",
    ),
    "BF16 truncates": ("fp32.py", "(bits + 0x7FFF + ((bits >> 16) & 1))", "bits"),
    "BF16 rounds half up": ("fp32.py", "0x7FFF + ((bits >> 16) & 1)", "0x8000"),
    "sums start from the first term": (
        "fp32.py",
        "np.zeros(terms.shape[1:], np.float32)",
        "np.full(terms.shape[1:], -0.0, np.float32)",
    ),
    "sums run backwards": ("fp32.py", "for term in terms:", "for term in terms[::-1]:"),
    "a NaN is ordered": ("fp32.py", "return np.less_equal(a, b)", "return ~np.less(b, a)"),
    "INT8 wraps": (
        "fp32.py",
        "np.clip(np.rint(np.nan_to_num(x)), -128, 127)",
        "np.rint(np.nan_to_num(x))",
    ),
    "INT8 rounds half away from zero": (
        "fp32.py",
        "np.rint(np.nan_to_num(x))",
        "np.trunc(np.nan_to_num(x) + np.copysign(0.5, x))",
    ),
    "a table lacks half a unit": (
        "table_polynomial.py",
        "(start + half) >> dropped",
        "start >> dropped",
    ),
    "a square comes from too few bits": (
        "table_polynomial.py",
        "square_bits: int = 13",
        "square_bits: int = 7",
    ),
    "small powers wrap": (
        "elementary.py",
        "np.clip(unit_shift - exponent, 0, 62)",
        "(unit_shift - exponent) % 64",
    ),
    "a negative power is not rounded down": (
        "elementary.py",
        "EXP2(power & (_ONE - 1)), power >> FRACTION_BITS",
        "EXP2(power & (_ONE - 1)), np.fix(power / _ONE).astype(np.int64)",
    ),
    "subnormal arguments are not normalised": (
        "elementary.py",
        "np.where(np.isfinite(x) & (x != 0), np.abs(x), np.float32(1))",
        "np.where(np.isfinite(x), np.maximum(np.abs(x), np.float32(2.0**-126)), np.float32(1))",
    ),
    "roots ignore odd exponents": ("elementary.py", "(exponent & 1) <<", "(exponent & 0) <<"),
    "sigmoid's sum does not carry": ("elementary.py", "(total >> carry)", "total"),
    "the root of -0 is +infinity": (
        "elementary.py",
        "np.copysign(np.float32(np.inf), x), root)",
        "np.float32(np.inf), root)",
    ),
    "a beat is summed in halves": (
        "reductions.py",
        "fp32.add(sums[..., 0::2], sums[..., 1::2])",
        "fp32.add(sums[..., : sums.shape[-1] // 2], sums[..., sums.shape[-1] // 2 :])",
    ),
    "lanes accumulate before the tree": (
        "reductions.py",
        "padded.reshape(*rows.shape[:-1], beats, lanes)",
        "fp32.ascending_sum(padded.reshape(*rows.shape[:-1], beats, lanes), -2)[..., None, :]",
    ),
    "ties take the highest index": (
        "reductions.py",
        'np.argsort(keys, axis, kind="stable")',
        'x.shape[axis] - 1 - np.argsort(np.flip(keys, axis), axis, kind="stable")',
    ),
    "no elements give 0": ("reductions.py", "-np.inf, np.float32", "0, np.float32"),
    "blocks are added backwards": (
        "matmul.py",
        "for block in range(a.num_blocks):",
        "for block in reversed(range(a.num_blocks)):",
    ),
    "blocks accumulate in float64": (
        "matmul.py",
        "total = np.zeros((a.rows, b.rows), np.float32)",
        "return fp32.from_float64(sum(x.astype(np.float64) for x in _blocks(a, b)))",
    ),
    "a short last block is dropped": (
        "matmul.py",
        "range(a.num_blocks)",
        "range(max(1, a.k // BLOCK_SIZE))",
    ),
    "results along M are not transposed": ("matmul.py", 'd if axis == "n" else ', "d if 1 else "),
}


def plant(folder, name, old, new):
    """Copy the package to `folder` with one text of the file `name` replaced."""
    shutil.copytree(PACKAGE, folder / "poblano_golden")
    source = folder / "poblano_golden" / name
    text = source.read_text()
    assert text.count(old) == 1, f"{name} no longer has exactly one {old!r}"
    source.write_text(text.replace(old, new))


def run_golden_tests(package_parent, module):
    """Run the default golden tests on another copy of the package, the likeliest file first."""
    likeliest = f"test_golden_{Path(module).stem}.py"
    paths = Path(__file__).parent.glob("test_*.py")
    files = sorted(paths, key=lambda p: (p.name != likeliest, p.name))
    options = ["-x", "-q", "-m", "not nightly", "-p", "no:cacheprovider"]
    environment = os.environ | {
        "PYTHONPATH": str(package_parent),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "pytest", *options, *map(str, files)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.nightly
@pytest.mark.parametrize("fault", MUTATIONS)
def test_a_planted_fault_is_found(fault, tmp_path):
    name, old, new = MUTATIONS[fault]
    plant(tmp_path, name, old, new)
    run = run_golden_tests(tmp_path, name)
    assert run.returncode == 1, f"no test failed with this fault planted:\n{run.stdout[-2000:]}"
    assert "AssertionError" in run.stdout or "ValueError" in run.stdout


@pytest.mark.nightly
def test_the_package_itself_passes_in_a_copy(tmp_path):
    """Without a fault the same run passes, so the failures above come from the faults."""
    shutil.copytree(PACKAGE, tmp_path / "poblano_golden")
    run = run_golden_tests(tmp_path, "matmul.py")
    assert run.returncode == 0, run.stdout[-2000:]
