"""The Run, pure: its model, its replicas, and what to do about them now."""
