"""The progress of a Deployment, and why its pods do not run."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.applied_by import applied_by

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    Json = Mapping[str, Any]

_IMAGE: Final = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
# Options of `fairlead install` and of helm for another image.
_OTHER_IMAGE: Final = (
    "--image REGISTRY/fairlead:TAG",
    "--set image.repository=REGISTRY/fairlead,image.tag=TAG",
)


# What to do about a condition of /readyz (docs/guides/webhook-port.md) that does not hold.
_READY: Final = {
    "policies": "mend the object that it names; if fairlead check cluster finds nothing wrong with "
    "it, the replica is of an older version: bring it to the version of the policies, or take the "
    "policy away until then",
    "certificate": "fairlead certs status shows what is missing",
    "handshake": "fairlead certs status shows what is missing",
    "namespaces": "fairlead doctor --check permissions shows whether it may list them",
    "priority-classes": "fairlead doctor --check permissions shows whether it may list them",
}


class Trouble(NamedTuple):
    """Why a pod does not run, in the cluster's words, and what to do.

    of_image: an image cannot be pulled, which waiting seldom mends.
    """

    what: str
    cure: str
    of_image: bool = False


def missing(deployment: Json) -> str:
    """Return what is missing until all pods are new and available; "" if nothing is.

    The rules are those of `kubectl rollout status` (k8s.io/kubectl, DeploymentStatusViewer).
    """
    name = deployment["metadata"]["name"]
    wanted = deployment["spec"].get("replicas", 1)
    status = deployment.get("status") or {}
    if status.get("observedGeneration", 0) < deployment["metadata"].get("generation", 0):
        return f"Deployment {name} has not been observed yet"
    updated = status.get("updatedReplicas", 0)
    if updated < wanted:
        return f"Deployment {name} has {updated} of {wanted} new pods"
    if status.get("replicas", 0) > updated:
        return f"Deployment {name} has {status['replicas'] - updated} old pods still"
    available = status.get("availableReplicas", 0)
    if available < wanted:
        return f"Deployment {name} has {available} of {wanted} pods available"
    return ""


def troubles(
    deployment: Json,
    pods: Iterable[Json],
    unready: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> Iterator[Trouble]:
    """Yield why the rollout does not progress, each reason once; `pods` are those of its
    namespace.

    unready: by pod, the conditions of /readyz that do not hold, with their reasons, as far as they
        are known.
    """
    name, namespace = deployment["metadata"]["name"], deployment["metadata"]["namespace"]
    failure = condition_of(deployment, "ReplicaFailure")
    if failure.get("status") == "True":
        yield Trouble(
            f"no pod of {name} can be created: {failure.get('message', '')}",
            "read what the message names: a ResourceQuota, Pod Security, or another webhook",
        )
    labels = deployment["spec"]["selector"]["matchLabels"].items()
    own = [pod for pod in pods if labels <= (pod["metadata"].get("labels") or {}).items()]
    found = (_of_pod(pod, f"kubectl -n {namespace}", unready) for pod in own)
    image = applied_by([deployment]).command(*_OTHER_IMAGE)
    yield from dict.fromkeys(
        trouble._replace(cure=f"{trouble.cure}: {image}") if trouble.of_image else trouble
        for trouble in found
        if trouble
    )


def is_ready(pod: Json) -> bool:
    """Return whether the kubelet reports the pod as ready."""
    return condition_of(pod, "Ready").get("status") == "True"


def runs_unready(pod: Json) -> bool:
    """Return whether the pod runs, has an address, is not ending, and is not ready."""
    status = pod.get("status") or {}
    ends = pod["metadata"].get("deletionTimestamp")
    return bool(
        status.get("phase") == "Running" and status.get("podIP") and not (ends or is_ready(pod))
    )


def _of_pod(pod: Json, kubectl: str, unready: Mapping[str, Mapping[str, str]]) -> Trouble | None:
    name = pod["metadata"]["name"]
    if is_ready(pod) or pod["metadata"].get("deletionTimestamp"):
        return None
    scheduled = condition_of(pod, "PodScheduled")
    if scheduled.get("status") == "False":
        return Trouble(
            f"a pod waits for a node: {scheduled.get('message', 'no reason given')}",
            f"{kubectl} describe pod {name}; Fairlead's own pods never go to spot nodes",
        )
    for container in (pod.get("status") or {}).get("containerStatuses") or ():
        if waiting := (container.get("state") or {}).get("waiting"):
            return _waiting(waiting, f"{kubectl} logs {name} --previous", name)
    if (pod.get("status") or {}).get("phase") != "Running":
        return Trouble(f"pod {name} does not run yet", f"{kubectl} describe pod {name}")
    unmet = unready.get(name) or {}
    reasons = "; ".join(f"{condition}: {reason}" for condition, reason in sorted(unmet.items()))
    cures = dict.fromkeys(_READY[condition] for condition in unmet if condition in _READY)
    return Trouble(
        f"pod {name} runs, and is not ready{reasons and ': '}{reasons}",
        "; ".join(cures) or f"{kubectl} logs {name} shows what it waits for",
    )


def _waiting(waiting: Json, logs: str, name: str) -> Trouble:
    reason, message = waiting.get("reason", ""), waiting.get("message", "")
    if reason in _IMAGE:
        return Trouble(
            f"the image cannot be pulled ({reason}): {message}",
            "give one that the nodes can pull",
            of_image=True,
        )
    if reason == "CrashLoopBackOff":
        return Trouble("the program ends as soon as it is started (CrashLoopBackOff)", logs)
    return Trouble(
        f"pod {name} waits: {reason} {message}".strip(),
        f"{logs.split(' logs ')[0]} describe pod {name}",
    )


def health_port(pod: Json) -> int:
    """Return the port of a pod's /readyz and /metrics."""
    for container in pod["spec"]["containers"]:
        for port in container.get("ports") or ():
            if port.get("name") == "health":
                return int(port["containerPort"])
    return 8081


def condition_of(found: Json, kind: str) -> Json:
    """Return the condition of the object's status; {} without it."""
    conditions = (found.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == kind), {})
