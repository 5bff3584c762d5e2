"""Runs out of the documents of other systems."""
