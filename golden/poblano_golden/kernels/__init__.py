"""Layers bit for bit as the kernels of a slice compute them; `layers` has the float64 forms."""
