"""Which policy is credited with which field of a pod's final placement.

A policy is credited with a field if the final pod has the value that the policy sets, even if
another source set it. So a second call on our own output gives the same credits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.placement import node_affinity
from webhook.placement.fields import MAPS
from webhook.placement.pod import PREFERRED_NODES
from webhook.placement.settings import (
    AllowedSetting,
    CapacitySetting,
    ListSetting,
    MemberSetting,
    RequiredSetting,
    ScalarSetting,
    SpreadSetting,
    TolerationSetting,
)
from webhook.placement.tolerations import covered

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webhook.placement.pod import PodPlacement
    from webhook.placement.settings import PlacementSetting
    from webhook.placement.shapes import Term


def credits_of(
    policies: Iterable[str], settings: Iterable[PlacementSetting], final: PodPlacement
) -> dict[str, list[str]]:
    """For each policy the fields that it is credited with, sorted, without duplicates."""
    result: dict[str, list[str]] = {policy: [] for policy in policies}
    for setting in settings:
        if holds(setting, final) and setting.field not in result[setting.policy]:
            result[setting.policy].append(setting.field)
    for fields in result.values():
        fields.sort()
    return result


def holds(setting: PlacementSetting, final: PodPlacement) -> bool:
    match setting:
        case MemberSetting():
            members = getattr(final, MAPS[setting.map].attribute)
            return setting.key in members and bool(members[setting.key] == setting.value)
        case ScalarSetting():
            if getattr(final, setting.row.attribute) != setting.value:
                return False
            # A maximum is set only if it is less than the value that the API server fills in.
            return not setting.is_maximum or int(setting.value) < int(setting.row.silent)
        case AllowedSetting():
            return False
        case TolerationSetting():
            return setting.toleration in final.tolerations
        case RequiredSetting():
            return _required(setting.terms, final)
        case ListSetting():
            own = final.lists.get(setting.name, ())
            return all(item in own for item in setting.entries)
        case SpreadSetting():
            return setting.constraint in final.topology_spread
        case CapacitySetting():
            return _capacity(setting, final)
    raise TypeError(setting)


def _required(terms: Sequence[Term], final: PodPlacement) -> bool:
    own = [term for term in final.required or () if not node_affinity.is_empty(term)]
    return bool(own) and all(node_affinity.implied(own, terms))


def _capacity(setting: CapacitySetting, final: PodPlacement) -> bool:
    terms = setting.condition
    if setting.mode.does_nothing or (terms is not None and not _required(terms, final)):
        return False
    if setting.mode.prefers:
        own = final.lists.get(PREFERRED_NODES, ())
        if not all(item in own for item in setting.capacity.preferences(setting.weight)):
            return False
    tolerations = setting.capacity.tolerations if setting.mode.tolerates else ()
    return all(covered(each, final.tolerations) for each in tolerations)
