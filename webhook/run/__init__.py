"""The Run: its model, its plan, and reconciling it. Pure."""
