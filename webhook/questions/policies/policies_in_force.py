"""The policies in force: the pods that they affect, their counts, and a summary of each."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from webhook.decision.stamp import HASH_LENGTH
from webhook.policy.conditions import describe_fields
from webhook.questions.live.focus import NoSuchPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.policy.match_model import Match
    from webhook.policy.model import PlacementPolicy
    from webhook.policy.policy_set import PolicySet

EVERYWHERE = "everywhere"
_ALL = "every pod of every run"
_LEADS = {
    "true": "only the pod that leads its run",
    "false": "only pods that do not lead their run",
}


class LivePod(NamedTuple):
    """A live pod of a run. `stamped` are the policies that took part when it was created.

    `matching` are those that match it now and would take part, `failed` why those that took part
    do not any more, `excepted` the exceptions, by policy, by which one that matches takes no part.
    """

    namespace: str
    name: str
    stamped: tuple[str, ...]
    matching: frozenset[str]
    failed: Mapping[str, str]
    excepted: Mapping[str, str] = {}


class Template(NamedTuple):
    """What makes pods, and the policies that apply to some of them."""

    namespace: str
    title: str
    matching: frozenset[str]


class Served(NamedTuple):
    """A replica of the webhook, and the hash of the set that it serves, cut as stamps have it."""

    replica: str
    hash: str


class Count(NamedTuple):
    """Of one policy. Times are RFC 3339; empty if unknown, or without a match."""

    decided: int
    last_match: str
    since: str


@dataclass(frozen=True, slots=True)
class PoliciesInForce:
    """All of it.

    policies: None if the documents do not compile; `wrong` has the errors
    models:   the policies as they are written, by name
    accepted: by policy, why it is not accepted, or an empty text; absent if unknown
    counts:   by policy; absent if not counted
    served:   None if unknown
    compare:  whether replicas should serve exactly the set of `policies`
    """

    source: str
    policies: PolicySet | None
    wrong: Sequence[object] = ()
    models: Mapping[str, PlacementPolicy] = field(default_factory=dict)
    accepted: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, Count] = field(default_factory=dict)
    served: Sequence[Served] | None = None
    compare: bool = True
    pods: Sequence[LivePod] = ()
    templates: Sequence[Template] = ()
    notes: Sequence[str] = ()

    @property
    def expected(self) -> str:
        """The set that replicas should serve; empty if there is nothing to compare them with."""
        return self.policies.hash[:HASH_LENGTH] if self.policies and self.compare else ""

    @property
    def same_set(self) -> bool | None:
        """Whether replicas serve one set, and the expected one; None if unknown."""
        if self.served is None:
            return None
        hashes = {served_set.hash for served_set in self.served}
        return len(hashes) == 1 and (not self.expected or hashes == {self.expected})


class Row(NamedTuple):
    """One policy in the list, with the keys of its JSON.

    accepted: None if unknown; `reason` says why it is not
    decided:  None if there are no counts; `last_match` and `since` are None if unknown
    """

    name: str
    priority: int
    enforced: str
    match: str
    accepted: bool | None
    reason: str | None
    pods_touched: int
    pods_matching: int
    templates_matching: int
    decided: int | None
    last_match: str | None
    since: str | None

    @property
    def never(self) -> bool:
        live = self.pods_touched or self.pods_matching or self.templates_matching
        return not (live or self.decided or self.last_match)


def for_whom(policy: PlacementPolicy) -> str:
    """Return which pods it matches: `roles worker; namespaces ml-*; but not kinds notebook`."""
    match = policy.spec.match
    texts = _conditions(match) if match is not None else []
    but = [f"but not {' and '.join(_conditions(block))}" for block in policy.spec.exclude]
    return "; ".join([*(texts or [_ALL]), *but])


def where(policy: PlacementPolicy) -> str:
    """Return where it is enforced: everywhere, nowhere (audit), or in the namespaces of its
    rollout."""
    if policy.spec.enforcement == "Audit":
        return "audit"
    rollout = policy.spec.rollout
    return f"in {', '.join(rollout.namespaces)}" if rollout else EVERYWHERE


def _conditions(match: Match) -> list[str]:
    return [
        _LEADS[text] if field.form == "flag" else f"{field.document_name} {text}"
        for field, text in describe_fields(match)
    ]


def policy_rows(gathered: PoliciesInForce) -> list[Row]:
    touched = Counter(name for pod in gathered.pods for name in pod.stamped)
    matching = Counter(name for pod in gathered.pods for name in pod.matching)
    templates = Counter(name for template in gathered.templates for name in template.matching)
    ordered = sorted(
        gathered.models.values(), key=lambda policy: (-policy.spec.priority, policy.name)
    )
    rows = []
    for policy in ordered:
        reason, count = gathered.accepted.get(policy.name), gathered.counts.get(policy.name)
        rows.append(
            Row(
                policy.name,
                policy.spec.priority,
                where(policy),
                for_whom(policy),
                None if reason is None else not reason,
                reason or None,
                touched[policy.name],
                matching[policy.name],
                templates[policy.name],
                count.decided if count else None,
                (count.last_match or None) if count else None,
                (count.since or None) if count else None,
            )
        )
    return rows


def known_since(rows: Sequence[Row]) -> str | None:
    """Return the time since when matches of all these policies are known; None if one is
    unknown."""
    times = [row.since or "" for row in rows]
    return max(times, default=None) if all(times) else None


class Touched(NamedTuple):
    """A live pod beside one policy, with the reason or the exception; None without one."""

    namespace: str
    name: str
    why: str | None


class Workload(NamedTuple):
    namespace: str
    object: str


class PodsOf(NamedTuple):
    """The live pods and workloads that have to do with one policy, with the keys of the JSON.

    applied: it was applied, and matches now
    no_more: it was applied, and does not match any more
    would:   it would apply now
    exempt:  it matches now, and an exception exempts the pod
    """

    policy: str
    applied: list[Touched]
    no_more: list[Touched]
    would: list[Touched]
    exempt: list[Touched]
    workloads: Sequence[Workload]


def pods_of(gathered: PoliciesInForce, name: str) -> PodsOf:
    """Return what the policy of that name has to do with. Raises NoSuchPolicy."""
    is_in_force = name in gathered.models
    templates = (template for template in gathered.templates if name in template.matching)
    workloads = [Workload(template.namespace, template.title) for template in templates]
    result = PodsOf(name, [], [], [], [], workloads)
    for pod in gathered.pods:
        place = (pod.namespace, pod.name)
        if name in pod.matching:
            (result.applied if name in pod.stamped else result.would).append(Touched(*place, None))
        elif name in pod.stamped:
            gone = "" if is_in_force else "no policy with this name is in force any more"
            why = gone or pod.failed.get(name) or "the pod belongs to no run any more"
            result.no_more.append(Touched(*place, why))
        elif name in pod.excepted:
            result.exempt.append(Touched(*place, pod.excepted[name]))
    if not is_in_force and not (result.applied or result.no_more):
        problem = f"{name}: no such policy in {gathered.source}"
        raise NoSuchPolicy(problem, name, gathered.models)
    return result


def is_audited(gathered: PoliciesInForce, name: str) -> bool:
    return name in gathered.models and where(gathered.models[name]) != EVERYWHERE
