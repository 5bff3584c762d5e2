"""Objects as the API server has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]


def an_object(api_version: str, kind: str, metadata: str | Mapping[str, Any], spec: Any) -> Json:
    """An object of this kind; its metadata may be its name alone."""
    about = {"name": metadata} if isinstance(metadata, str) else dict(metadata)
    return {"apiVersion": api_version, "kind": kind, "metadata": about, "spec": spec}


def required_affinity(*terms: Any) -> Json:
    """Affinity for nodes that meet one of the terms."""
    required = {"nodeSelectorTerms": [*terms]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
