"""Sets of pods that policies name: by one value of a match field, or by what a policy matches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias

from webhook.judgement.together.witness import WantedBlock, find_subject
from webhook.policy.conditions import FIELDS
from webhook.policy.match_model import Match
from webhook.policy.matched_pods import MatchedPods

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.judgement.together.policy_view import Policy
    from webhook.policy.subject import Subject

# Without validation, which would build the model while this module is imported.
_EMPTY: Final = Match.model_construct()
# The match field and the value.
Value: TypeAlias = tuple[str, object]


@dataclass(frozen=True, eq=False)
class PodSet:
    """A set of pods. `text` follows "every pod"; `policy` is the one that matches them, if any."""

    text: str
    match: Match
    reach: MatchedPods
    policy: Policy | None = None

    @cached_property
    def is_empty(self) -> bool:
        """Whether certainly no pod is in it."""
        return self.reach.unmet() is not None

    @cached_property
    def example(self) -> Subject | None:
        """A pod that is in it; None if none is found."""
        return find_subject(
            [WantedBlock(self.match)], self.policy.exclude_blocks if self.policy else ()
        )


ALL_RUN_PODS: Final = PodSet("of every run", _EMPTY, MatchedPods(_EMPTY))


def sets_by_value(policy: Policy) -> Iterator[tuple[Value, PodSet]]:
    """Yield the set of all pods with a value, for each value that the policy's match names."""
    spec = policy.model.spec
    match = spec.match or _EMPTY
    for field in FIELDS:
        values = list(getattr(match, field.name) or ()) if field.noun else []
        if field.name == "namespaces" and spec.rollout:
            values += spec.rollout.namespaces
        for value in values:
            value_match = _EMPTY.model_copy(update={field.name: [value]})
            yield (
                (field.name, value),
                PodSet(f"of {field.noun} {value}", value_match, MatchedPods(value_match)),
            )
    for field in FIELDS:
        flag = getattr(match, field.name) if field.form == "flag" else None
        if flag is not None:
            value_match = _EMPTY.model_copy(update={field.name: flag})
            who = f"that {field.flags[0] if flag else field.flags[1]}"
            yield (field.name, flag), PodSet(who, value_match, MatchedPods(value_match))


def matched_set(policy: Policy) -> PodSet:
    """Return the pods that a policy matches, or for which its rollout enforces it."""
    verb = "is enforced for" if policy.rollout else "matches"
    reach = MatchedPods(policy.enforced_match) if policy.rollout else policy.match
    return PodSet(f"that policy {policy.name!r} {verb}", policy.enforced_match, reach, policy)


def all_sets(policies: Sequence[Policy]) -> Iterator[PodSet]:
    """Yield all pods, those with each value, and those of each policy; equal sets once."""
    yield ALL_RUN_PODS
    values: set[Value] = set()
    for policy in policies:
        for value, pods in policy.pod_sets_by_value or sets_by_value(policy):
            if value not in values:
                values.add(value)
                yield pods
    matched: set[bytes] = set()
    for policy in policies:
        if policy.matches_something:
            same = policy.match_text
            if policy.model.spec.exclude or same not in matched:
                matched.add(same)
                yield policy.matched_set
