"""Arithmetic on named figures, as sweep files write it: `slice.tensor.rows * area.kge <= 500`."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from poblano_golden.errors import PoblanoError

__all__ = ["Expression"]

_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": min,
    "max": max,
    "ceil": math.ceil,
    "log2": math.log2,
}


@dataclass(frozen=True)
class Expression:
    """Numbers, dotted names, arithmetic, comparisons, `and`, `or`, `not`, min, max, ceil, log2."""

    text: str

    @cached_property
    def _tree(self) -> ast.expr:
        try:
            return ast.parse(self.text.strip(), mode="eval").body
        except SyntaxError as error:
            raise PoblanoError(
                f"an expression must be arithmetic; got {self.text!r} ({error.msg})"
            ) from None

    @cached_property
    def names(self) -> frozenset[str]:
        """The dotted names in it.

        Raises
        ------
        PoblanoError
            If it holds anything else than the class says.
        """
        found: set[str] = set()
        self._collect(self._tree, found)
        return frozenset(found)

    def value(self, figures: Mapping[str, Any]) -> Any:
        """Return its value, given that of every name.

        Raises
        ------
        PoblanoError
            If it divides by zero, or a figure is no number.
        """
        try:
            return self._value(self._tree, figures)
        except (ArithmeticError, TypeError, ValueError) as error:
            raise PoblanoError(f"{self.text!r} must have a value; got {error}") from None

    def _collect(self, node: ast.expr, found: set[str]) -> None:
        name = _dotted(node)
        if name is not None:
            found.add(name)
            return
        for child in self._operands(node):
            self._collect(child, found)

    def _operands(self, node: ast.expr) -> list[ast.expr]:
        match node:
            case ast.Constant(value=int() | float()):
                return []
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return [left, right]
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
                return [operand]
            case ast.BoolOp(values=values):
                return values
            case ast.Compare(left=left, ops=ops, comparators=right) if all(
                type(op) in _OPERATORS for op in ops
            ):
                return [left, *right]
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if (
                name in _FUNCTIONS
            ):
                return arguments
            case _:
                what = ast.unparse(node)
                raise PoblanoError(
                    f"an expression must be arithmetic; got {what!r} in {self.text!r}"
                )

    def _value(self, node: ast.expr, figures: Mapping[str, Any]) -> Any:
        name = _dotted(node)
        if name is not None:
            return figures[name]
        match node:
            case ast.Constant(value=value):
                return value
            case ast.BinOp(left=left, op=op, right=right):
                return _OPERATORS[type(op)](self._value(left, figures), self._value(right, figures))
            case ast.UnaryOp(op=op, operand=operand):
                return _OPERATORS[type(op)](self._value(operand, figures))
            case ast.BoolOp(op=ast.And(), values=values):
                return all(self._value(item, figures) for item in values)
            case ast.BoolOp(values=values):
                return any(self._value(item, figures) for item in values)
            case ast.Compare(left=left, ops=ops, comparators=right):
                values = [self._value(item, figures) for item in (left, *right)]
                pairs = zip(ops, values, values[1:], strict=False)
                return all(_OPERATORS[type(op)](a, b) for op, a, b in pairs)
            case ast.Call(func=ast.Name(id=function), args=arguments):
                return _FUNCTIONS[function](*(self._value(item, figures) for item in arguments))
            case _:
                raise TypeError(ast.unparse(node))


def _dotted(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value)
        return None if before is None else f"{before}.{node.attr}"
    return None
