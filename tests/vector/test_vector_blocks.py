"""Parameters of the vector engine's blocks, their registers, and its commands."""

import itertools
import re

import pytest

from poblano.arith.fp32_multiplier import Fp32Multiplier
from poblano.commands import CHAIN, PASS, TOPK, CommandError
from poblano.config import VectorConfiguration, VectorPipelineConfiguration, load
from poblano.vector.elementary import FUNCTIONS, Elementary, register_places
from poblano.vector.latency import parts_latency, s1_latency, sum_ways
from poblano.vector.operation import VectorOperation
from poblano.vector.row_sum import RowSum
from poblano.vector.stream_window import StreamWindow
from poblano.vector.table_evaluator import TableEvaluator
from poblano.vector.timing import pass_cycles

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


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Elementary(functions=("exp",), parts=True), "parts need the function exp2"),
        (lambda: RowSum(lanes=3, stages=2), "lanes must be a power of two, not 3"),
        (lambda: StreamWindow(line=64, most=65), "most must be 1 to 64, not 65"),
        (lambda: VectorOperation(stages=4), "stages must be 0 to 3, not 4"),
    ],
)
def test_parts_of_the_engine_refuse(make, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        make()


def test_published_latencies_are_those_of_the_blocks():
    for add, lanes in itertools.product(range(4), (2, 4, 16)):
        vector = VectorConfiguration(lanes=lanes, pipeline={"add": add})
        total = RowSum(lanes=lanes, stages=add)
        assert total.ways == sum_ways(vector)
        assert total.ways > add
    for function in range(9):
        pipeline = VectorPipelineConfiguration(function=function)
        functions = Elementary(functions=FUNCTIONS, stages=function, parts=True)
        assert parts_latency(pipeline) - s1_latency(pipeline) == functions.parts_latency


def test_rows_by_index_need_their_indices():
    configuration = load("tiny").slice
    chain = CHAIN.complete({"indexed": 1, "reduction": 1})
    values = PASS.complete({"a": 0, "rows": 3, "cols": 8, "a_row_stride": 32})
    with pytest.raises(ValueError, match=r"^indices must be those of 3 rows$"):
        pass_cycles(configuration, values, chain, [0, 1])
    near = pass_cycles(configuration, values, chain, [0, 0, 0])
    assert near < pass_cycles(configuration, {**values, "a_row_stride": 57}, chain, [1, 3, 1])


@pytest.mark.parametrize(
    ("command", "values", "message"),
    [
        (CHAIN, {"reduction": 3, "function": 2}, "function must be 0, which hands on s1"),
        (PASS, {"a": 0, "cols": 4, "p": 6}, "p must be a multiple of 4 bytes; got 6"),
        (TOPK, {"a": 0, "values": 0, "indices": 0, "cols": 4, "k": 5}, "k must be at most cols, 4"),
        (
            TOPK,
            {"a": 0, "values": 0, "indices": 65536, "cols": 4},
            "indices must end inside L1, at or below byte 65536; got 65540",
        ),
    ],
)
def test_commands_that_are_refused(command, values, message):
    with pytest.raises(CommandError, match=f"^{re.escape(message)}"):
        command.check(load("tiny").slice, command.complete(values))
