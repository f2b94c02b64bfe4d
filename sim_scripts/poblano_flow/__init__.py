"""The command line and the flows: emit, lint, simulate, waves, area, bench."""
