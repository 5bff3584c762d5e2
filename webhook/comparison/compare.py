"""Decide on pods under two policy sets, and find the differences.

Only the result for a pod counts, not which policy causes it: a renamed policy, or a rejection with
another message, is not a difference.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from webhook.admission.decision import NO_POLICIES
from webhook.admission.engine import evaluate, part_in, receive_pod
from webhook.admission.shape import Shapes
from webhook.comparison.difference import (
    Difference,
    FieldChange,
    Nodes,
    Side,
    is_without_node,
    kind_of,
    same_placement,
)
from webhook.evaluation.plugins import UNREAD, PluginInputs, with_runtime_class
from webhook.placement import on_demand
from webhook.placement.node_groups import NodeGroups
from webhook.placement.nodes import closed_to, too_small
from webhook.placement.pod_requests import requests

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from webhook.admission.arrival import Arrival, Cluster
    from webhook.admission.decision import Evaluation, Part, ReceivedPod
    from webhook.admission.shape import Shape
    from webhook.placement.capacity import CapacityClass
    from webhook.placement.nodes import Node
    from webhook.placement.pod import PodPlacement
    from webhook.placement.settings import PlacementSetting
    from webhook.placement.shapes import JsonObject
    from webhook.placement.trace import Entry
    from webhook.policy.policy_set import PolicySet

# no run: the pod has no run, so no policy applies
# rejected: under both sets
Same: TypeAlias = Literal["no run", "same", "rejected"]
# How many conditions are reported if no node admits a pod.
_TOLD: Final = 3
# Policy, part and field.
_Key: TypeAlias = "tuple[str, str, str]"
_EFFECTIVE: Final = frozenset({"set", "removed"})
_REJECTED: Final = frozenset({"rejected"})


class Sets(NamedTuple):
    """The two policy sets, and facts about the cluster. `nodes` is None if they are unknown."""

    old: PolicySet
    new: PolicySet
    cluster: Cluster
    nodes: Sequence[Node] | None = None
    plugins: PluginInputs = UNREAD


class _Parts(NamedTuple):
    """The policies that apply under each set. `alike`: they are the same under both."""

    old: Part
    new: Part
    alike: bool


class Comparison:
    """Compares two policy sets, pod by pod.

    Equal work is done once: pods of one shape are decided once, pods that differ only in their own
    placement are matched once, and a pod is placed once if both sets have the same policies for it.
    """

    def __init__(self, sets: Sets) -> None:
        self._sets = sets
        self._same_classes = sets.old.classes == sets.new.classes
        self._shapes = Shapes((sets.old, sets.new))
        self._authors = Authors(sets.old, sets.new)
        self._roster = None if sets.nodes is None else Roster(sets.nodes)
        self._known: dict[tuple[Shape, frozenset[tuple[str, int]]], Difference | Same] = {}
        self._parts: dict[bytes, _Parts] = {}

    def compare(self, arrival: Arrival) -> Difference | Same:
        """The difference for the pod, or its unchanged result.

        Raises InvalidPod if a placement field of the pod has the wrong type.
        """
        if self._sets.old.sources != self._sets.new.sources:
            return self.compare_fully(arrival)
        received = receive_pod(arrival, self._sets.new.sources)
        if received is None:
            return "no run"
        shape = self._shapes.shape_of(received)
        # No policy applies to a pod that keeps its placement: that does not hold for other pods.
        if shape is None or received.keeps:
            return self._compared(received, self._parts_in(received))
        key = shape, frozenset(self._requests(received).items())
        found = self._known.get(key)
        if found is None:
            parts = self._parts.get(shape.who)
            if parts is None:
                parts = self._parts[shape.who] = self._parts_in(received)
            found = self._known[key] = self._compared(received, parts)
        return found

    def compare_fully(self, arrival: Arrival) -> Difference | Same:
        """The same, always decided under both sets."""
        sets = self._sets
        old = receive_pod(arrival, sets.old.sources)
        new = receive_pod(arrival, sets.new.sources)
        found = old or new
        if found is None:
            return "no run"
        parts = _Parts(
            NO_POLICIES if old is None else part_in(old, sets.old),
            NO_POLICIES if new is None else part_in(new, sets.new),
            alike=False,
        )
        return self._compared(found, parts, new)

    def _parts_in(self, received: ReceivedPod) -> _Parts:
        sets, namespace = self._sets, received.arrival.namespace
        old, new = part_in(received, sets.old), part_in(received, sets.new)
        alike = self._same_classes and (
            _effects(sets.old, old, namespace) == _effects(sets.new, new, namespace)
        )
        return _Parts(old, new, alike)

    def _compared(
        self, received: ReceivedPod, parts: _Parts, by_new: ReceivedPod | None = None
    ) -> Difference | Same:
        """`by_new`: the pod as the new set recognizes it, if that may differ."""
        sets = self._sets
        old = evaluate(received, parts.old, sets.old, sets.cluster, audit=False)
        if parts.alike:
            return "same" if old.allowed else "rejected"
        new = evaluate(by_new or received, parts.new, sets.new, sets.cluster, audit=False)
        if not old.allowed and not new.allowed:
            return "rejected"
        alike = old.allowed and new.allowed and same_placement(old.placement, new.placement)
        # For the same placement, a class that creates nodes may have been added or removed.
        if alike and (self._same_classes or self._roster is None):
            return "same"
        pod = received.arrival.pod
        sides = self._side(old, sets.old, pod), self._side(new, sets.new, pod)
        if alike and is_without_node(sides[0].nodes) == is_without_node(sides[1].nodes):
            return "same"
        return Difference(kind_of(*sides), *sides, *self._authors.attribute(old, new))

    def _requests(self, received: ReceivedPod) -> Mapping[str, int]:
        """Return the pod's requests, if a node may be too small for them."""
        return {} if self._roster is None else requests(received.arrival.pod["spec"])

    def _side(self, evaluation: Evaluation, policies: PolicySet, pod: JsonObject) -> Side:
        if self._roster is None or not evaluation.allowed:
            return Side(evaluation.result, evaluation.reason)
        placement, spec = with_runtime_class(evaluation.placement, pod, self._sets.plugins)
        classes = policies.classes.values()
        nodes = self._roster.count_admitting(placement, requests(spec), classes)
        return Side(evaluation.result, evaluation.reason, nodes)


