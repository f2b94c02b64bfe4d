"""Every rule of a configuration, with its exact line: where, which rule, which value."""

import pytest
from pydantic import ValidationError

from poblano.config import L1Configuration, TensorConfiguration, load_text

FORMATS = "mxfp4, mxfp8_e4m3, mxfp8_e5m2, mxfp6_e2m3, mxfp6_e3m2, mxint8"
SIZES = "must be a number with one of the units B, KiB, MiB, GiB, TiB, such as '64 KiB'"
TILE = "cols * tile_cols must be a multiple of 32 (an MX block of results stays in one tile)"
LOOP = (
    "tile_rows * tile_cols must be at least pipeline.add + 2 "
    "(no accumulator is needed again before its addition is done)"
)
NAME = "must be at most 40 lower-case letters, digits and underscores, a letter first"
LINE = "must be a power of two of at least 64 B (a command word is one access)"
CHUNK = "must be at most the bytes of l1.line (a tile's scales are one access)"


@pytest.mark.parametrize(
    ("path", "value", "rule"),
    [
        ("name", "Bench", f"name {NAME}; got 'Bench'"),
        ("name", "3", "name must be a text; got 3"),
        ("name", "'a\\n*/'", f"name {NAME}; got 'a\\\\n*/'"),
        ("name", "a" * 41, f"name {NAME}; got '{'a' * 41}'"),
        ("notes", "[a]", "notes must be a text; got a list"),
        (
            "frequency",
            "1.7",
            (
                "frequency must be a number with one of the units Hz, kHz, MHz, GHz, "
                "such as '1.7 GHz'; got 1.7"
            ),
        ),
        ("frequency", "11 GHz", "frequency must be at most 10 GHz; got '11 GHz'"),
        ("mesh.rows", "0", "mesh.rows must be an integer of at least 1; got 0"),
        ("mesh.cols", "-1", "mesh.cols must be an integer of at least 1; got -1"),
        ("slice.tensor.rows", "0", "slice.tensor.rows must be an integer of at least 1; got 0"),
        ("slice.tensor.rows", "2.0", "slice.tensor.rows must be an integer of at least 1; got 2.0"),
        ("slice.tensor.rows", "'2'", "slice.tensor.rows must be an integer of at least 1; got '2'"),
        (
            "slice.tensor.rows",
            "true",
            "slice.tensor.rows must be an integer of at least 1; got true",
        ),
        (
            "slice.tensor.rows",
            "010",
            "slice.tensor.rows must be an integer of at least 1; got '010'",
        ),
        (
            "slice.tensor.rows",
            "",
            "slice.tensor.rows must be an integer of at least 1; got nothing",
        ),
        (
            "slice.tensor.cols",
            "33",
            (
                "slice.tensor.cols must be an integer from 1 to 32 "
                "(a result beat holds at most one MX block); got 33"
            ),
        ),
        ("slice.tensor.cols", "3", f"slice.tensor: {TILE}; got 3 * 16 = 48"),
        ("slice.tensor.tile_cols", "8", f"slice.tensor: {TILE}; got 2 * 8 = 16"),
        (
            "slice.tensor.pipeline",
            "{multiply: 2}",
            "slice.tensor.pipeline.multiply must be an integer from 0 to 1; got 2",
        ),
        (
            "slice.tensor.pipeline.sum",
            "-1",
            "slice.tensor.pipeline.sum must be an integer from 0 to 1; got -1",
        ),
        (
            "slice.tensor.pipeline.round",
            "2",
            "slice.tensor.pipeline.round must be an integer from 0 to 1; got 2",
        ),
        (
            "slice.tensor.pipeline.add",
            "4",
            "slice.tensor.pipeline.add must be an integer from 0 to 3; got 4",
        ),
        (
            "slice.tensor.formats",
            "[mxfp4*mxfp4, mxfp8*mxfp4]",
            (
                f"slice.tensor.formats[1] must be two of the formats {FORMATS} joined by '*'; "
                "got 'mxfp8*mxfp4'"
            ),
        ),
        (
            "slice.tensor.formats",
            "[mxfp4]",
            (
                f"slice.tensor.formats[0] must be two of the formats {FORMATS} joined by '*'; "
                "got 'mxfp4'"
            ),
        ),
        (
            "slice.tensor.formats",
            "[mxint8*mxfp4, mxfp4 * mxint8]",
            (
                "slice.tensor: formats must name every pair once, in either order; "
                "got 'mxint8*mxfp4' and 'mxfp4*mxint8'"
            ),
        ),
        (
            "slice.tensor.formats",
            "[mxfp4*mxfp4, mxfp4*mxfp4]",
            (
                "slice.tensor: formats must name every pair once, in either order; "
                "got 'mxfp4*mxfp4' and 'mxfp4*mxfp4'"
            ),
        ),
        (
            "slice.tensor.formats",
            "[]",
            "slice.tensor: formats must name at least one pair; got an empty list",
        ),
        (
            "slice.tensor.formats",
            "mxfp4*mxfp4",
            "slice.tensor.formats must be a list; got 'mxfp4*mxfp4'",
        ),
        ("slice.tensor.formats", "[4]", "slice.tensor.formats[0] must be a text; got 4"),
        ("slice.l1.size", "65536", f"slice.l1.size {SIZES}; got 65536"),
        ("slice.l1.size", "64 KB", f"slice.l1.size {SIZES}; got '64 KB'"),
        ("slice.l1.size", "null", f"slice.l1.size {SIZES}; got nothing"),
        (
            "slice.l1.size",
            "8 GiB",
            "slice.l1: size must be at most 16 MiB (L1 addresses have 24 bits); got 8 GiB",
        ),
        (
            "slice.l1.size",
            "100 B",
            "slice.l1: size must be a multiple of line * banks; got 100 B and 64 B * 4",
        ),
        ("slice.l1.line", "48 B", f"slice.l1.line {LINE}; got '48 B'"),
        ("slice.l1.line", "32 B", f"slice.l1.line {LINE}; got '32 B'"),
        (
            "slice.hbm.width",
            "128 B",
            "slice: hbm.width must be at most l1.line (a beat touches two lines at most); "
            "got 128 bytes, more than 64",
        ),
        (
            "slice.host",
            "{width: 128 B}",
            "slice: host.width must be at most l1.line (a beat touches two lines at most); "
            "got 128 bytes, more than 64",
        ),
        (
            "slice.host.semaphores",
            "65",
            "slice.host.semaphores must be an integer from 1 to 64 "
            "(a command names one in six bits); got 65",
        ),
        ("slice.l1.banks", "3", "slice.l1.banks must be a power of two of at least 1; got 3"),
        ("slice.l1.banks", "0", "slice.l1.banks must be a power of two of at least 1; got 0"),
        (
            "slice.tensor.rows",
            "64",
            f"slice: tensor.rows * tensor.tile_rows {CHUNK}; got 64 * 2 = 128, more than 64",
        ),
        (
            "slice.tensor.cols",
            "6",
            f"slice: tensor.cols * tensor.tile_cols {CHUNK}; got 6 * 16 = 96, more than 64",
        ),
        (
            "slice.vector.lanes",
            "32",
            "slice: 4 * vector.lanes must be at most the bytes of l1.line (a beat is one access); "
            "got 4 * 32 = 128, more than 64",
        ),
        (
            "slice.vector.pipeline.add",
            "4",
            "slice.vector.pipeline.add must be an integer from 0 to 3; got 4",
        ),
        ("slice.hbm.ports", "0", "slice.hbm.ports must be an integer of at least 1; got 0"),
        (
            "slice.hbm.width",
            "24 B",
            (
                "slice.hbm.width must be a power of two from 1 B to 128 B "
                "(an AXI4 data bus has 8 to 1024 bits); got '24 B'"
            ),
        ),
        (
            "slice.hbm.width",
            "256 B",
            (
                "slice.hbm.width must be a power of two from 1 B to 128 B "
                "(an AXI4 data bus has 8 to 1024 bits); got '256 B'"
            ),
        ),
        ("slice.hbm.pins", "0", "slice.hbm.pins must be an integer of at least 1; got 0"),
        (
            "slice.hbm.pin_rate",
            "10 GB/s",
            (
                "slice.hbm.pin_rate must be a number with one of the units b/s, kb/s, Mb/s, Gb/s, "
                "such as '10 Gb/s'; got '10 GB/s'"
            ),
        ),
        ("slice.hbm.capacity", "216", f"slice.hbm.capacity {SIZES}; got 216"),
        (
            "slice.vector.lanes",
            "12",
            "slice.vector.lanes must be a power of two of at least 2; got 12",
        ),
        ("mesh", "3", "mesh must be a section of keys; got 3"),
        ("slice.vector", "null", "slice.vector must be a section of keys; got nothing"),
    ],
)
def test_rule(valid, problems, path, value, rule):
    assert problems(valid, f"{path}={value}") == [f"-P {path}: {rule}"]


