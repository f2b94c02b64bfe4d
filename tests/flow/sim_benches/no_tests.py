"""A module without a test."""
