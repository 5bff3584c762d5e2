"""From raw objects of the API server to what reconciling needs to know of them."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.run.container_state import Containers
from webhook.run.observed import OwnedDeployment, OwnedPod

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.run.observed import PodPhase

_PHASES: Final[dict[str, PodPhase]] = {
    "Pending": "Pending",
    "Running": "Running",
    "Succeeded": "Succeeded",
    "Failed": "Failed",
}
# A message of the scheduler or of an eviction is some hundred characters long.
LONGEST_MESSAGE: Final = 1024


def owner(raw: Mapping[str, Any]) -> tuple[str, str] | None:
    """Name and uid of the Run that the object's controller reference names; None if none does.

    An object has one controller reference at most (metav1.OwnerReference.controller), and a Run's
    may be of any version of our group.
    """
    for reference in raw["metadata"].get("ownerReferences") or ():
        if reference.get("controller") and reference.get("kind") == names.RUN_KIND:
            group, _, _ = reference.get("apiVersion", "").rpartition("/")
            if group == names.GROUP:
                return reference["name"], sys.intern(reference["uid"])
    return None


def owner_uid(raw: Mapping[str, Any]) -> str | None:
    """The uid of the Run that owns the object; None if none does."""
    found = owner(raw)
    return found[1] if found else None


def pod(raw: Mapping[str, Any]) -> OwnedPod | None:
    """A pod of a run; None if no Run owns it, or it is not told which replica it is.

    Role and index are read from the name, `<run>-<role>-<index>`: labels can be changed, and two
    pods can have the same. The main container is the one that kubectl's annotation names, else the
    first. A pod that a Deployment made for a run that serves has our label and no role: it is no
    replica.
    """
    metadata = raw["metadata"]
    owned_by = owner(raw)
    run_uid: str | None
    replica: tuple[str, int] | None
    if owned_by:
        run_uid, replica = owned_by[1], _replica(metadata["name"], owned_by[0])
    else:
        run_uid, replica = _served(metadata), ("", 0)
    if not run_uid or not replica:
        return None
    status = raw.get("status") or {}
    # The API server gives every new pod the phase Pending.
    phase = _PHASES.get(status.get("phase") or "Pending", "Unknown")
    conditions = {each["type"]: each for each in status.get("conditions") or ()}
    containers = Containers(raw)
    return OwnedPod(
        name=metadata["name"],
        uid=metadata["uid"],
        run_uid=run_uid,
        role=sys.intern(replica[0]),
        index=replica[1],
        attempt=_number((metadata.get("annotations") or {}).get(names.ATTEMPT)) or 0,
        phase=phase,
        ready=_is_true(conditions.get("Ready")),
        node=sys.intern((raw.get("spec") or {}).get("nodeName") or ""),
        deleted_at=_deleted_at(metadata),
        reason=sys.intern(status.get("reason") or ""),
        message=_text(status.get("message")),
        disruption=_disruption(conditions.get("DisruptionTarget")),
        unscheduled=_unscheduled(conditions.get("PodScheduled")),
        waiting=containers.waiting(),
        exit=containers.exit() if phase in ("Succeeded", "Failed") else None,
        running_since=containers.running_since(),
        init_since=containers.init_since(),
        gates=len((raw.get("spec") or {}).get("schedulingGates") or ()),
    )


def deployment(raw: Mapping[str, Any]) -> OwnedDeployment | None:
    """The Deployment of a run that serves; None if no Run owns it."""
    if owner(raw) is None:
        return None
    metadata, status = raw["metadata"], raw.get("status") or {}
    wanted = (raw.get("spec") or {}).get("replicas")
    return OwnedDeployment(
        uid=metadata["uid"],
        # The API server fills in 1; an object that did not come from there may lack it.
        replicas=1 if wanted is None else wanted,
        generation=metadata.get("generation") or 0,
        observed_generation=status.get("observedGeneration") or 0,
        available=status.get("availableReplicas") or 0,
        ready=status.get("readyReplicas") or 0,
        message="; ".join(_complaints(status.get("conditions") or ())),
    )


def _served(metadata: Mapping[str, Any]) -> str | None:
    """The uid of the Run whose Deployment made the pod, by way of a ReplicaSet."""
    references: list[dict[str, Any]] = metadata.get("ownerReferences") or []
    owned_by = next((each for each in references if each.get("controller")), {})
    uid: str | None = (metadata.get("labels") or {}).get(names.RUN_UID)
    return sys.intern(uid) if uid and owned_by.get("kind") == "ReplicaSet" else None


def _replica(name: str, run: str) -> tuple[str, int] | None:
    role, _, last = name.removeprefix(f"{run}-").rpartition("-")
    index = _number(last)
    if not name.startswith(f"{run}-") or not role or index is None:
        return None
    return role, index


def _number(text: object) -> int | None:
    if not isinstance(text, str) or not text.isascii() or not text.isdigit() or len(text) > 9:
        return None
    return int(text)


def _is_true(condition: Mapping[str, Any] | None) -> bool:
    return condition is not None and condition.get("status") == "True"


def _disruption(condition: Mapping[str, Any] | None) -> tuple[str, str, str] | None:
    if condition is None or not _is_true(condition):
        return None
    return (
        sys.intern(condition.get("reason") or ""),
        _text(condition.get("message")),
        condition.get("lastTransitionTime") or "",
    )


def _unscheduled(condition: Mapping[str, Any] | None) -> str:
    """The scheduler's words where it found no node; a gate that holds the pod back is no such."""
    if condition is None or condition.get("status") != "False":
        return ""
    return _text(condition.get("message")) if condition.get("reason") == "Unschedulable" else ""


def _deleted_at(metadata: Mapping[str, Any]) -> str:
    """When deletion was asked for: deletionTimestamp is that plus the grace period."""
    text: str = metadata.get("deletionTimestamp") or ""
    grace = metadata.get("deletionGracePeriodSeconds") or 0
    if not text or not grace:
        return text
    asked = datetime.fromisoformat(text) - timedelta(seconds=grace)
    return asked.isoformat().replace("+00:00", "Z")


def _text(message: str | None) -> str:
    # Thousands of pods that wait say the same: one text for all of them.
    return sys.intern((message or "")[:LONGEST_MESSAGE])


def _complaints(conditions: tuple[Mapping[str, Any], ...]) -> Iterator[str]:
    """Why a Deployment makes no progress: pods that are refused, or a deadline that is over."""
    for each in conditions:
        said = each.get("message") or each.get("reason") or ""
        if each["type"] == "ReplicaFailure" and each.get("status") == "True":
            yield _text(said)
        if each["type"] == "Progressing" and each.get("status") == "False":
            yield _text(said)
