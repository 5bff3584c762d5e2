"""Decides on pods under two policy sets, and tells where what becomes of them differs.

What counts is what becomes of a pod, not who is credited with it: a policy under a new name, or a
rejection in other words, is no difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from webhook.admission.engine import part_in, see, weigh
from webhook.admission.shape import Shapes
from webhook.comparison.authors import Authors
from webhook.comparison.difference import Difference, Side, kind_of
from webhook.comparison.gaps import same_placement
from webhook.comparison.roster import Roster

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.admission.arrival import Arrival, Cluster
    from webhook.admission.evaluation import Evaluation, Part, ReceivedPod
    from webhook.admission.shape import Shape
    from webhook.placement.nodes import Node
    from webhook.policy.policy_set import PolicySet

# no run: the pod belongs to none, so no policy is asked
# rejected: under both sets
Same: TypeAlias = Literal["no run", "same", "rejected"]


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
