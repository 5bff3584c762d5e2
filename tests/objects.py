"""Objects as the API server has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]


def an_object(
    api_version: str,
    kind: str,
    metadata: str | Mapping[str, Any],
    spec: Any = None,
    **more: Any,
) -> Json:
    """An object of this kind, with a spec if there is one; its metadata may be its name alone."""
    about = {"name": metadata} if isinstance(metadata, str) else dict(metadata)
    fields = more if spec is None else {"spec": spec, **more}
    return {"apiVersion": api_version, "kind": kind, "metadata": about, **fields}


def controlled_by(owner: Json) -> list[Json]:
    """What `ownerReferences` says of the one that controls an object."""
    known = {key: owner["metadata"][key] for key in ("name", "uid")}
    return [{"apiVersion": owner["apiVersion"], "kind": owner["kind"], **known, "controller": True}]


def required_affinity(*terms: Any) -> Json:
    """Affinity for nodes that meet one of the terms."""
    required = {"nodeSelectorTerms": [*terms]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
