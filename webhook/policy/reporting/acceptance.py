"""Which objects are in force, and why the others are not: the condition Accepted.

A set is taken whole (decision 29): one object that is wrong keeps all that is new out of force.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.crd.conditions import Said
from webhook.policy.findings import first_few

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from webhook.policy.findings import Finding
    from webhook.policy.policy_set import PolicySet
    from webhook.policy.reporting.observed_object import ObservedObject, Version
    from webhook.policy.set_judgement import SetJudgement
    from webhook.policy.together.policy_view import Policy

ACCEPTED: Final = "Accepted"
# A message is for a terminal; the log of the webhook has all of it.
_MOST_FINDINGS: Final = 5
_MOST_NAMED: Final = 3
_MOST_CHARACTERS: Final = 2000
_REASONS: Final = {
    names.PLACEMENT_POLICIES: "InvalidPolicy",
    names.CAPACITY_CLASSES: "InvalidClass",
    names.PLACEMENT_EXCEPTIONS: "InvalidException",
}


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What is said of every object, by place, and what was compiled last.

    said:     each with the version that it is about
    in_force: the versions of which the last good set is made
    policies: that set; None if none is known, though there may be one that others compiled
    faulty:   the places of what keeps the newest objects from being a set
    ready:    the policies of that set, as those beside them see them
    faults:   the errors with which that set is in force
    """

    said: Mapping[str, tuple[Version, Said]] = field(default_factory=dict)
    in_force: Mapping[str, Version] = field(default_factory=dict)
    policies: PolicySet | None = None
    faulty: tuple[str, ...] = ()
    ready: Sequence[Policy] = ()
    faults: Sequence[Finding] = ()


def remembered(objects: Iterable[ObservedObject]) -> Acceptance:
    """What the objects' own statuses tell of the last good set: whoever begins knows no other."""
    in_force = {
        each.place: each.version
        for each in objects
        for condition in each.status.conditions
        if condition.type == ACCEPTED
        and condition.status == "True"
        and condition.observed_generation == each.generation
    }
    return Acceptance(in_force=in_force)


def judged(
    judge: Callable[[Mapping[str, bytes]], SetJudgement],
    objects: Mapping[str, ObservedObject],
    before: Acceptance,
) -> Acceptance:
    """What is to be said of the objects as they are now. `judge` is as Objects.judged."""
    versions = {place: each.version for place, each in objects.items()}
    found = judge({place: each.text for place, each in objects.items()})
    findings = _by_place(found.findings)
    if found.policies is None:
        faulty = tuple(
            place
            for place, found in findings.items()
            if place in objects and any(each.severity == "error" for each in found)
        )
        said = {
            place: (each.version, _while_refused(each, findings.get(place, ()), faulty, before))
            for place, each in objects.items()
        }
        return replace(before, said=said, faulty=faulty)
    said = {
        place: (each.version, _in_force(findings.get(place, ()))) for place, each in objects.items()
    }
    faults = [each for each in found.findings if each.is_fault]
    return Acceptance(said, versions, found.policies, ready=found.ready, faults=faults)


def _in_force(found: Sequence[Finding]) -> Said:
    """What is said of an object that the webhook goes by, errors first."""
    faults = [each for each in found if each.is_fault]
    others = [each for each in found if not each.is_fault]
    reason = "AcceptedWithErrors" if faults else "Accepted"
    return Said(ACCEPTED, "True", reason, _listed([*faults, *others]))


def _while_refused(
    seen: ObservedObject, found: Sequence[Finding], faulty: Sequence[str], before: Acceptance
) -> Said:
    errors = [each for each in found if each.severity == "error"]
    if errors:
        held = "; until this is mended the last good set stays in force"
        return Said(ACCEPTED, "False", _reason(seen, errors), _listed(errors) + held)
    if before.in_force.get(seen.place) == seen.version:
        return Said(ACCEPTED, "True", "Accepted", _listed(found))
    return Said(
        ACCEPTED,
        "False",
        "RefusedSet",
        "nothing is wrong with it, but it is not in force: the last good set stays until "
        f"{first_few(faulty, _MOST_NAMED)} is mended",
    )


def _reason(seen: ObservedObject, errors: Sequence[Finding]) -> str:
    if all(each.path.endswith("].class") for each in errors):
        return "UnknownClass"
    return _REASONS[seen.resource]


def _by_place(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = {}
    for each in findings:
        found.setdefault(each.file, []).append(each)
    return found


def _listed(findings: Sequence[Finding]) -> str:
    """What was found, without the place, which is the object that says it."""
    texts = [each.text for each in findings[:_MOST_FINDINGS]]
    more = len(findings) - len(texts)
    text = "; ".join([*texts, f"and {more} more"] if more else texts)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"
