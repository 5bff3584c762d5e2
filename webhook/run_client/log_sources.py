"""The logs of a Run: those of the selected replicas, and why others have none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from webhook import names
from webhook.errors import FairleadError
from webhook.foreign_text import whole_number
from webhook.run.model import SERVING
from webhook.run.model.intervals import format_intervals, parse_intervals
from webhook.run_client.find_runs import fetch_run, list_pods
from webhook.run_client.status_text import describe_unreconciled
from webhook.shortening import harmless

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from webhook.kube.client import Client
    from webhook.run.backends.engine_pods import PodReader
    from webhook.run.model import RunStatus


@dataclass(frozen=True, slots=True)
class LogSelection:
    """The selected logs; None and empty: all."""

    role: str | None = None
    index: int | None = None
    container: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """The log of one container.

    name: the name of the replica within its run: worker-3.
    started: whether the container has started, so that there can be a log.
    why: what prevents its start, if known.
    attempt: of the pod, as in its FAIRLEAD_ATTEMPT; restarts: of the container in the pod.
    """

    name: str
    pod: str
    uid: str
    container: str
    started: bool
    node: str = ""
    why: str = ""
    attempt: int = 0
    restarts: int = 0

    @property
    def waiting(self) -> str:
        """What is said of a container that has not started."""
        return f"has not started yet{f' ({self.why})' if self.why else ''}"


def check_selection(run: Mapping[str, Any], status: RunStatus, wanted: LogSelection) -> None:
    """Raise FairleadError, with the existing roles or indexes, if the run has no such one."""
    name, kind = run["metadata"]["name"], run["spec"].get("kind")
    if kind in SERVING and (wanted.role is not None or wanted.index is not None):
        raise FairleadError(f"run {name} is of kind {kind}: its pod has no role and no index")
    counts = {role: role_status.desired for role, role_status in status.replicas.items()}
    if not counts:
        replicas = run["spec"].get("replicas") or {"master": {}}
        counts = {role: (replica or {}).get("count") or 1 for role, replica in replicas.items()}
    if wanted.role is not None and wanted.role not in counts:
        raise FairleadError(f"run {name} has no role {wanted.role}; it has {', '.join(counts)}")
    most = max(counts[role] for role in counts if wanted.role in (None, role))
    if wanted.index is not None and not 0 <= wanted.index < most:
        role = wanted.role or "any role"
        raise FairleadError(
            f"run {name} has no index {wanted.index} of {role}; the last one is {most - 1}"
        )


def sources_of(
    reader: PodReader, pods: Sequence[Mapping[str, Any]], wanted: LogSelection
) -> list[Source]:
    """Return the selected logs, by role and index; of a Deployment's pods, by name."""
    pairs = reader.read(pods)
    pairs.sort(key=lambda pair: (pair[0].role, pair[0].index, pair[0].name))
    return [
        Source(
            name=f"{pod.role}-{pod.index}" if pod.role else pod.name.removeprefix(f"{reader.run}-"),
            pod=pod.name,
            uid=pod.uid,
            container=container,
            started=_started(raw, container),
            node=pod.node,
            why=pod.unscheduled.partition(". ")[0] or (pod.waiting[0] if pod.waiting else ""),
            attempt=_attempt_of(raw, container),
            restarts=(_status_of(raw, container) or {}).get("restartCount") or 0,
        )
        for pod, raw in pairs
        if _is_selected(pod.role, pod.index, wanted)
        for container in [wanted.container or reader.main_container(raw)]
    ]


def describe_status(run: Mapping[str, Any], status: RunStatus, now: datetime) -> str:
    """Return what a Run without a log waits for, by its own status."""
    why = f"{status.phase}: {harmless(status.message)}".removesuffix(": ")
    if not status.observed_generation:
        why = describe_unreconciled(run["metadata"].get("creationTimestamp") or "", now)
    return f"there is no log yet: {why}"


def without_pods(
    status: RunStatus, sources: Sequence[Source], wanted: LogSelection
) -> Iterator[tuple[str, str]]:
    """Yield the selected replicas without a pod: role and indexes, and the reason."""
    have = {source.name for source in sources}
    for role, counts in status.replicas.items():
        succeeded = parse_intervals(counts.succeeded_indexes)
        missing = [
            index
            for index in range(counts.desired)
            if _is_selected(role, index, wanted) and f"{role}-{index}" not in have
        ]
        over = [index for index in missing if index in succeeded]
        rest = [index for index in missing if index not in succeeded]
        if over:
            yield f"{role} {format_intervals(over)}", "succeeded, and the pod is gone"
        if rest:
            yield f"{role} {format_intervals(rest)}", "there is no pod"


def _is_selected(role: str, index: int, wanted: LogSelection) -> bool:
    if not role:
        return wanted.role is None and wanted.index is None
    return wanted.role in (None, role) and wanted.index in (None, index)


def _started(raw: Mapping[str, Any], container: str) -> bool:
    if status := _status_of(raw, container):
        state = status.get("state") or {}
        return "running" in state or "terminated" in state or bool(status.get("restartCount"))
    # kwok has no status of containers that it does not simulate.
    return (raw.get("status") or {}).get("phase") not in (None, "Pending")


def _status_of(raw: Mapping[str, Any], container: str) -> Mapping[str, Any] | None:
    status = raw.get("status") or {}
    kinds = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
    statuses = (container_status for kind in kinds for container_status in status.get(kind) or ())
    return next((status for status in statuses if status["name"] == container), None)


def _attempt_of(raw: Mapping[str, Any], container: str) -> int:
    """Return the FAIRLEAD_ATTEMPT of a container; 0 if it has none."""
    variables = [
        variable
        for spec in raw["spec"].get("containers") or ()
        if spec["name"] == container
        for variable in spec.get("env") or ()
    ]
    values = [v.get("value") for v in variables if v["name"] == names.ATTEMPT_VARIABLE]
    return whole_number(values[0]) or 0 if values else 0


def earlier_attempts(status: RunStatus, sources: Sequence[Source]) -> tuple[list[Source], bool]:
    """Return the sources of one replica that are of earlier attempts than its last pod, and whether
    the pods of all earlier attempts are gone."""
    if not sources:
        return [], False
    last = max(sources, key=lambda source: source.attempt)
    counts = status.replicas.get(last.name.rpartition("-")[0])
    earlier = [source for source in sources if source.attempt < last.attempt]
    # Only a replica that had a pod before gets another one, with a greater number.
    return earlier, not earlier and last.attempt > (counts.first_attempt if counts else 0)


async def find_sources(
    client: Client, namespace: str, run: Mapping[str, Any], wanted: LogSelection
) -> list[Source]:
    """Return the selected logs that there are now."""
    from webhook.run.backends.engine_pods import pod_reader

    pods = await list_pods(client, namespace, run, lambda pod: pod)
    return sources_of(pod_reader(run, run["spec"].get("replicas") or {}), pods, wanted)


async def find_sources_now(
    client: Client, namespace: str, run: Mapping[str, Any], wanted: LogSelection
) -> tuple[list[Source], bool]:
    """Return the logs there are now, and whether no more will come: the run has ended, or is
    gone."""
    from webhook.questions.live.live_objects import NoSuchObject

    try:
        # First the run: a pod that ended before it is in the list then.
        current = await fetch_run(client, namespace, run["metadata"]["name"])
    except NoSuchObject:
        return [], True
    gone = current["metadata"]["uid"] != run["metadata"]["uid"]
    phase = (current.get("status") or {}).get("phase")
    sources = await find_sources(client, namespace, run, wanted)
    return sources, gone or phase in names.TERMINAL_PHASES
