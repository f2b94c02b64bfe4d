"""Ports of routers: flits one way, credits the other."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from poblano.noc.flit import Fields, flit_fields
from poblano.noc.parameters import NocParameters

__all__ = ["flit_layout", "link"]


def flit_layout(parameters: NocParameters) -> data.StructLayout:
    """Return the layout of a flit; `poblano.noc.flit` says what its fields are."""
    return _layout(flit_fields(parameters))


def _layout(fields: Fields) -> data.StructLayout:
    return data.StructLayout(
        {name: f if isinstance(f, int) else _layout(f) for name, f in fields.items()}
    )


def link(parameters: NocParameters, channels: int | None = None) -> wiring.Signature:
    """Return the signature of a link, from the sender's side.

    Members: `valid`, at most one bit of which is 1: a flit for that channel; `flit`; `credit`, for
    every channel: 1 for a cycle is one flit that left the receiver's buffer, no more.
    """
    channels = parameters.channels if channels is None else channels
    return wiring.Signature(
        {"valid": Out(channels), "flit": Out(flit_layout(parameters)), "credit": In(channels)}
    )
