"""Findings about one policy by itself, and about what policies do to one pod together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from webhook.placement.fold import fold
from webhook.placement.label_values import int64
from webhook.placement.settings import CapacitySetting
from webhook.policy.findings import Kind
from webhook.policy.load import later_marks_written
from webhook.policy.node_settings import limits
from webhook.policy.refused_pods import refused_settings
from webhook.shortening import first_few

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from webhook.judgement.together.policy_view import LocatedSetting, Policy
    from webhook.judgement.together.witness import Witness
    from webhook.placement.bundle import Bundle
    from webhook.placement.settings import PlacementSetting
    from webhook.policy.findings import Finding, Path, Severity

_NAMED: Final = 3


def findings(policy: Policy) -> Iterator[Finding]:
    """Yield settings of a policy that the API server rejects, or that contradict its other
    settings.
    """
    yield from refused_settings(policy.document)
    yield from later_marks_written(policy.document)
    for located in policy.settings:
        if how := located.setting.weakens:
            which = "pods that say nothing else" if located.setting.is_default else "pods"
            what = f"weakens {which}: {how}{once_enforced([policy])}"
            yield policy.document.finding(located.path, what, "warning", kind=Kind.WEAKENS)
    required = policy.of_parts("requirements")
    if policy.contradictory:
        folded = _fold(policy, required)
        rejected = {entry.field for entry in folded.trace if entry.outcome == "rejected"}
        what = f"every pod that it matches is rejected: {folded.contradictions[0]}"
        severity: Severity = "error" if policy.enforced else "warning"
        yield policy.document.finding(
            next(located.path for located in required if located.setting.field in rejected),
            what + once_enforced([policy]),
            severity,
            about=policy.name,
            kind=Kind.EVERY_POD_REJECTED,
        )
        return
    # Of a class another policy's requirement may come first.
    sure = [located for located in required if not isinstance(located.setting, CapacitySetting)]
    for part in ("overrides", "defaults"):
        before: list[LocatedSetting] = []
        for located in policy.of_parts(part):
            if not located.limits:
                continue
            if _is_dropped(policy, [], located):
                value = f"{located.setting.describe_value}{_hint(located.setting)}"
                what = f"no pod gets it: no node can meet {value}"
                yield _impossible(policy, located, what)
            elif _is_dropped(policy, sure, located):
                what = "no pod gets it: no node meets both it and the policy's own requirements"
                yield policy.document.finding(
                    located.path, what, "warning", kind=Kind.NEVER_APPLIED
                )
            elif _is_dropped(policy, before, located):
                # Pods for which another policy decides those settings do get this one.
                what = f"no node meets both it and the other {part} of the policy"
                yield _impossible(policy, located, what, Kind.CONTRADICTS_ITSELF)
            else:
                before.append(located)


def _impossible(
    policy: Policy, located: LocatedSetting, what: str, kind: Kind = Kind.IMPOSSIBLE_SETTING
) -> Finding:
    about = f"{policy.name} {located.setting.part} {located.setting.field}"
    return policy.document.finding(located.path, what, about=about, kind=kind)


def _hint(setting: PlacementSetting) -> str:
    """Return why no label meets a bound that looks possible."""
    requirements = (r for term in limits(setting) for r in term.get("matchExpressions") or ())
    below = (r for r in requirements if r.get("operator") == "Lt")
    if any((int64(value) or 0) <= 0 for r in below for value in r.get("values") or ()):
        return ", for no label is a negative number"
    return ""


def _fold(policy: Policy, some: Iterable[LocatedSetting]) -> Bundle:
    return fold((policy.name,), [located.setting for located in some])


def _is_dropped(policy: Policy, before: Sequence[LocatedSetting], located: LocatedSetting) -> bool:
    trace = _fold(policy, [*before, located]).trace
    return any((line.outcome, line.field) == ("dropped", located.setting.field) for line in trace)


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


# {others}: "policy 'a'" or "policies 'a', 'b'", which {require}; {met}: "both match"; {once}:
# from when on it is so, if not now.
_TEXTS: Final[Mapping[Kind, str]] = {
    Kind.SOME_PODS_REJECTED: "contradicts what {others} {require}: a pod that {met} is "
    "rejected{once}, such as one {pod}",
    Kind.DROPPED_BESIDE: "is dropped from pods that {others} {match} too{once}, such as one {pod}: "
    "no node meets both",
    Kind.EQUAL_PRIORITY: "{others} {override} it too, with equal priority: the order of names "
    "decides{once}, as for a pod {pod}",
    Kind.REFUSED_PODS: "the API server refuses a pod that {met}{once}, such as one {pod}: {why}",
    Kind.NO_NODE: "leaves none of the {why} nodes together with {others}: {pending}",
}


@dataclass(frozen=True, slots=True)
class Conflict:
    """What policies do together, and none of them without the others.

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
    def alike(self) -> tuple[object, ...]:
        """What conflicts have in common that are one finding."""
        future = bool(once_enforced((self.policy, *self.others)))
        several = len(self.others) > 1 and self.others
        key = self.policy.name, self.path, self.kind, self.why
        return *key, future, several, self.certain, self.later


def finding(alike: Sequence[Conflict]) -> Finding:
    """Return the finding about conflicts that are alike, with the pod of the first."""
    first = alike[0]
    policy, kind = first.policy, first.kind
    others = list(dict.fromkeys(other for conflict in alike for other in conflict.others))
    once = once_enforced([policy, *others]) + (", after a fallback" if first.later else "")
    text = _TEXTS[kind].format(
        others=_listed(others, together=len(first.others) > 1, separate=kind is Kind.NO_NODE),
        require="requires" if len(others) == 1 else "require",
        match="matches" if len(others) == 1 else "match",
        override="overrides" if len(others) == 1 else "override",
        met=_met(first),
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
    return f"a pod that {_met(conflict)} stays Pending{once}, such as one {conflict.pod}"


def _met(conflict: Conflict) -> str:
    return ("it matches", "both match", "all of them match")[min(len(conflict.others), 2)]
