"""The settings about what a node's labels must be, whatever field they are written in."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from webhook.placement import node_affinity
from webhook.placement.bundle import Demand
from webhook.placement.settings import (
    CapacitySetting,
    MemberSetting,
    PlacementSetting,
    RequiredSetting,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webhook.placement.bundle import Bundle
    from webhook.placement.shapes import Term

NodeSetting: TypeAlias = MemberSetting | RequiredSetting | CapacitySetting


def node_settings(bundle: Bundle) -> tuple[NodeSetting, ...]:
    """Those of a bundle, field by field."""
    return (*bundle.members.get("nodeSelector", ()), *bundle.required, *bundle.capacity)


def condition_of(setting: PlacementSetting) -> tuple[Term, ...] | None:
    """The terms of which one must hold; None for a nodeSelector key, or a mode without any."""
    match setting:
        case RequiredSetting():
            return setting.terms
        case CapacitySetting():
            return setting.condition
    return None


def limits_nodes(setting: PlacementSetting) -> bool:
    """Whether the setting asks something of a node's labels."""
    if isinstance(setting, MemberSetting):
        return setting.map == "nodeSelector"
    return condition_of(setting) is not None


def keys_of(setting: NodeSetting) -> frozenset[str]:
    """The label keys that the setting is about."""
    match setting:
        case MemberSetting():
            return frozenset({setting.key})
        case CapacitySetting():
            return setting.capacity.keys
    return node_affinity.keys(setting.terms)


def conjoined(
    terms: list[Term] | None, conditions: Iterable[Sequence[Term] | None]
) -> list[Term] | None:
    """`terms` AND every condition that is one; None for no condition. Raises TooManyTerms."""
    for condition in conditions:
        if condition is not None:
            terms = list(condition) if terms is None else node_affinity.narrowed(terms, condition)
    return terms


def with_settings(base: Demand, settings: Sequence[NodeSetting]) -> Demand:
    """`base` with the conditions of more settings."""
    if not settings:
        return base
    members = {w.key: w.value for w in settings if isinstance(w, MemberSetting)}
    return Demand({**base.selector, **members}, conjoined(base.terms, map(condition_of, settings)))
