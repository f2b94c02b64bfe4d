"""The vector engine's elementary functions: exponentials, roots, reciprocals, sigmoid."""
