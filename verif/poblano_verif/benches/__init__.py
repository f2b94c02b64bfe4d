"""One cocotb module per block; `poblano_verif.registry` lists them."""
