"""One line of a watch: what happened, to which object, at which version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from webhook.errors import ClusterError
from webhook.kube.answers import decode, from_status


@dataclass(frozen=True, slots=True)
class Event:
    """A watch event. A bookmark has no object but a version: all up to there has been sent."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    object: dict[str, Any]
    resource_version: str


def parse(line: bytes, where: str) -> Event:
    """Read one whole line. An ERROR event, and what is no event at all, raise ClusterError."""
    event = decode(line, where)
    kind, seen = event.get("type"), event.get("object")
    if not isinstance(seen, dict):
        raise ClusterError(f"{where}: an event without an object came")
    if kind == "ERROR":
        raise from_status(seen, where)
    if kind not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
        raise ClusterError(f"{where}: an event of the unknown type {kind!r} came")
    version = (seen.get("metadata") or {}).get("resourceVersion")
    if not isinstance(version, str) or not version:
        raise ClusterError(f"{where}: an event without a resourceVersion came")
    return Event(kind, seen, version)


def key_of(seen: dict[str, Any]) -> str:
    """An object's key in a cache: namespace/name, or the name where there is no namespace."""
    metadata = seen["metadata"]
    name: str = metadata["name"]
    return f"{metadata['namespace']}/{name}" if metadata.get("namespace") else name
