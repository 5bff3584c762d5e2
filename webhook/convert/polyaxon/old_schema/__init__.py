"""The old schema, version 1, as polyaxon-schemas 0.2 to 0.6 had it."""
