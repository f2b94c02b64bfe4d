"""The network on chip: routers with credits on a mesh or torus, in dimension order."""
