"""The exceptions of a policy set, compiled: which policies take no part in which pods, and when.

Which ones hold is a matter of a pod's labels, its identity and the time, and never of what policies
write: so a second call on our own output finds the same. Only the very moment of an end can fall
between two calls; then the second one, whose answer counts, decides as if there had been none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from webhook.policy import conditions
from webhook.policy.exception_model import ALL
from webhook.policy.index import Index
from webhook.times import to_second

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.policy.exception_model import PlacementException
    from webhook.policy.subject import Subject


@dataclass(frozen=True, slots=True)
class PolicyException:
    """One compiled exception. `policies` is None if it is for all of them."""

    name: str
    policies: frozenset[str] | None
    until: datetime
    reason: str
    match: conditions.Block = field(repr=False, compare=False)

    def covers(self, policy: str) -> bool:
        """Whether the policy takes no part in the pods that it matches."""
        return self.policies is None or policy in self.policies

    def in_force(self, now: datetime) -> bool:
        """Whether it has not ended."""
        return now < self.until

    @property
    def end(self) -> str:
        """When it ends, in UTC: 2026-12-01T18:00:00Z."""
        return to_second(self.until)


class Taken(NamedTuple):
    """The policies that one exception takes away from a pod, in their order; never none."""

    exception: PolicyException
    policies: tuple[str, ...]


class SetAside(NamedTuple):
    """What exceptions have to do with one pod, each list by name.

    by:    exceptions in force; two that take away the same policy are both named
    ended: exceptions that have ended, with what they would have taken away beside
    """

    by: tuple[Taken, ...] = ()
    ended: tuple[Taken, ...] = ()

    @property
    def policies(self) -> frozenset[str]:
        """All policies that take no part."""
        return frozenset(name for taken in self.by for name in taken.policies)

    @property
    def by_name(self) -> dict[str, tuple[str, ...]]:
        """The policies that take no part, by exception."""
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
        """Those that are for the pod, in force or not, by name."""
        all_of_them = tuple(self.by_name.values())
        candidates = [all_of_them[at] for at in self._index.candidates(subject)]
        return [each for each in candidates if each.match.holds(subject)]

    def set_aside(
        self, policies: Sequence[str], subject: Subject, now: datetime | None
    ) -> SetAside:
        """What they do to a pod that these policies match. Without a time they do nothing."""
        matching = self.matching(subject) if now is not None and policies else []
        if now is None or not matching:
            return NOTHING
        found = SetAside(_taken([each for each in matching if each.in_force(now)], policies))
        left = [name for name in policies if name not in found.policies]
        ended = _taken([each for each in matching if not each.in_force(now)], left)
        return found._replace(ended=ended)


def _taken(exceptions: Sequence[PolicyException], policies: Sequence[str]) -> tuple[Taken, ...]:
    found = [Taken(each, tuple(filter(each.covers, policies))) for each in exceptions]
    return tuple(taken for taken in found if taken.policies)


def compiled(document: PlacementException) -> PolicyException:
    """The exception, ready to be asked of one pod after the other."""
    spec = document.spec
    return PolicyException(
        name=document.name,
        policies=None if ALL in spec.policies else frozenset(spec.policies),
        until=datetime.fromisoformat(spec.until),
        reason=" ".join(spec.reason.split()),
        match=conditions.block(spec.match),
    )
