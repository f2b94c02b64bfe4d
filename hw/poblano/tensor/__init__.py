"""The tensor engine: a grid of MX block dot product units with FP32 accumulators."""
