"""The register map for others: SystemRDL, C header, pages, and the command that writes them."""

import shutil
import subprocess
from pathlib import Path

import pytest
from systemrdl.rdltypes import OnWriteType

from poblano.config import load
from poblano.host.reference import markdown
from poblano.host.register_file import RegisterFile
from poblano.host.registers import Access, register_map
from poblano.host.systemrdl import systemrdl
from poblano_flow import cli
from poblano_flow.emission import emit
from poblano_flow.emit import emission_files
from poblano_flow.output import is_whole
from poblano_flow.registers_export import compile_rdl, register_files

CONFIGURATIONS = {
    "tiny": ("tiny", []),
    "jalapeno": ("jalapeno", []),
    "odd": ("bench", ["slice.hbm.ports=2", "slice.host.semaphores=3"]),
}


@pytest.fixture(params=CONFIGURATIONS)
def chip(request):
    return load(*CONFIGURATIONS[request.param])


def access_of(node):
    """Return the kind of access that a field of the compiled SystemRDL has."""
    software = (node.is_sw_readable, node.is_sw_writable)
    if software == (True, False):
        if node.get_property("counter"):
            return Access.COUNTER
        return Access.STATUS if node.is_hw_writable else Access.CONSTANT
    if software == (False, True):
        return Access.PULSE if node.get_property("singlepulse") else None
    if node.get_property("onwrite") == OnWriteType.woclr and node.get_property("hwset"):
        return Access.FLAG
    if node.get_property("onwrite") == OnWriteType.wuser and node.is_hw_writable:
        return Access.ADD
    if not node.is_hw_writable and node.is_hw_readable:
        return Access.DOORBELL if node.get_property("swmod") else Access.CONTROL
    return None


def test_systemrdl_says_what_the_map_says(chip):
    words = register_map(chip).words
    nodes = list(compile_rdl(systemrdl(chip)).top.registers())
    assert [(node.inst_name, node.absolute_address) for node in nodes] == [
        (word.name, word.offset) for word in words
    ]
    for word, node in zip(words, nodes, strict=True):
        assert node.get_property("regwidth") == node.get_property("accesswidth") == 32
        assert node.get_property("desc") == word.register.summary
        fields = list(node.fields())
        assert len(fields) == len(word.fields), word.name
        for item, field in zip(word.fields, fields, strict=True):
            assert (field.inst_name, field.low, field.width) == (item.name, item.low, item.width)
            assert access_of(field) is item.access, (word.name, item.name)
            assert field.get_property("desc") == item.summary
            reset = None if item.access.driven else item.reset
            assert field.get_property("reset") == reset, (word.name, item.name)
            codes = field.get_property("encode")
            found = {} if codes is None else {code.name.lower(): code.value for code in codes}
            assert found == item.choices


def test_c_header_has_the_offsets(chip, tmp_path):
    registers = register_map(chip)
    header = register_files(chip)["poblano_slice.h"]
    (tmp_path / "poblano_slice.h").write_text(header)
    lines = [
        f'    printf("{word.name} %zu\\n", offsetof(poblano_slice_t, {word.name}));'
        for word in registers.words
    ]
    lines += [
        f'    printf("{name} %lu\\n", (unsigned long)POBLANO_SLICE__{name});'
        for name in ("CONTROL__ENABLE_bm", "WATCHDOG__VALUE_reset", "FAULT__QUEUE_bp")
    ]
    program = tmp_path / "offsets.c"
    program.write_text(
        '#include <stdio.h>\n#include <stddef.h>\n#include "poblano_slice.h"\n'
        "int main(void) {\n" + "\n".join(lines) + "\n    return 0;\n}\n"
    )
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler is not None
    binary = tmp_path / "offsets"
    subprocess.run(
        [compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", program, "-o", binary], check=True
    )
    said = subprocess.run([binary], capture_output=True, text=True, check=True).stdout.split()
    found = dict(zip(said[::2], map(int, said[1::2]), strict=True))
    assert found == registers.offsets | {
        "CONTROL__ENABLE_bm": 1,
        "WATCHDOG__VALUE_reset": 1_000_000,
        "FAULT__QUEUE_bp": 16,
    }


def test_files_are_the_same_every_time():
    chip = load("tiny", [])
    first = register_files(chip)
    assert first == register_files(chip)
    assert {"poblano_slice.rdl", "html/index.html", "manifest.json"} <= first.keys()
    assert first.keys() >= {f"html/{name}" for name in ("favicon.png", "data/data_index.js")}


def test_the_reference_page_is_the_map():
    page = Path(__file__).parents[2] / "docs" / "registers.md"
    assert page.read_text() == markdown(load("jalapeno", [])), (
        "poblano registers jalapeno --markdown > docs/registers.md"
    )


def test_the_reference_names_every_register_once():
    page = markdown(load("jalapeno", []))
    for heading in ("ID", "SEMAPHORE_i", "HBM_i_READ_BEATS", "QUEUE_q_TAIL"):
        assert page.count(f"## `{heading}`\n") == 1
    assert "Offset `0x1008 + 0x20 * q`" in page
    assert "Offset `0x200 + 0x10 * i`, 64 bits. Beats of read data that HBM port i moved." in page


def run(*arguments):
    with pytest.raises(SystemExit) as end:
        cli.main(["registers", *map(str, arguments)])
    return end.value.code


def test_the_command_writes_a_folder_and_replaces_only_its_own(tmp_path, capsys):
    folder = tmp_path / "registers"
    for _ in range(2):
        assert run("tiny", "-P", "slice.hbm.ports=2", "-o", folder) == 0
        assert is_whole(folder)
    assert "QUEUE_STORE_1_TAIL" in (folder / "poblano_slice.rdl").read_text()
    assert capsys.readouterr().out.count(f"{folder}: 119 words, ") == 2
    (folder / "notes.txt").write_text("mine")
    assert run("tiny", "-o", folder) == 2
    assert "got notes.txt in it (--force replaces the folder)" in capsys.readouterr().err
    assert (folder / "notes.txt").read_text() == "mine"
    assert run("tiny", "-o", folder, "--force") == 0
    assert not (folder / "notes.txt").exists()


def test_the_command_refuses_what_it_cannot_take(tmp_path, capsys):
    assert run("tiny", "-P", "slice.hbm.ports=200", "-o", tmp_path / "a") == 2
    assert run("tinny", "-o", tmp_path / "a") == 2
    errors = capsys.readouterr().err
    assert "slice.hbm.ports must be at most 126 for the register map; got 200" in errors
    assert "did you mean 'tiny'?" in errors
    assert not (tmp_path / "a").exists()


def test_the_command_prints_the_page(capsys):
    assert run("jalapeno", "--markdown") == 0
    assert capsys.readouterr().out == markdown(load("jalapeno", []))


def test_an_emission_carries_the_map():
    chip = load("tiny", [])
    emission = emit(RegisterFile(configuration=chip))
    files = emission_files(emission, chip)
    text = files[f"{emission.top.name}.rdl"]
    assert text.endswith(systemrdl(chip))
    assert f"hash {chip.hash}" in text.partition("addrmap")[0]
    assert compile_rdl(text).top.size == register_map(chip).words[-1].offset + 4
    assert not any(name.endswith(".rdl") for name in emission_files(emission))
