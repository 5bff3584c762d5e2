"""What is known of the queues of Runs: their Workloads, watched while there are such Runs."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.api_paths import ApiPath, CollectionPath
from webhook.backoff import QUEUE_AGAIN_DELAYS
from webhook.controller.informers import A_PAGE
from webhook.controller.owned_objects import WORKLOAD
from webhook.controller.refusals import backend_rights
from webhook.errors import ClusterError
from webhook.run.controller_reference import owner_uid
from webhook.run.queue import PLACEMENT_CHANGED, POSITION_PAUSE_SECONDS
from webhook.run.queue_state import NO_QUEUE, Queueing
from webhook.run.queue_workload import API_VERSION, find_updates, workload_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from webhook.controller.observed_state import ObservedState
    from webhook.controller.owned_objects import Objects
    from webhook.controller.stored_run import StoredRun
    from webhook.kube.cache import Change
    from webhook.kube.watches import Watch, Watches
    from webhook.run.plan import Plan
    from webhook.run.queue_state import StoredWorkload

# Seconds from a look at whether Kueue's definitions are there to the next.
SERVED_PAUSE: Final = 30.0
# Phases of Runs that were admitted.
_BEGUN: Final = ("Pending", "Starting", "Running", "Restarting")
# Seconds after which a Workload that is gone was deleted alone.
GONE_AFTER: Final = 10.0
# Seconds after which the pods of a run that waits are tried again, although nothing tells of a
# change: by a policy's end, a LimitRange, or a webhook of others they may be placed differently.
LOOK_AFTER: Final = 600.0
# The characters of a set's hash in the stamp of a pod.
_HASH: Final = 16
# How often in a row a run queues again at once because its pods are placed otherwise.
_IMMEDIATE_REQUEUES: Final = 2
_PENDING: Final = "visibility.kueue.x-k8s.io/v1beta2"
_RIGHTS: Final = "the controller may not read {what}: " + backend_rights("kueue")
_TWICE: Final = (
    f"the pod template has the label {names.KUEUE_QUEUE} too, and Kueue would hold each pod by "
    "itself; remove it there"
)
_NOT_SERVED: Final = (
    "the cluster has no Kueue (kueue.x-k8s.io/v1beta2): install it, or remove the label "
    f"{names.KUEUE_QUEUE}"
)


@dataclass(slots=True)
class Tried:
    """When the pods of a Run were tried for a Workload, and with which result.

    given: what Kueue gave to the Workload; empty while it waits. set_hash: of the policies.
    histories: pod sets with the history of a replica, for which the Workload is right.
    """

    workload: str
    given: str
    set_hash: str
    at: float
    histories: set[tuple[str, str]] = field(default_factory=set)


class Trials:
    """What this controller has tried and done for the Runs in queues, as no object has it.

    tried: by uid of the Run. deleted: uids of Workloads, as long as the cache may have them. left:
    how often the Run gave its quota back without having been whole in between, by its uid.
    """

    def __init__(self, state: ObservedState) -> None:
        self.tried: dict[str, Tried] = {}
        self.deleted: set[str] = set()
        self.left: dict[str, int] = {}
        state.workloads.subscribe(self._workload_changed)
        state.runs.subscribe(self._run_changed)

    def _workload_changed(self, change: Change[StoredWorkload]) -> None:
        before, after = change.before, change.after
        if before and (after is None or after.uid != before.uid):
            self.deleted.discard(before.uid)

    def _run_changed(self, change: Change[StoredRun]) -> None:
        before, after = change.before, change.after
        if before and (after is None or after.uid != before.uid):
            self.tried.pop(before.uid, None)
            self.left.pop(before.uid, None)


class Queues:
    """The queues of Runs. Without a Run that has a queue, nothing is watched.

    `served`: set later; returns the hashes of the policy sets that the webhook's replicas serve;
    empty if they are not known.
    """

    def __init__(
        self,
        watches: Watches,
        state: ObservedState,
        objects: Objects,
        trials: Trials,
        namespace: str = "",
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._watches = watches
        self._client = watches.client
        self._known = state
        self._objects = objects
        self._trials = trials
        self._clock = clock
        self._namespace = namespace
        self._watched: dict[str, Watch[Any]] = {}
        self._served = (float("-inf"), False)
        # By uid: since when a Run has had no Workload.
        self._gone: dict[str, float] = {}
        self.served: Callable[[], Collection[str]] = tuple
        state.runs.subscribe(self._run_changed)
        self._positions: dict[tuple[str, str], tuple[float, dict[str, int]]] = {}

    def _watch(self) -> None:
        """Watch from the first Run with a queue on, if there is Kueue."""
        if not self._watched:
            self._watched = {
                "Workloads": self._watches.add(
                    CollectionPath(API_VERSION, "workloads", self._namespace or None),
                    self._known.workloads,
                    required=False,
                    query={"labelSelector": f"{names.MANAGED_BY}={names.MANAGER}"},
                    page_size=A_PAGE,
                ),
                "ResourceFlavors": self._watches.add(
                    CollectionPath(API_VERSION, "resourceflavors"),
                    self._known.flavors,
                    required=False,
                    page_size=A_PAGE,
                ),
            }

    async def _is_served(self) -> bool:
        until, served = self._served
        if self._clock() >= until:
            resource_list = await self._client.find(ApiPath.of_version(API_VERSION)) or {}
            resources = resource_list.get("resources") or ()
            served = any(resource.get("name") == "workloads" for resource in resources)
            self._served = (self._clock() + SERVED_PAUSE, served)
        return served

    async def observe(self, stored: StoredRun, plan: Plan | None) -> Queueing:
        """Return what is known of the queue of a Run. Raises ClusterError.

        plan: None if the run is over, or reduced.
        """
        if not stored.queued:
            return NO_QUEUE
        if not await self._is_served():
            return Queueing(unknown=_NOT_SERVED, served=False)
        self._watch()
        if unlisted := self._unlisted("Workloads"):
            return Queueing(unknown=unlisted)
        if plan and any(
            names.KUEUE_QUEUE in template.labels for template in plan.templates.values()
        ):
            return Queueing(unknown=_TWICE, lasting=True)
        workload = self._known.workload_of(stored.namespace, stored.uid)
        if workload is None or workload.uid in self._trials.deleted:
            return await self._without(stored)
        self._gone.pop(stored.uid, None)
        if workload.has("PodsReady"):
            self._trials.left.pop(stored.uid, None)
        pause = self._pause(stored.uid, workload)
        if not workload.holds_quota:
            position = await self._position(stored.namespace, workload.queue, workload.name)
            look = self._is_due(stored, workload, "")
            return Queueing(workload, position=position, look=look, pause=pause)
        unlisted = self._unlisted("ResourceFlavors")
        updates, unknown, contradiction = find_updates(workload, self._known.flavors.items())
        unknown = unlisted or unknown
        if stored.phase in _BEGUN:
            # Pods that run need no flavor any more; without one none is created.
            return Queueing(workload, updates, withheld=unknown or contradiction, pause=pause)
        look = not unknown and self._is_due(stored, workload, repr(updates))
        unknown = unknown if workload.has("Admitted") else ""
        return Queueing(workload, updates, unknown, look=look, pause=pause)

    def _is_due(self, stored: StoredRun, workload: StoredWorkload, given: str) -> bool:
        """Return whether the pods of a Run that has not begun are to be tried again.

        given: what Kueue gives to the pods; empty while the Run waits.
        """
        tried = self._trials.tried.get(stored.uid)
        if given:
            return tried is None or (tried.workload, tried.given) != (workload.uid, given)
        if tried is None or tried.workload != workload.uid:
            set_hash = workload.pod_sets[0].set_hash if workload.pod_sets else ""
            tried = self._trials.tried[stored.uid] = Tried(
                workload.uid, "", set_hash, self._clock()
            )
        served = {digest[:_HASH] for digest in self.served()}
        # While the replicas differ, either set may place a pod.
        changed = len(served) == 1 and tried.set_hash not in ("", *served)
        return changed or self._clock() - tried.at >= LOOK_AFTER

    def _pause(self, uid: str, workload: StoredWorkload) -> float:
        """Return the seconds from an eviction by this controller until the Run queues again."""
        evicted, times = workload.conditions.get("Evicted"), self._trials.left.get(uid, 0)
        # Without a failure there is no reason to wait, unless it happens again and again.
        if evicted and evicted.reason == PLACEMENT_CHANGED and times <= _IMMEDIATE_REQUEUES:
            return 0.0
        return QUEUE_AGAIN_DELAYS.after(max(1, times))

    def _unlisted(self, what: str) -> str:
        """Return why the objects of a watch are not known; empty if they are."""
        watch = self._watched[what]
        if watch.cache.synced:
            return ""
        error = watch.last_error
        forbidden = error is not None and error.status == HTTPStatus.FORBIDDEN
        return _RIGHTS.format(what=what) if forbidden else f"{what} are not listed yet"

    async def _without(self, stored: StoredRun) -> Queueing:
        """Return what is known of a Run without a Workload.

        Definitions that are deleted take the Workloads with them, and are served for some moments
        more. Only what lasts is a Workload that somebody has deleted.
        """
        if stored.phase not in _BEGUN:
            return Queueing()
        since = self._gone.setdefault(stored.uid, self._clock())
        if self._clock() - since < GONE_AFTER:
            return Queueing(unknown="its Workload is gone")
        self._served = (float("-inf"), False)
        if not await self._is_served():
            return Queueing(unknown=_NOT_SERVED, served=False)
        if await self._find_without_label(stored):
            return Queueing(unknown="its Workload had lost its label")
        return Queueing()

    async def _find_without_label(self, stored: StoredRun) -> bool:
        """Return whether the Workload is there after all, and give it its label again."""
        path = WORKLOAD.path(stored.namespace)
        workload = await self._client.find(path.path_of(workload_name(stored.name, stored.uid)))
        if workload is None or owner_uid(workload) != stored.uid:
            return False
        if workload["metadata"]["uid"] in self._trials.deleted:
            return False
        self._objects.learn(WORKLOAD, await self._objects.restore_label(WORKLOAD, workload))
        return True

    async def _position(self, namespace: str, queue: str, workload: str) -> int | None:
        """Return the position in the ClusterQueue, from 1, by Kueue's API of pending workloads."""
        until, positions = self._positions.get((namespace, queue), (float("-inf"), {}))
        if self._clock() >= until:
            try:
                path = CollectionPath(_PENDING, "localqueues", namespace).path_of(queue)
                answer = await self._client.get(path.subresource("pendingworkloads"))
                items = answer.get("items") or ()
            except ClusterError:
                items = ()  # It may be off, or not allowed.
            # Workloads of other LocalQueues may be before it.
            positions = {
                pending_workload["metadata"]["name"]: pending_workload["positionInClusterQueue"] + 1
                for pending_workload in items
                if isinstance(pending_workload.get("positionInClusterQueue"), int)
            }
            now = self._clock()
            self._positions = {
                key: entry for key, entry in self._positions.items() if entry[0] > now
            }
            self._positions[namespace, queue] = (now + POSITION_PAUSE_SECONDS / 2, positions)
        return positions.get(workload)

    def _run_changed(self, change: Change[StoredRun]) -> None:
        before, after = change.before, change.after
        if before and (after is None or after.uid != before.uid):
            self._gone.pop(before.uid, None)
