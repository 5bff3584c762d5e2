"""The keys of a document, for tests that it uses every field of a schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def keys(node: Any) -> Iterator[str]:
    """Every key of every mapping in a document."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield key
            yield from keys(value)
    elif isinstance(node, list):
        for item in node:
            yield from keys(item)
