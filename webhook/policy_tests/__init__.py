"""Policy tests: documents that state what policies do to pods. Pure."""
