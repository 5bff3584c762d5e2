"""The classes of settings, one for each form of field; `capacity_setting` has one more."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self, TypeGuard

from webhook.placement import label_values, runtime_class, topology
from webhook.placement.fields import MAPS
from webhook.placement.nodes import format_requirement
from webhook.placement.placement_setting import PlacementSetting
from webhook.placement.pod import (
    AFFINITY_LISTS,
    REQUIRED,
    REQUIRED_LISTS,
    REQUIRED_NODES,
)
from webhook.placement.provenance import has_condition, without_entries
from webhook.placement.tolerations import covers, normal
from webhook.placement.trace import QUOTE_LIMIT, quoted, quoted_both
from webhook.shortening import cut

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Sequence

    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import Json, JsonObject, Term, Toleration
    from webhook.placement.tolerations import Pattern


@dataclass(frozen=True, kw_only=True)
class _ValueSetting(PlacementSetting):
    """One value, by itself or by a key."""

    value: Json

    @property
    def describe_value(self) -> str:
        return quoted(self.value)

    def describe_both(self, other: Self) -> tuple[str, str]:
        """Long values are cut so that they differ."""
        texts = self.describe_value, other.describe_value
        return texts if texts[0] != texts[1] else quoted_both(self.value, other.value)

    def agrees(self, other: Self) -> bool:
        return bool(self.value == other.value)


@dataclass(frozen=True, kw_only=True)
class MemberSetting(_ValueSetting):
    """One key of nodeSelector, labels, annotations or securityContext."""

    map: str
    key: str

    @cached_property
    def field(self) -> str:
        """For example nodeSelector[pool]."""
        return f"{self.map}[{self.key}]"

    @property
    def place(self) -> tuple[str | int, ...]:
        return (self.map, self.key)

    @property
    def describe_limit(self) -> str:
        """For example pool=gpu."""
        return f"{self.key}={self.value}"

    @property
    def weakens(self) -> str:
        return self.row.weakens(self.key, self.value, is_default=self.is_default)

    @property
    def node_terms(self) -> tuple[Term, ...] | None:
        if self.map != "nodeSelector":
            return None
        return ({"matchExpressions": [label_values.equal(self.key, str(self.value))]},)

    def holds_in(self, final: PodPlacement) -> bool:
        members = getattr(final, MAPS[self.map].attribute)
        return self.key in members and bool(members[self.key] == self.value)


@dataclass(frozen=True, kw_only=True)
class ScalarSetting(_ValueSetting):
    """A field that is one text or number."""

    name: str
    value: str | int

    @cached_property
    def field(self) -> str:
        return self.name

    @property
    def place(self) -> tuple[str | int, ...]:
        return (self.name,)

    @property
    def is_maximum(self) -> bool:
        return self.part == "requirements" and self.row.requirement == "maximum"

    @property
    def describe_value(self) -> str:
        return f"at most {self.value}" if self.is_maximum else quoted(self.value)

    @property
    def weakens(self) -> str:
        return self.row.weakens("", self.value, is_default=self.is_default)

    def leaves_room(self, later: ScalarSetting) -> bool:
        """Return whether a later setting for the field is compatible: it is within this maximum."""
        return self.is_maximum and (later.is_maximum or int(later.value) <= int(self.value))

    def precludes(self, later: Self) -> bool:
        return self.name == later.name and not self.leaves_room(later)

    @property
    def accepts_some(self) -> bool:
        return self.is_maximum

    def loses_to(self, earlier: Self, *, some_accepted: bool) -> bool:
        # The earlier one may have lost to a maximum that leaves room for this one.
        return earlier.precludes(self) and (earlier.is_maximum or not some_accepted)

    @property
    def tolerated(self) -> Sequence[Toleration]:
        """A RuntimeClass is not known, and may tolerate every taint."""
        return (runtime_class.EVERY_TAINT,) if self.name == runtime_class.FIELD else ()

    def holds_in(self, final: PodPlacement) -> bool:
        if getattr(final, self.row.attribute) != self.value:
            return False
        # A maximum is set only if it is less than the value that the API server fills in.
        return not self.is_maximum or int(self.value) < int(self.row.silent)


@dataclass(frozen=True, kw_only=True)
class TolerationSetting(PlacementSetting):
    """One toleration."""

    toleration: Toleration

    @cached_property
    def field(self) -> str:
        """For example tolerations[nvidia.com/gpu]."""
        return f"tolerations[{self.toleration.get('key') or '*'}]"

    @property
    def describe_value(self) -> str:
        return quoted(self.toleration)

    @property
    def listed_value(self) -> Json:
        return [self.toleration]

    @property
    def identity(self) -> Hashable:
        return type(self), normal(self.toleration).reach

    def precludes(self, later: Self) -> bool:
        return covers(self.toleration, later.toleration)

    def agrees(self, other: Self) -> bool:
        # They differ only where both are about the same taints and give other seconds.
        first, second = normal(self.toleration), normal(other.toleration)
        return first.reach != second.reach or first.seconds == second.seconds

    @property
    def tolerated(self) -> Sequence[Toleration]:
        return (self.toleration,)

    def holds_in(self, final: PodPlacement) -> bool:
        return self.toleration in final.tolerations

    def undone(self, placement: PodPlacement) -> PodPlacement:
        return placement._replace(
            tolerations=[t for t in placement.tolerations if t != self.toleration]
        )


@dataclass(frozen=True, kw_only=True)
class AllowedSetting(PlacementSetting):
    """The tolerations that pods may have of their own. remove: others are taken from them."""

    patterns: tuple[Pattern, ...]
    remove: bool

    accumulates = True

    @cached_property
    def field(self) -> str:
        """Below tolerations, which it is about."""
        return "tolerations.allowed"

    @property
    def written(self) -> str:
        return "allowedTolerations"

    @property
    def place(self) -> tuple[str | int, ...]:
        return (self.written,)

    @property
    def describe_value(self) -> str:
        """For example gpu, team=a:NoSchedule, spot-*."""
        return cut(", ".join(map(str, self.patterns)) or "none", QUOTE_LIMIT)

    @property
    def listed_value(self) -> Json:
        return self.describe_value

    @property
    def describe_allowed(self) -> str:
        """What a message says after the tolerations that are not allowed."""
        patterns_text = f"{self.describe_value}, and " if self.patterns else ""
        return f"allowed are {patterns_text}those of policies"

    def agrees(self, other: Self) -> bool:
        return (self.patterns, self.remove) == (other.patterns, other.remove)

    def holds_in(self, final: PodPlacement) -> bool:  # noqa: ARG002  it sets nothing
        return False


@dataclass(frozen=True, kw_only=True)
class ValuesSetting(PlacementSetting):
    """The values of a field, or of one of its keys, that a pod's author may choose among.

    stated: whether the author has to choose one; at: the position in the document's list
    """

    name: str
    key: str
    values: tuple[str, ...]
    stated: bool
    at: int

    accumulates = True

    @cached_property
    def field(self) -> str:
        """Below the field that it is about."""
        return f"{self.judged}.values"

    @property
    def judged(self) -> str:
        """The field of the pod, for messages."""
        return f"{self.name}[{self.key}]" if self.key else self.name

    @property
    def written(self) -> str:
        return "values"

    @property
    def place(self) -> tuple[str | int, ...]:
        return (self.written, self.at)

    @property
    def describe_value(self) -> str:
        return cut(", ".join(self.values), QUOTE_LIMIT)

    @property
    def listed_value(self) -> Json:
        return self.describe_value

    def agrees(self, other: Self) -> bool:
        return (self.values, self.stated) == (other.values, other.stated)

    def holds_in(self, final: PodPlacement) -> bool:  # noqa: ARG002  it sets nothing
        return False


@dataclass(frozen=True, kw_only=True)
class RequiredSetting(PlacementSetting):
    """Required node affinity: terms of which one must hold."""

    terms: tuple[Term, ...]

    accumulates = True

    @cached_property
    def field(self) -> str:
        return REQUIRED_NODES

    @property
    def place(self) -> tuple[str | int, ...]:
        return ("affinity", "nodeAffinity", REQUIRED)

    @property
    def describe_value(self) -> str:
        """For example pool In [a, b], gen Gt 5."""
        return cut(" or ".join(map(_term_text, self.terms)), QUOTE_LIMIT)

    @property
    def listed_value(self) -> Json:
        return self.terms

    @property
    def describe_limit(self) -> str:
        return "required node affinity"

    def agrees(self, other: Self) -> bool:
        return self.terms == other.terms

    @property
    def condition(self) -> tuple[Term, ...]:
        return self.terms

    def holds_in(self, final: PodPlacement) -> bool:
        return has_condition(final, self.terms)


@dataclass(frozen=True, kw_only=True)
class ListSetting(PlacementSetting):
    """The entries of one of the other affinity lists, named as in pod.AFFINITY_LISTS."""

    name: str
    entries: tuple[JsonObject, ...]

    accumulates = True

    @cached_property
    def field(self) -> str:
        return self.name

    @property
    def place(self) -> tuple[str | int, ...]:
        return ("affinity", *AFFINITY_LISTS[self.name])

    @property
    def describe_value(self) -> str:
        return quoted(list(self.entries))

    @property
    def listed_value(self) -> Json:
        return list(self.entries)

    def agrees(self, other: Self) -> bool:
        return self.entries == other.entries

    @property
    def topology_keys(self) -> Collection[str]:
        return topology.keys_of(affinity=self.entries) if self.name == topology.AFFINITY else ()

    @property
    def scheduler_holds(self) -> bool:
        return self.name in REQUIRED_LISTS

    def holds_in(self, final: PodPlacement) -> bool:
        entries = final.lists.get(self.name, ())
        return all(entry in entries for entry in self.entries)

    def undone(self, placement: PodPlacement) -> PodPlacement:
        return without_entries(placement, self.name, self.entries)


@dataclass(frozen=True, kw_only=True)
class SpreadSetting(PlacementSetting):
    """One topology spread constraint."""

    constraint: JsonObject

    @property
    def pair(self) -> tuple[str, str]:
        """The pair that must be unique: topologyKey and whenUnsatisfiable."""
        return topology.spread_pair(self.constraint)

    @cached_property
    def field(self) -> str:
        """For example topologySpreadConstraints[topology.kubernetes.io/zone,DoNotSchedule]."""
        return f"topologySpreadConstraints[{','.join(self.pair)}]"

    @property
    def describe_value(self) -> str:
        return quoted(self.constraint)

    @property
    def listed_value(self) -> Json:
        return self.constraint

    def agrees(self, other: Self) -> bool:
        return self.constraint == other.constraint

    @property
    def topology_keys(self) -> Collection[str]:
        return topology.keys_of(spread=[self.constraint])

    @property
    def scheduler_holds(self) -> bool:
        return self.constraint.get("whenUnsatisfiable") == "DoNotSchedule"

    def holds_in(self, final: PodPlacement) -> bool:
        return self.constraint in final.topology_spread


def is_selector(setting: PlacementSetting) -> TypeGuard[MemberSetting]:
    """Return whether it is a key of the nodeSelector."""
    return isinstance(setting, MemberSetting) and setting.map == "nodeSelector"


def _term_text(term: Term) -> str:
    requirements = (*(term.get("matchExpressions") or ()), *(term.get("matchFields") or ()))
    return ", ".join(map(format_requirement, requirements))
