"""Policy tests: documents that say what policies do to pods, and the judging of them. Pure."""