def test_accumulator_loop(valid, problems):
    overrides = ["slice.tensor.tile_rows=1", "slice.tensor.tile_cols=4", "slice.tensor.cols=8"]
    assert load_text(valid, overrides).slice.tensor.pipeline.add == 2
    assert problems(valid, *overrides, "slice.tensor.pipeline.add=3") == [
        f"-P slice.tensor.tile_rows: slice.tensor: {LOOP}; got 1 * 4 = 4, less than 5"
    ]


def test_every_problem_has_a_line_at_its_place(problems):
    text = """\
name: Mini
frequency: 1.5
mesh: {rows: 1, cols: 2}
slice:
  tensor:
    rws: 2
    cols: 40
  l1: {size: 64 kB, line: 64 B}
  hbm: {width: 16 B}
"""
    assert problems(text) == [
        f"mini.yaml:1:7: name {NAME}; got 'Mini'",
        (
            "mini.yaml:2:12: frequency must be a number with one of the units Hz, kHz, MHz, GHz, "
            "such as '1.7 GHz'; got 1.5"
        ),
        "mini.yaml:4:1: slice.vector must be given; got nothing",
        "mini.yaml:5:3: slice.tensor.rows must be given; got nothing",
        "mini.yaml:6:5: unknown key in slice.tensor (did you mean 'rows'?); got 'rws'",
        (
            "mini.yaml:7:11: slice.tensor.cols must be an integer from 1 to 32 "
            "(a result beat holds at most one MX block); got 40"
        ),
        f"mini.yaml:8:14: slice.l1.size {SIZES}; got '64 kB'",
    ]


