"""Trials of pods: what happens to one with some of the policies of a set, within a budget."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from webhook.decision.arrival import Cluster
from webhook.evaluation.world import World
from webhook.judgement.together.effort import fold_steps
from webhook.judgement.together.outcomes import (
    LACKS_NODE,
    PLACEMENT_FAULTS,
    REJECTED,
    PodOutcome,
)
from webhook.judgement.together.witness import find
from webhook.placement.fallback import fallen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.evaluation.evaluation import Evaluation
    from webhook.judgement.together.effort import Effort
    from webhook.judgement.together.policy_view import Policy
    from webhook.judgement.together.warnings import Prepared
    from webhook.judgement.together.witness import Witness
    from webhook.placement.nodes import Node
    from webhook.policy.policy_set import PolicySet

# Policies that are put together.
MAX_POLICIES: Final = 5
# Steps of an effort: for the evaluation of a pod, and the search for one.
_EVALUATION, _SEARCH = 80, 12
# How often an evaluation goes through the condition on nodes.
_FOLDS: Final = 3
# When nodes were lost, for pods that have lost as many as a fallback may wait for.
_ANY_TIME: Final = datetime(2026, 1, 1, tzinfo=UTC)


class PodTrials:
    """Evaluates pods with policies that are prepared, on nodes if they are known.

    Whatever it has no steps left for is None.
    """

    def __init__(self, given: Prepared, nodes: Sequence[Node] | None, effort: Effort) -> None:
        self._policies = given.policies
        self._whole = given.whole
        self._tables = given.tables
        self._plugins = given.inputs
        self._nodes = given.tables.different(nodes) if nodes else None
        self._effort = effort
        self._large_sets: dict[tuple[int, ...], PolicySet] = {}
        # By name and the pod's operating system.
        self._alone: dict[tuple[str, str], PodOutcome | None] = {}
        self._kept = given.tables.outcomes.beside(given.inputs)
        # By name.
        self._leaves_nodes: dict[str, bool] = {}
        # What happens to the last pod, by the names of the policies and whether nodes count.
        self._last: tuple[Witness | None, dict[tuple[object, ...], PodOutcome]] = (None, {})

    @property
    def knows_nodes(self) -> bool:
        """Whether there are nodes that pods are tried on."""
        return bool(self._nodes)

    def find(self, policies: Sequence[Policy]) -> Witness | None:
        """Return a pod that all of the policies match."""
        work = max(policy.match_work for policy in policies)
        return find(policies) if self._effort.spend(_SEARCH * work) else None

    def outcome(
        self,
        group: Sequence[Policy],
        pod: Witness,
        participants: Sequence[Policy] = (),
        *,
        on_nodes: bool = True,
    ) -> PodOutcome | None:
        """Return what happens to the pod with these policies alone; None if they, or those in
        `participants`, do not all take part."""
        nodes = self._nodes if on_nodes else None
        looks = len(nodes or ()) * any(map(self._limits_nodes, group))
        if not self._effort.spend(_evaluation_steps(group) + looks):
            return None
        if self._last[0] != pod:
            self._last = pod, {}
        key = (on_nodes, *(policy.name for policy in group))
        outcomes = self._last[1]
        if key not in outcomes:
            outcomes[key] = self._evaluate(group, pod, nodes)
        return outcomes[key].if_taking_part(participants or group)

    def outcome_alone(self, policy: Policy, pod: Witness) -> PodOutcome | None:
        """Return what happens to the policy's own pod with it alone, wherever there are nodes.

        To this pod instead, if it is for another operating system.
        """
        key = (policy.name, pod.system)
        if key in self._alone:
            return self._alone[key]
        witness = policy.witness
        if witness is None or witness.system != pod.system:
            self._alone[key] = self.outcome((policy,), pod, on_nodes=False)
        elif not self._effort.spend(_SEARCH * policy.match_work + _evaluation_steps((policy,))):
            return None
        else:
            if policy not in self._kept:
                outcome = self._evaluate((policy,), witness, None)
                self._kept[policy] = outcome.if_taking_part((policy,))
            self._alone[key] = self._kept[policy]
        return self._alone[key]

    def leaves_nodes(self, policy: Policy) -> bool:
        """Return whether the policy limits nodes, and by itself leaves some, as far as known."""
        if not self._limits_nodes(policy) or self._nodes is None or policy.witness is None:
            return self._limits_nodes(policy)
        if policy.name not in self._leaves_nodes:
            alone = self.outcome((policy,), policy.witness)
            self._leaves_nodes[policy.name] = not (alone and LACKS_NODE in alone.faults)
        return self._leaves_nodes[policy.name]

    def minimal_group(self, group: Sequence[Policy], pod: Witness, fault: str) -> list[Policy]:
        """Return a part of the group with the same fault, and of which none may be left out."""
        needed = list(group)
        for policy in group:
            fewer = [other for other in needed if other is not policy]
            outcome = self.outcome(fewer, pod) if fewer else None
            if outcome and fault in outcome.faults:
                needed = fewer
        return [] if self._effort.is_over else needed

    def with_enforced(self, group: Sequence[Policy], pod: Witness) -> list[Policy]:
        """Return the group, and the others that match the pod and are enforced."""
        self._effort.spend(self._tables.match_steps)
        # The positions are the same in both: policies have one order.
        matching = self._tables.matching(pod.subject)
        chosen = {at for at in matching if self._policies[at].enforced}
        chosen.update(self._tables.positions[policy.name] for policy in group)
        return [self._policies[at] for at in sorted(chosen)]

    def is_unplaced(self, group: Sequence[Policy], pod: Witness) -> bool:
        """Return whether the pod is rejected or has no node beside all that is enforced, too."""
        outcome = self.outcome(self.with_enforced(group, pod), pod, participants=group)
        return outcome is None or not outcome.faults.isdisjoint(PLACEMENT_FAULTS)

    def _evaluate(
        self, group: Sequence[Policy], pod: Witness, nodes: Sequence[Node] | None
    ) -> PodOutcome:
        world = self._world(group, pod, nodes)
        manifest, namespace = pod.manifest(), pod.subject.namespace
        evaluation = world.evaluate(manifest, namespace, led=False)
        evaluations = [evaluation]
        if classes := {name for policy in group for name in policy.fallbacks}:
            later = replace(world, history=fallen(classes, _ANY_TIME))
            evaluations.append(later.evaluate(manifest, namespace, led=False))
        limiting = any(map(self._limits_nodes, group))
        lines = [
            frozenset((e.policy, e.part, e.field, e.outcome) for e in evaluation.decision.trace)
            for evaluation in evaluations
        ]
        faults = [_faults(evaluation, limiting=limiting) for evaluation in evaluations]
        return PodOutcome(
            frozenset(evaluation.decision.policies),
            lines[0].union(*lines),
            faults[0].union(*faults),
            (lines[0], faults[0]),
        )

    def _world(self, group: Sequence[Policy], pod: Witness, nodes: Sequence[Node] | None) -> World:
        return World(
            policies=self._set_of(group),
            cluster=Cluster(),
            namespaces={pod.subject.namespace: pod.subject.namespace_labels},
            now=None,
            configuration=None,
            classes=None,
            plugins=self._plugins,
            nodes=nodes,
            server=None,
            history=None,
            faults=self._tables.outcomes.faults,
        )

    def _set_of(self, group: Sequence[Policy]) -> PolicySet:
        positions = tuple([self._tables.positions[policy.name] for policy in group])
        if len(positions) <= MAX_POLICIES:
            return self._whole.only(positions)
        if positions not in self._large_sets:
            self._large_sets[positions] = self._whole.only(positions)
        return self._large_sets[positions]

    def _limits_nodes(self, policy: Policy) -> bool:
        settings = policy.settings if self._nodes else policy.requirements
        return any(located.node_keys for located in settings)


def _faults(evaluation: Evaluation, *, limiting: bool) -> frozenset[str]:
    """Return what is wrong with a pod; `limiting`: one of its policies limits nodes."""
    decision = evaluation.decision
    if not decision.allowed:
        return frozenset({REJECTED})
    # What a RuntimeClass selects is no setting of a policy.
    classed = decision.placement and decision.placement.runtime_class_name
    checked = evaluation.world.nodes and (limiting or classed)
    lost = checked and evaluation.nodes and evaluation.nodes.none_left
    return frozenset({*evaluation.refusals, *([LACKS_NODE] if lost else ())})


def _evaluation_steps(group: Sequence[Policy]) -> int:
    """Return the steps of an evaluation of a pod with these policies, without nodes."""
    work = max(policy.fold_work for policy in group) * (_EVALUATION + len(group))
    return work + _FOLDS * fold_steps(policy.condition for policy in group)
