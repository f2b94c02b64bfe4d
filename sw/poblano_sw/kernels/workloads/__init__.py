"""Kernels with random numbers, and what must come out."""
