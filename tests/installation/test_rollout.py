"""How far a Deployment has come, and why not further."""

from __future__ import annotations

from typing import Any

import pytest

from tests.wording import Wording, mentions
from webhook.installation.rollout import is_ready, missing, troubles

Json = dict[str, Any]
GOOD = {
    "observedGeneration": 2,
    "replicas": 3,
    "updatedReplicas": 3,
    "availableReplicas": 3,
}


def deployment(**status: Any) -> Json:
    """One of three replicas."""
    return {
        "metadata": {"name": "web", "namespace": "ns", "generation": 2},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}},
        "status": {**GOOD, **status},
    }


def pod(
    *, ready: bool = False, waiting: Json | None = None, phase: str = "Running", **changes: Any
) -> Json:
    """One of its pods."""
    conditions = [{"type": "Ready", "status": str(ready)}]
    return {
        "metadata": {"name": "web-1", "labels": {"app": "web", "hash": "x"}},
        "spec": {"containers": [{"name": "w", "ports": [{"name": "health", "containerPort": 81}]}]},
        "status": {
            "phase": phase,
            "conditions": conditions,
            "containerStatuses": [{"state": {"waiting": waiting} if waiting else {}}],
        },
        **changes,
    }


def test_nothing_is_missing_when_all_pods_are_new_and_available() -> None:
    """Also of none."""
    assert missing(deployment()) == ""
    assert missing({**deployment(replicas=0, updatedReplicas=0, availableReplicas=0)}) != ""
    scaled = deployment(replicas=0, updatedReplicas=0, availableReplicas=0)
    scaled["spec"]["replicas"] = 0
    assert missing(scaled) == ""


@pytest.mark.parametrize(
    ("status", "facts"),
    [
        ({"observedGeneration": 1}, ["not", "yet"]),
        ({"updatedReplicas": 1}, ["1 of 3", "new"]),
        ({"replicas": 4}, ["1 old"]),
        ({"availableReplicas": 2}, ["2 of 3", "available"]),
    ],
    ids=["unseen", "old", "ending", "unavailable"],
)
def test_missing_steps_are_reported_in_order(
    status: Json, facts: list[str], wording: Wording
) -> None:
    """As `kubectl rollout status` does."""
    text = missing(deployment(**status))
    mentions(text, "Deployment web", *facts)
    wording(text)


def test_a_deployment_that_is_new_has_no_status() -> None:
    """It is not available."""
    new = deployment()
    del new["status"]
    assert missing(new)


@pytest.mark.parametrize(
    ("waiting", "facts", "cure"),
    [
        (
            {"reason": "ImagePullBackOff", "message": "no such host"},
            ["image", "ImagePullBackOff", "no such host"],
            "--image",
        ),
        ({"reason": "CrashLoopBackOff"}, ["ends as soon"], "logs web-1 --previous"),
        (
            {"reason": "CreateContainerConfigError", "message": "configmap not found"},
            ["web-1", "CreateContainerConfigError", "configmap not found"],
            "kubectl -n ns describe pod web-1",
        ),
    ],
    ids=["image", "crash", "other"],
)
def test_why_a_container_does_not_start(
    waiting: Json, facts: list[str], cure: str, wording: Wording
) -> None:
    """Once, however many pods have the same trouble."""
    pods = [pod(waiting=waiting), pod(waiting=waiting)]
    (trouble,) = troubles(deployment(), pods)
    mentions(trouble.what, *facts)
    assert cure in trouble.cure
    wording(f"{trouble.what}\n{trouble.cure}")


def test_a_pod_that_runs_and_is_not_ready_says_why_itself(wording: Wording) -> None:
    """At its plain port."""
    (trouble,) = troubles(deployment(), [pod()])
    mentions(trouble.what, "web-1", "runs", "not ready")
    mentions(trouble.cure, "/api/v1/namespaces/ns/pods/web-1:81/proxy/readyz")
    wording(f"{trouble.what}\n{trouble.cure}")


def test_a_pod_that_waits_for_a_node_has_the_schedulers_message(wording: Wording) -> None:
    """And what is particular about ours."""
    waits = pod(phase="Pending")
    waits["status"]["conditions"] = [
        {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}
    ]
    (trouble,) = troubles(deployment(), [waits])
    mentions(trouble.what, "0/3 nodes are available")
    mentions(trouble.cure, "never", "spot nodes")
    wording(f"{trouble.what}\n{trouble.cure}")


def test_pods_that_cannot_be_created_are_reported(wording: Wording) -> None:
    """In the words of who refused them."""
    condition = {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"}
    (trouble,) = troubles(deployment(conditions=[condition]), [])
    mentions(trouble.what, "no pod of web", "exceeded quota")
    wording(trouble.what)


def test_pods_of_others_and_those_that_end_are_not_errors() -> None:
    """Nor those that are ready."""
    of_others = pod(metadata={"name": "other", "labels": {"app": "other"}})
    labels = {"app": "web"}
    ends = pod(metadata={"name": "old", "labels": labels, "deletionTimestamp": "now"})
    assert list(troubles(deployment(), [of_others, ends, pod(ready=True)])) == []
    assert is_ready(pod(ready=True))
