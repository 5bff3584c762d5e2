"""Kubernetes' rules for label selectors of matchExpressions, written a second time for tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def holds(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether the selector matches; the rules of Kubernetes' docs."""
    for expression in selector["matchExpressions"]:
        key, values = expression["key"], expression.get("values")
        met = {
            "Exists": key in labels,
            "DoesNotExist": key not in labels,
            "In": labels.get(key) in (values or ()),
            "NotIn": labels.get(key) not in (values or ()),
        }[expression["operator"]]
        if not met:
            return False
    return True


def calls(
    entries: Iterable[Mapping[str, Any]], namespace: Mapping[str, str], pod: Mapping[str, str]
) -> int:
    """How many of a webhook configuration's entries want to see the pod."""
    return sum(
        holds(entry["namespaceSelector"], namespace) and holds(entry["objectSelector"], pod)
        for entry in entries
    )
