"""Runs that rest or are over: their status, what is cleaned away, and when time matters next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.crd.conditions import Said
from webhook.run import backoff, conditions
from webhook.run.actions import DeleteDeployment, DeleteRun, Outcome
from webhook.run.steps import cleaned
from webhook.times import elapsed, spoken, to_second

if TYPE_CHECKING:
    from datetime import datetime

    from webhook.run.actions import Action
    from webhook.run.counting import Counted
    from webhook.run.model import RoleStatus, Run, RunStatus
    from webhook.run.observed import Observed
    from webhook.run.verdict import Verdict


def ended(run: Run, observed: Observed, now: datetime) -> Outcome:
    """A run that is over: pods are cleaned away, and after its time to live the Run is."""
    roles = {role: _counted(role, before, observed) for role, before in run.status.replicas.items()}
    ready = sum(role.ready for role in roles.values())
    desired = sum(role.desired for role in roles.values())
    status = run.status.model_copy(
        update={
            "observed_generation": run.metadata.generation,
            "replicas": roles,
            "replicas_ready": f"{ready}/{desired}" if roles else run.status.replicas_ready,
        }
    )
    actions: list[Action] = list(cleaned(run.spec, observed.pods))
    if observed.deployment is not None:
        actions.append(DeleteDeployment())
    ttl, since = run.spec.ttl_seconds_after_finished, run.status.completion_time
    if ttl is None or since is None:
        return Outcome(status, tuple(actions))
    left = ttl - elapsed(since, now)
    if left <= 0:
        return Outcome(status, (DeleteRun(),))
    return Outcome(status, tuple(actions), after=left)


def ended_status(status: RunStatus, generation: int, end: Verdict, now: datetime) -> RunStatus:
    """The status at a run's end."""
    began = status.start_time or to_second(now)
    said = (
        Said(end.phase, "True", end.reason, end.message),
        Said(conditions.READY, "False", "Ended", "the run is over"),
    )
    return status.model_copy(
        update={
            "phase": end.phase,
            "message": end.message,
            "observed_generation": generation,
            "start_time": began,
            "completion_time": to_second(now),
            "duration": spoken(elapsed(began, now)),
            "conditions": conditions.updated(
                conditions.without_pods(status.conditions), said, generation, now
            ),
        }
    )


def at_rest(status: RunStatus, generation: int, now: datetime) -> RunStatus:
    """The status of a suspended run. Its time begins anew when it goes on."""
    text = "the run is suspended: set suspend to false, and it goes on"
    said = (
        Said(conditions.SUSPENDED, "True", "Suspended", text),
        Said(conditions.READY, "False", "Suspended", text),
    )
    return status.model_copy(
        update={
            "phase": "Suspended",
            "message": text,
            "start_time": None,
            "conditions": conditions.updated(
                conditions.without_pods(status.conditions), said, generation, now
            ),
        }
    )


def soonest(run: Run, after: float | None, counted: Counted, now: datetime) -> float | None:
    """Seconds until time alone changes anything of a run that goes on; None if it never does."""
    times = [] if after is None else [after]
    limit, start = run.spec.active_deadline_seconds, run.status.start_time
    if limit is not None:
        times.append(limit - elapsed(start, now) if start else float(limit))
    if any(role.recovering for role in counted.roles.values()):
        # Not to the second: nobody waits for a failure to be forgiven.
        times.append(backoff.STABLE / 4)
    return max(0.0, min(times)) if times else None


def _counted(role: str, before: RoleStatus, observed: Observed) -> RoleStatus:
    if observed.deployment is not None:
        return before
    pods = [
        pod
        for pod in observed.pods.values()
        if pod.role == role and pod.phase not in ("Succeeded", "Failed")
    ]
    ready = sum(pod.ready for pod in pods if not pod.deleted_at)
    return before.model_copy(update={"active": len(pods), "ready": ready})
