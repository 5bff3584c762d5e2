"""Which logs a run has now: of which pod, which container, and which replicas have none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from webhook import names
from webhook.errors import FairleadError
from webhook.run import intervals, observation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.run.model import RunStatus


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the options ask for; None and empty: all."""

    role: str | None = None
    index: int | None = None
    container: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """The log of one container.

    name: what the replica is called within its run: worker-3.
    started: whether the container has begun, so that there can be a log.
    why: what keeps it from beginning, as far as is known.
    """

    name: str
    pod: str
    uid: str
    container: str
    started: bool
    why: str = ""


def check(run: Mapping[str, Any], status: RunStatus, wanted: Wanted) -> None:
    """Raise FairleadError if the run has no such role or index, with those that it has."""
    counts = {role: one.desired for role, one in status.replicas.items()}
    if not counts:
        replicas = run["spec"].get("replicas") or {"master": {}}
        counts = {role: (one or {}).get("count") or 1 for role, one in replicas.items()}
    name = run["metadata"]["name"]
    if wanted.role is not None and wanted.role not in counts:
        raise FairleadError(f"run {name} has no role {wanted.role}; it has {', '.join(counts)}")
    most = max(counts[role] for role in counts if wanted.role in (None, role))
    if wanted.index is not None and wanted.index >= most:
        role = wanted.role or "any role"
        raise FairleadError(
            f"run {name} has no index {wanted.index} of {role}; the last one is {most - 1}"
        )


def sources(name: str, pods: Sequence[Mapping[str, Any]], wanted: Wanted) -> list[Source]:
    """The logs that are wanted, by role and index; of a Deployment's pods, by name."""
    found = [(pod, raw) for raw in pods if (pod := observation.pod(raw))]
    found.sort(key=lambda pair: (pair[0].role, pair[0].index, pair[0].name))
    return [
        Source(
            name=pod.name.removeprefix(f"{name}-"),
            pod=pod.name,
            uid=pod.uid,
            container=container,
            started=_started(raw, container),
            why=pod.unscheduled.partition(". ")[0] or (pod.waiting[0] if pod.waiting else ""),
        )
        for pod, raw in found
        if _is_wanted(pod.role, pod.index, wanted)
        for container in [wanted.container or _main(raw)]
    ]


def without_pods(
    status: RunStatus, there: Sequence[Source], wanted: Wanted
) -> Iterator[tuple[str, str]]:
    """The replicas that are wanted and have no pod: role and indexes, and why, for people."""
    have = {source.name for source in there}
    for role, counts in status.replicas.items():
        succeeded = intervals.read(counts.succeeded_indexes)
        missing = [
            index
            for index in range(counts.desired)
            if _is_wanted(role, index, wanted) and f"{role}-{index}" not in have
        ]
        over = [index for index in missing if index in succeeded]
        rest = [index for index in missing if index not in succeeded]
        if over:
            yield f"{role} {intervals.written(over)}", "succeeded, and the pod is gone"
        if rest:
            yield f"{role} {intervals.written(rest)}", "there is no pod"


def _is_wanted(role: str, index: int, wanted: Wanted) -> bool:
    if not role:
        return wanted.role is None and wanted.index is None
    return wanted.role in (None, role) and wanted.index in (None, index)


def _main(raw: Mapping[str, Any]) -> str:
    """The container that `kubectl logs` takes too."""
    named = (raw["metadata"].get("annotations") or {}).get(names.DEFAULT_CONTAINER)
    return str(named or raw["spec"]["containers"][0]["name"])


def _started(raw: Mapping[str, Any], container: str) -> bool:
    status = raw.get("status") or {}
    kinds = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
    for each in (each for kind in kinds for each in status.get(kind) or ()):
        if each["name"] == container:
            state = each.get("state") or {}
            return "running" in state or "terminated" in state or bool(each.get("restartCount"))
    # kwok says nothing of containers that it does not simulate.
    return status.get("phase") not in (None, "Pending")