def test_combination_stands_at_its_most_telling_value(valid, problems):
    assert problems(valid.replace("cols: 2\n", "cols: 3\n")) == [
        f"mini.yaml:7:11: slice.tensor: {TILE}; got 3 * 16 = 48"
    ]
    assert problems(valid, "slice.l1.line=64 B", "slice.tensor.rows=64") == [
        (
            f"-P slice.tensor.rows: slice: tensor.rows * tensor.tile_rows {CHUNK}; "
            "got 64 * 2 = 128, more than 64"
        )
    ]


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("slice.tensor.row", "slice.tensor (did you mean 'rows'?); got 'row'"),
        ("slice.l1.lines", "slice.l1 (did you mean 'line'?); got 'lines'"),
        (
            "tile_rows",
            "the configuration (did you mean 'slice.tensor.tile_rows'?); got 'tile_rows'",
        ),
        ("slice.vector.x", "slice.vector (known: lanes, pipeline); got 'x'"),
        ("slce.tensor.rows", "the configuration (did you mean 'slice'?); got 'slce'"),
    ],
)
def test_unknown_key(valid, problems, key, hint):
    assert problems(valid, f"{key}=1") == [f"-P {key}: unknown key in {hint}"]


def test_valid_extremes(valid):
    configuration = load_text(
        valid, ["slice.l1.size=16 MiB", "slice.l1.banks=1", "slice.tensor.formats=[mxint8*mxint8]"]
    )
    assert configuration.slice.l1.size == 1 << 24
    assert configuration.slice.tensor.formats == ("mxint8*mxint8",)
    assert load_text(valid, ["slice.tensor.formats=[ 'mxfp4 * mxint8' ]"]).slice.tensor.formats == (
        "mxfp4*mxint8",
    )


def test_sections_take_plain_numbers_from_python():
    assert L1Configuration(size=65536, line=64).banks == 4
    assert TensorConfiguration(rows=8, cols=16).pipeline.add == 2
    with pytest.raises(ValidationError, match="must be a power of two of at least 64 B"):
        L1Configuration(size=65536, line=48)
    with pytest.raises(ValidationError, match="must be a positive whole number of B"):
        L1Configuration(size=0, line=64)
    with pytest.raises(ValidationError, match="frozen"):
        TensorConfiguration(rows=8, cols=16).rows = 4
