"""Reconcile notebooks, tensorboards and services."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook import names
from webhook.crd.conditions import ConditionUpdate
from webhook.run import progress
from webhook.run.actions import CreateDeployment, CreateService, Outcome, ScaleDeployment
from webhook.run.announcements import announce_condition, make_announcements
from webhook.run.facts import PodOnLostNode
from webhook.run.model import DEFAULT_ROLE
from webhook.run.model.status import READY
from webhook.run.progress import (
    active_status,
    ended_status,
    suspended_status,
)
from webhook.run.queue import ADMITTED, NOT_QUEUED
from webhook.run.verdict import Verdict, deadline
from webhook.times import elapsed, format_span

if TYPE_CHECKING:
    from datetime import datetime

    from webhook.run.actions import Action
    from webhook.run.model import Run, RunStatus
    from webhook.run.model.status import Phase
    from webhook.run.observed import Needs, Observed
    from webhook.run.progress import Hindrance


def reconcile(run: Run, needs: Needs, observed: Observed, now: datetime) -> Outcome:
    """Return what to do about a run that continues until it is stopped or exceeds its age."""
    before = _with_replica(run, needs, observed)
    end = _exceeds_max_age(run, now) or deadline(run, now)
    if end:
        status = ended_status(before, run.metadata.generation, end, now)
        return Outcome(status, announcements=make_announcements(run, status), after=0.0)
    actions = list(_actions(run, observed))
    if run.spec.suspend:
        status = suspended_status(before, run.metadata.generation, now)
        return Outcome(status, tuple(actions), announcements=make_announcements(run, status))
    phase, hindrance, updates = _progress(observed)
    text = (needs.address or "") if phase == "Running" else updates[-1].message
    message = hindrance.message if hindrance else text
    if unqueued := _unqueued_condition(run):
        updates += (unqueued,)
        message = f"{message}; {unqueued.message}" if message else unqueued.message
    status = active_status(run, before, phase, message, updates, now)
    return Outcome(
        status,
        tuple(actions),
        announcements=(
            *make_announcements(run, status, hindrance=hindrance),
            *announce_condition(run, unqueued, "False"),
        ),
        after=_seconds_until_due(run, status, now),
    )


def _unqueued_condition(run: Run) -> ConditionUpdate | None:
    """Return that the run has no quota of the queue that its label names; None without a label."""
    queue = (run.metadata.labels or {}).get(names.KUEUE_QUEUE)
    if not queue:
        return None
    return ConditionUpdate(
        ADMITTED,
        "False",
        NOT_QUEUED,
        f"the {run.spec.kind} runs without the quota of queue {queue}: Runs of this kind do not "
        f"wait in queues; remove the label {names.KUEUE_QUEUE}, or move it to the pod template if "
        "Kueue queues plain pods",
    )


def _with_replica(run: Run, needs: Needs, observed: Observed) -> RunStatus:
    deployment = observed.deployment
    ready = deployment.ready if deployment else 0
    replica = run.role_status(DEFAULT_ROLE).model_copy(
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


def _exceeds_max_age(run: Run, now: datetime) -> Verdict | None:
    limit, start = run.spec.max_age_seconds, run.status.start_time
    if limit is None or start is None or elapsed(start, now) < limit:
        return None
    text = f"the {run.spec.kind} is {format_span(limit)} old, its maxAgeSeconds"
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


def _progress(observed: Observed) -> tuple[Phase, Hindrance | None, tuple[ConditionUpdate, ...]]:
    refused = progress.refused_creations(observed.refusals)
    deployment = observed.deployment
    created = ConditionUpdate(
        progress.CREATED, "False", "Creating", "the Deployment is not there yet"
    )
    if refused:
        created = ConditionUpdate(progress.CREATED, "False", refused.reason, refused.message)
    elif deployment is not None:
        created = ConditionUpdate(
            progress.CREATED, "True", "AllCreated", "Deployment and Service are there"
        )
    if deployment is None:
        return "Pending", refused, (created,)
    lost = progress.on_lost_nodes(_pods_on_lost_nodes(observed), 1)
    if lost:
        return "Starting", lost, (created, ConditionUpdate(READY, "False", *lost))
    current = deployment.observed_generation >= deployment.generation
    if current and deployment.available:
        ready = ConditionUpdate(READY, "True", "Available", "the pod answers")
        return "Running", refused, (created, ready)
    pods = list(observed.pods.values())
    stuck = progress.Hindrance("Stuck", deployment.message) if deployment.message else None
    hindrance = (
        refused or progress.unschedulable(pods, 1) or progress.waiting_containers(pods, 1) or stuck
    )
    text = hindrance.message if hindrance else "the pod is not ready yet"
    ready = ConditionUpdate(READY, "False", hindrance.reason if hindrance else "NotReady", text)
    return "Starting", hindrance, (created, ready)


def _pods_on_lost_nodes(observed: Observed) -> list[PodOnLostNode]:
    """Return pods on unavailable nodes, without deleted pods, which are already replaced."""
    pods = (pod for pod in observed.pods.values() if not pod.deleted_at)
    health = ((pod, observed.node_health(pod)) for pod in pods)
    return [PodOnLostNode(pod, node) for pod, node in health if node and node.trouble]


def _seconds_until_due(run: Run, status: RunStatus, now: datetime) -> float | None:
    limits = (run.spec.max_age_seconds, run.spec.active_deadline_seconds)
    left = [
        limit - elapsed(status.start_time, now)
        for limit in limits
        if limit is not None and status.start_time
    ]
    return max(0.0, min(left)) if left else None
