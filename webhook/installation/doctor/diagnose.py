"""All checks of `doctor`, in the order of the report."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.installation.doctor import (
    interception_checks,
    object_checks,
    pod_checks,
    policy_checks,
    program_checks,
    queue_checks,
)
from webhook.installation.doctor.cluster_state import error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.installation.doctor.cluster_state import (
        Check,
        ClusterState,
        Finding,
        ReadKind,
        Unread,
    )


class Outcome(NamedTuple):
    """The findings of a check, and what it reads and could not read. Without both, all is well."""

    name: str
    findings: tuple[Finding, ...]
    unread: Mapping[ReadKind, Unread] = MappingProxyType({})


CHECKS: Final[tuple[Check, ...]] = (
    pod_checks.end_to_end,
    interception_checks.interception,
    policy_checks.guards,
    interception_checks.tolerations,
    interception_checks.selectors,
    program_checks.programs,
    program_checks.watches,
    program_checks.writes,
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
    program_checks.definitions,
    policy_checks.permissions,
    queue_checks.queues,
    object_checks.objects,
)


def diagnose(state: ClusterState) -> list[Outcome]:
    """Run every check on the state of a cluster. One without Fairlead has one finding."""
    if not (state.configuration or state.deployments or state.leader or state.unread):
        # What a removed installation leaves, and what a sandbox has.
        rest = ", which only has definitions" if state.definitions else ""
        cure = (
            "fairlead install, or for a sandbox fairlead sandbox up --policies DIR; or is it the "
            "wrong cluster? Check with: kubectl config current-context; --context selects another"
        )
        return [Outcome("installation", (error(f"Fairlead is not in this cluster{rest}", cure),))]
    return [
        Outcome(
            check.name,
            tuple(check(state)),
            {what: state.unread[what] for what in check.reads if what in state.unread},
        )
        for check in CHECKS
    ]
