"""Precision policy: which MX formats each matrix multiplication of a model runs in.

A policy is a YAML file; those that come with Poblano lie in `constraints/policies/`:

    name: mixed
    notes: Why these formats.
    tensors:
      - match: "blk.*.ffn_*"
        activation: mxfp4
        weight: mxfp4
        scale_rule: even
        result: bf16

The first entry whose pattern (as in a shell) matches a tensor's name decides; every tensor needs
one, and an entry that decides no tensor of the model is refused: it is a spelling mistake.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, cast

from poblano.config.errors import shorten
from poblano.config.source import Path as KeyPath
from poblano.config.source import Source, read_file
from poblano.resources import constraints
from poblano_golden.errors import PoblanoError
from poblano_golden.formats import MX_FORMATS, SCALE_RULES, WIDE_FORMATS, MxFormat, WideFormat

__all__ = ["Policy", "Precision", "load_policy", "policy_paths"]

_RESULTS = {name: WIDE_FORMATS[name] for name in ("fp32", "bf16")}


@dataclass(frozen=True)
class Precision:
    """How one matrix multiplication runs.

    Parameters
    ----------
    match:
        The pattern of tensor names that it is for.
    activation, weight:
        Formats of the two operands.
    scale_rule:
        The rule that finds the scales of both.
    result:
        The format in which results leave the engine.
    where:
        File, line and column, for messages.
    """

    match: str
    activation: MxFormat
    weight: MxFormat
    scale_rule: str
    result: WideFormat
    where: str = ""

    @property
    def pair(self) -> str:
        """The pair of formats as configurations write it."""
        return f"{self.activation.name}*{self.weight.name}"


@dataclass(frozen=True)
class Policy:
    """A precision for every tensor of a model.

    Parameters
    ----------
    name, notes:
        For people.
    entries:
        In order; the first that matches decides.
    """

    name: str
    notes: str
    entries: tuple[Precision, ...]

    def precision(self, tensor: str) -> Precision:
        """Return the precision of a tensor such as `blk.3.ffn_down`.

        Raises
        ------
        PoblanoError
            No entry matches.
        """
        for entry in self.entries:
            if fnmatchcase(tensor, entry.match):
                return entry
        raise PoblanoError(f"policy {self.name}: no entry matches tensor {tensor!r}")

    def check(self, tensors: Iterable[str], pairs: Iterable[str]) -> None:
        """Refuse a policy that does not fit a model and an engine.

        Parameters
        ----------
        tensors:
            Names of all the matrix multiplications of the model.
        pairs:
            The pairs of formats that the engine multiplies, such as `mxfp4*mxfp4`.

        Raises
        ------
        PoblanoError
            A tensor without an entry, an entry that decides no tensor, or a pair of formats
            that the engine does not have in either order.
        """
        used = {self.precision(tensor) for tensor in tensors}
        known = {frozenset(pair.split("*")) for pair in pairs}
        for entry in self.entries:
            if entry not in used:
                raise PoblanoError(
                    f"{entry.where}: an entry must decide at least one tensor of the model; "
                    f"got {entry.match!r}"
                )
            if frozenset(entry.pair.split("*")) not in known:
                raise PoblanoError(
                    f"{entry.where}: activation*weight must be one of the engine's "
                    f"{', '.join(pairs)}; got {entry.pair}"
                )


def policy_paths() -> dict[str, Path]:
    """Return the policies that come with Poblano, by name."""
    return {path.stem: path for path in sorted((constraints() / "policies").glob("*.yaml"))}


def load_policy(source: str | Path) -> Policy:
    """Read a policy.

    Parameters
    ----------
    source:
        The name of one that comes with Poblano, or the path of a YAML file (anything with a
        slash or a dot).

    Raises
    ------
    PoblanoError
        One line, `FILE:LINE:COLUMN: RULE; got VALUE`.
    """
    path = Path(source)
    if isinstance(source, str) and "/" not in source and "." not in source:
        known = policy_paths()
        if source not in known:
            raise PoblanoError(f"a policy must be one of {', '.join(known)}; got {source!r}")
        path = known[source]
    document = read_file(path)
    top = _mapping(document, (), document.value, {"name", "tensors"}, {"notes"})
    items: Any = top["tensors"]
    if not isinstance(items, list) or not items:
        raise _error(document, ("tensors",), "tensors must be a list of entries", items)
    return Policy(
        _text(document, ("name",), top["name"]),
        _text(document, ("notes",), top.get("notes", "")),
        tuple(_entry(document, index, item) for index, item in enumerate(cast("list[Any]", items))),
    )


def _entry(document: Source, index: int, value: Any) -> Precision:
    at = ("tensors", index)
    needed = {"match", "activation", "weight", "scale_rule"}
    fields = _mapping(document, at, value, needed, {"result"})

    def choose(key: str, known: dict[str, Any], default: str = "") -> Any:
        name = fields.get(key, default)
        if not isinstance(name, str) or name not in known:
            rule = f"{key} must be one of {', '.join(known)}"
            raise _error(document, (*at, key), rule, name)
        return known[name]

    rules = {name: name for name in SCALE_RULES}
    return Precision(
        match=_text(document, (*at, "match"), fields["match"]),
        activation=choose("activation", MX_FORMATS),
        weight=choose("weight", MX_FORMATS),
        scale_rule=choose("scale_rule", rules),
        result=choose("result", _RESULTS, "fp32"),
        where=document.where(document.values[at]),
    )


def _mapping(
    document: Source, at: KeyPath, value: Any, needed: set[str], optional: set[str]
) -> dict[str, Any]:
    keys = ", ".join(sorted(needed | optional))
    if not isinstance(value, dict):
        what = "an entry" if at else "a policy"
        raise _error(document, at, f"{what} must be a mapping with the keys {keys}", value)
    mapping = cast("dict[str, Any]", value)
    for key in mapping:
        if key not in needed | optional:
            where = document.where(document.keys[*at, key])
            raise PoblanoError(f"{where}: a key must be one of {keys}; got {key!r}")
    for key in sorted(needed - mapping.keys()):
        raise _error(document, at, f"{key} must be given", None)
    return mapping


def _text(document: Source, at: KeyPath, value: Any) -> str:
    if not isinstance(value, str):
        raise _error(document, at, f"{at[-1]} must be a text", value)
    return value


def _error(document: Source, at: KeyPath, rule: str, value: Any) -> PoblanoError:
    where = document.where(document.values.get(at, (1, 1)))
    return PoblanoError(f"{where}: {rule}; got {shorten(value)}")
