"""Poblano: hardware of an LLM-inference accelerator, described in Amaranth."""
