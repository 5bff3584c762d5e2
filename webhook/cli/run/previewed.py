"""What becomes of a planned Run's pods: a decision for each, and like ones together."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import jsonpatch

from webhook.admission.advice import warnings
from webhook.admission.arrival import Arrival
from webhook.admission.engine import decide
from webhook.cli.decisions import MAX_REPLICAS, same

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from webhook.admission.arrival import Cluster
    from webhook.admission.decision import Decision
    from webhook.placement.shapes import JsonObject
    from webhook.policy.policy_set import PolicySet
    from webhook.run.plan import Plan
    from webhook.run.pod_template_cache import PodTemplateCache
    from webhook.run.rendezvous.framework import ReplicaEnv


@dataclass(frozen=True, slots=True)
class Judge:
    """Decides on pods as the webhook would at `now`; `labels` gives a namespace's."""

    policies: PolicySet
    cluster: Cluster
    labels: Callable[[str], Mapping[str, str]]
    now: datetime | None = None

    def arrival(self, pod: JsonObject) -> Arrival:
        """A pod as the webhook gets it."""
        namespace = pod["metadata"]["namespace"]
        return Arrival(pod, namespace, self.labels(namespace), now=self.now)

    def decision(self, pod: JsonObject) -> Decision:
        """What the webhook would answer."""
        return decide(self.arrival(pod), self.policies, self.cluster)


@dataclass(slots=True)
class Group:
    """Replicas of one role that are made alike, and of which the same becomes.

    pod: the first of them, as it comes to the webhook; decision: None without policies.
    """

    plan: Plan
    role: str
    template_cache: PodTemplateCache
    pod: JsonObject
    decision: Decision | None
    indexes: list[int] = field(default_factory=list)

    @property
    def warnings(self) -> Sequence[str]:
        """What their author would be warned of."""
        return warnings(self.pod, self.decision) if self.decision else ()

    @property
    def allowed(self) -> bool:
        """Whether they are admitted."""
        return self.decision is None or self.decision.allowed

    def told(self, index: int) -> ReplicaEnv:
        """What one of them is told."""
        return self.plan.told(self.role, index)

    def pods(self) -> Iterator[JsonObject]:
        """All of them, as they would be."""
        for index in self.indexes:
            yield self.patched(pod_of(self.plan, self.role, index))

    def patched(self, pod: JsonObject) -> JsonObject:
        """One of them with the patch applied."""
        if self.decision is None or not self.decision.patch:
            return pod
        patch = copy.deepcopy(list(self.decision.patch))
        result: JsonObject = jsonpatch.apply_patch(copy.deepcopy(pod), patch)
        return result


def groups(plan: Plan, judge: Judge | None) -> list[Group]:
    """The pods of a run, in the framework's order, like ones together.

    Of replicas that are made alike those after the thousandth are taken to be like the last
    before: policies tell replicas apart by index, and no policy lists a thousand.
    """
    found: list[Group] = []
    for role, count in plan.gang.counts.items():
        own: list[Group] = []
        last: Group | None = None
        for index in range(count):
            usual = (role, index) not in plan.special
            if index >= MAX_REPLICAS and usual and last is not None:
                last.indexes.append(index)
                continue
            group = _group(own, plan, role, index, judge)
            group.indexes.append(index)
            last = group if usual else last
        found += own
    return found


def _group(own: list[Group], plan: Plan, role: str, index: int, judge: Judge | None) -> Group:
    """The group of a replica, which is among `own` afterwards."""
    template_cache, pod = plan.template_cache(role, index), pod_of(plan, role, index)
    decision = judge.decision(pod) if judge else None
    for each in own:
        if each.template_cache is template_cache and _alike(each.decision, decision):
            return each
    group = Group(plan, role, template_cache, pod, decision)
    own.append(group)
    return group


def _alike(one: Decision | None, other: Decision | None) -> bool:
    if one is None or other is None:
        return one is other
    return same(one, other)


def pod_of(plan: Plan, role: str, index: int) -> JsonObject:
    """A pod, as it comes to the webhook; of a Deployment, as its ReplicaSet makes it."""
    if not plan.run.spec.serving:
        return plan.pod(role, index, 0)
    template = plan.deployment()["spec"]["template"]
    prefix = {"generateName": f"{plan.run.name}-", "namespace": plan.run.namespace}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**prefix, **template["metadata"]},
        "spec": template["spec"],
    }
