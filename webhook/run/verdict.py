"""Decide whether a run has ended, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from webhook.frameworks.table import end_role
from webhook.run.facts import is_finishing
from webhook.run.failure import OOM_KILLED
from webhook.run.restarts import MOST_REFUSALS
from webhook.times import elapsed, format_span

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from webhook.run.facts import RoleFacts
    from webhook.run.model import Run, RunSpec
    from webhook.run.restarts import Counted


class Verdict(NamedTuple):
    """How a run ended. reason: CamelCase, for the condition; message: for people."""

    phase: Literal["Succeeded", "Failed"]
    reason: str
    message: str


def find_verdict(
    run: Run,
    facts: Mapping[str, RoleFacts],
    counted: Counted,
    now: datetime,
    *,
    may_run: bool = True,
) -> Verdict | None:
    """Return how the run ended, or None while it is active. Success precedes failures.

    may_run: no queue keeps its pods from running.
    """
    return (
        _succeeded(run.spec, facts)
        or _permanent(run.spec, counted)
        or _refused(counted)
        or _over_budget(run.spec, counted)
        or (_left_to_finish(run.spec, facts) if may_run and not run.spec.suspend else None)
        or deadline(run, now)
    )


def deadline(run: Run, now: datetime) -> Verdict | None:
    """Return the verdict if activeDeadlineSeconds is over, else None."""
    limit, start = run.spec.active_deadline_seconds, run.status.start_time
    if limit is None or start is None or elapsed(start, now) < limit:
        return None
    text = f"the run was active for {format_span(limit)}, its activeDeadlineSeconds"
    return Verdict("Failed", "DeadlineExceeded", text)


def _succeeded(spec: RunSpec, facts: Mapping[str, RoleFacts]) -> Verdict | None:
    role = end_role(spec.framework, facts)
    deciding = facts[role]
    if len(deciding.succeeded) < deciding.spec.count:
        return None
    text = f"{role} finished" if deciding.spec.count == 1 else f"every {role} finished"
    return Verdict("Succeeded", "Finished", text)


def _left_to_finish(spec: RunSpec, facts: Mapping[str, RoleFacts]) -> Verdict | None:
    """Return the success of an elastic run if nobody is left of those that worked together.

    What failed beside the first that finished is within its budget.
    """
    if not is_finishing(spec, facts):
        return None
    if any(role_facts.alive for role_facts in facts.values()):
        return None
    finished = sum(len(role_facts.succeeded) for role_facts in facts.values())
    count = sum(role_facts.spec.count for role_facts in facts.values())
    text = f"{finished} of {count} replicas finished, and none of the others works on"
    return Verdict("Succeeded", "Finished", text)


def _permanent(spec: RunSpec, counted: Counted) -> Verdict | None:
    charged = (
        incident
        for incident in counted.decided
        if incident.cause == "Failure" and incident.permanent
    )
    incident = next(charged, None)
    if incident is None:
        return None
    (role,) = incident.failures
    policy = spec.roles[role].restart_policy
    reason = "OutOfMemory" if incident.reason == OOM_KILLED else "PermanentFailure"
    return Verdict(
        "Failed", reason, f"{incident.message}, and the restartPolicy of {role} is {policy}"
    )


def _refused(counted: Counted) -> Verdict | None:
    if counted.refused is None:
        return None
    text = f"kubelets have refused its pod {MOST_REFUSALS} times in a row"
    return Verdict("Failed", "PodRefused", f"{counted.refused.description}; {text}")


def _over_budget(spec: RunSpec, counted: Counted) -> Verdict | None:
    failures = sum(role.failed for role in counted.roles.values())
    failure = next((incident for incident in counted.decided if incident.cause == "Failure"), None)
    if failure and failures > spec.backoff_limit:
        that = f"that is failure {failures}, and backoffLimit is {spec.backoff_limit}"
        return Verdict("Failed", "BackoffLimitExceeded", f"{failure.message}; {that}")
    disruptions = sum(role.disruptions for role in counted.roles.values())
    limit = spec.disruption_limit
    disruption = next(
        (incident for incident in counted.decided if incident.cause == "Disruption"), None
    )
    if disruption and limit is not None and disruptions > limit:
        that = f"that is disruption {disruptions}, and disruptionLimit is {limit}"
        return Verdict("Failed", "DisruptionLimitExceeded", f"{disruption.message}; {that}")
    return None
