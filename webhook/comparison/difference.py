"""What becomes of one pod otherwise, and by which policies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from webhook.admission.decision import Result

# rejected:    newly rejected
# unplaceable: admitted as before, and newly left without any node
# moved:       placed otherwise
# admitted:    no longer rejected
# placeable:   no longer without a node
Kind: TypeAlias = Literal["rejected", "unplaceable", "moved", "admitted", "placeable"]
# In the order in which they are told: what hurts comes first.
KINDS: tuple[Kind, ...] = ("rejected", "unplaceable", "moved", "admitted", "placeable")


class Nodes(NamedTuple):
    """How many of all nodes admit a pod; if none does, what shuts it out of how many.

    `on_demand` are the autoscaled classes that could make one, if none does.
    """

    admitted: int
    total: int
    shut: tuple[tuple[str, int], ...] = ()
    on_demand: tuple[str, ...] = ()


class Side(NamedTuple):
    """What one set makes of the pod: `reason` is that of a rejection, or of being left alone.

    `nodes` is None if the pod is rejected, or nobody knows the nodes.
    """

    result: Result
    reason: str = ""
    nodes: Nodes | None = None

    @property
    def allowed(self) -> bool:
        """Whether the pod is admitted."""
        return self.result != "rejected"


class FieldChange(NamedTuple):
    """How one setting changes: `old` and `new` are empty where it had, or has, no say.

    `policy` is empty where the pod's own annotation asks.
    """

    policy: str
    part: str
    field: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Difference:
    """What becomes of a pod otherwise.

    policies: those by which it is so: what they say of the pod differs. Empty if none can be named
    fields:   what becomes of their settings otherwise, and of those that give way to them
    """

    kind: Kind
    old: Side
    new: Side
    policies: tuple[str, ...]
    fields: tuple[FieldChange, ...]

    @property
    def stranded(self) -> bool:
        """Whether no node admits the pod, and that is new: before some did, or it was rejected."""
        return _without(self.new.nodes) and not _without(self.old.nodes)


def kind_of(old: Side, new: Side) -> Kind:
    """What is different, of two sides of which at least one admits the pod."""
    if not new.allowed:
        return "rejected"
    if not old.allowed:
        return "admitted"
    if _without(new.nodes) and not _without(old.nodes):
        return "unplaceable"
    if _without(old.nodes) and not _without(new.nodes):
        return "placeable"
    return "moved"


def _without(nodes: Nodes | None) -> bool:
    return nodes is not None and nodes.admitted == 0 and not nodes.on_demand
