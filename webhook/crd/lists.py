"""Which lists of a placement are mappings by a key, and how long its lists may be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from webhook.placement.schema.limits import MAX_LISTED

if TYPE_CHECKING:
    from collections.abc import Mapping

# By class and field: what is added to the field's schema.
Lists: TypeAlias = "Mapping[tuple[str, str], dict[str, Any]]"

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def by(most: int, *keys: str) -> dict[str, Any]:
    """A list of which no two items have the same values under the keys; 0: of any length."""
    as_map = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
    return {**as_map, "maxItems": most} if most else as_map


def placement_lists(*classes: str) -> Lists:
    """The lists of the placement schema, of which `classes` have the fields of a placement."""
    of_each = {
        "tolerations": {"maxItems": MAX_LISTED},
        "topologySpreadConstraints": by(MAX_LISTED, "topologyKey", "whenUnsatisfiable"),
        "capacity": by(MAX_LISTED, "class"),
    }
    return {
        **{(name, field): of_each[field] for name in classes for field in of_each},
        ("PodSecurityContext", "sysctls"): by(MAX_LISTED, "name"),
        ("NodeSelector", "nodeSelectorTerms"): {"maxItems": MAX_LISTED},
        ("NodeAffinity", _PREFERRED): {"maxItems": MAX_LISTED},
        ("NodeSelectorTerm", "matchExpressions"): {"maxItems": MAX_LISTED},
        ("NodeSelectorTerm", "matchFields"): {"maxItems": MAX_LISTED},
        ("PodAffinity", _REQUIRED): {"maxItems": MAX_LISTED},
        ("PodAffinity", _PREFERRED): {"maxItems": MAX_LISTED},
        ("LabelSelector", "matchExpressions"): {"maxItems": MAX_LISTED},
    }
