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
    """One check: its name, what it finds, and what it reads, by the words of `Seen.unread`."""

    name: str
    findings: Callable[[Seen], Iterable[Finding]]
    reads: tuple[str, ...] = ()


class Outcome(NamedTuple):
    """What a check has found. Nothing: all is well, unless what it reads is among `unread`."""

    name: str
    findings: tuple[Finding, ...]
    unread: tuple[str, ...] = ()


_POD_RULES: Final = "the webhook configuration"
_JUDGING: Final = "the validating configuration"
CHECKS: Final = (
    Check("end to end", pods.end_to_end, (_POD_RULES,)),
    Check("interception", interception.interception, (_POD_RULES, "the guards")),
    Check("selectors", interception.selectors, (_POD_RULES,)),
    Check("programs", programs.programs, ("deployments", "Fairlead's pods")),
    Check("endpoints", programs.endpoints, (_POD_RULES, "endpoints")),
    Check("certificates", certificates.certificates, ("the serving Secret",)),
    Check("trust", certificates.trust, (_POD_RULES, _JUDGING, "the serving Secret")),
    Check("leader", programs.leader, ("the Lease",)),
    Check("policies", policies.policies, ("deployments", "the policies")),
    Check("judgement", judgement.judgement, (_JUDGING, "whether policies are judged")),
    Check(
        "policies left behind",
        judgement.left_behind,
        ("deployments", "the policies", "the ConfigMap of before"),
    ),
    Check("unplaced pods", pods.unplaced, (_POD_RULES, "namespaces", "pods of runs")),
    Check("namespaces", interception.marked_namespaces, ("namespaces",)),
    Check("versions", programs.versions, ("deployments",)),
    Check("definition of Runs", programs.definition, ("the definition of Runs",)),
    Check("permissions", rights.permissions, ("your own rights", "the programs' rights")),
)


def diagnose(seen: Seen) -> list[Outcome]:
    """What every check says of what was seen; of an empty cluster that it is empty."""
    if not (seen.configuration or seen.deployments or seen.definition or seen.unread):
        cure = (
            "fairlead install; or is it the wrong cluster? kubectl config current-context tells, "
            "--context takes another"
        )
        return [Outcome("installation", (error("Fairlead is not in this cluster", cure),))]
    return [
        Outcome(
            check.name,
            tuple(check.findings(seen)),
            tuple(what for what in check.reads if what in seen.unread),
        )
        for check in CHECKS
    ]
