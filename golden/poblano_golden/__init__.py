"""Bit-exact numpy models of what the hardware computes; plain numbers and arrays only."""
