"""Sweeps: many configurations, their figures, and which of them are best."""
