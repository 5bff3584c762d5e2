"""The placement fields in which two decisions on a pod differ, and the policies that cause it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from webhook import names
from webhook.placement.fields import MAPS, SCALARS, STORED_NORMAL
from webhook.placement.pod import REQUIRED_NODES
from webhook.placement.tolerations import normal
from webhook.placement.topology import spread_pair
from webhook.workloads import stored_pod

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.decision.decision import Result
    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import Requirement

# rejected:    newly rejected
# unplaceable: admitted as before, and newly left without any node
# moved:       placed differently
# admitted:    no longer rejected
# placeable:   no longer without a node
Kind: TypeAlias = Literal["rejected", "unplaceable", "moved", "admitted", "placeable"]
# In the order of the report: the worst first.
KINDS: tuple[Kind, ...] = ("rejected", "unplaceable", "moved", "admitted", "placeable")
# Tolerations are normalized separately.
_STORED_NORMAL: Final = tuple(
    start
    for field in STORED_NORMAL
    if field.name != "tolerations"
    for start in (f"{field.name}.", f"{field.name}[")
)


class Shut(NamedTuple):
    """Nodes that do not admit a pod: the condition that fails, and their number."""

    condition: str
    nodes: int


class Side(NamedTuple):
    """The result of one set for the pod. `reason`: of a rejection, or why it is not changed.

    nodes:     how many admit it; None if the pod is rejected, or they are unknown
    shut:      if none does, the others by condition
    on_demand: if none does, the autoscaled classes that could create one
    room:      of which object's pods not all can run at one time, how many can, and why
    """

    result: Result
    reason: str = ""
    nodes: int | None = None
    shut: tuple[Shut, ...] = ()
    on_demand: tuple[str, ...] = ()
    room: str = ""

    @property
    def allowed(self) -> bool:
        return self.result != "rejected"

    @property
    def word(self) -> str:
        """What happens to the pod in a word: the webhook's result, or that no node admits it."""
        return "no node" if self.allowed and self.stranded else self.result

    @property
    def stranded(self) -> bool:
        """Whether no node admits the pod, and no autoscaled class could create one."""
        return self.nodes == 0 and not self.on_demand


class FieldChange(NamedTuple):
    """How one setting changes: `old` and `new` are empty if it had, or has, no effect.

    `policy` is empty for the pod's own annotation.
    """

    policy: str
    part: str
    field: str
    old: str
    new: str


class Difference(NamedTuple):
    """The difference for a pod.

    policies: those that cause it, because their settings for the pod differ; empty if unknown
    fields:   the changes of their settings, and of settings that yield to them
    """

    kind: Kind
    old: Side
    new: Side
    policies: tuple[str, ...]
    fields: tuple[FieldChange, ...]

    @property
    def stranded(self) -> bool:
        """Whether no node admits the pod any more: before, some did, or it was rejected."""
        return self.new.stranded and not self.old.stranded

    def in_rooms(self, old: str, new: str) -> Difference:
        """Return it for a pod of an object with these rooms."""
        rooms = self.old._replace(room=old), self.new._replace(room=new)
        return self._replace(old=rooms[0], new=rooms[1])


def kind_of(old: Side, new: Side) -> Kind:
    """Return the kind of difference between two results, at least one of which admits the pod."""
    if not new.allowed:
        return "rejected"
    if not old.allowed:
        return "admitted"
    if new.stranded == old.stranded:
        return "moved"
    return "unplaceable" if new.stranded else "placeable"


class Gap(NamedTuple):
    """One field: its value in either placement, as JSON; None if unset."""

    field: str
    has: Any
    would: Any


def fields(placement: PodPlacement) -> dict[str, Any]:
    """Return the value of each field that is set, as JSON, without the stamp and our own labels.

    Tolerations are grouped by key: `tolerations[gpu]` has all with that key.
    """
    value_by_field: dict[str, Any] = {}
    for field in MAPS.values():
        # No policy may write them, and another version of the controller writes others.
        is_labels = field.name == "labels"
        for key, value in getattr(placement, field.attribute).items():
            if key != names.PLACEMENT and not (is_labels and key.startswith(names.PREFIX)):
                value_by_field[f"{field.name}[{key}]"] = value
    for field in SCALARS.values():
        value = getattr(placement, field.attribute)
        if value not in (field.unset, field.silent):
            value_by_field[field.name] = value
    for toleration in placement.tolerations:
        value_by_field.setdefault(f"tolerations[{toleration.get('key') or '*'}]", []).append(
            toleration
        )
    if placement.required is not None:
        value_by_field[REQUIRED_NODES] = placement.required
    value_by_field |= placement.lists
    for constraint in placement.topology_spread:
        value_by_field[f"topologySpreadConstraints[{','.join(spread_pair(constraint))}]"] = (
            constraint
        )
    return value_by_field


def gaps(has: PodPlacement, would: PodPlacement) -> list[Gap]:
    values, other = fields(has), fields(would)
    return [
        Gap(field, values.get(field), other.get(field))
        for field in dict.fromkeys((*values, *other))
        if _canonical(field, values.get(field)) != _canonical(field, other.get(field))
    ]


def same_placement(placement: PodPlacement, other: PodPlacement) -> bool:
    """Return whether the placements differ at most in the order of lists."""
    # Tolerations of one taint with different times are sorted.
    return placement == other or not gaps(placement, other)


def _canonical(field: str, value: Any) -> Any:
    if value is None:
        return None
    if field.startswith(_STORED_NORMAL):
        value = stored_pod.normal(value)
    if field.startswith("tolerations["):
        return {normal(toleration) for toleration in value}
    if field == REQUIRED_NODES:
        return {
            (_sorted(term.get("matchExpressions")), _sorted(term.get("matchFields")))
            for term in value
        }
    return _sorted(value) if isinstance(value, list) else value


def _sorted(items: Sequence[Requirement] | Sequence[Any] | None) -> tuple[str, ...]:
    return tuple(sorted(json.dumps(item, sort_keys=True) for item in items or ()))
