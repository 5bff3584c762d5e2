"""Secrets: where they are, and their data."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from webhook.api_paths import CollectionPath

if TYPE_CHECKING:
    from collections.abc import Mapping


def secrets(namespace: str) -> CollectionPath:
    """Return the path of a namespace's Secrets."""
    return CollectionPath("v1", "secrets", namespace)


def data_of(secret: Mapping[str, Any] | None) -> dict[str, bytes]:
    """Return a Secret's decoded data; empty without a Secret.

    Invalid base64, which the API server rejects, is empty.
    """
    data = (secret or {}).get("data") or {}
    return {key: _decoded(value) for key, value in data.items()}


def _decoded(value: object) -> bytes:
    try:
        return base64.b64decode(str(value))
    except ValueError:
        return b""
