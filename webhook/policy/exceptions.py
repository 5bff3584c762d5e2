"""Compiled exceptions: which policies they suspend for which pods, and when.

Whether one applies depends on a pod's labels, its identity and the time, and not on what policies
write. So a second call on our own output has the same result, unless an exception ends between the
two calls. Then the second answer counts, and the exception has no effect.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.policy import conditions
from webhook.policy.findings import Kind
from webhook.policy.index import Index
from webhook.policy.model import ALL, PlacementException
from webhook.times import to_second

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.policy.findings import Finding
    from webhook.policy.policy_documents import Document
    from webhook.policy.subject import Subject

# An exception that lasts longer belongs into the policies.
LONG: Final = timedelta(days=90)


@dataclass(frozen=True, slots=True)
class PolicyException:
    """One compiled exception. `policies` is None if it is for all of them."""

    name: str
    policies: frozenset[str] | None
    until: datetime
    reason: str
    match: conditions.Block = field(repr=False, compare=False)
    tested: Mapping[str, frozenset[object]] = field(default_factory=dict, repr=False, compare=False)

    def covers(self, policy: str) -> bool:
        """Return whether it suspends the policy for the pods that it matches."""
        return self.policies is None or policy in self.policies

    def in_force(self, now: datetime) -> bool:
        """Return whether it has not ended."""
        return now < self.until

    @property
    def end(self) -> str:
        """When it ends, in UTC: 2026-12-01T18:00:00Z."""
        return to_second(self.until)


class ExemptedPolicies(NamedTuple):
    """The policies that one exception suspends for a pod, in their order; at least one."""

    exception: PolicyException
    policies: tuple[str, ...]


class SetAside(NamedTuple):
    """The exceptions for one pod, each list by name.

    by:    exceptions in force; two that suspend the same policy are both named
    ended: exceptions that have ended, with what else they would have suspended
    """

    by: tuple[ExemptedPolicies, ...] = ()
    ended: tuple[ExemptedPolicies, ...] = ()

    @property
    def policies(self) -> frozenset[str]:
        """All suspended policies."""
        return frozenset(name for taken in self.by for name in taken.policies)

    @property
    def by_name(self) -> dict[str, tuple[str, ...]]:
        """The suspended policies by exception."""
        return {taken.exception.name: taken.policies for taken in self.by}


NOTHING = SetAside()


class Exceptions:
    """All exceptions of a set, by name."""

    __slots__ = ("_index", "by_name")

    def __init__(self, documents: Sequence[PlacementException]) -> None:
        ordered = sorted(documents, key=lambda document: document.name)
        self.by_name = {document.name: compiled(document) for document in ordered}
        self._index = Index([document.spec.match for document in ordered])

    def __len__(self) -> int:
        return len(self.by_name)

    def __iter__(self) -> Iterator[PolicyException]:
        return iter(self.by_name.values())

    def matching(self, subject: Subject) -> list[PolicyException]:
        """Return those that are for the pod, in force or not, by name."""
        all_of_them = tuple(self.by_name.values())
        candidates = [all_of_them[at] for at in self._index.candidates(subject)]
        return [exception for exception in candidates if exception.match.holds(subject)]

    def set_aside(
        self, policies: Sequence[str], subject: Subject, now: datetime | None
    ) -> SetAside:
        """Apply the exceptions to a pod that these policies match; without a time, none applies."""
        matching = self.matching(subject) if now is not None and policies else []
        if now is None or not matching:
            return NOTHING
        result = SetAside(
            _exempted([exception for exception in matching if exception.in_force(now)], policies)
        )
        left = [name for name in policies if name not in result.policies]
        ended = _exempted(
            [exception for exception in matching if not exception.in_force(now)], left
        )
        return result._replace(ended=ended)


def _exempted(
    exceptions: Sequence[PolicyException], policies: Sequence[str]
) -> tuple[ExemptedPolicies, ...]:
    exempted_policies = [
        ExemptedPolicies(exception, tuple(filter(exception.covers, policies)))
        for exception in exceptions
    ]
    return tuple(taken for taken in exempted_policies if taken.policies)


def compiled(document: PlacementException) -> PolicyException:
    """Compile an exception."""
    spec = document.spec
    return PolicyException(
        name=document.name,
        policies=None if ALL in spec.policies else frozenset(spec.policies),
        until=datetime.fromisoformat(spec.until),
        reason=" ".join(spec.reason.split()),
        match=conditions.block(spec.match),
        tested=conditions.collect_tested([spec.match]),
    )


def of_time(documents: Sequence[Document], now: datetime) -> Iterator[Finding]:
    """Warnings about exceptions that have ended, or that last long."""
    for document in documents:
        if isinstance(document.model, PlacementException):
            until = datetime.fromisoformat(document.model.spec.until)
            what = ""
            if until <= now:
                what = "has ended and has no effect any more: delete it, or give a later end"
            elif until - now > LONG:
                what = (
                    f"ends in {(until - now).days} days, which is long (more than {LONG.days}): "
                    "end it sooner, or exclude these pods in the policies themselves"
                )
            if what:
                yield document.finding(("spec", "until"), what, "warning", kind=Kind.TIME)
