"""The setting of a capacity class: its mode, share and fallback, and what it does to a pod."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

from webhook.placement.placement_setting import PlacementSetting
from webhook.placement.pod import PREFERRED_NODES, REQUIRED_NODES
from webhook.placement.provenance import has_condition, without_class
from webhook.placement.tolerations import covered

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.placement.capacity import CapacityClass, Mode
    from webhook.placement.fallback import Fallback, History
    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import Term, Toleration


@dataclass(frozen=True, kw_only=True)
class CapacitySetting(PlacementSetting):
    """One capacity class and its mode.

    share:    the position of its share, if it is of a split
    fallback: when the mode is given up; given_up: it is, and `mode` is what is left
    """

    capacity: CapacityClass
    mode: Mode
    weight: int
    share: int | None = None
    fallback: Fallback | None = None
    given_up: bool = False

    @cached_property
    def field(self) -> str:
        """For example capacity[spot]."""
        return f"capacity[{self.capacity.name}]"

    @property
    def place(self) -> tuple[str | int, ...] | None:
        return None if self.share is None else ("split", self.share)

    @property
    def describe_value(self) -> str:
        if self.fallback and self.given_up:
            return f"{self.mode} instead of Constrain, {self.fallback.words}"
        return self.mode.value

    @property
    def describe_limit(self) -> str:
        return f"class {self.capacity.name} with mode {self.mode}"

    def precludes(self, later: Self) -> bool:
        if self.field != later.field:
            return False
        if self.part == later.part != "requirements" or later.is_default:
            return True
        # None conflicts with every other mode, although no node contradicts it.
        gives_way = self.mode.does_nothing or later.mode.does_nothing
        return self.agrees(later) or gives_way or not self.mode.compatible(later.mode)

    def agrees(self, other: Self) -> bool:
        return (self.mode, self.weight) == (other.mode, other.weight)

    def contradicts(self, other: Self) -> bool:
        return not self.mode.compatible(other.mode)

    @property
    def accepts_some(self) -> bool:
        return self.part == "requirements"

    def loses_to(self, earlier: Self, *, some_accepted: bool) -> bool:
        if self.is_default:
            return True
        if not earlier.accepts_some:
            return not some_accepted
        # With None it is unknown to which setting it has lost.
        if self.mode.does_nothing or earlier.mode.does_nothing:
            return self.mode.does_nothing
        return not earlier.mode.compatible(self.mode)

    @property
    def condition(self) -> tuple[Term, ...] | None:
        """None if the mode allows every node."""
        return self.mode.condition(self.capacity)

    @property
    def tolerated(self) -> Sequence[Toleration]:
        return self.capacity.tolerations if self.mode.tolerates else ()

    @property
    def writes(self) -> Iterator[str]:
        yield self.field
        if not self.mode.does_nothing:
            yield from written_by_class(self.capacity)

    def holds_in(self, final: PodPlacement) -> bool:
        terms = self.condition
        if self.mode.does_nothing or (terms is not None and not has_condition(final, terms)):
            return False
        if self.mode.prefers:
            preferences = final.lists.get(PREFERRED_NODES, ())
            if not all(term in preferences for term in self.capacity.preferences(self.weight)):
                return False
        return all(covered(toleration, final.tolerations) for toleration in self.tolerated)

    def undone(self, placement: PodPlacement) -> PodPlacement:
        return without_class(placement, self.capacity, self.weight)

    def gives_up(self, history: History) -> bool:
        rule = self.fallback
        return rule is not None and rule.lasts_until(self.capacity.name, history) is not None

    def give_up(self) -> Self:
        return replace(self, mode=self.fallback.then, given_up=True) if self.fallback else self


def written_by_class(capacity: CapacityClass) -> Iterator[str]:
    """Yield the fields of a pod that a capacity class may set."""
    yield from (
        f"tolerations[{toleration.get('key') or '*'}]" for toleration in capacity.tolerations
    )
    yield REQUIRED_NODES
    yield PREFERRED_NODES
