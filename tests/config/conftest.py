"""A small valid configuration, and what `load_text` says about a bad one."""

import pytest

from poblano.config import ConfigurationError, load_text

VALID = """\
name: mini
frequency: 1.5 GHz
mesh: {rows: 1, cols: 2}
slice:
  tensor:
    rows: 2
    cols: 2
    tile_rows: 2
    tile_cols: 16
  l1: {size: 64 KiB, line: 64 B}
  hbm: {width: 16 B}
  vector: {lanes: 4}
"""


@pytest.fixture
def valid():
    """The text of a configuration that no rule refuses."""
    return VALID


@pytest.fixture
def problems():
    """Return a function from text and overrides to the lines of the refusal."""

    def refuse(text, *overrides):
        with pytest.raises(ConfigurationError) as caught:
            load_text(text, overrides, "mini.yaml")
        assert str(caught.value) == "\n".join(caught.value.problems)
        return list(caught.value.problems)

    return refuse
