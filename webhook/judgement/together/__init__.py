"""Check policies against each other."""
