"""The placement schema and its algebra: tolerations, node affinity, merge, patch. Pure."""
