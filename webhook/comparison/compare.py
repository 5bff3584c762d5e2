"""Decides on pods under two policy sets, and tells where what becomes of them differs.

What counts is what becomes of a pod, not who is credited with it: a policy under a new name, or a
rejection in other words, is no difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from webhook import names
from webhook.admission.engine import decide
from webhook.admission.shape import Shapes
from webhook.comparison.authors import Authors
from webhook.comparison.difference import Difference, Side, kind_of
from webhook.comparison.roster import Roster

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.admission.arrival import Arrival, Cluster
    from webhook.admission.decision import Decision
    from webhook.placement.nodes import Node
    from webhook.placement.pod import PodPlacement
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


class Comparison:
    """Compares two policy sets, pod by pod. Pods of one shape are decided on once."""

    def __init__(self, sets: Sets) -> None:
        self._sets = sets
        self._shapes = Shapes((sets.old, sets.new))
        self._authors = Authors(sets.old, sets.new)
        self._roster = None if sets.nodes is None else Roster(sets.nodes)
        self._known: dict[bytes, Difference | Same] = {}

    def of(self, arrival: Arrival) -> Difference | Same:
        """What becomes of the pod otherwise, or how it stays.

        Raises InvalidPod if the pod's placement fields have no pod's shape.
        """
        shape = self._shapes.of(arrival)
        if shape is None:
            return self.judged(arrival)
        found = self._known.get(shape)
        if found is None:
            found = self._known[shape] = self.judged(arrival)
        return found

    def judged(self, arrival: Arrival) -> Difference | Same:
        """The same, decided anew."""
        old = decide(arrival, self._sets.old, self._sets.cluster)
        if old.placement is None:
            return "no run"
        new = decide(arrival, self._sets.new, self._sets.cluster)
        if not old.allowed and not new.allowed:
            return "rejected"
        if old.allowed and new.allowed and _unstamped(old) == _unstamped(new):
            return "same"
        sides = self._side(old, self._sets.old), self._side(new, self._sets.new)
        return Difference(kind_of(*sides), *sides, *self._authors.told(old, new))

    def _side(self, decision: Decision, policies: PolicySet) -> Side:
        if self._roster is None or not decision.allowed or decision.placement is None:
            return Side(decision.result, decision.reason)
        nodes = self._roster.of(decision.placement, policies.classes.values())
        return Side(decision.result, decision.reason, nodes)


def _unstamped(decision: Decision) -> PodPlacement | None:
    """The placement without our own annotation, in which the set's hash stands."""
    placement = decision.placement
    if placement is None:
        return None
    own = {k: v for k, v in placement.annotations.items() if k != names.PLACEMENT}
    return placement._replace(annotations=own)