def _effects(policies: PolicySet, part: Part, namespace: str) -> list[tuple[object, ...]]:
    """Return what distinguishes the policies that apply, in their order."""
    taking = [policies.policies[at] for at in part.positions]
    return [(each.name, each.enforced_in(namespace), each.settings) for each in taking]


class Roster:
    """Counts the nodes that admit a pod. Of nodes that are equal for it, one is tested."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._groups = NodeGroups(nodes)

    def count_admitting(
        self,
        placement: PodPlacement,
        requested: Mapping[str, int],
        classes: Iterable[CapacityClass] = (),
    ) -> Nodes:
        """Count the nodes that admit it; if none does, with the conditions that exclude most.

        Also returns the classes that could create a node on demand.
        """
        admitted = 0
        shut: Counter[str] = Counter()
        for alike in self._groups.groups_for(placement):
            closed = closed_to(placement, alike.node)
            for room, count in alike.rooms.values():
                found = closed or too_small(placement, requested, room)
                if found is None:
                    admitted += count
                else:
                    shut[found.condition] += count
        if admitted:
            return Nodes(admitted, len(self._groups))
        most = sorted(shut.items(), key=lambda each: (-each[1], each[0]))[:_TOLD]
        made = on_demand.makers(placement, classes, self._groups)
        return Nodes(0, len(self._groups), tuple(most), tuple(made))


class Authors:
    """The settings of each policy of two sets."""

    def __init__(self, old: PolicySet, new: PolicySet) -> None:
        self._old, self._new = _settings(old), _settings(new)

    def attribute(
        self, old: Evaluation, new: Evaluation
    ) -> tuple[tuple[str, ...], tuple[FieldChange, ...]]:
        """The policies by which the decisions differ, in their order, and how, field by field.

        Policies with the same settings in both sets count only if no other policy can be named:
        they yield to another one, or another one no longer comes before them.
        """
        fields = self._fields(old, new)
        credited = dict.fromkeys(field.policy for field in fields if field.policy)
        taking_part = set(old.policies) ^ set(new.policies)
        otherwise = [
            name for name in credited if name in taking_part or self._differs(name, fields)
        ]
        # Without trace lines, the difference is which policies apply.
        policies = otherwise or list(credited) or sorted(taking_part)
        return tuple(policies), tuple(fields)

    def _fields(self, old: Evaluation, new: Evaluation) -> list[FieldChange]:
        counts = _EFFECTIVE if old.allowed and new.allowed else _REJECTED
        before, after = _by_key(old.trace), _by_key(new.trace)
        found = []
        for key in dict.fromkeys((*after, *before)):
            was, now = before.get(key, ()), after.get(key, ())
            effective = any(entry.outcome in counts for entry in (*was, *now))
            if effective and (was != now or self._old.get(key) != self._new.get(key)):
                found.append(FieldChange(*key, _text(was, counts), _text(now, counts)))
        return found

    def _differs(self, policy: str, fields: Collection[FieldChange]) -> bool:
        keys = [field[:3] for field in fields if field.policy == policy]
        return any(self._old.get(key) != self._new.get(key) for key in keys)


def _settings(policies: PolicySet) -> Mapping[_Key, Sequence[PlacementSetting]]:
    found: dict[_Key, list[PlacementSetting]] = {}
    for policy in policies.policies:
        for setting in policy.settings:
            found.setdefault((policy.name, setting.part, setting.field), []).append(setting)
    return found


def _by_key(trace: Sequence[Entry]) -> Mapping[_Key, Sequence[Entry]]:
    found: dict[_Key, list[Entry]] = {}
    for entry in trace:
        found.setdefault((entry.policy, entry.part, entry.field), []).append(entry)
    return found


def _text(entries: Sequence[Entry], counts: Collection[str]) -> str:
    """The reasons of entries with these outcomes; if there are none, all outcomes."""
    done = [each.reason for each in entries if each.outcome in counts]
    return "; ".join(done or [f"{each.outcome}: {each.reason}" for each in entries])
