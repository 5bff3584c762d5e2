"""All checks, in the order in which somebody wants to read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.installation.doctor import (
    agents,
    certificates,
    interception,
    judgement,
    pods,
    policies,
    programs,
    rights,
)
from webhook.installation.doctor.cluster_state import Read
from webhook.installation.doctor.findings import error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from webhook.installation.doctor.cluster_state import ClusterState
    from webhook.installation.doctor.findings import Finding


class Check(NamedTuple):
    """One check: its name, what it finds, and what it reads, as in `ClusterState.unread`."""

    name: str
    findings: Callable[[ClusterState], Iterable[Finding]]
    reads: tuple[Read, ...] = ()


class Outcome(NamedTuple):
    """What a check has found. Nothing: all is well, unless what it reads is among `unread`."""

    name: str
    findings: tuple[Finding, ...]
    unread: tuple[Read, ...] = ()


CHECKS: Final = (
    Check("end to end", pods.end_to_end, (Read.POD_RULES,)),
    Check("interception", interception.interception, (Read.POD_RULES, Read.GUARDS)),
    Check("guards", interception.guards, (Read.GUARDS,)),
    Check("selectors", interception.selectors, (Read.POD_RULES,)),
    Check("programs", programs.programs, (Read.DEPLOYMENTS, Read.PODS)),
    Check("watches", programs.watches, (Read.DEPLOYMENTS, Read.METRICS)),
    Check("endpoints", programs.endpoints, (Read.POD_RULES, Read.ENDPOINTS)),
    Check("certificates", certificates.certificates, (Read.SERVING,)),
    Check("trust", certificates.trust, (Read.POD_RULES, Read.JUDGING, Read.SERVING)),
    Check("leader", programs.leader, (Read.LEASE,)),
    Check("policies", policies.policies, (Read.DEPLOYMENTS, Read.POLICIES, Read.SERVED)),
    Check("judgement", judgement.judgement, (Read.DEPLOYMENTS, Read.JUDGING, Read.JUDGED)),
    Check(
        "policies left behind",
        judgement.left_behind,
        (Read.DEPLOYMENTS, Read.POLICIES, Read.LEFT_FILES),
    ),
    Check("unplaced pods", pods.unplaced, (Read.POD_RULES, Read.NAMESPACES, Read.PODS_OF_RUNS)),
    Check("namespaces", interception.marked_namespaces, (Read.NAMESPACES,)),
    Check(
        "agents",
        agents.agents,
        (Read.DEPLOYMENTS, Read.NAMESPACES, Read.DAEMON_SETS, Read.NODES, Read.POLICIES),
    ),
    Check("versions", programs.versions, (Read.DEPLOYMENTS,)),
    Check("definition of Runs", programs.definition, (Read.DEFINITION,)),
    Check("permissions", rights.permissions, (Read.OWN_RIGHTS, Read.PROGRAMS_RIGHTS)),
)


def diagnose(seen: ClusterState) -> list[Outcome]:
    """What every check says of what was seen; of an empty cluster that it is empty."""
    if not (seen.configuration or seen.deployments or seen.definition or seen.unread):
        cure = (
            "fairlead install; or is it the wrong cluster? kubectl config current-context tells, "
            "--context takes another"
        )
        return [Outcome("installation", (error("Fairlead is not in this cluster", cure),))]
    unknown = {*seen.unread, *seen.beyond}
    return [
        Outcome(
            check.name,
            tuple(check.findings(seen)),
            tuple(what for what in check.reads if what in unknown),
        )
        for check in CHECKS
    ]
