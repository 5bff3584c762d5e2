"""Which lists of these documents are mappings by a key, and how long lists and texts may be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.crd.lists import by, placement_lists
from webhook.placement.schema.limits import MAX_LISTED
from webhook.placement.schema.syntax import MAX_SUBDOMAIN

if TYPE_CHECKING:
    from webhook.crd.lists import Lists

_PLACEMENTS: Final = ("Defaults", "PlacementSettings")
# Rules look at each key.
_MAPPINGS: Final = (
    *((name, field) for name in _PLACEMENTS for field in ("nodeSelector", "labels", "annotations")),
    ("LabelSelector", "matchLabels"),
    ("Shape", "labels"),
)
_KEY_LISTS: Final = (
    ("PodAffinityTerm", "matchLabelKeys"),
    ("PodAffinityTerm", "mismatchLabelKeys"),
    ("TopologySpreadConstraint", "matchLabelKeys"),
)
_REPORTS: Final = ("PolicyStatus", "ClassStatus", "ExceptionStatus")

LISTS: Final[Lists] = {
    **placement_lists(*_PLACEMENTS),
    **{at: {"maxProperties": MAX_LISTED} for at in _MAPPINGS},
    **{at: {"maxItems": MAX_LISTED} for at in _KEY_LISTS},
    ("PolicySpec", "exclude"): {"maxItems": MAX_LISTED},
    ("ExceptionSpec", "policies"): {"x-kubernetes-list-type": "set"},
    # Longer than any moment is: what is a little too long is told of in words, by its rule.
    ("ExceptionSpec", "until"): {"maxLength": MAX_SUBDOMAIN},
    ("CapacityClassSpec", "nodes"): {"maxItems": MAX_LISTED},
    ("Shape", "matchExpressions"): {"maxItems": MAX_LISTED},
    ("Shape", "taints"): {"maxItems": MAX_LISTED},
    **{(name, "conditions"): by(0, "type") for name in _REPORTS},
    **{(name, "servedHashes"): by(0, "replica") for name in _REPORTS},
}
