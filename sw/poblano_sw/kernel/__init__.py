"""The kernel language: Python functions over tensors in L1 and HBM that produce programs."""

from __future__ import annotations

from poblano_sw.kernel.builder import Builder
from poblano_sw.kernel.errors import KernelError
from poblano_sw.kernel.passes import Mask
from poblano_sw.kernel.tensors import BF16, FP16, FP32, INT8, UINT32, Blocks, Matrix

__all__ = [
    "BF16",
    "FP16",
    "FP32",
    "INT8",
    "UINT32",
    "Blocks",
    "Builder",
    "KernelError",
    "Mask",
    "Matrix",
]
