"""The parameters of the vector engine's arithmetic, and where its registers are."""

import re

import pytest

from poblano.arith.fp32_multiplier import Fp32Multiplier
from poblano.vector.elementary import FUNCTIONS, Elementary, register_places
from poblano.vector.table_evaluator import TableEvaluator

KNOWN = ", ".join(FUNCTIONS)
TABLES = "exp2, reciprocal, reciprocal_sqrt"


@pytest.mark.parametrize(
    ("make", "parameters", "message"),
    [
        (Fp32Multiplier, {"stages": 3}, "stages must be 0 to 2, not 3"),
        (Elementary, {"functions": ()}, f"functions must be different ones of {KNOWN}, not none"),
        (
            Elementary,
            {"functions": ("exp2", "log2")},
            f"functions must be different ones of {KNOWN}, not exp2, log2",
        ),
        (
            Elementary,
            {"functions": ("exp2", "exp2")},
            f"functions must be different ones of {KNOWN}, not exp2, exp2",
        ),
        (Elementary, {"functions": FUNCTIONS, "stages": 9}, "stages must be 0 to 8, not 9"),
        (Elementary, {"functions": ("exp2",), "stages": 5}, "stages must be 0 to 4, not 5"),
        (TableEvaluator, {"tables": ()}, f"tables must be some of {TABLES}, not none"),
        (TableEvaluator, {"tables": ("log2",)}, f"tables must be some of {TABLES}, not 'log2'"),
        (
            TableEvaluator,
            {"tables": ("exp2", "reciprocal")},
            "tables must be alike in direction and intervals, not ('exp2', 'reciprocal')",
        ),
        (
            TableEvaluator,
            {"tables": ("exp2",), "slope_stages": 2},
            "slope_stages must be 0 to 1, not 2",
        ),
    ],
)
def test_refused(make, parameters, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make(**parameters)


@pytest.mark.parametrize(
    ("functions", "places"),
    [
        (("exp2",), {"result", "argument", "significand", "power_slope"}),
        (("exp",), {"result", "argument", "significand", "power_slope", "product"}),
        (("reciprocal",), {"result", "argument", "significand", "slope"}),
        (FUNCTIONS, {*register_places(FUNCTIONS)}),
    ],
)
def test_registers_are_where_there_is_something_to_hold(functions, places):
    assert {*register_places(functions)} == places
    assert len(register_places(functions)) == len(places)


def test_latency_is_the_number_of_stages():
    assert Elementary(functions=FUNCTIONS, stages=6).latency == 6
    assert Fp32Multiplier(stages=2).latency == 2
