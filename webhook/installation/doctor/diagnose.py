"""All checks, in the order in which somebody wants to read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.installation.doctor import (
    certificates,
    interception,
    judgement,
    pods,
    policies,
    programs,
    rights,
)
from webhook.installation.doctor.findings import error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from webhook.installation.doctor.findings import Finding
    from webhook.installation.doctor.seen import Seen


class Check(NamedTuple):
    """One check: its name, and what it finds."""

    name: str
    findings: Callable[[Seen], Iterable[Finding]]


class Outcome(NamedTuple):
    """What a check has found; nothing, where all is well."""

    name: str
    findings: tuple[Finding, ...]


CHECKS: Final = (
    Check("end to end", pods.end_to_end),
    Check("interception", interception.interception),
    Check("selectors", interception.selectors),
    Check("programs", programs.programs),
    Check("endpoints", programs.endpoints),
    Check("certificates", certificates.certificates),
    Check("trust", certificates.trust),
    Check("leader", programs.leader),
    Check("policies", policies.policies),
    Check("judgement", judgement.judgement),
    Check("policies left behind", judgement.left_behind),
    Check("unplaced pods", pods.unplaced),
    Check("namespaces", interception.marked_namespaces),
    Check("versions", programs.versions),
    Check("definition of Runs", programs.definition),
    Check("permissions", rights.permissions),
)


def diagnose(seen: Seen) -> list[Outcome]:
    """What every check says of what was seen; of an empty cluster that it is empty."""
    if not (seen.configuration or seen.deployments or seen.definition or seen.unread):
        cure = (
            "fairlead install; or is it the wrong cluster? kubectl config current-context tells, "
            "--context takes another"
        )
        return [Outcome("installation", (error("Fairlead is not in this cluster", cure),))]
    return [Outcome(check.name, tuple(check.findings(seen))) for check in CHECKS]
