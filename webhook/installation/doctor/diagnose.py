"""All checks, in the order of the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.installation.doctor import (
    interception_checks,
    pod_checks,
    policy_checks,
    program_checks,
)
from webhook.installation.doctor.cluster_state import error

if TYPE_CHECKING:
    from webhook.installation.doctor.cluster_state import (
        Check,
        ClusterState,
        Finding,
        ReadKind,
    )


class Outcome(NamedTuple):
    """The findings of a check. Without any, all is well, unless `unread` is not empty."""

    name: str
    findings: tuple[Finding, ...]
    unread: tuple[ReadKind, ...] = ()


CHECKS: Final[tuple[Check, ...]] = (
    pod_checks.end_to_end,
    interception_checks.interception,
    policy_checks.guards,
    interception_checks.selectors,
    program_checks.programs,
    program_checks.watches,
    program_checks.endpoints,
    program_checks.certificates,
    program_checks.trust,
    program_checks.leader,
    policy_checks.policies,
    policy_checks.judgement,
    pod_checks.unplaced,
    interception_checks.marked_namespaces,
    pod_checks.agents,
    program_checks.versions,
    program_checks.definition,
    policy_checks.permissions,
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
            tuple(check(state)),
            tuple(what for what in check.reads if what in unknown),
        )
        for check in CHECKS
    ]
