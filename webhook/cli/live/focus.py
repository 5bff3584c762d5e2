"""One policy, or one field: what an explanation says of it, and nothing else."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook import names
from webhook.cli.explained import answers
from webhook.cli.live.fields import is_within, says_of, touched
from webhook.cli.live.value_text import field_text
from webhook.comparison.gaps import fields
from webhook.errors import FairleadError
from webhook.placement import pod as pods
from webhook.placement.schema.base import guess
from webhook.placement.schema.placement import Wishes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from webhook.cli.decisions import Replicas
    from webhook.cli.live.judged import Difference, LivePod
    from webhook.cli.live.stamped import Stamp
    from webhook.cli.live.unstamped import Why
    from webhook.placement.trace import Entry
    from webhook.policy.policy_set import PolicySet

# What the DefaultTolerationSeconds admission plugin gives every pod.
_NOBODYS: Final = (
    f"tolerations[{names.TAINT_NOT_READY}]",
    f"tolerations[{names.TAINT_UNREACHABLE}]",
)
_FIRST: Final = re.compile(r"[.\[]")
_AUDITED: Final = "it changes nothing; what it would do is told without --policy and --field"
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
        wishes = [wish for each in policies.policies if each.name == policy for wish in each.wishes]
        return any(says_of(wish, self.field) for wish in wishes)

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
        yield "would", who, field_text(difference.field, difference.would)
        for why in difference.why:
            yield "why", "", why


def of_replicas(replicas: Replicas, policies: PolicySet, focus: Focus) -> Iterator[Row]:
    """What today's policies do to pods, and why those that could have a say have none."""
    if not replicas.decision.allowed:
        yield "rejected", "", replicas.decision.reason
    found = [entry for entry in replicas.decision.trace if focus.entry(entry, policies)]
    for entry in found:
        who = f"{entry.policy}, {entry.part}" if entry.policy else "the pod itself"
        yield entry.outcome, who, f"{entry.field}: {entry.reason}"
    spoken = {entry.policy for entry in found}
    silent = 0
    for answer in answers(replicas, policies):
        if focus.has_say(answer.name, policies) and answer.name not in spoken:
            silent += 1
            why = f"{answer.why} ({_AUDITED})" if answer.answer == "audit" else answer.why
            yield answer.answer, answer.name, why.lstrip()
    if not found and not silent and focus.field and not focus.policy:
        yield "no", "", f"no policy of the set says anything of {focus.field}{_slip(focus.field)}"


def _slip(field: str) -> str:
    """Which field may be meant, if the first word of this one is none of a policy's."""
    word, known = _FIRST.split(field)[0], tuple(Wishes.outer_names())
    return "" if word in known else guess(word, known)


def _has(live: LivePod, focus: Focus) -> Iterator[Row]:
    if not focus.field:
        return
    own = fields(pods.read(live.pod.value))
    found = [field for field in own if is_within(field, focus.field) and field not in _NOBODYS]
    for field in found:
        yield "has", "", field_text(field, own[field])
    if not found:
        yield "has", "", f"{focus.field}: nothing"


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
