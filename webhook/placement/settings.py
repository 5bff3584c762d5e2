"""Settings: one field of one policy each, the unit of folding and merging.

A setting answers for itself what other code asks of every setting. Only what compiles, merges or
exports settings knows their classes (decision 133).
"""

from __future__ import annotations

import re
from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final, Literal, Self, TypeAlias, TypeGuard

from webhook.placement import label_values, node_affinity, runtime_class, topology
from webhook.placement.fields import BY_NAME, MAPS
from webhook.placement.nodes import format_requirement
from webhook.placement.pod import (
    AFFINITY_LISTS,
    PREFERRED_NODES,
    REQUIRED,
    REQUIRED_LISTS,
    REQUIRED_NODES,
)
from webhook.placement.provenance import (
    has_condition,
    without_class,
    without_entries,
    without_field,
)
from webhook.placement.tolerations import covered, covers, normal
from webhook.placement.trace import QUOTE_LIMIT, quoted, quoted_both
from webhook.shortening import cut

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterator, Sequence

    from webhook.placement.capacity import CapacityClass, Mode
    from webhook.placement.fallback import Fallback, History
    from webhook.placement.fields import Field
    from webhook.placement.pod import PodPlacement
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

    The answers below are those of a setting that is the only one for its field, and limits no
    nodes. Methods that take another setting take one of the same class.
    No ABC: merging tells settings by their class, which takes an ABC ten times as long.
    """

    policy: str
    part: Part
    if_null: bool = False
    origin: NamespaceSetting | None = None
    """The setting that it was before its namespace gave it a value, if one did."""

    accumulates: ClassVar[bool] = False
    """Whether those of several policies apply together, unless they are defaults."""

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
    def place(self) -> tuple[str | int, ...] | None:
        """Its path in its part of a document; None for an item of its field's list."""
        return None

    @property
    @abstractmethod
    def describe_value(self) -> str:
        """The wanted value, for a message; long values are cut."""

    def describe_both(self, other: Self) -> tuple[str, str]:
        """Return both wanted values, for a message."""
        return self.describe_value, other.describe_value

    @property
    def listed_value(self) -> Json:
        """The value for a line of its own; None if the reason of its trace entry has it."""
        return None

    @property
    def describe_limit(self) -> str:
        """Which of the nodes it leaves, for a message; it leaves some out."""
        keys = self.topology_keys
        return f"topologyKey {' and '.join(keys)}" if keys else self.written

    @property
    def weakens(self) -> str:
        """How it weakens what holds pods apart; empty if it does not."""
        return ""

    @cached_property
    def is_default(self) -> bool:
        """Whether the pod's own value wins over the setting."""
        return self.part == "defaults"

    # Beside other settings.

    @property
    def identity(self) -> Hashable:
        """What two settings have in common if one may decide what the other sets."""
        return type(self), self.field

    def precludes(self, later: Self) -> bool:
        """Return whether this accepted setting leaves no room for a later one."""
        if self.accumulates and not (self.is_default and later.is_default):
            return False
        return self.field == later.field

    @abstractmethod
    def agrees(self, other: Self) -> bool:
        """Return whether two settings with one identity, or that preclude each other, want the
        same."""

    def contradicts(self, other: Self) -> bool:
        """Return whether no pod meets both, as requirements that preclude each other."""
        return not self.agrees(other)

    @property
    def accepts_some(self) -> bool:
        """Whether it is a requirement that accepts some later settings with its identity, and
        contradicts others."""
        return False

    def loses_to(self, earlier: Self, *, some_accepted: bool) -> bool:  # noqa: ARG002  some need it
        """Return whether it certainly loses to this accepted setting, or to what this one lost to.

        some_accepted: whether a setting with this identity `accepts_some`
        """
        return earlier.precludes(self)

    # Nodes.

    @property
    def condition(self) -> tuple[Term, ...] | None:
        """The terms of required affinity of which a node must meet one; None if every node
        does."""
        return None

    @property
    def node_terms(self) -> tuple[Term, ...] | None:
        """As `condition`, with a nodeSelector key as a term too."""
        return self.condition

    @property
    def limits_nodes(self) -> bool:
        return self.node_terms is not None

    @property
    def node_keys(self) -> frozenset[str]:
        """The labels of nodes that it limits."""
        return node_affinity.keys(self.node_terms or ())

    @property
    def topology_keys(self) -> Collection[str]:
        """The keys that a node must have for the setting, as others are counted by them."""
        return ()

    @property
    def scheduler_holds(self) -> bool:
        """Whether a pod stays Pending until a node meets the setting."""
        return self.limits_nodes

    @property
    def tolerated(self) -> Sequence[Toleration]:
        """What a pod with the setting tolerates."""
        return ()

    # A pod.

    @property
    def writes(self) -> Iterator[str]:
        """The fields of a pod that it may set, as traces name them."""
        yield self.field

    @abstractmethod
    def holds_in(self, final: PodPlacement) -> bool:
        """Return whether a pod has what the setting sets, whoever set it."""

    def undone(self, placement: PodPlacement) -> PodPlacement:
        """Return a placement that holds the setting without it.

        A `condition` stays: several may share requirements of a term.
        """
        return without_field(placement, self.field, {}) or placement


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


