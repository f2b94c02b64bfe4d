"""Area, timing and power of a design in a cell library, before layout; FPGA fit and frequency."""
