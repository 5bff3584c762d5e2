"""The progress of a Deployment, and why its pods do not run."""

from __future__ import annotations

from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.api_paths import CollectionPath
from webhook.applied_by import applied_by
from webhook.cluster_objects.webhook_replicas import read_unmet
from webhook.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from webhook.kube.client import Client

    Json = Mapping[str, Any]

_IMAGE: Final = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
_CRASHES: Final = "CrashLoopBackOff"
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
    "certificate": "fairlead webhook certs shows what is missing",
    "handshake": "fairlead webhook certs shows what is missing",
    "namespaces": "fairlead doctor --check permissions shows whether it may list them",
    "priority-classes": "fairlead doctor --check permissions shows whether it may list them",
}


class Trouble(NamedTuple):
    """Why a pod does not run, in the cluster's words, and what to do.

    of_image: the cure names another image.
    """

    what: str
    cure: str
    of_image: bool = False


class Reasons(NamedTuple):
    """What pods do not say in their status, by pod, as far as it is known.

    unready: the conditions of /readyz that do not hold, with their reasons.
    events: the messages of the last Event that warns.
    """

    unready: Mapping[str, Mapping[str, str]] = MappingProxyType({})
    events: Mapping[str, str] = MappingProxyType({})


NO_REASONS: Final = Reasons()


async def read_reasons(client: Client, pods: Iterable[Json]) -> Reasons:
    """Read why these pods of Fairlead are not ready. What may not be read is left out."""
    unready: dict[str, Mapping[str, str]] = {}
    messages: dict[str, str] = {}
    for pod in filter(_is_awaited, pods):
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        if runs_unready(pod):
            with suppress(ClusterError):
                unready[name] = await read_unmet(client, name, health_port(pod))
        with suppress(ClusterError):
            path = CollectionPath("v1", "events", namespace)
            query = {"fieldSelector": f"involvedObject.name={name},type=Warning"}
            events = (await client.list(path, lambda event: event, query=query)).items
            if events:
                messages[name] = str(max(events, key=_event_time).get("message") or "")
    return Reasons(unready, messages)


def _event_time(event: Json) -> str:
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return str(next(filter(None, times), ""))


async def explain(client: Client, deployment: Json) -> str:
    """Return why the rollout does not progress, with cures; "" if nothing shows it."""
    pods: Sequence[Json] = ()
    with suppress(ClusterError):
        path = CollectionPath("v1", "pods", deployment["metadata"]["namespace"])
        pods = own_pods(deployment, (await client.list(path, lambda pod: pod)).items)
    pod_troubles = troubles(deployment, pods, await read_reasons(client, pods))
    return "; ".join(f"{trouble.what} ({trouble.cure})" for trouble in pod_troubles)


def own_pods(deployment: Json, pods: Iterable[Json]) -> Sequence[Json]:
    """Return those of the pods of its namespace that are the Deployment's."""
    labels = deployment["spec"]["selector"]["matchLabels"].items()
    return [pod for pod in pods if labels <= (pod["metadata"].get("labels") or {}).items()]


def troubles(
    deployment: Json, pods: Iterable[Json], reasons: Reasons = NO_REASONS
) -> Sequence[Trouble]:
    """Return why the rollout does not progress, each reason once; `pods` are those of its
    namespace.
    """
    trouble_by_text = {
        trouble.what: trouble for trouble in reversed([*_troubles(deployment, pods, reasons)])
    }
    return [*reversed(trouble_by_text.values())]


def _troubles(deployment: Json, pods: Iterable[Json], reasons: Reasons) -> Iterator[Trouble]:
    name, namespace = deployment["metadata"]["name"], deployment["metadata"]["namespace"]
    failure = condition_of(deployment, "ReplicaFailure")
    if failure.get("status") == "True":
        yield Trouble(
            f"no pod of {name} can be created: {failure.get('message', '')}",
            "read what the message names: a ResourceQuota, Pod Security, or another webhook",
        )
    image = applied_by([deployment]).command(*_OTHER_IMAGE)
    for pod in own_pods(deployment, pods):
        if trouble := _of_pod(pod, f"kubectl -n {namespace}", reasons):
            cure = f"{trouble.cure}: {image}" if trouble.of_image else trouble.cure
            yield trouble._replace(cure=cure)


