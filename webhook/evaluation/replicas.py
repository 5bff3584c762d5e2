"""Evaluate the pods of a template; equal ones are grouped here, and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from webhook.evaluation.templates import history_of_replica
from webhook.evaluation.undecided import undecided_selector
from webhook.shortening import one_line, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.decision.arrival import Arrival
    from webhook.decision.decision import Decision
    from webhook.evaluation.evaluation import Evaluation
    from webhook.evaluation.room import ObjectRoom
    from webhook.evaluation.surveys import Unknown
    from webhook.evaluation.world import World
    from webhook.placement.shapes import JsonObject
    from webhook.policy.policy_set import PolicySet
    from webhook.workloads.template import PodTemplate


@dataclass(frozen=True)
class Replicas:
    """Pods of one template with equal decisions.

    indexes:         the indexes of the evaluated pods in the template
    more:            the number of pods after the last index, the template's last, which are treated
                     like it
    replica_indexes: the replica indexes of their labels, without duplicates
    evaluation:      what happens to the first pod
    doubts:          warnings about the template
    nodes:           for a DaemonSet, the nodes of these pods, if not all of its nodes
    room:            how many pods of the whole object can run at one time; `with_room` sets it
    shows_room:      whether the answer has it: that of the first pods of each object
    """

    template: PodTemplate
    indexes: Sequence[int]
    more: int
    replica_indexes: Sequence[int]
    evaluation: Evaluation
    doubts: Sequence[str] = ()
    nodes: Sequence[str] = ()
    room: ObjectRoom | None = None
    shows_room: bool = True

    @property
    def arrival(self) -> Arrival:
        """The first pod, as the webhook gets it."""
        return self.evaluation.arrival

    @property
    def decision(self) -> Decision:
        """The decision on the first pod."""
        return self.evaluation.decision

    @property
    def warnings(self) -> Sequence[str]:
        """The warnings about the pods, and about their template."""
        return [*self.doubts, *self.evaluation.warnings]

    @property
    def refusals(self) -> Sequence[str]:
        """Why the API server refuses the pods as decided, as far as that is known."""
        return self.evaluation.refusals

    @cached_property
    def undecided(self) -> Sequence[Unknown]:
        """What decides about the pods, and is not known."""
        selector = undecided_selector(self)
        return [*self.evaluation.undecided, *([selector] if selector else ())]

    @property
    def admitted(self) -> bool:
        """Whether the pods would be admitted, as far as that is known."""
        return self.evaluation.allowed

    @property
    def count(self) -> int:
        """The number of pods."""
        return len(self.indexes) + self.more

    @property
    def made(self) -> int:
        """The number of pods, of a DaemonSet by its nodes, if they are known."""
        nodes = self.evaluation.template_nodes
        if self.nodes:
            return len(self.nodes)
        return self.count if nodes is None else len(nodes) - len(self.evaluation.held_off)

    @property
    def all_indexes(self) -> Sequence[int]:
        """The indexes of all pods."""
        last = self.indexes[-1] + 1
        return [*self.indexes, *range(last, last + self.more)]

    @property
    def pods(self) -> str:
        """Which pods of the object: `worker × 3`; empty for its only pod."""
        described = self.template.describe(self.indexes, self.more)
        return f"{described}: on {shortened(self.nodes)}" if self.nodes else described

    @property
    def subject(self) -> str:
        """Object, namespace and pods: `TFJob/mnist in research, worker × 3`."""
        title = f"{self.template.source.title} in {self.arrival.namespace}"
        return one_line(f"{title}, {self.pods}" if self.pods else title)

    def mutated(self) -> JsonObject:
        """Return the template that creates the patched pod without a webhook."""
        index = self.indexes[0]
        pod = self.evaluation.as_written(self.template.pod(index))
        return self.template.mutated(index, pod)


@dataclass(slots=True)
class _Group:
    evaluation: Evaluation
    more: int = 0
    indexes: list[int] = field(default_factory=list)
    replica_indexes: set[int] = field(default_factory=set)


def evaluate_template(
    world: World,
    template: PodTemplate,
    namespace: str,
    doubts: Sequence[str] = (),
    other: PolicySet | None = None,
    arrivals: list[Arrival] | None = None,
) -> list[Replicas]:
    """Return what happens to the pods of a template; `doubts` are those of Replicas.

    `other`: policies with which the answer is compared: the same pods are evaluated under them.
    `arrivals`: gets each pod that is evaluated. Raises InvalidPod.
    """
    groups: list[_Group] = []

    def turns() -> Iterator[int]:
        identity = evaluation.decision.identity
        for policies in (world.policies, other) if other else (world.policies,):
            yield from template.indexes_with(policies.tested_labels)
            if identity is None:
                continue
            of_set = template.selector is not None and template.selector.first is not None
            first = index if identity.replica_index is None else identity.replica_index
            if of_set or identity.replica_index is not None:
                for at in policies.turns(identity.replicas, namespace):
                    yield at - first + index

    for index, more in template.sample(turns):
        history = history_of_replica(template, index, world.now)
        evaluation = world.evaluate(
            template.pod(index),
            namespace,
            led=template.led,
            history=history,
            selector=template.selector,
            maker=template.source.kind,
        )
        if arrivals is not None:
            arrivals.append(evaluation.arrival)
        group = next(
            (group for group in groups if _same(group.evaluation.decision, evaluation.decision)),
            None,
        )
        if group is None:
            group = _Group(evaluation)
            groups.append(group)
        end = index + 1 + more
        last = end == template.count
        expanded = range(index, index + 1 if last else end)
        group.indexes.extend(expanded)
        group.more = more if last else 0
        identity = evaluation.decision.identity
        if identity and identity.replica_index is not None:
            first = identity.replica_index
            group.replica_indexes.update(range(first, first + len(expanded)))
    alike = [
        Replicas(
            template,
            tuple(group.indexes),
            group.more,
            sorted(group.replica_indexes),
            group.evaluation,
            doubts,
        )
        for group in groups
    ]
    if template.count is None:
        (every,) = alike
        return _by_node(every)
    return alike


def _by_node(every: Replicas) -> list[Replicas]:
    """Return a DaemonSet's pods; those that would be rejected because of their nodes are
    separate."""
    off = every.evaluation.held_off
    if not off:
        return [every]
    evaluation = every.evaluation.on_node(off[0])
    rejected = replace(every, evaluation=evaluation, doubts=(), nodes=off)
    return (
        [rejected] if len(off) == len(every.evaluation.template_nodes or ()) else [every, rejected]
    )


def _same(decision: Decision, other: Decision) -> bool:
    """Return whether both decisions have the same result and reasons; identities may differ."""
    return (
        decision.result == other.result
        and decision.reason == other.reason
        and decision.patch == other.patch
        and decision.warnings == other.warnings
        and decision.policies == other.policies
        and decision.trace == other.trace
        and decision.audited == other.audited
    )
