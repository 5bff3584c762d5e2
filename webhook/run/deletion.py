"""The status of a Run that is being deleted, while a finalizer or its pods keep it.

As Kubernetes' own controllers do, nothing is created, deleted or charged: the garbage collector
deletes what the Run owns, or leaves it if that was asked for. The phase stays what it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.crd.conditions import ConditionUpdate
from webhook.run.actions import Outcome
from webhook.run.model.status import READY
from webhook.run.progress import update_conditions, without_pod_conditions

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from webhook.run.model import RoleStatus, Run
    from webhook.run.observed import OwnedPod

BEING_DELETED: Final = "is being deleted"


def reconcile_deleted(run: Run, pods: Iterable[OwnedPod], now: datetime) -> Outcome:
    """Return the status with the replicas that are still there; `pods` are all of the run."""
    before = run.status
    left = [pod for pod in pods if not pod.ended]
    roles = {
        role: recount(
            run.role_status(role).model_copy(update={"desired": spec.count}),
            # The pods of a Deployment have no role.
            [pod for pod in left if pod.role == role or run.spec.serving],
        )
        for role, spec in run.spec.roles.items()
    }
    desired = sum(role_status.desired for role_status in roles.values())
    active, ready = (
        sum(getattr(role_status, field) for role_status in roles.values())
        for field in ("active", "ready")
    )
    message = f"{BEING_DELETED}; {active} of {desired} pods are there"
    updates = () if ready == desired else (ConditionUpdate(READY, "False", "Deleting", message),)
    generation = run.metadata.generation
    status = before.model_copy(
        update={
            "observed_generation": generation,
            "replicas": {**before.replicas, **roles},
            "replicas_ready": f"{ready}/{desired}",
            "message": message,
            "conditions": update_conditions(
                without_pod_conditions(before.conditions), updates, generation, now
            ),
        }
    )
    return Outcome(status)


def recount(before: RoleStatus, pods: Iterable[OwnedPod]) -> RoleStatus:
    """Return the status of a role with the counts of those of its pods that have not ended."""
    left = [pod for pod in pods if not pod.ended]
    ready = sum(pod.ready and not pod.deleted_at for pod in left)
    return before.model_copy(update={"active": len(left), "ready": ready})
