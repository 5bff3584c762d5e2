"""Convert Polyaxonfiles to Runs: version 1, and components and operations (1.1)."""
