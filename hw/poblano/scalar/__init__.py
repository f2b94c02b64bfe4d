"""The scalar engine: a small in-order processor that issues commands."""
