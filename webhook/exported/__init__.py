"""Export a policy set as admission policies in CEL. Pure."""
