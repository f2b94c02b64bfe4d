"""Presets, the figures that follow from them, and the hash."""

import json
import subprocess
import sys

import pytest

from poblano.config import Configuration, derive, load, load_text
from poblano.resources import preset_paths

TABLE = {
    # preset: mesh, tensor, L1, ports, port bytes, lanes, tile, line
    "tiny": ((1, 1), (2, 2), 64 << 10, 1, 16, 4, (2, 16), 64),
    "bench": ((1, 1), (8, 16), 1 << 20, 1, 64, 16, (4, 4), 128),
    "small": ((2, 2), (4, 8), 256 << 10, 1, 64, 16, (4, 4), 64),
    "jalapeno": ((8, 8), (64, 30), 512 << 10, 3, 64, 64, (2, 16), 512),
}


PINNED = "8cbf483681ee29ba2f1fb325dc536c22ca1be4300bb90d702e3fa2a4755a9cc4"
"""SHA-256 of the canonical text below."""


def test_presets_are_those_of_the_table():
    assert set(preset_paths()) == set(TABLE)
    for name, expected in TABLE.items():
        configuration = load(name)
        part = configuration.slice
        assert configuration.name == name
        assert (
            (configuration.mesh.rows, configuration.mesh.cols),
            (part.tensor.rows, part.tensor.cols),
            part.l1.size,
            part.hbm.ports,
            part.hbm.width,
            part.vector.lanes,
            (part.tensor.tile_rows, part.tensor.tile_cols),
            part.l1.line,
        ) == expected


def test_figures_of_jalapeno_are_the_published_ones():
    figures = derive(load("jalapeno"))
    peak = figures["chip_peak_flops"]
    assert round(peak["mxfp4*mxfp4"] / 1e15, 1) == 13.4
    assert round(peak["mxfp8_e4m3*mxfp4"] / 1e15, 1) == 6.7
    assert round(peak["mxfp8_e4m3*mxfp8_e4m3"] / 1e15, 1) == 3.3
    assert figures["slices"] == 64
    assert figures["tensor_units"] == 64 * 1920
    assert figures["slice_peak_macs_per_cycle"]["mxfp4*mxfp4"] == 64 * 30 * 32
    assert figures["hbm_capacity_bytes"] == 216 << 30
    assert figures["hbm_pin_bytes_per_s"] == 15.36e12
    assert figures["l1_bytes"] == 32 << 20
    assert figures["tile_results"] == [128, 480]


def test_figures_that_are_not_given_are_null():
    figures = derive(load("tiny"))
    assert figures["hbm_capacity_bytes"] is None
    assert figures["hbm_pin_bytes_per_s"] is None
    assert figures["hbm_port_bytes_per_s"] == 16 * 10**9


def test_jalapeno_says_what_is_published_and_what_inferred():
    notes = load("jalapeno").notes
    assert notes.startswith("Published: 64 slices")
    assert "Inferred: 1.7 GHz" in notes


def test_hash_is_pinned(valid):
    assert load_text(valid).canonical == (
        '{"frequency":1500000000,"mesh":{"cols":2,"rows":1},"name":"mini","slice":{"hbm":'
        '{"capacity":null,"outstanding":32,"pin_rate":null,"pins":64,"ports":1,"width":16},'
        '"host":{"queue_depth":4,"semaphores":32,"width":16},"l1":{"banks":4,'
        '"line":64,"size":65536},"tensor":{"cols":2,"formats":["mxfp4*mxfp4",'
        '"mxfp8_e4m3*mxfp4","mxfp8_e4m3*mxfp8_e4m3","mxint8*mxfp4","mxint8*mxint8"],'
        '"pipeline":{"add":2,"multiply":1,"round":1,"sum":1},"rows":2,"tile_cols":16,'
        '"tile_rows":2},"vector":{"lanes":4,"pipeline":{"add":2,"function":5,"multiply":2}}}}'
    )
    assert load_text(valid).hash == PINNED
    assert load_text(valid).hash64 == int(PINNED[:16], 16)


def test_hash_does_not_depend_on_form(valid):
    reference = load_text(valid)
    record = json.loads(json.dumps(reference.model_dump(mode="json")))
    backwards = json.dumps(dict(reversed(record.items())))
    assert load_text(backwards).hash == reference.hash
    assert load_text(valid.replace("1.5 GHz", "1500 MHz")).hash == reference.hash
    assert load_text(valid + "notes: other words\n").hash == reference.hash
    assert load_text(valid, ["slice.tensor.pipeline.add=2"]).hash == reference.hash


@pytest.mark.parametrize(
    "override",
    ["name=other", "frequency=1.4 GHz", "mesh.rows=2", "slice.l1.banks=2", "slice.hbm.pins=32",
     "slice.tensor.formats=[mxfp4*mxfp4]", "slice.tensor.pipeline.add=1", "slice.vector.lanes=8",
     "slice.hbm.outstanding=8", "slice.host.semaphores=8"],
)  # fmt: skip
def test_hash_depends_on_every_value(valid, override):
    assert load_text(valid, [override]).hash != load_text(valid).hash


def test_hash_is_the_same_in_another_process():
    code = "from poblano.config import load; print(load('bench').hash)"
    hashes = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed},
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert hashes == {load("bench").hash}


def test_schema_describes_every_key():
    schema = Configuration.model_json_schema()
    tensor = schema["$defs"]["TensorConfiguration"]
    assert tensor["additionalProperties"] is False
    assert tensor["properties"]["cols"]["maximum"] == 32
    assert tensor["properties"]["rows"]["description"] == "Rows of units."
    assert schema["properties"]["frequency"]["type"] == "string"
    for definition in (schema, *schema["$defs"].values()):
        for name, entry in definition["properties"].items():
            assert "description" in entry or "$ref" in entry, name
