"""Kernels: the layers of language models as programs of a slice."""
