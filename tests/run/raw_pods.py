"""Raw pods of a run as the API server gives them, for tests of what is read from them."""

from __future__ import annotations

from typing import Any

from webhook import names

Json = dict[str, Any]


def owner_reference(**changes: Any) -> Json:
    """The controller reference to the Run `mnist`."""
    return {
        "apiVersion": "fairlead.dev/v1alpha1",
        "kind": "Run",
        "name": "mnist",
        "uid": "run-uid",
        "controller": True,
        "blockOwnerDeletion": False,
        **changes,
    }


def raw_pod(
    *,
    name: str = "mnist-worker-3",
    metadata: Json | None = None,
    spec: Json | None = None,
    status: Json | None = None,
) -> Json:
    """A pod of worker 3's second attempt, with the container `main` and the sidecar `proxy`."""
    return {
        "metadata": {
            "name": name,
            "namespace": "research",
            "uid": "pod-uid",
            "resourceVersion": "7",
            "labels": {names.RUN: "mnist", names.ROLE: "worker", names.REPLICA_INDEX: "3"},
            "annotations": {names.ATTEMPT: "2", names.DEFAULT_CONTAINER: "main"},
            "ownerReferences": [owner_reference()],
            **(metadata or {}),
        },
        "spec": {
            "containers": [{"name": "proxy"}, {"name": "main"}],
            "initContainers": [{"name": "fetch"}, {"name": "mesh", "restartPolicy": "Always"}],
            **(spec or {}),
        },
        "status": {"phase": "Pending", **(status or {})},
    }


def running(name: str, since: str = "2026-11-20T10:00:05Z") -> Json:
    """The status of a container that runs."""
    return {"name": name, "ready": True, "state": {"running": {"startedAt": since}}}


def waiting(name: str, reason: str, message: str = "") -> Json:
    state = {"waiting": {"reason": reason, **({"message": message} if message else {})}}
    return {"name": name, "ready": False, "state": state}


def terminated(name: str, code: int, reason: str = "Error", **more: Any) -> Json:
    """The status of a container that has ended."""
    ended = {
        "exitCode": code,
        "reason": reason,
        "startedAt": "2026-11-20T10:00:05Z",
        "finishedAt": "2026-11-20T10:07:00Z",
        **more,
    }
    return {"name": name, "ready": False, "state": {"terminated": ended}}


def condition(kind: str, status: str, reason: str = "", message: str = "") -> Json:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-11-20T10:06:00Z",
    }
