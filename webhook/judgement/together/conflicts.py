"""Conflicts: what policies do to one pod together, and none of them without the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from webhook.policy.findings import Kind
from webhook.shortening import first_few

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.judgement.together.policy_view import Policy
    from webhook.judgement.together.witness import Witness
    from webhook.policy.findings import Finding, Path

_NAMED: Final = 3
# {others}: "policy 'a'" or "policies 'a', 'b'", which {require}; {matching}: "both match"; {once}:
# from when on it is so, if not now.
_TEXTS: Final[Mapping[Kind, str]] = {
    Kind.SOME_PODS_REJECTED: "contradicts what {others} {require}: a pod that {matching} is "
    "rejected{once}, such as one {pod}",
    Kind.DROPPED_BESIDE: "is dropped from pods that {others} {match} too{once}, such as one {pod}: "
    "no node meets both",
    Kind.EQUAL_PRIORITY: "{others} {override} it too, with equal priority: the order of names "
    "decides{once}, as for a pod {pod}",
    Kind.REFUSED_PODS: "the API server refuses a pod that {matching}{once}, such as one "
    "{pod}: {why}",
    Kind.NO_NODE: "leaves none of the {why} nodes together with {others}: {pending}",
}


def once_enforced(policies: Iterable[Policy]) -> str:
    """Return when a finding about the policies comes true, if not now."""
    names = [
        repr(policy.name)
        for policy in dict.fromkeys(policies)
        if policy.model.spec.enforcement == "Audit"
    ]
    if not names:
        return ""
    return f", once {first_few(names, _NAMED)} {'is' if len(names) == 1 else 'are'} enforced"


@dataclass(frozen=True, slots=True)
class Conflict:
    """What policies do together.

    policy:  the one that is to be changed; `path`: where it says so
    certain: the policy all of whose pods it concerns; None if not known
    later:   only after a fallback of one of them
    """

    policy: Policy
    path: Path
    kind: Kind
    others: tuple[Policy, ...]
    pod: Witness
    why: str = ""
    certain: Policy | None = None
    later: bool = False

    @property
    def finding_key(self) -> tuple[object, ...]:
        """What conflicts have in common that are one finding."""
        future = bool(once_enforced((self.policy, *self.others)))
        several = len(self.others) > 1 and self.others
        key = self.policy.name, self.path, self.kind, self.why
        return *key, future, several, self.certain, self.later


def finding(conflicts: Sequence[Conflict]) -> Finding:
    """Return one finding about conflicts, with the pod of the first.

    They have the same `finding_key`.
    """
    first = conflicts[0]
    policy, kind = first.policy, first.kind
    others = list(dict.fromkeys(other for conflict in conflicts for other in conflict.others))
    once = once_enforced([policy, *others]) + (", after a fallback" if first.later else "")
    text = _TEXTS[kind].format(
        others=_listed(others, together=len(first.others) > 1, separate=kind is Kind.NO_NODE),
        require="requires" if len(others) == 1 else "require",
        match="matches" if len(others) == 1 else "match",
        override="overrides" if len(others) == 1 else "override",
        matching=_matching(first),
        pod=first.pod,
        why=first.why,
        pending=_pending(first, once),
        once=once,
    )
    certain = first.certain is not None
    return policy.document.finding(
        first.path,
        text,
        "error" if certain and policy.enforced else "warning",
        about=kind if kind is not Kind.REFUSED_PODS else f"{policy.name} {first.why}",
        kind=kind,
    )


def _listed(others: Sequence[Policy], *, together: bool, separate: bool) -> str:
    """Return the policies; `separate`: each of several by itself, unless all are `together`."""
    names = first_few([repr(other.name) for other in others], _NAMED)
    if len(others) == 1:
        return f"policy {names}"
    if separate:
        return f"policies {names}" if together else f"any of policies {names}"
    return f"policies {names}{' together' if together else ''}"


def _pending(conflict: Conflict, once: str) -> str:
    if conflict.certain:
        policy = conflict.certain
        which = "it" if policy is conflict.policy else f"policy {policy.name!r}"
        return f"every pod that {which} matches stays Pending{once}"
    return f"a pod that {_matching(conflict)} stays Pending{once}, such as one {conflict.pod}"


def _matching(conflict: Conflict) -> str:
    return ("it matches", "both match", "all of them match")[min(len(conflict.others), 2)]
