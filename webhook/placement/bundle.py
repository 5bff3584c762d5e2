"""The bundle: what the policies that match a pod want together, before any pod is looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from webhook.placement import node_affinity

if TYPE_CHECKING:
    from webhook.placement.settings import (
        CapacitySetting,
        ListSetting,
        MemberSetting,
        PlacementSetting,
        RequiredSetting,
        ScalarSetting,
        SpreadSetting,
        TolerationSetting,
    )
    from webhook.placement.shapes import Term, Toleration
    from webhook.placement.trace import Entry


class Demand(NamedTuple):
    """A condition on a node's labels: the selector and one of the terms (None: no terms)."""

    selector: dict[str, str]
    terms: list[Term] | None

    @property
    def possible(self) -> bool:
        """Whether some node could meet it."""
        return node_affinity.satisfiable(self.terms, self.selector)


@dataclass(frozen=True, slots=True)
class Bundle:
    """The settings that stand, grouped by field, at most one a key; and why the others do not.

    "Hard" are requirements and overrides: `hard` is what they together demand of a node's labels,
    `demanded` what the requirements alone do. `term_keys` are the label keys of all terms that the
    bundle may add. `specific` are the hard NoExecute tolerations. `settings` are those of all
    policies, the lost ones too.
    """

    policies: tuple[str, ...]
    settings: tuple[PlacementSetting, ...]
    members: dict[str, tuple[MemberSetting, ...]]
    scalars: tuple[ScalarSetting, ...]
    tolerations: tuple[TolerationSetting, ...]
    specific: tuple[Toleration, ...]
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
