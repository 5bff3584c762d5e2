"""Answers to requests of the API server, over ASGI."""
