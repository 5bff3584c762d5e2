"""Caches of Runs and of the objects that they own."""

from __future__ import annotations

import time
from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from webhook import names
from webhook.controller.node_health import Nodes
from webhook.controller.pod_memory import PodMemory
from webhook.controller.stored_run import StoredRun, phase_label, store
from webhook.kube.cache import Cache
from webhook.run import observation
from webhook.run.controller_reference import owner_uid
from webhook.run.observed import Observed, OwnedDeployment, OwnedPod
from webhook.run.queue_workload import read_flavor, read_workload

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from webhook.kube.cache import Change
    from webhook.run.observed import Refusal
    from webhook.run.queue_state import Flavor, StoredWorkload

T = TypeVar("T")

# That of a Run without a status.
_FIRST_PHASE: Final = "Pending"
_NOTHING: Final[Mapping[str, object]] = MappingProxyType({})


class ByRun(Generic[T]):
    """An index over a cache with keys namespace/name. `uid_of` returns the uid of a value's Run.

    An owner reference refers to an object in the same namespace. A reference with the uid of a Run
    in another namespace is ignored.
    """

    def __init__(self, cache: Cache[T], uid_of: Callable[[T], str]) -> None:
        self._uid_of = uid_of
        self._owned: dict[tuple[str, str], dict[str, T]] = {}
        cache.subscribe(self._change)

    def values_of(self, namespace: str, uid: str) -> Mapping[str, T]:
        """Return the run's values by name: a read-only view, valid until the next change."""
        owned = self._owned.get((namespace, uid))
        return MappingProxyType(owned) if owned else _NOTHING  # type: ignore[return-value]

    def count(self, namespace: str, uid: str) -> int:
        """Return the number of the run's values."""
        return len(self._owned.get((namespace, uid), _NOTHING))

    def _change(self, change: Change[T]) -> None:
        namespace, _, name = change.key.partition("/")
        if change.before is not None:
            run = namespace, self._uid_of(change.before)
            owned = self._owned.get(run, {})
            owned.pop(name, None)
            if not owned:
                self._owned.pop(run, None)
        if change.after is not None:
            run = namespace, self._uid_of(change.after)
            self._owned.setdefault(run, {})[name] = change.after


class RunsService(NamedTuple):
    """A Service with the uid of its owner; `closed` while it selects no pod."""

    run_uid: str
    uid: str
    closed: bool


class RunsDeployment(NamedTuple):
    """A Deployment with the uid of its owner."""

    run_uid: str
    deployment: OwnedDeployment


