"""The ideal memory of the timing contract as a component: `hdl/ideal_memory.v`."""

from __future__ import annotations

from importlib.resources import files

from amaranth.lib.wiring import In, Out

from poblano.axi import axi4
from poblano.dma.timing import MEMORY_LATENCY
from poblano.verilog_component import VerilogComponent
from poblano_golden.errors import PoblanoError

__all__ = ["BACK_DOOR_WIDTH", "IdealMemory"]

BACK_DOOR_WIDTH = 32
"""Bits of an address and of a length at the back door."""


class IdealMemory(VerilogComponent):
    """An AXI4 memory with a fixed latency, and a back door to files; the Verilog says how.

    Parameters
    ----------
    width, size:
        Bytes of the data bus, and of the memory.
    address_width, id_width:
        Bits of the bus's addresses and identifiers.
    name:
        What the names of the files at the back door begin with, in the run's folder.
    latency:
        Cycles from an address to its first read beat, and from a last write beat to the response.

    Members
    -------
    axi:
        The bus, whose master is outside.
    read_beats, write_beats:
        Beats transferred since reset.
    load, dump:
        At a clock edge at which one is 1, the file NAME.load is read to `address`, or written to
        NAME.dump from there; `length` bytes.

    Raises
    ------
    PoblanoError
        If `size` is not a multiple of `width`, or too large for the back door.
    """

    source = files("poblano_verif") / "hdl" / "ideal_memory.v"

    def __init__(
        self,
        *,
        width: int,
        size: int,
        address_width: int,
        id_width: int = 1,
        name: str = "memory",
        latency: int = MEMORY_LATENCY,
    ) -> None:
        if size % width or not 0 < size < 1 << (BACK_DOOR_WIDTH - 1):
            raise PoblanoError(
                f"the bytes of an ideal memory must be a multiple of {width} in "
                f"1..{(1 << (BACK_DOOR_WIDTH - 1)) - 1}; got {size}"
            )
        self.values = {
            "WIDTH": width,
            "SIZE": size,
            "LATENCY": latency,
            "ADDRESS_WIDTH": address_width,
            "ID_WIDTH": id_width,
            "NAME": name,
        }
        super().__init__(
            {
                "axi": In(axi4(width=width, address_width=address_width, id_width=id_width)),
                "read_beats": Out(64),
                "write_beats": Out(64),
                "load": In(1),
                "dump": In(1),
                "address": In(BACK_DOOR_WIDTH),
                "length": In(BACK_DOOR_WIDTH),
            }
        )
