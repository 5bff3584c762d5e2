"""Runs in queues of Kueue: watch their Workloads while there are such Runs, and write them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.api_paths import ApiPath, CollectionPath
from webhook.backoff import QUEUE_AGAIN_DELAYS
from webhook.controller.informers import A_PAGE
from webhook.controller.owned_objects import POD, WORKLOAD
from webhook.controller.refusals import backend_rights, is_fact, refusal
from webhook.errors import ClusterError, InvalidRun
from webhook.placement.stamp_text import read_given_up
from webhook.run.actions import CheckWorkload, CreateWorkload, DeleteWorkload, WriteWorkload
from webhook.run.manifests import make_object, metadata
from webhook.run.observation import controller_of, owner_uid
from webhook.run.observed import Refusal
from webhook.run.pod_sets import Sampling, describe_changes, histories_at_start
from webhook.run.queue import (
    CANNOT_CREATE,
    PLACEMENT_CHANGED,
    POSITION_PAUSE,
    evict,
)
from webhook.run.queue_state import NO_QUEUE, Queueing
from webhook.run.queue_workload import (
    API_VERSION,
    changed_status,
    conflict,
    find_updates,
    longest,
    pod_set_of,
    removed_tolerations,
    sets_of_replicas,
    updated,
    workload_name,
)
from webhook.times import to_second

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from webhook.controller.observed_state import ObservedState
    from webhook.controller.owned_objects import Objects
    from webhook.controller.stored_run import StoredRun
    from webhook.kube.cache import Change
    from webhook.kube.watches import Watch, Watches
    from webhook.kube.writer import Writer
    from webhook.placement.shapes import JsonObject
    from webhook.run.actions import CreatePod
    from webhook.run.model import Run
    from webhook.run.plan import Plan
    from webhook.run.pod_sets import PodSet
    from webhook.run.queue_state import PodUpdate, StoredWorkload

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
_AT_ONCE: Final = 2
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


@dataclass(slots=True)
class _Tried:
    """When the pods of a Run were tried for a Workload, and with which result.

    given: what Kueue gave to the Workload; empty while it waits. set_hash: of the policies.
    histories: pod sets with the history of a replica, for which the Workload is right.
    """

    workload: str
    given: str
    set_hash: str
    at: float
    histories: set[tuple[str, str]] = field(default_factory=set)


class Queues:
    """The Workloads of Runs. Without a Run that has a queue, nothing is watched.

    `served`: set later; returns the hashes of the policy sets that the webhook's replicas serve;
    empty if they are not known.
    """

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
        # By uid: when its pods were tried, and how often the Run gave its quota back without having
        # been whole in between.
        self._tried: dict[str, _Tried] = {}
        self._left: dict[str, int] = {}
        self.served: Callable[[], Collection[str]] = tuple
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
            found = await self._client.find(ApiPath.of_version(API_VERSION)) or {}
            resources = found.get("resources") or ()
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
        if plan and any(names.KUEUE_QUEUE in each.labels for each in plan.templates.values()):
            return Queueing(unknown=_TWICE, lasting=True)
        workload = self._known.workload_of(stored.namespace, stored.uid)
        if workload is None or workload.uid in self._deleted:
            return await self._without(stored)
        self._gone.pop(stored.uid, None)
        if workload.has("PodsReady"):
            self._left.pop(stored.uid, None)
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
        tried = self._tried.get(stored.uid)
        if given:
            return tried is None or (tried.workload, tried.given) != (workload.uid, given)
        if tried is None or tried.workload != workload.uid:
            set_hash = workload.pod_sets[0].set_hash if workload.pod_sets else ""
            tried = self._tried[stored.uid] = _Tried(workload.uid, "", set_hash, self._clock())
        served = {each[:_HASH] for each in self.served()}
        # While the replicas differ, either set may place a pod.
        changed = len(served) == 1 and tried.set_hash not in ("", *served)
        return changed or self._clock() - tried.at >= LOOK_AFTER

    def _pause(self, uid: str, workload: StoredWorkload) -> float:
        """Return the seconds from an eviction by this controller until the Run queues again."""
        evicted, times = workload.conditions.get("Evicted"), self._left.get(uid, 0)
        # Without a failure there is no reason to wait, unless it happens again and again.
        if evicted and evicted.reason == PLACEMENT_CHANGED and times <= _AT_ONCE:
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
        found = await self._client.find(path.path_of(workload_name(stored.name, stored.uid)))
        if found is None or owner_uid(found) != stored.uid:
            return False
        if found["metadata"]["uid"] in self._deleted:
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
        action: CreateWorkload | CheckWorkload | DeleteWorkload | WriteWorkload,
    ) -> Refusal | None:
        """Create, check, delete or change the Workload; return why it is rejected, or None.

        Raises ClusterError: 409 if it has changed meanwhile.
        """
        match action:
            case CreateWorkload(queue) if plan is not None:
                try:
                    return await self._create(run, plan, queue)
                except InvalidRun as error:
                    return Refusal(workload_name(run.name, run.metadata.uid), "Invalid", str(error))
            case CheckWorkload(_, uid) if plan is not None:
                return await self._check(run, plan, uid)
            case DeleteWorkload(name, uid):
                await self._delete(run, name, uid)
            case WriteWorkload():
                await self._write(run, action)
        return None

    async def _delete(self, run: Run, name: str, uid: str) -> None:
        await self._objects.delete(WORKLOAD, run.namespace, name, uid=uid)
        cached = self._known.workloads.get(f"{run.namespace}/{name}")
        if cached and cached.uid == uid:
            # The watch may be late, and a Run that is resumed has no quota by it.
            self._deleted.add(uid)

    async def _write(self, run: Run, action: WriteWorkload) -> None:
        path = WORKLOAD.path(run.namespace).path_of(action.name)
        raw = await self._client.get(path)
        version = (raw["metadata"]["uid"], raw["metadata"]["resourceVersion"])
        if version != (action.uid, action.version):
            self._objects.learn(WORKLOAD, raw)
            raise ClusterError(f"{path} has changed", status=HTTPStatus.CONFLICT)
        raw = changed_status(raw, action.conditions, to_second(self._now()))
        written = await self._writer.replace(path.subresource("status"), raw)
        self._objects.learn(WORKLOAD, written)
        if any(each["type"] == "Evicted" for each in action.conditions):
            uid = run.metadata.uid
            self._left[uid] = self._left.get(uid, 0) + 1

    async def _check(self, run: Run, plan: Plan, uid: str) -> Refusal | None:
        """Try the Run's pods again, and leave the queue, or its admission, if they do not fit."""
        workload = self._known.workload_of(run.namespace, run.metadata.uid)
        if workload is None or workload.uid != uid:
            return None
        updates, _, why = find_updates(workload, self._known.flavors.items())
        given, set_hash, reason = repr(updates) if workload.holds_quota else "", "", CANNOT_CREATE
        try:
            sets = await self._sample(run, plan)
            set_hash = sets[0].set_hash
            if changed := describe_changes(workload, sets):
                reason, why = PLACEMENT_CHANGED, changed
            why = why or await self._refused_flavor(run, plan, sets, updates)
        except _RefusedError as error:
            if not is_fact(error.refused):
                return error.refused
            if not given:
                # What would be rejected has no place in the queue.
                await self._delete(run, workload.name, uid)
                return error.refused
            reason, why = CANNOT_CREATE, error.refused.message
        if why and given:
            await self._write(run, evict(workload, reason, why))
        elif why:
            await self._delete(run, workload.name, uid)
        else:
            self._tried[run.metadata.uid] = _Tried(uid, given, set_hash, self._clock())
        return None

    async def _refused_flavor(
        self, run: Run, plan: Plan, sets: Iterable[PodSet], updates: dict[str, PodUpdate]
    ) -> str:
        """Return why pods cannot be created with what Kueue gave them; empty if they can.

        Raises _RefusedError if the API server rejects one.
        """
        for each in sets:
            update = updates.get(each.name)
            pod = plan.pod(each.role, each.tried, 0, each.history)
            if update is not None:
                if why := conflict(each.text, pod, update):
                    return why
                placed = await self._try(run, updated(pod, update))
                if why := removed_tolerations(each.text, placed, update):
                    return why
        return ""

    async def leaves_for(
        self, run: Run, plan: Plan, workload: StoredWorkload, pods: Sequence[CreatePod]
    ) -> bool:
        """Leave the queue's admission if policies give up a class for pods to create, or require
        one again, and their flavors were chosen otherwise; return whether the Run does so.

        What policies do with a history shows when a pod with it is tried.
        """
        sets = {each.name: each for each in workload.pod_sets if each.role}
        by_replica = sets_of_replicas(workload)
        tried = self._tried.get(run.metadata.uid)
        if tried is None or tried.workload != workload.uid:
            tried = _Tried(workload.uid, "", "", self._clock())
            self._tried[run.metadata.uid] = tried
        for each in pods:
            own = sets.get(pod_set_of(workload, by_replica, each.role, each.index))
            if own is None or not each.history or (own.name, each.history) in tried.histories:
                continue
            try:
                pod = plan.pod(each.role, each.index, each.attempt, each.history)
                placed = await self._try(run, pod)
            except _RefusedError:
                # The creation itself will say so.
                continue
            given_up = frozenset(name for name, _ in read_given_up(placed["metadata"]))
            if given_up != own.given_up:
                why = _describe_classes(each, given_up, own.given_up)
                await self._write(run, evict(workload, PLACEMENT_CHANGED, why))
                return True
            tried.histories.add((own.name, each.history))
        return False

    def _workload_changed(self, change: Change[StoredWorkload]) -> None:
        before, after = change.before, change.after
        if before and (after is None or after.uid != before.uid):
            self._deleted.discard(before.uid)

    def _run_changed(self, change: Change[StoredRun]) -> None:
        before, after = change.before, change.after
        if before and (after is None or after.uid != before.uid):
            for each in (self._gone, self._tried, self._left):
                each.pop(before.uid, None)

    async def _create(self, run: Run, plan: Plan, queue: str) -> Refusal | None:
        """Create the Workload, of pods as admission places them: by a dry run of each kind.

        Kueue chooses flavors by what the pods ask of nodes, and counts what they request.
        """
        name = workload_name(run.name, run.metadata.uid)
        try:
            sets = await self._sample(run, plan)
        except _RefusedError as error:
            return error.refused
        # Without a priority, Kueue's API of pending workloads fails for the whole queue.
        pod_sets = [each.noted for each in sets]
        spec: JsonObject = {"queueName": queue, "podSets": pod_sets, "priority": 0, **longest(run)}
        for each in sets:
            if each.priority.get("priorityClassName") and "priorityClassRef" not in spec:
                spec |= _priority(each.priority, "scheduling.k8s.io", "PriorityClass")
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

    async def _sample(self, run: Run, plan: Plan) -> list[PodSet]:
        """Return the pod sets of the Run, as admission places its pods now.

        Raises _RefusedError if the API server rejects a pod, or Kueue takes no such pod sets.
        """
        sampling = Sampling(plan, histories_at_start(run, self._now()))
        try:
            while replica := sampling.next():
                role, index, history = replica
                sampling.add(await self._try(run, plan.pod(role, index, 0, history)))
        except InvalidRun as error:
            raise _RefusedError(
                Refusal(workload_name(run.name, run.metadata.uid), "Invalid", str(error))
            ) from None
        if many := sampling.problem():
            raise _RefusedError(Refusal(workload_name(run.name, run.metadata.uid), "Invalid", many))
        return sampling.sets()

    async def _try(self, run: Run, pod: JsonObject) -> JsonObject:
        """Return the pod as admission places it, by a dry run. Raises _RefusedError."""
        metadata = pod["metadata"]
        # The replica's name may be that of a pod that has ended.
        tried = {**pod, "metadata": {**metadata, "name": workload_name(run.name, run.metadata.uid)}}
        try:
            path, query = POD.path(run.namespace), {"dryRun": "All"}
            return await self._writer.create(path, tried, query=query)
        except ClusterError as error:
            if (refused := refusal(metadata["name"], error)) is None:
                raise
            raise _RefusedError(refused) from None


class _RefusedError(Exception):
    """The API server rejects a pod, or Kueue would the Workload."""

    def __init__(self, refused: Refusal) -> None:
        super().__init__(refused.message)
        self.refused = refused


def _describe_classes(pod: CreatePod, now: frozenset[str], before: frozenset[str]) -> str:
    """Return which classes policies give up for a replica, or require again."""
    parts = []
    if up := sorted(now - before):
        parts.append(f"policies give up class {', '.join(up)} for {pod.role}-{pod.index}")
    if again := sorted(before - now):
        parts.append(f"policies require class {', '.join(again)} again for {pod.role}-{pod.index}")
    return "; ".join(parts)


def _priority(spec: JsonObject, group: str, kind: str) -> JsonObject:
    reference = {"group": group, "kind": kind, "name": spec["priorityClassName"]}
    return {"priority": spec["priority"], "priorityClassRef": reference}
