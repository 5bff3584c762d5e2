"""Settings: one field of one policy each, the unit of folding and merging."""

from __future__ import annotations

import re
from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from webhook.placement.fields import BY_NAME
from webhook.placement.nodes import format_requirement
from webhook.placement.pod import REQUIRED_NODES
from webhook.placement.trace import QUOTE_LIMIT, quoted
from webhook.shortening import cut

if TYPE_CHECKING:
    from webhook.placement.capacity import CapacityClass, Mode
    from webhook.placement.fallback import Fallback, History
    from webhook.placement.fields import Field
    from webhook.placement.shapes import Json, JsonObject, Term, Toleration
    from webhook.placement.tolerations import Pattern

Part: TypeAlias = Literal["requirements", "overrides", "defaults"]
# In the order in which they are folded: a requirement never drops before the other two.
PARTS: tuple[Part, ...] = ("requirements", "overrides", "defaults")
_NAME: Final = re.compile(r"[^.\[]+")


def field_of(field: str) -> Field:
    """Return the row of a field as a trace names it: labels[team]."""
    return BY_NAME[_NAME.findall(field)[0]]


@dataclass(frozen=True, kw_only=True)
class PlacementSetting:
    """One setting. `if_null`: only where the pod has nothing at all in the field (IsNull).

    No ABC: every decision matches settings by their class, which takes an ABC ten times as long.
    """

    policy: str
    part: Part
    if_null: bool = False

    @cached_property
    @abstractmethod
    def field(self) -> str:
        """The field's path as policy files write it, with the key in brackets."""

    @cached_property
    def row(self) -> Field:
        return field_of(self.field)

    @property
    def written(self) -> str:
        """The field as messages name it, below its part."""
        return self.field

    @property
    @abstractmethod
    def describe_value(self) -> str:
        """The wanted value, for a message; long values are cut."""

    @property
    def weakens(self) -> str:
        """How it weakens what holds pods apart; empty if it does not."""
        return ""

    @cached_property
    def is_default(self) -> bool:
        """Whether the pod's own value wins over the setting."""
        return self.part == "defaults"


@dataclass(frozen=True, kw_only=True)
class MemberSetting(PlacementSetting):
    """One key of nodeSelector, labels, annotations or securityContext."""

    map: str
    key: str
    value: Json

    @cached_property
    def field(self) -> str:
        """For example nodeSelector[pool]."""
        return f"{self.map}[{self.key}]"

    @property
    def describe_value(self) -> str:
        return quoted(self.value)

    @property
    def weakens(self) -> str:
        return self.row.weakens(self.key, self.value, is_default=self.is_default)


@dataclass(frozen=True, kw_only=True)
class ScalarSetting(PlacementSetting):
    """A field that is one text or number."""

    name: str
    value: str | int

    @cached_property
    def field(self) -> str:
        return self.name

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


@dataclass(frozen=True, kw_only=True)
class AllowedSetting(PlacementSetting):
    """The tolerations that pods may have of their own. remove: others are taken from them."""

    patterns: tuple[Pattern, ...]
    remove: bool

    @cached_property
    def field(self) -> str:
        """Below tolerations, which it is about."""
        return "tolerations.allowed"

    @property
    def written(self) -> str:
        return "allowedTolerations"

    @property
    def describe_value(self) -> str:
        """For example gpu, team=a:NoSchedule, spot-*."""
        return cut(", ".join(map(str, self.patterns)) or "none", QUOTE_LIMIT)

    @property
    def describe_allowed(self) -> str:
        """What a message says after the tolerations that are not allowed."""
        own = f"{self.describe_value}, and " if self.patterns else ""
        return f"allowed are {own}those of policies"


@dataclass(frozen=True, kw_only=True)
class RequiredSetting(PlacementSetting):
    """Required node affinity: terms of which one must hold."""

    terms: tuple[Term, ...]

    @cached_property
    def field(self) -> str:
        return REQUIRED_NODES

    @property
    def describe_value(self) -> str:
        """For example pool In [a, b], gen Gt 5."""
        return cut(" or ".join(map(_term_text, self.terms)), QUOTE_LIMIT)


@dataclass(frozen=True, kw_only=True)
class ListSetting(PlacementSetting):
    """The entries of one of the other affinity lists, named as in pod.AFFINITY_LISTS."""

    name: str
    entries: tuple[JsonObject, ...]

    @cached_property
    def field(self) -> str:
        return self.name

    @property
    def describe_value(self) -> str:
        return quoted(list(self.entries))


@dataclass(frozen=True, kw_only=True)
class SpreadSetting(PlacementSetting):
    """One topology spread constraint."""

    constraint: JsonObject

    @property
    def pair(self) -> tuple[str, str]:
        """The pair that must be unique: topologyKey and whenUnsatisfiable."""
        return spread_pair(self.constraint)

    @cached_property
    def field(self) -> str:
        """For example topologySpreadConstraints[topology.kubernetes.io/zone,DoNotSchedule]."""
        return f"topologySpreadConstraints[{','.join(self.pair)}]"

    @property
    def describe_value(self) -> str:
        return quoted(self.constraint)


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
    def describe_value(self) -> str:
        if self.fallback and self.given_up:
            return f"{self.mode} instead of Constrain, {self.fallback.words}"
        return self.mode.value

    def gives_up(self, history: History) -> bool:
        """Return whether its mode is given up after what happened."""
        rule = self.fallback
        return rule is not None and rule.lasts_until(self.capacity.name, history) is not None

    def give_up(self) -> CapacitySetting:
        return replace(self, mode=self.fallback.then, given_up=True) if self.fallback else self

    @property
    def condition(self) -> tuple[Term, ...] | None:
        """The terms of which a node must meet one, or None if the mode allows every node."""
        return self.mode.condition(self.capacity)


def _term_text(term: Term) -> str:
    requirements = (*(term.get("matchExpressions") or ()), *(term.get("matchFields") or ()))
    return ", ".join(map(format_requirement, requirements))


def spread_pair(constraint: JsonObject) -> tuple[str, str]:
    """Return a spread constraint's topologyKey and whenUnsatisfiable, unique within a pod."""
    return str(constraint.get("topologyKey")), str(constraint.get("whenUnsatisfiable"))
