"""From an elaborated component to RTLIL: Amaranth's own steps, made quick for wide signals.

`amaranth.back.rtlil.convert` works bit by bit: it follows every combinational path between single
bits, and looks up the driver of each bit wherever it is used. For an array of units, whose ports
have tens of thousands of bits, that takes most of the time of an emission. The steps here are the
same and lead to the same netlist, but for the elements of arrays: a slice of a bus has no name of
its own.
"""

from __future__ import annotations

# pyright: reportPrivateUsage=false
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import Elaboratable, Value, _ast, _ir, _nir
from amaranth.hdl._ir import _compute_net_flows, _compute_ports

__all__ = ["rtlil_text"]

_BIT_WIDTH = 16
"""A net is the number of a cell, and below it, in so many bits, the number of an output bit."""

_CONSTANT = None
"""Stands for a wire where bits are constants."""

_NO_PATH = (_nir.Top, _nir.Instance, _nir.SyncReadPort, _nir.SyncWritePort)
"""Cells whose outputs, where they have any, depend on none of their inputs within a cycle."""


def rtlil_text(
    elaboratable: Elaboratable,
    name: str,
    platform: Any,
    ports: Mapping[str, tuple[Value, _ir.PortDirection]],
) -> str:
    """Return the RTLIL of a component and of the submodules that are not instances.

    Parameters
    ----------
    elaboratable, platform:
        What is converted, and what its `elaborate` is given.
    name:
        Of the outermost module; submodules have their path after it.
    ports:
        Name to signal and direction.

    Raises
    ------
    amaranth.hdl.CombinationalCycle
        If a signal depends on itself.
    """
    fragment = _ir.Fragment.get(elaboratable, platform)
    design = fragment.prepare(ports=ports, hierarchy=(name,))
    netlist = _Netlist()
    _Emitter(netlist, design).emit_fragment(design.fragment, None)
    netlist.check_comb_cycles()
    netlist.resolve_all_nets()
    if len(netlist.modules) > 1:
        _compute_net_flows(netlist)
    _compute_ports(netlist)

    text = rtlil.Design(emit_src=False)
    empty = rtlil.EmptyModuleChecker(netlist)
    names = _ast.SignalDict()
    for index, module in enumerate(netlist.modules):
        if not empty.is_empty(index):
            builder = text.module(".".join(module.name))
            _ModuleEmitter(builder, netlist, module, names, empty_checker=empty).emit()
    return str(text)


class _Netlist(_nir.Netlist):
    """A netlist that finds the driver of each bit once, and cycles cell by cell."""

    def add_value_cell(self, width: int, cell: _nir.Cell) -> _nir.Value:
        assert width <= 1 << _BIT_WIDTH
        first = self.add_cell(cell) << _BIT_WIDTH
        return _value(map(_nir.Net, range(first, first + width)))

    def check_comb_cycles(self) -> None:
        """Find all drivers, and follow single bits only where whole cells form a cycle."""
        drivers = _drivers(self.connections)
        if drivers is None or self._cells_form_a_cycle(drivers):
            super().check_comb_cycles()
        self.drivers = drivers or {}

    def resolve_value(self, value: _nir.Value) -> _nir.Value:
        drivers = self.drivers
        return _value([drivers[net] if net < 0 else net for net in value])

    def _cells_form_a_cycle(self, drivers: dict[_nir.Net, _nir.Net]) -> bool:
        graph: dict[int, set[int]] = {}
        for index, cell in enumerate(self.cells):
            if isinstance(cell, _nir.FlipFlop):
                inputs = {cell.clk, cell.arst}
            elif isinstance(cell, _NO_PATH):
                continue
            else:
                inputs = cell.input_nets()
            graph[index] = {drivers.get(net, net) >> _BIT_WIDTH for net in inputs}
        try:
            TopologicalSorter(graph).prepare()
        except CycleError:
            return True
        return False


def _drivers(connections: Mapping[_nir.Net, _nir.Net]) -> dict[_nir.Net, _nir.Net] | None:
    """Return the cell's output that drives each bit of a signal; None if signals form a cycle."""
    drivers: dict[_nir.Net, _nir.Net] = {}
    for net, source in connections.items():
        passed = {net}
        while source < 0:
            if source in passed:
                return None
            passed.add(source)
            source = drivers.get(source, connections[source])
        drivers |= dict.fromkeys(passed, source)
    return drivers


class _Emitter(_ir.NetlistEmitter):
    """Names the fields of structures, which are worth a look in a waveform, and no others."""

    def emit_signal_fields(self) -> None:
        super().emit_signal_fields()
        for fields in self.netlist.signal_fields.values():
            for path in [path for path in fields if any(isinstance(part, int) for part in path)]:
                del fields[path]


class _ModuleEmitter(rtlil.ModuleEmitter):
    def sigspec(self, *parts: Any) -> str:
        """Return the bits of all parts, the lowest first, as slices of wires and constants."""
        runs: list[tuple[Any, list[int]]] = []
        last, bits = _CONSTANT, [0]
        for part in parts:
            for net in (part,) if isinstance(part, _nir.Net) else part:
                wire, bit = self.nets[net] if net > 1 else (_CONSTANT, net)
                if not runs or wire is not last or (wire is not _CONSTANT and bit != bits[-1] + 1):
                    last, bits = wire, []
                    runs.append((wire, bits))
                bits.append(bit)
        chunks = [_slice(wire, bits) for wire, bits in reversed(runs)]
        return chunks[0] if len(chunks) == 1 else f"{{ {' '.join(chunks)} }}"


def _slice(wire: Any, bits: list[int]) -> str:
    if wire is _CONSTANT:
        return f"{len(bits)}'{''.join(str(int(bit)) for bit in reversed(bits))}"
    if len(bits) == 1:
        return f"{wire.name} [{bits[0]}]"
    return f"{wire.name} [{bits[-1]}:{bits[0]}]"


def _value(nets: Iterable[_nir.Net]) -> _nir.Value:
    """Return a value without a look at the type of each of its nets."""
    return tuple.__new__(_nir.Value, nets)
