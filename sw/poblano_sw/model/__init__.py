"""A real language model: its files, its tokens, its arithmetic in float, its precision policy."""
