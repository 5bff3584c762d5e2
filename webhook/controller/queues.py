"""Runs in queues of Kueue: watch their Workloads while there are such Runs, and write them."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.api_paths import ApiPath, CollectionPath
from webhook.controller.informers import A_PAGE
from webhook.controller.owned_objects import POD, WORKLOAD
from webhook.controller.refusals import backend_rights, refusal
from webhook.errors import ClusterError, InvalidRun
from webhook.run.actions import CreateWorkload, DeleteWorkload, WriteWorkload
from webhook.run.manifests import make_object, metadata
from webhook.run.observation import controller_of, owner_uid
from webhook.run.observed import Refusal
from webhook.run.queue import POSITION_PAUSE
from webhook.run.queue_state import NO_QUEUE, Queueing
from webhook.run.queue_workload import (
    API_VERSION,
    changed_status,
    conflict,
    find_updates,
    longest,
    pod_set,
    pod_sets,
    too_many,
    workload_name,
)
from webhook.times import to_second

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.controller.observed_state import ObservedState
    from webhook.controller.owned_objects import Objects
    from webhook.controller.stored_run import StoredRun
    from webhook.kube.cache import Change
    from webhook.kube.watches import Watch, Watches
    from webhook.kube.writer import Writer
    from webhook.placement.shapes import JsonObject
    from webhook.run.model import Run
    from webhook.run.plan import Plan
    from webhook.run.queue_state import StoredWorkload

# Seconds from a look at whether Kueue's definitions are there to the next.
SERVED_PAUSE: Final = 30.0
# Phases of Runs that were admitted.
_BEGUN: Final = ("Pending", "Starting", "Running", "Restarting")
# Seconds after which a Workload that is gone was deleted alone.
GONE_AFTER: Final = 10.0
_PRIORITY_CLASSES: Final = CollectionPath(API_VERSION, "workloadpriorityclasses")
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


class Queues:
    """The Workloads of Runs. Without a Run that has a queue, nothing is watched."""

    def __init__(
        self,
        watches: Watches,
        writer: Writer,
        known: ObservedState,
        objects: Objects,
        namespace: str = "",
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._watches = watches
        self._client = watches.client
        self._writer = writer
        self._known = known
        self._objects = objects
        self._clock = clock
        self._now = now
        self._namespace = namespace
        self._watched: dict[str, Watch[Any]] = {}
        self._served = (float("-inf"), False)
        # Uids of Workloads that this process has deleted, as long as the cache may have them.
        self._deleted: set[str] = set()
        # By uid: since when a Run has had no Workload.
        self._gone: dict[str, float] = {}
        known.workloads.subscribe(self._workload_changed)
        known.runs.subscribe(self._run_changed)
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
            try:
                found = await self._client.get(ApiPath.of_version(API_VERSION))
                resources = found.get("resources") or ()
                served = any(each.get("name") == "workloads" for each in resources)
            except ClusterError as error:
                if error.status != HTTPStatus.NOT_FOUND:
                    raise
                served = False
            self._served = (self._clock() + SERVED_PAUSE, served)
        return served

    async def observe(self, stored: StoredRun, plan: Plan | None) -> Queueing:
        """Return what is known of the queue of a Run. Raises ClusterError.

        plan: None if the run is over, or reduced; it may be admitted then although pods and flavors
        contradict each other.
        """
        if not stored.queued:
            return NO_QUEUE
        if not await self._is_served():
            return Queueing(unknown=_NOT_SERVED, served=False)
        self._watch()
        if unlisted := self._unlisted("Workloads"):
            return Queueing(unknown=unlisted)
        if plan and any(names.KUEUE_QUEUE in each.labels for each in plan.templates.values()):
            return Queueing(unknown=_TWICE, lasting=True)
        workload = self._known.workload_of(stored.namespace, stored.uid)
        if workload is None or workload.uid in self._deleted:
            return await self._without(stored)
        self._gone.pop(stored.uid, None)
        if not workload.has("Admitted"):
            position = await self._position(stored.namespace, workload.queue, workload.name)
            return Queueing(workload, position=position)
        unlisted = self._unlisted("ResourceFlavors")
        updates, unknown = find_updates(workload, self._known.flavors.items())
        unknown = unlisted or unknown
        if stored.phase in _BEGUN:
            # Pods that run need no flavor any more; without one none is created.
            return Queueing(workload, updates, withheld=unknown)
        if plan and not unknown:
            found = (
                conflict(name, plan.pod(role, index, 0), updates[name])
                for name, (role, index, _) in pod_sets(plan).items()
                if name in updates
            )
            if conflicting := next(filter(None, found), ""):
                return Queueing(workload, updates, conflicting, lasting=True)
        return Queueing(workload, updates, unknown)

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
        try:
            found = await self._client.get(path.path_of(workload_name(stored.name, stored.uid)))
        except ClusterError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return False
        if owner_uid(found) != stored.uid or found["metadata"]["uid"] in self._deleted:
            return False
        self._objects.learn(WORKLOAD, await self._objects.restore_label(WORKLOAD, found))
        return True

    async def release(self, gone: StoredRun) -> None:
        """Delete the Workload of a Run that is gone, if it was not deleted with the Run.

        `kubectl delete --cascade=orphan` leaves it, and it would hold its quota for ever. Raises
        ClusterError.
        """
        name = workload_name(gone.name, gone.uid)
        try:
            found = await self._client.get(WORKLOAD.path(gone.namespace).path_of(name))
        except ClusterError as error:
            if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
                raise
            return
        metadata = found["metadata"]
        labelled = (metadata.get("labels") or {}).get(names.RUN_UID) == gone.uid
        if labelled and controller_of(found) is None:
            await self._objects.delete(WORKLOAD, gone.namespace, name, uid=metadata["uid"])

    async def _position(self, namespace: str, queue: str, workload: str) -> int | None:
        """Return the position in the ClusterQueue, from 1, by Kueue's API of pending workloads."""
        until, found = self._positions.get((namespace, queue), (float("-inf"), {}))
        if self._clock() >= until:
            try:
                path = CollectionPath(_PENDING, "localqueues", namespace).path_of(queue)
                answer = await self._client.get(path.subresource("pendingworkloads"))
                items = answer.get("items") or ()
            except ClusterError:
                items = ()  # It may be off, or not allowed.
            # Workloads of other LocalQueues may be before it.
            found = {
                each["metadata"]["name"]: each["positionInClusterQueue"] + 1
                for each in items
                if isinstance(each.get("positionInClusterQueue"), int)
            }
            now = self._clock()
            self._positions = {key: each for key, each in self._positions.items() if each[0] > now}
            self._positions[namespace, queue] = (now + POSITION_PAUSE / 2, found)
        return found.get(workload)

    async def carry_out(
        self,
        run: Run,
        plan: Plan | None,
        action: CreateWorkload | DeleteWorkload | WriteWorkload,
    ) -> Refusal | None:
        """Create, delete or change the Workload; return why the API server rejects it, or None.

        Raises ClusterError: 409 if it has changed meanwhile.
        """
        match action:
            case CreateWorkload(queue) if plan is not None:
                try:
                    return await self._create(run, plan, queue)
                except InvalidRun as error:
                    return Refusal(workload_name(run.name, run.metadata.uid), "Invalid", str(error))
            case DeleteWorkload(name, uid):
                await self._objects.delete(WORKLOAD, run.namespace, name, uid=uid)
                cached = self._known.workloads.get(f"{run.namespace}/{name}")
                if cached and cached.uid == uid:
                    # The watch may be late, and a Run that is resumed has no quota by it.
                    self._deleted.add(uid)
            case WriteWorkload(name, uid, version, conditions):
                path = WORKLOAD.path(run.namespace).path_of(name)
                raw = await self._client.get(path)
                if (raw["metadata"]["uid"], raw["metadata"]["resourceVersion"]) != (uid, version):
                    self._objects.learn(WORKLOAD, raw)
                    raise ClusterError(f"{path} has changed", status=HTTPStatus.CONFLICT)
                raw = changed_status(raw, conditions, to_second(self._now()))
                self._objects.learn(
                    WORKLOAD, await self._writer.replace(path.subresource("status"), raw)
                )
        return None

    def _workload_changed(self, change: Change[StoredWorkload]) -> None:
        before, after = change.before, change.after
        if before and (after is None or after.uid != before.uid):
            self._deleted.discard(before.uid)

    def _run_changed(self, change: Change[StoredRun]) -> None:
        before, after = change.before, change.after
        if before and (after is None or after.uid != before.uid):
            self._gone.pop(before.uid, None)

    async def _create(self, run: Run, plan: Plan, queue: str) -> Refusal | None:
        """Create the Workload, of pods as admission places them: by a dry run of each.

        Kueue chooses flavors by what the pods ask of nodes, and counts what they request.
        """
        name = workload_name(run.name, run.metadata.uid)
        sets = pod_sets(plan)
        if many := too_many(sets):
            return Refusal(name, "Invalid", many)
        # Without a priority, Kueue's API of pending workloads fails for the whole queue.
        spec: JsonObject = {"queueName": queue, "podSets": [], "priority": 0, **longest(run)}
        for each, (role, index, count) in sets.items():
            pod = plan.pod(role, index, 0)
            try:
                # The replica's name may be that of a pod that has ended.
                tried = {**pod, "metadata": {**pod["metadata"], "name": name}}
                path, query = POD.path(run.namespace), {"dryRun": "All"}
                placed = await self._writer.create(path, tried, query=query)
            except ClusterError as error:
                if (refused := refusal(pod["metadata"]["name"], error)) is None:
                    raise
                return refused
            spec["podSets"].append(pod_set(each, count, placed))
            if placed["spec"].get("priorityClassName") and "priorityClassRef" not in spec:
                spec |= _priority(placed["spec"], "scheduling.k8s.io", "PriorityClass")
        if wanted := (run.metadata.labels or {}).get(names.KUEUE_PRIORITY_CLASS):
            try:
                found = await self._client.get(_PRIORITY_CLASSES.path_of(wanted))
            except ClusterError as error:
                if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
                    raise
                why = "there is no WorkloadPriorityClass of this name, or it may not be read"
                return Refusal(
                    name, "Invalid", f"label {names.KUEUE_PRIORITY_CLASS}={wanted}: {why}"
                )
            value = {"priority": found["value"], "priorityClassName": wanted}
            spec |= _priority(value, "kueue.x-k8s.io", "WorkloadPriorityClass")
        meta = metadata(run, name)
        # Kueue names by it what has preempted another.
        meta["labels"][names.KUEUE_JOB_UID] = run.metadata.uid
        made = make_object(API_VERSION, "Workload", meta, {"spec": spec})
        return await self._objects.create(WORKLOAD, run, made)


def _priority(spec: JsonObject, group: str, kind: str) -> JsonObject:
    reference = {"group": group, "kind": kind, "name": spec["priorityClassName"]}
    return {"priority": spec["priority"], "priorityClassRef": reference}
