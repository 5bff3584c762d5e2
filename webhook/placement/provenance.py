"""Which policy is credited with which field of a pod's final placement.

A policy is credited with a field if the final pod has the value that the policy sets, even if
another source set it. So a second call on our own output gives the same credits. A credit is undone
by the name of its field, as far as that is specific enough.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from webhook.placement import node_affinity
from webhook.placement.fields import MAPS, SCALARS
from webhook.placement.pod import AFFINITY_LISTS, PREFERRED_NODES
from webhook.placement.topology import spread_pair

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.placement.capacity import CapacityClass
    from webhook.placement.placement_setting import PlacementSetting
    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import Term

_MEMBER: Final = re.compile(r"(\w+)\[(.*)\]", re.DOTALL)


def credits_of(
    policies: Iterable[str], settings: Iterable[PlacementSetting], final: PodPlacement
) -> dict[str, list[str]]:
    """For each policy the fields that it is credited with, sorted, without duplicates."""
    result: dict[str, list[str]] = {policy: [] for policy in policies}
    for setting in settings:
        if setting.holds_in(final) and setting.field not in result[setting.policy]:
            result[setting.policy].append(setting.field)
    for fields in result.values():
        fields.sort()
    return result


def has_condition(final: PodPlacement, terms: Sequence[Term]) -> bool:
    """Return whether every term of a pod's required affinity implies one of these."""
    pod_terms = [term for term in final.required or () if not node_affinity.is_empty(term)]
    return bool(pod_terms) and all(node_affinity.implied(pod_terms, terms))


def without_field(
    placement: PodPlacement, field: str, classes: Mapping[str, CapacityClass]
) -> PodPlacement | None:
    """Return the placement without the field's value; None if its name is not specific enough."""
    if field in SCALARS:
        changed: dict[str, Any] = {SCALARS[field].attribute: SCALARS[field].silent}
        return placement._replace(**changed)
    match = _MEMBER.fullmatch(field)
    if match is None:
        return None
    holder, key = match.groups()
    if holder in MAPS:
        attribute = MAPS[holder].attribute
        members = getattr(placement, attribute).items()
        changed = {attribute: {name: value for name, value in members if name != key}}
        return placement._replace(**changed)
    if holder == "tolerations":
        left = [
            toleration
            for toleration in placement.tolerations
            if (toleration.get("key") or "*") != key
        ]
        return placement._replace(tolerations=left)
    if holder == "topologySpreadConstraints":
        spread = [
            constraint
            for constraint in placement.topology_spread
            if ",".join(spread_pair(constraint)) != key
        ]
        return placement._replace(topology_spread=spread)
    if holder == "capacity" and key in classes:
        return without_class(placement, classes[key], None)
    return None


def without_class(
    placement: PodPlacement, capacity: CapacityClass, weight: int | None
) -> PodPlacement:
    """Return the placement without tolerations of a class and, with a weight, its preferences."""
    left = [
        toleration for toleration in placement.tolerations if toleration not in capacity.tolerations
    ]
    result = placement._replace(tolerations=left)
    if weight is not None:
        result = without_entries(result, PREFERRED_NODES, capacity.preferences(weight))
    return result


def without_entries(placement: PodPlacement, name: str, entries: Sequence[object]) -> PodPlacement:
    """Return the placement without entries of an affinity list."""
    left = {
        **placement.lists,
        name: [entry for entry in placement.lists.get(name, ()) if entry not in entries],
    }
    return placement._replace(lists={key: left[key] for key in AFFINITY_LISTS if left.get(key)})
