"""A Run's document without its nulls, as the API server drops them.

Source: PruneNonNullableNullsWithoutDefaults and Default, k8s.io/apiextensions-apiserver,
pkg/apiserver/schema/defaulting: a null in a field that is known, or in a mapping, is left out; what
stays is wrong (an unknown field, an item of a list), or a pod's.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from webhook.run.json_schema import schema

Json = dict[str, Any]


def without_nulls(document: Any) -> Any:
    """The document, as plain values, without the nulls that mean nothing."""
    return _pruned(document, _schema())


@cache
def _schema() -> Json:
    return schema()


def _pruned(value: Any, node: Json) -> Any:
    if "$ref" in node:
        node = _schema()["$defs"][node["$ref"].rpartition("/")[2]]
    match value:
        case list():
            return [_pruned(item, node.get("items", {})) for item in value]
        case dict():
            known = node.get("properties", {})
            others = [*node.get("patternProperties", {}).values(), node.get("additionalProperties")]
            other = others[0] if isinstance(others[0], dict) else None
            return {
                key: _pruned(child, known.get(key, other or {}))
                for key, child in value.items()
                if child is not None or (key not in known and other is None)
            }
    return value
