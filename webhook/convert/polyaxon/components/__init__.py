"""Components and operations: Polyaxon's schema since version 1.1."""
