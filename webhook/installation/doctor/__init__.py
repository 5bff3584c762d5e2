"""Diagnose an installation: read the cluster once, then run pure checks."""
