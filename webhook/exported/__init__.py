"""PURE a policy set as admission policies that the API server runs itself, in CEL."""
