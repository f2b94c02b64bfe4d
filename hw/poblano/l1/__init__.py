"""The scratchpad of a slice, and access to byte runs in it."""