def is_ready(pod: Json) -> bool:
    """Return whether the kubelet reports the pod as ready."""
    return condition_of(pod, "Ready").get("status") == "True"


def _is_awaited(pod: Json) -> bool:
    """Return whether the pod is not ready yet, and has not ended."""
    phase = (pod.get("status") or {}).get("phase")
    ends = pod["metadata"].get("deletionTimestamp") or phase in names.TERMINAL_PHASES
    return not (ends or is_ready(pod))


def runs_unready(pod: Json) -> bool:
    """Return whether the pod runs, has an address, is not ending, and is not ready."""
    status = pod.get("status") or {}
    return bool(status.get("phase") == "Running" and status.get("podIP") and _is_awaited(pod))


def _of_pod(pod: Json, kubectl: str, reasons: Reasons) -> Trouble | None:
    name = pod["metadata"]["name"]
    status = pod.get("status") or {}
    if not _is_awaited(pod):
        return None
    describe = f"{kubectl} describe pod {name}"
    scheduled = condition_of(pod, "PodScheduled")
    if scheduled.get("status") == "False":
        return Trouble(
            f"a pod waits for a node: {scheduled.get('message', 'no reason given')}",
            f"{describe}; Fairlead's own pods never go to spot nodes",
        )
    event = reasons.events.get(name, "")
    for container in status.get("containerStatuses") or ():
        state = container.get("state") or {}
        ended = state.get("terminated") or (container.get("lastState") or {}).get("terminated")
        waiting = state.get("waiting") or {}
        if waiting.get("reason") in _IMAGE:
            return Trouble(
                f"the image cannot be pulled ({waiting['reason']}): {waiting.get('message', '')}",
                "give one that the nodes can pull",
                of_image=True,
            )
        if waiting.get("reason") == _CRASHES or state.get("terminated"):
            return Trouble(
                f"the program ends as soon as it is started ({_CRASHES}{_exit(ended)})",
                f"{kubectl} logs {name} --previous",
            )
        if waiting:
            words = filter(None, (waiting.get("reason"), waiting.get("message") or event))
            return Trouble(f"pod {name} waits: {': '.join(words)}", describe)
    if status.get("phase") != "Running":
        return Trouble(f"pod {name} does not run yet{event and ': '}{event}", describe)
    unmet = reasons.unready.get(name) or {}
    why = "; ".join(f"{condition}: {reason}" for condition, reason in sorted(unmet.items()))
    cures = dict.fromkeys(_READY[condition] for condition in unmet if condition in _READY)
    why = why or event
    return Trouble(
        f"pod {name} runs, and is not ready{why and ': '}{why}",
        "; ".join(cures) or f"{kubectl} logs {name} shows what it waits for",
    )


def _exit(terminated: Json | None) -> str:
    """Return how the program ended, to be added to a reason."""
    if not terminated:
        return ""
    message = terminated.get("message") or terminated.get("reason") or ""
    return f", exit code {terminated.get('exitCode')}{message and ': '}{message.strip()}"


def health_port(pod: Json) -> int:
    """Return the port of a pod's /readyz and /metrics."""
    return _port_of(pod, "health") or 8081


def describe_port(pod: Json, name: str) -> str:
    """Return the port of this name of a pod, or of a template: port 8081."""
    port = _port_of(pod, name)
    return f"port {port}" if port else "the port"


def _port_of(pod: Json, name: str) -> int | None:
    for container in pod["spec"]["containers"]:
        for port in container.get("ports") or ():
            if port.get("name") == name:
                return int(port["containerPort"])
    return None


def condition_of(live_object: Json, kind: str) -> Json:
    """Return the condition of the object's status; {} without it."""
    conditions = (live_object.get("status") or {}).get("conditions") or ()
    return next((condition for condition in conditions if condition["type"] == kind), {})
