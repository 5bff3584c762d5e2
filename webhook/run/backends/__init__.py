"""Render a Run as the object of another engine."""
