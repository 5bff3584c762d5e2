"""What every setting answers: one field of one policy, the unit of folding and merging.

A setting answers for itself what other code asks of every setting. Only what compiles, merges or
exports settings knows their classes (decision 133).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal, Self, TypeAlias

from webhook.placement import node_affinity
from webhook.placement.fields import field_of
from webhook.placement.provenance import without_field

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterator, Sequence

    from webhook.placement.fields import Field
    from webhook.placement.namespace_setting import NamespaceSetting
    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import Json, Term, Toleration

Part: TypeAlias = Literal["requirements", "overrides", "defaults"]
# In the order in which they are folded: a requirement never drops before the other two.
PARTS: tuple[Part, ...] = ("requirements", "overrides", "defaults")


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

    @cached_property
    def of_team(self) -> bool:
        """Whether it is of a team's policy, whose name has the namespace: team-a/gpu-pool."""
        return "/" in self.policy

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
