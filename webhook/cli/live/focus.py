"""One policy, or one field: what an explanation says of it, and nothing else."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.admission.arrival import DEFAULT_TOLERATION_SECONDS
from webhook.cli.explained import answers, audit_entries, credited_to, meant
from webhook.cli.live.fields import is_within, says_of, touched
from webhook.cli.live.value_text import both_fields, field_text
from webhook.cli.verdict import cure
from webhook.comparison.gaps import fields
from webhook.errors import FairleadError
from webhook.placement import pod as pods
from webhook.placement.tolerations import NO_EXECUTE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from webhook.cli.decisions import Replicas
    from webhook.cli.live.judged import Difference, LivePod
    from webhook.cli.live.stamped import Stamp
    from webhook.cli.live.unstamped import Why
    from webhook.placement.trace import Entry
    from webhook.policy.policy_set import PolicySet

# What the DefaultTolerationSeconds admission plugin gives every pod.
_NOBODYS: Final = {
    f"tolerations[{key}]": [
        {"key": key, "operator": "Exists", "effect": NO_EXECUTE, "tolerationSeconds": seconds}
    ]
    for key, seconds in DEFAULT_TOLERATION_SECONDS.items()
}
# A word, a policy, and what is said.
Row = tuple[str, str, str]


class NoSuchPolicy(FairleadError):
    """No policy of that name is there: `said`, and which of the `known` may be meant."""

    def __init__(self, said: str, name: str, known: Iterable[str]) -> None:
        near = difflib.get_close_matches(name, list(known), 3)
        hint = f"did you mean {' or '.join(near)}?" if near else "fairlead policies lists them"
        super().__init__(f"{said}; {hint}")


class Focus(NamedTuple):
    """What is looked at; empty: all."""

    policy: str = ""
    field: str = ""

    def __bool__(self) -> bool:
        """Whether anything is left out."""
        return bool(self.policy or self.field)

    @property
    def title(self) -> str:
        """What is looked at, in words."""
        policy = f"policy {self.policy}" if self.policy else ""
        return ", ".join(filter(None, (policy, self.field)))

    def entry(self, entry: Entry, policies: PolicySet) -> bool:
        """Whether a line of the trace is about it."""
        return self._policy(entry.policy) and self._field(entry.field, policies)

    def credited(self, policy: str, field: str, policies: PolicySet) -> bool:
        """Whether a credit of a stamp is about it."""
        return self._policy(policy) and self._field(field, policies)

    def difference(self, difference: Difference) -> bool:
        """Whether a difference is about it."""
        who = (*difference.then, *difference.now)
        named = not self.policy or self.policy in who
        return named and (not self.field or is_within(difference.field, self.field))

    def has_say(self, policy: str, policies: PolicySet) -> bool:
        """Whether it is the policy that is looked at, or has a say in the field that is."""
        if self.policy:
            return policy == self.policy
        settings = [
            setting
            for each in policies.policies
            if each.name == policy
            for setting in each.settings
        ]
        return any(says_of(setting, self.field) for setting in settings)

    def _policy(self, policy: str) -> bool:
        return self.policy in ("", policy)

    def _field(self, field: str, policies: PolicySet) -> bool:
        return not self.field or touched(field, self.field, policies)


def check_policy(focus: Focus, policies: PolicySet, stamped: Sequence[str]) -> None:
    """Raises NoSuchPolicy if neither the set nor a stamp knows the policy."""
    known = [each.name for each in policies.policies]
    if not focus.policy or focus.policy in (*known, *stamped):
        return
    said = f"--policy {focus.policy}: no such policy is in force"
    raise NoSuchPolicy(said, focus.policy, known)


def of_pod(
    live: LivePod, policies: PolicySet, focus: Focus, unstamped: Why | None
) -> Iterator[Row]:
    """What a live pod has, what its stamp says, and what today's policies would do."""
    yield from _has(live, focus)
    yield from _then(live, policies, focus, unstamped)
    yield from of_replicas(live.today, policies, focus)
    for difference in filter(focus.difference, live.differences):
        who = ", ".join(difference.now)
        _, would = both_fields(difference.field, difference.has, difference.would)
        yield "would", who, would
        for why in difference.why:
            yield "why", "", why


def of_replicas(replicas: Replicas, policies: PolicySet, focus: Focus) -> Iterator[Row]:
    """What today's policies do to pods, and why those that could have a say have none."""
    if replicas.decision.identity is None:
        yield "no", focus.policy, "the pod is part of no run: no policy is asked about it"
        yield "cure", "", cure(replicas.template)
        return
    if replicas.decision.result == "not-sent":
        yield "no", focus.policy, replicas.decision.reason
        return
    if not replicas.decision.allowed:
        yield "rejected", "", replicas.decision.reason
    found = [entry for entry in replicas.decision.trace if focus.entry(entry, policies)]
    for entry in found:
        yield entry.outcome, credited_to(entry), f"{entry.field}: {entry.reason}"
    audited = [e for e in audit_entries(replicas.decision) if focus.entry(e, policies)]
    for entry in audited:
        text = f"{entry.outcome}, were it enforced: {entry.field}: {meant(entry, policies)}"
        yield "audit", credited_to(entry), text
    spoken = {entry.policy for entry in (*found, *audited)}
    silent = 0
    for answer in answers(replicas, policies):
        silenced = answer.answer != "audit" and answer.name in spoken
        if focus.has_say(answer.name, policies) and not silenced:
            silent += 1
            yield answer.answer, answer.name, answer.why
    if not found and not audited and not silent and focus.field and not focus.policy:
        yield "no", "", f"no policy of the set says anything of {focus.field}"


def _has(live: LivePod, focus: Focus) -> Iterator[Row]:
    if not focus.field:
        return
    own = fields(pods.read(live.pod.value))
    within = [field for field in own if is_within(field, focus.field)]
    found = [f for f in within if f == focus.field or own[f] != _NOBODYS.get(f)]
    told = {
        each.field: both_fields(each.field, each.has, each.would)[0] for each in live.differences
    }
    for field in found:
        yield "has", "", told.get(field) or field_text(field, own[field])
    if not found:
        what = "nothing but the API server's defaults" if within else "nothing"
        yield "has", "", f"{focus.field}: {what}"


def _then(live: LivePod, policies: PolicySet, focus: Focus, unstamped: Why | None) -> Iterator[Row]:
    if live.stamp is None:
        yield "stamp", "", f"none: {unstamped.reason}" if unstamped else "none"
        return
    if live.stamp.left_alone:
        yield "stamp", "", f"left alone: {live.stamp.left_alone}"
        return
    found = list(_credits(live.stamp, policies, focus))
    yield from found
    if found:
        return
    if focus.policy in live.stamp.policies:
        yield "stamp", focus.policy, "it took part, and has no field to its credit"
    elif focus.policy:
        yield "stamp", focus.policy, "it took no part"
    else:
        yield "stamp", "", "credits no policy with it"


def _credits(stamp: Stamp, policies: PolicySet, focus: Focus) -> Iterator[Row]:
    for policy, credited in stamp.policies.items():
        for field in credited:
            if focus.credited(policy, field, policies):
                yield "stamp", policy, f"{field}: credited when the pod was created"
    for name, gone in stamp.exceptions.items():
        for policy in gone:
            if focus.has_say(policy, policies):
                yield "stamp", policy, f"set aside by the exception {name}"
