"""Which lists of a Run are mappings by a key, and how long its lists and mappings may be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.run.model.checks import MAX_LISTED
from webhook.run.model.replica import MAX_OVERRIDES
from webhook.run.model.spec import MAX_PORTS
from webhook.run.roles import ROLES

if TYPE_CHECKING:
    from collections.abc import Mapping

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def _by(most: int, *keys: str) -> dict[str, Any]:
    """A list of which no two items have the same values under the keys."""
    by = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
    return {**by, "maxItems": most} if most else by


# By class and field. Without a limit the API server reckons with as many items as a request of
# 3 MiB holds, and refuses rules that would cost too much then.
LISTS: Final[Mapping[tuple[str, str], dict[str, Any]]] = {
    ("RunSpec", "replicas"): {"maxProperties": max(len(roles.known) for roles in ROLES.values())},
    ("RunSpec", "ports"): _by(MAX_PORTS, "port"),
    ("ReplicaSpec", "byIndex"): _by(MAX_OVERRIDES, "index"),
    ("Resources", "claims"): _by(MAX_LISTED, "name"),
    ("Environment", "tolerations"): {"maxItems": MAX_LISTED},
    ("Environment", "topologySpreadConstraints"): _by(
        MAX_LISTED, "topologyKey", "whenUnsatisfiable"
    ),
    ("Environment", "capacity"): _by(MAX_LISTED, "class"),
    ("PodSecurityContext", "sysctls"): _by(MAX_LISTED, "name"),
    ("NodeSelector", "nodeSelectorTerms"): {"maxItems": MAX_LISTED},
    ("NodeAffinity", _PREFERRED): {"maxItems": MAX_LISTED},
    ("NodeSelectorTerm", "matchExpressions"): {"maxItems": MAX_LISTED},
    ("NodeSelectorTerm", "matchFields"): {"maxItems": MAX_LISTED},
    ("PodAffinity", _REQUIRED): {"maxItems": MAX_LISTED},
    ("PodAffinity", _PREFERRED): {"maxItems": MAX_LISTED},
    ("LabelSelector", "matchExpressions"): {"maxItems": MAX_LISTED},
    ("RunStatus", "conditions"): _by(0, "type"),
}
