"""Watch the objects and pods of other engines, only those kinds that a Run uses."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.controller.informers import A_PAGE, collection
from webhook.controller.observed_state import ByRun
from webhook.kube.cache import Cache
from webhook.kube.reflector import Reflector
from webhook.run import observation
from webhook.run.backends.engines import ENGINES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from webhook.controller.stored_run import StoredRun
    from webhook.kube.cache import Change
    from webhook.kube.client import Client
    from webhook.run.backends.engines import Engine, PodSource
    from webhook.run.observed import EngineObject, OwnedPod

# Deleted pods to remember for each object until they are counted.
MOST_GONE: Final = 500
# Seconds for the first list of a kind. After that its Runs are read live, such as without its
# definition.
FIRST_LIST: Final = 5.0


class Watched:
    """The informers of one kind: its objects, and its operator's pods of Runs.

    began: when they started, on the clock; before the first complete list the caches are empty.
    """

    def __init__(
        self, client: Client, engine: Engine, pods: EnginePods, namespace: str, began: float
    ) -> None:
        self.engine = engine
        self.pods = pods
        self.began = began
        self.objects: Cache[EngineObject] = Cache(engine.read)
        self.by_uid: dict[str, EngineObject] = {}
        self._by_run = ByRun(self.objects, lambda each: each.run_uid)
        self.objects.subscribe(self._changed)
        self.reflector = Reflector(
            client,
            collection(engine.group, engine.resource, namespace),
            self.objects,
            query={"labelSelector": f"{names.MANAGED_BY}={names.MANAGER}"},
            page_size=A_PAGE,
        )

    @property
    def synced(self) -> bool:
        """True once objects and pods are listed."""
        return self.objects.synced and self.pods.cache.synced

    def find(self, namespace: str, uid: str) -> EngineObject | None:
        """Return the object that the Run with this uid owns."""
        return next(iter(self._by_run.values_of(namespace, uid).values()), None)

    def learn(self, raw: dict[str, Any]) -> EngineObject | None:
        """Store an object from the API server's answer, unless a newer one is cached."""
        found = self.objects.keep(raw)
        metadata = raw["metadata"]
        key = f"{metadata['namespace']}/{metadata['name']}"
        self.objects.offer(key, found, metadata["resourceVersion"])
        return found

    def _changed(self, change: Change[EngineObject]) -> None:
        if change.before:
            self.by_uid.pop(change.before.uid, None)
        if change.after:
            self.by_uid[change.after.uid] = change.after


class EnginePods:
    """The pods of one operator that belong to Runs, and those that were deleted uncounted.

    Pods are found by the uid of their controller. So a pod belongs to a Run only if the whole
    chain of owners leads to it, whatever its labels are.
    """

    def __init__(self, client: Client, source: PodSource, namespace: str) -> None:
        self.cache: Cache[OwnedPod] = Cache(lambda raw: read_pod(source, raw))
        self._by_owner = ByRun(self.cache, lambda pod: pod.run_uid)
        self._gone: dict[str, dict[str, OwnedPod]] = {}
        # Uids of pods that exist.
        self._ended_first: set[str] = set()
        self.cache.subscribe(self._changed)
        self.reflector = Reflector(
            client,
            collection("/api/v1", "pods", namespace),
            self.cache,
            query={"labelSelector": source.selector},
            page_size=A_PAGE,
        )

    def of(self, namespace: str, owner: str) -> tuple[OwnedPod, ...]:
        """Return the pods of the object with this uid."""
        return tuple(map(self._mark, self._by_owner.values_of(namespace, owner).values()))

    def judge_live(self, namespace: str, pod: OwnedPod) -> OwnedPod:
        """Return a pod from a live read, with what the watch has shown of its end."""
        cached = self.cache.get(f"{namespace}/{pod.name}")
        known = cached if cached and cached.uid == pod.uid else None
        return replace(pod, ended_first=True) if _ended_first(known, pod) else self._mark(pod)

    def gone(self, owner: str) -> tuple[OwnedPod, ...]:
        """Return the deleted pods of the object with this uid that may not be counted yet."""
        return tuple(self._gone.get(owner, {}).values())

    def forget_all(self, owner: str) -> None:
        """Forget all deleted pods of an object that is gone."""
        self._gone.pop(owner, None)

    def forget(self, owner: str, uids: Iterable[str]) -> None:
        """Forget deleted pods that are counted."""
        known = self._gone.get(owner, {})
        for uid in uids:
            known.pop(uid, None)
        if not known:
            self._gone.pop(owner, None)

    def _changed(self, change: Change[OwnedPod]) -> None:
        before, after = change.before, change.after
        same = before is not None and after is not None and after.uid == before.uid
        if after is not None and _ended_first(before if same else None, after):
            self._ended_first.add(after.uid)
        if before is None or same:
            return
        known = self._gone.setdefault(before.run_uid, {})
        known[before.uid] = self._mark(before)
        self._ended_first.discard(before.uid)
        if len(known) > MOST_GONE:
            del known[next(iter(known))]

    def _mark(self, pod: OwnedPod) -> OwnedPod:
        return replace(pod, ended_first=True) if pod.uid in self._ended_first else pod


