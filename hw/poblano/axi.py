"""The AXI4 and AXI4-Lite interfaces (AMBA AXI4, ARM IHI 0022)."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from poblano.axi_limits import BOUNDARY, MAX_BEATS

__all__ = [
    "BOUNDARY",
    "MAX_BEATS",
    "Burst",
    "Response",
    "axi4",
    "axi4_lite",
    "axi4_read",
    "axi4_write",
    "forward",
]


class Response(enum.Enum, shape=2):
    """xRESP."""

    OKAY = 0
    EXOKAY = 1
    SLVERR = 2
    DECERR = 3


class Burst(enum.Enum, shape=2):
    """AxBURST."""

    FIXED = 0
    INCR = 1
    WRAP = 2


def _address(channel: str, address_width: int, id_width: int) -> dict[str, wiring.Member]:
    return {
        f"{channel}id": Out(id_width),
        f"{channel}addr": Out(address_width),
        f"{channel}len": Out(8),
        f"{channel}size": Out(3),
        f"{channel}burst": Out(2),
        f"{channel}valid": Out(1),
        f"{channel}ready": In(1),
    }


def _read(width: int, address_width: int, id_width: int) -> dict[str, wiring.Member]:
    return {
        **_address("ar", address_width, id_width),
        "rid": In(id_width),
        "rdata": In(8 * width),
        "rresp": In(2),
        "rlast": In(1),
        "rvalid": In(1),
        "rready": Out(1),
    }


def _write(width: int, address_width: int, id_width: int) -> dict[str, wiring.Member]:
    return {
        **_address("aw", address_width, id_width),
        "wdata": Out(8 * width),
        "wstrb": Out(width),
        "wlast": Out(1),
        "wvalid": Out(1),
        "wready": In(1),
        "bid": In(id_width),
        "bresp": In(2),
        "bvalid": In(1),
        "bready": Out(1),
    }


def axi4_read(*, width: int, address_width: int, id_width: int = 1) -> wiring.Signature:
    """Return the read channels of an AXI4 master with a data bus of `width` bytes."""
    return wiring.Signature(_read(width, address_width, id_width))


def axi4_write(*, width: int, address_width: int, id_width: int = 1) -> wiring.Signature:
    """Return the write channels of an AXI4 master with a data bus of `width` bytes."""
    return wiring.Signature(_write(width, address_width, id_width))


def axi4(*, width: int, address_width: int, id_width: int = 1) -> wiring.Signature:
    """Return all five channels of an AXI4 master with a data bus of `width` bytes."""
    return wiring.Signature(
        {**_read(width, address_width, id_width), **_write(width, address_width, id_width)}
    )


def axi4_lite(*, address_width: int) -> wiring.Signature:
    """Return an AXI4-Lite master with a data bus of 32 bits."""
    return wiring.Signature(
        {
            "awaddr": Out(address_width),
            "awprot": Out(3),
            "awvalid": Out(1),
            "awready": In(1),
            "wdata": Out(32),
            "wstrb": Out(4),
            "wvalid": Out(1),
            "wready": In(1),
            "bresp": In(2),
            "bvalid": In(1),
            "bready": Out(1),
            "araddr": Out(address_width),
            "arprot": Out(3),
            "arvalid": Out(1),
            "arready": In(1),
            "rdata": In(32),
            "rresp": In(2),
            "rvalid": In(1),
            "rready": Out(1),
        }
    )


def forward(m: Module, signature: wiring.Signature, master, port) -> None:
    """Connect a part's master interface to a port of its parent that has at least its channels.

    `signature` is the part's, such as `axi4_read(...)`; `port` may be all of `axi4(...)`.
    """
    for name, member in signature.members.items():
        inner, outer = getattr(master, name), getattr(port, name)
        m.d.comb += outer.eq(inner) if member.flow == Out else inner.eq(outer)
