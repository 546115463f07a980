"""Embedders and their worker."""
