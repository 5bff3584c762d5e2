"""Certificates: authority, issue, rotation. Pure; knows nothing of webhook."""
