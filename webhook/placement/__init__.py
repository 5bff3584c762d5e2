"""Placement fields and their algebra: tolerations, node affinity, merge, patch. Pure."""
