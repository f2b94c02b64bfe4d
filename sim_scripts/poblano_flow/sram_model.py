"""The Verilog model of an SRAM, in place of what the Verilog writer makes of wide strobes.

A technology's macro or a memory compiler's output takes its place under the same module name.
"""

from __future__ import annotations

from poblano.l1.sram import Sram

__all__ = ["sram_ports", "sram_verilog"]


def sram_ports(sram: Sram) -> dict[str, tuple[str, int]]:
    """Return name to direction and width of the ports: the component's, and the clock."""
    address_width = len(sram.read_address)
    return {
        "clk": ("input", 1),
        "read_enable": ("input", 1),
        "read_address": ("input", address_width),
        "write_strobe": ("input", sram.width // 8),
        "write_address": ("input", address_width),
        "write_data": ("input", sram.width),
        "read_data": ("output", sram.width),
    }


def sram_verilog(name: str, sram: Sram) -> str:
    """Return a module that behaves as `sram` does; one array a byte, so that every tool copes.

    Reads and writes take the clock's rising edge; a read in the cycle of a write to the same
    address returns the old word. The words start at zero in simulation.
    """
    ports = sram_ports(sram)
    declarations = "".join(
        f"  {direction} [{width - 1}:0] {port};\n" for port, (direction, width) in ports.items()
    )
    return f"""\
module {name}({", ".join(ports)});
{declarations}\
  genvar lane;
  generate
    for (lane = 0; lane < {sram.width // 8}; lane = lane + 1) begin : bytes
      reg [7:0] words [0:{sram.depth - 1}];
      reg [7:0] word;
`ifndef SYNTHESIS
      integer index;
      initial begin
        word = 0;
        for (index = 0; index < {sram.depth}; index = index + 1)
          words[index] = 0;
      end
`endif
      always @(posedge clk) begin
        if (read_enable)
          word <= words[read_address];
        if (write_strobe[lane])
          words[write_address] <= write_data[8 * lane +: 8];
      end
      assign read_data[8 * lane +: 8] = word;
    end
  endgenerate
endmodule
"""
