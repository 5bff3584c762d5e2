"""Which policies touch the pods of a cluster: by their stamps, and by a match now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.admission.arrival import Arrival
from webhook.admission.engine import subject_of
from webhook.admission.excepted import taking_part
from webhook.cli.decisions import MAX_REPLICAS
from webhook.cli.diff.gathered import Template as Maker
from webhook.cli.live import stamped
from webhook.cli.offline import labels_of
from webhook.cli.policies.gathered import LivePod, Template
from webhook.cli.run.previewed import pod_of
from webhook.errors import InvalidPod
from webhook.identity import identify
from webhook.placement import pod as pods

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from webhook.cli.diff.gathered import Planned
    from webhook.placement.shapes import JsonObject
    from webhook.policy.policy_set import PolicySet
    from webhook.policy.subject import Subject
    from webhook.workloads.object import Object


class Toucher:
    """Asks the policies of one set; `namespaces` are labels by name."""

    def __init__(
        self, policies: PolicySet, namespaces: Mapping[str, Mapping[str, str]], now: datetime
    ) -> None:
        self._policies = policies
        self._by_name = {policy.name: policy for policy in policies.policies}
        self._namespaces = namespaces
        self._now = now

    def pod(self, pod: Object) -> LivePod | None:
        """A live pod; None if it belongs to no run and was never touched."""
        stamp = stamped.read(pod)
        taken = tuple(stamp.policies) if stamp else ()
        seen = self._seen(pod.value, pod.namespace)
        if seen is None:
            return LivePod(pod.namespace, pod.name, taken, frozenset(), {}) if taken else None
        subject, arrival = seen
        matching, excepted = self._matching(subject, arrival)
        failed = {}
        for name in taken:
            if name not in matching:
                policy = self._by_name.get(name)
                why = excepted.get(name) and f"set aside by the exception {excepted[name]}"
                failed[name] = why or ("" if policy is None else policy.failed(subject) or "")
        return LivePod(pod.namespace, pod.name, taken, matching, failed, excepted)

    def template(self, maker: Maker | Planned) -> Template:
        """What makes pods: the policies that match some of them."""
        found: set[str] = set()
        for pod in _pods(maker):
            seen = self._seen(pod, maker.namespace)
            if seen is not None:
                found |= self._matching(*seen)[0]
        return Template(maker.namespace, _title(maker), frozenset(found))

    def _matching(
        self, subject: Subject, arrival: Arrival
    ) -> tuple[frozenset[str], Mapping[str, str]]:
        """The policies that would take part, and the exceptions, by policy that would not."""
        policies = self._policies.policies
        positions, aside = taking_part(self._policies, subject, arrival)
        excepted = {name: taken.exception.name for taken in aside.by for name in taken.policies}
        return frozenset(policies[at].name for at in positions), excepted

    def _seen(self, pod: JsonObject, namespace: str) -> tuple[Subject, Arrival] | None:
        labels = labels_of(namespace, self._namespaces)
        try:
            own = pods.read(pod)
        except InvalidPod:
            return None  # the API server would not take it either
        identity = identify(own.labels, own.annotations, labels)
        if identity is None:
            return None
        arrival = Arrival(pod, namespace, labels, now=self._now)
        return subject_of(arrival, own, identity, self._policies), arrival


def _pods(maker: Maker | Planned) -> Iterator[JsonObject]:
    if isinstance(maker, Maker):
        count = maker.template.count
        for index in range(min(max(count or 1, 1), MAX_REPLICAS)):
            yield maker.template.pod(index)
        return
    for role, count in maker.plan.gang.counts.items():
        for index in range(min(count, MAX_REPLICAS)):
            yield pod_of(maker.plan, role, index)


def _title(maker: Maker | Planned) -> str:
    if isinstance(maker, Maker):
        return maker.template.source.title
    return f"Run/{maker.plan.run.name}"
