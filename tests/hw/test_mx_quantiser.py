import re
import tempfile
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from pyosys import libyosys as ys

from poblano.arith.fp32_to_bf16 import Fp32ToBf16
from poblano.arith.mx_encoder import MxEncoder
from poblano.arith.mx_encoding import Encoding, QuantiserPlan
from poblano.arith.mx_quantiser import MxQuantiser
from poblano_flow.emission import emit
from poblano_golden.elements import decode, encode
from poblano_golden.formats import FP32, MX_FORMATS

SUBSETS = [s for size in range(1, 7) for s in combinations(MX_FORMATS, size)]
DEFAULT = ("mxfp4", "mxfp8_e4m3", "mxint8")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"formats": ()}, "formats must name at least one MX format, not none"),
        (
            {"formats": ("mxfp4", "fp4")},
            "a format must be one of mxfp4, mxfp8_e4m3, mxfp8_e5m2, mxfp6_e2m3, mxfp6_e3m2, "
            "mxint8, not 'fp4'",
        ),
        (
            {"formats": ("mxfp4", "mxint8", "mxfp4")},
            "formats must differ, but 'mxfp4' stands there twice",
        ),
        ({"formats": DEFAULT, "stages": 4}, "stages must be 0, 1, 2 or 3, not 4"),
        ({"formats": DEFAULT, "stages": -1}, "stages must be 0, 1, 2 or 3, not -1"),
    ],
)
def test_refused(parameters, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        MxQuantiser(**parameters)


def test_an_encoder_has_one_stage_at_most():
    with pytest.raises(ValueError, match=r"^stages must be 0 or 1, not 2$"):
        MxEncoder(formats=DEFAULT, stages=2)


@pytest.mark.parametrize("name", MX_FORMATS)
def test_a_format_as_the_datapath_sees_it(name):
    fmt = MX_FORMATS[name]
    encoding = Encoding(fmt)
    assert encoding.bias & (encoding.bias + 1) == 0
    largest = encoding.largest_code
    assert decode(encode_one(fmt.largest, fmt), fmt)[0] == fmt.largest
    assert encode_one(fmt.largest, fmt)[0] == largest
    # A code is its field, worth a power of two, and its fraction.
    field, fraction = divmod(largest, 1 << encoding.fraction_bits)
    significand = 1 + fraction / (1 << encoding.fraction_bits)
    assert fmt.largest == significand * 2.0 ** (field - encoding.bias)
    ones = encoding.largest_ones
    assert fraction >> (encoding.fraction_bits - ones) == (1 << ones) - 1
    assert fraction & ((1 << (encoding.fraction_bits - ones)) - 1) == 0


def encode_one(value, fmt):
    return encode(np.array([value], np.float32), fmt)


@pytest.mark.parametrize("formats", SUBSETS, ids="+".join)
def test_widths_of_every_subset(formats):
    plan = QuantiserPlan(formats)
    assert plan.fraction_bits <= FP32.mantissa_bits
    assert plan.dropped_bits == FP32.mantissa_bits - plan.fraction_bits
    assert plan.deciding_bits <= plan.fraction_bits
    assert plan.near_bits <= FP32.exponent_bits - 3
    for e in plan.encodings:
        # the longest shift left of a normal code, and right of a subnormal one that rounds
        assert e.bias < 1 << plan.shift_bits
        assert e.fraction_bits < 1 << plan.shift_bits
        # a number that many binades below the largest rounds to zero: less than half a step
        assert e.largest_field - (1 << plan.near_bits) - 1 < -e.fraction_bits
        assert plan.below(e) >= 0
    assert plan.format_width == max(1, (len(formats) - 1).bit_length())
    assert plan.block_bits == (128 if formats == ("mxfp4",) else 256)


def ports(component):
    return {port.name: (port.direction, port.width) for port in emit(component).top.ports}


@pytest.mark.parametrize("stages", [0, 3])
def test_ports_and_latency(stages):
    quantiser = MxQuantiser(formats=DEFAULT, stages=stages)
    assert quantiser.latency == stages
    found = ports(quantiser)
    clock = {} if stages == 0 else {"clk": ("input", 1)}
    assert {name: port for name, port in found.items() if name != "rst"} == {
        **clock,
        "values": ("input", 1024),
        "format": ("input", 2),
        "rule": ("input", 2),
        "codes": ("output", 256),
        "scale": ("output", 8),
    }


@pytest.mark.parametrize("name", MX_FORMATS)
def test_one_format_alone(name):
    found = ports(MxQuantiser(formats=(name,), stages=2))
    assert found["codes"] == ("output", 32 * MX_FORMATS[name].storage_bits)
    assert found["format"] == ("input", 1)


@pytest.mark.nightly
@pytest.mark.parametrize("formats", SUBSETS, ids="+".join)
def test_every_subset_is_emitted(formats):
    stages = len(formats) % 4
    emission = emit(MxQuantiser(formats=formats, stages=stages))
    counts = emission.instance_counts()
    encoders = [counts[module.name] for module in emission.modules if module.kind == "MxEncoder"]
    assert encoders == [32]


def test_a_repeated_part_is_emitted_once():
    emission = emit(MxQuantiser(formats=DEFAULT, stages=1))
    counts = {module.kind: emission.instance_counts()[module.name] for module in emission.modules}
    assert counts == {"MxCandidate": 32, "MxEncoder": 32, "MxQuantiser": 1}


def test_fewer_formats_are_smaller():
    sizes = [
        gates(emit(MxEncoder(formats=formats)).top.verilog)
        for formats in (("mxfp4",), ("mxfp4", "mxfp8_e4m3"), DEFAULT, tuple(MX_FORMATS))
    ]
    assert sizes == sorted(set(sizes))


def gates(verilog):
    """Return the number of cells after synthesis to two-input gates."""
    with tempfile.TemporaryDirectory() as folder:
        source, log = Path(folder, "in.v"), Path(folder, "log")
        source.write_text(verilog)
        design = ys.Design()
        for command in (f"read_verilog {source}", "synth -flatten", "abc -g AND,OR,XOR"):
            ys.Pass.call(design, f"tee -q {command}")
        ys.Pass.call(design, f"tee -q -o {log} stat")
        return int(re.findall(r"(\d+) cells", log.read_text())[-1])


def test_bf16_ports():
    assert ports(Fp32ToBf16()) == {"i": ("input", 32), "o": ("output", 16)}
