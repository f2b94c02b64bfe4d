"""The host port of a slice: its registers, their AXI4-Lite slave, and the AXI4 window on L1."""
