"""All checks, in the order of the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.installation.doctor.certificate_checks import certificates, trust
from webhook.installation.doctor.cluster_state import error
from webhook.installation.doctor.daemon_set_checks import agents
from webhook.installation.doctor.guard_checks import guards
from webhook.installation.doctor.interception_checks import (
    interception,
    marked_namespaces,
    selectors,
)
from webhook.installation.doctor.permission_checks import permissions
from webhook.installation.doctor.pod_checks import end_to_end, unplaced
from webhook.installation.doctor.policy_checks import judgement, left_behind, policies
from webhook.installation.doctor.program_checks import (
    definition,
    endpoints,
    leader,
    programs,
    versions,
    watches,
)

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
    end_to_end,
    interception,
    guards,
    selectors,
    programs,
    watches,
    endpoints,
    certificates,
    trust,
    leader,
    policies,
    judgement,
    left_behind,
    unplaced,
    marked_namespaces,
    agents,
    versions,
    definition,
    permissions,
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
