"""Runs of a cluster as a client sees them: find, submit, follow, log, account."""
