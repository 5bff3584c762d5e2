"""Notebooks, tensorboards and services: a Deployment of one pod and the Service before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.crd.conditions import Said
from webhook.run import conditions, hindrance
from webhook.run.actions import CreateDeployment, CreateService, Outcome, ScaleDeployment
from webhook.run.announce import announcements
from webhook.run.facts import Lost
from webhook.run.finish import at_rest, ended_status
from webhook.run.model import DEFAULT_ROLE, RoleStatus
from webhook.run.verdict import Verdict, deadline
from webhook.times import elapsed, spoken, to_second

if TYPE_CHECKING:
    from datetime import datetime

    from webhook.run.actions import Action
    from webhook.run.hindrance import Hindrance
    from webhook.run.model import Run, RunStatus
    from webhook.run.model.status import Phase
    from webhook.run.observed import Needs, Observed


def reconcile(run: Run, needs: Needs, observed: Observed, now: datetime) -> Outcome:
    """What to do now about a run that stays until somebody ends it, or its age does."""
    before = _with_replica(run, needs, observed)
    end = _old(run, now) or deadline(run, now)
    if end:
        status = ended_status(before, run.metadata.generation, end, now)
        return Outcome(status, announcements=announcements(run, status), after=0.0)
    actions = list(_actions(run, observed))
    if run.spec.suspend:
        status = at_rest(before, run.metadata.generation, now)
        return Outcome(status, tuple(actions), announcements=announcements(run, status))
    phase, keeps, said = _told(observed)
    if run.status.phase == "Suspended":
        said = (*said, Said(conditions.SUSPENDED, "False", "Resumed", "the run goes on"))
    message = keeps.message if keeps else (needs.address or "") if phase == "Running" else ""
    status = before.model_copy(
        update={
            "phase": phase,
            "message": message,
            "start_time": run.status.start_time or to_second(now),
            "conditions": conditions.updated(
                run.status.conditions, said, run.metadata.generation, now
            ),
        }
    )
    return Outcome(
        status,
        tuple(actions),
        announcements=announcements(run, status, keeps=keeps),
        after=_next(run, status, now),
    )


def _with_replica(run: Run, needs: Needs, observed: Observed) -> RunStatus:
    deployment = observed.deployment
    ready = deployment.ready if deployment else 0
    replica = (run.status.replicas.get(DEFAULT_ROLE) or RoleStatus()).model_copy(
        update={"desired": 1, "active": deployment.replicas if deployment else 0, "ready": ready}
    )
    return run.status.model_copy(
        update={
            "observed_generation": run.metadata.generation,
            "address": needs.address,
            "replicas": {DEFAULT_ROLE: replica},
            "replicas_ready": f"{ready}/1",
        }
    )


def _old(run: Run, now: datetime) -> Verdict | None:
    limit, start = run.spec.max_age_seconds, run.status.start_time
    if limit is None or start is None or elapsed(start, now) < limit:
        return None
    text = f"the {run.spec.kind} is {spoken(limit)} old, its maxAgeSeconds"
    return Verdict("Succeeded", "MaxAgeReached", text)


def _actions(run: Run, observed: Observed) -> list[Action]:
    wanted = 0 if run.spec.suspend else 1
    actions: list[Action] = []
    if not observed.service:
        actions.append(CreateService())
    if observed.deployment is None:
        actions += [CreateDeployment()] if wanted else []
    elif observed.deployment.replicas != wanted:
        actions.append(ScaleDeployment(wanted))
    return actions


def _told(observed: Observed) -> tuple[Phase, Hindrance | None, tuple[Said, ...]]:
    refused = hindrance.refused(observed.refusals)
    deployment = observed.deployment
    created = Said(conditions.CREATED, "False", "Creating", "the Deployment is not there yet")
    if refused:
        created = Said(conditions.CREATED, "False", refused.reason, refused.message)
    elif deployment is not None:
        created = Said(conditions.CREATED, "True", "AllCreated", "Deployment and Service are there")
    if deployment is None:
        return "Pending", refused, (created,)
    lost = hindrance.lost(_lost(observed), 1)
    if lost:
        return "Starting", lost, (created, Said(conditions.READY, "False", *lost))
    current = deployment.observed_generation >= deployment.generation
    if current and deployment.available:
        ready = Said(conditions.READY, "True", "Available", "the pod answers")
        return "Running", refused, (created, ready)
    pods = list(observed.pods.values())
    stuck = hindrance.Hindrance("Stuck", deployment.message) if deployment.message else None
    keeps = refused or hindrance.unscheduled(pods, 1) or hindrance.waiting(pods, 1) or stuck
    text = keeps.message if keeps else "the pod is not ready yet"
    ready = Said(conditions.READY, "False", keeps.reason if keeps else "NotReady", text)
    return "Starting", keeps, (created, ready)


def _lost(observed: Observed) -> list[Lost]:
    """Pods on nodes in trouble. One that is deleted has a successor already."""
    health = ((pod, observed.health(pod)) for pod in observed.pods.values() if not pod.deleted_at)
    return [Lost(pod, node) for pod, node in health if node and node.trouble]


def _next(run: Run, status: RunStatus, now: datetime) -> float | None:
    limits = (run.spec.max_age_seconds, run.spec.active_deadline_seconds)
    left = [
        limit - elapsed(status.start_time, now)
        for limit in limits
        if limit is not None and status.start_time
    ]
    return max(0.0, min(left)) if left else None
