"""Blocks that are written in Verilog, such as models of what surrounds the hardware."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources.abc import Traversable

from poblano.component import Component

__all__ = ["VerilogComponent"]


class VerilogComponent(Component):
    """A block whose one module stands in a Verilog file; `once` makes an instance of it.

    The module has the ports of the component's signature and `clk` and `rst`. An emission takes
    its text, with the module's name and the defaults of its parameters set to the component's, so
    that whatever reads the emission needs no other file and knows when the text changes.

    Attributes
    ----------
    source:
        The file.
    values:
        Name to value of the module's parameters, integers or texts.
    """

    source: Traversable
    values: Mapping[str, int | str]

    def verilog(self) -> str:
        """Return the module under the component's name, its parameters set.

        Raises
        ------
        ValueError
            If the file does not hold one module, or has no parameter of a name in `values`.
        """
        text = self._replace(self.source.read_text("utf-8"), r"^(module )\w+", self.module_name)
        for name, value in self.values.items():
            literal = f'"{value}"' if isinstance(value, str) else str(value)
            text = self._replace(text, rf"^( *parameter {name} = )[^,\n]+", literal)
        return text

    def _replace(self, text: str, pattern: str, value: str) -> str:
        text, count = re.subn(pattern, lambda match: match[1] + value, text, flags=re.MULTILINE)
        if count != 1:
            raise ValueError(f"{self.source} must match {pattern!r} once, not {count} times")
        return text
