"""Search for arithmetic: structures, moves between them, their cost by synthesis, their proof."""