class ObservedState:
    """The caches, updated by the informers, and by the results of our own writes at once."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.runs: Cache[StoredRun] = Cache(store, clock=clock)
        self.pods: Cache[OwnedPod] = Cache(observation.pod, clock=clock)
        self.services: Cache[RunsService] = Cache(_service, clock=clock)
        self.config_maps: Cache[str] = Cache(owner_uid, clock=clock)
        self.deployments: Cache[RunsDeployment] = Cache(_deployment, clock=clock)
        self._pods = ByRun(self.pods, lambda pod: pod.run_uid)
        self._services = ByRun(self.services, lambda owned: owned.run_uid)
        self._config_maps = ByRun(self.config_maps, lambda uid: uid)
        self._deployments = ByRun(self.deployments, lambda owned: owned.run_uid)
        self.workloads: Cache[StoredWorkload] = Cache(read_workload, clock=clock)
        self.flavors: Cache[Flavor] = Cache(read_flavor, clock=clock)
        self._workloads = ByRun(self.workloads, lambda owned: owned.run_uid)
        self.nodes = Nodes(clock=clock)
        self.memory = PodMemory()
        # By node: the uids of the runs with pods on it, and their number of pods.
        self._on_nodes: dict[str, Counter[str]] = {}
        self.pods.subscribe(self._pod_changed)
        self._keys: dict[str, str] = {}
        # The number of Runs by phase. A phase stays: the metrics may be read on another thread.
        self.phases: Counter[str] = Counter()
        self.not_understood = 0
        self.runs.subscribe(self._run_changed)

    def key_of(self, uid: str) -> str | None:
        """Return the key of the Run with this uid; None if there is none."""
        return self._keys.get(uid)

    def pod_count(self, namespace: str, uid: str) -> int:
        """Return the number of pods of the Run with this uid."""
        return self._pods.count(namespace, uid)

    def runs_on(self, node: str) -> Collection[str]:
        """Return the uids of the Runs that have pods on the node."""
        return tuple(self._on_nodes.get(node, ()))

    def pods_on_leaving_nodes(self) -> int:
        """Return how many pods of Runs are on nodes that are about to be taken away."""
        runs_by_node = (self._on_nodes.get(node) for node in self.nodes.names_leaving())
        # A copy: the metrics may be read on another thread.
        return sum(sum(tuple(runs.values())) for runs in runs_by_node if runs)

    def pods_of(self, namespace: str, uid: str) -> Mapping[str, OwnedPod]:
        """Return the pods of the Run with this uid by name, valid until the next change."""
        return self._pods.values_of(namespace, uid)

    def observed(
        self,
        namespace: str,
        uid: str,
        refusals: tuple[Refusal, ...] = (),
        nodes: Collection[str] = (),
    ) -> Observed:
        """Return what the Run with this uid owns; nodes: additional nodes to report on."""
        deployments = self._deployments.values_of(namespace, uid)
        services = self._services.values_of(namespace, uid).values()
        pods = dict(self._pods.values_of(namespace, uid))
        gone = self.memory.gone(uid)
        bound = {pod.node for pod in (*pods.values(), *gone) if pod.node}
        return Observed(
            pods=pods,
            service=bool(services),
            service_uid=next((service.uid for service in services), ""),
            service_closed=any(service.closed for service in services),
            nodes=self.nodes.health({*nodes, *bound}),
            config_map=self._config_maps.count(namespace, uid) > 0,
            deployment=next(
                (owned_deployment.deployment for owned_deployment in deployments.values()), None
            ),
            gone=gone,
            unwatched=self.memory.unwatched(uid),
            uncreated=self.memory.uncreated(uid),
            refusals=refusals,
            ill_nodes=self.nodes.ill(),
        )

    def workload_of(self, namespace: str, uid: str) -> StoredWorkload | None:
        """Return the Workload of the Run with this uid."""
        return next(iter(self._workloads.values_of(namespace, uid).values()), None)

    def _pod_changed(self, change: Change[OwnedPod]) -> None:
        before = change.before
        key = self.key_of(before.run_uid) if before else None
        if key and key.partition("/")[0] == change.key.partition("/")[0]:
            self.memory.pod_changed(change)
        if change.before is not None and change.before.node:
            runs = self._on_nodes[change.before.node]
            runs[change.before.run_uid] -= 1
            if runs[change.before.run_uid] == 0:
                del runs[change.before.run_uid]
            if not runs:
                del self._on_nodes[change.before.node]
        if change.after is not None and change.after.node:
            runs = self._on_nodes.setdefault(change.after.node, Counter())
            runs[change.after.run_uid] += 1

    def _count(self, run: StoredRun, by: int) -> None:
        self.phases[phase_label(run.phase or _FIRST_PHASE)] += by
        self.not_understood += 0 if run.understood else by

    def _run_changed(self, change: Change[StoredRun]) -> None:
        if change.before is not None:
            self._count(change.before, -1)
            self._keys.pop(change.before.uid, None)
        if change.after is not None:
            self._count(change.after, 1)
            self._keys[change.after.uid] = change.key


def _service(raw: dict[str, Any]) -> RunsService | None:
    uid = owner_uid(raw)
    return (
        RunsService(
            uid,
            raw["metadata"]["uid"],
            closed=names.CLOSED in (raw["spec"].get("selector") or {}),
        )
        if uid
        else None
    )


def _deployment(raw: dict[str, Any]) -> RunsDeployment | None:
    uid, deployment = owner_uid(raw), observation.deployment(raw)
    return RunsDeployment(uid, deployment) if uid and deployment else None
