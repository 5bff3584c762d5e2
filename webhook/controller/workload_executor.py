"""Carry out the actions on the Workloads of Runs in queues; their pods are tried first."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.api_paths import CollectionPath
from webhook.controller.owned_objects import POD, WORKLOAD
from webhook.controller.queues import Tried
from webhook.controller.refusals import is_fact, refusal
from webhook.errors import ClusterError, InvalidRun
from webhook.placement.stamp_text import read_given_up
from webhook.run.actions import CheckWorkload, CreateWorkload, DeleteWorkload, WriteWorkload
from webhook.run.controller_reference import controller_of
from webhook.run.manifests import make_object, metadata
from webhook.run.observed import Refusal
from webhook.run.pod_sets import Sampling, describe_changes, histories_at_start
from webhook.run.queue import CANNOT_CREATE, PLACEMENT_CHANGED, evict
from webhook.run.queue_workload import (
    API_VERSION,
    changed_status,
    conflict,
    find_updates,
    longest,
    overridden,
    pod_set_of,
    sets_of_replicas,
    updated,
    workload_name,
)
from webhook.times import to_second

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from webhook.controller.observed_state import ObservedState
    from webhook.controller.owned_objects import Objects
    from webhook.controller.queues import Trials
    from webhook.controller.stored_run import StoredRun
    from webhook.kube.client import Client
    from webhook.kube.writer import Writer
    from webhook.placement.shapes import JsonObject
    from webhook.run.actions import CreatePod
    from webhook.run.model import Run
    from webhook.run.plan import Plan
    from webhook.run.pod_sets import PodSet
    from webhook.run.queue_state import PodUpdate, Queueing, StoredWorkload

_PRIORITY_CLASSES: Final = CollectionPath(API_VERSION, "workloadpriorityclasses")


class WorkloadExecutor:
    """Carry out the actions on Workloads; one object serves all Runs."""

    def __init__(
        self,
        client: Client,
        writer: Writer,
        state: ObservedState,
        objects: Objects,
        trials: Trials,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._writer = writer
        self._known = state
        self._objects = objects
        self._trials = trials
        self._clock = clock
        self._now = now

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
            self._trials.deleted.add(uid)

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
        if any(condition["type"] == "Evicted" for condition in action.conditions):
            uid = run.metadata.uid
            self._trials.left[uid] = self._trials.left.get(uid, 0) + 1

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
            self._trials.tried[run.metadata.uid] = Tried(uid, given, set_hash, self._clock())
        return None

    async def _refused_flavor(
        self, run: Run, plan: Plan, sets: Iterable[PodSet], updates: dict[str, PodUpdate]
    ) -> str:
        """Return why pods cannot be created with what Kueue gave them; empty if they can.

        Raises _RefusedError if the API server rejects one.
        """
        for pod_set in sets:
            update = updates.get(pod_set.name)
            pod = plan.pod(pod_set.role, pod_set.tried, 0, pod_set.history)
            if update is not None:
                # Policies may have put another value in place of the run's own.
                placed = {"metadata": pod["metadata"], "spec": pod_set.asks["template"]["spec"]}
                if why := conflict(pod_set.text, placed, update):
                    return why
                placed = await self._try(run, updated(pod, update))
                if why := overridden(pod_set.text, placed, update):
                    return why
        return ""

    async def leaves_for(
        self, run: Run, plan: Plan, workload: StoredWorkload, pods: Sequence[CreatePod]
    ) -> bool:
        """Leave the queue's admission if policies give up a class for pods to create, or require
        one again, and their flavors were chosen otherwise; return whether the Run does so.

        What policies do with a history shows when a pod with it is tried.
        """
        sets = {pod_set.name: pod_set for pod_set in workload.pod_sets if pod_set.role}
        by_replica = sets_of_replicas(workload)
        tried = self._trials.tried.get(run.metadata.uid)
        if tried is None or tried.workload != workload.uid:
            tried = Tried(workload.uid, "", "", self._clock())
            self._trials.tried[run.metadata.uid] = tried
        for creation in pods:
            pod_set = sets.get(pod_set_of(workload, by_replica, creation.role, creation.index))
            if (
                pod_set is None
                or not creation.history
                or (pod_set.name, creation.history) in tried.histories
            ):
                continue
            try:
                pod = plan.pod(creation.role, creation.index, creation.attempt, creation.history)
                placed = await self._try(run, pod)
            except _RefusedError:
                # The creation itself will say so.
                continue
            given_up = frozenset(name for name, _ in read_given_up(placed["metadata"]))
            if given_up != pod_set.given_up:
                why = _describe_classes(creation, given_up, pod_set.given_up)
                await self._write(run, evict(workload, PLACEMENT_CHANGED, why))
                return True
            tried.histories.add((pod_set.name, creation.history))
        return False

    async def refuse_elsewhere(
        self,
        run: Run,
        plan: Plan,
        queue: Queueing,
        pods: Sequence[CreatePod],
        by_replica: Mapping[tuple[str, int], str],
    ) -> Refusal | None:
        """Return why a pod is not to be created: policies of now, which may be newer than the
        admission, would put it on other nodes than those of its flavor; None if they do not.

        One pod of each pod set and history is tried. `by_replica`: those of `sets_of_replicas`.
        """
        tried = set()
        for creation in pods:
            name = pod_set_of(queue.workload, by_replica, creation.role, creation.index)
            update = queue.updates.get(name)
            if update is None or (name, creation.history) in tried:
                continue
            tried.add((name, creation.history))
            pod = plan.pod(creation.role, creation.index, creation.attempt, creation.history)
            try:
                placed = await self._try(run, updated(pod, update))
            except _RefusedError:
                # The creation itself will say so.
                continue
            replica = run.pod_name(creation.role, creation.index)
            if why := overridden(f"{creation.role} {creation.index}", placed, update):
                return Refusal(replica, PLACEMENT_CHANGED, why)
        return None

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
        pod_sets = [pod_set.noted for pod_set in sets]
        spec: JsonObject = {"queueName": queue, "podSets": pod_sets, "priority": 0, **longest(run)}
        for pod_set in sets:
            if pod_set.priority.get("priorityClassName") and "priorityClassRef" not in spec:
                spec |= _priority(pod_set.priority, "scheduling.k8s.io", "PriorityClass")
        if wanted := (run.metadata.labels or {}).get(names.KUEUE_PRIORITY_CLASS):
            try:
                priority_class = await self._client.get(_PRIORITY_CLASSES.path_of(wanted))
            except ClusterError as error:
                if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
                    raise
                why = "there is no WorkloadPriorityClass of this name, or it may not be read"
                return Refusal(
                    name, "Invalid", f"label {names.KUEUE_PRIORITY_CLASS}={wanted}: {why}"
                )
            value = {"priority": priority_class["value"], "priorityClassName": wanted}
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

    async def try_pods(self, run: Run, plan: Plan) -> list[PodSet] | Refusal:
        """Return the run's pods as admission places them now, or why it rejects one. Without any
        if they are of too many kinds, or admission did not answer.
        """
        try:
            return await self._sample(run, plan)
        except _RefusedError as error:
            certain = is_fact(error.refused) and error.refused.reason != "Invalid"
            return error.refused if certain else []

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

    async def release(self, gone: StoredRun) -> None:
        """Delete the Workload of a Run that is gone, if it was not deleted with the Run.

        `kubectl delete --cascade=orphan` leaves it, and it would hold its quota for ever. Raises
        ClusterError.
        """
        name = workload_name(gone.name, gone.uid)
        try:
            workload = await self._client.get(WORKLOAD.path(gone.namespace).path_of(name))
        except ClusterError as error:
            if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
                raise
            return
        metadata = workload["metadata"]
        labelled = (metadata.get("labels") or {}).get(names.RUN_UID) == gone.uid
        if labelled and controller_of(workload) is None:
            await self._objects.delete(WORKLOAD, gone.namespace, name, uid=metadata["uid"])


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
