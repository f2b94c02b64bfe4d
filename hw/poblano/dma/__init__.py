"""The DMA engine of a slice: moves between HBM and L1."""
