"""Simulate runs under policies, in virtual time, with the real evaluation and reconcile."""
