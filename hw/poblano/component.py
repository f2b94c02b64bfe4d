"""The base class of every block, and how a block that occurs many times is emitted once."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from amaranth.hdl import *
from amaranth.lib import wiring

__all__ = ["Component", "Emitter", "once"]


class Component(wiring.Component):
    """A block that remembers its keyword parameters and derives a stable module name from them.

    Subclasses take keyword-only parameters that have a meaningful, deterministic `repr`
    (numbers, strings, tuples, frozen dataclasses). Two components of the same class with equal
    parameters are the same hardware: `once` emits them as one module.
    """

    parameters: dict[str, Any]

    def __new__(cls, **parameters: Any) -> Component:
        """Record the parameters before `__init__` runs."""
        self = super().__new__(cls)
        object.__setattr__(self, "parameters", dict(parameters))
        return self

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Ports are attributes that the signature makes."""

    @property
    def latency(self) -> int | None:
        """Cycles from inputs to outputs; None where no single number says it.

        The manifest of an emission carries it.
        """
        return None

    @property
    def module_name(self) -> str:
        """`snake_case` of the class, and a digest of the parameters where there are any."""
        snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(self).__name__).lower()
        if not self.parameters:
            return f"poblano_{snake}"
        text = repr(sorted(self.parameters.items()))
        return f"poblano_{snake}_{hashlib.sha256(text.encode()).hexdigest()[:8]}"


class Emitter(Protocol):
    """What `once` needs of the platform that an emission runs under."""

    def instance(self, component: Component, ports: Mapping[str, Any]) -> Elaboratable:
        """Emit `component` if it is new, and return an instance of its module."""
        ...


def once(component: Component, platform: Any, **ports: Any) -> Elaboratable:
    """Return what stands for `component` in its parent.

    Under an emitter that is an instance of a module which is written once for all equal
    components; otherwise the component itself.

    Parameters
    ----------
    component:
        What is wanted. With `ports` it may serve as the pattern for any number of instances.
    platform:
        The `platform` argument of `elaborate`.
    ports:
        Values of the parent to connect the component's ports to; outputs need signals. Ports
        that are not named are the component's own signals. For wide or many instances this
        spares a signal, and an assignment, for each of them.
    """
    instance = getattr(platform, "instance", None)
    if instance is not None:
        return instance(component, ports)
    if not ports:
        return component
    copy = type(component)(**component.parameters)
    for name, value in ports.items():
        setattr(copy, name, value)
    return copy
