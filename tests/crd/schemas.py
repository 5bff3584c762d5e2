"""What tests of definitions look at: every schema in a schema, and what kubectl carries of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]
# TotalAnnotationSizeLimitB of k8s.io/apimachinery: all annotations of an object together.
MOST_BYTES = 262_144


def nodes(node: Any, path: str = "") -> Iterator[tuple[str, Json]]:
    """Every schema in a schema, with the path of what it is about."""
    yield path, node
    for field, child in node.get("properties", {}).items():
        yield from nodes(child, f"{path}.{field}")
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            yield from nodes(node[key], f"{path}[]")


def carried(definition: Json) -> int:
    """How many bytes `kubectl apply` keeps of it in an annotation."""
    return len(json.dumps(definition, separators=(",", ":"), ensure_ascii=False).encode())
