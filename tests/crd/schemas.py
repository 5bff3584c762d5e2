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


def keys_of_lists(schema: Json) -> dict[str, list[str]]:
    """The keys of lists that are mappings, by the name of the field that is one."""
    return {
        path.rpartition(".")[2]: node["x-kubernetes-list-map-keys"]
        for path, node in nodes(schema)
        if node.get("x-kubernetes-list-type") == "map"
    }


def opaque(schema: Json) -> set[str]:
    """The paths at which unknown fields are let be."""
    field = "x-kubernetes-preserve-unknown-fields"
    return {path for path, node in nodes(schema) if field in node}


def rules_of(schema: Json) -> set[str]:
    """Every rule that stands in it."""
    return {
        rule["rule"]
        for _, node in nodes(schema)
        for rule in node.get("x-kubernetes-validations", ())
    }


def carried(definition: Json) -> int:
    """How many bytes `kubectl apply` keeps of it in an annotation, as Go writes JSON."""
    text = json.dumps(definition, separators=(",", ":"), ensure_ascii=False)
    for sign in "<>&":
        text = text.replace(sign, rf"\u{ord(sign):04x}")
    return len(text.encode())
