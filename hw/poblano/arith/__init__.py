"""Exact dot products of MX blocks and IEEE 754 binary32 arithmetic."""
