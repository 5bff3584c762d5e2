"""All checks, in the order of the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.installation.doctor import (
    certificate_checks,
    daemon_set_checks,
    guard_checks,
    interception_checks,
    permission_checks,
    pod_checks,
    policy_checks,
    program_checks,
)
from webhook.installation.doctor.cluster_state import ReadKind, error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from webhook.installation.doctor.cluster_state import ClusterState, Finding


class Check(NamedTuple):
    """One check: its name, its function, and what it reads, as in `ClusterState.unread`."""

    name: str
    findings: Callable[[ClusterState], Iterable[Finding]]
    reads: tuple[ReadKind, ...] = ()


class Outcome(NamedTuple):
    """The findings of a check. Without any, all is well, unless `unread` is not empty."""

    name: str
    findings: tuple[Finding, ...]
    unread: tuple[ReadKind, ...] = ()


CHECKS: Final = (
    Check("end to end", pod_checks.end_to_end, (ReadKind.POD_RULES,)),
    Check("interception", interception_checks.interception, (ReadKind.POD_RULES, ReadKind.GUARDS)),
    Check("guards", guard_checks.guards, (ReadKind.GUARDS,)),
    Check("selectors", interception_checks.selectors, (ReadKind.POD_RULES,)),
    Check("programs", program_checks.programs, (ReadKind.DEPLOYMENTS, ReadKind.PODS)),
    Check("watches", program_checks.watches, (ReadKind.DEPLOYMENTS, ReadKind.METRICS)),
    Check("endpoints", program_checks.endpoints, (ReadKind.POD_RULES, ReadKind.ENDPOINTS)),
    Check("certificates", certificate_checks.certificates, (ReadKind.SERVING,)),
    Check(
        "trust", certificate_checks.trust, (ReadKind.POD_RULES, ReadKind.JUDGING, ReadKind.SERVING)
    ),
    Check("leader", program_checks.leader, (ReadKind.LEASE,)),
    Check(
        "policies",
        policy_checks.policies,
        (ReadKind.DEPLOYMENTS, ReadKind.POLICIES, ReadKind.SERVED),
    ),
    Check(
        "judgement",
        policy_checks.judgement,
        (ReadKind.DEPLOYMENTS, ReadKind.JUDGING, ReadKind.JUDGED),
    ),
    Check(
        "policies left behind",
        policy_checks.left_behind,
        (ReadKind.DEPLOYMENTS, ReadKind.POLICIES, ReadKind.LEFT_FILES),
    ),
    Check(
        "unplaced pods",
        pod_checks.unplaced,
        (ReadKind.POD_RULES, ReadKind.NAMESPACES, ReadKind.PODS_OF_RUNS),
    ),
    Check("namespaces", interception_checks.marked_namespaces, (ReadKind.NAMESPACES,)),
    Check(
        "agents",
        daemon_set_checks.agents,
        (
            ReadKind.DEPLOYMENTS,
            ReadKind.NAMESPACES,
            ReadKind.DAEMON_SETS,
            ReadKind.NODES,
            ReadKind.POLICIES,
        ),
    ),
    Check("versions", program_checks.versions, (ReadKind.DEPLOYMENTS,)),
    Check("definition of Runs", program_checks.definition, (ReadKind.DEFINITION,)),
    Check(
        "permissions",
        permission_checks.permissions,
        (ReadKind.OWN_RIGHTS, ReadKind.PROGRAMS_RIGHTS),
    ),
)


def diagnose(state: ClusterState) -> list[Outcome]:
    """Run every check on the state of a cluster. An empty cluster has one finding."""
    if not (state.configuration or state.deployments or state.definition or state.unread):
        cure = (
            "fairlead install; or is it the wrong cluster? Check with: kubectl config "
            "current-context; --context selects another"
        )
        return [Outcome("installation", (error("Fairlead is not in this cluster", cure),))]
    unknown = {*state.unread, *state.beyond}
    return [
        Outcome(
            check.name,
            tuple(check.findings(state)),
            tuple(what for what in check.reads if what in unknown),
        )
        for check in CHECKS
    ]
