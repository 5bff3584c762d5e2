"""The state of a Run and of its replicas: their pods, nodes, and why one has no pod."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.api_paths import NODES
from webhook.errors import ClusterError, PassOver
from webhook.frameworks.table import ROLES
from webhook.run.backends.engine_pods import PodReader, pod_reader
from webhook.run.effective_settings import EffectiveSetting, effective_settings, settings_document
from webhook.run.model import RunStatus
from webhook.run.model.intervals import parse_intervals
from webhook.run.model.run_checks import SERVING
from webhook.run.pod_notes import notes_of, state_of
from webhook.run.progress import SHOULD_BE_TRUE
from webhook.run.reading import read_run
from webhook.run_client.find_runs import fetch_run, list_pods

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from webhook.crd.conditions import Condition
    from webhook.kube.client import Client
    from webhook.run.model import RoleStatus
    from webhook.run.observed import OwnedPod

# The parts of a pod that the report needs; a large run has many pods.
_KEPT_POD_FIELDS: Final = ("metadata", "status")
# Labels whose value is the name of the pool.
_POOLS: Final = (
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "karpenter.sh/nodepool",
    "kubernetes.azure.com/agentpool",
    "alpha.eksctl.io/nodegroup-name",
)
# Labels whose value is the kind of capacity; then labels that mean one kind by the value `true`.
_CAPACITY: Final = (
    "karpenter.sh/capacity-type",
    "eks.amazonaws.com/capacityType",
    "kubernetes.azure.com/scalesetpriority",
    "app.iguazio.com/lifecycle",
)
_FLAGS: Final = {
    "cloud.google.com/gke-spot": "spot",
    "cloud.google.com/gke-preemptible": "preemptible",
}
# Words for capacity that may be taken away.
INTERRUPTIBLE: Final = ("spot", "preemptible")
# Up to this number, nodes are read one by one; beyond it, in one list.
_ONE_BY_ONE: Final = 12


@dataclass(frozen=True, slots=True)
class Replica:
    """One replica, or a pod of a run that serves: then `role` is empty.

    state: a pod's phase, `Running, not ready`, or `Terminating`; of a replica without a pod
        Succeeded, Waiting, or Missing.
    note: why it is so; empty if there is nothing to say.
    downs, since: how many times in a row it has gone down, and when it last did (RFC 3339); 0 and
        empty for one that is stable.
    """

    role: str
    index: int
    pod: str
    state: str
    node: str = ""
    pool: str = ""
    capacity: str = ""
    note: str = ""
    downs: int = 0
    since: str = ""

    @property
    def name(self) -> str:
        """What it is called within its run."""
        return f"{self.role}-{self.index}" if self.role else self.pod

    @property
    def fine(self) -> bool:
        """Whether it needs no attention."""
        return self.state in ("Running", "Succeeded") and not self.note


def replicas(
    reader: PodReader,
    status: RunStatus,
    raw_pods: Sequence[Mapping[str, Any]],
    nodes: Mapping[str, NodeSummary],
) -> list[Replica]:
    """Return every replica of the run by role, in the status's order, and by index; then other
    pods.

    Of several pods of one replica the latest that lives counts. Some engines keep failed pods.
    """
    pods: dict[tuple[str, int], list[OwnedPod]] = {}
    in_order = sorted(raw_pods, key=lambda raw: raw["metadata"].get("creationTimestamp") or "")
    for pod, _ in reader.read(in_order):
        pods.setdefault((pod.role, pod.index), []).append(pod)
    # Containers restart in place, as those of a Deployment do.
    restarts = {
        raw["metadata"]["name"]: sum(
            container_status.get("restartCount") or 0
            for container_status in (raw.get("status") or {}).get("containerStatuses") or ()
        )
        for raw in raw_pods
    }
    rows = []
    for role, counts in status.replicas.items():
        succeeded = parse_intervals(counts.succeeded_indexes)
        for index in range(counts.desired):
            if replica_pods := pods.pop((role, index), None):
                pod = next(
                    (pod for pod in reversed(replica_pods) if not pod.ended), replica_pods[-1]
                )
                replica = _with_pod(pod, nodes, notes_of(pod))
            elif index in succeeded:
                replica = Replica(role, index, "", "Succeeded")
            else:
                replica = Replica(role, index, "", "Missing")
            rows.append(_with_history(replica, counts))
    for pod in (pod for others in pods.values() for pod in others):
        times = restarts[pod.name]
        notes = [*notes_of(pod), *([f"restarted {times} times"] if times else [])]
        rows.append(_with_pod(pod, nodes, notes))
    return rows


def _with_pod(pod: OwnedPod, nodes: Mapping[str, NodeSummary], notes: Iterable[str]) -> Replica:
    summary = nodes.get(pod.node, _UNKNOWN)
    return Replica(
        role=pod.role,
        index=pod.index,
        pod=pod.name,
        state=state_of(pod),
        node=pod.node,
        pool=summary.pool,
        capacity=summary.capacity,
        note="; ".join(notes),
    )


def _with_history(replica: Replica, counts: RoleStatus) -> Replica:
    """Return the replica with its recent failures, if it is not stable yet."""
    for entry in counts.recovering:
        if replica.index in parse_intervals(entry.indexes):
            state = "Waiting" if replica.state == "Missing" else replica.state
            return replace(
                replica, state=state, downs=entry.failures + entry.disruptions, since=entry.since
            )
    return replica


class NodeSummary(NamedTuple):
    """Pool and capacity of a node; empty if no label has them."""

    pool: str
    capacity: str


_UNKNOWN: Final = NodeSummary("", "")


def summarize_labels(labels: Mapping[str, str]) -> NodeSummary:
    """Return the summary by a node's labels. On-demand nodes rarely have a label for their
    capacity.
    """
    pool = next((labels[key] for key in _POOLS if key in labels), "")
    flagged = [word for key, word in _FLAGS.items() if labels.get(key) == "true"]
    capacities = [labels[key].lower().replace("_", "-") for key in _CAPACITY if key in labels]
    return NodeSummary(pool, next(iter([*flagged, *capacities]), ""))


async def fetch_summaries(client: Client, nodes: Collection[str]) -> dict[str, NodeSummary]:
    """Return the facts of these nodes, without deleted ones; empty if nodes may not be read."""
    with PassOver(HTTPStatus.FORBIDDEN):
        if len(nodes) > _ONE_BY_ONE:
            listed = await client.list(NODES, _summarize)
            return {name: summary for name, summary in listed.items if name in nodes}
        raw_nodes = [await client.find(NODES.path_of(name)) for name in sorted(nodes)]
        return dict(_summarize(node) for node in raw_nodes if node)
    return {}


def _summarize(node: Mapping[str, Any]) -> tuple[str, NodeSummary]:
    return str(node["metadata"]["name"]), summarize_labels(node["metadata"].get("labels") or {})


@dataclass(frozen=True)
class Report:
    """A run, its status, and its replicas."""

    namespace: str
    name: str
    kind: str
    framework: str
    created: str
    behind: bool
    """Whether the controller has not reconciled the current generation."""
    deleted: bool
    status: RunStatus
    replicas: tuple[Replica, ...]
    settings: tuple[EffectiveSetting, ...] = ()
    unread: str = ""
    """Why the pods are not known, so that there are no replicas; empty if they are."""

    @property
    def ended(self) -> bool:
        """Whether the run has ended."""
        return self.status.ended

    @property
    def telling_conditions(self) -> tuple[Condition, ...]:
        """Conditions that report a problem, or the end of the run."""
        return tuple(
            condition
            for condition in self.status.conditions
            if (condition.status == "True") != (condition.type in SHOULD_BE_TRUE)
            and not (self.ended and condition.type in SHOULD_BE_TRUE)
        )

    def document(self) -> dict[str, Any]:
        """Return the same as JSON."""
        return {
            "namespace": self.namespace,
            "name": self.name,
            "runKind": self.kind,
            "framework": self.framework or None,
            "creationTimestamp": self.created,
            "settings": settings_document(self.settings),
            "status": self.status.model_dump(mode="json", by_alias=True, exclude_none=True),
            "replicas": [
                {"name": replica.name, **dataclasses.asdict(replica)} for replica in self.replicas
            ],
            "notes": [self.unread] if self.unread else [],
        }


async def fetch(client: Client, namespace: str, name: str) -> Report:
    """Ask the API server for the run, its pods and their nodes.

    Raises ClusterError, and NoSuchObject if there is none of that name.
    """
    run = await fetch_run(client, namespace, name)
    pods: list[dict[str, Any]] = []
    unread = ""
    try:
        pods = await list_pods(client, namespace, run, _relevant_pod)
    except ClusterError as error:
        if error.status != HTTPStatus.FORBIDDEN:
            raise
        unread = f"no replicas are shown: {error}"
    nodes = {node for pod in pods if (node := pod["spec"]["nodeName"])}
    status = _in_order(RunStatus.read(run.get("status")), run["spec"].get("framework"))
    reader = pod_reader(run, status.replicas)
    summaries = await fetch_summaries(client, nodes)
    rows = [] if unread else replicas(reader, status, pods, summaries)
    if run["spec"].get("kind") in SERVING and pods:
        # A Deployment makes its pod, which has no role.
        rows = [row for row in rows if row.pod]
    spec, metadata = run["spec"], run["metadata"]
    return Report(
        namespace=namespace,
        name=name,
        kind=spec.get("kind") or names.DEFAULT_KIND,
        framework=spec.get("framework") or "",
        created=metadata.get("creationTimestamp") or "",
        behind=status.observed_generation < (metadata.get("generation") or 0),
        deleted=bool(metadata.get("deletionTimestamp")),
        status=status,
        replicas=tuple(rows),
        settings=_settings(run),
        unread=unread,
    )


def _settings(run: Mapping[str, Any]) -> tuple[EffectiveSetting, ...]:
    """Return the settings that hold; none if this version cannot read the Run's spec."""
    parsed_run = read_run(run).run
    return tuple(effective_settings(parsed_run)) if parsed_run else ()


def _in_order(status: RunStatus, framework: str | None) -> RunStatus:
    """Return the roles in the framework's own order; the API server sorts them by name."""
    role_names = ROLES[framework].names if framework in ROLES else ()
    order = {role: number for number, role in enumerate(role_names)}
    roles = sorted(status.replicas.items(), key=lambda item: order.get(item[0], len(order)))
    return status.model_copy(update={"replicas": dict(roles)})


def _relevant_pod(pod: Mapping[str, Any]) -> dict[str, Any]:
    spec = pod.get("spec") or {}
    containers = {
        key: [
            {"name": container["name"], "restartPolicy": container.get("restartPolicy")}
            for container in listed
        ]
        for key in ("initContainers", "containers")
        if (listed := spec.get(key))
    }
    kept = {key: pod[key] for key in _KEPT_POD_FIELDS if key in pod}
    gates = spec.get("schedulingGates")
    return {
        **kept,
        "spec": {
            "nodeName": spec.get("nodeName") or "",
            "schedulingGates": gates,
            **containers,
        },
    }
