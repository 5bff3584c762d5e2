"""The Workload of a Run, as Kueue's API has it: read, made, and merged into pods.

Shapes: kueue.x-k8s.io/v1beta2 (apis/kueue/v1beta2/workload_types.go, Kueue 0.15 to 0.17).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.errors import InvalidRun, UnreadableText
from webhook.foreign_text import annotation, parse_object
from webhook.run.controller_reference import owner_uid
from webhook.run.model.intervals import check_intervals, parse_intervals
from webhook.run.queue_state import (
    Assignment,
    Flavor,
    PodUpdate,
    StoredCondition,
    StoredPodSet,
    StoredWorkload,
)
from webhook.run.queue_topology import UNCONSTRAINED, read_request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.placement.shapes import JsonObject
    from webhook.run.model import Run

API_VERSION: Final = "kueue.x-k8s.io/v1beta2"
# What this controller notes about a pod set, as of a PodSet.
POD_SET_NOTE: Final = ("role", "indexes", "digest", "givenUp", "set")


def changed_status(raw: JsonObject, updates: tuple[JsonObject, ...], now: str) -> JsonObject:
    """Return the object with these conditions; without admission if the quota is released."""
    status = dict(raw.get("status") or {})
    conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
    for update in updates:
        old = conditions.get(update["type"]) or {}
        since = old.get("lastTransitionTime") if old.get("status") == update["status"] else now
        conditions[update["type"]] = {
            **update,
            "lastTransitionTime": since,
            "observedGeneration": raw["metadata"].get("generation") or 0,
        }
    if any(update["type"] == "QuotaReserved" for update in updates):
        status.pop("admission", None)
    return {**raw, "status": {**status, "conditions": list(conditions.values())}}


def read_workload(raw: JsonObject) -> StoredWorkload | None:
    """Return the Workload; None if no Run owns it."""
    uid = owner_uid(raw)
    if uid is None:
        return None
    metadata, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    admission = status.get("admission") or {}
    asked = {
        pod_set["name"]: pod_set.get("topologyRequest") or {}
        for pod_set in spec.get("podSets") or ()
    }
    checks = status.get("admissionChecks") or ()
    return StoredWorkload(
        name=metadata["name"],
        namespace=metadata["namespace"],
        run_uid=uid,
        uid=metadata["uid"],
        version=metadata["resourceVersion"],
        queue=spec.get("queueName") or "",
        deleted=bool(metadata.get("deletionTimestamp")),
        active=spec.get("active") is not False,
        conditions={
            condition["type"]: StoredCondition(
                condition.get("status") == "True",
                condition.get("reason") or "",
                condition.get("message") or "",
                condition.get("lastTransitionTime") or "",
            )
            for condition in status.get("conditions") or ()
        },
        checks="; ".join(
            f"{check['name']} {check.get('state')}: {check.get('message') or 'no message'}"
            for check in checks
            if check.get("state") != "Ready"
        ),
        assignments={
            assignment["name"]: _assignment(
                assignment, asked.get(assignment["name"], {}), checks, metadata["name"]
            )
            for assignment in admission.get("podSetAssignments") or ()
        },
        pod_sets=tuple(map(_pod_set, spec.get("podSets") or ())),
    )


def noted(asks: JsonObject, note: Mapping[str, str]) -> JsonObject:
    """Return a pod set with what this controller notes about it."""
    annotations = {names.POD_SET: json.dumps(note)}
    template = asks["template"]
    metadata = {**template["metadata"], "annotations": annotations}
    return {**asks, "template": {**template, "metadata": metadata}}


def _pod_set(raw: JsonObject) -> StoredPodSet:
    stored_pod_set = StoredPodSet(raw["name"], raw.get("count", 1))
    text = annotation((raw.get("template") or {}).get("metadata"), names.POD_SET)
    try:
        note = parse_object(text) if text else {}
        role, indexes, digest, given_up, set_hash = (str(note[key]) for key in POD_SET_NOTE)
        check_intervals(indexes)
    except (UnreadableText, KeyError, ValueError):
        return stored_pod_set
    return stored_pod_set._replace(
        role=role,
        indexes=indexes,
        digest=digest,
        given_up=frozenset(filter(None, given_up.split(","))),
        set_hash=set_hash,
    )


def _assignment(raw: JsonObject, asked: JsonObject, checks: Any, workload: str) -> Assignment:
    """`asked`: the topologyRequest of the pod set."""
    mine = [
        update
        for check in checks
        for update in check.get("podSetUpdates") or ()
        if update.get("name") == raw["name"]
    ]
    gated = bool(raw.get("topologyAssignment") or raw.get("delayedTopologyRequest"))
    # Kueue opens the gate of pods with an annotation of a topology only, and its own jobs get this
    # one if they ask for none (pkg/podset, FromAssignment; pkg/util/tas, IsTAS).
    implicit = gated and not asked.keys() & {"required", "preferred", "unconstrained"}
    topology = {UNCONSTRAINED: "true"} if implicit else {}
    update = PodUpdate(
        node_selector=_joined(mine, "nodeSelector"),
        tolerations=tuple(
            toleration for pod_update in mine for toleration in pod_update.get("tolerations") or ()
        ),
        labels={**_joined(mine, "labels"), names.KUEUE_PODSET: raw["name"]},
        annotations={**_joined(mine, "annotations"), **topology, names.KUEUE_WORKLOAD: workload},
        gated=gated,
    )
    return Assignment(tuple(dict.fromkeys((raw.get("flavors") or {}).values())), update)


def _joined(updates: list[JsonObject], name: str) -> dict[str, str]:
    return {key: value for update in updates for key, value in (update.get(name) or {}).items()}


def read_flavor(raw: JsonObject) -> Flavor:
    """Return what a ResourceFlavor asks of pods."""
    spec = raw.get("spec") or {}
    return Flavor(dict(spec.get("nodeLabels") or {}), tuple(spec.get("tolerations") or ()))


def find_updates(
    workload: StoredWorkload, flavors: Mapping[str, Flavor]
) -> tuple[dict[str, PodUpdate], str, str]:
    """Return what the pods of each pod set get; which flavor is not known, with nothing else; and
    what contradicts each other. The texts are empty if all is well.
    """
    updates: dict[str, PodUpdate] = {}
    contradiction = ""
    for pod_set, (wanted, update) in workload.assignments.items():
        unknown = [flavor for flavor in wanted if flavor not in flavors]
        if unknown:
            return {}, f"ResourceFlavor {', '.join(unknown)} is not known", ""
        parts = [flavors[flavor] for flavor in wanted]
        selector: dict[str, str] = {}
        for labels in (*(part.node_labels for part in parts), update.node_selector):
            for key, value in labels.items():
                if selector.setdefault(key, value) != value:
                    contradiction = (
                        f"nodeSelector[{key}] of {pod_set}: {selector[key]!r} by a flavor, "
                        f"{value!r} by another flavor or an admission check; change one of them"
                    )
        updates[pod_set] = update._replace(
            node_selector=selector,
            tolerations=(
                *(toleration for part in parts for toleration in part.tolerations),
                *update.tolerations,
            ),
        )
    return updates, "", contradiction


def conflict(pod_set: str, pod: JsonObject, update: PodUpdate) -> str:
    """Return in which key a pod and what Kueue wants contradict each other; empty if in none.

    pod: its metadata as the run has them, its spec as admission places it without Kueue.
    """
    fields = (
        ("nodeSelector", pod["spec"].get("nodeSelector"), update.node_selector),
        ("labels", pod["metadata"].get("labels"), update.labels),
        ("annotations", pod["metadata"].get("annotations"), update.annotations),
    )
    for name, values, wanted in fields:
        for key, value in wanted.items():
            if (values or {}).get(key, value) != value:
                return (
                    f"{name}[{key}] of {pod_set}: the run wants {values[key]!r}, Kueue {value!r}; "
                    "change the flavor or the admission check, or make another run"
                )
    return ""


def overridden(pods: str, placed: JsonObject, update: PodUpdate) -> str:
    """Return what Kueue wants in pods and admission has changed or removed; empty if nothing.

    Such a pod would use other nodes than those by which its quota is counted. pods: as text.
    """
    selector = placed["spec"].get("nodeSelector") or {}
    for key, value in update.node_selector.items():
        if selector.get(key) != value:
            now = f"set {selector[key]!r} in place of" if key in selector else "remove"
            return (
                f"nodeSelector[{key}] of {pods}: policies {now} {value!r}, which a flavor or an "
                "admission check adds; suspend and resume the run, so that it queues by the "
                f"policies of now, or label the namespace {names.KUEUE}={names.KUEUE_KEEP}"
            )
    kept = placed["spec"].get("tolerations") or ()
    removed = [
        json.dumps(toleration) for toleration in update.tolerations if toleration not in kept
    ]
    if not removed:
        return ""
    return (
        f"tolerations of {pods}: policies remove {', '.join(removed)}, which a flavor or an "
        "admission check adds; allow it in the policy, or change the flavor"
    )


def updated(pod: JsonObject, update: PodUpdate | None) -> JsonObject:
    """Return the pod with what Kueue wants in it."""
    if update is None:
        return pod
    metadata, spec = pod["metadata"], pod["spec"]
    tolerations = [*(spec.get("tolerations") or ())]
    tolerations += [
        toleration for toleration in update.tolerations if toleration not in tolerations
    ]
    gates = [*(spec.get("schedulingGates") or ())]
    if update.gated:
        gates.append({"name": names.KUEUE_TOPOLOGY_GATE})
    fields = {
        "nodeSelector": {**(spec.get("nodeSelector") or {}), **update.node_selector},
        "tolerations": tolerations,
        "schedulingGates": gates,
    }
    return {
        **pod,
        "metadata": {
            **metadata,
            "labels": {**(metadata.get("labels") or {}), **update.labels},
            "annotations": {**(metadata.get("annotations") or {}), **update.annotations},
        },
        "spec": {**spec, **{key: value for key, value in fields.items() if value}},
    }


def sets_of_replicas(workload: StoredWorkload) -> dict[tuple[str, int], str]:
    """Return the pod set of each replica, by role and index.

    Without a note of this controller, an earlier version made the Workload: the name is that of
    the role, or of role and index.
    """
    return {
        (pod_set.role, index): pod_set.name
        for pod_set in workload.pod_sets
        for index in parse_intervals(pod_set.indexes)
    }


def pod_set_of(
    workload: StoredWorkload | None, sets: Mapping[tuple[str, int], str], role: str, index: int
) -> str:
    """Return the pod set of a replica; `sets` are those of `sets_of_replicas`."""
    replica_set = f"{role}-{index}"
    earlier = replica_set if workload and replica_set in workload.assignments else role
    return sets.get((role, index), earlier)


def workload_name(run: str, uid: str) -> str:
    """Return the name of the Workload of a Run with this name and uid, which no other Run has."""
    return f"run-{run}-{uid[:8]}"


# What of a pod counts for Kueue: requests, and the nodes that it may use.
_COUNTED: Final = (
    "nodeSelector",
    "affinity",
    "tolerations",
    "topologySpreadConstraints",
    "priorityClassName",
    "runtimeClassName",
    "overhead",
    "schedulerName",
    "resources",
    "resourceClaims",
)
_OF_CONTAINER: Final = ("name", "image", "resources", "restartPolicy")


def longest(run: Run) -> dict[str, int]:
    """Return the field of a Workload by which Kueue ends it, if the Run's label asks for it.

    Raises InvalidRun if the label is no number.
    """
    text = (run.metadata.labels or {}).get(names.KUEUE_LONGEST)
    if text is None:
        return {}
    if not text.isascii() or not text.isdecimal() or not 0 < int(text) < 2**31:
        raise InvalidRun([f"label {names.KUEUE_LONGEST}: want seconds, such as 3600, not {text!r}"])
    return {"maximumExecutionTimeSeconds": int(text)}


def pod_set(name: str, count: int, placed: JsonObject) -> JsonObject:
    """Return a pod set from a pod that admission has placed; counts and nodes alone matter.

    Raises InvalidRun if an annotation of a topology cannot be read.
    """
    spec = placed["spec"]
    template = {key: spec[key] for key in _COUNTED if spec.get(key)}
    for key in ("initContainers", "containers"):
        if spec.get(key):
            template[key] = [
                {part: container[part] for part in _OF_CONTAINER if part in container}
                for container in spec[key]
            ]
    labels = placed["metadata"].get("labels") or {}
    annotations = placed["metadata"].get("annotations") or {}
    topology = read_request(annotations)
    return {
        "name": name,
        "count": count,
        "template": {"metadata": {"labels": labels}, "spec": template},
        **({"topologyRequest": topology} if topology else {}),
    }