def _ended_first(before: OwnedPod | None, pod: OwnedPod) -> bool:
    """Return True if the pod had ended before its deletion was requested.

    before: the same pod as it was seen last. The API server gives a pod that has ended no grace
    period (registry/core/pod, CheckGracefulDelete). A pod that ends because it is deleted is seen
    with its grace period before.
    """
    if not pod.ended:
        return False
    return not pod.deleted_at or (pod.half_deleted and not (before and before.deleted_at))


def read_pod(source: PodSource, raw: Mapping[str, Any]) -> OwnedPod | None:
    """Return a pod of the operator, with the uid of its controller in place of the Run's."""
    return observation.engine_pod(raw, source.role, source.index, source.containers)


class Engines:
    """The informers of the kinds that Runs use.

    They start with the first Run of a kind and stop with the last. `notify` is called with the uid
    of a Run whose object or pods have changed.
    """

    def __init__(
        self,
        client: Client,
        runs: Cache[StoredRun],
        namespace: str,
        notify: Callable[[str], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._notify = notify
        self._clock = clock
        self._used: Counter[str] = Counter()
        self._used_changed = asyncio.Event()
        self._watched: dict[str, Watched] = {}
        self._pods: dict[str, EnginePods] = {}
        self._tasks: dict[str, tuple[asyncio.Task[None], ...]] = {}
        runs.subscribe(self._run_changed)

    def is_young(self, watched: Watched) -> bool:
        """Return True while the first list of the kind may soon be complete."""
        return self._clock() - watched.began < FIRST_LIST

    def watched(self, key: str) -> Watched | None:
        """Return the informers of an engine; None before they start."""
        return self._watched.get(key)

    @property
    def collections(self) -> tuple[str, ...]:
        """The resources that are watched now, and the labels of their pods."""
        kinds = (each.engine.resource for each in self._watched.values())
        return (*kinds, *self._pods)

    async def run(self) -> None:
        """Keep the caches of all used kinds current until cancelled."""
        try:
            while True:
                self._used_changed.clear()
                self._start_and_stop()
                await self._used_changed.wait()
        finally:
            for tasks in self._tasks.values():
                for task in tasks:
                    task.cancel()

    def _start_and_stop(self) -> None:
        wanted = {key for key, count in self._used.items() if count > 0}
        for key in self._watched.keys() - wanted:
            self._stop(key)
            del self._watched[key]
        labels = {ENGINES[key].pods.label for key in wanted}
        for label in self._pods.keys() - labels:
            self._stop(label)
            del self._pods[label]
        for key in sorted(wanted - self._watched.keys()):
            self._start(key)

    def _start(self, key: str) -> None:
        engine = ENGINES[key]
        label = engine.pods.label
        if label not in self._pods:
            pods = self._pods[label] = EnginePods(self._client, engine.pods, self._namespace)
            pods.cache.subscribe(self._pod_changed)
            self._tasks[label] = (asyncio.create_task(pods.reflector.run()),)
        watched = Watched(self._client, engine, self._pods[label], self._namespace, self._clock())
        watched.objects.subscribe(lambda change: self._object_changed(watched, change))
        self._watched[key] = watched
        self._tasks[key] = (asyncio.create_task(watched.reflector.run()),)

    def _stop(self, name: str) -> None:
        for task in self._tasks.pop(name, ()):
            task.cancel()

    def _run_changed(self, change: Change[StoredRun]) -> None:
        before = change.before.engine if change.before else ""
        after = change.after.engine if change.after else ""
        if before == after:
            return
        for key, by in ((before, -1), (after, 1)):
            if key:
                self._used[key] += by
        self._used_changed.set()

    def _object_changed(self, watched: Watched, change: Change[EngineObject]) -> None:
        before, after = change.before, change.after
        if before and (after is None or after.uid != before.uid):
            # Whatever it left behind is deleted with it.
            watched.pods.forget_all(before.uid)
        for each in (before, after):
            if each:
                self._notify(each.run_uid)

    def _pod_changed(self, change: Change[OwnedPod]) -> None:
        for owner in {each.run_uid for each in (change.before, change.after) if each}:
            for watched in self._watched.values():
                if found := watched.by_uid.get(owner):
                    self._notify(found.run_uid)
