"""A bundle: the folded settings of the policies that match a pod, and what they ask of nodes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from webhook.placement import node_affinity
from webhook.placement.capacity_setting import CapacitySetting
from webhook.placement.placement_setting import PlacementSetting
from webhook.placement.settings import MemberSetting, RequiredSetting

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from webhook.placement.shapes import Term, Toleration
    from webhook.placement.trace import Entry

# Those that are merged together, because together they limit nodes.
NodeSetting: TypeAlias = MemberSetting | RequiredSetting | CapacitySetting
S = TypeVar("S", bound=PlacementSetting)


class Demand(NamedTuple):
    """A condition on a node's labels: the selector and one of the terms (None: no terms)."""

    selector: dict[str, str]
    terms: list[Term] | None

    @property
    def possible(self) -> bool:
        return node_affinity.satisfiable(self.terms, self.selector)


@dataclass(frozen=True, slots=True)
class Bundle:
    """The accepted settings, at most one for each key, and why others are not.

    settings: those of all policies, including the lost ones
    by_class: the accepted ones
    members:  of these, those of each map
    on_nodes: those that limit nodes, field by field; a mode that does not is among them
    specific: the NoExecute tolerations of requirements and overrides
    hard:     what requirements and overrides together require of a node's labels; demanded: what
              requirements alone do
    term_keys: the label keys of all terms that the bundle may add
    """

    policies: tuple[str, ...]
    settings: tuple[PlacementSetting, ...]
    by_class: Mapping[type, tuple[Any, ...]]
    members: Mapping[str, tuple[MemberSetting, ...]]
    on_nodes: tuple[NodeSetting, ...]
    specific: tuple[Toleration, ...]
    hard: Demand
    demanded: Demand
    term_keys: frozenset[str]
    contradictions: tuple[str, ...]
    trace: tuple[Entry, ...]
    warnings: tuple[str, ...]

    def of(self, kind: type[S]) -> tuple[S, ...]:
        """Return the accepted settings of a class."""
        return self.by_class.get(kind, ())

    @property
    def accepted(self) -> Iterator[PlacementSetting]:
        """All accepted settings."""
        return chain.from_iterable(self.by_class.values())


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
    terms = conjoined(base.terms, [setting.condition for setting in settings])
    return Demand({**base.selector, **members}, terms)
