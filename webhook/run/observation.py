"""Extract what reconciling needs from raw objects."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import orjson

from webhook import names
from webhook.dns_names import is_subdomain
from webhook.foreign_text import annotation, whole_number
from webhook.placement.node_affinity import avoided_nodes
from webhook.placement.pod_requests import requests
from webhook.placement.stamp_text import read_given_up, read_waits
from webhook.run.controller_reference import controller_of, owner
from webhook.run.observed import EngineEvent, EngineObject, Exit, OwnedDeployment, OwnedPod

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from webhook.run.observed import PodPhase

_PHASES: Final[dict[str, PodPhase]] = {
    "Pending": "Pending",
    "Running": "Running",
    "Succeeded": "Succeeded",
    "Failed": "Failed",
}
# Messages of the scheduler or of an eviction have some hundred characters.
LONGEST_MESSAGE: Final = 1024
# Bytes. The kubelet keeps 4,096 bytes of a termination message, or 2,048 of the log. The end is the
# informative part, and thousands of pods may have one each.
LONGEST_EXIT_MESSAGE: Final = 2048
# Events about pods that are not created: by the webhook of Fairlead; by the training operator; by
# the controllers of Jobs and ReplicaSets; by the MPI operator, which has this reason for a failed
# job too (v2/pkg/controller/mpi_job_controller.go); by JobSet of its Jobs; by the MPI operator of a
# job that it does not accept, and of names that are taken.
_BY_POLICY: Final = "PlacementRejected"
_INVALID: Final = "ValidationError"
_TAKEN: Final = "ErrResourceExists"
_OWN_REASONS: Final = {_BY_POLICY: "Rejected", _INVALID: "Invalid", _TAKEN: "NameTaken"}
_NOT_CREATED: Final = {
    _BY_POLICY: "",
    "FailedCreatePod": "",
    "FailedCreate": "",
    "MPIJobFailed": "pod created failed",
    "JobCreationFailed": "",
    _INVALID: "",
    _TAKEN: "",
}
# The reason of an EngineEvent that may have another subject than pods that are not created.
OTHER_WARNING: Final = "BackendWarning"
# Prefixes of the messages of admission plugins, with the reason for each (from the sources of
# ResourceQuota, PodSecurity, the webhook dispatcher and ValidatingAdmissionPolicy).
REFUSED_BY: Final = (
    ("exceeded quota:", "QuotaExceeded"),
    ("failed quota:", "QuotaExceeded"),
    ("violates PodSecurity", "PodSecurity"),
    ("denied the request", "Rejected"),
    ("denied request:", "Rejected"),
)
_TEMPLATE_HASH: Final = "pod-template-hash"
# Normal reasons while a pod starts.
_STARTING: Final = frozenset({"ContainerCreating", "PodInitializing"})


def pod(raw: Mapping[str, Any]) -> OwnedPod | None:
    """Return a pod of a run; None if no Run owns it or its name has no replica.

    Role and index are parsed from the name, `<run>-<role>-<index>`, because labels are mutable and
    two pods may have equal ones. The main container is the one that kubectl's annotation names,
    else the first. A pod of a Deployment has the run's label, an empty role and index 0: it is not
    a replica.
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
    return _read_pod(raw, run_uid, *replica, Containers(raw))


def engine_pod(
    raw: Mapping[str, Any], role_label: str, index_label: str, containers: Mapping[str, str]
) -> OwnedPod | None:
    """Return a pod that another engine created; None without a controller or a replica's labels.

    Its `run_uid` is the uid of the pod's controller, and its role the value of the role label.
    containers: by the controller's kind, the name of the main container; else the annotation's, or
    the first.
    """
    metadata = raw["metadata"]
    controller = controller_of(raw)
    labels = metadata.get("labels") or {}
    index = whole_number(labels.get(index_label, "0"))
    if controller is None or index is None or role_label not in labels:
        return None
    pod_containers = Containers(raw, containers.get(controller["kind"], ""))
    pod = _read_pod(raw, sys.intern(controller["uid"]), labels[role_label], index, pod_containers)
    restarts, previous = pod_containers.restarts()
    return replace(pod, restarts=restarts, previous=previous) if restarts else pod


def any_pod(raw: Mapping[str, Any]) -> OwnedPod:
    """Return any stored pod, without a run, a role and an index."""
    return _read_pod(raw, "", "", 0, Containers(raw))


def main_container(raw: Mapping[str, Any], containers: Mapping[str, str]) -> str:
    """Return the name of the pod's main container; `containers` as for `engine_pod`."""
    controller = controller_of(raw) or {}
    return Containers(raw, containers.get(controller.get("kind", ""), "")).main