@dataclass(frozen=True, kw_only=True)
class NamespaceSetting(PlacementSetting):
    """A setting whose value is a label of the pod's namespace.

    example:  the setting with any value
    label:    the namespace's label that has the value; default: the value without one, if any
    position: in its list of the document
    """

    example: MemberSetting | TolerationSetting
    label: str
    default: str
    position: int

    @cached_property
    def field(self) -> str:
        return self.example.field

    @property
    def written(self) -> str:
        """For example nodeSelectorFrom[pool]."""
        name, bracket, key = self.field.partition("[")
        return f"{name}From{bracket}{key}"

    @property
    def place(self) -> tuple[str | int, ...]:
        return (f"{self.row.name}From", self.position)

    @property
    def describe_value(self) -> str:
        default = f", or {quoted(self.default)}" if self.default else ""
        return f"the value of namespace label {self.label}{default}"

    @property
    def listed_value(self) -> Json:
        return self.describe_value

    def precludes(self, later: Self) -> bool:
        """Return False for a default that may be left out."""
        return bool(self.default or not self.is_default) and super().precludes(later)

    @property
    def node_terms(self) -> tuple[Term, ...] | None:
        """What every value asks of a node."""
        if not isinstance(self.example, MemberSetting):
            return None
        return ({"matchExpressions": [{"key": self.example.key, "operator": "Exists"}]},)

    @property
    def tolerated(self) -> Sequence[Toleration]:
        """What some value tolerates."""
        if isinstance(self.example, MemberSetting):
            return ()
        key, effect = self.example.toleration["key"], self.example.toleration["effect"]
        return ({"key": key, "operator": "Exists", "effect": effect},)

    @property
    def missing(self) -> str:
        """Why it has no value, for a message."""
        cure = "label the namespace, or give a default"
        return f"the pod's namespace has no label {self.label} with a value; {cure}"

    def agrees(self, other: Self) -> bool:
        return (self.example, self.label, self.default) == (
            other.example,
            other.label,
            other.default,
        )

    def contradicts(self, other: Self) -> bool:  # noqa: ARG002  their values may be equal
        return False

    def valued(self, value: str) -> PlacementSetting:
        """Return the setting with this value; itself if there is none, and no default."""
        value = value or self.default
        if not value:
            return self
        if isinstance(self.example, MemberSetting):
            return replace(self.example, value=value, origin=self)
        toleration: Toleration = {**self.example.toleration, "value": value}
        return replace(self.example, toleration=toleration, origin=self)

    def holds_in(self, final: PodPlacement) -> bool:  # noqa: ARG002  it has no value
        return False


def is_selector(setting: PlacementSetting) -> TypeGuard[MemberSetting]:
    """Return whether it is a key of the nodeSelector."""
    return isinstance(setting, MemberSetting) and setting.map == "nodeSelector"


def written_by_class(capacity: CapacityClass) -> Iterator[str]:
    """Yield the fields of a pod that a capacity class may set."""
    yield from (
        f"tolerations[{toleration.get('key') or '*'}]" for toleration in capacity.tolerations
    )
    yield REQUIRED_NODES
    yield PREFERRED_NODES


def _term_text(term: Term) -> str:
    requirements = (*(term.get("matchExpressions") or ()), *(term.get("matchFields") or ()))
    return ", ".join(map(format_requirement, requirements))
