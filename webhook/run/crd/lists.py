"""Which lists of a Run are mappings by a key, and how long its lists and mappings may be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


def _by(*keys: str, **limits: int) -> dict[str, Any]:
    """A list of which no two items have the same values under the keys."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys), **limits}


# By class and field. Without a limit the API server reckons with as many items as a request of
# 3 MiB holds, and refuses rules that would cost too much then.
LISTS: Final[Mapping[tuple[str, str], dict[str, Any]]] = {
    ("RunSpec", "replicas"): {"maxProperties": 5},
    ("RunSpec", "ports"): _by("port", maxItems=16),
    ("ReplicaSpec", "byIndex"): _by("index", maxItems=1000),
    ("Resources", "claims"): _by("name"),
    ("PlacementModel", "capacity"): _by("class"),
    ("PlacementModel", "topologySpreadConstraints"): _by("topologyKey", "whenUnsatisfiable"),
    ("PodSecurityContext", "sysctls"): _by("name"),
    ("RunStatus", "conditions"): _by("type"),
}
