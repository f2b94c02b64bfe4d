"""Files that are no configuration, and overrides that are none: a clear line for each."""

import pytest

from poblano.config import ConfigurationError, load, load_text
from poblano.config.source import LARGEST_FILE, read_text


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "mini.yaml:1:1: a configuration must be a mapping of keys; got nothing"),
        (
            "# only a comment\n",
            "mini.yaml:1:1: a configuration must be a mapping of keys; got nothing",
        ),
        ("[1]", "mini.yaml:1:1: a configuration must be a mapping of keys; got a list"),
        ("text", "mini.yaml:1:1: a configuration must be a mapping of keys; got 'text'"),
        ("a: 1\nb: 2\na: 3", "mini.yaml:3:1: a key must stand once, and line 1 has it; got 'a'"),
        ("a: {b: 1, b: 1}", "mini.yaml:1:11: a key must stand once, and line 1 has it; got 'b'"),
        ("a: &x 1\nb: *x", "mini.yaml:1:4: anchors and aliases are not allowed; got x"),
        ("a: *x", "mini.yaml:1:4: anchors and aliases are not allowed; got x"),
        ("a: !!str 1", "mini.yaml:1:4: tags are not allowed; got tag:yaml.org,2002:str"),
        ("1: 2", "mini.yaml:1:1: a key must be a text; got 1"),
        ("? [a]\n: 3", "mini.yaml:1:3: a key must be a text; got a list"),
        ("null: 3", "mini.yaml:1:1: a key must be a text; got nothing"),
        ("<<: {a: 1}", None),
        (
            "a: [1",
            (
                "mini.yaml:1:6: the text must be valid YAML: expected ',' or ']', "
                "but got '<stream end>' while parsing a flow sequence"
            ),
        ),
        (
            "a: 1\n---\nb: 2",
            (
                "mini.yaml:2:1: the text must be valid YAML: but found another document "
                "expected a single document in the stream"
            ),
        ),
        ("a:\n\tb: 1", None),
        ("a: \x01", "mini.yaml:1:4: a text must be printable; got character U+0001"),
        ("[" * 5000, "mini.yaml: the text must be nested less deeply; got hundreds of levels"),
    ],
)
def test_bad_text(problems, text, line):
    found = problems(text)
    assert found[0].startswith("mini.yaml:")
    assert "\n" not in found[0]
    if line is not None:
        assert found == [line]


def test_scalars_are_those_of_the_core_schema():
    source = read_text(
        "[1, -2, 1.5, 1e3, true, null, ~, on, 010, 12:30, '1', 2026-01-01, 0x1F]", "t"
    )
    assert source.value == [
        1, -2, 1.5, 1000.0, True, None, None, "on", "010", "12:30", "1", "2026-01-01", "0x1F",
    ]  # fmt: skip


def test_bad_files(tmp_path):
    def refusal(path):
        with pytest.raises(ConfigurationError) as caught:
            load(path)
        return str(caught.value)

    missing, folder, latin, big = (tmp_path / name for name in ("a.yaml", "b", "c.yaml", "d.yaml"))
    folder.mkdir()
    latin.write_bytes(b"name: x\nnotes: \xe9")
    big.write_bytes(b"#" * (LARGEST_FILE + 1))
    rule = "a configuration must be a readable file"
    assert refusal(missing) == f"{missing}: {rule}; got no such file or directory"
    assert refusal(folder) == f"{folder}: {rule}; got is a directory"
    assert refusal(latin) == f"{latin}:2:8: the file must be UTF-8 text; got byte 0xE9"
    assert refusal(big) == f"{big}: a configuration must be at most 1048576 bytes; got more"


def test_file_and_byte_order_mark(tmp_path, valid):
    path = tmp_path / "mini.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + valid.encode())
    assert load(path) == load(str(path)) == load_text(valid)
    path.write_text(valid.replace("    rows: 2", "    rows: x"))
    with pytest.raises(ConfigurationError) as caught:
        load(path)
    assert caught.value.problems == (
        f"{path}:6:11: slice.tensor.rows must be an integer of at least 1; got 'x'",
    )


def test_unknown_preset():
    with pytest.raises(ConfigurationError) as caught:
        load("bnch")
    assert str(caught.value) == (
        "a preset must be one of bench, jalapeno, small, tiny (did you mean 'bench'?); got 'bnch'"
    )


@pytest.mark.parametrize(
    ("override", "line"),
    [
        ("slice", "-P slice: an override must be like slice.tensor.rows=8; got 'slice'"),
        ("=8", "-P =8: an override must be like slice.tensor.rows=8; got '=8'"),
        ("a..b=8", "-P a..b=8: an override must be like slice.tensor.rows=8; got 'a..b=8'"),
        (
            "slice.tensor.rows.x=8",
            "-P slice.tensor.rows.x: slice.tensor.rows must be a section to have keys; got 2",
        ),
        (
            "slice.tensor.rows=[",
            (
                "-P slice.tensor.rows:1:2: the text must be valid YAML: expected the node content, "
                "but found '<stream end>' while parsing a flow node"
            ),
        ),
    ],
)
def test_bad_override(valid, problems, override, line):
    assert problems(valid, override) == [line]


def test_overrides_apply_in_order_with_types_of_yaml(valid):
    configuration = load_text(
        valid,
        [
            "slice.tensor.rows=4",
            "slice.tensor.rows=8",
            "slice.tensor.pipeline.add=1",
            "slice.l1={size: 128 KiB, line: 64 B}",
            "slice.l1.banks=2",
        ],
    )
    assert configuration.slice.tensor.rows == 8
    assert configuration.slice.tensor.pipeline.add == 1
    l1 = configuration.slice.l1
    assert (l1.size, l1.line, l1.banks) == (131072, 64, 2)