def engine_object(
    raw: Mapping[str, Any],
    suspend: str,
    templates: str,
    conditions: Callable[[Mapping[str, Any]], dict[str, tuple[str, str]]],
) -> EngineObject | None:
    """Return an engine's object; None if no Run owns it.

    suspend: the dotted path of the field that suspends it; empty if there is none.
    templates: the dotted path of its counts and pod templates.
    conditions: returns those that hold from the status.
    """
    run_owner = owner(raw)
    if run_owner is None:
        return None
    metadata, status = raw["metadata"], raw.get("status") or {}
    spec = raw.get("spec") or {}
    # The first generation is what was created. The API server counts changes of the spec.
    changed = (metadata.get("generation") or 0) > 1
    return EngineObject(
        name=metadata["name"],
        uid=metadata["uid"],
        run_uid=run_owner[1],
        created=metadata.get("creationTimestamp") or "",
        deleted=bool(metadata.get("deletionTimestamp")),
        suspended=bool(suspend) and _below(spec, suspend) is True,
        reported=bool(status),
        conditions=conditions(status),
        templates=orjson.dumps(_below(spec, templates)) if changed else b"",
        queue=(metadata.get("labels") or {}).get(names.KUEUE_QUEUE) or "",
    )


def true_conditions(status: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return reason and message by the type of the conditions that hold."""
    return {
        condition["type"]: (condition.get("reason") or "", _text(condition.get("message")))
        for condition in status.get("conditions") or ()
        if _is_true(condition)
    }


def engine_event(raw: Mapping[str, Any]) -> EngineEvent | None:
    """Return a warning about an engine's object, or one between it and its pods; else None."""
    message, kind = raw.get("message") or "", raw.get("reason") or ""
    if raw.get("type") != "Warning" or _NOT_CREATED.get(kind, "") not in message:
        return None
    about = (raw.get("involvedObject") or {}).get("uid") or ""
    if kind not in _NOT_CREATED:
        return EngineEvent(OTHER_WARNING, f"{kind}: {message}", last_seen(raw), about)
    reason = next((reason for words, reason in REFUSED_BY if words in message), "FailedCreate")
    return EngineEvent(_OWN_REASONS.get(kind, reason), message, last_seen(raw), about)


def last_seen(raw: Mapping[str, Any]) -> str:
    """Return when an Event was last repeated, as both recorders of client-go write it."""
    series = raw.get("series") or {}
    return series.get("lastObservedTime") or raw.get("lastTimestamp") or raw.get("eventTime") or ""


def _gates(spec: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(sys.intern(gate["name"]) for gate in spec.get("schedulingGates") or ())


def _below(value: Any, path: str) -> Any:
    for step in filter(None, path.split(".")):
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _read_pod(
    raw: Mapping[str, Any], run_uid: str, role: str, index: int, containers: Containers
) -> OwnedPod:
    metadata = raw["metadata"]
    status = raw.get("status") or {}
    # The API server sets the phase of every new pod to Pending.
    phase = _PHASES.get(status.get("phase") or "Pending", "Unknown")
    conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
    scheduled = conditions.get("PodScheduled")
    spec = raw.get("spec") or {}
    fallback = read_waits(metadata)
    waits = not spec.get("nodeName") and any(most is not None for _, most in fallback)
    return OwnedPod(
        name=metadata["name"],
        uid=metadata["uid"],
        run_uid=run_uid,
        role=sys.intern(role),
        index=index,
        attempt=whole_number(annotation(metadata, names.ATTEMPT)) or 0,
        phase=phase,
        ready=_is_true(conditions.get("Ready")),
        node=sys.intern(spec.get("nodeName") or ""),
        deleted_at=_deleted_at(metadata),
        given_grace=bool(metadata.get("deletionGracePeriodSeconds")),
        half_deleted=_half_deleted(metadata),
        reason=sys.intern(status.get("reason") or ""),
        message=_text(status.get("message")),
        disruption=_disruption(conditions.get("DisruptionTarget")),
        unscheduled=(unscheduled := _unscheduled(scheduled)),
        unscheduled_since=_since(scheduled) if unscheduled else "",
        created=metadata.get("creationTimestamp") or "",
        bound_since=_since(scheduled) if _is_true(scheduled) else "",
        accelerators=_accelerators(spec),
        fallback=fallback,
        selector=tuple(sorted((spec.get("nodeSelector") or {}).items())) if waits else (),
        given_up=read_given_up(metadata),
        avoid=frozenset(filter(is_subdomain, avoided_nodes(metadata.get("annotations") or {}))),
        waiting=containers.waiting(),
        exit=containers.exit() if phase in names.TERMINAL_PHASES else None,
        finished_at=containers.finished_at(),
        running_since=containers.running_since(),
        init_since=containers.init_since(),
        priority=spec.get("priority") or 0,
        gates=(gates := _gates(spec)),
        queue=(metadata.get("labels") or {}).get(names.KUEUE_QUEUE) or "" if gates else "",
        has_claim=any(
            "persistentVolumeClaim" in volume or "ephemeral" in volume
            for volume in spec.get("volumes") or ()
        ),
    )


def deployment(raw: Mapping[str, Any]) -> OwnedDeployment | None:
    """Return the Deployment of a run; None if no Run owns it."""
    if owner(raw) is None:
        return None
    metadata, status = raw["metadata"], raw.get("status") or {}
    wanted = (raw.get("spec") or {}).get("replicas")
    return OwnedDeployment(
        uid=metadata["uid"],
        # The API server defaults to 1; an object from another source may lack the field.
        replicas=1 if wanted is None else wanted,
        generation=metadata.get("generation") or 0,
        observed_generation=status.get("observedGeneration") or 0,
        available=status.get("availableReplicas") or 0,
        ready=status.get("readyReplicas") or 0,
        message="; ".join(_complaints(status.get("conditions") or ())),
    )


def _served(metadata: Mapping[str, Any]) -> str | None:
    """Return the uid of the Run whose Deployment created the pod through a ReplicaSet.

    Labels alone can be copied from a pod of the run to another Deployment's template. The name of a
    ReplicaSet is that of its Deployment, which is the run's, and the pod's template hash
    (k8s.io/kubernetes, pkg/controller/deployment/sync.go, getNewReplicaSet).
    """
    references: list[dict[str, Any]] = metadata.get("ownerReferences") or []
    owned_by = next((reference for reference in references if reference.get("controller")), {})
    labels = metadata.get("labels") or {}
    uid: str | None = labels.get(names.RUN_UID)
    replica_set = f"{labels.get(names.RUN)}-{labels.get(_TEMPLATE_HASH)}"
    if not uid or (owned_by.get("kind"), owned_by.get("name")) != ("ReplicaSet", replica_set):
        return None
    return sys.intern(uid)


def _replica(name: str, run: str) -> tuple[str, int] | None:
    role, _, last = name.removeprefix(f"{run}-").rpartition("-")
    index = whole_number(last)
    if not name.startswith(f"{run}-") or not role or index is None:
        return None
    return role, index


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
    """Return the scheduler's message if it found no node; a scheduling gate does not count."""
    if condition is None or condition.get("status") != "False":
        return ""
    return _text(condition.get("message")) if condition.get("reason") == "Unschedulable" else ""


def _deleted_at(metadata: Mapping[str, Any]) -> str:
    """Return when deletion was requested: deletionTimestamp minus the grace period."""
    text: str = metadata.get("deletionTimestamp") or ""
    grace = metadata.get("deletionGracePeriodSeconds") or 0
    if not text or not grace:
        return text
    try:
        requested = datetime.fromisoformat(text) - timedelta(seconds=grace)
    except (ValueError, OverflowError):
        # The grace period may be any number of seconds, and exceed the range of dates.
        return metadata.get("creationTimestamp") or text
    return requested.isoformat().replace("+00:00", "Z")


def _half_deleted(metadata: Mapping[str, Any]) -> bool:
    ends = metadata.get("deletionTimestamp") and not metadata.get("finalizers")
    return bool(ends) and not metadata.get("deletionGracePeriodSeconds")


def _since(condition: Mapping[str, Any] | None) -> str:
    return (condition or {}).get("lastTransitionTime") or ""


def _accelerators(spec: dict[str, Any]) -> tuple[tuple[str, int], ...]:
    """Return extended resources, as IsExtendedResourceName tells them (pkg/apis/core/v1/helper)."""
    accelerators = sorted(
        (sys.intern(name), count)
        for name, count in requests(spec).items()
        if "/" in name and "kubernetes.io/" not in name
    )
    return tuple(accelerators)


def _text(message: str | None) -> str:
    # Thousands of waiting pods have the same message; interning keeps one copy.
    return sys.intern((message or "")[:LONGEST_MESSAGE])


def _complaints(conditions: tuple[Mapping[str, Any], ...]) -> Iterator[str]:
    """Yield why a Deployment makes no progress: rejected pods, or an exceeded deadline."""
    for condition in conditions:
        text = condition.get("message") or condition.get("reason") or ""
        if condition["type"] == "ReplicaFailure" and condition.get("status") == "True":
            yield _text(text)
        if condition["type"] == "Progressing" and condition.get("status") == "False":
            yield _text(text)


class Containers:
    """The containers of one raw pod: init containers first, in the order of the spec."""

    def __init__(self, raw: Mapping[str, Any], main: str = "") -> None:
        spec, status = raw.get("spec") or {}, raw.get("status") or {}
        annotations = raw["metadata"].get("annotations") or {}
        mains = [container["name"] for container in spec.get("containers") or ()]
        named = main if main in mains else annotations.get(names.DEFAULT_CONTAINER)
        first: str = next(iter(mains), "")
        self.main = str(named) if named in mains else first
        # The exit code of a sidecar does not affect the pod's phase (KEP-753).
        sidecars = {
            container["name"]
            for container in spec.get("initContainers") or ()
            if container.get("restartPolicy") == "Always"
        }
        self._init = [*_in_order(spec.get("initContainers"), status.get("initContainerStatuses"))]
        self._all = [
            *self._init,
            *_in_order(spec.get("containers"), status.get("containerStatuses")),
        ]
        self._deciding = [
            container_status
            for container_status in self._all
            if container_status["name"] not in sidecars
        ]

    def waiting(self) -> tuple[str, str] | None:
        """Return reason and message of the first container with an unusual waiting state."""
        for container_status in self._all:
            state = (container_status.get("state") or {}).get("waiting") or {}
            reason = state.get("reason") or ""
            if reason and reason not in _STARTING:
                return sys.intern(reason), sys.intern((state.get("message") or "")[:1024])
        return None

    def restarts(self) -> tuple[int, Exit | None]:
        """Return how often the main container was restarted, and how it ended before."""
        for container_status in self._all:
            if container_status["name"] == self.main:
                state = (container_status.get("lastState") or {}).get("terminated")
                return container_status.get("restartCount") or 0, _exit(
                    container_status["name"], state
                ) if state else None
        return 0, None

    def running_since(self) -> str:
        """Return the start time of the main container; empty before its start."""
        for container_status in self._all:
            if container_status["name"] == self.main:
                return _started(container_status)
        return ""

    def finished_at(self) -> str:
        """Return the end time of the main container; empty before its end."""
        for container_status in self._all:
            if container_status["name"] == self.main:
                ended = (container_status.get("state") or {}).get("terminated") or {}
                return ended.get("finishedAt") or ""
        return ""

    def init_since(self) -> str:
        """Return the first start time of the init containers; empty if none has started."""
        return min(filter(None, map(_started, self._init)), default="")

    def exit(self) -> Exit | None:
        """Return the main container's exit if it failed, else the first failure, else its exit."""
        ended = list(self._exits())
        main = next(
            (container_exit for container_exit in ended if container_exit.container == self.main),
            None,
        )
        if main is not None and main.code != 0:
            return main
        return next((container_exit for container_exit in ended if container_exit.code != 0), main)

    def _exits(self) -> Iterator[Exit]:
        for container_status in self._deciding:
            state = (container_status.get("state") or {}).get("terminated")
            if state is None and "waiting" in (container_status.get("state") or {}):
                # The kubelet reports a container that it lost as waiting.
                state = (container_status.get("lastState") or {}).get("terminated")
            if state is not None:
                yield _exit(container_status["name"], state)


def _exit(container: str, state: Mapping[str, Any]) -> Exit:
    return Exit(
        container=sys.intern(container),
        code=state.get("exitCode") or 0,
        signal=state.get("signal") or 0,
        reason=sys.intern(state.get("reason") or ""),
        message=(state.get("message") or "")[-LONGEST_EXIT_MESSAGE:],
        finished_at=state.get("finishedAt") or "",
    )


def _started(container: Mapping[str, Any]) -> str:
    state = container.get("state") or {}
    begun = (state.get("running") or state.get("terminated") or {}).get("startedAt")
    return begun or ""


def _in_order(
    specified: list[Mapping[str, Any]] | None, statuses: list[Mapping[str, Any]] | None
) -> Iterator[Mapping[str, Any]]:
    """Yield the statuses in the order of the spec; the kubelet sorts them by name."""
    by_name = {container_status["name"]: container_status for container_status in statuses or ()}
    for container in specified or ():
        if container["name"] in by_name:
            yield by_name[container["name"]]
