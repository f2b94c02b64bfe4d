"""Layers of language models in float64: references that bound the error of the exact models.

Nothing here rounds to a format of the machine. Arrays are float64 of a stated shape, one sequence
at a time; sums run in numpy's order, so results are good to about 1e-15, not to the last bit.
A sequence of no tokens gives results of no tokens; any other axis of size 0 is refused. A NaN
stays in the tokens that depend on it.
"""
