"""Errors of kernels, which name the kernel's own source line."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

from poblano_golden.errors import PoblanoError

__all__ = ["KernelError", "located", "same", "source_line"]

_HERE = Path(__file__).parent
_P = ParamSpec("_P")
_T = TypeVar("_T")


class KernelError(PoblanoError):
    """A kernel asks for what cannot be; the message begins with its file and line."""


def source_line() -> str:
    """Return `file:line` of the nearest caller outside this package."""
    frame = inspect.currentframe()
    while frame is not None and Path(frame.f_code.co_filename).parent == _HERE:
        frame = frame.f_back
    if frame is None:
        return "kernel"
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


def located(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Let the function's errors name the kernel's line."""

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return function(*args, **kwargs)
        except KernelError:
            raise
        except PoblanoError as error:
            raise KernelError(f"{source_line()}: {error}") from None

    return call


def same(what: str, found: object, wanted: object) -> None:
    """Refuse what is not as it must be."""
    if found != wanted:
        raise PoblanoError(f"{what} must be {wanted}; got {found}")
