"""A bundle: the folded settings of the policies that match a pod, and what they ask of nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from webhook.placement import node_affinity
from webhook.placement.settings import (
    CapacitySetting,
    MemberSetting,
    PlacementSetting,
    RequiredSetting,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webhook.placement.settings import (
        AllowedSetting,
        ListSetting,
        ScalarSetting,
        SpreadSetting,
        TolerationSetting,
    )
    from webhook.placement.shapes import Term, Toleration
    from webhook.placement.trace import Entry

NodeSetting: TypeAlias = MemberSetting | RequiredSetting | CapacitySetting


class Demand(NamedTuple):
    """A condition on a node's labels: the selector and one of the terms (None: no terms)."""

    selector: dict[str, str]
    terms: list[Term] | None

    @property
    def possible(self) -> bool:
        return node_affinity.satisfiable(self.terms, self.selector)


@dataclass(frozen=True, slots=True)
class Bundle:
    """The accepted settings, grouped by field, at most one for each key, and why others are not.

    "Hard" settings are requirements and overrides. `hard` is what they together require of a node's
    labels, `demanded` what the requirements alone do. `term_keys` are the label keys of all terms
    that the bundle may add. `specific` are the hard NoExecute tolerations. `settings` are those of
    all policies, including the lost ones.
    """

    policies: tuple[str, ...]
    settings: tuple[PlacementSetting, ...]
    members: dict[str, tuple[MemberSetting, ...]]
    scalars: tuple[ScalarSetting, ...]
    tolerations: tuple[TolerationSetting, ...]
    specific: tuple[Toleration, ...]
    allowed: tuple[AllowedSetting, ...]
    required: tuple[RequiredSetting, ...]
    lists: tuple[ListSetting, ...]
    spread: tuple[SpreadSetting, ...]
    capacity: tuple[CapacitySetting, ...]
    hard: Demand
    demanded: Demand
    term_keys: frozenset[str]
    contradictions: tuple[str, ...]
    trace: tuple[Entry, ...]
    warnings: tuple[str, ...]


def node_settings(bundle: Bundle) -> tuple[NodeSetting, ...]:
    """Return the settings of a bundle that restrict nodes, field by field."""
    return (*bundle.members.get("nodeSelector", ()), *bundle.required, *bundle.capacity)


def condition_of(setting: PlacementSetting) -> tuple[Term, ...] | None:
    """Return the terms of which one must hold; None for a nodeSelector key, or a mode without
    any."""
    match setting:
        case RequiredSetting():
            return setting.terms
        case CapacitySetting():
            return setting.condition
    return None


def limits_nodes(setting: PlacementSetting) -> bool:
    if isinstance(setting, MemberSetting):
        return setting.map == "nodeSelector"
    return condition_of(setting) is not None


def keys_of(setting: NodeSetting) -> frozenset[str]:
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
    if not settings:
        return base
    members = {w.key: w.value for w in settings if isinstance(w, MemberSetting)}
    return Demand({**base.selector, **members}, conjoined(base.terms, map(condition_of, settings)))
