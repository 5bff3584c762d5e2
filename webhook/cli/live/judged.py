"""A live pod held against today's policies: what was done, what would be, and where they part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.admission.advice import warnings
from webhook.admission.arrival import Arrival
from webhook.admission.engine import decide
from webhook.cli.decisions import Replicas, as_sent
from webhook.cli.explained import answers
from webhook.cli.live import stamped
from webhook.cli.live.fields import touched
from webhook.cli.live.origin import origin_of
from webhook.comparison.gaps import gaps
from webhook.placement import pod as pods
from webhook.placement.tolerations import within
from webhook.workloads.object import Object
from webhook.workloads.stored import as_admitted, is_bound, without_binding
from webhook.workloads.template import PodTemplate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from webhook.admission.arrival import Cluster
    from webhook.admission.decision import Decision
    from webhook.cli.live.origin import Origin
    from webhook.cli.live.stamped import Stamp
    from webhook.comparison.gaps import Gap
    from webhook.placement.shapes import Toleration
    from webhook.placement.trace import Entry
    from webhook.policy.policy_set import PolicySet

_GIVEN = ("set", "kept")


class Difference(NamedTuple):
    """A field in which a live pod is not as it would be if it were created now.

    then: the policies that its stamp credits with the field
    now:  the policies that would give it what it would have
    why:  of each policy that gave it then, why it would not now
    """

    field: str
    has: Any
    would: Any
    then: tuple[str, ...]
    now: tuple[str, ...]
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LivePod:
    """One live pod, as admission left it.

    `today` is the decision on it as its author wrote it; `stamp` what was done.
    """

    pod: Object
    stamp: Stamp | None
    origin: Origin
    today: Replicas
    differences: Sequence[Difference]

    @property
    def is_run(self) -> bool:
        """Whether it belongs to a run, by what it says of itself now."""
        return self.today.decision.identity is not None

    @property
    def unstamped(self) -> bool:
        """Whether no policy was asked about it, though it belongs to a run."""
        return self.stamp is None and self.is_run

    @property
    def same(self) -> bool:
        """Whether it is as it would be if it were created now."""
        return self.today.decision.allowed and not self.differences and not self.unstamped


class Judge(NamedTuple):
    """What decides on live pods. `labels` are a namespace's.

    `configuration` sends pods to the webhook; None if it is not known.
    """

    policies: PolicySet
    cluster: Cluster
    labels: Mapping[str, str]
    now: datetime
    configuration: Mapping[str, Any] | None = None

    def of(self, pod: Object, templates: Sequence[PodTemplate]) -> LivePod:
        """What becomes of the pod; `templates` are those of the object that made it, if known.

        Raises InvalidPod.
        """
        stamp = stamped.read(pod)
        admitted = Object(pod.file, as_admitted(pod.value))
        origin = origin_of(admitted, stamp, templates, self.policies)
        today = self._decided(origin.pod)
        found = self._differences(admitted, stamp, today, bound=is_bound(pod.value))
        return LivePod(admitted, stamp, origin, today, found)

    def _decided(self, author: Object) -> Replicas:
        arrival = Arrival(author.value, author.namespace, self.labels, now=self.now)
        decision = as_sent(
            decide(arrival, self.policies, self.cluster), arrival, self.configuration
        )
        index = decision.identity.replica_index if decision.identity else None
        return Replicas(
            PodTemplate(author, ()),
            (0,),
            0,
            () if index is None else (index,),
            arrival,
            decision,
            warnings(author.value, decision),
        )

    def _differences(
        self, pod: Object, stamp: Stamp | None, today: Replicas, *, bound: bool
    ) -> Sequence[Difference]:
        if not today.decision.allowed:
            return ()
        has = pods.read(pod.value)
        would = today.decision.placement or pods.read(today.arrival.pod)
        default = self.cluster.default_priority_class
        if default and not would.priority_class_name:
            would = would._replace(priority_class_name=default)
        if bound:
            would = would._replace(labels=without_binding(would.labels))
        return [
            _difference(gap, stamp, today, self.policies)
            for gap in gaps(has, would)
            if not _covered(gap, has.tolerations, would.tolerations)
        ]


def _covered(gap: Gap, has: Sequence[Toleration], would: Sequence[Toleration]) -> bool:
    """Whether tolerations differ in none that is not within a broader one on the other side.

    The PodTolerationRestriction plugin keeps the broader one alone.
    """
    if not gap.field.startswith("tolerations["):
        return False
    return all(any(within(each, broad) for broad in would) for each in gap.has or ()) and all(
        any(within(each, broad) for broad in has) for each in gap.would or ()
    )


def _difference(gap: Gap, stamp: Stamp | None, today: Replicas, policies: PolicySet) -> Difference:
    then = [
        policy
        for policy, fields in (stamp.policies.items() if stamp else ())
        if any(touched(field, gap.field, policies) for field in fields)
    ]
    now = [
        entry.policy
        for entry in today.decision.trace
        if entry.outcome in _GIVEN and touched(entry.field, gap.field, policies)
    ]
    gone = [policy for policy in then if policy not in now]
    return Difference(
        *gap,
        tuple(then),
        tuple(dict.fromkeys(now)) if gap.would is not None else (),
        tuple(_why(gone, gap.field, today, policies)),
    )


def _why(gone: Sequence[str], field: str, today: Replicas, policies: PolicySet) -> Iterator[str]:
    """Why policies that gave a field would not give it now."""
    if today.decision.result == "not-sent":
        yield today.decision.reason
        return
    if gone and today.decision.identity is None:
        yield "the pod belongs to no run any more: no policy is asked about it"
        return
    known = {each.name: each for each in answers(today, policies)}
    for name in gone:
        answer = known.get(name)
        if answer is None:
            yield f"{name} is not among today's policies"
        elif answer.answer == "no":
            yield f"{name} does not match: {answer.why}"
        elif answer.answer == "audit":
            yield f"{name} is under audit here"
        elif answer.answer == "set aside":
            yield f"{name}: {answer.why}"
        else:
            yield f"{name} {_lost(today.decision, name, field, policies)}"


def _lost(decision: Decision, name: str, field: str, policies: PolicySet) -> str:
    entries: list[Entry] = [
        entry
        for entry in decision.trace
        if entry.policy == name and touched(entry.field, field, policies)
    ]
    if not entries:
        return "says nothing of it any more"
    return "; ".join(f"{entry.outcome}: {entry.reason}" for entry in entries)
