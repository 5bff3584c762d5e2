"""Operators of other projects beside a sandbox's control plane: one table, one installer."""
