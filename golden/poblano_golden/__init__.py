"""Bit-exact numpy models of what the hardware computes; plain numbers and arrays only.

`layers` is not bit exact: it holds the float64 references of whole layers.
"""
