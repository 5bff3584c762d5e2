"""Decides on pods under two policy sets, and tells where what becomes of them differs.

What counts is what becomes of a pod, not who is credited with it: a policy under a new name, or a
rejection in other words, is no difference.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from webhook.admission.engine import part_in, see, weigh
from webhook.admission.shape import Shapes
from webhook.comparison.difference import Difference, FieldChange, Nodes, Side, kind_of
from webhook.comparison.gaps import same_placement
from webhook.placement import on_demand
from webhook.placement.node_groups import NodeGroups
from webhook.placement.nodes import obstacle

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from webhook.admission.arrival import Arrival, Cluster
    from webhook.admission.evaluation import Evaluation, Part, ReceivedPod
    from webhook.admission.shape import Shape
    from webhook.placement.capacity import CapacityClass
    from webhook.placement.nodes import Node
    from webhook.placement.pod import PodPlacement
    from webhook.placement.settings import PlacementSetting
    from webhook.placement.trace import Entry
    from webhook.policy.policy_set import PolicySet

# no run: the pod belongs to none, so no policy is asked
# rejected: under both sets
Same: TypeAlias = Literal["no run", "same", "rejected"]
# Of what shuts a pod out of all nodes, so many conditions are told.
_TOLD: Final = 3
# Policy, part and field.
_Key: TypeAlias = "tuple[str, str, str]"
_EFFECTIVE: Final = frozenset({"set", "removed"})
_REJECTED: Final = frozenset({"rejected"})


class Sets(NamedTuple):
    """What is compared, and in which cluster. `nodes` is None if they are not known."""

    old: PolicySet
    new: PolicySet
    cluster: Cluster
    nodes: Sequence[Node] | None = None


class _Parts(NamedTuple):
    """Who takes part under each set. `alike`: they are the same, and say the same, under both."""

    old: Part
    new: Part
    alike: bool


class Comparison:
    """Compares two policy sets, pod by pod.

    What is the same is done once: pods of one shape are decided on once, pods that differ by their
    own placement alone are matched once, and a pod of which both sets say the same is placed once.
    """

    def __init__(self, sets: Sets) -> None:
        self._sets = sets
        self._same_classes = sets.old.classes == sets.new.classes
        self._shapes = Shapes((sets.old, sets.new))
        self._authors = Authors(sets.old, sets.new)
        self._roster = None if sets.nodes is None else Roster(sets.nodes)
        self._known: dict[Shape, Difference | Same] = {}
        self._parts: dict[bytes, _Parts] = {}

    def of(self, arrival: Arrival) -> Difference | Same:
        """What becomes of the pod otherwise, or how it stays.

        Raises InvalidPod if the pod's placement fields have no pod's shape.
        """
        seen = see(arrival)
        if seen is None:
            return "no run"
        shape = self._shapes.of(seen)
        # Nobody takes part in a pod that keeps its placement: that tells nothing of others.
        if shape is None or seen.keeps:
            return self._compared(seen, self._parts_in(seen))
        found = self._known.get(shape)
        if found is None:
            parts = self._parts.get(shape.who)
            if parts is None:
                parts = self._parts[shape.who] = self._parts_in(seen)
            found = self._known[shape] = self._compared(seen, parts)
        return found

    def judged(self, arrival: Arrival) -> Difference | Same:
        """The same, decided anew, and under both sets whatever they say."""
        seen = see(arrival)
        if seen is None:
            return "no run"
        return self._compared(seen, self._parts_in(seen)._replace(alike=False))

    def _parts_in(self, seen: ReceivedPod) -> _Parts:
        sets, namespace = self._sets, seen.arrival.namespace
        old, new = part_in(seen, sets.old), part_in(seen, sets.new)
        alike = self._same_classes and (
            _said(sets.old, old, namespace) == _said(sets.new, new, namespace)
        )
        return _Parts(old, new, alike)

    def _compared(self, seen: ReceivedPod, parts: _Parts) -> Difference | Same:
        sets = self._sets
        old = weigh(seen, parts.old, sets.old, sets.cluster, audit=False)
        if parts.alike:
            return "same" if old.allowed else "rejected"
        new = weigh(seen, parts.new, sets.new, sets.cluster, audit=False)
        if not old.allowed and not new.allowed:
            return "rejected"
        if old.allowed and new.allowed and same_placement(old.placement, new.placement):
            return "same"
        sides = self._side(old, sets.old), self._side(new, sets.new)
        return Difference(kind_of(*sides), *sides, *self._authors.told(old, new))

    def _side(self, evaluation: Evaluation, policies: PolicySet) -> Side:
        if self._roster is None or not evaluation.allowed:
            return Side(evaluation.result, evaluation.reason)
        nodes = self._roster.of(evaluation.placement, policies.classes.values())
        return Side(evaluation.result, evaluation.reason, nodes)


def _said(policies: PolicySet, part: Part, namespace: str) -> list[tuple[object, ...]]:
    """All that makes a difference of those who take part, in their order."""
    taking = [policies.policies[at] for at in part.positions]
    return [(each.name, each.enforced_in(namespace), each.settings) for each in taking]


class Roster:
    """Tells how many nodes admit a pod. Of nodes that are alike to it one is looked at."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._groups = NodeGroups(nodes)

    def of(self, placement: PodPlacement, classes: Iterable[CapacityClass] = ()) -> Nodes:
        """How many admit it; if none does, the conditions that shut most of them out.

        And which of the classes could make one on demand.
        """
        admitted = 0
        shut: Counter[str] = Counter()
        for alike in self._groups.of(placement):
            found = obstacle(placement, alike.node)
            if found is None:
                admitted += alike.count
            else:
                shut[found.condition] += alike.count
        if admitted:
            return Nodes(admitted, len(self._groups))
        most = sorted(shut.items(), key=lambda each: (-each[1], each[0]))[:_TOLD]
        made = on_demand.makers(placement, classes, self._groups)
        return Nodes(0, len(self._groups), tuple(most), tuple(made))


class Authors:
    """Knows what each policy of two sets settings."""

    def __init__(self, old: PolicySet, new: PolicySet) -> None:
        self._old, self._new = _settings(old), _settings(new)

    def told(
        self, old: Evaluation, new: Evaluation
    ) -> tuple[tuple[str, ...], tuple[FieldChange, ...]]:
        """The policies by which the decisions differ, in their order, and how, field by field.

        Policies that say the same of the pod in both sets only count if no other can be named:
        they give way to another, or another no longer stands before them.
        """
        fields = self._fields(old, new)
        said = dict.fromkeys(field.policy for field in fields if field.policy)
        taking_part = set(old.policies) ^ set(new.policies)
        otherwise = [name for name in said if name in taking_part or self._differs(name, fields)]
        # Without a word in the trace, the change is one of who takes part at all.
        policies = otherwise or list(said) or sorted(taking_part)
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
    """What was done; if all came to nothing, how."""
    done = [each.reason for each in entries if each.outcome in counts]
    return "; ".join(done or [f"{each.outcome}: {each.reason}" for each in entries])
