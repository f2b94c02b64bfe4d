"""The arithmetic's parameters, widths and latencies."""

import re
from itertools import product

import numpy as np
import pytest

from poblano.arith.dot_product import DotProduct
from poblano.arith.fp32_adder import Fp32Adder
from poblano.arith.fp32_round import Fp32Round
from poblano.arith.lanes import LanePlan, largest_magnitude, largest_shift
from poblano.arith.latency import accumulator_latency, dot_latency, unit_latency
from poblano.arith.modes import modes
from poblano.arith.operand import OperandDecoder, operand_layout
from poblano.config import PipelineConfiguration, TensorConfiguration
from poblano.tensor.unit import TensorUnit
from poblano_golden.elements import decode
from poblano_golden.formats import MX_FORMATS

DEFAULT = TensorConfiguration.model_fields["formats"].default
FOUR_BIT = ("mxfp4*mxfp4",)
EVERY = tuple(f"{a}*{b}" for a, b in product(MX_FORMATS, MX_FORMATS) if a <= b)
KNOWN = ", ".join(MX_FORMATS)


@pytest.mark.parametrize(
    ("make", "parameters", "message"),
    [
        (Fp32Adder, {"stages": 4}, "stages must be 0 to 3, not 4"),
        (Fp32Adder, {"stages": -1}, "stages must be 0 to 3, not -1"),
        (Fp32Round, {"width": 1, "exponents": range(4)}, "width must be at least 2, not 1"),
        (
            Fp32Round,
            {"width": 9, "exponents": range(0)},
            "exponents must be a range that is not empty, not range(0, 0)",
        ),
        (
            Fp32Round,
            {"width": 9, "exponents": range(4), "stages": 2},
            "stages must be 0 to 1, not 2",
        ),
        (DotProduct, {"formats": DEFAULT, "sum_stages": 2}, "sum_stages must be 0 to 1, not 2"),
        (
            DotProduct,
            {"formats": DEFAULT, "multiply_stages": 2},
            "multiply_stages must be 0 to 1, not 2",
        ),
        (DotProduct, {"formats": ()}, "formats must name at least one pair, not none"),
        (TensorUnit, {"formats": DEFAULT, "add_stages": 4}, "add_stages must be 0 to 3, not 4"),
        (TensorUnit, {"formats": DEFAULT, "round_stages": 2}, "round_stages must be 0 to 1, not 2"),
        (
            TensorUnit,
            {"formats": ("mxfp4*fp4",)},
            f"a format pair must be two of {KNOWN} joined by '*', not 'mxfp4*fp4'",
        ),
        (OperandDecoder, {"formats": DEFAULT, "side": "c"}, 'side must be "a" or "b", not \'c\''),
        (
            OperandDecoder,
            {"formats": (), "side": "a"},
            "formats must name at least one pair, not none",
        ),
    ],
)
def test_refused(make, parameters, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make(**parameters)


@pytest.mark.parametrize("name", MX_FORMATS)
def test_largest_magnitude_is_that_of_the_codes(name):
    fmt = MX_FORMATS[name]
    values = decode(np.arange(1 << fmt.element_bits, dtype=np.uint8), fmt).astype(np.float64)
    finite = np.abs(values[np.isfinite(values)])
    assert largest_magnitude(fmt) == finite.max() * 2.0**-fmt.lsb_exponent


@pytest.mark.parametrize(
    ("name", "shift"),
    [
        ("mxfp4", 0),
        ("mxint8", 0),
        ("mxfp8_e4m3", 14),
        ("mxfp8_e5m2", 29),
        ("mxfp6_e2m3", 2),
        ("mxfp6_e3m2", 6),
    ],
)
def test_largest_shift(name, shift):
    assert largest_shift(MX_FORMATS[name]) == shift


@pytest.mark.parametrize(
    ("formats", "width"),
    [(FOUR_BIT, 14), (("mxint8*mxint8",), 21), (DEFAULT, 42), (("mxfp8_e5m2*mxfp8_e5m2",), 70)],
)
def test_sum_width_is_the_narrowest(formats, width):
    plan = LanePlan(formats)
    assert plan.sum_width == width
    assert -(1 << (width - 1)) < -plan.sum_bound
    assert 1 << (width - 2) <= plan.sum_bound < 1 << (width - 1)


@pytest.mark.parametrize("pair", EVERY)
def test_exponents_are_those_of_the_scales(pair):
    plan = LanePlan((pair,))
    found = {
        scale - 127 + fmt.lsb_exponent
        for mode in modes((pair,))
        for fmt in (mode.a, mode.b)
        for scale in (0, 254)
    }
    assert plan.exponent_range.start == min(found)
    assert plan.exponent_range.stop - 1 == max(found)
    sums = [mode.lsb_exponent for mode in plan.modes]
    assert plan.sum_exponent_range == range(min(sums) - 254, max(sums) + 255)


def test_an_operand_carries_only_what_the_formats_need():
    names = {
        formats: {name for name, _ in operand_layout(formats)}
        for formats in (FOUR_BIT, ("mxint8*mxint8",), DEFAULT, ("mxfp8_e5m2*mxfp4",))
    }
    assert names[FOUR_BIT] == {"sign", "code", "nan", "exponent"}
    assert names["mxint8*mxint8",] == {"sign", "magnitude", "nan", "exponent"}
    assert names[DEFAULT] == {"sign", "magnitude", "shift", "nan", "exponent"}
    assert names["mxfp8_e5m2*mxfp4",] - names[DEFAULT] == {"infinity", "zero"}


def test_latencies_add_up():
    pipeline = PipelineConfiguration(multiply=1, sum=0, round=1, add=3)
    assert dot_latency(pipeline) == 1
    assert accumulator_latency(pipeline) == 2
    assert unit_latency(pipeline) == 5
    none = PipelineConfiguration(multiply=0, sum=0, round=0, add=0)
    assert (dot_latency(none), accumulator_latency(none), unit_latency(none)) == (0, 0, 0)
